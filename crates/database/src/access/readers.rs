//! The names in a document's `Readers` and `Authors`.
//!
//! A document whose `Readers` names somebody (a text, or a list of texts) is read by those named there and in
//! `Authors`: people, groups, and roles of the access control list in square brackets. `*` is everybody. Without a
//! name in `Readers` the document is everybody's.

use std::borrow::Cow;
use std::collections::BTreeSet;

use scrinium_document::FieldValue;
use scrinium_document::json::stored_value_of_bytes;
use serde_json::Value;

use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::leaf::Leaf;

/// The field that says who may read a document.
pub(crate) const READERS: &str = "Readers";

/// The field that says who may edit a document.
pub(crate) const AUTHORS: &str = "Authors";

/// So many names of a document are known; those behind them neither read nor edit it.
pub(crate) const NAMES_MAX: usize = 1000;

/// What stands for a name in indexes.
pub(crate) type NameDigest = [u8; 16];

/// Stands for everybody to whom all documents are open.
pub(crate) const EVERYTHING: NameDigest = [0; 16];

/// What stands for a name in indexes.
pub(crate) fn digest_of(name: &str) -> NameDigest {
    let mut digest = NameDigest::default();
    blake3::Hasher::new().update(name.as_bytes()).finalize_xof().fill(&mut digest);
    digest
}

/// Who may read a document; `None`: everybody.
pub(crate) fn digests_of(
    database: &Database,
    id: &str,
    leaf: &Leaf<'_>,
) -> Result<Option<BTreeSet<NameDigest>>> {
    let readers = names_in(database, id, leaf, READERS)?;
    if readers.is_empty() || readers.iter().any(|name| name == "*") {
        return Ok(None);
    }
    let authors = names_in(database, id, leaf, AUTHORS)?;
    Ok(Some(readers.iter().chain(&authors).map(|name| digest_of(name)).collect()))
}

/// The names in a field of a document.
pub(crate) fn names_in(database: &Database, id: &str, leaf: &Leaf<'_>, field: &str) -> Result<Vec<String>> {
    let json = match leaf.fields(id)?.value(field) {
        None => return Ok(Vec::new()),
        Some(FieldValue::Json(json)) => Cow::Borrowed(json.as_bytes()),
        Some(FieldValue::Outside(value)) => Cow::Owned(database.common.contents.read_all(&value.digest)?),
    };
    let value = stored_value_of_bytes(&json).ok_or_else(|| DatabaseError::damaged("field", id))?;
    let names = match value {
        Value::String(name) => vec![name],
        Value::Array(names) => names.into_iter().filter_map(text).take(NAMES_MAX).collect(),
        _ => Vec::new(),
    };
    Ok(names.into_iter().filter(|name| !name.is_empty()).collect())
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}
