//! Reading a document.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Response, StatusCode};
use md5::{Digest as _, Md5};
use scrinium_database::{Document, ReadOptions};
use scrinium_document::json::JsonWriter;

use crate::access::Opened;
use crate::context::Context;
use crate::error::Result;
use crate::response::{self, Body};
use crate::stream::{self, Begun};
use crate::{open_revisions, query, related, users};

/// `GET /{db}/{id}` in all its forms.
pub(crate) async fn get(context: &Context) -> Result<Response<Body>> {
    if let Some(name) = users::translated(context) {
        return Box::pin(users::get(context, name)).await;
    }
    if users::is_auth(context) {
        return Box::pin(users::auth(context)).await;
    }
    if context.query.get("open_revs").is_some() {
        return Box::pin(open_revisions::get(context)).await;
    }
    let options = query::read_options(&context.query)?;
    if options.gives_contents() && context.accepts("multipart/related") {
        return Box::pin(related::get(context, options)).await;
    }
    let tagged = is_plain(&options);
    let wanted = context.address.document_id()?;
    let found =
        context.with_database(move |database| FoundDocument::of(database.read(&wanted, &options)?)).await?;
    let (revision, begun, length) = match found {
        FoundDocument::Whole(document) => return Ok(whole(context, document, tagged)),
        FoundDocument::WithContents { revision, begun, length } => (revision, begun, length),
    };
    if tagged && context.knows(&revision) {
        return Ok(response::not_modified(&revision));
    }
    let mut response = response::json_body(StatusCode::OK, begun.into_body(context, Some(length))?);
    if tagged {
        response::insert_etag(response.headers_mut(), &revision);
    }
    Ok(response)
}

/// A document as it was read.
pub(crate) enum FoundDocument {
    Whole(Document),
    /// With attachments in it, which are read as it is sent.
    WithContents {
        revision: String,
        begun: Box<Begun<stream::Whole>>,
        length: u64,
    },
}

impl FoundDocument {
    pub(crate) fn of(document: Document) -> Result<Self> {
        if !document.json.has_contents() {
            return Ok(Self::Whole(document));
        }
        let mut text = JsonWriter::from(document.json);
        text.literal("\n");
        let (length, begun) = stream::begin_whole(text)?;
        Ok(Self::WithContents { revision: document.revision, begun: Box::new(begun), length })
    }
}

/// `GET /{db}/_local/{id}`.
pub(crate) async fn get_local(context: &Context) -> Result<Response<Body>> {
    let wanted = context.address.document_id()?;
    let read = move |database: Opened| Ok(database.read_local(&wanted)?);
    let document = context.with_database(read).await?;
    // Its revision says nothing of what is in it: one that was deleted and made again starts over.
    let tag = STANDARD.encode(Md5::digest(document.json.as_bytes()));
    if context.knows(&tag) {
        return Ok(response::not_modified(&tag));
    }
    let mut response = response::json_text(StatusCode::OK, document.json);
    response::insert_etag(response.headers_mut(), &tag);
    Ok(response)
}

/// A document as the whole body, without an ETag.
pub(crate) fn untagged(context: &Context, found: FoundDocument) -> Result<Response<Body>> {
    match found {
        FoundDocument::Whole(document) => Ok(response::json_text(StatusCode::OK, document.json)),
        FoundDocument::WithContents { begun, length, .. } => {
            Ok(response::json_body(StatusCode::OK, begun.into_body(context, Some(length))?))
        }
    }
}

/// The document as the whole body; its revision is the ETag unless it comes with what may change while
/// the revision stays (as CouchDB has it).
fn whole(context: &Context, document: Document, tagged: bool) -> Response<Body> {
    if tagged && context.knows(&document.revision) {
        return response::not_modified(&document.revision);
    }
    let mut response = response::json_text(StatusCode::OK, document.json);
    if tagged {
        response::insert_etag(response.headers_mut(), &document.revision);
    }
    response
}

/// Whether the revision alone says what the answer is.
pub(crate) const fn is_plain(options: &ReadOptions) -> bool {
    !(options.revisions_info || options.conflicts || options.deleted_conflicts || options.local_sequence)
}
