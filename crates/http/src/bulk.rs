//! Many documents in one request: `_bulk_docs`, `_bulk_get`, `_revs_diff`, `_missing_revs`.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use scrinium_database::{
    DatabaseError, Edit, EditMode, FolderChange, Level, OpenRevision, OpenRevisions, ReadOptions,
    RevisionsDifference, Update, Updated,
};
use scrinium_document::json::{self, JsonWriter};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::access::{self, Opened};
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::query;
use crate::response::{self, Body, push_error_members};
use crate::stream::{self, PIECE_BYTES, Piece, Source};
use crate::write;

/// A request's documents are stored as one atomic batch up to so many, and about so many bytes; a larger
/// request in several, so that it neither fills the log's queue nor keeps the database's lock.
const BATCH_EDITS: usize = 10_000;
const BATCH_BYTES: usize = 8 << 20;

/// A document may be nested as deep as by itself, within an object and an array.
const NESTING_MAX: usize = json::NESTING_MAX + 2;

/// `POST /{db}/_bulk_docs`.
pub(crate) async fn documents(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    context.require_json()?;
    let bytes = body.collect().await?;
    let (open, editor, most) =
        (context.opener(), context.identity.shared_name(), context.entry.limits.elements);
    let (folders, read_by) = (write::folders(context), write::read_by(context)?);
    let admission = context.state.workers.admit().await?;
    let (submitted, mode) = admission
        .run(move || {
            let database = open()?;
            let (documents, mode) = parse_documents(&bytes, most)?;
            let manner = Manner { mode, editor, folders, read_by };
            Ok::<_, HttpError>((submit(&database, documents, &manner)?, mode))
        })
        .await??;
    let mut text = JsonWriter::with_capacity(64);
    text.literal("[");
    for part in submitted {
        match part {
            Submitted::Stored { ids, update } => {
                for (id, result) in ids.iter().zip(update.durable().await?) {
                    push_result(&mut text, id, result.map_err(HttpError::from), mode);
                }
            }
            Submitted::Refused { id, error } => push_result(&mut text, &id, Err(error), mode),
        }
    }
    drop(admission);
    text.literal("]\n");
    Ok(response::json(StatusCode::CREATED, text))
}

fn parse_documents(bytes: &Bytes, most: usize) -> Result<(Vec<Bytes>, EditMode)> {
    let text = std::str::from_utf8(bytes).map_err(|_| HttpError::invalid_json())?;
    let members = json::members(text, NESTING_MAX)?.ok_or_else(HttpError::not_object)?;
    let member = |wanted: &str| members.iter().find(|(name, _)| name == wanted).map(|(_, value)| *value);
    let mode = match member("new_edits") {
        None | Some("true") => EditMode::Interactive,
        Some("false") => EditMode::Replicated,
        Some(_) => return Err(HttpError::bad_request("`new_edits` parameter must be a boolean.")),
    };
    let documents =
        member("docs").ok_or_else(|| HttpError::bad_request("POST body must include `docs` parameter."))?;
    let documents = json::elements(documents, NESTING_MAX)?
        .ok_or_else(|| HttpError::bad_request("`docs` parameter must be an array."))?;
    if documents.len() > most {
        return Err(HttpError::too_many_values("docs", most));
    }
    if documents.iter().any(|document| !document.starts_with('{')) {
        return Err(HttpError::bad_request("Document must be a JSON object"));
    }
    // Slices of the body: nothing is copied until the documents are encoded.
    let slices = documents.iter().map(|document| bytes.slice_ref(document.as_bytes())).collect();
    Ok((slices, mode))
}

/// How all documents of a request are stored.
struct Manner {
    mode: EditMode,
    editor: Option<Arc<str>>,
    folders: Vec<FolderChange>,
    read_by: Option<Arc<str>>,
}

/// What became of a run of documents, in their order.
enum Submitted {
    Stored { ids: Vec<Bytes>, update: Update },
    Refused { id: Bytes, error: HttpError },
}

