//! Many documents in one request: `_bulk_docs`, `_revs_diff`, `_missing_revs`.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use scrinium_contents::Content;
use scrinium_database::{Edit, EditMode, FolderChange, Level, RevisionsDifference, Secret, Update, Updated};
use scrinium_document::json::{self, ContentSeparator, JsonWriter};
use serde_json::{Map, Value};

use crate::access::{self, Opened};
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::intake::{self, Received};
use crate::response::{self, Body, push_error_members};
use crate::{passwords, write};

/// A request's documents are stored as one atomic batch up to this many, and about this many bytes; a larger
/// request in several, so that it neither fills the log's queue nor keeps the database's lock.
const BATCH_EDITS: usize = 10_000;
const BATCH_BYTES: usize = 8 << 20;

/// A document may be nested as deep as by itself, within an object and an array.
const NESTING_MAX: usize = json::NESTING_MAX + 2;

/// `POST /{db}/_bulk_docs`.
pub(crate) async fn documents(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    context.require_json()?;
    let received = body.receive(context, ContentSeparator::of_documents()).await?;
    let (editor, most) = (context.identity.shared_name(), context.entry.limits.elements);
    let (folders, read_by) = (write::folders(context), write::read_by(context)?);
    let incoming = match passwords::may_come(context) {
        true => Incoming::Parsed(with_hashes(context, received).await?),
        false => Incoming::Whole(received),
    };
    let work = move |database: Opened| {
        let Brought { documents, mode, all_or_nothing } = incoming.parse(most)?;
        if all_or_nothing {
            let refused = documents.into_iter().map(|document| Submitted::Undone { document });
            return Ok::<_, HttpError>((refused.collect(), mode));
        }
        let is_designer = database.level() >= Level::Designer;
        let manner = Manner { mode, is_designer, editor, folders, read_by };
        Ok((submit(&database, documents, &manner)?, mode))
    };
    let (admission, (submitted, mode)) = context.admitted(work).await?;
    let undone = submitted.iter().any(|part| matches!(part, Submitted::Undone { .. }));
    let mut text = JsonWriter::with_capacity(64);
    text.literal("[");
    for part in submitted {
        match part {
            Submitted::Stored { ids, update } => {
                for (id, result) in ids.iter().zip(update.durable().await?) {
                    push_result(&mut text, id, result.map_err(HttpError::from), mode);
                }
            }
            Submitted::Refused { document, error } => {
                push_result(&mut text, &document.json, Err(error), mode);
            }
            Submitted::Undone { document } => push_undone(&mut text, &document.json),
        }
    }
    drop(admission);
    text.literal("]\n");
    let status = if undone { StatusCode::EXPECTATION_FAILED } else { StatusCode::CREATED };
    Ok(response::json(status, text))
}

/// What a request has sent.
enum Incoming {
    Whole(Received),
    Parsed(Brought),
}

impl Incoming {
    fn parse(self, most: usize) -> Result<Brought> {
        match self {
            Self::Whole(received) => Brought::parse(received, most),
            Self::Parsed(brought) => Ok(brought),
        }
    }
}

/// The documents that a request brings, with the hashes of the passwords in them.
async fn with_hashes(context: &Context, received: Received) -> Result<Brought> {
    let most = context.entry.limits.elements;
    let parsed = move |database: Opened| {
        let brought = Brought::parse(received, most)?;
        let passwords = brought.documents.iter().map(|document| {
            let edit = Edit { json: document.json.clone(), ..Edit::default() };
            database.clear_secret(&edit, brought.mode)
        });
        Ok((passwords.collect::<Vec<_>>(), brought))
    };
    let (passwords, mut brought) = context.with_database(parsed).await?;
    passwords::check_count(context, &passwords)?;
    for (document, password) in brought.documents.iter_mut().zip(passwords) {
        if let Some(password) = password {
            document.secret = passwords::hash(context, &password).await?;
        }
    }
    Ok(brought)
}

/// A document as it came, and long contents that stood in it.
struct BroughtDocument {
    json: Bytes,
    taken_out: Vec<(String, Content)>,
    secret: Secret,
}

impl BroughtDocument {
    /// What it holds in memory.
    fn bytes(&self) -> usize {
        let contents: u64 = self.taken_out.iter().map(|(_, content)| intake::held_bytes(content)).sum();
        self.json.len().saturating_add(usize::try_from(contents).unwrap_or(usize::MAX))
    }
}

/// What a request brings.
struct Brought {
    documents: Vec<BroughtDocument>,
    mode: EditMode,
    /// It is to be stored whatever conflicts there are, or not at all.
    all_or_nothing: bool,
}

