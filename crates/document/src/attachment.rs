//! The attachments that a document's JSON names or carries.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::{DocumentError, Limits, json};

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What CouchDB takes an attachment for that names no type.
const DEFAULT_CONTENT_TYPE: &str = "application/octet-stream";

/// Where an attachment's content is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachmentBody {
    /// Here, decoded from base64.
    Inline(Vec<u8>),
    /// Already with the server, under an earlier revision.
    Stub,
    /// In a later part of the same multipart request.
    Follows,
}

/// One member of `_attachments`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachmentEntry {
    /// Its name, unique in the document.
    pub name: String,
    /// Its media type.
    pub content_type: String,
    /// The generation in which it was last changed, as the client states it.
    pub revpos: Option<u64>,
    /// The digest that the client states, such as `md5-…`.
    pub digest: Option<String>,
    /// Length in bytes of the content as the client states it; for inline content as decoded.
    pub length: Option<u64>,
    /// Length in bytes of the encoded content, where `encoding` is given.
    pub encoded_length: Option<u64>,
    /// How the content is encoded on the wire: `gzip`.
    pub encoding: Option<String>,
    /// Where the content is.
    pub body: AttachmentBody,
}

/// Reads the object `_attachments`.
pub(crate) fn parse_attachments(raw: &str, limits: &Limits) -> Result<Vec<AttachmentEntry>, DocumentError> {
    let members = json::members(raw, limits.nesting_max)?.ok_or_else(bad_member)?;
    members.into_iter().map(|(name, raw)| parse_attachment(name.into_owned(), raw, limits)).collect()
}

fn parse_attachment(name: String, raw: &str, limits: &Limits) -> Result<AttachmentEntry, DocumentError> {
    if name.starts_with('_') {
        let reason = format!("Attachment name '{name}' starts with prohibited character '_'");
        return Err(DocumentError::BadRequest(reason.into()));
    }
    let members = json::members(raw, limits.nesting_max)?.ok_or_else(bad_member)?;
    let find = |wanted: &str| members.iter().find(|(name, _)| name == wanted).map(|(_, raw)| *raw);
    let text = |wanted: &str| find(wanted).and_then(json::string).map(Cow::into_owned);
    let number = |wanted: &str| find(wanted).and_then(|raw| raw.parse::<u64>().ok());
    let body = if find("stub") == Some("true") {
        AttachmentBody::Stub
    } else if find("follows") == Some("true") {
        AttachmentBody::Follows
    } else {
        let content = find("data").and_then(json::string).and_then(|data| decode_base64(&data));
        let content = content
            .ok_or_else(|| DocumentError::BadRequest(format!("Invalid attachment data for {name}").into()))?;
        AttachmentBody::Inline(content)
    };
    let length = match &body {
        AttachmentBody::Inline(content) => Some(content.len() as u64),
        AttachmentBody::Stub | AttachmentBody::Follows => number("length"),
    };
    if length.is_some_and(|length| length > limits.attachment_bytes) {
        return Err(DocumentError::AttachmentTooLarge(name));
    }
    Ok(AttachmentEntry {
        content_type: text("content_type").unwrap_or_else(|| DEFAULT_CONTENT_TYPE.to_owned()),
        revpos: number("revpos"),
        digest: text("digest"),
        length,
        encoded_length: number("encoded_length"),
        encoding: text("encoding"),
        body,
        name,
    })
}

/// Standard base64, with or without padding; white space inside is skipped, as CouchDB does.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    match BASE64.decode(text) {
        Ok(content) => Some(content),
        Err(_) => {
            let packed: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
            if packed.len() == text.len() { None } else { BASE64.decode(packed).ok() }
        }
    }
}

fn bad_member() -> DocumentError {
    DocumentError::DocumentValidation("Bad special document member: _attachments".into())
}
