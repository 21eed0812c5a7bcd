//! MIME multipart bodies (RFC 2046 §5.1), taken apart as they come.

use bytes::{Buf, Bytes, BytesMut};

use crate::error::{HttpError, Result};

/// The headers of a part are no longer than this.
const MOST_HEADER_BYTES: usize = 16 << 10;

/// What stands before the first part is no longer than this.
const MOST_PREAMBLE_BYTES: usize = 16 << 10;

/// RFC 2046 §5.1.1 allows a boundary 70 characters.
const MOST_BOUNDARY_BYTES: usize = 70;

/// What a [`Parser`] has found next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A part begins.
    Part(PartHead),
    /// Bytes of the part.
    Data(Bytes),
    /// The part has ended.
    PartEnd,
    /// The last part has ended.
    End,
    /// More bytes are needed.
    Starved,
}

/// The headers of a part that matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartHead {
    pub(crate) content_type: Option<String>,
    /// From `Content-Disposition`.
    pub(crate) file_name: Option<String>,
    pub(crate) content_encoding: Option<String>,
}

enum MultipartState {
    Preamble,
    Head,
    BodyStart,
    Body,
    End,
}

/// Takes a multipart body apart. Bytes go in by [`Parser::push`], events come out by [`Parser::next`]; it
/// holds no more than what was pushed last and the length of a boundary.
pub(crate) struct Parser {
    delimiter: Vec<u8>,
    buffer: BytesMut,
    state: MultipartState,
}

impl Parser {
    /// A parser for bodies with this boundary.
    pub(crate) fn new(boundary: &str) -> Self {
        let delimiter = [b"\r\n--", boundary.as_bytes()].concat();
        // The first boundary may stand at the very beginning; every other one begins with a line's end.
        Self { delimiter, buffer: BytesMut::from(&b"\r\n"[..]), state: MultipartState::Preamble }
    }

    /// The boundary that a `Content-Type` names.
    ///
    /// # Errors
    /// 400 where there is none, or one that is too long.
    pub(crate) fn boundary(content_type: &str) -> Result<String> {
        let boundary = parameter(content_type, "boundary")
            .filter(|boundary| !boundary.is_empty() && boundary.len() <= MOST_BOUNDARY_BYTES);
        boundary.ok_or_else(|| HttpError::bad_request("The multipart body has no boundary."))
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next event.
    ///
    /// # Errors
    /// 400 where the body is not multipart.
    pub(crate) fn next(&mut self) -> Result<Event> {
        loop {
            let event = match self.state {
                MultipartState::Preamble => self.preamble()?,
                MultipartState::Head => self.head()?,
                MultipartState::BodyStart => self.body_start(),
                MultipartState::Body => self.body(),
                MultipartState::End => Some(Event::End),
            };
            if let Some(event) = event {
                return Ok(event);
            }
        }
    }

    fn preamble(&mut self) -> Result<Option<Event>> {
        match self.find_delimiter() {
            Some(at) => {
                self.buffer.advance(at + self.delimiter.len());
                self.state = MultipartState::Head;
                Ok(None)
            }
            None if self.buffer.len() > MOST_PREAMBLE_BYTES => Err(malformed()),
            None => Ok(Some(Event::Starved)),
        }
    }

    /// After a boundary: `--` ends it all, else a line's end and headers up to an empty line.
    fn head(&mut self) -> Result<Option<Event>> {
        if self.buffer.starts_with(b"--") {
            self.state = MultipartState::End;
            return Ok(None);
        }
        let Some(end) = find(&self.buffer, b"\r\n\r\n") else {
            return if self.buffer.len() > MOST_HEADER_BYTES {
                Err(malformed())
            } else {
                Ok(Some(Event::Starved))
            };
        };
        let head = self.buffer.split_to(end + 4);
        let head = std::str::from_utf8(&head).map_err(|_| malformed())?;
        // What stands on the boundary's own line is padding.
        let (padding, lines) = head.split_once("\r\n").ok_or_else(malformed)?;
        if !padding.trim().is_empty() {
            return Err(malformed());
        }
        let event = Event::Part(part_head(lines));
        self.state = MultipartState::BodyStart;
        Ok(Some(event))
    }

    /// The boundary after an empty part shares its line's end with the headers.
    fn body_start(&mut self) -> Option<Event> {
        let bare = self.delimiter.get(2..).unwrap_or_default();
        if self.buffer.starts_with(bare) {
            self.buffer.advance(bare.len());
            self.state = MultipartState::Head;
            return Some(Event::PartEnd);
        }
        if bare.starts_with(&self.buffer) {
            return Some(Event::Starved);
        }
        self.state = MultipartState::Body;
        None
    }

    fn body(&mut self) -> Option<Event> {
        if let Some(at) = self.find_delimiter() {
            if at > 0 {
                return Some(Event::Data(self.buffer.split_to(at).freeze()));
            }
            self.buffer.advance(self.delimiter.len());
            self.state = MultipartState::Head;
            return Some(Event::PartEnd);
        }
        // What may be the beginning of a boundary stays.
        let safe = self.buffer.len().saturating_sub(self.delimiter.len() - 1);
        if safe == 0 {
            return Some(Event::Starved);
        }
        Some(Event::Data(self.buffer.split_to(safe).freeze()))
    }

    fn find_delimiter(&self) -> Option<usize> {
        find(&self.buffer, &self.delimiter)
    }
}

fn malformed() -> HttpError {
    HttpError::bad_request("The multipart body is malformed.")
}

/// Where `needle`, which begins with a carriage return, first stands in `bytes`.
fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let rest = bytes.get(from..)?;
        let at = from + rest.iter().position(|byte| *byte == b'\r')?;
        if bytes.get(at..)?.starts_with(needle) {
            return Some(at);
        }
        from = at + 1;
    }
}

