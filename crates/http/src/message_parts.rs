//! A mail message as people read it: what it has, its text in a page of its own, and its files.
//!
//! The page is for a frame. It holds HTML of strangers, made harmless, under a policy that lets no script run and nothing be loaded:
//! each of the two would do alone.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use scrinium_database::{AttachmentReader, ReadOptions, SOURCE_ATTACHMENT, SOURCE_START};
use scrinium_document::json::stored_value;
use scrinium_mailbox::{
    Decoder, MapBuilder, MapLimits, MessageMap, SafeHtml, SafeOptions, ShownFile, Span, html_of_text,
    safe_html,
};
use serde_json::{Value, json};

use crate::access::Opened;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};
use crate::stream::{self, Piece, Source};

/// Read of a message at once.
const PIECE_BYTES: usize = 128 << 10;
/// A longer message is not taken apart here.
const MESSAGE_MAX_BYTES: u64 = 256 << 20;
/// Encoded text that is shown of one part, and of all.
const TEXT_MAX_BYTES: u64 = 2 << 20;
/// Pictures of the message that are written into the page, decoded.
const PICTURES_MAX_BYTES: u64 = 6 << 20;

const POLICY: HeaderName = HeaderName::from_static("content-security-policy");
const REFERRER: HeaderName = HeaderName::from_static("referrer-policy");
const PREFETCH: HeaderName = HeaderName::from_static("x-dns-prefetch-control");

/// No script, no form, no frame, no other site. Links open in tabs of their own, which know nothing of this one.
const FRAME_POLICY: &str = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; \
     style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'";
/// The same with pictures of others, for whom the person has asked for them.
const FRAME_POLICY_WITH_PICTURES: &str = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; \
     style-src 'unsafe-inline'; img-src data: https:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'";

const FRAME_HEAD: &str = "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
     content=\"width=device-width\"><title>Message</title><style>\
     html{color-scheme:light;background:#fff}\
     body{margin:0;padding:12px 16px;font:15px/1.5 system-ui,sans-serif;color:#1a1d24;overflow-wrap:anywhere}\
     img{max-width:100%;height:auto}pre{white-space:pre-wrap;font:inherit;margin:0}\
     blockquote{margin:0 0 0 4px;padding:0 0 0 12px;border-left:3px solid #d9dde5}table{max-width:100%}\
     </style></head><body>";

/// A message that a document keeps.
struct KeptMessage {
    reader: AttachmentReader,
    /// Where the message begins in its source.
    start: u64,
    map: MessageMap,
}

impl KeptMessage {
    /// Reads it through. Blocks.
    fn open(database: &Opened, id: &str) -> Result<Self> {
        let reader = database.open_attachment(id, SOURCE_ATTACHMENT, None)?;
        let document = database.read(id, &ReadOptions::default())?;
        let start =
            stored_value(&document.json).and_then(|memo| memo.get(SOURCE_START)?.as_u64()).unwrap_or(0);
        if reader.length > MESSAGE_MAX_BYTES {
            return Err(HttpError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                format!(
                    "A message of more than {MESSAGE_MAX_BYTES} bytes is not taken apart; its attachment {SOURCE_ATTACHMENT} is the whole."
                ),
            ));
        }
        let mut builder = MapBuilder::new(MapLimits::default());
        let mut offset = start;
        loop {
            let piece = reader.read(offset, PIECE_BYTES)?;
            if piece.is_empty() {
                break;
            }
            builder.push(&piece);
            offset += piece.len() as u64;
        }
        Ok(Self { reader, start, map: builder.finish() })
    }

    /// The bytes of a place, up to a limit. Blocks.
    fn bytes(&self, span: Span, bytes_max: u64) -> Result<Vec<u8>> {
        let span = span.part(0, bytes_max);
        let mut bytes = Vec::new();
        let mut offset = span.start;
        while offset < span.end {
            let wanted = usize::try_from(span.end - offset).unwrap_or(usize::MAX).min(PIECE_BYTES);
            let piece = self.reader.read(self.start + offset, wanted)?;
            if piece.is_empty() {
                break;
            }
            offset += piece.len() as u64;
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    /// Its text as harmless HTML, and whether any of it was HTML. Blocks.
    fn shown(
        &self,
        remote_pictures: bool,
        inline: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Result<(SafeHtml, bool)> {
        let mut shown = SafeHtml::default();
        let mut has_html = false;
        let mut left = TEXT_MAX_BYTES;
        for text in self.map.shown_texts() {
            let bytes = self.bytes(text.body, left)?;
            left -= (bytes.len() as u64).min(left);
            shown.is_cut |= (bytes.len() as u64) < text.body.bytes();
            let words = text.decode(&bytes);
            has_html |= text.is_html;
            if text.is_html {
                let safe = safe_html(&words, SafeOptions { remote_pictures, inline_picture: inline });
                shown.html.push_str(&safe.html);
                shown.remote_pictures += safe.remote_pictures;
                shown.is_cut |= safe.is_cut;
            } else {
                shown.html.push_str(&html_of_text(&words));
            }
        }
        Ok((shown, has_html))
    }

    /// A picture of the message as a `data:` address. What its bytes do not begin like is no picture.
    fn inline_picture(&self, id: &str, left: &mut u64) -> Option<String> {
        let named = |file: &ShownFile| file.content_id.as_deref() == Some(id) && file.decoded_bytes <= *left;
        let file = self.map.shown_files().into_iter().find(named)?;
        let bytes = decoded(&file, &self.bytes(file.body, file.body.bytes()).ok()?);
        let media_type = picture_type(&bytes)?;
        *left -= (bytes.len() as u64).min(*left);
        Some(format!("data:{media_type};base64,{}", STANDARD.encode(bytes)))
    }
}

fn decoded(file: &ShownFile, bytes: &[u8]) -> Vec<u8> {
    let mut decoder = Decoder::new(file.encoding);
    let mut out = Vec::new();
    decoder.push(bytes, &mut out);
    decoder.finish(&mut out);
    out
}

/// What a picture is, going by its first bytes alone.
fn picture_type(bytes: &[u8]) -> Option<&'static str> {
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP".as_slice());
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        _ if is_webp => Some("image/webp"),
        _ => None,
    }
}

