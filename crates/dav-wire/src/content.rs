//! Calendars and cards as they are written: components of lines (RFC 5545, section 3.1; RFC 6350, section 3.2).
//!
//! Reading keeps the bytes of each line, so that a calendar that nobody changed is written byte for byte, and one line
//! that was changed is the only one that differs. It is written folded and with CR LF, whatever the others have.

mod legacy;
mod line;
mod reader;

use thiserror::Error;

pub use line::ContentLine;
use line::is_name;
use reader::{ContentReader, Strictness};

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
    #[error("line {0} is not UTF-8, or holds a NUL or a CR")]
    NotText(usize),
    #[error("line {0} is no name with a value")]
    Malformed(usize),
    #[error("line {0} ends a component that did not begin, or is outside of one")]
    Unexpected(usize),
    #[error("a component has no end")]
    Open,
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

    /// Its own lines, to be changed.
    pub fn lines_mut(&mut self) -> impl Iterator<Item = &mut ContentLine> {
        self.items.iter_mut().filter_map(|item| match item {
            ContentItem::Line(line) => Some(line),
            ContentItem::Component(_) => None,
        })
    }

    /// Its own components, to be changed.
    pub fn components_mut(&mut self) -> impl Iterator<Item = &mut Self> {
        self.items.iter_mut().filter_map(|item| match item {
            ContentItem::Component(component) => Some(component),
            ContentItem::Line(_) => None,
        })
    }

    /// The lines with this name become these, in the place of the first of them, or else behind the last line. A line that
    /// says the same as the one in its place keeps its bytes.
    pub fn replace(&mut self, name: &str, lines: Vec<ContentLine>) {
        let is_named = |item: &ContentItem| matches!(item, ContentItem::Line(line) if line.name.eq_ignore_ascii_case(name));
        let after_lines = self.items.iter().rposition(|item| matches!(item, ContentItem::Line(_)));
        let place =
            self.items.iter().position(is_named).unwrap_or_else(|| after_lines.map_or(0, |last| last + 1));
        let (mut old, kept): (Vec<ContentItem>, Vec<ContentItem>) =
            std::mem::take(&mut self.items).into_iter().partition(is_named);
        self.items = kept;
        let new = lines.into_iter().map(ContentItem::Line).map(|line| {
            let same = old.iter().position(|before| *before == line);
            same.map_or(line, |same| old.remove(same))
        });
        let new: Vec<ContentItem> = new.collect();
        self.items.splice(place..place, new);
    }

    /// Takes away all lines with this name.
    pub fn remove(&mut self, name: &str) {
        self.replace(name, Vec::new());
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

    /// Reads all calendars or cards of a body.
    ///
    /// # Errors
    /// [`ContentError`]
    pub fn parse_all(bytes: &[u8], limits: ContentLimits) -> Result<Vec<Self>, ContentError> {
        ContentReader::read(bytes, limits, Strictness::Refuse).map(|reader| reader.whole)
    }

    /// Reads all calendars or cards of a file that somebody brings, and what was wrong with it. What is no line is kept as a
    /// line without a name, bytes that are not UTF-8 are decoded by the character set that their line names, and
    /// components without an end are ended. At most 100 notes are given.
    ///
    /// # Errors
    /// Only what goes beyond a limit.
    pub fn parse_file(
        bytes: &[u8],
        limits: ContentLimits,
    ) -> Result<(Vec<Self>, Vec<ContentError>), ContentError> {
        ContentReader::read(bytes, limits, Strictness::Keep).map(|reader| (reader.whole, reader.notes))
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
            end_line(out);
            match item {
                ContentItem::Line(line) => line.write(out),
                ContentItem::Component(component) => component.write(out),
            }
        }
        end_line(out);
        if self.end.is_empty() {
            out.extend_from_slice(format!("END:{}\r\n", self.name).as_bytes());
        } else {
            out.extend_from_slice(&self.end);
        }
    }
}

/// A file may end within a line, behind which something else is written now.
fn end_line(out: &mut Vec<u8>) {
    if !out.ends_with(b"\n") {
        out.extend_from_slice(b"\r\n");
    }
}
