//! `_top_N`, `_bottom_N`, `_first` and `_last`.

use std::cmp::Ordering;

use serde_json::value::RawValue;

use super::Row;
use super::figure::{Figure, Number};
use crate::error::ScriptError;

/// The longest reduction: values are whole documents, if somebody wants it.
const STATE_BYTES_MAX: usize = 4 << 20;

/// Which of some values are wanted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    Highest,
    Lowest,
}

/// The highest values, highest first, or the lowest, lowest first: as many as are wanted. Values of different kinds are in
/// the order of keys; texts are by their code points.
pub(super) fn extremes<'a>(
    values: impl Iterator<Item = &'a str>,
    (end, count): (End, usize),
) -> Result<String, ScriptError> {
    let mut kept: Vec<(Figure, &str)> = Vec::with_capacity(count + 1);
    for json in values {
        let figure = Figure::parse(json)?;
        let place = kept.partition_point(|(other, _)| {
            let order = compare(other, &figure);
            if end == End::Highest { order != Ordering::Less } else { order != Ordering::Greater }
        });
        if place < count {
            kept.insert(place, (figure, json.trim_ascii()));
            kept.truncate(count);
        }
    }
    bounded(super::list(kept.iter().map(|(_, json)| *json)))
}

/// The same of such lists.
pub(super) fn extremes_of_lists<'a>(
    states: impl Iterator<Item = &'a str>,
    wanted: (End, usize),
) -> Result<String, ScriptError> {
    let lists = states.map(|state| serde_json::from_str::<Vec<&RawValue>>(state).map_err(not_json));
    let lists = lists.collect::<Result<Vec<_>, _>>()?;
    extremes(lists.iter().flatten().map(|value| value.get()), wanted)
}

/// The value of the first or the last row, with the row's place, by which reductions are told apart that come in any order.
pub(super) fn outermost(rows: &[Row<'_>], end: End) -> Result<String, ScriptError> {
    let row = match end {
        End::Lowest => rows.iter().min_by_key(|row| row.order),
        End::Highest => rows.iter().max_by_key(|row| row.order),
    };
    let Some(Row { order, value_json, .. }) = row else { return Ok("null".to_owned()) };
    let order: String = order.iter().map(|byte| format!("{byte:02x}")).collect();
    bounded(format!("[\"{order}\",{value_json}]"))
}

/// The same of such reductions.
pub(super) fn outermost_of<'a>(
    states: impl Iterator<Item = &'a str>,
    end: End,
) -> Result<String, ScriptError> {
    let mut found: Option<(&str, &str)> = None;
    for state in states {
        let Some((order, _)) = placed(state)? else { continue };
        let is_further = found.is_none_or(|(other, _)| match end {
            End::Lowest => order < other,
            End::Highest => order > other,
        });
        if is_further {
            found = Some((order, state));
        }
    }
    Ok(found.map_or_else(|| "null".to_owned(), |(_, state)| state.to_owned()))
}

/// The value in such a reduction.
pub(super) fn value_of(state: &str) -> Result<String, ScriptError> {
    Ok(placed(state)?.map_or_else(|| "null".to_owned(), |(_, value)| value.to_owned()))
}

/// The row's place and value; `None`: there was no row.
fn placed(state: &str) -> Result<Option<(&str, &str)>, ScriptError> {
    if state == "null" {
        return Ok(None);
    }
    let (order, value): (&str, &RawValue) = serde_json::from_str(state).map_err(not_json)?;
    Ok(Some((order, value.get())))
}

fn bounded(state: String) -> Result<String, ScriptError> {
    if state.len() <= STATE_BYTES_MAX {
        return Ok(state);
    }
    let reason = format!("The reduction has {} bytes; it may have {STATE_BYTES_MAX}.", state.len());
    Err(ScriptError::ReduceOverflow { reason })
}

#[allow(clippy::needless_pass_by_value, reason = "a closure of a result takes its error")]
fn not_json(error: serde_json::Error) -> ScriptError {
    ScriptError::Json { message: error.to_string() }
}

/// null, false, true, numbers, texts, lists, objects.
fn compare(one: &Figure, other: &Figure) -> Ordering {
    let rank = |figure: &Figure| match figure {
        Figure::Other(json) if json.starts_with('"') => 4,
        Figure::Other(json) => match json.as_str() {
            "false" => 1,
            "true" => 2,
            _ => 0,
        },
        Figure::Number(_) => 3,
        Figure::List(_) => 5,
        Figure::Object(_) => 6,
    };
    match (one, other) {
        (Figure::Number(one), Figure::Number(other)) => compare_numbers(*one, *other),
        (Figure::List(one), Figure::List(other)) => {
            let differ = one.iter().zip(other).map(|(one, other)| compare(one, other));
            differ.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (Figure::Object(one), Figure::Object(other)) => {
            let differ = one.iter().zip(other).map(|((one_name, one), (other_name, other))| {
                one_name.cmp(other_name).then_with(|| compare(one, other))
            });
            differ.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (Figure::Other(one_json), Figure::Other(other_json)) if rank(one) == 4 && rank(other) == 4 => {
            let text = |json: &str| serde_json::from_str::<String>(json).unwrap_or_default();
            text(one_json).cmp(&text(other_json))
        }
        _ => rank(one).cmp(&rank(other)),
    }
}

fn compare_numbers(one: Number, other: Number) -> Ordering {
    if one.is_less(other) {
        Ordering::Less
    } else if other.is_less(one) {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}