/// `GET /{db}/{docid}/_message`: what a message has.
pub(crate) async fn outline(context: &Context) -> Result<Response<Body>> {
    let id = context.address.document_id()?;
    let outline = context.with_database(move |database| outline_of(&database, &id)).await?;
    Ok(response::json_value(StatusCode::OK, &outline))
}

fn outline_of(database: &Opened, id: &str) -> Result<Value> {
    let message = KeptMessage::open(database, id)?;
    let (shown, has_html) = message.shown(false, &mut |_| None)?;
    let file = |(number, file): (usize, &ShownFile)| json!({"number": number, "name": file.name, "content_type": file.media_type, "bytes": file.decoded_bytes});
    let files: Vec<Value> = message.map.shown_files().iter().enumerate().map(file).collect();
    Ok(json!({"html": has_html, "remote_pictures": shown.remote_pictures, "cut": shown.is_cut,
        "bytes": message.map.bytes, "files": files}))
}

/// `GET /{db}/{docid}/_body`: its text as a page for a frame; with `pictures`, with those of other servers.
pub(crate) async fn body(context: &Context) -> Result<Response<Body>> {
    let id = context.address.document_id()?;
    let remote_pictures = context.query.is_true("pictures");
    let page = context
        .with_database(move |database| {
            let message = KeptMessage::open(&database, &id)?;
            let mut left = PICTURES_MAX_BYTES;
            let (shown, _) =
                message.shown(remote_pictures, &mut |id| message.inline_picture(id, &mut left))?;
            let mut page = String::with_capacity(FRAME_HEAD.len() + shown.html.len() + 64);
            page.push_str(FRAME_HEAD);
            page.push_str(&shown.html);
            page.push_str(if shown.is_cut { "<p>[…]</p></body></html>\n" } else { "</body></html>\n" });
            Ok(page)
        })
        .await?;
    let mut response = Response::new(Body::whole(Bytes::from(page)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    let policy = if remote_pictures { FRAME_POLICY_WITH_PICTURES } else { FRAME_POLICY };
    headers.insert(POLICY, HeaderValue::from_static(policy));
    headers.insert(REFERRER, HeaderValue::from_static("no-referrer"));
    headers.insert(PREFETCH, HeaderValue::from_static("off"));
    headers.insert(CACHE_CONTROL, response::MUST_REVALIDATE);
    Ok(response)
}

/// `GET /{db}/{docid}/_file/{number}`: a file of the message, to be stored and not to be shown.
pub(crate) async fn file(context: &Context) -> Result<Response<Body>> {
    let id = context.address.document_id()?;
    let number: usize = context
        .address
        .value("number")?
        .parse()
        .map_err(|_| HttpError::not_found("The message has no such file."))?;
    let (begun, name, length) = context
        .with_database(move |database| {
            let message = KeptMessage::open(&database, &id)?;
            let file = message.map.shown_files().into_iter().nth(number);
            let file = file.ok_or_else(|| HttpError::not_found("The message has no such file."))?;
            let place = Span { start: message.start + file.body.start, end: message.start + file.body.end };
            let source = FileSource { reader: message.reader, place, decoder: Decoder::new(file.encoding) };
            Ok((stream::begin(source)?, file.name, file.decoded_bytes))
        })
        .await?;
    let mut response = Response::new(begun.into_body(context, Some(length))?);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    headers.insert(CACHE_CONTROL, response::MUST_REVALIDATE);
    let mut disposition = String::from("attachment");
    if !name.is_empty() {
        // RFC 8187: whatever the name holds, no more than letters, digits and percent signs go out.
        let _ = write!(disposition, "; filename*=UTF-8''{}", utf8_percent_encode(&name, NON_ALPHANUMERIC));
    }
    if let Ok(disposition) = HeaderValue::try_from(disposition) {
        headers.insert(CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

/// A file, decoded piece by piece.
struct FileSource {
    reader: AttachmentReader,
    place: Span,
    decoder: Decoder,
}

impl Source for FileSource {
    fn next_piece(&mut self) -> Result<Piece> {
        let wanted = usize::try_from(self.place.bytes()).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let bytes = if wanted == 0 { Bytes::new() } else { self.reader.read(self.place.start, wanted)? };
        if bytes.is_empty() && wanted > 0 {
            return Err(HttpError::internal("A message is shorter than its document says."));
        }
        self.place.start += bytes.len() as u64;
        let mut out = Vec::with_capacity(bytes.len());
        self.decoder.push(&bytes, &mut out);
        let is_last = self.place.bytes() == 0;
        if is_last {
            self.decoder.finish(&mut out);
        }
        Ok(Piece::of_bytes(Bytes::from(out), is_last))
    }
}