/// Submits all documents, in several batches where they are many. Blocks.
fn submit(database: &Opened, documents: Vec<Bytes>, manner: &Manner) -> Result<Vec<Submitted>> {
    let mut submitted = Vec::new();
    let mut batch: Vec<Bytes> = Vec::new();
    let mut batch_bytes = 0;
    for document in documents {
        if database.level() < Level::Designer
            && id_of(&document).is_some_and(|id| scrinium_document::is_design(&id))
        {
            flush(database, &mut batch, manner, &mut submitted)?;
            submitted.push(Submitted::Refused { id: document, error: access::not_designer() });
            continue;
        }
        batch_bytes += document.len();
        batch.push(document);
        if batch.len() >= BATCH_EDITS || batch_bytes >= BATCH_BYTES {
            flush(database, &mut batch, manner, &mut submitted)?;
            batch_bytes = 0;
        }
    }
    flush(database, &mut batch, manner, &mut submitted)?;
    Ok(submitted)
}

fn flush(
    database: &Opened,
    batch: &mut Vec<Bytes>,
    manner: &Manner,
    submitted: &mut Vec<Submitted>,
) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let ids = std::mem::take(batch);
    let edit = |json: &Bytes| {
        // A request may bring design documents beside others; they are in no folder.
        let is_design =
            !manner.folders.is_empty() && id_of(json).is_some_and(|id| scrinium_document::is_design(&id));
        let folders = if is_design { Vec::new() } else { manner.folders.clone() };
        let (editor, read_by) = (manner.editor.clone(), manner.read_by.clone());
        Edit { json: json.clone(), folders, editor, read_by, ..Edit::default() }
    };
    let update = database.update(ids.iter().map(edit).collect(), manner.mode)?;
    submitted.push(Submitted::Stored { ids, update });
    Ok(())
}

/// One document's row. A replicated one has a row only where it was refused.
fn push_result(text: &mut JsonWriter, json: &[u8], result: Result<Updated>, mode: EditMode) {
    if mode == EditMode::Replicated && result.is_ok() {
        return;
    }
    if text.len() > 1 {
        text.literal(",");
    }
    match result {
        Ok(updated) => {
            text.literal("{\"ok\":true,\"id\":");
            text.string(&updated.id);
            text.literal(",\"rev\":");
            text.string(&updated.revision);
        }
        Err(error) => {
            text.literal("{\"id\":");
            text.string(&id_of(json).unwrap_or_default());
            text.literal(",");
            push_error_members(text, &error.error, &error.reason);
        }
    }
    text.literal("}");
}

/// The `_id` in a document's JSON.
fn id_of(json: &[u8]) -> Option<String> {
    let members = json::members(std::str::from_utf8(json).ok()?, NESTING_MAX).ok()??;
    let (_, id) = members.into_iter().find(|(name, _)| name == "_id")?;
    json::string(id).map(Cow::into_owned)
}

/// One document that `_bulk_get` is asked for.
struct Wanted {
    id: String,
    revision: Option<String>,
    attachments_since: Option<Vec<String>>,
}

/// `POST /{db}/_bulk_get`.
pub(crate) async fn get(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    context.require_json()?;
    let mut members = body.object().await?;
    let wanted = match members.remove("docs") {
        Some(Value::Array(documents)) => documents.into_iter().map(parse_wanted).collect::<Result<_>>()?,
        Some(_) => return Err(HttpError::bad_request("`docs` member must be an array.")),
        None => return Err(HttpError::bad_request("Missing JSON list of 'docs'.")),
    };
    let options = query::read_options(&context.query)?;
    let begun = context
        .with_database(move |database| {
            stream::begin(Gathered { database, options, wanted, begun: false, separate: false })
        })
        .await?;
    Ok(response::json_body(StatusCode::OK, begun.into_body(context, None)?))
}

fn parse_wanted(document: Value) -> Result<Wanted> {
    #[derive(Deserialize)]
    struct Asked {
        id: String,
        rev: Option<String>,
        atts_since: Option<Vec<String>>,
    }
    let asked: Asked = serde_json::from_value(document)
        .map_err(|_| HttpError::bad_request("Each of `docs` must be an object with an `id`."))?;
    Ok(Wanted { id: asked.id, revision: asked.rev, attachments_since: asked.atts_since })
}

