//! Frames: a line with the literals in it (RFC 5804, section 4).
//!
//! A client announces a literal by `{12+}` and sends it at once, a server by `{12}`. One that is too long is read and
//! dropped with the rest of its frame, so that no script is executed as commands.

use std::fmt;

use thiserror::Error;

use crate::token::{Token, tokens};

/// Limits of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// Its lines together, without literals.
    pub line_bytes: usize,
    /// Its literals together. What is longer is dropped.
    pub literal_bytes: usize,
    /// How long a literal may be for all that: longer ones end the connection.
    pub dropped_bytes: u64,
    /// How many literals it may have.
    pub literals: usize,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// A client; its literals are announced by `{12+}` and nothing else.
    Client,
    /// A server; its literals are announced by `{12}`, or as a client does it.
    Server,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Line(Vec<u8>),
    Literal(Vec<u8>),
}

/// It may be a password, which no log may show.
impl fmt::Debug for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(formatter, "Line({} bytes)", line.len()),
            Self::Literal(literal) => write!(formatter, "Literal({} bytes)", literal.len()),
        }
    }
}

/// A command or a response, put together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    pub(crate) parts: Vec<Part>,
}

impl Frame {
    /// What it is made of; `None` if it is not of the grammar.
    #[must_use]
    pub fn tokens(&self) -> Option<Vec<Token>> {
        tokens(&self.parts)
    }
}

/// What a reader has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameStep {
    /// All bytes were taken, and more must come.
    More,
    /// A frame is whole.
    Frame(Frame),
    /// A frame is over whose literals were too long; this is what stands before the first that was.
    TooLong(Frame),
}

/// Why bytes are no frame. The connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// More text than the limit.
    #[error("a line of more than {0} bytes")]
    LineTooLong(usize),
    /// A literal that is not even dropped.
    #[error("a text of more than {0} bytes")]
    LiteralTooLong(u64),
    /// More literals than the limit.
    #[error("a command or response with more than {0} literals")]
    TooManyLiterals(usize),
    /// A line ends with an LF alone.
    #[error("a line feed stands alone; lines end with CR LF")]
    BareLineFeed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameState {
    Line,
    Keep { missing: usize },
    Drop { missing: u64 },
}

/// Puts frames together.
#[derive(Clone)]
pub struct FrameReader {
    limits: FrameLimits,
    speaker: Speaker,
    state: FrameState,
    frame: Frame,
    line: Vec<u8>,
    /// Of the whole frame.
    line_bytes: usize,
    literal_bytes: usize,
    literals: usize,
    is_refused: bool,
}

impl fmt::Debug for FrameReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limits, speaker, state, .. } = self;
        write!(formatter, "FrameReader({limits:?}, {speaker:?}, {state:?})")
    }
}

impl FrameReader {
    /// Nothing has arrived yet.
    #[must_use]
    pub fn new(limits: FrameLimits, speaker: Speaker) -> Self {
        Self {
            limits,
            speaker,
            state: FrameState::Line,
            frame: Frame::default(),
            line: Vec::new(),
            line_bytes: 0,
            literal_bytes: 0,
            literals: 0,
            is_refused: false,
        }
    }

    /// Other limits from now on: a server allows more after log-in.
    pub fn set_limits(&mut self, limits: FrameLimits) {
        self.limits = limits;
    }

