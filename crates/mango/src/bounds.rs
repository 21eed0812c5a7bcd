//! Parts of an index: between which keys, and between which ids.

use std::ops::Bound;

use scrinium_document::collation::write_sort_key;
use serde_json::Value;

/// Higher than whatever may follow in the bytes of a key.
const HIGHEST: u8 = 0xFF;

/// On which side of the keys that begin with the values of a [`KeyBound`].
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Edge {
    /// Before the first of them.
    Before,
    /// Behind the last of them.
    After,
}

/// A place between two keys of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyBound {
    /// The first values of keys, at most as many as the index has fields. Without any, all keys begin with them.
    pub values: Vec<Value>,
    /// Before or behind the keys that begin so.
    pub edge: Edge,
}

/// The keys between two places.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyRange {
    /// Where the keys begin.
    pub start: KeyBound,
    /// Where they end.
    pub end: KeyBound,
}

/// The ids between two texts, compared byte by byte.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IdRange {
    /// The first.
    pub start: Bound<String>,
    /// The last.
    pub end: Bound<String>,
}

impl KeyBound {
    /// Bytes that divide keys in the same way, where a key is the sort keys of its values one behind the other and
    /// what follows them does not begin with the byte 255.
    ///
    /// Keys whose sort keys are cut, at 1,024 bytes or more, are divided in the same way too.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.values.iter().for_each(|value| write_sort_key(&mut bytes, value));
        if self.edge == Edge::After {
            bytes.push(HIGHEST);
        }
        bytes
    }
}

impl KeyRange {
    /// The keys that begin with these values.
    pub(crate) fn beginning_with(values: Vec<Value>) -> Self {
        let bound = |values, edge| KeyBound { values, edge };
        Self { start: bound(values.clone(), Edge::Before), end: bound(values, Edge::After) }
    }

    /// Whether it is a whole index.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        let is = |bound: &KeyBound, edge| bound.values.is_empty() && bound.edge == edge;
        is(&self.start, Edge::Before) && is(&self.end, Edge::After)
    }
}

impl IdRange {
    /// Whether an id lies in it.
    #[must_use]
    pub fn contains(&self, id: &str) -> bool {
        let after = match &self.start {
            Bound::Included(start) => start.as_str() <= id,
            Bound::Excluded(start) => start.as_str() < id,
            Bound::Unbounded => true,
        };
        after
            && match &self.end {
                Bound::Included(end) => id <= end.as_str(),
                Bound::Excluded(end) => id < end.as_str(),
                Bound::Unbounded => true,
            }
    }
}
