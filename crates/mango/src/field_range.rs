//! The range of each field as CouchDB's planner sees it: by it an index is chosen, and `_explain` tells it.
//!
//! What is really read is narrower ([`crate::ranges`]).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::order::{Operand, Order};
use crate::selector::{Comparison, Condition, Selector};

/// Shown for what is higher than everything.
const HIGHEST: &str = "<MAX>";

/// What CouchDB 3.5 appends to a prefix for what comes last of all that begins so.
const AFTER_PREFIX: char = '\u{ffff}';

/// The values that a field may have; a bound with `true` belongs to them.
#[derive(Clone, Debug)]
pub(crate) enum FieldRange {
    /// None at all.
    Empty,
    /// Those between.
    Between { low: Option<Bound>, high: Option<Bound> },
}

/// An end of a range.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    operand: Arc<Operand>,
    inclusive: bool,
}

/// The fields that an index can narrow down, in alphabetical order, and their ranges; where one is empty, that alone.
pub(crate) fn field_ranges(selector: &Selector) -> Vec<(String, FieldRange)> {
    let mut ends: BTreeMap<&str, Ends> = BTreeMap::new();
    for field in selector.conditions().filter(|field| is_indexable(&field.condition)) {
        ends.entry(field.path.text()).or_default().narrow(&field.condition, Order::of(field.path.text()));
    }
    let ranges = ends.into_iter().map(|(field, ends)| (field.to_owned(), ends.range()));
    let mut ranges: Vec<(String, FieldRange)> = ranges.collect();
    if let Some(empty) = ranges.iter().position(|(_, range)| matches!(range, FieldRange::Empty)) {
        ranges = vec![ranges.swap_remove(empty)];
    }
    ranges
}

/// The fields with a condition that a range of an index can serve, outside `$or`; in alphabetical order.
pub(crate) fn indexable_fields(selector: &Selector) -> Vec<&str> {
    let conditions = selector.conditions().filter(|field| is_indexable(&field.condition));
    let mut fields: Vec<&str> = conditions.map(|field| field.path.text()).collect();
    fields.sort_unstable();
    fields.dedup();
    fields
}

fn is_indexable(condition: &Condition) -> bool {
    match condition {
        Condition::Compare(comparison, _) => *comparison != Comparison::NotEqual,
        Condition::BeginsWith(_) => true,
        _ => false,
    }
}

/// The ends of a range, as far as they are known.
#[derive(Default)]
struct Ends {
    low: Option<Bound>,
    high: Option<Bound>,
}

impl Ends {
    fn narrow(&mut self, condition: &Condition, order: Order) {
        match condition {
            Condition::Compare(comparison, operand) => self.compare(*comparison, operand),
            Condition::BeginsWith(prefix) => {
                let operand = |text: String| Arc::new(Operand::new(&Value::from(text), order));
                self.compare(Comparison::GreaterOrEqual, &operand(prefix.clone()));
                self.compare(Comparison::LessOrEqual, &operand(format!("{prefix}{AFTER_PREFIX}")));
            }
            _ => {}
        }
    }

    fn compare(&mut self, comparison: Comparison, operand: &Arc<Operand>) {
        let bound = |inclusive| Bound { operand: Arc::clone(operand), inclusive };
        match comparison {
            Comparison::Less => self.lower(bound(false)),
            Comparison::LessOrEqual => self.lower(bound(true)),
            Comparison::Greater => self.raise(bound(false)),
            Comparison::GreaterOrEqual => self.raise(bound(true)),
            Comparison::Equal => {
                self.raise(bound(true));
                self.lower(bound(true));
            }
            Comparison::NotEqual => {}
        }
    }

    /// Of equal bounds the one that leaves out more is kept.
    fn raise(&mut self, bound: Bound) {
        let higher =
            |low: &Bound| (&bound.operand.key, !bound.inclusive) > (&low.operand.key, !low.inclusive);
        if self.low.as_ref().is_none_or(higher) {
            self.low = Some(bound);
        }
    }

    fn lower(&mut self, bound: Bound) {
        let lower =
            |high: &Bound| (&bound.operand.key, bound.inclusive) < (&high.operand.key, high.inclusive);
        if self.high.as_ref().is_none_or(lower) {
            self.high = Some(bound);
        }
    }

    fn range(self) -> FieldRange {
        match (self.low, self.high) {
            (Some(low), Some(high)) if is_empty(&low, &high) => FieldRange::Empty,
            (low, high) => FieldRange::Between { low, high },
        }
    }
}

fn is_empty(low: &Bound, high: &Bound) -> bool {
    match low.operand.key.cmp(&high.operand.key) {
        Ordering::Less => false,
        Ordering::Equal => !(low.inclusive && high.inclusive),
        Ordering::Greater => true,
    }
}

/// `start_key` and `end_key` of an index over fields with these ranges, ascending.
pub(crate) fn index_keys(prefix: &[&FieldRange]) -> (Value, Value) {
    if matches!(prefix, [FieldRange::Empty]) {
        return (Value::Null, Value::Null);
    }
    let bounds = |of: fn(&FieldRange) -> Option<Value>| prefix.iter().map_while(move |range| of(range));
    let start: Vec<Value> = bounds(FieldRange::low_value).collect();
    let end: Vec<Value> = bounds(FieldRange::high_value).chain([json!(HIGHEST)]).collect();
    (json!(start), json!(end))
}

/// `start_key` and `end_key` of reading all documents; `range` is that of `_id`, if there is one.
pub(crate) fn all_documents_keys(range: Option<&FieldRange>) -> (Value, Value) {
    match range {
        Some(FieldRange::Empty) => (Value::Null, Value::Null),
        Some(range) => (
            range.low_value().unwrap_or_else(|| json!("")),
            range.high_value().unwrap_or_else(|| json!(HIGHEST)),
        ),
        None => (Value::Null, json!(HIGHEST)),
    }
}

impl FieldRange {
    fn low_value(&self) -> Option<Value> {
        match self {
            Self::Between { low: Some(low), .. } => Some(low.operand.value.clone()),
            _ => None,
        }
    }

    fn high_value(&self) -> Option<Value> {
        match self {
            Self::Between { high: Some(high), .. } => Some(high.operand.value.clone()),
            _ => None,
        }
    }
}
