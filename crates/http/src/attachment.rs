//! Attachments by themselves: `/{db}/{id}/{name}`.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, HeaderName, HeaderValue,
    IF_RANGE, RANGE, VARY,
};
use http::{Response, StatusCode};
use scrinium_contents::Content;
use scrinium_database::{AttachmentReader, DatabaseError, Edit, EditMode, Level, NewAttachment, ReadOptions};
use scrinium_document::shown_media_type;

use crate::access::Opened;
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::gzip;
use crate::range::{self, Wanted};
use crate::related::Segments;
use crate::response::{self, Body};
use crate::stream::{self, Begun};
use crate::upload::{Inlet, check_digest};
use crate::write;

/// What an attachment is unless its client says.
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// Read from the store at once.
const PIECE_BYTES: usize = 128 << 10;

const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
const POLICY: HeaderName = HeaderName::from_static("content-security-policy");

/// What was found of an attachment that is asked for.
enum FoundAttachment {
    Known { digest: String },
    Outside { length: u64 },
    Part(Box<Part>),
}

struct Part {
    /// Of the answer: that of the attachment, or of a body with several parts of it.
    content_type: String,
    digest: String,
    /// Bytes of the answer.
    length: u64,
    /// Says which bytes it is, where it is some of them.
    range: Option<String>,
    is_whole: bool,
    form: Form,
    begun: Begun<Segments>,
}

/// In which form an attachment goes out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As it is stored.
    Plain,
    /// It came as gzip, and goes out so.
    Gzip,
    /// It came as gzip, and the client does not take that.
    Decoded,
}

/// `GET /{db}/{id}/{name}`, in part where `Range` says so.
pub(crate) async fn get(context: &Context) -> Result<Response<Body>> {
    let (id, name) = (context.address.document_id()?, context.address.value("attname")?.to_owned());
    let revision = context.query.get("rev").map(str::to_owned);
    let asked = Asked {
        range: context.header(&RANGE).map(str::to_owned),
        if_range: context.header(&IF_RANGE).map(|tag| tag.trim_matches('"').to_owned()),
        takes_gzip: gzip::is_taken(&context.headers),
        known: context.headers.get_all(http::header::IF_NONE_MATCH).iter().cloned().collect(),
    };
    let boundary = context.state.uuids.next();
    let found = context
        .with_database(move |database| {
            let reader = database.open_attachment(&id, &name, revision.as_deref())?;
            find(reader, &asked, &boundary)
        })
        .await?;
    match found {
        FoundAttachment::Known { digest } => Ok(response::not_modified(&digest)),
        FoundAttachment::Outside { length } => Err(HttpError::range_not_satisfiable(length)),
        FoundAttachment::Part(part) => answer(context, *part),
    }
}

struct Asked {
    range: Option<String>,
    if_range: Option<String>,
    takes_gzip: bool,
    known: Vec<HeaderValue>,
}

fn find(reader: AttachmentReader, asked: &Asked, boundary: &str) -> Result<FoundAttachment> {
    let digest = reader.digest.strip_prefix("md5-").unwrap_or(&reader.digest).to_owned();
    if crate::context::any_tag(asked.known.iter(), &digest) {
        return Ok(FoundAttachment::Known { digest });
    }
    let (reader, form) = match reader.encoded_length {
        None => (reader, Form::Plain),
        Some(_) if asked.takes_gzip => (reader.into_encoded(), Form::Gzip),
        Some(_) => (reader, Form::Decoded),
    };
    let length = reader.length;
    let fresh = asked.if_range.as_ref().is_none_or(|tag| *tag == digest);
    let mut content_type = reader.content_type.clone();
    let (reader, mut segments) = (Arc::new(reader), Segments::default());
    let (mut range, mut is_whole) = (None, false);
    // Of what has to be decoded no parts are given, as in CouchDB: for the last byte all the others would be decoded.
    let has_ranges = fresh && form == Form::Plain;
    match range::wanted(asked.range.as_deref().filter(|_| has_ranges), length) {
        Wanted::Outside => return Ok(FoundAttachment::Outside { length }),
        Wanted::Whole => {
            is_whole = true;
            segments.attachment(reader, 0, length);
        }
        Wanted::Parts(parts) => match parts.as_slice() {
            [(from, to)] => {
                range = Some(content_range(*from, *to, length));
                segments.attachment(reader, *from, *to);
            }
            parts => {
                push_ranges(&mut segments, &reader, parts, boundary);
                content_type = format!("multipart/byteranges; boundary=\"{boundary}\"");
            }
        },
    }
    let length = segments.length();
    let begun = stream::begin(segments)?;
    Ok(FoundAttachment::Part(Box::new(Part { content_type, digest, length, range, is_whole, form, begun })))
}

