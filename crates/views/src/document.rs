//! A stored document as formulas and selectors see it.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};

use jiff::Timestamp;
use scrinium_database::access::readable::ReadableLeaf;
use scrinium_database::read::Renderer;
use scrinium_database::read::others::OtherLeaves;
use scrinium_database::{Database, DatabaseError, ReadOptions, Result};
use scrinium_document::json::stored_value;
use scrinium_document::{FieldValue, Fields as StoredFields};
use scrinium_formula::{AttachmentInfo, DateTime, Fields, Text, Value as FormulaValue};
use serde_json::Value;

/// Values of this many fields are kept for formulas that ask again.
const FIELDS_KEPT: usize = 16;

/// A stored document, of which only those fields are parsed that are asked for.
pub(crate) struct Document<'a> {
    database: &'a Database,
    leaf: ReadableLeaf<'a>,
    fields: StoredFields<'a>,
    /// What formulas have asked for, since those of several views ask for the same.
    asked: RefCell<Vec<(Text, Option<FormulaValue>)>>,
    failure: OnceCell<DatabaseError>,
}

impl<'a> Document<'a> {
    pub(crate) fn new(database: &'a Database, leaf: ReadableLeaf<'a>) -> Result<Self> {
        Ok(Self {
            database,
            leaf,
            fields: leaf.leaf().fields(leaf.id())?,
            asked: RefCell::default(),
            failure: OnceCell::new(),
        })
    }

    /// The first failure to read a field, which was then as if it were not there.
    ///
    /// # Errors
    /// That failure.
    pub(crate) fn check(&self) -> Result<()> {
        self.failure.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// What was read, or nothing, and the failure is kept for [`check`](Self::check).
    pub(crate) fn kept<T>(&self, read: Result<T>) -> Option<T> {
        read.inspect_err(|error| drop(self.failure.set(error.clone()))).ok()
    }

    /// A field's JSON.
    fn json_of(&self, value: FieldValue<'a>) -> Option<Cow<'a, [u8]>> {
        match value {
            FieldValue::Json(json) => Some(Cow::Borrowed(json.as_bytes())),
            FieldValue::Outside(value) => {
                let read = self.database.context.contents.read_all(&value.digest);
                self.kept(read.map_err(DatabaseError::from)).map(Cow::Owned)
            }
        }
    }

    fn formula_value(&self, name: &str) -> Option<FormulaValue> {
        let json = self.json_of(self.fields.value_ignore_case(name)?)?;
        FormulaValue::from_json(&stored_value(std::str::from_utf8(&json).ok()?)?)
    }

    fn parsed(&self, json: &[u8]) -> Option<Value> {
        let text = std::str::from_utf8(json).ok();
        let value = text.and_then(stored_value);
        self.kept(value.ok_or_else(|| DatabaseError::damaged("field", self.leaf.id())))
    }

    /// The leaves other than this one, as an index may tell them.
    fn other_leaves(&self) -> Option<OtherLeaves> {
        self.kept(self.database.other_leaves(self.leaf.id(), &self.leaf))
    }

    /// Stubs of the attachments, as a reader of the document finds them.
    fn attachment_stubs(&self) -> Option<Value> {
        if !self.leaf.has_attachments() {
            return None;
        }
        let options = ReadOptions::default();
        let json = self.kept(Renderer::new(self.database, &options).attachments(&self.leaf))?;
        self.parsed(json.as_bytes())
    }
}

/// As selectors see it: field names are exact.
impl scrinium_mango::Document for Document<'_> {
    fn field(&self, name: &str) -> Option<Cow<'_, Value>> {
        let value = match name {
            "_id" => Some(self.leaf.id().into()),
            "_rev" => Some(self.leaf.revision.into()),
            "_deleted" => self.leaf.deleted.then_some(Value::Bool(true)),
            "_attachments" => self.attachment_stubs(),
            "_conflicts" => self.other_leaves().and_then(|others| revisions(others.conflicts)),
            "_deleted_conflicts" => {
                self.other_leaves().and_then(|others| revisions(others.deleted_conflicts))
            }
            _ => self.json_of(self.fields.value(name)?).and_then(|json| self.parsed(&json)),
        };
        value.map(Cow::Owned)
    }

    fn whole(&self) -> Cow<'_, Value> {
        let mut members = serde_json::Map::new();
        let names = self.fields.iter().map(|(name, _)| name);
        for name in ["_id", "_rev", "_deleted"].into_iter().chain(names).chain(["_attachments"]) {
            let value = scrinium_mango::Document::field(self, name);
            members.extend(value.map(|value| (name.to_owned(), value.into_owned())));
        }
        Cow::Owned(Value::Object(members))
    }
}

/// As formulas see it: the case of field names does not count.
impl Fields for Document<'_> {
    fn field(&self, name: &str) -> Option<FormulaValue> {
        let known = |asked: &&(Text, _)| asked.0.as_str() == name;
        if let Some((_, value)) = self.asked.borrow().iter().find(known) {
            return value.clone();
        }
        let value = self.formula_value(name);
        let mut asked = self.asked.borrow_mut();
        if asked.len() < FIELDS_KEPT {
            asked.push((Text::new(name), value.clone()));
        }
        value
    }

    fn id(&self) -> &str {
        self.leaf.id()
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
        let attachments = self.leaf.attachments(self.leaf.id()).unwrap_or_default();
        attachments
            .into_iter()
            .map(|attachment| AttachmentInfo { length: attachment.shown_length(), name: attachment.name })
            .collect()
    }

    fn size_bytes(&self) -> u64 {
        self.leaf.external_bytes(self.leaf.id()).unwrap_or(0)
    }

    fn parent(&self) -> Option<String> {
        let json = self.json_of(self.fields.value_ignore_case("$REF")?)?;
        scrinium_document::json::string(std::str::from_utf8(&json).ok()?).map(Cow::into_owned)
    }
}

/// A list of revisions that has some.
fn revisions(revisions: Vec<String>) -> Option<Value> {
    (!revisions.is_empty()).then(|| revisions.into())
}

fn moment(ms: u64) -> Option<DateTime> {
    Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok().map(DateTime::from)
}
