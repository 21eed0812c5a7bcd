//! Documents and attachments of another server, read and written.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http::header::{CONTENT_RANGE, HeaderValue, RANGE};
use reqwest::Response;
use scrinium_document::json::{self, JsonWriter, NESTING_MAX};
use serde_json::Value;

use super::ask::Ask;
use super::{RemoteEnd, value_of};
use crate::document::SourceDocument;
use crate::end::{AttachmentPlace, ContentStream, Missing, Refusal, Work};
use crate::error::{ErrorKind, ReplicationError, Result};

/// Documents of one answer may take this much together; more are asked for in several requests.
const SEVERAL_BYTES: usize = 16 << 20;

/// One revision may take this much, its attachments apart.
const SINGLE_BYTES: usize = 96 << 20;

/// Revisions in one answer, at most, for each one that was asked for.
const REVISIONS_OF_ONE: usize = 1000;

/// What is read of the answer to documents that were written: a row for each that was refused.
const WRITTEN_BYTES: usize = 32 << 20;

impl RemoteEnd {
    pub(crate) async fn read_documents(&self, wanted: &[Missing]) -> Result<Vec<SourceDocument>> {
        if !self.reads_one_by_one.load(Ordering::Relaxed) {
            match self.read_many(wanted).await {
                // An older server, or one that is no CouchDB.
                Err(error) if is_unknown(&error) => self.reads_one_by_one.store(true, Ordering::Relaxed),
                read => return read,
            }
        }
        let mut documents = Vec::new();
        let mut bytes = 0;
        for missing in wanted {
            for document in self.read_one(missing).await? {
                bytes += document.json.len();
                documents.push(document);
            }
            if bytes > SEVERAL_BYTES && wanted.len() > 1 {
                return Err(ReplicationError::new(
                    ErrorKind::TooLarge,
                    "These documents are too much at once.",
                ));
            }
        }
        Ok(documents)
    }

    async fn read_many(&self, wanted: &[Missing]) -> Result<Vec<SourceDocument>> {
        let mut body = JsonWriter::new();
        body.literal("{\"docs\":[");
        let mut is_first = true;
        for missing in wanted {
            for revision in &missing.revisions {
                body.literal(if is_first { "{\"id\":" } else { ",{\"id\":" });
                body.string(&missing.id).literal(",\"rev\":").string(revision).literal("}");
                is_first = false;
            }
        }
        body.literal("]}");
        let ask = Ask::post(&["_bulk_get"], body.into_string())
            .with("revs", "true")
            .with("latest", "true")
            .with("att_encoding_info", "true");
        let most = if wanted.len() > 1 { SEVERAL_BYTES } else { SINGLE_BYTES };
        let text = self.ask(&ask, most).await?;
        self.parse_bulk(wanted, &text)
    }

    fn parse_bulk(&self, wanted: &[Missing], text: &Bytes) -> Result<Vec<SourceDocument>> {
        let nonsense = || ReplicationError::protocol(format!("{} answers with no documents.", self.shown));
        let whole = std::str::from_utf8(text).map_err(|_| nonsense())?;
        let members = json::members(whole, NESTING_MAX)?.ok_or_else(nonsense)?;
        let results = members.into_iter().find(|(name, _)| name == "results").ok_or_else(nonsense)?.1;
        let asked: usize = wanted.iter().map(|missing| missing.revisions.len()).sum();
        let results = json::elements(results, NESTING_MAX, asked)?.ok_or_else(nonsense)?;
        if results.len() > asked {
            return Err(nonsense());
        }
        let ids: HashSet<&str> = wanted.iter().map(|missing| &*missing.id).collect();
        let mut given = HashSet::new();
        let mut documents = Vec::with_capacity(asked);
        for raw in results {
            let members: HashMap<_, _> =
                json::members(raw, NESTING_MAX)?.ok_or_else(nonsense)?.into_iter().collect();
            let id = members.get("id").and_then(|raw| json::string(raw)).ok_or_else(nonsense)?;
            if !ids.contains(&*id) {
                return Err(ReplicationError::protocol(format!(
                    "{} answers with a document that nobody asked for.",
                    self.shown
                )));
            }
            let docs = members.get("docs").ok_or_else(nonsense)?;
            let docs = json::elements(docs, NESTING_MAX, REVISIONS_OF_ONE)?.ok_or_else(nonsense)?;
            for raw in docs.into_iter().take(REVISIONS_OF_ONE) {
                if let Some(document) = self.parse_result(&id, raw, text)? {
                    // Two that were asked for may have led to the same one.
                    if given.insert((document.id.clone(), document.revision.clone())) {
                        documents.push(document);
                    }
                }
            }
        }
        Ok(documents)
    }

