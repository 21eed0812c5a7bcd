//! Calendars and cards as they are written: components of lines (RFC 5545, section 3.1; RFC 6350, section 3.2).
//!
//! Reading keeps the bytes of each line, so that a calendar that nobody changed is written byte for byte, and one line
//! that was changed is the only one that differs.

use std::borrow::Cow;

use thiserror::Error;

use crate::parameter::{Parameter, decoded};

/// Lines are folded after this many bytes (RFC 5545, section 3.1).
const LINE_BYTES: usize = 75;

/// Limits of a calendar or card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ContentLimits {
    pub bytes: usize,
    /// Components in components.
    pub depth: usize,
    /// Lines of all components.
    pub lines: usize,
    /// One line, unfolded.
    pub line_bytes: usize,
    /// Parameters of one line, and values of one parameter.
    pub parameters: usize,
}

impl Default for ContentLimits {
    fn default() -> Self {
        Self { bytes: 32 << 20, depth: 16, lines: 200_000, line_bytes: 16 << 20, parameters: 256 }
    }
}

/// Why bytes are no calendar or card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ContentError {
    #[error("longer than {0} bytes")]
    TooLong(usize),
    #[error("components are nested deeper than {0}")]
    TooDeep(usize),
    #[error("more than {0} lines")]
    TooManyLines(usize),
    #[error("line {0} is too long")]
    LineTooLong(usize),
    #[error("line {0} has too many parameters")]
    TooManyParameters(usize),
    #[error("line {0} is not UTF-8, or holds control characters")]
    NotText(usize),
    #[error("line {0} is no name with a value")]
    Malformed(usize),
    #[error("line {0} ends a component that did not begin, or is outside of one")]
    Unexpected(usize),
    #[error("a component has no end")]
    Open,
}

/// A line.
#[derive(Clone, Debug)]
pub struct ContentLine {
    group: Option<String>,
    name: String,
    parameters: Vec<Parameter>,
    value: String,
    /// As it came, with folds and its end; empty for a line that was made here.
    raw: Vec<u8>,
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

