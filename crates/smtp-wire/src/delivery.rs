//! What a sender wants to be told of the delivery (RFC 3461; RFC 6533 for addresses beyond ASCII).

use std::fmt;

use crate::parse::is_printable;
use crate::xtext::{decode_xtext, encode_xtext};

/// What of the message comes back with a notice of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// All of it.
    Full,
    /// Its headers.
    Headers,
}

/// When a notice is sent. Nothing set stands for `NEVER`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Notify {
    pub success: bool,
    pub failure: bool,
    pub delay: bool,
}

impl Notify {
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        if value.eq_ignore_ascii_case(b"NEVER") {
            return Some(Self::default());
        }
        let mut notify = Self::default();
        for word in value.split(|byte| *byte == b',') {
            let flag = match word {
                word if word.eq_ignore_ascii_case(b"SUCCESS") => &mut notify.success,
                word if word.eq_ignore_ascii_case(b"FAILURE") => &mut notify.failure,
                word if word.eq_ignore_ascii_case(b"DELAY") => &mut notify.delay,
                _ => return None,
            };
            *flag = true;
        }
        Some(notify)
    }
}

impl fmt::Display for Notify {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [(self.success, "SUCCESS"), (self.failure, "FAILURE"), (self.delay, "DELAY")];
        let words: Vec<&str> = words.iter().filter_map(|(wanted, word)| wanted.then_some(*word)).collect();
        formatter.write_str(if words.is_empty() { "NEVER".to_owned() } else { words.join(",") }.as_str())
    }
}

/// The address that a sender first gave for a recipient, whatever it became on the way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OriginalRecipient {
    address_type: String,
    address: String,
}

impl OriginalRecipient {
    /// An address of a type, which is `rfc822`, or `utf-8` for one beyond ASCII. `None` if the type is no atom, or the
    /// address is empty or holds control characters.
    #[must_use]
    pub fn new(address_type: &str, address: &str) -> Option<Self> {
        let is_atom = !address_type.is_empty()
            && address_type.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let is_utf8 = address_type.eq_ignore_ascii_case("utf-8");
        let valid =
            is_atom && !address.is_empty() && is_printable(address) && (is_utf8 || address.is_ascii());
        valid.then(|| Self { address_type: address_type.to_owned(), address: address.to_owned() })
    }

    /// `rfc822`, for one.
    #[must_use]
    pub fn address_type(&self) -> &str {
        &self.address_type
    }

    /// The address, decoded.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let (address_type, address) = std::str::from_utf8(value).ok()?.split_once(';')?;
        let address = if address_type.eq_ignore_ascii_case("utf-8") {
            unescaped(address)?
        } else {
            String::from_utf8(decode_xtext(address.as_bytes()).ok()?).ok()?
        };
        Self::new(address_type, &address)
    }
}

impl fmt::Display for OriginalRecipient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.address_type.eq_ignore_ascii_case("utf-8") {
            return write!(formatter, "{};{}", self.address_type, encode_xtext(self.address.as_bytes()));
        }
        write!(formatter, "{};", self.address_type)?;
        for character in self.address.chars() {
            match character {
                '!'..='~' if !matches!(character, '+' | '=' | '\\') => write!(formatter, "{character}")?,
                _ => write!(formatter, "\\x{{{:X}}}", u32::from(character))?,
            }
        }
        Ok(())
    }
}

/// Text of RFC 6533, section 3: `\x{E9}` for a character, and characters themselves.
fn unescaped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escaped) = rest.split_at(at);
        out.push_str(before);
        let (digits, after) = escaped.strip_prefix("\\x{")?.split_once('}')?;
        if digits.len() > 6 {
            return None;
        }
        out.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}
