//! The entries that a document has in a view.
//!
//! An entry's key is the sort keys of the sorted columns, one after the other (those of descending
//! columns inverted), a zero, the document's id, and two bytes that tell apart the entries of one
//! document under one key. Every sort key ends itself and begins with another byte than zero, so that a
//! shorter key sorts before all that it begins.
//!
//! An entry's value: the number of sorted columns, where in the key the sort key of each ends (so that
//! a category is a prefix that need not be parsed), the key as JSON, and the columns as JSON.

use jiff::Timestamp;
use scrinium_document::{FieldValue, Fields as StoredFields, collation};
use scrinium_formula::{AttachmentInfo, DateTime, Environment, Fields, Text, Value as FormulaValue};
use serde_json::Value;

use super::definition::{Definition, Sort};
use crate::database::Database;
use crate::error::Result;
use crate::leaf::Leaf;
use crate::wire::{Input, put_bytes, put_number};

/// A document is under at most so many combinations of categories.
const MAX_ENTRIES: usize = 1000;

/// The sort key of one element; longer ones are cut, so that texts that agree so far count as equal.
const MAX_COMPONENT_BYTES: usize = 1024;

/// What separates the sort keys from the id; no sort key begins with it.
pub(crate) const END_OF_KEY: u8 = 0;

/// An entry before it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) totals: Vec<f64>,
}

/// A stored document as formulas see it.
struct Document<'a> {
    database: &'a Database,
    id: &'a str,
    leaf: &'a Leaf<'a>,
    fields: StoredFields<'a>,
}

impl Fields for Document<'_> {
    fn field(&self, name: &str) -> Option<FormulaValue> {
        let outside;
        let json = match self.fields.value_ignore_case(name)? {
            FieldValue::Json(json) => json.as_bytes(),
            FieldValue::Outside(value) => {
                // A content that cannot be read is reported by whoever reads the document; here it is
                // as if the field were not there.
                outside = self.database.common.contents.read_all(&value.digest).ok()?;
                outside.as_slice()
            }
        };
        FormulaValue::from_json(&serde_json::from_slice(json).ok()?)
    }

    fn id(&self) -> &str {
        self.id
    }

    fn field_names(&self) -> Option<Vec<Text>> {
        Some(self.fields.iter().map(|(name, _)| Text::new(name)).collect())
    }

    fn created(&self) -> Option<DateTime> {
        moment(self.leaf.created_ms)
    }

    fn modified(&self) -> Option<DateTime> {
        moment(self.leaf.modified_ms)
    }

    fn attachments(&self) -> Vec<AttachmentInfo> {
        let attachments = self.leaf.attachments(self.id).unwrap_or_default();
        attachments
            .into_iter()
            .map(|attachment| AttachmentInfo { name: attachment.name, length: attachment.length })
            .collect()
    }

    fn size_bytes(&self) -> u64 {
        self.leaf.external_bytes(self.id).unwrap_or(0)
    }

    fn parent(&self) -> Option<String> {
        match serde_json::from_str(self.fields.get_ignore_case("$REF")?).ok()? {
            Value::String(id) => Some(id),
            _ => None,
        }
    }
}

fn moment(ms: u64) -> Option<DateTime> {
    Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok().map(DateTime::from)
}

/// The entries of a document in a view; none if it is not selected.
pub(crate) fn entries(
    definition: &Definition,
    database: &Database,
    id: &str,
    leaf: &Leaf<'_>,
    environment: &Environment,
) -> Result<Vec<Entry>> {
    let document = Document { database, id, leaf, fields: leaf.fields(id)? };
    // A formula that fails on a document does not select it: one odd document must not stop a view.
    if !definition.selection.selects(&document, environment).unwrap_or(false) {
        return Ok(Vec::new());
    }
    let values: Vec<Value> = definition
        .columns
        .iter()
        .map(|column| {
            let value = column.formula.evaluate(&document, environment);
            value.map_or(Value::Null, |value| value.to_json())
        })
        .collect();
    let mut rows = vec![values];
    for (column, definition) in definition.columns.iter().enumerate() {
        if definition.category {
            rows = rows.into_iter().flat_map(|row| explode(row, column)).take(MAX_ENTRIES).collect();
        }
    }
    let rows = rows.iter().enumerate();
    Ok(rows
        .map(|(ordinal, row)| entry(definition, id, u16::try_from(ordinal).unwrap_or(u16::MAX), row))
        .collect())
}

