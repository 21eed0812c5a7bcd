//! The fields of a header (RFC 5322 §2.2), as bytes: character sets are read later, where it is known what a field is.

use std::borrow::Cow;

use super::charset::CharacterSet;
use super::parameters::Parameters;
use super::{charset, guess, structure};
use crate::notes::Notes;

/// The fields of one header.
#[derive(Debug, Clone, Default)]
pub(super) struct HeaderFields<'a> {
    fields: Vec<HeaderField<'a>>,
    /// The set of 8-bit characters that stand in the header as they are.
    raw: Option<CharacterSet>,
    /// The header, where it holds 8-bit characters that are not UTF-8.
    eight_bit: &'a [u8],
}

/// A field's name and what follows the colon, with its folds.
#[derive(Debug, Clone, Copy)]
struct HeaderField<'a> {
    name: &'a [u8],
    value: &'a [u8],
}

impl<'a> HeaderFields<'a> {
    /// Finds the fields. Lines that are none are passed over, with what is folded to them.
    pub(super) fn read(header: &'a [u8], notes: &mut Notes) -> Self {
        let mut fields = Vec::new();
        let mut rest = header;
        while !rest.is_empty() {
            let (field, after) = structure::first_unfolded(rest);
            rest = after;
            if let Some((name, value)) = structure::name_and_value(field) {
                fields.push(HeaderField { name, value });
            }
        }
        let mut found = Self { fields, ..Self::default() };
        if std::str::from_utf8(header).is_err() {
            found.eight_bit = header;
            notes.add("the header holds 8-bit characters that are not UTF-8");
            let declared = found.first("Content-Type").map(|value| {
                let label = Parameters::read(&value, CharacterSet::Undeclared, &mut Notes::default());
                label.get("charset", &mut Notes::default()).map(|label| CharacterSet::named(&label))
            });
            found.raw = declared.flatten().filter(|declared| declared.is_other_than_utf8());
        }
        found
    }

    /// Of a header whose own fields do not tell the set of its 8-bit characters: it is `set`.
    pub(super) fn with_raw_set(mut self, set: impl FnOnce(&Self) -> Option<CharacterSet>) -> Self {
        if self.is_undeclared() {
            self.raw = set(&self);
        }
        self
    }

    /// Whether it holds 8-bit characters of which it does not tell the set.
    pub(super) fn is_undeclared(&self) -> bool {
        self.raw.is_none() && !self.eight_bit.is_empty()
    }

    /// The set of texts of this message that declare none: what they and the header look like. `None` for UTF-8.
    pub(super) fn likely_set(&self, text: &[u8]) -> Option<CharacterSet> {
        let likely = guess::likely_set(&[text, self.eight_bit], &self.top_level_domain());
        likely.map(CharacterSet::Guessed)
    }

    /// The last part of the sender's domain, in small letters; empty where it cannot be told.
    fn top_level_domain(&self) -> String {
        let from = self.first("From").unwrap_or_default();
        let domain = from.rsplit(|&byte| byte == b'@').next().filter(|domain| domain.len() < from.len());
        let domain = domain.unwrap_or_default();
        let ends = |byte: &u8| !(byte.is_ascii_alphanumeric() || b"-.".contains(byte));
        let end = domain.iter().position(ends).unwrap_or(domain.len());
        let last = domain.get(..end).unwrap_or_default().rsplit(|&byte| byte == b'.').next();
        String::from_utf8_lossy(last.unwrap_or_default()).to_ascii_lowercase()
    }

    /// Whether there is none at all.
    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The value of the first field of this name, unfolded: where a field stands twice, readers believe the first.
    pub(super) fn first(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        self.all(name).next()
    }

    /// The values of all fields of this name, unfolded.
    pub(super) fn all<'n>(&'n self, name: &'n str) -> impl Iterator<Item = Cow<'a, [u8]>> + use<'a, 'n> {
        let is_named = move |field: &&HeaderField<'a>| field.name.eq_ignore_ascii_case(name.as_bytes());
        self.fields.iter().filter(is_named).map(|field| unfolded(field.value))
    }

    /// The set of 8-bit characters that stand in a field as they are: UTF-8 (RFC 6532) where they are that, else the one
    /// that the message declares.
    pub(super) fn raw_set(&self, value: &[u8]) -> CharacterSet {
        match self.raw {
            Some(declared) if std::str::from_utf8(value).is_err() => declared,
            _ => CharacterSet::Undeclared,
        }
    }

    /// The first field of this name as text that holds no encoded words.
    pub(super) fn raw_text(&self, name: &str) -> Option<String> {
        let value = self.first(name)?;
        Some(charset::undeclared(&value, false, &mut Notes::default()))
    }
}

/// A value without its line ends (RFC 5322 §2.2.3); the blanks that they were folded at stay.
fn unfolded(value: &[u8]) -> Cow<'_, [u8]> {
    if value.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
        Cow::Owned(value.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect())
    } else {
        Cow::Borrowed(value)
    }
}
