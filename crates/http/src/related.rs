//! A document and its attachments in one multipart body, in and out, as replicators send them.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use md5::{Digest as _, Md5};
use scrinium_contents::Content;
use scrinium_database::{AttachmentReader, Document, Edit, NewAttachment, ReadOptions};
use scrinium_document::json::{self, JsonPart, JsonText, JsonWriter};
use scrinium_document::shown_media_type;
use serde_json::{Map, Value};

use crate::access::Opened;
use crate::attachment::AttachmentPart;
use crate::body::{RequestBody, parse_json};
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::gzip::Encoding;
use crate::multipart::{Event, Parser, PartHead};
use crate::response::{self, Body, PIECE_BYTES};
use crate::stream::{self, Piece, Source};
use crate::upload::Inlet;
use crate::{document, write};

/// `PUT /{db}/{id}` with `Content-Type: multipart/related`: the document, then the attachments that its
/// stubs say follow, in their order or named by `Content-Disposition`.
pub(crate) async fn put(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let boundary = Parser::boundary(context.header(&CONTENT_TYPE).unwrap_or(""))?;
    let (id, revision) = (context.address.document_id()?, context.revision()?);
    let opened = context.with_database(Ok).await?;
    let most = context.state.databases.options().document_max_bytes;
    let mut parts = Parts { parser: Parser::new(&boundary), body };
    let json = parts.document(most).await?;
    parts.body.cover_values(&json)?;
    let (mut expected, json) = context.state.run(move || Ok((Expectations::of(&json)?, json))).await?;
    let mut attachments = Vec::new();
    while let Some(head) = parts.next_part().await? {
        let Expected { name, content_type, encoding, mut check } = expected.take(&head)?;
        let mut inlet = Inlet::new(opened.clone(), &content_type, encoding);
        while let Some(bytes) = parts.data().await? {
            check.take(&bytes)?;
            inlet.push(context, &bytes).await?;
        }
        check.end()?;
        // Stored at once, so that many attachments do not wait in memory for each other.
        inlet.settle().await?;
        let content = context.state.run(move || inlet.finish()).await?;
        check.inflated(&content)?;
        attachments.push(NewAttachment { name, content_type, content });
    }
    if let Some(Expected { name, .. }) = expected.next() {
        return Err(HttpError::bad_request(format!("The attachment `{name}` is missing from the body.")));
    }
    drop(opened);
    let tag = context.tag_alone();
    let edit = Edit { id: Some(id), json, revision, attachments, ..Edit::default() };
    let updated = write::store(context, write::mode(context), move |_| {
        write::check_tag(&edit.json, tag.as_deref())?;
        Ok(edit)
    })
    .await?;
    Ok(write::created(context, &updated))
}

/// The parts of a request's body.
struct Parts<'a> {
    parser: Parser,
    body: &'a mut RequestBody,
}

impl Parts<'_> {
    async fn next_event(&mut self) -> Result<Event> {
        loop {
            match self.parser.next()? {
                Event::Starved => match self.body.next().await? {
                    Some(bytes) => self.parser.push(&bytes),
                    None => return Err(HttpError::bad_request("The multipart body ends too early.")),
                },
                event => return Ok(event),
            }
        }
    }

    /// The first part: the document's JSON, of at most this many bytes.
    async fn document(&mut self, most: usize) -> Result<Bytes> {
        if self.next_part().await?.is_none() {
            return Err(HttpError::bad_request("The multipart body has no parts."));
        }
        let mut json = Vec::new();
        while let Some(bytes) = self.data().await? {
            let length = json.len() + bytes.len();
            if length > most {
                return Err(HttpError::document_too_large(most));
            }
            self.body.cover(length).await?;
            json.extend_from_slice(&bytes);
        }
        Ok(Bytes::from(json))
    }

    async fn next_part(&mut self) -> Result<Option<PartHead>> {
        match self.next_event().await? {
            Event::Part(head) => Ok(Some(head)),
            Event::End => {
                // What stands behind the last boundary is read too, or the connection could not be kept.
                while self.body.next().await?.is_some() {}
                Ok(None)
            }
            _ => Err(HttpError::bad_request("The multipart body is malformed.")),
        }
    }

    async fn data(&mut self) -> Result<Option<Bytes>> {
        match self.next_event().await? {
            Event::Data(bytes) => Ok(Some(bytes)),
            _ => Ok(None),
        }
    }
}

