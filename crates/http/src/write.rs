//! Writing one document: PUT, POST, DELETE, and `_local` documents.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use scrinium_database::{Edit, EditMode, FolderChange, Level, ReadOptions, Update, Updated};
use scrinium_document::json::{self, ContentSeparator};

use crate::access::{self, Opened};
use crate::body::RequestBody;
use crate::context::{Context, TAG_DIFFERS};
use crate::error::{HttpError, Result};
use crate::response::{self, Body};
use crate::{passwords, related, users};

const DESIGN_PREFIX: &str = "_design/";

/// `PUT /{db}/{id}`.
pub(crate) async fn put(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    if let Some(name) = users::translated(context) {
        return Box::pin(users::put(context, name, body)).await;
    }
    let declared = context.header(&CONTENT_TYPE).unwrap_or("");
    if declared.starts_with("multipart/related") {
        return Box::pin(related::put(context, body)).await;
    }
    let (id, revision) = (context.address.document_id()?, context.revision()?);
    let tag = context.tag_alone();
    let (json, taken_out) = body.receive(context, ContentSeparator::of_document()).await?.into_document();
    let edit = Edit { id: Some(id), json, taken_out, revision, ..Edit::default() };
    let updated = store(context, mode(context), move |_| {
        check_tag(&edit.json, tag.as_deref())?;
        Ok(edit)
    })
    .await?;
    Ok(created(context, &updated))
}

/// Refuses a document that names another revision than `If-Match`.
pub(crate) fn check_tag(json: &[u8], tag: Option<&str>) -> Result<()> {
    let Some(tag) = tag else { return Ok(()) };
    let text = std::str::from_utf8(json).map_err(|_| HttpError::invalid_json())?;
    let members = json::members(text, json::NESTING_MAX)?.unwrap_or_default();
    let revision =
        members.into_iter().find(|(name, _)| name == "_rev").and_then(|(_, raw)| json::string(raw));
    match revision {
        Some(revision) if revision != tag => Err(HttpError::bad_request(TAG_DIFFERS)),
        _ => Ok(()),
    }
}

/// `POST /{db}`: a document whose id is in it or is made.
pub(crate) async fn post(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    context.require_json()?;
    let (json, taken_out) = body.receive(context, ContentSeparator::of_document()).await?.into_document();
    let made = context.state.uuids.next();
    let updated = store(context, mode(context), move |database| {
        let id = id_of(&json)?.unwrap_or(made);
        check_design(database, &id)?;
        Ok(Edit { id: Some(id), json, taken_out, ..Edit::default() })
    })
    .await?;
    Ok(created(context, &updated))
}

/// `DELETE /{db}/{id}?rev=`.
pub(crate) async fn delete(context: &Context) -> Result<Response<Body>> {
    let (wanted, revision) = (context.address.document_id()?, context.revision()?);
    let updated = store(context, mode(context), move |database| {
        // Who may read nothing learns nothing of what is there.
        if database.level() < Level::Reader {
            return Err(HttpError::forbidden("You may not delete documents in this database."));
        }
        // A document that is not there is 404, whatever revision was named.
        database.read(&wanted, &ReadOptions::default())?;
        let json = Bytes::from_static(b"{\"_deleted\":true}");
        Ok(Edit { id: Some(wanted), json, revision, ..Edit::default() })
    })
    .await?;
    Ok(response::updated(StatusCode::OK, &updated.id, &updated.revision))
}

/// `PUT /{db}/_local/{id}`.
pub(crate) async fn put_local(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let (wanted, revision) = (context.address.document_id()?, context.revision()?);
    let json = body.collect().await?;
    let updated = submit(context, move |database| {
        Ok(database.write_local(&wanted, &json, false, revision.as_deref())?)
    })
    .await?;
    Ok(created(context, &updated))
}

/// `DELETE /{db}/_local/{id}`.
pub(crate) async fn delete_local(context: &Context) -> Result<Response<Body>> {
    let (wanted, revision) = (context.address.document_id()?, context.revision()?);
    let updated = submit(context, move |database| {
        Ok(database.write_local(&wanted, b"{}", true, revision.as_deref())?)
    })
    .await?;
    Ok(response::updated(StatusCode::OK, &updated.id, &updated.revision))
}

