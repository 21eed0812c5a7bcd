//! One line: a name, its parameters and a value.

use std::borrow::Cow;

use super::legacy;
use super::{ContentError, ContentLimits};
use crate::parameter::{Parameter, decoded};

/// Lines are folded after this many bytes (RFC 5545, section 3.1).
const LINE_BYTES: usize = 75;

/// A line.
#[derive(Clone, Debug)]
pub struct ContentLine {
    group: Option<String>,
    pub(super) name: String,
    parameters: Vec<Parameter>,
    pub(super) value: String,
    /// As it came, with folds and its end; empty for a line that was made here.
    pub(super) raw: Vec<u8>,
}

/// Lines that say the same are equal, however they are folded.
impl PartialEq for ContentLine {
    fn eq(&self, other: &Self) -> bool {
        (&self.group, &self.name, &self.parameters, &self.value)
            == (&other.group, &other.name, &other.parameters, &other.value)
    }
}

impl Eq for ContentLine {}

impl ContentLine {
    /// A line; `None` if the name is invalid, or the value holds a line end or other control characters but TAB. The value is
    /// written as it is: a text is escaped before (`value::escape_text`).
    #[must_use]
    pub fn new(name: &str, parameters: Vec<Parameter>, value: &str) -> Option<Self> {
        let parameters_valid =
            parameters.iter().all(|parameter| is_name(&parameter.name) && !parameter.values.is_empty());
        let begins = matches!(name.to_ascii_uppercase().as_str(), "BEGIN" | "END");
        let valid = is_name(name) && parameters_valid && is_text(value) && !begins;
        valid.then(|| Self {
            group: None,
            name: name.to_ascii_uppercase(),
            parameters,
            value: value.to_owned(),
            raw: Vec::new(),
        })
    }

    /// What is no line at all, in a file whose reader keeps such bytes. It has no name, and its value is its text.
    pub(super) fn unreadable(text: &str, raw: &[u8]) -> Self {
        Self {
            group: None,
            name: String::new(),
            parameters: Vec::new(),
            value: text.to_owned(),
            raw: raw.to_vec(),
        }
    }

    /// The same in a group of a card: `item1.EMAIL`. `None` if that is no name.
    #[must_use]
    pub fn in_group(mut self, group: &str) -> Option<Self> {
        self.raw = Vec::new();
        is_name(group).then(|| Self { group: Some(group.to_owned()), ..self })
    }

