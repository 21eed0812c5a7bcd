//! Which fields of a document are answered.

use serde_json::{Map, Value};

use crate::document::{Document, lookup};
use crate::error::{MangoError, shown};
use crate::path::{FieldPath, PathFinding, place};
use crate::sort::check_count;

/// The fields of a result; a result has no other, not even `_id`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Projection {
    /// The document as it is.
    #[default]
    All,
    /// These, where the document has them.
    Fields(Vec<FieldPath>),
}

impl Projection {
    pub(crate) fn parse(fields: &Value) -> Result<Self, MangoError> {
        let Value::Array(elements) = fields else { return Err(MangoError::InvalidFields(shown(fields))) };
        check_count(elements.len())?;
        let field = |element: &Value| match element {
            Value::String(name) => FieldPath::parse(name),
            other => Err(MangoError::InvalidField(shown(other))),
        };
        let paths = elements.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        Ok(if paths.is_empty() { Self::All } else { Self::Fields(paths) })
    }

    /// What is answered of a document: an object in which the fields lie as they do in the document. A place in an
    /// array becomes the name of a member, as CouchDB has it.
    #[must_use]
    pub fn project(&self, document: &dyn Document) -> Value {
        let Self::Fields(paths) = self else { return document.whole().into_owned() };
        let mut projected = Map::new();
        for path in paths {
            if let PathFinding::Value(value) = lookup(document, path) {
                put(&mut projected, path.names(), value.into_owned());
            }
        }
        Value::Object(projected)
    }

    /// The names as they were written; `[]` stands for all.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::All => Value::Array(Vec::new()),
            Self::Fields(paths) => paths.iter().map(FieldPath::text).collect(),
        }
    }
}

/// Puts a value at a path, making the objects that lead to it. What is no object already has the value, since it was
/// put there as a whole.
pub(crate) fn put(members: &mut Map<String, Value>, names: &[String], value: Value) {
    let Some((last, way)) = names.split_last() else { return };
    let mut members = members;
    for (at, name) in way.iter().enumerate() {
        let inner = members.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
        members = match inner {
            Value::Object(inner) => inner,
            other => return put_in_array(other, names.get(at + 1..).unwrap_or_default(), value),
        };
    }
    members.insert(last.clone(), value);
}

fn put_in_array(array: &mut Value, names: &[String], value: Value) {
    let Some((name, inner)) = names.split_first() else { return };
    let Some(element) = array.as_array_mut().and_then(|elements| elements.get_mut(place(name)?)) else {
        return;
    };
    match element {
        element if inner.is_empty() => *element = value,
        Value::Object(members) => put(members, inner, value),
        other => put_in_array(other, inner, value),
    }
}
