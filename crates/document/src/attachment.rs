//! The attachments that a document's JSON names or carries.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::media_type::{OCTET_STREAM, is_media_type};
use crate::{DocumentError, Limits, json};

pub(crate) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The longest name of an attachment, in bytes. CouchDB has no limit; names stand in addresses and in headers.
const NAME_BYTES_MAX: usize = 1024;

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
    check_prefix(&name)?;
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
        content_type: text("content_type")
            .filter(|kind| !kind.is_empty())
            .unwrap_or_else(|| OCTET_STREAM.to_owned()),
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

/// Checks what a new attachment is called: names stand in addresses and headers, types in headers.
///
/// # Errors
/// [`DocumentError::BadRequest`], saying what a name or a media type is made of.
pub fn validate_attachment(name: &str, content_type: &str) -> Result<(), DocumentError> {
    check_prefix(name)?;
    let refuse = |reason: String| Err(DocumentError::BadRequest(reason.into()));
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return refuse(format!(
            "Attachment name '{name}' must have 1 to {NAME_BYTES_MAX} bytes and no control characters"
        ));
    }
    if !is_media_type(content_type) {
        return refuse(format!(
            "Attachment '{name}' has the content type '{content_type}', which is no media type such as 'text/plain'"
        ));
    }
    Ok(())
}

/// The name under which an attachment is kept that was called `name` elsewhere, as in a message: what
/// [`validate_attachment`] refuses is replaced.
#[must_use]
pub fn fit_attachment_name(name: &str) -> Cow<'_, str> {
    let is_fit = !name.is_empty() && !name.starts_with('_') && name.len() <= NAME_BYTES_MAX;
    if is_fit && !name.chars().any(char::is_control) {
        return Cow::Borrowed(name);
    }
    let name = name.trim_start_matches('_');
    let end = name.floor_char_boundary(NAME_BYTES_MAX);
    let fit = |character: char| if character.is_control() { ' ' } else { character };
    let fit: String = name.get(..end).unwrap_or_default().chars().map(fit).collect();
    Cow::Owned(if fit.is_empty() { "attachment".to_owned() } else { fit })
}

fn check_prefix(name: &str) -> Result<(), DocumentError> {
    if !name.starts_with('_') {
        return Ok(());
    }
    let reason = format!("Attachment name '{name}' starts with prohibited character '_'");
    Err(DocumentError::BadRequest(reason.into()))
}

fn bad_member() -> DocumentError {
    DocumentError::DocumentValidation("Bad special document member: _attachments".into())
}