    /// The group, in cards.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// In capitals; empty where a file holds something that is no line, which is kept as it is.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All parameters.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The first value of a parameter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameter_values(name).first().map(String::as_str)
    }

    /// All values of a parameter, in the order in which they stand.
    #[must_use]
    pub fn parameter_values(&self, name: &str) -> &[String] {
        let found = self.parameters.iter().find(|parameter| parameter.name.eq_ignore_ascii_case(name));
        found.map_or(&[], |parameter| &parameter.values)
    }

    /// The value, unfolded and as it is written.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The value as what it stands for in calendars 1.0 and cards 2.1, which may be quoted-printable and in a character set of
    /// its own; else the value as it is written.
    #[must_use]
    pub fn decoded_value(&self) -> Cow<'_, str> {
        if self.is_quoted_printable() {
            Cow::Owned(legacy::decoded(&self.value, self.parameter("CHARSET")))
        } else {
            Cow::Borrowed(&self.value)
        }
    }

    fn is_quoted_printable(&self) -> bool {
        self.parameter("ENCODING")
            .is_some_and(|encoding| encoding.eq_ignore_ascii_case(legacy::QUOTED_PRINTABLE))
    }

    /// Sets or takes away a parameter. Says whether it could: the name must be one.
    pub fn set_parameter(&mut self, name: &str, value: Option<&str>) -> bool {
        if !is_name(name) {
            return false;
        }
        if self.parameter_values(name).iter().map(String::as_str).eq(value) {
            return true;
        }
        self.raw = Vec::new();
        let place = self.parameters.iter().position(|parameter| parameter.name.eq_ignore_ascii_case(name));
        match (place.and_then(|place| self.parameters.get_mut(place)), value) {
            (Some(parameter), Some(value)) => parameter.values = vec![value.to_owned()],
            (Some(_), None) => self.parameters.retain(|parameter| !parameter.name.eq_ignore_ascii_case(name)),
            (None, Some(value)) => self.parameters.push(Parameter::new(name, value)),
            (None, None) => {}
        }
        true
    }

    /// Sets the value. Says whether it could. A value that stays the same keeps the line's bytes.
    pub fn set_value(&mut self, value: &str) -> bool {
        let valid = is_text(value);
        if valid && self.value != value {
            self.raw = Vec::new();
            value.clone_into(&mut self.value);
        }
        valid
    }

    /// Appends the line: as it came, or folded.
    pub fn write(&self, out: &mut Vec<u8>) {
        if !self.raw.is_empty() {
            out.extend_from_slice(&self.raw);
            return;
        }
        let mut line = String::new();
        if let Some(group) = &self.group {
            line.push_str(group);
            line.push('.');
        }
        line.push_str(&self.name);
        self.parameters.iter().for_each(|parameter| parameter.write(&mut line));
        line.push(':');
        // What came may hold control characters, which nothing that is written here does.
        line.extend(
            self.value.chars().filter(|character| *character == '\t' || !character.is_ascii_control()),
        );
        if self.is_quoted_printable() {
            legacy::fold(&line, LINE_BYTES, out);
        } else {
            fold(&line, out);
        }
    }

    pub(super) fn parse(text: &str, number: usize, limits: ContentLimits) -> Result<Self, ContentError> {
        let malformed = ContentError::Malformed(number);
        let end = text.find([':', ';']).ok_or(malformed)?;
        let (name, mut rest) = text.split_at(end);
        let (group, name) = match name.split_once('.') {
            Some((group, name)) => (Some(group), name),
            None => (None, name),
        };
        if !is_name(name) || group.is_some_and(|group| !is_name(group)) {
            return Err(malformed);
        }
        let mut parameters = Vec::new();
        while let Some(after) = rest.strip_prefix(';') {
            if parameters.len() >= limits.parameters {
                return Err(ContentError::TooManyParameters(number));
            }
            // Some programs leave a parameter empty: `DTSTART;:20260101`.
            if after.starts_with([';', ':']) {
                rest = after;
                continue;
            }
            let (parameter, after) = parameter(after, number, limits)?;
            parameters.push(parameter);
            rest = after;
        }
        let value = rest.strip_prefix(':').ok_or(malformed)?;
        Ok(Self {
            group: group.map(str::to_owned),
            name: name.to_ascii_uppercase(),
            parameters,
            value: value.to_owned(),
            raw: Vec::new(),
        })
    }
}

/// A parameter, and what follows it. Cards of version 2.1 have values without a name.
fn parameter(text: &str, number: usize, limits: ContentLimits) -> Result<(Parameter, &str), ContentError> {
    let malformed = ContentError::Malformed(number);
    let end = text.find(['=', ';', ':']).ok_or(malformed)?;
    let (name, mut rest) = text.split_at(end);
    if !is_name(name) {
        return Err(malformed);
    }
    if !rest.starts_with('=') {
        return Ok((Parameter::new(legacy::parameter_of(name), name), rest));
    }
    let mut values = Vec::new();
    while let Some(after) = rest.strip_prefix(if values.is_empty() { '=' } else { ',' }) {
        if values.len() >= limits.parameters {
            return Err(ContentError::TooManyParameters(number));
        }
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or(malformed)?,
            None => after.split_at(after.find([',', ';', ':']).ok_or(malformed)?),
        };
        values.push(decoded(value));
        rest = after;
    }
    Ok((Parameter { name: name.to_ascii_uppercase(), values }, rest))
}

/// Writes a line of at most 75 bytes, and what does not fit in others behind it; no character is cut.
fn fold(line: &str, out: &mut Vec<u8>) {
    let mut length = 0;
    for character in line.chars() {
        if length + character.len_utf8() > LINE_BYTES {
            out.extend_from_slice(b"\r\n ");
            length = 1;
        }
        length += character.len_utf8();
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn is_text(text: &str) -> bool {
    !text.bytes().any(|byte| (byte < b' ' && byte != b'\t') || byte == 127)
}