/// Documents one after the other, as `_bulk_get` gives them.
struct Gathered {
    database: Opened,
    options: ReadOptions,
    wanted: VecDeque<Wanted>,
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
            let Some(wanted) = self.wanted.pop_front() else {
                text.literal("]}\n");
                return Ok(Piece::of_json(text, true));
            };
            text.literal(if std::mem::replace(&mut self.separate, true) {
                ",\n{\"id\":"
            } else {
                "{\"id\":"
            });
            text.string(&wanted.id);
            text.literal(",\"docs\":[");
            self.push_revisions(&mut text, &wanted);
            text.literal("]}");
        }
        Ok(Piece::of_json(text, false))
    }
}

impl Gathered {
    fn push_revisions(&self, text: &mut JsonWriter, wanted: &Wanted) {
        let options =
            ReadOptions { attachments_since: wanted.attachments_since.clone(), ..self.options.clone() };
        let which = match &wanted.revision {
            Some(revision) => OpenRevisions::These(vec![revision.clone()]),
            None => OpenRevisions::All,
        };
        let named = wanted.revision.as_deref().unwrap_or("undefined");
        match self.database.open_revisions(&wanted.id, &which, &options) {
            Ok(revisions) => {
                for (number, revision) in revisions.iter().enumerate() {
                    text.literal(if number > 0 { "," } else { "" });
                    match revision {
                        OpenRevision::Found(document) => {
                            text.literal("{\"ok\":");
                            text.json(&document.json);
                            text.literal("}");
                        }
                        OpenRevision::Missing(revision) => {
                            let missing = DatabaseError::NotFound { reason: "missing".to_owned() };
                            push_missing(text, &wanted.id, revision, &missing);
                        }
                    }
                }
            }
            Err(error) => push_missing(text, &wanted.id, named, &error),
        }
    }
}

fn push_missing(text: &mut JsonWriter, id: &str, revision: &str, error: &DatabaseError) {
    text.literal("{\"error\":{\"id\":");
    text.string(id);
    text.literal(",\"rev\":");
    text.string(revision);
    text.literal(",");
    push_error_members(text, error.error(), &error.reason());
    text.literal("}}");
}

/// Which of the revisions that a request names are not known, by document.
async fn differences(
    context: &Context,
    body: &mut RequestBody,
) -> Result<Vec<(String, RevisionsDifference)>> {
    context.require_json()?;
    let wanted = parse_revisions(body.object().await?)?;
    context.with_database(move |database| Ok(database.revisions_difference(&wanted)?)).await
}

/// `POST /{db}/_revs_diff`.
pub(crate) async fn revisions_difference(
    context: &Context,
    body: &mut RequestBody,
) -> Result<Response<Body>> {
    let differences = differences(context, body).await?;
    let mut text = JsonWriter::new();
    text.literal("{");
    for (number, (id, difference)) in differences.iter().enumerate() {
        text.literal(if number > 0 { "," } else { "" });
        text.string(id);
        text.literal(":{\"missing\":");
        text.serialized(&difference.missing);
        if !difference.possible_ancestors.is_empty() {
            text.literal(",\"possible_ancestors\":");
            text.serialized(&difference.possible_ancestors);
        }
        text.literal("}");
    }
    text.literal("}\n");
    Ok(response::json(StatusCode::OK, text))
}

/// `POST /{db}/_missing_revs`.
pub(crate) async fn missing_revisions(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let differences = differences(context, body).await?;
    let mut text = JsonWriter::new();
    text.literal("{\"missing_revs\":{");
    for (number, (id, difference)) in differences.iter().enumerate() {
        text.literal(if number > 0 { "," } else { "" });
        text.string(id);
        text.literal(":");
        text.serialized(&difference.missing);
    }
    text.literal("}}\n");
    Ok(response::json(StatusCode::OK, text))
}

fn parse_revisions(members: Map<String, Value>) -> Result<Vec<(String, Vec<String>)>> {
    members
        .into_iter()
        .map(|(id, revisions)| {
            let revisions = serde_json::from_value(revisions)
                .map_err(|_| HttpError::bad_request("Request body must map ids to lists of revisions."))?;
            Ok((id, revisions))
        })
        .collect()
}
