//! A document from the JSON that a client sent.

use std::borrow::Cow;

use crate::attachment::parse_attachments;
use crate::fields::{FieldValue, FieldsBuf};
use crate::{AttachmentEntry, Digest, DocumentError, Revision, json, validate_id};

/// How much of a document is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Deepest nesting of arrays and objects, the document itself counting one.
    pub nesting_max: usize,
    /// Most bytes of all field names and values together, attachments not counted.
    pub document_bytes: u64,
    /// Most bytes of one attachment.
    pub attachment_bytes: u64,
}

impl Default for Limits {
    /// 512 levels, 8 MB (the limit CouchDB 3 has), 1 GB.
    fn default() -> Self {
        Self { nesting_max: json::NESTING_MAX, document_bytes: 8_000_000, attachment_bytes: 1 << 30 }
    }
}

/// A document as a client sent it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedDocument {
    /// `_id`, if sent; a valid one.
    pub id: Option<String>,
    /// `_rev`, or the first of `_revisions`.
    pub revision: Option<Revision>,
    /// `_deleted`.
    pub deleted: bool,
    /// `_revisions`, newest first.
    pub revisions: Option<Vec<Revision>>,
    /// `_attachments`, in the client's order.
    pub attachments: Vec<AttachmentEntry>,
    /// Everything that does not begin with an underscore.
    pub fields: FieldsBuf,
}

impl ParsedDocument {
    /// The path of a replicated edit, newest first: `_revisions`, or `_rev` alone; empty without either.
    #[must_use]
    pub fn path(&self) -> &[Revision] {
        self.revisions
            .as_deref()
            .or_else(|| self.revision.as_ref().map(std::slice::from_ref))
            .unwrap_or_default()
    }
}

/// Members that CouchDB takes and forgets, since it adds them itself to what it sends.
const IGNORED: [&str; 4] = ["_conflicts", "_deleted_conflicts", "_local_seq", "_revs_info"];

/// Members with an underscore that CouchDB keeps among the fields (its replicator's state).
const KEPT: [&str; 5] = [
    "_replication_id",
    "_replication_state",
    "_replication_state_reason",
    "_replication_state_time",
    "_replication_stats",
];

/// Reads a document, taking and refusing what CouchDB 3 takes and refuses.
///
/// White space between tokens is dropped; the spelling of numbers and strings stays the client's.
///
/// # Errors
/// [`DocumentError`] with CouchDB's error word and reason.
pub fn parse_document(json: &[u8], limits: &Limits) -> Result<ParsedDocument, DocumentError> {
    let text = std::str::from_utf8(json).map_err(|_| DocumentError::InvalidJson)?;
    let members = json::members(text, limits.nesting_max)?
        .ok_or_else(|| DocumentError::BadRequest("Document must be a JSON object".into()))?;
    let mut document = ParsedDocument::default();
    let mut fields = Vec::with_capacity(members.len());
    let mut field_bytes = 0;
    for (name, raw) in members {
        if name.starts_with('_') && !KEPT.contains(&name.as_ref()) {
            document.take_special(&name, raw, limits)?;
            continue;
        }
        let value = compact(raw);
        field_bytes += (name.len() + value.len()) as u64;
        fields.push((name, value));
    }
    if field_bytes > limits.document_bytes {
        return Err(DocumentError::DocumentTooLarge(document.id.unwrap_or_default()));
    }
    if let Some(newest) = document.revisions.as_ref().and_then(|path| path.first()) {
        document.revision = Some(newest.clone());
    }
    let fields = fields.iter().map(|(name, value)| (name.as_ref(), FieldValue::Json(value)));
    document.fields = FieldsBuf::build(fields);
    Ok(document)
}

impl ParsedDocument {
    fn take_special(&mut self, name: &str, raw: &str, limits: &Limits) -> Result<(), DocumentError> {
        match (name, raw) {
            ("_id", _) => {
                let id = json::string(raw)
                    .ok_or_else(|| DocumentError::IllegalDocumentId("Document id must be a string".into()))?;
                validate_id(&id)?;
                self.id = Some(id.into_owned());
            }
            ("_rev", _) => {
                let revision = json::string(raw)
                    .ok_or_else(|| DocumentError::BadRequest("Invalid rev format".into()))?;
                self.revision = Some(Revision::parse(&revision)?);
            }
            ("_deleted", "true") => self.deleted = true,
            ("_deleted", "false") => self.deleted = false,
            ("_revisions", _) if raw.starts_with('{') => self.revisions = Some(parse_revisions(raw, limits)?),
            ("_attachments", _) => self.attachments = parse_attachments(raw, limits)?,
            _ if IGNORED.contains(&name) => {}
            _ => {
                let reason = format!("Bad special document member: {name}");
                return Err(DocumentError::DocumentValidation(reason.into()));
            }
        }
        Ok(())
    }
}

/// Reads `{"start": 3, "ids": ["…", "…"]}`.
fn parse_revisions(raw: &str, limits: &Limits) -> Result<Vec<Revision>, DocumentError> {
    let refuse = |reason: &'static str| DocumentError::DocumentValidation(reason.into());
    let members = json::members(raw, limits.nesting_max)?.unwrap_or_default();
    let find = |wanted: &str| members.iter().find(|(name, _)| name == wanted).map(|(_, raw)| *raw);
    let start: u64 = find("start")
        .and_then(|raw| raw.parse().ok())
        .ok_or_else(|| refuse("_revisions.start isn't an integer."))?;
    let ids = match find("ids") {
        Some(raw) => json::elements(raw, limits.nesting_max, usize::MAX)?,
        None => None,
    };
    let ids = ids.ok_or_else(|| refuse("_revisions.ids isn't a array."))?;
    if ids.is_empty() || ids.len() as u64 > start {
        return Err(refuse("_revisions.start doesn't fit _revisions.ids."));
    }
    let digest = |raw: &str| {
        let text = json::string(raw).ok_or_else(|| refuse("RevId isn't a string"))?;
        Digest::parse(&text).map_err(|_| refuse("RevId isn't a valid hexadecimal"))
    };
    ids.into_iter().zip(0..).map(|(raw, back)| Ok(Revision::new(start - back, digest(raw)?))).collect()
}

fn compact(raw: &str) -> Cow<'_, str> {
    // Only arrays and objects have room for white space.
    if !raw.starts_with(['{', '[']) || json::is_compact(raw) {
        return Cow::Borrowed(raw);
    }
    let mut text = String::with_capacity(raw.len());
    json::write_compact(&mut text, raw);
    Cow::Owned(text)
}
