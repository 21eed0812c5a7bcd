//! What an HTML body says, as text.

use mail_parser::decoders::html::html_to_text;

/// Where in an HTML body its character set may stand (the HTML standard looks as far).
const META_BYTES: usize = 1_024;

/// The character set that HTML itself declares in a `meta` element; for parts whose header names none.
pub(super) fn declared_charset(html: &[u8]) -> Option<&str> {
    const WORD: &[u8] = b"charset=";
    let beginning = html.get(..META_BYTES).unwrap_or(html);
    let at = beginning.windows(WORD.len()).position(|window| window.eq_ignore_ascii_case(WORD))?;
    let value = beginning.get(at + WORD.len()..)?;
    let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
    let ends = |byte: &u8| !(byte.is_ascii_alphanumeric() || b"-_.:".contains(byte));
    let end = value.iter().position(ends).unwrap_or(value.len());
    std::str::from_utf8(value.get(..end)?).ok().filter(|label| !label.is_empty())
}

/// The text that a reader of the HTML sees.
pub(super) fn shown_text(html: &str) -> String {
    let text = html_to_text(html);
    if !text.trim().is_empty() || !html.contains('<') {
        return text.trim().to_owned();
    }
    // A head that is never closed hides all. It ends where the body begins; a body that began before is shown
    // whole.
    match (find(html, b"<head"), find(html, b"<body")) {
        (Some(head), Some(body)) if head < body => {
            html_to_text(html.get(body..).unwrap_or_default()).trim().to_owned()
        }
        _ => html_to_text(&without_head_tags(html)).trim().to_owned(),
    }
}

fn without_head_tags(html: &str) -> String {
    const TAG: &[u8] = b"<head";
    let mut rest = html;
    let mut result = String::with_capacity(html.len());
    while let Some(at) = find(rest, TAG) {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        result.push_str(before);
        result.push_str("<i");
        rest = from.get(TAG.len()..).unwrap_or_default();
    }
    result.push_str(rest);
    result
}

fn find(html: &str, tag: &[u8]) -> Option<usize> {
    html.as_bytes().windows(tag.len()).position(|window| window.eq_ignore_ascii_case(tag))
}