    /// `{"ok": …}`, or why not.
    fn parse_result(&self, id: &str, raw: &str, text: &Bytes) -> Result<Option<SourceDocument>> {
        let nonsense = || ReplicationError::protocol(format!("{} answers with no documents.", self.shown));
        for (name, raw) in json::members(raw, NESTING_MAX)?.ok_or_else(nonsense)? {
            match &*name {
                "ok" => return Ok(Some(SourceDocument::parse(id, text.slice_ref(raw.as_bytes()))?)),
                "error" => {
                    let error = json::parse_value(raw, NESTING_MAX)?;
                    let word =
                        error.get("error").or(Some(&error)).and_then(Value::as_str).unwrap_or_default();
                    // It went, or may not be read: then it is not for this replication.
                    return match word {
                        "not_found" | "forbidden" | "unauthorized" => Ok(None),
                        word => Err(ReplicationError::new(
                            ErrorKind::Unavailable,
                            format!("{} cannot give the document {id:?}: {word}", self.shown),
                        )),
                    };
                }
                "missing" => return Ok(None),
                _ => {}
            }
        }
        Err(nonsense())
    }

    /// Revisions of one document, by `open_revs`.
    async fn read_one(&self, missing: &Missing) -> Result<Vec<SourceDocument>> {
        let mut revisions = JsonWriter::new();
        revisions.strings(&missing.revisions);
        let ask = Ask::get(&segments_of(&missing.id))
            .with("open_revs", revisions.into_string())
            .with("revs", "true")
            .with("latest", "true")
            .with("att_encoding_info", "true");
        let text = match self.ask(&ask, SINGLE_BYTES).await {
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(Vec::new()),
            text => text?,
        };
        let nonsense = || ReplicationError::protocol(format!("{} answers with no revisions.", self.shown));
        let whole = std::str::from_utf8(&text).map_err(|_| nonsense())?;
        let rows = json::elements(whole, NESTING_MAX, REVISIONS_OF_ONE)?.ok_or_else(nonsense)?;
        let mut documents = Vec::new();
        for raw in rows.into_iter().take(REVISIONS_OF_ONE) {
            documents.extend(self.parse_result(&missing.id, raw, &text)?);
        }
        Ok(documents)
    }

