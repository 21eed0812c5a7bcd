//! The names in a document's `Readers` and `Authors`.
//!
//! A document whose `Readers` names somebody (a text, or a list of texts) is read by those named there and in
//! `Authors`: people, groups, and roles of the access control list in square brackets. `*` is everybody. Without a
//! name in `Readers` the document is everybody's. Upper and lower case are one, and so are spaces around a name, as in
//! formulas.
//!
//! `Readers` that are something else, have more than [`NAMES_MAX`] elements, or cannot be read, name nobody: the document is
//! for administrators of the server until they have mended it. Where names count such fields are refused when they are
//! written.

#![allow(missing_docs, reason = "the names say it")]

use std::borrow::Cow;
use std::collections::BTreeSet;

use scrinium_document::json::stored_value_of_bytes;
use scrinium_document::{FieldValue, Fields};
use serde_json::Value;

use super::digest::{NameDigest, digest_of, folded};
use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::leaf::Leaf;

/// The field that says who may read a document.
pub const READERS: &str = "Readers";

/// The field that says who may edit a document.
pub const AUTHORS: &str = "Authors";

/// A field has at most this many names; one that has more names nobody.
pub const NAMES_MAX: usize = 1000;

/// What a document's `Readers` or `Authors` say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamesField {
    /// These names, as they are compared; none where the field is not there or empty.
    Names(Vec<String>),
    /// Nothing that can be read.
    Unreadable,
}

impl NamesField {
    fn of(value: Value) -> Self {
        let texts = match value {
            Value::Null => Vec::new(),
            Value::String(name) => vec![name],
            Value::Array(names) if names.len() <= NAMES_MAX => {
                let texts = names.into_iter().map(|name| match name {
                    Value::String(name) => Some(name),
                    _ => None,
                });
                match texts.collect::<Option<Vec<String>>>() {
                    Some(texts) => texts,
                    None => return Self::Unreadable,
                }
            }
            _ => return Self::Unreadable,
        };
        Self::Names(texts.iter().map(|name| folded(name)).filter(|name| !name.is_empty()).collect())
    }

    fn parse(json: &[u8]) -> Self {
        stored_value_of_bytes(json).map_or(Self::Unreadable, Self::of)
    }

    /// Whether nobody is named, and nothing stands there that may be meant to.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Names(names) if names.is_empty())
    }

    /// Whether somebody is kept out, as far as this says.
    fn keeps_somebody_out(&self) -> bool {
        match self {
            Self::Unreadable => true,
            Self::Names(names) => !names.is_empty() && !names.iter().any(|name| name == "*"),
        }
    }

    /// The names that can be read.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Names(names) => names,
            Self::Unreadable => &[],
        }
    }
}

/// Whether fields have `Readers` that do not let everybody in, as far as that can be told without what is stored outside.
pub fn names_somebody(fields: &Fields<'_>) -> bool {
    match fields.value(READERS) {
        None => false,
        Some(FieldValue::Outside(_)) => true,
        Some(FieldValue::Json(json)) => NamesField::parse(json.as_bytes()).keeps_somebody_out(),
    }
}

/// Whether a document's `Readers` do not let everybody in, where the database has a list of who may do what.
pub fn restricts(document: &Value) -> bool {
    NamesField::of(document.get(READERS).cloned().unwrap_or_default()).keeps_somebody_out()
}

/// Who may read a document; `None`: everybody.
pub fn digests_of(database: &Database, id: &str, leaf: &Leaf<'_>) -> Result<Option<BTreeSet<NameDigest>>> {
    let readers = match names_in(database, id, leaf, READERS)? {
        NamesField::Unreadable => return Ok(Some(BTreeSet::new())),
        NamesField::Names(names) => names,
    };
    if readers.is_empty() || readers.iter().any(|name| name == "*") {
        return Ok(None);
    }
    let authors = names_in(database, id, leaf, AUTHORS)?;
    Ok(Some(readers.iter().chain(authors.names()).map(|name| digest_of(name)).collect()))
}

/// What a field of names of a document says.
pub fn names_in(database: &Database, id: &str, leaf: &Leaf<'_>, field: &str) -> Result<NamesField> {
    let json = match leaf.fields(id)?.value(field) {
        None => return Ok(NamesField::Names(Vec::new())),
        Some(FieldValue::Json(json)) => Cow::Borrowed(json.as_bytes()),
        Some(FieldValue::Outside(value)) => match database.context.contents.read_all(&value.digest) {
            Ok(json) => Cow::Owned(json),
            // What is lost names nobody, and only this document suffers by it.
            Err(error) if error.is_damage() => return Ok(NamesField::Unreadable),
            Err(error) => return Err(error.into()),
        },
    };
    Ok(NamesField::parse(&json))
}

/// Refuses fields of names that are none, as they come.
///
/// # Errors
/// [`DatabaseError::Invalid`] names the field.
pub fn check_names(fields: &Fields<'_>) -> Result<()> {
    for field in [READERS, AUTHORS] {
        let Some(FieldValue::Json(json)) = fields.value(field) else { continue };
        if NamesField::parse(json.as_bytes()) == NamesField::Unreadable {
            return Err(DatabaseError::bad_request(format!(
                "`{field}` must be a name or a list of at most {NAMES_MAX} names: people, groups, roles in brackets, or \
                 \"*\". Name a group instead of many people."
            )));
        }
    }
    Ok(())
}