/// A row for each element of a list in a category column.
fn explode(mut row: Vec<Value>, column: usize) -> Vec<Vec<Value>> {
    let elements = match row.get_mut(column).map(Value::take) {
        Some(Value::Array(elements)) if !elements.is_empty() => elements,
        Some(other) => vec![other],
        None => return vec![row],
    };
    elements
        .into_iter()
        .map(|element| {
            let mut row = row.clone();
            if let Some(place) = row.get_mut(column) {
                *place = element;
            }
            row
        })
        .collect()
}

fn entry(definition: &Definition, id: &str, ordinal: u16, row: &[Value]) -> Entry {
    let mut key = Vec::with_capacity(id.len() + 64);
    let mut ends = Vec::new();
    let mut key_values = Vec::new();
    let mut totals = Vec::new();
    let mut columns = serde_json::Map::new();
    for (column, value) in definition.columns.iter().zip(row) {
        if let Some(sort) = column.sort {
            write_component(&mut key, value, sort);
            ends.push(key.len());
            key_values.push(value.clone());
        }
        if column.total {
            totals.push(value.as_f64().unwrap_or(0.0));
        }
        columns.insert(column.title.clone(), value.clone());
    }
    key.push(END_OF_KEY);
    key.extend_from_slice(id.as_bytes());
    key.extend_from_slice(&ordinal.to_be_bytes());
    let mut value = Vec::with_capacity(128);
    put_number(&mut value, ends.len() as u64);
    for end in ends {
        put_number(&mut value, end as u64);
    }
    put_bytes(&mut value, Value::Array(key_values).to_string().as_bytes());
    value.extend_from_slice(Value::Object(columns).to_string().as_bytes());
    Entry { key, value, totals }
}

/// Appends the sort key of one element of a key.
pub(crate) fn write_component(key: &mut Vec<u8>, value: &Value, sort: Sort) {
    let start = key.len();
    collation::write_sort_key(key, value);
    if key.len() - start > MAX_COMPONENT_BYTES {
        key.truncate(start + MAX_COMPONENT_BYTES - 1);
        key.push(0);
    }
    if sort == Sort::Descending
        && let Some(component) = key.get_mut(start..)
    {
        collation::descending(component);
    }
}

/// A stored entry, taken apart.
pub(crate) struct StoredEntry<'a> {
    key: &'a [u8],
    ends: Vec<usize>,
    pub(crate) key_json: &'a str,
    pub(crate) value_json: &'a str,
}

impl<'a> StoredEntry<'a> {
    /// `None`: damaged.
    pub(crate) fn decode(key: &'a [u8], value: &'a [u8]) -> Option<Self> {
        let mut input = Input::new(value);
        let count = input.number()?;
        let mut ends = Vec::new();
        for _ in 0..count {
            ends.push(usize::try_from(input.number()?).ok()?);
        }
        let key_json = input.text()?;
        Some(Self { key, ends, key_json, value_json: std::str::from_utf8(input.rest()).ok()? })
    }

    pub(crate) fn id(&self) -> Option<&'a str> {
        let start = self.ends.last().copied().unwrap_or(0) + 1;
        let end = self.key.len().checked_sub(2)?;
        std::str::from_utf8(self.key.get(start..end)?).ok()
    }

    /// What all entries begin with that agree in the first `level` elements of the key.
    pub(crate) fn category(&self, level: usize) -> Option<&'a [u8]> {
        match level.min(self.ends.len()).checked_sub(1) {
            None => Some(&[]),
            Some(last) => self.key.get(..*self.ends.get(last)?),
        }
    }
}
