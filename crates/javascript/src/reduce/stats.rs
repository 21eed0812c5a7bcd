//! `_stats`, as CouchDB's `couch_query_servers` gathers it.

use super::figure::{Figure, Number};
use crate::error::ScriptError;

const MEMBERS: [&str; 5] = ["sum", "count", "min", "max", "sumsqr"];

/// Statistics of numbers, or of each element of lists of the same length.
enum Stats {
    Numbers([Number; 5]),
    List(Vec<Stats>),
}

/// The statistics of JSON values: numbers, objects that are statistics already, or lists of these.
pub(super) fn stats<'a>(values: impl Iterator<Item = &'a str>) -> Result<String, ScriptError> {
    let mut gathered: Option<Stats> = None;
    for json in values {
        let value = Figure::parse(json)?;
        gathered = Some(match gathered {
            None => first(value)?,
            Some(gathered) => add(value, gathered)?,
        });
    }
    let nothing = || Stats::Numbers([Number::Integer(0); 5]);
    Ok(json(&gathered.unwrap_or_else(nothing)))
}

/// The statistics of one value.
fn first(value: Figure) -> Result<Stats, ScriptError> {
    match value {
        Figure::Number(number) => {
            Ok(Stats::Numbers([number, Number::Integer(1), number, number, number.squared()]))
        }
        Figure::List(list) => list.into_iter().map(first).collect::<Result<_, _>>().map(Stats::List),
        Figure::Object(_) => packed(&value).map(Stats::Numbers),
        Figure::Other(_) => Err(invalid(format!("non-numeric _stats input: {value}"))),
    }
}

fn add(value: Figure, gathered: Stats) -> Result<Stats, ScriptError> {
    match (value, gathered) {
        (Figure::List(list), Stats::List(gathered)) if list.len() == gathered.len() => {
            let both = list.into_iter().zip(gathered);
            both.map(|(value, gathered)| add(value, gathered)).collect::<Result<_, _>>().map(Stats::List)
        }
        (value @ (Figure::Number(_) | Figure::Object(_)), Stats::Numbers(gathered)) => match first(value)? {
            Stats::Numbers(more) => Ok(Stats::Numbers(merged(gathered, more))),
            list @ Stats::List(_) => Ok(list),
        },
        (value, _) => Err(invalid(format!(
            "The _stats function requires that map values be numbers or arrays of numbers, not '{value}'"
        ))),
    }
}

fn merged(left: [Number; 5], right: [Number; 5]) -> [Number; 5] {
    let [sum, count, min, max, squares] = left;
    let [more, counted, low, high, squared] = right;
    [
        sum.plus(more),
        count.plus(counted),
        if low.is_less(min) { low } else { min },
        if max.is_less(high) { high } else { max },
        squares.plus(squared),
    ]
}

/// Statistics that were gathered before, by a function or by who wrote the document.
fn packed(value: &Figure) -> Result<[Number; 5], ScriptError> {
    let mut numbers = [Number::Integer(0); 5];
    for (number, name) in numbers.iter_mut().zip(MEMBERS) {
        let Figure::Object(members) = value else { continue };
        *number = match members.get(name) {
            Some(Figure::Number(number)) => *number,
            Some(other) => {
                return Err(invalid(format!("non-numeric _stats input received for {name}: {other}")));
            }
            None => {
                return Err(invalid(format!("user _stats input missing required field {name} ({value})")));
            }
        };
    }
    Ok(numbers)
}

fn json(stats: &Stats) -> String {
    match stats {
        Stats::Numbers(numbers) => {
            let members = MEMBERS.iter().zip(numbers).map(|(name, number)| format!("\"{name}\":{number}"));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Stats::List(list) => format!("[{}]", list.iter().map(json).collect::<Vec<_>>().join(",")),
    }
}

const fn invalid(reason: String) -> ScriptError {
    ScriptError::InvalidValue { reason }
}
