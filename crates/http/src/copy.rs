//! COPY: a document under another id, on the server.

use http::{HeaderName, Response};
use percent_encoding::percent_decode_str;
use scrinium_database::{Edit, EditMode, NewAttachment, ReadOptions};
use scrinium_document::json::JsonWriter;
use scrinium_document::{fit_attachment_name, shown_media_type};
use serde_json::{Map, Value};

use crate::access::Opened;
use crate::body::parse_json;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::Body;
use crate::{related, write};

/// Read of an attachment at once.
const PIECE_BYTES: usize = 256 << 10;

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
    let named = revision.is_some();
    let document = database.read(source, &ReadOptions { revision, ..ReadOptions::default() })?;
    let mut json = JsonWriter::with_capacity(document.json.len());
    let mut attachments = Vec::new();
    for (name, value) in related::document_members(&document.json)? {
        if name == "_attachments" {
            for name in parse_json::<Map<String, Value>>(value.as_str().as_bytes())?.keys() {
                let revision = Some(document.revision.as_str()).filter(|_| named);
                attachments.push(attachment(database, source, name, revision)?);
            }
        } else if !name.starts_with('_') {
            json.literal(if json.is_empty() { "{" } else { "," }).string(&name).literal(":").part(value);
        }
    }
    json.literal(if json.is_empty() { "{}" } else { "}" });
    Ok(Edit { json: json.into(), attachments, ..Edit::default() })
}

/// An attachment of the winner is shared; that of another revision is read and stored again, which finds
/// the same content.
fn attachment(database: &Opened, id: &str, name: &str, revision: Option<&str>) -> Result<NewAttachment> {
    if revision.is_none() {
        return Ok(database.share_attachment(id, name)?);
    }
    let reader = database.open_attachment(id, name, revision)?;
    let mut upload = database.upload(&reader.content_type);
    let mut offset = 0;
    while offset < reader.length {
        let bytes = reader.read(offset, PIECE_BYTES)?;
        if bytes.is_empty() {
            return Err(HttpError::internal("An attachment is shorter than its document says."));
        }
        upload.write(&bytes)?;
        offset += bytes.len() as u64;
    }
    let (name, content_type) = (fit_attachment_name(&reader.name), shown_media_type(&reader.content_type));
    Ok(NewAttachment {
        name: name.into_owned(),
        content_type: content_type.to_owned(),
        content: upload.finish()?,
    })
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
