//! Several revisions of one document: `GET /{db}/{id}?open_revs=`.

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use scrinium_database::{OpenRevision, OpenRevisions, ReadOptions};
use scrinium_document::json::JsonWriter;

use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::query;
use crate::response::{self, Body};
use crate::revision_parts::{PartStyle, RevisionParts, WantedRevisions};
use crate::stream;

/// Revisions asked for at once.
const MOST_REVISIONS: usize = 10_000;

/// As `multipart/mixed`, with the contents of attachments but for those that `atts_since` leaves out, or as a JSON array
/// where the client does not take that.
pub(crate) async fn get(context: &Context) -> Result<Response<Body>> {
    let which = match context.query.get("open_revs") {
        Some("all") => OpenRevisions::All,
        text => OpenRevisions::These(query::revision_list(text.unwrap_or("[]"))?),
    };
    if matches!(&which, OpenRevisions::These(revisions) if revisions.len() > MOST_REVISIONS) {
        return Err(HttpError::bad_request("`open_revs` has too many members."));
    }
    let options = query::read_options(&context.query)?;
    let id = context.address.document_id()?;
    if context.accepts("multipart/mixed") {
        return mixed(context, id, which, options).await;
    }
    let (length, begun) = context
        .with_database(move |database| {
            let found = database.open_revisions(&id, &which, &options)?;
            stream::begin_whole(array(&found))
        })
        .await?;
    Ok(response::json_body(StatusCode::OK, begun.into_body(context, Some(length))?))
}

fn array(found: &[OpenRevision]) -> JsonWriter {
    let mut text = JsonWriter::new();
    text.literal("[");
    for (number, revision) in found.iter().enumerate() {
        text.literal(if number > 0 { "," } else { "" });
        match revision {
            OpenRevision::Found(document) => {
                text.literal("{\"ok\":");
                text.json(&document.json);
            }
            OpenRevision::Missing(revision) => {
                text.literal("{\"missing\":");
                text.string(revision);
            }
        }
        text.literal("}");
    }
    text.literal("]\n");
    text
}

/// Each revision a part; one with attachments is a multipart body of its own.
async fn mixed(
    context: &Context,
    id: String,
    which: OpenRevisions,
    options: ReadOptions,
) -> Result<Response<Body>> {
    let boundary = context.state.uuids.next();
    let (delimiter, state) = (boundary.clone(), context.state.clone());
    let begun = context
        .with_database(move |database| {
            let wanted = WantedRevisions { id, which, attachments_since: None };
            let documents = [Ok(wanted)].into();
            let parts = ((database, state), options, delimiter);
            stream::begin(RevisionParts::new(parts, PartStyle::OfDocument, documents))
        })
        .await?;
    let mut response = response::json_body(StatusCode::OK, begun.into_body(context, None)?);
    if let Ok(kind) = HeaderValue::try_from(format!("multipart/mixed; boundary=\"{boundary}\"")) {
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
    Ok(response)
}
