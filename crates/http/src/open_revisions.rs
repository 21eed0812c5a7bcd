//! Several revisions of one document: `GET /{db}/{id}?open_revs=`.

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use scrinium_database::{OpenRevision, OpenRevisions, ReadOptions};
use scrinium_document::json::JsonWriter;

use crate::access::Opened;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::query;
use crate::related::{Bundle, Segments};
use crate::response::{self, Body};
use crate::stream::{self, Begun};
use crate::uuid::UuidSequence;

/// Revisions asked for at once.
const MOST_REVISIONS: usize = 10_000;

/// As a JSON array, or as `multipart/mixed` where the client asks for that by name.
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
    if !context.accepts_explicitly("multipart/mixed") {
        let (length, begun) = context
            .with_database(move |database| {
                let found = database.open_revisions(&id, &which, &options)?;
                stream::begin_whole(array(&found))
            })
            .await?;
        return Ok(response::json_body(StatusCode::OK, begun.into_body(context, Some(length))?));
    }
    let boundary = context.state.uuids.next();
    let (delimiter, state) = (boundary.clone(), context.state.clone());
    let (length, begun) = context
        .with_database(move |database| mixed(&database, &id, &which, &options, &delimiter, &state.uuids))
        .await?;
    let body = begun.into_body(context, Some(length))?;
    let mut response = response::json_body(StatusCode::OK, body);
    if let Ok(kind) = HeaderValue::try_from(format!("multipart/mixed; boundary=\"{boundary}\"")) {
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
    Ok(response)
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
fn mixed(
    database: &Opened,
    id: &str,
    which: &OpenRevisions,
    options: &ReadOptions,
    boundary: &str,
    uuids: &UuidSequence,
) -> Result<(u64, Begun<Segments>)> {
    let stubs = ReadOptions {
        attachments: false,
        attachments_since: None,
        revisions: options.revisions || options.attachments_since.is_some(),
        ..options.clone()
    };
    let with_contents = options.attachments || options.attachments_since.is_some();
    let mut segments = Segments::default();
    for revision in database.open_revisions(id, which, if with_contents { &stubs } else { options })? {
        segments.text(&format!("\r\n--{boundary}\r\n"));
        match revision {
            OpenRevision::Missing(revision) => {
                let mut text = JsonWriter::new();
                text.literal("Content-Type: application/json; error=\"true\"\r\n\r\n");
                text.literal("{\"missing\":").string(&revision).literal("}");
                segments.text(text.as_str());
            }
            OpenRevision::Found(document) if with_contents => {
                let bundle = Bundle::of(database, document, options)?;
                if bundle.is_alone() {
                    segments.text(&format!("Content-Type: application/json\r\n\r\n{}", bundle.json()));
                } else {
                    let inner = uuids.next();
                    segments.text(&format!("Content-Type: multipart/related; boundary=\"{inner}\"\r\n\r\n"));
                    bundle.push(&mut segments, &inner);
                }
            }
            OpenRevision::Found(document) => {
                segments.text(&format!("Content-Type: application/json\r\n\r\n{}", document.json));
            }
        }
    }
    segments.text(&format!("\r\n--{boundary}--"));
    Ok((segments.length(), stream::begin(segments)?))
}
