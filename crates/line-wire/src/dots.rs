//! Texts that end with a line of one dot, as SMTP's DATA (RFC 5321, section 4.5.2) and POP3's answers (RFC 1939,
//! section 3) have them: a dot at the beginning of a line is doubled on the way.

use thiserror::Error;

/// What happens to a CR or LF by itself. None of them ever counts as the end of a line here, so that neither hides
/// or makes the end of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BareEnds {
    /// It is a fault. A reader still finds the end of the text and gives nothing more out.
    Refuse,
    /// It becomes CR LF.
    Normalise,
}

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TextFault {
    /// An LF without a CR before it.
    #[error("the text has a line feed without a carriage return")]
    BareLineFeed,
    /// A CR without an LF behind it.
    #[error("the text has a carriage return without a line feed")]
    BareCarriageReturn,
    /// The text is longer than the limit.
    #[error("the text is longer than {limit_bytes} bytes")]
    TooLong {
        /// The limit.
        limit_bytes: u64,
    },
    /// A line, without its end, is longer than the limit.
    #[error("a line of the text is longer than {limit_bytes} bytes")]
    LineTooLong {
        /// The limit.
        limit_bytes: usize,
    },
}

/// Limits of a text that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DotLimits {
    /// The text, without the dots that were added on the way.
    pub text_bytes: u64,
    /// One line without its end.
    pub line_bytes: usize,
}

/// The position of a [`DotReader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DotProgress {
    /// Bytes that belong to the text; what follows is something else.
    pub consumed: usize,
    /// The line that ends the text has arrived.
    pub finished: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinePlace {
    LineStart,
    InLine,
    CarriageReturn,
    /// Behind a dot that begins a line.
    Dot,
    /// Behind such a dot and a CR.
    DotCarriageReturn,
}

/// Reads a text while it comes, and takes away what was added on the way. It ends with CR LF `.` CR LF and nothing
/// else, or with `.` CR LF if it is empty.
#[derive(Clone, Debug)]
pub struct DotReader {
    limits: DotLimits,
    bare_ends: BareEnds,
    place: LinePlace,
    text_bytes: u64,
    line_bytes: usize,
    fault: Option<TextFault>,
}

impl DotReader {
    /// Nothing has arrived yet.
    #[must_use]
    pub fn new(limits: DotLimits, bare_ends: BareEnds) -> Self {
        Self { limits, bare_ends, place: LinePlace::LineStart, text_bytes: 0, line_bytes: 0, fault: None }
    }

    /// Takes the next bytes, and hands those of the text to `sink`. With a [fault](Self::fault) nothing more is
    /// handed out, and bytes are read on until the end, so that the rest of the text is not taken for commands.
    pub fn read(&mut self, bytes: &[u8], mut sink: impl FnMut(&[u8])) -> DotProgress {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if self.place == LinePlace::InLine {
                let rest = bytes.get(at..).unwrap_or_default();
                let plain = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(rest.len());
                if plain > 0 {
                    self.text(rest.get(..plain).unwrap_or_default(), &mut sink);
                    at += plain;
                    continue;
                }
            }
            at += 1;
            if self.step(*byte, &mut sink) {
                return DotProgress { consumed: at, finished: true };
            }
        }
        DotProgress { consumed: at, finished: false }
    }

    /// What is wrong with the text, if anything is: the first fault.
    #[must_use]
    pub fn fault(&self) -> Option<TextFault> {
        self.fault
    }

    /// Bytes that were handed out.
    #[must_use]
    pub fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    /// Takes one byte; says whether it ends the text.
    fn step(&mut self, byte: u8, sink: &mut impl FnMut(&[u8])) -> bool {
        match (self.place, byte) {
            (LinePlace::DotCarriageReturn, b'\n') => {
                self.place = LinePlace::LineStart;
                return true;
            }
            (LinePlace::CarriageReturn, b'\n') => self.line_end(sink),
            (LinePlace::CarriageReturn | LinePlace::DotCarriageReturn, _) => {
                self.bare_end(TextFault::BareCarriageReturn, sink);
                self.place = LinePlace::InLine;
                return self.step(byte, sink);
            }
            (LinePlace::LineStart, b'.') => self.place = LinePlace::Dot,
            (LinePlace::Dot, b'\r') => self.place = LinePlace::DotCarriageReturn,
            (_, b'\r') => self.place = LinePlace::CarriageReturn,
            (_, b'\n') => {
                self.bare_end(TextFault::BareLineFeed, sink);
                self.place = LinePlace::InLine;
            }
            // Behind a dot, which goes (RFC 5321, section 4.5.2), or at any other place.
            _ => {
                self.place = LinePlace::InLine;
                self.text(&[byte], sink);
            }
        }
        false
    }

    fn line_end(&mut self, sink: &mut impl FnMut(&[u8])) {
        self.place = LinePlace::LineStart;
        self.line_bytes = 0;
        self.give(b"\r\n", sink);
    }

    fn bare_end(&mut self, fault: TextFault, sink: &mut impl FnMut(&[u8])) {
        match self.bare_ends {
            BareEnds::Refuse => self.fault = self.fault.or(Some(fault)),
            BareEnds::Normalise => {
                self.line_bytes = 0;
                self.give(b"\r\n", sink);
            }
        }
    }

    fn text(&mut self, bytes: &[u8], sink: &mut impl FnMut(&[u8])) {
        self.line_bytes = self.line_bytes.saturating_add(bytes.len());
        if self.line_bytes > self.limits.line_bytes {
            let fault = TextFault::LineTooLong { limit_bytes: self.limits.line_bytes };
            self.fault = self.fault.or(Some(fault));
        }
        self.give(bytes, sink);
    }

    fn give(&mut self, bytes: &[u8], sink: &mut impl FnMut(&[u8])) {
        let text_bytes = self.text_bytes.saturating_add(bytes.len() as u64);
        if text_bytes > self.limits.text_bytes {
            let fault = TextFault::TooLong { limit_bytes: self.limits.text_bytes };
            self.fault = self.fault.or(Some(fault));
        }
        if self.fault.is_none() {
            self.text_bytes = text_bytes;
            sink(bytes);
        }
    }
}