/// RFC 9110 §14.4.
fn content_range(from: u64, to: u64, length: u64) -> String {
    format!("bytes {from}-{}/{length}", to.saturating_sub(1))
}

/// Several ranges, each a part with its place (RFC 9110 §14.6).
fn push_ranges(
    segments: &mut Segments,
    reader: &Arc<AttachmentReader>,
    parts: &[(u64, u64)],
    boundary: &str,
) {
    segments.text(&format!("--{boundary}"));
    for (from, to) in parts {
        segments.text(&format!(
            "\r\nContent-Type: {}\r\nContent-Range: {}\r\n\r\n",
            shown_media_type(&reader.content_type),
            content_range(*from, *to, reader.length)
        ));
        segments.attachment(Arc::clone(reader), *from, *to);
        segments.text(&format!("\r\n--{boundary}"));
    }
    segments.text("--");
}

fn answer(context: &Context, part: Part) -> Result<Response<Body>> {
    let body = part.begun.into_body(context, Some(part.length))?;
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let kind = HeaderValue::try_from(part.content_type);
    headers.insert(CONTENT_TYPE, kind.unwrap_or(HeaderValue::from_static(UNKNOWN_TYPE)));
    headers.insert(CACHE_CONTROL, response::MUST_REVALIDATE);
    let ranges = if part.form == Form::Plain { "bytes" } else { "none" };
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static(ranges));
    if part.form == Form::Gzip {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if part.form != Form::Plain {
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    }
    // Somebody else's HTML must not act as the one who looks at it.
    headers.insert(POLICY, HeaderValue::from_static("sandbox"));
    response::insert_etag(headers, &part.digest);
    if let Some(range) = part.range.and_then(|range| HeaderValue::try_from(range).ok()) {
        headers.insert(CONTENT_RANGE, range);
    }
    if part.is_whole {
        // RFC 1864: of the body as it goes out.
        if part.form != Form::Decoded
            && let Ok(digest) = HeaderValue::try_from(part.digest)
        {
            headers.insert(CONTENT_MD5, digest);
        }
    } else {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(response)
}

/// A part of an attachment, read in pieces.
pub(crate) struct AttachmentPart {
    pub(crate) reader: Arc<AttachmentReader>,
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

/// `PUT /{db}/{id}/{name}?rev=`.
pub(crate) async fn put(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    // What comes as gzip is stored so, and decoded for clients that do not take it.
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
    let (name, owned) = (name, name.to_owned());
    let declared = context.header(&CONTENT_MD5).map(str::to_owned);
    let updated = write::store(context, EditMode::Interactive, move |database| {
        let name = owned;
        check_revision(database, &wanted, revision.as_deref())?;
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
    let mut response = response::updated(StatusCode::CREATED, &updated.id, &updated.revision);
    write::locate(context, &mut response, &updated.id, Some(name));
    Ok(response)
}

/// Refuses a revision that nobody knows, as CouchDB does for attachments; one that was superseded is a conflict. Who may
/// read nothing learns nothing of it.
fn check_revision(database: &Opened, id: &str, revision: Option<&str>) -> Result<()> {
    let Some(revision) = revision.filter(|_| database.level() >= Level::Reader) else { return Ok(()) };
    let asked = [(id.to_owned(), vec![revision.to_owned()])];
    let unknown = database.revisions_difference(&asked)?;
    if unknown.is_empty() { Ok(()) } else { Err(HttpError::missing_revision()) }
}

/// `DELETE /{db}/{id}/{name}?rev=`.
pub(crate) async fn delete(context: &Context) -> Result<Response<Body>> {
    let revision = context.revision()?;
    let (id, name) = (context.address.document_id()?, context.address.value("attname")?.to_owned());
    let updated = write::store(context, EditMode::Interactive, move |database| {
        check_revision(database, &id, revision.as_deref())?;
        let options = ReadOptions { revision: revision.clone(), ..ReadOptions::default() };
        match database.read(&id, &options) {
            Err(DatabaseError::NotFound { .. }) if revision.is_some() => {
                return Err(DatabaseError::Conflict.into());
            }
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