    pub(crate) async fn read_attachment(
        &self,
        place: &AttachmentPlace,
        offset: u64,
    ) -> Result<Box<dyn ContentStream>> {
        let mut segments = segments_of(&place.id);
        segments.push(&place.name);
        let mut ask = Ask::get(&segments).with("rev", place.revision.as_str());
        ask.headers.insert(http::header::ACCEPT, HeaderValue::from_static("*/*"));
        if place.is_encoded {
            ask.headers.insert(http::header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if offset > 0 {
            let range = HeaderValue::try_from(format!("bytes={offset}-"));
            ask.headers.insert(RANGE, range.map_err(|_| ReplicationError::cancelled())?);
        }
        let response = self.answer(&ask).await?;
        let is_encoded = response.headers().contains_key(http::header::CONTENT_ENCODING);
        if is_encoded != place.is_encoded {
            return Err(ReplicationError::protocol(format!(
                "{} does not give an attachment as the gzip that its document says it is.",
                self.shown
            )));
        }
        let begins_at = match response.status() {
            StatusCode::PARTIAL_CONTENT => range_begin(&response),
            // It cannot give a part: what is there already is passed over.
            _ => Some(0),
        };
        let Some(begins_at) = begins_at.filter(|begins_at| *begins_at <= offset) else {
            return Err(ReplicationError::protocol(format!("{} gives another range.", self.shown)));
        };
        Ok(Box::new(RemoteContent { response, passed_over: offset - begins_at, shown: self.shown.clone() }))
    }

    pub(crate) async fn write_documents(&self, documents: &[SourceDocument]) -> Result<Vec<Refusal>> {
        const BEGIN: &[u8] = b"{\"new_edits\":false,\"docs\":[";
        let length: usize = documents.iter().map(|document| document.json.len() + 1).sum();
        let mut body = BytesMut::with_capacity(BEGIN.len() + length + 2);
        body.extend_from_slice(BEGIN);
        for (place, document) in documents.iter().enumerate() {
            if place > 0 {
                body.extend_from_slice(b",");
            }
            // Looked at when it came: it is one JSON object.
            body.extend_from_slice(&document.json);
        }
        body.extend_from_slice(b"]}");
        let text = self.ask(&Ask::post(&["_bulk_docs"], body.freeze()), WRITTEN_BYTES).await?;
        let Value::Array(rows) = value_of(&text)? else {
            return Err(ReplicationError::protocol(format!("{} answers with no list.", self.shown)));
        };
        let mut refused = Vec::new();
        for row in rows {
            let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let word = text("error");
            match &*word {
                "" => {}
                "missing_stub" => {
                    return Err(ReplicationError::new(ErrorKind::MissingStub, text("reason")));
                }
                "internal_server_error"
                | "unknown_error"
                | "service_unavailable"
                | "insufficient_storage" => {
                    let reason = format!("{} cannot store documents: {word}: {}", self.shown, text("reason"));
                    return Err(ReplicationError::new(ErrorKind::Unavailable, reason));
                }
                _ => refused.push(Refusal {
                    id: text("id"),
                    revision: text("rev"),
                    reason: format!("{word}: {}", text("reason")),
                }),
            }
        }
        refused.truncate(documents.len());
        Ok(refused)
    }
}

/// Whether a server has no such address.
fn is_unknown(error: &ReplicationError) -> bool {
    error.kind == ErrorKind::NotFound
        || error.kind == ErrorKind::Refused
            && ["answers 400", "answers 405", "answers 415"].iter().any(|said| error.reason.contains(said))
        || error.kind == ErrorKind::Unavailable && error.reason.contains("answers 501")
}

/// The segments of a document's address.
pub(crate) fn segments_of(id: &str) -> Vec<&str> {
    match id.split_once('/') {
        Some(("_design", name)) => vec!["_design", name],
        _ => vec![id],
    }
}

/// Where a part of a content begins: `bytes 5-9/10` (RFC 9110 §14.4).
fn range_begin(response: &Response) -> Option<u64> {
    let range = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split_once('-')?.0.trim().parse().ok()
}

/// An attachment as it comes.
struct RemoteContent {
    response: Response,
    /// Bytes that are known already.
    passed_over: u64,
    shown: String,
}

impl ContentStream for RemoteContent {
    fn next_piece(&mut self) -> Work<'_, Option<Bytes>> {
        Box::pin(async move {
            loop {
                let piece = self.response.chunk().await.map_err(|_| {
                    ReplicationError::protocol(format!("The connection to {} broke off.", self.shown))
                })?;
                let Some(mut piece) = piece else { return Ok(None) };
                let known = usize::try_from(self.passed_over).unwrap_or(usize::MAX).min(piece.len());
                self.passed_over -= known as u64;
                if known < piece.len() {
                    return Ok(Some(piece.split_off(known)));
                }
            }
        })
    }
}
