//! Percent-encoding, as paths and queries carry it.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::error::{HttpError, Result};

/// Characters that stand for themselves in a path segment (RFC 3986, unreserved).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Appends one path segment, with a `/` inside it encoded.
pub(crate) fn push_segment(text: &mut String, segment: &str) {
    text.extend(utf8_percent_encode(segment, SEGMENT));
}

/// One path segment, or one side of a query parameter, as it was meant. A `+` is a space, as CouchDB's
/// `decode_plus_to_space` has it by default.
///
/// # Errors
/// 400 where the bytes are not UTF-8.
pub(crate) fn decode(text: &str) -> Result<Cow<'_, str>> {
    if !text.bytes().any(|byte| byte == b'%' || byte == b'+') {
        return Ok(Cow::Borrowed(text));
    }
    let spaced = text.replace('+', " ");
    match percent_decode_str(&spaced).decode_utf8() {
        Ok(decoded) => Ok(Cow::Owned(decoded.into_owned())),
        Err(_) => Err(HttpError::bad_request("The address is not UTF-8 once decoded.")),
    }
}