    /// In capitals.
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
        let parameter = self.parameters.iter().find(|parameter| parameter.name.eq_ignore_ascii_case(name))?;
        parameter.values.first().map(String::as_str)
    }

    /// The value, unfolded and as it is written.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Sets or takes away a parameter. Says whether it could: the name must be one.
    pub fn set_parameter(&mut self, name: &str, value: Option<&str>) -> bool {
        if !is_name(name) {
            return false;
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

    /// Sets the value. Says whether it could.
    pub fn set_value(&mut self, value: &str) -> bool {
        let valid = is_text(value);
        if valid {
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
        line.push_str(&self.value);
        fold(&line, out);
    }

    fn parse(text: &str, number: usize, limits: ContentLimits) -> Result<Self, ContentError> {
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

/// A parameter, and what follows it. Cards of version 2.1 have values without a name: they are types.
fn parameter(text: &str, number: usize, limits: ContentLimits) -> Result<(Parameter, &str), ContentError> {
    let malformed = ContentError::Malformed(number);
    let end = text.find(['=', ';', ':']).ok_or(malformed)?;
    let (name, mut rest) = text.split_at(end);
    if !is_name(name) {
        return Err(malformed);
    }
    if !rest.starts_with('=') {
        return Ok((Parameter::new("TYPE", name), rest));
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

/// A component: what stands between BEGIN and END.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ContentItem {
    Line(ContentLine),
    Component(Component),
}

/// A component, with its lines and components in their order.
#[derive(Clone, Debug)]
pub struct Component {
    name: String,
    /// Lines and components, in their order.
    pub items: Vec<ContentItem>,
    begin: Vec<u8>,
    end: Vec<u8>,
}

impl PartialEq for Component {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.items) == (&other.name, &other.items)
    }
}

impl Eq for Component {}

impl Component {
    /// An empty component; `None` if that is no name.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let component = |name: String| Self { name, items: Vec::new(), begin: Vec::new(), end: Vec::new() };
        is_name(name).then(|| component(name.to_ascii_uppercase()))
    }

    /// In capitals: VCALENDAR, VEVENT, VCARD.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its own lines.
    pub fn lines(&self) -> impl Iterator<Item = &ContentLine> {
        self.items.iter().filter_map(|item| match item {
            ContentItem::Line(line) => Some(line),
            ContentItem::Component(_) => None,
        })
    }

    /// Its own components.
    pub fn components(&self) -> impl Iterator<Item = &Self> {
        self.items.iter().filter_map(|item| match item {
            ContentItem::Component(component) => Some(component),
            ContentItem::Line(_) => None,
        })
    }

    /// The first of its lines with this name.
    #[must_use]
    pub fn line(&self, name: &str) -> Option<&ContentLine> {
        self.lines().find(|line| line.name.eq_ignore_ascii_case(name))
    }

    /// Puts a line behind the others.
    pub fn push(&mut self, line: ContentLine) {
        self.items.push(ContentItem::Line(line));
    }

    /// Reads one calendar or card, and nothing else.
    ///
    /// # Errors
    /// [`ContentError`]
    pub fn parse(bytes: &[u8], limits: ContentLimits) -> Result<Self, ContentError> {
        let mut all = Self::parse_all(bytes, limits)?;
        match (all.pop(), all.pop()) {
            (Some(only), None) => Ok(only),
            _ => Err(ContentError::Open),
        }
    }

    /// Reads all calendars or cards of a file.
    ///
    /// # Errors
    /// [`ContentError`]
    pub fn parse_all(bytes: &[u8], limits: ContentLimits) -> Result<Vec<Self>, ContentError> {
        if bytes.len() > limits.bytes {
            return Err(ContentError::TooLong(limits.bytes));
        }
        let mut reader = ContentReader { limits, open: Vec::new(), whole: Vec::new() };
        for (number, line) in (1..).zip(RawLines { rest: bytes }) {
            if number > limits.lines {
                return Err(ContentError::TooManyLines(limits.lines));
            }
            reader.line(line, number)?;
        }
        if reader.open.is_empty() { Ok(reader.whole) } else { Err(ContentError::Open) }
    }

    /// The bytes: those that came, but for what was changed.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut Vec<u8>) {
        if self.begin.is_empty() {
            out.extend_from_slice(format!("BEGIN:{}\r\n", self.name).as_bytes());
        } else {
            out.extend_from_slice(&self.begin);
        }
        for item in &self.items {
            match item {
                ContentItem::Line(line) => line.write(out),
                ContentItem::Component(component) => component.write(out),
            }
        }
        if self.end.is_empty() {
            out.extend_from_slice(format!("END:{}\r\n", self.name).as_bytes());
        } else {
            out.extend_from_slice(&self.end);
        }
    }
}

struct ContentReader {
    limits: ContentLimits,
    open: Vec<Component>,
    whole: Vec<Component>,
}

impl ContentReader {
    fn line(&mut self, raw: &[u8], number: usize) -> Result<(), ContentError> {
        let text = unfolded(raw);
        if text.len() > self.limits.line_bytes {
            return Err(ContentError::LineTooLong(number));
        }
        let text = std::str::from_utf8(&text).map_err(|_| ContentError::NotText(number))?;
        let text = text.strip_prefix('\u{feff}').filter(|_| number == 1).unwrap_or(text);
        if text.trim().is_empty() {
            self.keep_empty(raw);
            return Ok(());
        }
        if !is_text(text) {
            return Err(ContentError::NotText(number));
        }
        let mut line = ContentLine::parse(text, number, self.limits)?;
        raw.clone_into(&mut line.raw);
        match line.name.as_str() {
            "BEGIN" => self.begin(&line, number),
            "END" => self.end(&line, number),
            _ => match self.open.last_mut() {
                Some(component) => {
                    component.items.push(ContentItem::Line(line));
                    Ok(())
                }
                None => Err(ContentError::Unexpected(number)),
            },
        }
    }

    fn begin(&mut self, line: &ContentLine, number: usize) -> Result<(), ContentError> {
        if self.open.len() >= self.limits.depth {
            return Err(ContentError::TooDeep(self.limits.depth));
        }
        let mut component = Component::new(line.value.trim()).ok_or(ContentError::Malformed(number))?;
        line.raw.clone_into(&mut component.begin);
        self.open.push(component);
        Ok(())
    }

    fn end(&mut self, line: &ContentLine, number: usize) -> Result<(), ContentError> {
        let mut component = self.open.pop().ok_or(ContentError::Unexpected(number))?;
        if !component.name.eq_ignore_ascii_case(line.value.trim()) {
            return Err(ContentError::Unexpected(number));
        }
        line.raw.clone_into(&mut component.end);
        match self.open.last_mut() {
            Some(parent) => parent.items.push(ContentItem::Component(component)),
            None => self.whole.push(component),
        }
        Ok(())
    }

    /// An empty line belongs to what stands before it.
    fn keep_empty(&mut self, raw: &[u8]) {
        let Some(component) = self.open.last_mut() else {
            if let Some(last) = self.whole.last_mut() {
                last.end.extend_from_slice(raw);
            }
            return;
        };
        match component.items.last_mut() {
            Some(ContentItem::Line(line)) => line.raw.extend_from_slice(raw),
            Some(ContentItem::Component(inner)) => inner.end.extend_from_slice(raw),
            None => component.begin.extend_from_slice(raw),
        }
    }
}

/// Lines with their folds and ends.
struct RawLines<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for RawLines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let mut end = 0;
        loop {
            let rest = self.rest.get(end..).unwrap_or_default();
            end += rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
            // A line that begins with a space or tab continues.
            if !matches!(self.rest.get(end), Some(b' ' | b'\t')) {
                break;
            }
        }
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(line)
    }
}

/// Without folds, which may cut characters, and without the end.
fn unfolded(raw: &[u8]) -> Cow<'_, [u8]> {
    let line = raw.strip_suffix(b"\n").unwrap_or(raw);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !line.contains(&b'\n') {
        return Cow::Borrowed(line);
    }
    let mut text = Vec::with_capacity(line.len());
    for (index, piece) in line.split(|byte| *byte == b'\n').enumerate() {
        let piece = if index == 0 { piece } else { piece.get(1..).unwrap_or_default() };
        text.extend_from_slice(piece.strip_suffix(b"\r").unwrap_or(piece));
    }
    Cow::Owned(text)
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

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn is_text(text: &str) -> bool {
    !text.bytes().any(|byte| (byte < b' ' && byte != b'\t') || byte == 127)
}
