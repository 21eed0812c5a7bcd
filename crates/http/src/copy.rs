//! COPY: a document under another id, on the server.

use http::{HeaderName, Response};
use percent_encoding::percent_decode_str;
use scrinium_database::{Edit, EditMode, ReadOptions};
use scrinium_document::json::JsonWriter;
use serde_json::{Map, Value};

use crate::access::Opened;
use crate::body::parse_json;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::Body;
use crate::{related, write};

const DESTINATION: HeaderName = HeaderName::from_static("destination");

/// `COPY /{db}/{id}` with the header `Destination: other?rev=…`.
pub(crate) async fn copy(context: &Context) -> Result<Response<Body>> {
    let (target, target_revision) = destination(context)?;
    let source = context.address.document_id()?;
    let source_revision = context.query.get("rev").map(str::to_owned);
    let updated = write::store(context, EditMode::Interactive, move |database| {
        write::check_design(database, &target)?;
        let edit = edit(database, &source, source_revision)?;
        Ok(Edit { id: Some(target), revision: target_revision, ..edit })
    })
    .await?;
    Ok(write::created(context, &updated))
}

/// The edit that makes what `source` is. Blocks.
fn edit(database: &Opened, source: &str, revision: Option<String>) -> Result<Edit> {
    let document = database.read(source, &ReadOptions { revision, ..ReadOptions::default() })?;
    let mut json = JsonWriter::with_capacity(document.json.len());
    let mut attachments = Vec::new();
    for (name, value) in related::document_members(&document.json)? {
        if name == "_attachments" {
            for name in parse_json::<Map<String, Value>>(value.as_str().as_bytes())?.keys() {
                // However long they are, none is read: they are shared.
                attachments.push(database.share_attachment(source, name, Some(&document.revision))?);
            }
        } else if !name.starts_with('_') {
            json.literal(if json.is_empty() { "{" } else { "," }).string(&name).literal(":").part(value);
        }
    }
    json.literal(if json.is_empty() { "{}" } else { "}" });
    Ok(Edit { json: json.into(), attachments, ..Edit::default() })
}

/// The id and revision that the document is copied to.
fn destination(context: &Context) -> Result<(String, Option<String>)> {
    let header = context
        .header(&DESTINATION)
        .ok_or_else(|| HttpError::bad_request("Destination header is mandatory for COPY."))?;
    if header.starts_with("http://") || header.starts_with("https://") {
        return Err(HttpError::bad_request("Destination URL must be relative."));
    }
    let (path, query) = header.split_once('?').map_or((header, None), |(path, query)| (path, Some(query)));
    let decoded = percent_decode_str(path.trim_start_matches('/')).decode_utf8();
    let id = decoded.map_err(|_| HttpError::bad_request("The destination is not UTF-8 once decoded."))?;
    if id.is_empty() {
        return Err(HttpError::bad_request("Destination header is mandatory for COPY."));
    }
    let revision = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("rev=")));
    Ok((id.into_owned(), revision.map(str::to_owned)))
}