/// An attachment that is to follow its document.
struct Expected {
    name: String,
    content_type: String,
    encoding: Encoding,
    check: ContentCheck,
}

/// Holds a content against what its stub says of it, as it comes: length and digest of the bytes that are sent, compressed
/// or not, and the length of what they stand for.
struct ContentCheck {
    length: Option<u64>,
    inflated_length: Option<u64>,
    /// Ignored where CouchDB would not make it.
    digest: Option<String>,
    received: u64,
    md5: Md5,
}

impl ContentCheck {
    fn new(encoding: Encoding, length: Option<u64>, encoded: Option<u64>, digest: Option<&str>) -> Self {
        let is_plain = encoding == Encoding::Identity;
        Self {
            length: if is_plain { length } else { encoded },
            inflated_length: length.filter(|_| !is_plain),
            digest: digest.and_then(|digest| digest.strip_prefix("md5-")).map(str::to_owned),
            received: 0,
            md5: Md5::new(),
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        self.received += bytes.len() as u64;
        if self.length.is_some_and(|length| self.received > length) {
            return Err(HttpError::bad_request("attachment longer than expected"));
        }
        if self.digest.is_some() {
            self.md5.update(bytes);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        if self.length.is_some_and(|length| self.received < length) {
            return Err(HttpError::bad_request("attachment shorter than expected"));
        }
        let digest = STANDARD.encode(std::mem::take(&mut self.md5).finalize());
        match &self.digest {
            Some(expected) if *expected != digest => Err(HttpError::corrupted()),
            _ => Ok(()),
        }
    }

    fn inflated(&self, content: &Content) -> Result<()> {
        let inflated_bytes = content.decoded_length().unwrap_or_else(|| content.length());
        match self.inflated_length {
            Some(length) if length < inflated_bytes => {
                Err(HttpError::bad_request("attachment longer than expected"))
            }
            Some(length) if length > inflated_bytes => {
                Err(HttpError::bad_request("attachment shorter than expected"))
            }
            _ => Ok(()),
        }
    }
}

/// The attachments that the document says follow, in their order.
struct Expectations {
    in_order: VecDeque<Option<Expected>>,
    /// Where one of them stands, by its name.
    places: HashMap<String, usize>,
    /// How many have been taken off the front.
    gone: usize,
}

impl Expectations {
    fn of(json: &[u8]) -> Result<Self> {
        #[derive(serde::Deserialize)]
        struct Stub {
            #[serde(default)]
            follows: Option<Value>,
            encoding: Option<Value>,
            content_type: Option<Value>,
            length: Option<Value>,
            encoded_length: Option<Value>,
            digest: Option<Value>,
        }
        // By the parser that the database takes the document apart with, so that both see the same attachments.
        let text = std::str::from_utf8(json).map_err(|_| HttpError::invalid_json())?;
        let members = json::members(text, json::NESTING_MAX)?.ok_or_else(HttpError::not_object)?;
        let stubs = members.into_iter().find(|(name, _)| name == "_attachments");
        let stubs = stubs.map(|(_, stubs)| json::parse_value(stubs, json::NESTING_MAX)).transpose()?;
        let Some(Value::Object(stubs)) = stubs.or_else(|| Some(Map::new().into())) else {
            return Err(HttpError::bad_request("`_attachments` must be a JSON object"));
        };
        let mut expected = Self { in_order: VecDeque::new(), places: HashMap::new(), gone: 0 };
        for (name, stub) in stubs {
            let Ok(stub) = serde_json::from_value::<Stub>(stub) else { continue };
            if stub.follows != Some(Value::Bool(true)) {
                continue;
            }
            let encoding = stub.encoding.as_ref().and_then(Value::as_str).unwrap_or("identity");
            let encoding = Encoding::named(encoding)?;
            let kind =
                stub.content_type.as_ref().and_then(Value::as_str).unwrap_or("application/octet-stream");
            let content_type = kind.to_owned();
            let number = |value: &Option<Value>| value.as_ref().and_then(Value::as_u64);
            let digest = stub.digest.as_ref().and_then(Value::as_str);
            let check =
                ContentCheck::new(encoding, number(&stub.length), number(&stub.encoded_length), digest);
            expected.places.insert(name.clone(), expected.in_order.len());
            expected.in_order.push_back(Some(Expected { name, content_type, encoding, check }));
        }
        Ok(expected)
    }

    /// Which attachment a part is: the one that its head names, else the next one.
    fn take(&mut self, head: &PartHead) -> Result<Expected> {
        let named = head.file_name.as_ref().and_then(|name| self.places.remove(name));
        let named = named.and_then(|place| self.in_order.get_mut(place.checked_sub(self.gone)?)?.take());
        let taken = match named {
            Some(taken) => Some(taken),
            None => {
                let front = self.next().is_some();
                if front { self.pop_front() } else { None }
            }
        };
        taken.ok_or_else(|| HttpError::bad_request("More attachments follow than the document says."))
    }

    /// The first that has not been taken.
    fn next(&mut self) -> Option<&Expected> {
        while let Some(None) = self.in_order.front() {
            self.in_order.pop_front();
            self.gone += 1;
        }
        self.in_order.front().and_then(Option::as_ref)
    }

    fn pop_front(&mut self) -> Option<Expected> {
        let front = self.in_order.pop_front().flatten()?;
        self.gone += 1;
        self.places.remove(&front.name);
        Some(front)
    }
}

/// `GET /{db}/{id}?attachments=true` (or `atts_since`) with `Accept: multipart/related`.
pub(crate) async fn get(context: &Context, options: ReadOptions) -> Result<Response<Body>> {
    let wanted = context.address.document_id()?;
    let boundary = context.state.uuids.next();
    let delimiter = boundary.clone();
    let tagged = document::is_plain(&options);
    let (revision, parts) = context
        .with_database(move |database| {
            let bundle = Bundle::read(&database, &wanted, &options)?;
            let revision = bundle.revision.clone();
            if bundle.attachments.is_empty() {
                return Ok((revision, Err(bundle.json)));
            }
            let mut segments = Segments::default();
            bundle.push(&mut segments, &delimiter);
            let length = segments.length();
            Ok((revision, Ok((length, stream::begin(segments)?))))
        })
        .await?;
    if tagged && context.knows(&revision) {
        return Ok(response::not_modified(&revision));
    }
    let mut response = match parts {
        Err(json) => response::json_text(StatusCode::OK, json),
        Ok((length, begun)) => {
            let body = begun.into_body(context, Some(length))?;
            let mut response = response::json_body(StatusCode::OK, body);
            if let Ok(kind) = HeaderValue::try_from(format!("multipart/related; boundary=\"{boundary}\"")) {
                response.headers_mut().insert(CONTENT_TYPE, kind);
            }
            response
        }
    };
    if tagged {
        response::insert_etag(response.headers_mut(), &revision);
    }
    Ok(response)
}

/// A document whose attachments' contents go next to its JSON.
pub(crate) struct Bundle {
    revision: String,
    json: JsonText,
    attachments: Vec<AttachmentReader>,
}

impl Bundle {
    /// Reads a document, with the contents that `options` ask for. Blocks.
    pub(crate) fn read(database: &Opened, id: &str, options: &ReadOptions) -> Result<Self> {
        let plain = ReadOptions {
            attachments: false,
            attachments_since: None,
            revisions: options.revisions || options.attachments_since.is_some(),
            ..options.clone()
        };
        Self::of(database, database.read(id, &plain)?, options)
    }

    /// The same of a document that was read with stubs, and with its history where `attachments_since` is
    /// asked for.
    pub(crate) fn of(database: &Opened, document: Document, options: &ReadOptions) -> Result<Self> {
        let members = document_members(&document.json)?;
        let known = known_generation(&members, options.attachments_since.as_deref())?;
        let mut attachments = Vec::new();
        let mut json = JsonWriter::with_capacity(document.json.len());
        for (name, value) in &members {
            if name == "_revisions" && !options.revisions {
                continue;
            }
            json.literal(if json.is_empty() { "{" } else { "," }).string(name).literal(":");
            if name != "_attachments" {
                json.part(*value);
                continue;
            }
            let mut stubs: Map<String, Value> = parse_json(value.as_str().as_bytes())?;
            for (name, stub) in &mut stubs {
                let Some(stub) = stub.as_object_mut() else { continue };
                if stub.get("revpos").and_then(Value::as_u64).is_some_and(|revpos| revpos <= known) {
                    continue;
                }
                stub.remove("stub");
                stub.insert("follows".to_owned(), Value::Bool(true));
                let held = database.hold_attachment(&document.id, name, Some(&document.revision))?;
                // Who asks how it is encoded takes it so.
                attachments.push(if options.encoding_info { held.into_encoded() } else { held });
            }
            json.serialized(&stubs);
        }
        json.literal("}");
        Ok(Self { revision: document.revision, json: json.into_text(), attachments })
    }

    /// Whether no content goes next to the JSON.
    pub(crate) fn is_alone(&self) -> bool {
        self.attachments.is_empty()
    }

    pub(crate) fn revision(&self) -> &str {
        &self.revision
    }

    /// The JSON.
    pub(crate) fn json(&self) -> &JsonText {
        &self.json
    }

    /// Appends the parts and the closing boundary.
    pub(crate) fn push(self, segments: &mut Segments, boundary: &str) {
        segments.text(&format!("--{boundary}\r\nContent-Type: application/json\r\n\r\n{}", self.json));
        for reader in self.attachments {
            segments.text(&format!(
                "\r\n--{boundary}\r\nContent-Disposition: attachment; filename={}\r\nContent-Type: {}\r\n\
                 Content-Length: {}\r\n{}\r\n",
                quoted(&reader.name),
                shown_media_type(&reader.content_type),
                reader.length,
                if reader.is_encoded { "Content-Encoding: gzip\r\n" } else { "" }
            ));
            let length = reader.length;
            segments.attachment(Arc::new(reader), 0, length);
        }
        segments.text(&format!("\r\n--{boundary}--"));
    }
}

/// The generation up to which a client that has `revisions` knows the document's attachments: that of the
/// latest of them in the document's history.
fn known_generation(members: &[Member<'_>], revisions: Option<&[String]>) -> Result<u64> {
    #[derive(serde::Deserialize)]
    struct History {
        start: u64,
        ids: Vec<String>,
    }
    let Some(revisions) = revisions else { return Ok(0) };
    let history = members.iter().find(|(name, _)| name == "_revisions");
    let Some((_, history)) = history else { return Ok(0) };
    let History { start, ids } = parse_json(history.as_str().as_bytes())?;
    let mut ancestors = (0..=start).rev().zip(ids);
    let known = ancestors.find(|(generation, id)| revisions.contains(&format!("{generation}-{id}")));
    Ok(known.map_or(0, |(generation, _)| generation))
}

/// The members of a document that the database gave.
pub(crate) fn document_members(text: &JsonText) -> Result<Vec<Member<'_>>> {
    text.members().ok_or_else(HttpError::not_object)
}

/// A member of a document.
type Member<'a> = (Cow<'a, str>, JsonPart<'a>);

/// A quoted string of a header (RFC 9110 §5.6.4); line ends cannot stand in one.
fn quoted(name: &str) -> String {
    let mut text = String::from("\"");
    for character in name.chars().filter(|character| !character.is_control()) {
        if matches!(character, '"' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
    text
}

/// Texts and attachments, one after the other.
#[derive(Default)]
pub(crate) struct Segments(VecDeque<Segment>);

enum Segment {
    Text(Bytes),
    Attachment(AttachmentPart),
}

impl Segments {
    pub(crate) fn text(&mut self, text: &str) {
        self.0.push_back(Segment::Text(Bytes::copy_from_slice(text.as_bytes())));
    }

    pub(crate) fn attachment(&mut self, reader: Arc<AttachmentReader>, from: u64, to: u64) {
        self.0.push_back(Segment::Attachment(AttachmentPart { reader, offset: from, end: to }));
    }

    /// The bytes of all.
    pub(crate) fn length(&self) -> u64 {
        let length = |segment: &Segment| match segment {
            Segment::Text(text) => text.len() as u64,
            Segment::Attachment(part) => part.end - part.offset,
        };
        self.0.iter().map(length).sum()
    }
}

impl Segments {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// About a piece of what is left. Blocks.
    pub(crate) fn next_bytes(&mut self) -> Result<Bytes> {
        let mut bytes = BytesMut::new();
        while bytes.len() < PIECE_BYTES {
            match self.0.pop_front() {
                None => break,
                Some(Segment::Text(text)) => bytes.extend_from_slice(&text),
                Some(Segment::Attachment(mut part)) => {
                    let read = part.read()?;
                    if !part.is_at_end() {
                        self.0.push_front(Segment::Attachment(part));
                    }
                    bytes.extend_from_slice(&read);
                }
            }
        }
        Ok(bytes.freeze())
    }
}

impl Source for Segments {
    fn next_piece(&mut self) -> Result<Piece> {
        let bytes = self.next_bytes()?;
        Ok(Piece::of_bytes(bytes, self.is_empty()))
    }
}
