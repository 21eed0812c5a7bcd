//! The flags in a document (RFC 9051 §2.3.2): the field [`FLAGS`].

use scrinium_document::Fields;
use scrinium_document::json::stored_value;
use serde_json::Value;

/// The field of a document that has its flags: a list of texts.
pub const FLAGS: &str = "$Flags";

/// A document has at most this many flags.
pub const MAX_FLAGS: usize = 64;

/// A flag has at most this many bytes.
pub const MAX_FLAG_BYTES: usize = 128;

/// A database gives at most this many keywords a number. Documents may have others, which folders do not repeat.
pub const MAX_KEYWORDS: u16 = 200;

/// What earlier versions wrote for a flag, and what it is called (RFC 9051 §2.3.2; `$Forwarded` is of RFC 5788).
const EARLIER_WORDS: [(&str, &str); 4] =
    [("answered", "\\Answered"), ("flagged", "\\Flagged"), ("draft", "\\Draft"), ("forwarded", "$Forwarded")];

/// A flag as it is called: what earlier versions wrote as a word of its own means one of those that IMAP knows.
#[must_use]
pub fn flag_name(flag: &str) -> &str {
    EARLIER_WORDS.iter().find(|(word, _)| *word == flag).map_or(flag, |(_, name)| *name)
}

/// The flags that a document has. What is no text, or too much, is not obeyed.
pub(crate) fn flags_in(fields: &Fields<'_>) -> Vec<String> {
    let mut flags: Vec<String> = Vec::new();
    let Some(value) = fields.get(FLAGS).and_then(stored_value) else { return flags };
    let texts = match value {
        Value::Array(texts) => texts,
        text => vec![text],
    };
    for text in texts {
        let Value::String(text) = text else { continue };
        let flag = flag_name(&text);
        if is_flag(flag) && !has(&flags, flag) && flags.len() < MAX_FLAGS {
            flags.push(flag.to_owned());
        }
    }
    flags
}

/// Whether a document has flags by words of earlier versions, as which its folders may still repeat them.
pub(crate) fn has_earlier_words(fields: &Fields<'_>) -> bool {
    let is_earlier = |text: &Value| text.as_str().is_some_and(|text| flag_name(text) != text);
    match fields.get(FLAGS).and_then(stored_value) {
        Some(Value::Array(texts)) => texts.iter().any(is_earlier),
        Some(text) => is_earlier(&text),
        None => false,
    }
}

/// A flag is an atom, perhaps with a backslash before it (RFC 9051 §9, `flag`).
pub(crate) fn is_flag(flag: &str) -> bool {
    let atom = flag.strip_prefix('\\').unwrap_or(flag);
    let is_atom_byte = |byte: u8| byte.is_ascii_graphic() && !b"(){%*\"\\]".contains(&byte);
    !atom.is_empty() && flag.len() <= MAX_FLAG_BYTES && atom.bytes().all(is_atom_byte)
}

/// Names that differ only in case are the same flag's.
pub(crate) fn has(flags: &[String], flag: &str) -> bool {
    flags.iter().any(|other| other.eq_ignore_ascii_case(flag))
}
