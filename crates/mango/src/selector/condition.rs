//! Conditions on one value.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::{Number, Value, json};

use super::evaluate::matches_value;
use super::node::Node;
use crate::order::{Operand, Order};
use crate::pattern::Pattern;

/// How a value must compare with an operand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

/// What must be true of a value.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Compare(Comparison, Arc<Operand>),
    /// `$in`, or `$nin` if negated.
    In {
        set: Arc<Set>,
        negated: bool,
    },
    /// There is a value; the one condition that holds where the field is missing, if it says `false`.
    Exists(bool),
    Type(String),
    Mod {
        divisor: Number,
        remainder: Number,
    },
    Regex(Arc<Pattern>),
    BeginsWith(String),
    Size(u64),
    All(Arc<Elements>),
    ElementMatch(Box<Node>),
    AllMatch(Box<Node>),
    KeyMapMatch(Box<Node>),
    Not(Box<Condition>),
}

/// The operand of `$in`: found in constant time, however many values it has.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) values: Vec<Value>,
    pub(crate) order: Order,
    keys: HashSet<Vec<u8>>,
}

/// The operand of `$all`.
#[derive(Debug)]
pub(crate) struct Elements {
    values: Vec<Value>,
    /// Each value's JSON, which tells `1` from `1.0` as CouchDB does here, and its number.
    places: BTreeMap<String, usize>,
}

impl Comparison {
    pub(crate) const ALL: [(&'static str, Self); 6] = [
        ("$lt", Self::Less),
        ("$lte", Self::LessOrEqual),
        ("$eq", Self::Equal),
        ("$ne", Self::NotEqual),
        ("$gte", Self::GreaterOrEqual),
        ("$gt", Self::Greater),
    ];

    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::GreaterOrEqual => ordering.is_ge(),
            Self::Greater => ordering.is_gt(),
        }
    }

    pub(crate) fn negated(self) -> Self {
        match self {
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::GreaterOrEqual => Self::Less,
            Self::Greater => Self::LessOrEqual,
        }
    }

    fn operator(self) -> &'static str {
        Self::ALL.iter().find(|(_, comparison)| *comparison == self).map_or("$eq", |(operator, _)| operator)
    }
}

impl Set {
    pub(crate) fn new(values: &[Value], order: Order) -> Self {
        let keys = values.iter().map(|value| order.key(value)).collect();
        Self { values: values.to_vec(), order, keys }
    }

    /// The value is in the set; of an array, any of its elements is, and never the array itself.
    fn holds(&self, value: &Value) -> bool {
        let is_in = |value: &Value| self.keys.contains(&self.order.key(value));
        match value {
            _ if self.keys.is_empty() => false,
            Value::Array(elements) => elements.iter().any(is_in),
            value => is_in(value),
        }
    }
}

impl Elements {
    pub(crate) fn new(values: &[Value]) -> Self {
        let mut places = BTreeMap::new();
        for value in values {
            let next = places.len();
            places.entry(value.to_string()).or_insert(next);
        }
        Self { values: values.to_vec(), places }
    }

    /// Every value is an element of the array; or there is one value, an array, which is this one.
    fn hold(&self, array: &[Value]) -> bool {
        if let [Value::Array(only)] = self.values.as_slice()
            && same_elements(only, array)
        {
            return true;
        }
        let mut seen = vec![false; self.places.len()];
        for element in array {
            if let Some(seen) = self.places.get(&element.to_string()).and_then(|place| seen.get_mut(*place)) {
                *seen = true;
            }
        }
        !seen.is_empty() && seen.iter().all(|seen| *seen)
    }
}

/// Equal as CouchDB compares here: numbers by what they are, objects with their members in one order.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => same_elements(left, right),
        (Value::Object(left), Value::Object(right)) => {
            let mut members = left.iter().zip(right);
            left.len() == right.len()
                && members.all(|((left, left_value), (right, right_value))| {
                    left == right && same(left_value, right_value)
                })
        }
        (Value::Number(_), Value::Number(_)) => Order::Collation.key(left) == Order::Collation.key(right),
        (left, right) => left == right,
    }
}

fn same_elements(left: &[Value], right: &[Value]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
}

impl Condition {
    /// Whether it holds for a value that is there.
    pub(crate) fn holds(&self, value: &Value) -> bool {
        match self {
            Self::Compare(comparison, operand) => comparison.holds(operand.compare(value)),
            Self::In { set, negated } => set.holds(value) != *negated,
            Self::Exists(expected) => *expected,
            Self::Type(name) => name == type_name(value),
            Self::Mod { divisor, remainder } => is_remainder(value, divisor, remainder),
            Self::Regex(pattern) => value.as_str().is_some_and(|text| pattern.is_in(text)),
            Self::BeginsWith(prefix) => value.as_str().is_some_and(|text| text.starts_with(prefix.as_str())),
            Self::Size(size) => value.as_array().is_some_and(|elements| elements.len() as u64 == *size),
            Self::All(wanted) => value.as_array().is_some_and(|elements| wanted.hold(elements)),
            Self::ElementMatch(node) => value
                .as_array()
                .is_some_and(|elements| elements.iter().any(|value| matches_value(node, value))),
            Self::AllMatch(node) => value.as_array().is_some_and(|elements| {
                !elements.is_empty() && elements.iter().all(|value| matches_value(node, value))
            }),
            Self::KeyMapMatch(node) => value.as_object().is_some_and(|members| {
                members.keys().any(|name| matches_value(node, &Value::String(name.clone())))
            }),
            Self::Not(condition) => !condition.holds(value),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Compare(comparison, operand) => json!({ comparison.operator(): operand.value }),
            Self::In { set, negated: false } => json!({ "$in": set.values }),
            Self::In { set, negated: true } => json!({ "$nin": set.values }),
            Self::Exists(expected) => json!({ "$exists": expected }),
            Self::Type(name) => json!({ "$type": name }),
            Self::Mod { divisor, remainder } => json!({ "$mod": [divisor, remainder] }),
            Self::Regex(pattern) => json!({ "$regex": pattern.text() }),
            Self::BeginsWith(prefix) => json!({ "$beginsWith": prefix }),
            Self::Size(size) => json!({ "$size": size }),
            Self::All(wanted) => json!({ "$all": wanted.values }),
            Self::ElementMatch(node) => json!({ "$elemMatch": node.to_json() }),
            Self::AllMatch(node) => json!({ "$allMatch": node.to_json() }),
            Self::KeyMapMatch(node) => json!({ "$keyMapMatch": node.to_json() }),
            Self::Not(condition) => json!({ "$not": condition.to_json() }),
        }
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Integers alone have remainders; they take the sign of what is divided, as in Erlang.
fn is_remainder(value: &Value, divisor: &Number, remainder: &Number) -> bool {
    let Value::Number(number) = value else { return false };
    match (number.as_i128(), divisor.as_i128(), remainder.as_i128()) {
        (Some(number), Some(divisor), Some(remainder)) => number.checked_rem(divisor) == Some(remainder),
        _ => false,
    }
}