/// A line of such a text, for a reader that has lines already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DotLine<'a> {
    /// A line of the text, without the dot that was added and without its end.
    Text(&'a [u8]),
    /// The text is over.
    End,
}

/// What a line that came, without its end, says.
#[must_use]
pub fn dot_line(line: &[u8]) -> DotLine<'_> {
    match line.strip_prefix(b".") {
        Some([]) => DotLine::End,
        Some(rest) => DotLine::Text(rest),
        None => DotLine::Text(line),
    }
}

/// Writes a text as it goes over the wire, in pieces of any size.
#[derive(Clone, Debug)]
pub struct DotWriter {
    bare_ends: BareEnds,
    at_line_start: bool,
    after_carriage_return: bool,
}

impl DotWriter {
    /// Nothing was written yet.
    #[must_use]
    pub fn new(bare_ends: BareEnds) -> Self {
        Self { bare_ends, at_line_start: true, after_carriage_return: false }
    }

    /// Appends the next bytes of the text to `out`.
    ///
    /// # Errors
    /// The text has a CR or LF by itself, and none may be sent ([`BareEnds::Refuse`]).
    pub fn write(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), TextFault> {
        let mut rest = text;
        while let Some((first, after)) = rest.split_first() {
            if self.after_carriage_return {
                self.after_carriage_return = false;
                if *first == b'\n' {
                    self.end_line(out);
                    rest = after;
                    continue;
                }
                self.bare_end(TextFault::BareCarriageReturn, out)?;
            }
            match first {
                b'\r' => {
                    self.after_carriage_return = true;
                    rest = after;
                }
                b'\n' => {
                    self.bare_end(TextFault::BareLineFeed, out)?;
                    rest = after;
                }
                _ => {
                    if self.at_line_start && *first == b'.' {
                        out.push(b'.');
                    }
                    self.at_line_start = false;
                    let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
                    let (plain, after) = rest.split_at(end.unwrap_or(rest.len()));
                    out.extend_from_slice(plain);
                    rest = after;
                }
            }
        }
        Ok(())
    }

    /// Appends the end of the last line, if it has none, and the line that ends the text.
    ///
    /// # Errors
    /// The text ends with a CR by itself, and none may be sent.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(), TextFault> {
        if self.after_carriage_return {
            self.bare_end(TextFault::BareCarriageReturn, out)?;
        }
        if !self.at_line_start {
            self.end_line(out);
        }
        out.extend_from_slice(b".\r\n");
        Ok(())
    }

    fn bare_end(&mut self, fault: TextFault, out: &mut Vec<u8>) -> Result<(), TextFault> {
        match self.bare_ends {
            BareEnds::Refuse => Err(fault),
            BareEnds::Normalise => {
                self.end_line(out);
                Ok(())
            }
        }
    }

    fn end_line(&mut self, out: &mut Vec<u8>) {
        self.at_line_start = true;
        out.extend_from_slice(b"\r\n");
    }
}

/// Looks for a CR or LF by itself in a text that comes without dots, as by BDAT (RFC 3030).
#[derive(Clone, Debug, Default)]
pub struct LineEndCheck {
    after_carriage_return: bool,
    fault: Option<TextFault>,
}

impl LineEndCheck {
    /// Looks at the next bytes.
    pub fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match (self.after_carriage_return, *byte) {
                (true, b'\n') => {}
                (true, _) => self.fault = self.fault.or(Some(TextFault::BareCarriageReturn)),
                (false, b'\n') => self.fault = self.fault.or(Some(TextFault::BareLineFeed)),
                (false, _) => {}
            }
            self.after_carriage_return = *byte == b'\r';
        }
    }

    /// The first fault of the whole text.
    #[must_use]
    pub fn finish(self) -> Option<TextFault> {
        let open = self.after_carriage_return.then_some(TextFault::BareCarriageReturn);
        self.fault.or(open)
    }
}