    /// Whether nothing of a frame has arrived.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.state == FrameState::Line && self.line_bytes == 0 && self.frame.parts.is_empty()
    }

    /// Takes bytes; says how many, and what they were. What is left is for the next call.
    ///
    /// # Errors
    /// [`FrameError`]
    pub fn read(&mut self, bytes: &[u8]) -> Result<(usize, FrameStep), FrameError> {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            match self.state {
                FrameState::Keep { missing: 0 } | FrameState::Drop { missing: 0 } => {
                    self.state = FrameState::Line;
                }
                _ if rest.is_empty() => return Ok((at, FrameStep::More)),
                FrameState::Line => {
                    let end = rest.iter().position(|byte| *byte == b'\n');
                    let (text, _) = rest.split_at(end.unwrap_or(rest.len()));
                    self.append(text)?;
                    if end.is_none() {
                        return Ok((bytes.len(), FrameStep::More));
                    }
                    at += text.len() + 1;
                    if let Some(step) = self.line_ended()? {
                        return Ok((at, step));
                    }
                }
                FrameState::Keep { missing } => {
                    let (taken, _) = rest.split_at(missing.min(rest.len()));
                    at += taken.len();
                    if let Some(Part::Literal(literal)) = self.frame.parts.last_mut() {
                        literal.extend_from_slice(taken);
                    }
                    self.state = FrameState::Keep { missing: missing - taken.len() };
                }
                FrameState::Drop { missing } => {
                    let taken = usize::try_from(missing).unwrap_or(usize::MAX).min(rest.len());
                    at += taken;
                    self.state = FrameState::Drop { missing: missing - taken as u64 };
                }
            }
        }
    }

    fn append(&mut self, text: &[u8]) -> Result<(), FrameError> {
        self.line_bytes = self.line_bytes.saturating_add(text.len());
        if self.line_bytes > self.limits.line_bytes {
            return Err(FrameError::LineTooLong(self.limits.line_bytes));
        }
        self.line.extend_from_slice(text);
        Ok(())
    }

    /// A line is whole, but for its LF.
    fn line_ended(&mut self) -> Result<Option<FrameStep>, FrameError> {
        let mut line = std::mem::take(&mut self.line);
        if line.pop() != Some(b'\r') {
            return Err(FrameError::BareLineFeed);
        }
        // An end of a line counts, too, so that empty lines cannot be sent for ever within one frame.
        self.line_bytes = self.line_bytes.saturating_add(2);
        let Some((bytes, text_bytes)) = announced(&line, self.speaker) else {
            if !self.is_refused {
                self.frame.parts.push(Part::Line(line));
            }
            let is_refused = std::mem::take(&mut self.is_refused);
            self.line_bytes = 0;
            self.literal_bytes = 0;
            self.literals = 0;
            let frame = std::mem::take(&mut self.frame);
            return Ok(Some(if is_refused { FrameStep::TooLong(frame) } else { FrameStep::Frame(frame) }));
        };
        self.literals += 1;
        if self.literals > self.limits.literals {
            return Err(FrameError::TooManyLiterals(self.limits.literals));
        }
        if bytes > self.limits.dropped_bytes {
            return Err(FrameError::LiteralTooLong(self.limits.dropped_bytes));
        }
        line.truncate(text_bytes);
        if !self.is_refused {
            self.frame.parts.push(Part::Line(line));
        }
        let fits = usize::try_from(bytes).ok().filter(|bytes| {
            self.literal_bytes.checked_add(*bytes).is_some_and(|all| all <= self.limits.literal_bytes)
        });
        match fits.filter(|_| !self.is_refused) {
            Some(missing) => {
                self.literal_bytes += missing;
                self.frame.parts.push(Part::Literal(Vec::new()));
                self.state = FrameState::Keep { missing };
            }
            None => {
                self.is_refused = true;
                self.state = FrameState::Drop { missing: bytes };
            }
        }
        Ok(None)
    }
}

/// The length of the literal that a line announces at its end, and that of the text before it. What stands in quotation
/// marks announces nothing.
fn announced(line: &[u8], speaker: Speaker) -> Option<(u64, usize)> {
    let inner = line.strip_suffix(b"}")?;
    let open = inner.iter().rposition(|byte| *byte == b'{')?;
    let (before, digits) = inner.split_at_checked(open)?;
    let digits = digits.get(1..)?;
    let digits = match (digits.strip_suffix(b"+"), speaker) {
        (Some(digits), _) => digits,
        (None, Speaker::Server) => digits,
        (None, Speaker::Client) => return None,
    };
    if !(1..=10).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) || is_open(before) {
        return None;
    }
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, open))
}

/// Whether a quoted string is open at the end of a text.
fn is_open(text: &[u8]) -> bool {
    let (mut open, mut escaped) = (false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if open => escaped = true,
            b'"' => open = !open,
            _ => {}
        }
    }
    open
}
