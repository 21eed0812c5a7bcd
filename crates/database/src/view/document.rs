//! A stored document as formulas and selectors see it.

use std::borrow::Cow;

use jiff::Timestamp;
use scrinium_document::{FieldValue, Fields as StoredFields};
use scrinium_formula::{AttachmentInfo, DateTime, Fields, Text, Value as FormulaValue};
use serde_json::Value;

use crate::database::Database;
use crate::error::Result;
use crate::leaf::Leaf;

/// A stored document, of which only those fields are parsed that are asked for.
pub(crate) struct Document<'a> {
    database: &'a Database,
    id: &'a str,
    leaf: &'a Leaf<'a>,
    fields: StoredFields<'a>,
}

impl<'a> Document<'a> {
    pub(crate) fn new(database: &'a Database, id: &'a str, leaf: &'a Leaf<'a>) -> Result<Self> {
        Ok(Self { database, id, leaf, fields: leaf.fields(id)? })
    }

    /// A field's JSON. A content that cannot be read is reported by whoever reads the document; here it is as if the
    /// field were not there.
    fn json_of(&self, value: FieldValue<'a>) -> Option<Cow<'a, [u8]>> {
        match value {
            FieldValue::Json(json) => Some(Cow::Borrowed(json.as_bytes())),
            FieldValue::Outside(value) => {
                self.database.common.contents.read_all(&value.digest).ok().map(Cow::Owned)
            }
        }
    }
}

/// As selectors see it: field names are exact.
impl scrinium_mango::Document for Document<'_> {
    fn field(&self, name: &str) -> Option<Cow<'_, Value>> {
        match name {
            "_id" => Some(Cow::Owned(self.id.into())),
            "_rev" => Some(Cow::Owned(self.leaf.revision.into())),
            _ => {
                let json = self.json_of(self.fields.value(name)?)?;
                serde_json::from_slice(&json).ok().map(Cow::Owned)
            }
        }
    }

    fn whole(&self) -> Cow<'_, Value> {
        let mut members = serde_json::Map::new();
        members.insert("_id".to_owned(), self.id.into());
        members.insert("_rev".to_owned(), self.leaf.revision.into());
        for (name, value) in self.fields.iter() {
            let json = self.json_of(value).and_then(|json| serde_json::from_slice(&json).ok());
            members.extend(json.map(|value| (name.to_owned(), value)));
        }
        Cow::Owned(Value::Object(members))
    }
}

/// As formulas see it: the case of field names does not count.
impl Fields for Document<'_> {
    fn field(&self, name: &str) -> Option<FormulaValue> {
        let json = self.json_of(self.fields.value_ignore_case(name)?)?;
        FormulaValue::from_json(&serde_json::from_slice(&json).ok()?)
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
