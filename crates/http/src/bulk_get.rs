//! `POST /{db}/_bulk_get`: revisions of many documents, as JSON or as a multipart body. What is wrong with one that is asked
//! for is said in its place, and the others are given.

use std::collections::VecDeque;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use scrinium_database::{DatabaseError, OpenRevision, OpenRevisions, ReadOptions};
use scrinium_document::json::JsonWriter;
use scrinium_document::{Revision, is_local, validate_id};
use serde_json::{Map, Value};

use crate::access::Opened;
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result, couchdb_word};
use crate::query;
use crate::response::{self, Body, PIECE_BYTES};
use crate::revision_parts::{PartStyle, Refusal, RevisionParts, WantedRevisions, push_refusal_members};
use crate::stream::{self, Piece, Source};

/// One document that is asked for, or why it cannot be.
type Entry = std::result::Result<WantedRevisions, Box<Refusal>>;

pub(crate) async fn get(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    context.require_json()?;
    let mut members = body.object().await?;
    let wanted: VecDeque<Entry> = match members.remove("docs") {
        Some(Value::Array(documents)) => documents.into_iter().map(parse_entry).collect(),
        Some(_) => return Err(HttpError::bad_request("`docs` member must be an array.")),
        None => return Err(HttpError::bad_request("Missing JSON list of 'docs'.")),
    };
    let options = query::read_options(&context.query)?;
    // JSON goes before, as in CouchDB.
    let kinds = ["multipart/mixed", "multipart/related"];
    let multipart = kinds.into_iter().find(|kind| context.accepts(kind));
    if let Some(kind) = multipart.filter(|_| !context.accepts("application/json")) {
        return parts(context, kind, options, wanted).await;
    }
    let begun = context
        .with_database(move |database| {
            stream::begin(Gathered { database, options, wanted, begun: false, separate: false })
        })
        .await?;
    Ok(response::json_body(StatusCode::OK, begun.into_body(context, None)?))
}

