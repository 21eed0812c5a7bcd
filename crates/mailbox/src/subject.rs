//! The base subject (RFC 5256, section 2.1), by which messages are sorted and threaded.

use crate::words::decode_words;

/// A subject without what replies and forwards put around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseSubject {
    /// The text, in one spelling of case.
    pub text: String,
    /// Whether something said that it is a reply or a forward.
    pub is_reply: bool,
}

/// Finds the base subject in the value of a `Subject` field.
#[must_use]
pub fn base_subject(value: &[u8]) -> BaseSubject {
    let decoded = decode_words(value);
    let mut text = decoded.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut is_reply = false;
    // Each round makes the text shorter.
    loop {
        text = without_trailer(&text, &mut is_reply).to_owned();
        let stripped = without_leaders(&text, &mut is_reply);
        if let Some(inner) = forwarded(stripped) {
            is_reply = true;
            text = inner.to_owned();
            continue;
        }
        text = stripped.to_owned();
        break;
    }
    BaseSubject { text: text.to_uppercase(), is_reply }
}

/// (2) `(fwd)` and blanks at the end.
fn without_trailer<'a>(text: &'a str, is_reply: &mut bool) -> &'a str {
    let mut text = text.trim_end();
    while let Some(at) = text.len().checked_sub(5).filter(|at| text.is_char_boundary(*at)) {
        let (before, end) = text.split_at(at);
        if !end.eq_ignore_ascii_case("(fwd)") {
            break;
        }
        *is_reply = true;
        text = before.trim_end();
    }
    text
}

/// (3) to (5): `Re:`, `Fw[2]:` and `[list]` at the beginning.
fn without_leaders<'a>(text: &'a str, is_reply: &mut bool) -> &'a str {
    let mut text = text.trim_start();
    loop {
        if let Some(rest) = leader(text) {
            *is_reply = true;
            text = rest.trim_start();
        } else if let Some(rest) = blob(text).filter(|rest| !rest.is_empty()) {
            text = rest;
        } else {
            return text;
        }
    }
}

/// `*subj-blob subj-refwd`
fn leader(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(after) = blob(rest) {
        rest = after;
    }
    let word = ["re", "fwd", "fw"]
        .into_iter()
        .find(|word| rest.get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word)))?;
    let rest = rest.get(word.len()..)?.trim_start();
    let rest = blob(rest).unwrap_or(rest);
    rest.strip_prefix(':')
}

/// `[text] `
fn blob(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('[')?;
    let end = inside.find([']', '['])?;
    inside.get(end..)?.strip_prefix(']').map(str::trim_start)
}

/// (6) `[fwd: text]`
fn forwarded(text: &str) -> Option<&str> {
    let inside = text.strip_suffix(']')?;
    let begins = inside.get(..5).is_some_and(|begin| begin.eq_ignore_ascii_case("[fwd:"));
    if begins { inside.get(5..).map(str::trim) } else { None }
}