/// Stores one edit and waits until it is durable.
pub(crate) async fn store(
    context: &Context,
    mode: EditMode,
    edit: impl FnOnce(&Opened) -> Result<Edit> + Send + 'static,
) -> Result<Updated> {
    let (folders, read_by) = (folders(context), read_by(context)?);
    let editor = context.identity.shared_name();
    let edit =
        move |database: &Opened| Ok::<_, HttpError>(Edit { folders, editor, read_by, ..edit(database)? });
    if passwords::may_come(context) {
        let made = move |database: Opened| {
            let edit = edit(&database)?;
            Ok((database.clear_secret(&edit, mode), edit))
        };
        let (password, mut edit) = context.with_database(made).await?;
        if let Some(password) = password {
            edit.secret = passwords::hash(context, &password).await?;
        }
        return submit(context, move |database| Ok(database.update(vec![edit], mode)?)).await;
    }
    submit(context, move |database| Ok(database.update(vec![edit(database)?], mode)?)).await
}

/// `?folder=`: the folders that a document is put into as it is stored.
pub(crate) fn folders(context: &Context) -> Vec<FolderChange> {
    // Who changes their own document among CouchDB's users changes nothing else.
    let is_own = context.address.users.as_ref().is_some_and(|users| users.is_own);
    let named = context.query.iter().filter(|(name, _)| *name == "folder" && !is_own);
    named.map(|(_, folder)| FolderChange::Add { folder: folder.text().into_owned() }).collect()
}

async fn submit(
    context: &Context,
    update: impl FnOnce(&Opened) -> Result<Update> + Send + 'static,
) -> Result<Updated> {
    let first = submit_all(context, update).await?.into_iter().next();
    Ok(first.ok_or_else(|| HttpError::internal("The update has no result."))??)
}

/// `?read_by=`: who has read the documents that are stored. An administrator may say it of anybody.
pub(crate) fn read_by(context: &Context) -> Result<Option<Arc<str>>> {
    let Some(person) = context.query.get("read_by") else { return Ok(None) };
    if context.identity.name() != Some(person) && !context.identity.is_administrator() {
        return Err(HttpError::forbidden("Only an administrator can say what somebody else has read."));
    }
    Ok(Some(Arc::from(person)))
}

/// Submits an update on the worker pool; the sync is waited for without holding a thread there, and
/// the transaction stays admitted until it is answered.
pub(crate) async fn submit_all<T: Send + 'static>(
    context: &Context,
    update: impl FnOnce(&Opened) -> Result<Update<T>> + Send + 'static,
) -> Result<Vec<scrinium_database::Result<T>>> {
    let (admission, submitted) = context.admitted(move |database| update(&database)).await?;
    let results = submitted.durable().await?;
    drop(admission);
    Ok(results)
}

/// 201 with the document's address.
pub(crate) fn created(context: &Context, updated: &Updated) -> Response<Body> {
    let mut response = response::updated(StatusCode::CREATED, &updated.id, &updated.revision);
    locate(context, &mut response, &updated.id, None);
    response
}

/// Sets `Location` to a document, whose prefix is a segment of its own, or to an attachment of it.
pub(crate) fn locate(context: &Context, response: &mut Response<Body>, id: &str, attachment: Option<&str>) {
    let mut segments = vec![context.shown_database_name()];
    match id.split_once('/') {
        Some((prefix @ ("_design" | "_local"), name)) => segments.extend([prefix, name]),
        _ => segments.push(id),
    }
    segments.extend(attachment);
    context.locate(response, &segments);
}

/// Refuses a design document of somebody who may write others; for requests whose address does not name the document.
pub(crate) fn check_design(database: &Opened, id: &str) -> Result<()> {
    if id.starts_with(DESIGN_PREFIX) && database.level() < Level::Designer {
        return Err(access::not_designer());
    }
    Ok(())
}

/// `new_edits=false` brings revisions from elsewhere.
pub(crate) fn mode(context: &Context) -> EditMode {
    match context.query.get("new_edits") {
        Some("false") => EditMode::Replicated,
        _ => EditMode::Interactive,
    }
}

/// The `_id` of a document's JSON. An id that is no text is left for the database to refuse.
pub(crate) fn id_of(json: &[u8]) -> Result<Option<String>> {
    let text = std::str::from_utf8(json).map_err(|_| HttpError::invalid_json())?;
    let members = json::members(text, json::NESTING_MAX)?
        .ok_or_else(|| HttpError::bad_request("Document must be a JSON object"))?;
    let Some((_, id)) = members.into_iter().find(|(name, _)| name == "_id") else { return Ok(None) };
    match json::string(id) {
        Some(id) => Ok(Some(id.into_owned())),
        None => Err(HttpError::new(StatusCode::BAD_REQUEST, "illegal_docid", "Document id must be a string")),
    }
}
