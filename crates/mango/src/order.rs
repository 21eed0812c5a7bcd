//! The two orders of values: CouchDB's collation, and that of `_id`, which CouchDB compares byte by byte.

use std::cmp::Ordering;

use scrinium_document::collation::sort_key;
use serde_json::Value;

/// By which order a condition compares.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Order {
    /// As views do.
    Collation,
    /// As `_all_docs` does: texts by their bytes, above everything else.
    Identifier,
}

/// Greater than the first byte of every sort key.
const IDENTIFIER: u8 = 0xF0;

impl Order {
    /// The order for the field of this name.
    pub(crate) fn of(field: &str) -> Self {
        if field == "_id" { Self::Identifier } else { Self::Collation }
    }

    /// Bytes that sort as the value does, and are equal only where values count as equal.
    pub(crate) fn key(self, value: &Value) -> Vec<u8> {
        match (self, value) {
            (Self::Identifier, Value::String(text)) => {
                let mut key = Vec::with_capacity(1 + text.len());
                key.push(IDENTIFIER);
                key.extend_from_slice(text.as_bytes());
                key
            }
            _ => sort_key(value),
        }
    }
}

/// What a condition compares with.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) value: Value,
    pub(crate) key: Vec<u8>,
    order: Order,
}

impl Operand {
    pub(crate) fn new(value: &Value, order: Order) -> Self {
        Self { value: value.clone(), key: order.key(value), order }
    }

    /// How a value of a document compares with this. Keys are made only where the types leave it open.
    pub(crate) fn compare(&self, value: &Value) -> Ordering {
        match (self.order, value, &self.value) {
            (_, Value::String(left), Value::String(right)) if left == right => Ordering::Equal,
            (Order::Identifier, Value::String(left), Value::String(right)) => left.cmp(right),
            (Order::Collation, left, right) if rank(left) != rank(right) => rank(left).cmp(&rank(right)),
            _ => self.order.key(value).cmp(&self.key),
        }
    }
}

/// The place of a value's type in the collation.
fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(false) => 1,
        Value::Bool(true) => 2,
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    }
}
