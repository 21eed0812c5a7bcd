//! A document as queries see it.

use std::borrow::Cow;

use serde_json::Value;

use crate::path::{FieldPath, PathFinding, walk};

/// A document seen through its outermost fields, so that a stored one is read field by field.
///
/// `_id` and `_rev` are fields too. An implementation that fails while it reads keeps the failure and answers as
/// if the field were not there; anyone who asked looks for it afterwards.
pub trait Document {
    /// The value of an outermost field; none if the document lacks it. Asked at most once for a field by
    /// [`Selector::matches`](crate::Selector::matches).
    fn field(&self, name: &str) -> Option<Cow<'_, Value>>;

    /// The whole document, for a condition that names no field. Hardly ever asked.
    fn whole(&self) -> Cow<'_, Value>;
}

impl Document for Value {
    fn field(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.get(name).map(Cow::Borrowed)
    }

    fn whole(&self) -> Cow<'_, Value> {
        Cow::Borrowed(self)
    }
}

/// What lies at a path in a document.
pub(crate) fn lookup<'a>(document: &'a dyn Document, path: &FieldPath) -> PathFinding<Cow<'a, Value>> {
    let Some((first, inner)) = path.names().split_first() else {
        return PathFinding::Value(document.whole());
    };
    match document.field(first) {
        None => PathFinding::Missing,
        Some(Cow::Borrowed(value)) => match walk(value, inner) {
            PathFinding::Value(value) => PathFinding::Value(Cow::Borrowed(value)),
            PathFinding::Missing => PathFinding::Missing,
            PathFinding::Unreachable => PathFinding::Unreachable,
        },
        Some(Cow::Owned(value)) if inner.is_empty() => PathFinding::Value(Cow::Owned(value)),
        Some(Cow::Owned(value)) => match walk(&value, inner) {
            PathFinding::Value(value) => PathFinding::Value(Cow::Owned(value.clone())),
            PathFinding::Missing => PathFinding::Missing,
            PathFinding::Unreachable => PathFinding::Unreachable,
        },
    }
}
