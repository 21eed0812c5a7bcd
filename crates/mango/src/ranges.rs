//! Which parts of an index hold every document that can match, and which conditions they already answer for.

mod documents;
mod interval;
mod prefix;

use scrinium_document::collation::sort_key;
use serde_json::{Value, json};

use crate::bounds::KeyRange;
use crate::index::IndexDefinition;
use crate::selector::{Comparison, Condition, FieldCondition, Node, Selector};
pub(crate) use documents::document_ranges;
use interval::{Intervals, OrderPlace};

/// The most ranges of one plan. Where a `$in` asks for more, what lies between its values is read too.
pub const MAX_RANGES: usize = 1000;

/// A value with a longer sort key makes no bound, since indexes may cut sort keys at 1,024 bytes.
const MAX_KEY_BYTES: usize = 1000;

/// What is read, and what remains to be checked of it.
pub(crate) struct Narrowed<R> {
    pub(crate) ranges: Vec<R>,
    pub(crate) residual: Selector,
}

/// An empty `$and` or `$or` alone asks for nothing at all in `_find`, although it matches everything.
pub(crate) fn asks_for_nothing(selector: &Selector) -> bool {
    matches!(selector.root(), Some(Node::And(nodes) | Node::Or(nodes)) if nodes.is_empty())
}

/// The ranges of an index, ascending. Every column up to the first that has more than single values narrows them.
pub(crate) fn index_ranges(index: &IndexDefinition, selector: &Selector) -> Narrowed<KeyRange> {
    let mut beginnings: Vec<Vec<Value>> = vec![Vec::new()];
    let mut narrowing: Vec<&str> = Vec::new();
    let mut ranges = None;
    for column in index.fields() {
        let name = column.path.text();
        let mut intervals = column_intervals(selector, name);
        if intervals.is_everything() {
            break;
        }
        narrowing.push(name);
        if beginnings.len().saturating_mul(intervals.len()) > MAX_RANGES {
            intervals = intervals.hull();
        }
        match intervals.values() {
            Some(values) => beginnings = combine(&beginnings, &values),
            None => {
                ranges =
                    Some(beginnings.iter().flat_map(|beginning| intervals.key_ranges(beginning)).collect());
                break;
            }
        }
    }
    let ranges = ranges.unwrap_or_else(|| beginnings.into_iter().map(KeyRange::beginning_with).collect());
    let residual = selector.retain(|node| match node {
        Node::Field(field) => !is_answered(index, &narrowing, field),
        _ => true,
    });
    Narrowed { ranges, residual }
}

fn combine(beginnings: &[Vec<Value>], values: &[Value]) -> Vec<Vec<Value>> {
    let longer = |beginning: &Vec<Value>, value: &Value| {
        let mut longer = beginning.clone();
        longer.push(value.clone());
        longer
    };
    beginnings.iter().flat_map(|beginning| values.iter().map(move |value| longer(beginning, value))).collect()
}

/// The condition holds for every document in the ranges.
fn is_answered(index: &IndexDefinition, narrowing: &[&str], field: &FieldCondition) -> bool {
    let name = field.path.text();
    match &field.condition {
        Condition::Exists(true) => index.has_column(name),
        Condition::Compare(comparison, operand) => {
            *comparison != Comparison::NotEqual
                && name != "_id"
                && narrowing.contains(&name)
                && operand.key.len() <= MAX_KEY_BYTES
        }
        _ => false,
    }
}

/// What the values of a column can be.
fn column_intervals(selector: &Selector, name: &str) -> Intervals {
    let mut intervals = Intervals::everything();
    for field in selector.conditions().filter(|field| field.path.text() == name) {
        if let Some(narrower) = condition_intervals(&field.condition, name == "_id") {
            intervals = intervals.intersect(&narrower);
        }
    }
    intervals
}

/// `_id` is compared byte by byte, and lies in an index by the collation: only what must be equal narrows it there.
fn condition_intervals(condition: &Condition, is_id: bool) -> Option<Intervals> {
    match condition {
        Condition::Compare(Comparison::Equal, operand) if is_id => {
            if operand.value.is_string() {
                operand_interval(Comparison::Equal, &operand.value)
            } else {
                None
            }
        }
        Condition::In { set, negated: false } => set_intervals(&set.values, is_id),
        _ if is_id => None,
        Condition::Compare(comparison, operand) => operand_interval(*comparison, &operand.value),
        Condition::BeginsWith(prefix) => Some(prefix_intervals(prefix)),
        _ => None,
    }
}

fn operand_interval(comparison: Comparison, value: &Value) -> Option<Intervals> {
    let key = sort_key(value);
    if key.len() > MAX_KEY_BYTES {
        return None;
    }
    let before = || Some(OrderPlace::before(value.clone(), key.clone()));
    let after = || Some(OrderPlace::after(value.clone(), key.clone()));
    Some(match comparison {
        Comparison::Less => Intervals::between(None, before()),
        Comparison::LessOrEqual => Intervals::between(None, after()),
        Comparison::Equal => Intervals::between(before(), after()),
        Comparison::GreaterOrEqual => Intervals::between(before(), None),
        Comparison::Greater => Intervals::between(after(), None),
        Comparison::NotEqual => return None,
    })
}

/// Each value; and all arrays, of which `$in` asks for one element.
fn set_intervals(values: &[Value], is_id: bool) -> Option<Intervals> {
    let mut singles = Vec::with_capacity(values.len());
    for value in values.iter().filter(|value| !value.is_array()) {
        let key = sort_key(value);
        if key.len() > MAX_KEY_BYTES {
            return None;
        }
        singles.push((value.clone(), key));
    }
    let singles = Intervals::of_values(singles);
    // Only texts are ids.
    if is_id { Some(singles) } else { Some(singles.union(Intervals::between(arrays_from(), arrays_to()))) }
}

fn prefix_intervals(prefix: &str) -> Intervals {
    let head = prefix::ordered_head(prefix);
    let from = json!(head);
    let from_key = sort_key(&from);
    let to = if head.is_empty() {
        arrays_from()
    } else {
        let to = json!(format!("{head}{}", prefix::LAST));
        let to_key = sort_key(&to);
        Some(OrderPlace::after(to, to_key))
    };
    Intervals::between(Some(OrderPlace::before(from, from_key)), to)
}

/// The lowest array is the empty one, which is above every text.
fn arrays_from() -> Option<OrderPlace> {
    let lowest = json!([]);
    let key = sort_key(&lowest);
    Some(OrderPlace::before(lowest, key))
}

/// Objects are above every array.
fn arrays_to() -> Option<OrderPlace> {
    let lowest = json!({});
    let key = sort_key(&lowest);
    Some(OrderPlace::before(lowest, key))
}