fn part_head(lines: &str) -> PartHead {
    let mut head = PartHead::default();
    for (name, value) in lines.split("\r\n").filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        match name.trim().to_ascii_lowercase().as_str() {
            "content-type" => head.content_type = Some(value.to_owned()),
            "content-disposition" => head.file_name = parameter(value, "filename"),
            "content-encoding" => head.content_encoding = Some(value.to_owned()),
            _ => {}
        }
    }
    head
}

/// A parameter of a header (`multipart/related; boundary="a b"`), with quoting and its escapes undone.
pub(crate) fn parameter(header: &str, wanted: &str) -> Option<String> {
    let mut rest = header.split_once(';')?.1;
    loop {
        let (name, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = after.find(';').unwrap_or(after.len());
                let (value, next) = after.split_at(end);
                (value.trim().to_owned(), next)
            }
        };
        if name.trim().eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = next.split_once(';')?.1;
    }
}

fn unquote(quoted: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, quoted.get(at + 1..).unwrap_or(""))),
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes that often look like the beginning of a boundary.
    fn content() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"\r\n--one".to_vec()),
            Just(b"\r\n--".to_vec()),
            Just(b"--one--".to_vec()),
            Just(b"\r".to_vec()),
            Just(b"\r\n\r\n".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..40),
        ];
        proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    fn parse(whole: &[u8], cuts: &[usize]) -> Result<Vec<Vec<u8>>> {
        let mut parser = Parser::new("one two");
        let mut pieces = whole.to_vec();
        let mut lengths = cuts.iter().cycle();
        let mut parts: Vec<Vec<u8>> = Vec::new();
        loop {
            match parser.next()? {
                Event::Part(_) => parts.push(Vec::new()),
                Event::Data(bytes) => parts.last_mut().unwrap().extend_from_slice(&bytes),
                Event::PartEnd => {}
                Event::End => return Ok(parts),
                Event::Starved if pieces.is_empty() => return Err(malformed()),
                Event::Starved => {
                    let length = (*lengths.next().unwrap()).clamp(1, pieces.len());
                    parser.push(&pieces.drain(..length).collect::<Vec<_>>());
                }
            }
        }
    }

    proptest! {
        #[test]
        fn what_was_put_in_comes_out_however_it_is_cut(
            parts in proptest::collection::vec(content(), 0..5),
            cuts in proptest::collection::vec(1_usize..50, 1..8),
        ) {
            let mut whole = b"preamble".to_vec();
            for part in &parts {
                whole.extend_from_slice(b"\r\n--one two\r\nContent-Type: text/plain\r\n\r\n");
                whole.extend_from_slice(part);
            }
            whole.extend_from_slice(b"\r\n--one two--");
            prop_assert_eq!(parse(&whole, &cuts).unwrap(), parts);
            // Cut short, it is an error and not half of the parts.
            let short = &whole[..whole.len() - 3];
            prop_assert!(parse(short, &cuts).is_err());
        }

        #[test]
        fn nothing_makes_it_fail_but_with_an_error(
            whole in proptest::collection::vec(content(), 0..10),
            cuts in proptest::collection::vec(1_usize..50, 1..4),
        ) {
            drop(parse(&whole.concat(), &cuts));
        }
    }

    #[test]
    fn parameters_are_unquoted() {
        assert_eq!(parameter("a/b; x=1; boundary=\"q \\\"r\\\";s\"; y=2", "boundary").unwrap(), "q \"r\";s");
        assert_eq!(parameter("a/b;BOUNDARY=abc ; y", "boundary").unwrap(), "abc");
        assert_eq!(parameter("a/b; boundary=\"open", "boundary"), None);
        assert_eq!(parameter("a/b", "boundary"), None);
        assert_eq!(parameter("attachment; filename=\"\"", "filename").unwrap(), "");
    }
}
