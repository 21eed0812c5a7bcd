//! Names of fields: dotted, with a backslash before a dot that belongs to a name.

use serde_json::Value;

use crate::error::MangoError;

/// The name of a field, which may lie within others: `a`, `a.b`, `a\.b`, `a.0`.
///
/// A dot leads into the object or array on its left, unless a backslash stands before it; all backslashes are then
/// left out of the names, as CouchDB does. A name that is an integer is a place in an array.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FieldPath {
    text: String,
    names: Vec<String>,
}

impl FieldPath {
    /// Takes a dotted name apart.
    ///
    /// # Errors
    /// [`MangoError::InvalidFieldName`] if a part is empty.
    pub fn parse(text: &str) -> Result<Self, MangoError> {
        let mut names = vec![String::new()];
        let mut before = None;
        // A part of backslashes alone is not empty, although its name comes to be.
        let mut part_is_empty = true;
        for character in text.chars() {
            if character == '.' && before != Some('\\') {
                if part_is_empty {
                    return Err(MangoError::InvalidFieldName(text.to_owned()));
                }
                names.push(String::new());
                part_is_empty = true;
            } else {
                part_is_empty = false;
                if character != '\\'
                    && let Some(name) = names.last_mut()
                {
                    name.push(character);
                }
            }
            before = Some(character);
        }
        if part_is_empty {
            return Err(MangoError::InvalidFieldName(text.to_owned()));
        }
        Ok(Self { text: text.to_owned(), names })
    }

    /// Where no field is named: the element of an array, or the document itself.
    pub(crate) fn nameless() -> Self {
        Self { text: String::new(), names: Vec::new() }
    }

    /// The name as it was written, by which CouchDB compares it with the columns of an index.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names on the way, outermost first.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// What lies at a path. CouchDB's `$exists: false` tells apart why nothing does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PathFinding<T> {
    /// This.
    Value(T),
    /// The innermost object lacks the field.
    Missing,
    /// The way leads through something that has no fields, or past the end of an array.
    Unreachable,
}

/// Follows names into a value.
pub(crate) fn walk<'a>(value: &'a Value, names: &[String]) -> PathFinding<&'a Value> {
    let mut value = value;
    for name in names {
        value = match value {
            Value::Object(members) => match members.get(name) {
                Some(inner) => inner,
                None => return PathFinding::Missing,
            },
            Value::Array(elements) => match place(name).and_then(|place| elements.get(place)) {
                Some(inner) => inner,
                None => return PathFinding::Unreachable,
            },
            _ => return PathFinding::Unreachable,
        };
    }
    PathFinding::Value(value)
}

/// The place in an array that a name stands for.
pub(crate) fn place(name: &str) -> Option<usize> {
    name.parse::<i64>().ok().and_then(|place| usize::try_from(place).ok())
}
