//! Attachments by themselves: `/{db}/{id}/{name}`.

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, HeaderName, HeaderValue, IF_RANGE, RANGE,
};
use http::{Response, StatusCode};
use scrinium_database::{
    AttachmentReader, Content, DatabaseError, Edit, EditMode, NewAttachment, ReadOptions,
};

use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::range::{self, Wanted};
use crate::response::{self, Body};
use crate::stream::{self, Begun, Piece, Source};
use crate::upload::{Inlet, check_digest};
use crate::write;

/// What an attachment is unless its client says.
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// Read from the store at once.
const PIECE_BYTES: usize = 128 << 10;

const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
const POLICY: HeaderName = HeaderName::from_static("content-security-policy");

/// What was found of an attachment that is asked for.
enum Found {
    Known { digest: String },
    Outside { length: u64 },
    Part(Box<Part>),
}

struct Part {
    content_type: String,
    digest: String,
    length: u64,
    /// First offset and the one behind the last.
    bounds: (u64, u64),
    partial: bool,
    begun: Begun<AttachmentPart>,
}

/// `GET /{db}/{id}/{name}`, in part where `Range` says so.
pub(crate) async fn get(context: &Context) -> Result<Response<Body>> {
    let (id, name) = (context.address.document_id()?, context.address.value("attname")?.to_owned());
    let revision = context.query.get("rev").map(str::to_owned);
    let asked = Asked {
        range: context.header(&RANGE).map(str::to_owned),
        if_range: context.header(&IF_RANGE).map(|tag| tag.trim_matches('"').to_owned()),
        known: context.headers.get_all(http::header::IF_NONE_MATCH).iter().cloned().collect(),
    };
    let found = context
        .with_database(move |database| {
            find(database.open_attachment(&id, &name, revision.as_deref())?, &asked)
        })
        .await?;
    match found {
        Found::Known { digest } => Ok(response::not_modified(&digest)),
        Found::Outside { length } => Err(HttpError::range_not_satisfiable(length)),
        Found::Part(part) => answer(context, *part),
    }
}

struct Asked {
    range: Option<String>,
    if_range: Option<String>,
    known: Vec<HeaderValue>,
}

fn find(reader: AttachmentReader, asked: &Asked) -> Result<Found> {
    let digest = reader.digest.strip_prefix("md5-").unwrap_or(&reader.digest).to_owned();
    if crate::context::any_tag(asked.known.iter(), &digest) {
        return Ok(Found::Known { digest });
    }
    let length = reader.length;
    let fresh = asked.if_range.as_ref().is_none_or(|tag| *tag == digest);
    let (bounds, partial) = match range::wanted(asked.range.as_deref().filter(|_| fresh), length) {
        Wanted::Whole => ((0, length), false),
        Wanted::Part(from, to) => ((from, to), true),
        Wanted::Outside => return Ok(Found::Outside { length }),
    };
    let content_type = reader.content_type.clone();
    let begun = stream::begin(AttachmentPart { reader, offset: bounds.0, end: bounds.1 })?;
    Ok(Found::Part(Box::new(Part { content_type, digest, length, bounds, partial, begun })))
}

fn answer(context: &Context, part: Part) -> Result<Response<Body>> {
    let (from, to) = part.bounds;
    let body = part.begun.into_body(context, Some(to - from))?;
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let kind = HeaderValue::try_from(part.content_type);
    headers.insert(CONTENT_TYPE, kind.unwrap_or(HeaderValue::from_static(UNKNOWN_TYPE)));
    headers.insert(CACHE_CONTROL, response::MUST_REVALIDATE);
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    // Somebody else's HTML must not act as the one who looks at it.
    headers.insert(POLICY, HeaderValue::from_static("sandbox"));
    response::insert_etag(headers, &part.digest);
    if part.partial {
        let range = format!("bytes {from}-{}/{}", to.saturating_sub(1), part.length);
        if let Ok(range) = HeaderValue::try_from(range) {
            headers.insert(CONTENT_RANGE, range);
        }
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    } else if let Ok(digest) = HeaderValue::try_from(part.digest) {
        headers.insert(CONTENT_MD5, digest);
    }
    Ok(response)
}

/// A part of an attachment, read in pieces.
pub(crate) struct AttachmentPart {
    pub(crate) reader: AttachmentReader,
    pub(crate) offset: u64,
    pub(crate) end: u64,
}

impl AttachmentPart {
    /// The next bytes. Blocks.
    pub(crate) fn read(&mut self) -> Result<Bytes> {
        let left = self.end.saturating_sub(self.offset);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let bytes = if wanted == 0 { Bytes::new() } else { self.reader.read(self.offset, wanted)? };
        if bytes.is_empty() && left > 0 {
            return Err(HttpError::internal("An attachment is shorter than its document says."));
        }
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    pub(crate) const fn is_at_end(&self) -> bool {
        self.offset >= self.end
    }
}

impl Source for AttachmentPart {
    fn next_piece(&mut self) -> Result<Piece> {
        let bytes = self.read()?;
        Ok(Piece::of_bytes(bytes, self.is_at_end()))
    }
}

/// `PUT /{db}/{id}/{name}?rev=`.
pub(crate) async fn put(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    // Stored as what it is, so that everybody can read it, however it came.
    let encoding = body.encoding();
    let name = context.address.value("attname")?;
    validate_name(name)?;
    let (wanted, revision) = (context.address.document_id()?, context.revision()?);
    let content_type = context.header(&CONTENT_TYPE).unwrap_or(UNKNOWN_TYPE).to_owned();
    let opened = context.with_database(Ok).await?;
    let mut inlet = Inlet::new(opened, &content_type, encoding);
    while let Some(bytes) = body.next().await? {
        inlet.push(context, &bytes).await?;
    }
    inlet.settle().await?;
    let name = name.to_owned();
    let declared = context.header(&CONTENT_MD5).map(str::to_owned);
    let updated = write::store(context, EditMode::Interactive, move |_| {
        let content: Content = inlet.finish()?;
        check_digest(&content, declared.as_deref())?;
        Ok(Edit {
            id: Some(wanted),
            revision,
            attachments: vec![NewAttachment { name, content_type, content }],
            attachments_only: true,
            ..Edit::default()
        })
    })
    .await?;
    Ok(write::created(context, &updated))
}

/// `DELETE /{db}/{id}/{name}?rev=`.
pub(crate) async fn delete(context: &Context) -> Result<Response<Body>> {
    let revision = context.revision()?;
    let (id, name) = (context.address.document_id()?, context.address.value("attname")?.to_owned());
    let updated = write::store(context, EditMode::Interactive, move |database| {
        // A document that is not there, or not in this revision, is a conflict; only the attachment's own
        // absence is 404.
        let options = ReadOptions { revision: revision.clone(), ..ReadOptions::default() };
        match database.read(&id, &options) {
            Err(DatabaseError::NotFound { .. }) => return Err(DatabaseError::Conflict.into()),
            read => drop(read?),
        }
        database.open_attachment(&id, &name, revision.as_deref())?;
        let remove_attachments = vec![name];
        Ok(Edit { id: Some(id), revision, remove_attachments, attachments_only: true, ..Edit::default() })
    })
    .await?;
    Ok(response::updated(StatusCode::OK, &updated.id, &updated.revision))
}

/// CouchDB keeps names with a leading underscore for itself.
fn validate_name(name: &str) -> Result<()> {
    if name.starts_with('_') {
        let reason = format!("Attachment name '{name}' starts with prohibited character '_'");
        return Err(HttpError::bad_request(reason));
    }
    Ok(())
}
