//! Bytes into components, within limits.

use std::borrow::Cow;

use super::legacy;
use super::line::ContentLine;
use super::{Component, ContentError, ContentItem, ContentLimits};

/// What a reader does with what is no line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// What comes by a protocol: it is refused.
    Refuse,
    /// What lies in a file of somebody: it is kept, and noted.
    Keep,
}

pub(super) struct ContentReader {
    limits: ContentLimits,
    strictness: Strictness,
    open: Vec<Component>,
    pub(super) whole: Vec<Component>,
    /// What was wrong with what was kept.
    pub(super) notes: Vec<ContentError>,
    /// Empty lines before the first component.
    leading: Vec<u8>,
}

/// At most this many notes are kept of one file.
const NOTES_MAX: usize = 100;

impl ContentReader {
    /// Reads all components.
    pub(super) fn read(
        bytes: &[u8],
        limits: ContentLimits,
        strictness: Strictness,
    ) -> Result<Self, ContentError> {
        if bytes.len() > limits.bytes {
            return Err(ContentError::TooLong(limits.bytes));
        }
        let (open, whole, notes, leading) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut reader = Self { limits, strictness, open, whole, notes, leading };
        for (number, line) in (1..).zip(RawLines { rest: bytes }) {
            if number > limits.lines {
                return Err(ContentError::TooManyLines(limits.lines));
            }
            reader.line(line, number)?;
        }
        while let Some(component) = reader.open.pop() {
            reader.note(ContentError::Open)?;
            reader.close(component);
        }
        Ok(reader)
    }

    fn note(&mut self, error: ContentError) -> Result<(), ContentError> {
        match self.strictness {
            Strictness::Refuse => Err(error),
            Strictness::Keep => {
                if self.notes.len() < NOTES_MAX {
                    self.notes.push(error);
                }
                Ok(())
            }
        }
    }

    fn line(&mut self, raw: &[u8], number: usize) -> Result<(), ContentError> {
        let bytes = unfolded(raw);
        if bytes.len() > self.limits.line_bytes {
            return Err(ContentError::LineTooLong(number));
        }
        let text = match std::str::from_utf8(&bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => {
                self.note(ContentError::NotText(number))?;
                Cow::Owned(legacy::decoded_line(&bytes))
            }
        };
        let text = text.strip_prefix('\u{feff}').filter(|_| number == 1).unwrap_or(&text);
        if text.trim().is_empty() {
            self.keep_empty(raw);
            return Ok(());
        }
        // Others may take a bare CR for the end of a line, and a NUL for the end of the text.
        if text.contains(['\0', '\r']) {
            self.note(ContentError::NotText(number))?;
        }
        let mut line = match ContentLine::parse(text, number, self.limits) {
            Ok(line) => line,
            Err(error @ ContentError::TooManyParameters(_)) => return Err(error),
            Err(error) => return self.unreadable(text, raw, error),
        };
        raw.clone_into(&mut line.raw);
        match line.name.as_str() {
            "BEGIN" => self.begin(&line, number),
            "END" => self.end(&line, number),
            _ => match self.open.last_mut() {
                Some(component) => {
                    component.items.push(ContentItem::Line(line));
                    Ok(())
                }
                None => self.note(ContentError::Unexpected(number)),
            },
        }
    }

    fn unreadable(&mut self, text: &str, raw: &[u8], error: ContentError) -> Result<(), ContentError> {
        self.note(error)?;
        if let Some(component) = self.open.last_mut() {
            component.items.push(ContentItem::Line(ContentLine::unreadable(text, raw)));
        }
        Ok(())
    }

    fn begin(&mut self, line: &ContentLine, number: usize) -> Result<(), ContentError> {
        if self.open.len() >= self.limits.depth {
            return Err(ContentError::TooDeep(self.limits.depth));
        }
        let Some(mut component) = Component::new(line.value.trim()) else {
            return self.unreadable(&line.value, &line.raw, ContentError::Malformed(number));
        };
        component.begin = std::mem::take(&mut self.leading);
        component.begin.extend_from_slice(&line.raw);
        self.open.push(component);
        Ok(())
    }

    fn end(&mut self, line: &ContentLine, number: usize) -> Result<(), ContentError> {
        let name = line.value.trim();
        if !self.open.last().is_some_and(|open| open.name().eq_ignore_ascii_case(name)) {
            self.note(ContentError::Unexpected(number))?;
            if !self.open.iter().any(|open| open.name().eq_ignore_ascii_case(name)) {
                return self.unreadable(&line.value, &line.raw, ContentError::Unexpected(number));
            }
        }
        while let Some(mut component) = self.open.pop() {
            let is_last = component.name().eq_ignore_ascii_case(name);
            if is_last {
                line.raw.clone_into(&mut component.end);
            }
            self.close(component);
            if is_last {
                break;
            }
        }
        Ok(())
    }

    fn close(&mut self, component: Component) {
        match self.open.last_mut() {
            Some(parent) => parent.items.push(ContentItem::Component(component)),
            None => self.whole.push(component),
        }
    }

    /// An empty line belongs to what stands before it; before the first component, to that.
    fn keep_empty(&mut self, raw: &[u8]) {
        let Some(component) = self.open.last_mut() else {
            match self.whole.last_mut() {
                Some(last) => last.end.extend_from_slice(raw),
                None => self.leading.extend_from_slice(raw),
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
        let mut breaks_softly = false;
        loop {
            let rest = self.rest.get(end..).unwrap_or_default();
            let begin = end;
            end += rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
            let line = self.rest.get(begin..end).unwrap_or_default();
            breaks_softly = breaks_softly || (begin == 0 && legacy::may_break_softly(line));
            // A line that begins with a space or tab continues, and so does what follows a soft break.
            let continues = matches!(self.rest.get(end), Some(b' ' | b'\t'))
                || (breaks_softly && without_end(line).ends_with(b"=") && end < self.rest.len());
            if !continues {
                break;
            }
        }
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(line)
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Without folds, which may cut characters, and without the end.
fn unfolded(raw: &[u8]) -> Cow<'_, [u8]> {
    let line = without_end(raw);
    if !line.contains(&b'\n') {
        return Cow::Borrowed(line);
    }
    let breaks_softly = legacy::may_break_softly(line);
    let mut text: Vec<u8> = Vec::with_capacity(line.len());
    for (index, piece) in line.split(|byte| *byte == b'\n').enumerate() {
        let piece = piece.strip_suffix(b"\r").unwrap_or(piece);
        if breaks_softly && text.ends_with(b"=") {
            text.pop();
            text.extend_from_slice(piece);
        } else {
            text.extend_from_slice(if index == 0 { piece } else { piece.get(1..).unwrap_or_default() });
        }
    }
    Cow::Owned(text)
}
