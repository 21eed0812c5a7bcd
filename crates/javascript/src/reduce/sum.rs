//! `_sum`, as CouchDB's `couch_query_servers` adds.

use std::collections::BTreeMap;

use serde_json::Value;

use super::figure::{Figure, Number};
use super::overflows;
use crate::error::ScriptError;

/// CouchDB's words for values that cannot be added.
const REASON: &str = "The _sum function requires that map values be numbers, arrays of numbers, or objects. \
    Objects cannot be mixed with other data structures. Objects can be arbitrarily nested, provided that the \
    values for all fields are themselves numbers, arrays of numbers, or objects.";

const ERROR: &str = "builtin_reduce_error";

/// The sum of JSON values. What cannot be added gives an object that tells so instead of a sum; sums of it and
/// anything are the same object.
pub(super) fn sum<'a>(
    values: impl Iterator<Item = &'a str>,
    must_shrink: bool,
) -> Result<String, ScriptError> {
    let mut total = Figure::Number(Number::Integer(0));
    let mut input_bytes: usize = 0;
    for json in values {
        input_bytes = input_bytes.saturating_add(json.len());
        total = match add(Figure::parse(json)?, total) {
            Ok(total) => total,
            Err(object) => return Ok(object.to_string()),
        };
    }
    let total = total.to_string();
    if must_shrink && overflows(input_bytes, total.len()) {
        let reason = format!(
            "Reduce output must shrink more rapidly: input size: {input_bytes} output size: {}",
            total.len()
        );
        return Ok(object(&reason, None).to_string());
    }
    Ok(total)
}

/// Adds a value to a total, or gives the object that the whole sum is instead.
fn add(value: Figure, total: Figure) -> Result<Figure, Figure> {
    match (value, total) {
        (Figure::Number(value), Figure::Number(total)) => Ok(Figure::Number(total.plus(value))),
        (Figure::List(value), Figure::List(total)) => add_lists(total, value),
        (value @ Figure::Number(_), Figure::List(total)) => add_lists(total, vec![value]),
        (Figure::List(value), total @ Figure::Number(_)) => add_lists(vec![total], value),
        (Figure::Object(value), total) => {
            if value.get("error").is_some_and(|error| *error == Figure::Other(format!("\"{ERROR}\""))) {
                return Err(Figure::Object(value));
            }
            match total {
                Figure::Number(total) if total.is_zero() => Ok(Figure::Object(value)),
                Figure::Object(total) => add_objects(value, total).map(Figure::Object),
                _ => Err(object(REASON, Some(&Figure::Object(value)))),
            }
        }
        (value, _) => Err(object(REASON, Some(&value))),
    }
}

/// Element by element; what one list has more is taken as it is.
fn add_lists(total: Vec<Figure>, value: Vec<Figure>) -> Result<Figure, Figure> {
    let mut sums = Vec::with_capacity(total.len().max(value.len()));
    let (mut total, mut value) = (total.into_iter(), value.into_iter());
    loop {
        let sum = match (total.next(), value.next()) {
            (Some(Figure::Number(total)), Some(Figure::Number(value))) => Figure::Number(total.plus(value)),
            (Some(first), Some(_)) => {
                let rest = std::iter::once(first).chain(total).collect();
                return Err(object(REASON, Some(&Figure::List(rest))));
            }
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => return Ok(Figure::List(sums)),
        };
        sums.push(sum);
    }
}

/// Member by member.
fn add_objects(
    value: BTreeMap<String, Figure>,
    mut total: BTreeMap<String, Figure>,
) -> Result<BTreeMap<String, Figure>, Figure> {
    for (name, value) in value {
        let sum = match total.remove(&name) {
            Some(total) => add(value, total)?,
            None => value,
        };
        total.insert(name, sum);
    }
    Ok(total)
}

/// What stands in for a sum.
fn object(reason: &str, cause: Option<&Figure>) -> Figure {
    let text = |text: &str| Figure::Other(Value::from(text).to_string());
    let members =
        [("error", Some(text(ERROR))), ("reason", Some(text(reason))), ("caused_by", cause.cloned())];
    let members = members.into_iter().filter_map(|(name, figure)| Some((name.to_owned(), figure?)));
    Figure::Object(members.collect())
}