impl Brought {
    fn parse(Received { json, mut contents }: Received, most: usize) -> Result<Self> {
        let text = std::str::from_utf8(&json).map_err(|_| HttpError::invalid_json())?;
        let members = json::members(text, NESTING_MAX)?.ok_or_else(HttpError::not_object)?;
        let member = |wanted: &str| members.iter().find(|(name, _)| name == wanted).map(|(_, value)| *value);
        let mode = match member("new_edits") {
            None | Some("true") => EditMode::Interactive,
            Some("false") => EditMode::Replicated,
            Some(_) => return Err(HttpError::bad_request("`new_edits` parameter must be a boolean.")),
        };
        let all_or_nothing = member("all_or_nothing") == Some("true");
        let documents = member("docs")
            .ok_or_else(|| HttpError::bad_request("POST body must include `docs` parameter."))?;
        let documents = json::elements(documents, NESTING_MAX, most)?
            .ok_or_else(|| HttpError::bad_request("`docs` parameter must be an array."))?;
        if documents.len() > most {
            return Err(HttpError::too_many_values("docs", most));
        }
        if documents.iter().any(|document| !document.starts_with('{')) {
            return Err(HttpError::bad_request("Document must be a JSON object"));
        }
        // Slices of the body: nothing is copied until the documents are encoded.
        let brought = |(place, document): (usize, &&str)| BroughtDocument {
            json: json.slice_ref(document.as_bytes()),
            taken_out: contents.remove(&place).unwrap_or_default(),
            secret: Secret::Keep,
        };
        let documents = documents.iter().enumerate().map(brought).collect();
        Ok(Self { documents, mode, all_or_nothing })
    }
}

/// How all documents of a request are stored.
struct Manner {
    mode: EditMode,
    /// The one who writes may write design documents.
    is_designer: bool,
    editor: Option<Arc<str>>,
    folders: Vec<FolderChange>,
    read_by: Option<Arc<str>>,
}

impl Manner {
    /// Whether the person may not write the document, since it is a design document.
    fn refuses(&self, document: &BroughtDocument) -> bool {
        !self.is_designer && is_design(&document.json)
    }

    fn edit(&self, document: BroughtDocument) -> Edit {
        // A request may bring design documents among others; they are in no folder.
        let is_in_folders = !self.folders.is_empty() && !is_design(&document.json);
        Edit {
            json: document.json,
            taken_out: document.taken_out,
            secret: document.secret,
            folders: if is_in_folders { self.folders.clone() } else { Vec::new() },
            editor: self.editor.clone(),
            read_by: self.read_by.clone(),
            ..Edit::default()
        }
    }
}

fn is_design(json: &[u8]) -> bool {
    id_of(json).is_some_and(|id| scrinium_document::is_design(&id))
}

/// What became of a run of documents, in their order.
enum Submitted {
    Stored { ids: Vec<Bytes>, update: Update },
    Refused { document: BroughtDocument, error: HttpError },
    Undone { document: BroughtDocument },
}

/// Submits all documents, in several batches where they are many; none of them where one is no document. Blocks.
fn submit(database: &Opened, documents: Vec<BroughtDocument>, manner: &Manner) -> Result<Vec<Submitted>> {
    check(database, &documents, manner)?;
    let mut submitted = Vec::new();
    let mut batch = Vec::new();
    let mut batch_bytes = 0;
    for document in documents {
        if manner.refuses(&document) {
            flush(database, &mut batch, manner, &mut submitted)?;
            submitted.push(Submitted::Refused { document, error: access::not_designer() });
            continue;
        }
        batch_bytes += document.bytes();
        batch.push(document);
        if batch.len() >= BATCH_EDITS || batch_bytes >= BATCH_BYTES {
            flush(database, &mut batch, manner, &mut submitted)?;
            batch_bytes = 0;
        }
    }
    flush(database, &mut batch, manner, &mut submitted)?;
    Ok(submitted)
}

/// Looks at all documents before the first batch is stored, where there are several: the only one is looked at anyway.
fn check(database: &Opened, documents: &[BroughtDocument], manner: &Manner) -> Result<()> {
    let bytes: usize = documents.iter().map(BroughtDocument::bytes).sum();
    let is_one = documents.len() <= BATCH_EDITS
        && bytes < BATCH_BYTES
        && !documents.iter().any(|document| manner.refuses(document));
    if is_one {
        return Ok(());
    }
    let edits = documents.iter().map(|document| Edit { json: document.json.clone(), ..Edit::default() });
    Ok(database.check_sound(edits, manner.mode)?)
}

fn flush(
    database: &Opened,
    batch: &mut Vec<BroughtDocument>,
    manner: &Manner,
    submitted: &mut Vec<Submitted>,
) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let documents = std::mem::take(batch);
    let ids = documents.iter().map(|document| document.json.clone()).collect();
    let edits = documents.into_iter().map(|document| manner.edit(document)).collect();
    let update = database.update_sound(edits, manner.mode)?;
    submitted.push(Submitted::Stored { ids, update });
    Ok(())
}

/// The row of a document of a request that wants all or nothing, which CouchDB does not offer since version 2.
fn push_undone(text: &mut JsonWriter, json: &[u8]) {
    if text.len() > 1 {
        text.literal(",");
    }
    let members = std::str::from_utf8(json).ok().and_then(|text| json::members(text, NESTING_MAX).ok()?);
    let revision = members.unwrap_or_default().into_iter().find(|(name, _)| name == "_rev");
    let revision = revision.and_then(|(_, raw)| json::string(raw).map(Cow::into_owned));
    text.literal("{\"id\":").string(&id_of(json).unwrap_or_default());
    text.literal(",\"rev\":").string(revision.as_deref().unwrap_or("0-")).literal(",");
    push_error_members(text, "not_implemented", "all_or_nothing is not supported");
    text.literal("}");
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
