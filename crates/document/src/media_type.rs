//! Media types: what an attachment says that it is (RFC 9110 §8.3.1).

/// What an attachment is that names no type, or an invalid one.
pub const OCTET_STREAM: &str = "application/octet-stream";

/// The longest media type with its parameters, in bytes. RFC 6838 §4.2 has 127 for the type and for the subtype.
const BYTES_MAX: usize = 1024;

/// Whether the text is a media type that may stand in a header: `type/subtype`, and parameters.
///
/// ```text
/// media-type = type "/" subtype parameters
/// parameters = *( OWS ";" OWS [ parameter ] )
/// parameter  = token "=" ( token / quoted-string )
/// ```
#[must_use]
pub fn is_media_type(text: &str) -> bool {
    let is_control = |character: char| character.is_control() && character != '\t';
    text.len() <= BYTES_MAX && !text.chars().any(is_control) && parse(text.as_bytes()).is_some()
}

/// The media type as it goes out: what was stored before types were checked may be none.
#[must_use]
pub fn shown_media_type(text: &str) -> &str {
    if is_media_type(text) { text } else { OCTET_STREAM }
}

fn parse(text: &[u8]) -> Option<()> {
    let rest = token(text)?.strip_prefix(b"/")?;
    let mut rest = token(rest)?;
    while !rest.is_empty() {
        rest = space(space(rest).strip_prefix(b";")?);
        if rest.is_empty() || rest.starts_with(b";") {
            continue;
        }
        let value = token(rest)?.strip_prefix(b"=")?;
        rest = match value.strip_prefix(b"\"") {
            Some(quoted) => quoted_string(quoted)?,
            None => token(value)?,
        };
    }
    Some(())
}

/// What is behind a token (RFC 9110 §5.6.2).
fn token(text: &[u8]) -> Option<&[u8]> {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let end = text.iter().position(|byte| !is_token(byte)).unwrap_or(text.len());
    text.get(end..).filter(|_| end > 0)
}

/// What is behind optional white space (RFC 9110 §5.6.3).
fn space(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(text.len());
    text.get(end..).unwrap_or_default()
}

/// What is behind the rest of a quoted string (RFC 9110 §5.6.4).
fn quoted_string(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    loop {
        rest = match rest {
            [b'"', rest @ ..] => return Some(rest),
            [b'\\', b'\t' | b' '..=b'~' | 0x80.., rest @ ..] => rest,
            [b'\t' | b' '..=b'~' | 0x80.., rest @ ..] if !rest.is_empty() => rest,
            _ => return None,
        };
    }
}