async fn parts(
    context: &Context,
    kind: &str,
    options: ReadOptions,
    wanted: VecDeque<Entry>,
) -> Result<Response<Body>> {
    let boundary = context.state.uuids.next();
    let (delimiter, state) = (boundary.clone(), context.state.clone());
    let begun = context
        .with_database(move |database| {
            let parts = ((database, state), options, delimiter);
            stream::begin(RevisionParts::new(parts, PartStyle::OfMany, wanted))
        })
        .await?;
    let mut response = response::json_body(StatusCode::OK, begun.into_body(context, None)?);
    if let Ok(kind) = HeaderValue::try_from(format!("{kind}; boundary=\"{boundary}\"")) {
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
    Ok(response)
}

fn parse_entry(document: Value) -> Entry {
    let Value::Object(mut members) = document else {
        return Err(refusal(Value::Null, Value::Null, "Each of `docs` must be an object with an `id`."));
    };
    let revision = members.remove("rev").unwrap_or_default();
    let id = match members.remove("id") {
        Some(Value::String(id)) => id,
        None => return Err(refusal(Value::Null, Value::Null, "document id missed")),
        Some(id) => {
            let mut refusal = refusal(id, Value::Null, "Document id must be a string");
            refusal.error = "illegal_docid";
            return Err(refusal);
        }
    };
    if let Err(error) = validate_id(&id) {
        let mut refusal = refusal(id.into(), Value::Null, &error.reason());
        refusal.error = error.error();
        return Err(refusal);
    }
    let which = match &revision {
        Value::Null => OpenRevisions::All,
        Value::String(name) if is_local(&id) || Revision::parse(name).is_ok() => {
            OpenRevisions::These(vec![name.clone()])
        }
        _ => return Err(refusal(id.into(), revision, "Invalid rev format")),
    };
    match revisions_of(&mut members, "atts_since") {
        Ok(attachments_since) => Ok(WantedRevisions { id, which, attachments_since }),
        Err(wrong) => Err(refusal(id.into(), wrong, "Invalid rev format")),
    }
}

/// The revisions that a member lists; `Err`: something in it is invalid.
fn revisions_of(
    members: &mut Map<String, Value>,
    name: &str,
) -> std::result::Result<Option<Vec<String>>, Value> {
    let listed = match members.remove(name) {
        None => return Ok(None),
        Some(Value::Array(listed)) => listed,
        Some(other) => return Err(other),
    };
    let revision = |value: Value| match value {
        Value::String(name) if Revision::parse(&name).is_ok() => Ok(name),
        other => Err(other),
    };
    listed.into_iter().map(revision).collect::<std::result::Result<_, _>>().map(Some)
}

fn refusal(id: Value, revision: Value, reason: &str) -> Box<Refusal> {
    Box::new(Refusal { id, revision, error: "bad_request", reason: reason.to_owned() })
}

/// Documents one after the other, as JSON.
struct Gathered {
    database: Opened,
    options: ReadOptions,
    wanted: VecDeque<Entry>,
    begun: bool,
    separate: bool,
}

impl Source for Gathered {
    fn next_piece(&mut self) -> Result<Piece> {
        let mut text = JsonWriter::with_capacity(1024);
        if !std::mem::replace(&mut self.begun, true) {
            text.literal("{\"results\":[");
        }
        while text.len() < PIECE_BYTES {
            let Some(entry) = self.wanted.pop_front() else {
                text.literal("]}\n");
                return Ok(Piece::of_json(text, true));
            };
            text.literal(if std::mem::replace(&mut self.separate, true) {
                ",\n{\"id\":"
            } else {
                "{\"id\":"
            });
            match entry {
                Err(refusal) => {
                    text.serialized(&refusal.id).literal(",\"docs\":[");
                    push_refusal(&mut text, &refusal);
                }
                Ok(wanted) => {
                    text.string(&wanted.id).literal(",\"docs\":[");
                    self.push_revisions(&mut text, &wanted);
                }
            }
            text.literal("]}");
        }
        Ok(Piece::of_json(text, false))
    }
}

impl Gathered {
    fn push_revisions(&self, text: &mut JsonWriter, wanted: &WantedRevisions) {
        let since = wanted.attachments_since.clone().or_else(|| self.options.attachments_since.clone());
        let options = ReadOptions { attachments_since: since, ..self.options.clone() };
        let found = if is_local(&wanted.id) {
            // It has one revision, whatever is asked for.
            self.database.read_local(&wanted.id).map(|document| vec![OpenRevision::Found(document)])
        } else {
            self.database.open_revisions(&wanted.id, &wanted.which, &options)
        };
        match found {
            Ok(revisions) => {
                for (number, revision) in revisions.iter().enumerate() {
                    text.literal(if number > 0 { "," } else { "" });
                    match revision {
                        OpenRevision::Found(document) => {
                            text.literal("{\"ok\":").json(&document.json).literal("}");
                        }
                        OpenRevision::Missing(revision) => {
                            let missing = DatabaseError::NotFound { reason: "missing".to_owned() };
                            push_refusal(text, &of_error(&wanted.id, revision, &missing));
                        }
                    }
                }
            }
            Err(error) => {
                let named = match &wanted.which {
                    OpenRevisions::All => "undefined",
                    OpenRevisions::These(names) => names.first().map_or("undefined", String::as_str),
                };
                push_refusal(text, &of_error(&wanted.id, named, &error));
            }
        }
    }
}

fn of_error(id: &str, revision: &str, error: &DatabaseError) -> Refusal {
    Refusal { id: id.into(), revision: revision.into(), error: couchdb_word(error), reason: error.reason() }
}

fn push_refusal(text: &mut JsonWriter, refusal: &Refusal) {
    text.literal("{\"error\":{");
    push_refusal_members(text, refusal);
    text.literal("}}");
}
