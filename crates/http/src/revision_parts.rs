//! Revisions of documents as parts of one multipart body, each with its attachments: what replicators read. One revision
//! is read at a time, and of its attachments a piece at a time.

use std::collections::{HashSet, VecDeque};

use scrinium_database::{DatabaseError, OpenRevision, OpenRevisions, ReadOptions};
use scrinium_document::json::JsonWriter;
use serde_json::Value;

use crate::access::Opened;
use crate::error::{Result, couchdb_word};
use crate::related::{Bundle, Segments};
use crate::response::push_error_members;
use crate::state::HttpState;
use crate::stream::{Piece, Source};

/// Revisions of one document.
pub(crate) struct WantedRevisions {
    pub(crate) id: String,
    pub(crate) which: OpenRevisions,
    pub(crate) attachments_since: Option<Vec<String>>,
}

/// What cannot be read of what was asked for.
pub(crate) struct Refusal {
    pub(crate) id: Value,
    pub(crate) revision: Value,
    pub(crate) error: &'static str,
    pub(crate) reason: String,
}

/// How parts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartStyle {
    /// As `open_revs` has them.
    OfDocument,
    /// As `_bulk_get` has them: each says what it is.
    OfMany,
}

/// The parts of an answer, one after the other.
pub(crate) struct RevisionParts {
    pub(crate) database: Opened,
    pub(crate) state: HttpState,
    pub(crate) options: ReadOptions,
    pub(crate) boundary: String,
    pub(crate) style: PartStyle,
    pub(crate) documents: VecDeque<std::result::Result<WantedRevisions, Box<Refusal>>>,
    present: Option<Present>,
    segments: Segments,
    is_over: bool,
}

/// The document whose revisions are being read.
struct Present {
    id: String,
    names: VecDeque<String>,
    options: ReadOptions,
    /// Those that were given: `latest` may lead to one from several.
    given: HashSet<String>,
}

impl RevisionParts {
    pub(crate) fn new(
        ((database, state), options, boundary): ((Opened, HttpState), ReadOptions, String),
        style: PartStyle,
        documents: VecDeque<std::result::Result<WantedRevisions, Box<Refusal>>>,
    ) -> Self {
        let (present, segments) = (None, Segments::default());
        Self { database, state, options, boundary, style, documents, present, segments, is_over: false }
    }

    /// Reads what comes next. Blocks.
    fn advance(&mut self) -> Result<()> {
        if let Some(mut present) = self.present.take() {
            if let Some(name) = present.names.pop_front() {
                self.push_revision(&mut present, name)?;
                self.present = Some(present);
            }
            return Ok(());
        }
        match self.documents.pop_front() {
            None => {
                self.segments.text(&format!("\r\n--{}--", self.boundary));
                self.is_over = true;
            }
            Some(Err(refusal)) => self.push_refusal(&refusal),
            Some(Ok(wanted)) => self.begin(wanted)?,
        }
        Ok(())
    }

    fn begin(&mut self, wanted: WantedRevisions) -> Result<()> {
        let since = wanted.attachments_since.or_else(|| self.options.attachments_since.clone());
        let options = ReadOptions { attachments_since: since, ..self.options.clone() };
        match self.database.open_revision_names(&wanted.id, &wanted.which) {
            Ok(names) => {
                let (id, names, given) = (wanted.id, names.into(), HashSet::new());
                self.present = Some(Present { id, names, options, given });
                Ok(())
            }
            Err(error) if self.style == PartStyle::OfDocument => Err(error.into()),
            Err(error) => {
                let (id, revision) = (Value::from(wanted.id), Value::from("undefined"));
                self.push_refusal(&Refusal {
                    id,
                    revision,
                    error: couchdb_word(&error),
                    reason: error.reason(),
                });
                Ok(())
            }
        }
    }

    fn push_revision(&mut self, present: &mut Present, name: String) -> Result<()> {
        // Contents go next to the JSON.
        let options = ReadOptions {
            attachments: false,
            attachments_since: None,
            revisions: present.options.revisions || present.options.attachments_since.is_some(),
            ..present.options.clone()
        };
        let which = OpenRevisions::These(vec![name]);
        for revision in self.database.open_revisions(&present.id, &which, &options)? {
            match revision {
                OpenRevision::Found(document) => {
                    if present.given.insert(document.revision.clone()) {
                        let bundle = Bundle::of(&self.database, document, &present.options)?;
                        self.push_bundle(&present.id, bundle);
                    }
                }
                OpenRevision::Missing(name) => {
                    let missing = DatabaseError::NotFound { reason: "missing".to_owned() };
                    let (id, revision) = (Value::from(present.id.as_str()), Value::from(name));
                    let (error, reason) = (couchdb_word(&missing), missing.reason());
                    self.push_refusal(&Refusal { id, revision, error, reason });
                }
            }
        }
        Ok(())
    }

    fn push_bundle(&mut self, id: &str, bundle: Bundle) {
        self.segments.text(&format!("\r\n--{}\r\n", self.boundary));
        if bundle.is_alone() {
            self.segments.text(&format!("Content-Type: application/json\r\n\r\n{}", bundle.json()));
            return;
        }
        // An id that would begin another line is left to the JSON.
        if self.style == PartStyle::OfMany && !id.chars().any(char::is_control) {
            self.segments.text(&format!("X-Doc-Id: {id}\r\nX-Rev-Id: {}\r\n", bundle.revision()));
        }
        let inner = self.state.uuids.next();
        self.segments.text(&format!("Content-Type: multipart/related; boundary=\"{inner}\"\r\n\r\n"));
        bundle.push(&mut self.segments, &inner);
    }

    fn push_refusal(&mut self, refusal: &Refusal) {
        let mut text = JsonWriter::new();
        match self.style {
            PartStyle::OfDocument => {
                text.literal("{\"missing\":").serialized(&refusal.revision).literal("}");
            }
            PartStyle::OfMany => {
                text.literal("{");
                push_refusal_members(&mut text, refusal);
                text.literal("}");
            }
        }
        let head =
            format!("\r\n--{}\r\nContent-Type: application/json; error=\"true\"\r\n\r\n", self.boundary);
        self.segments.text(&head);
        self.segments.text(text.as_str());
    }
}

/// Appends `"id":…,"rev":…,"error":…,"reason":…`.
pub(crate) fn push_refusal_members(text: &mut JsonWriter, refusal: &Refusal) {
    text.literal("\"id\":").serialized(&refusal.id).literal(",\"rev\":").serialized(&refusal.revision);
    text.literal(",");
    push_error_members(text, refusal.error, &refusal.reason);
}

impl Source for RevisionParts {
    fn next_piece(&mut self) -> Result<Piece> {
        while self.segments.is_empty() && !self.is_over {
            self.advance()?;
        }
        let bytes = self.segments.next_bytes()?;
        Ok(Piece::of_bytes(bytes, self.is_over && self.segments.is_empty()))
    }
}
