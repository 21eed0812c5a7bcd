//! Frames: a command or a response with its literals, put together from bytes that come in pieces of any size
//! (RFC 9051, sections 2.2 and 4.3; RFC 7888).
//!
//! The length of a literal is announced before its bytes, and the caller says what happens with it: it is kept, handed on
//! while it comes, or left out. A literal that is left out is read all the same where it comes without being asked for, so that a
//! message is never executed as commands.

use thiserror::Error;

/// Limits of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// All lines of the frame, and all literals that are kept.
    pub bytes: usize,
    /// Literals of the frame.
    pub literals: usize,
    /// Whether an LF without a CR ends a line, as some servers send it. A server asks for CR LF.
    pub bare_line_feed: bool,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// A client sends commands.
    Client,
    /// A server sends responses. Text that people read may end like a literal without being one.
    Server,
}

/// A piece of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text without the announcements of literals.
    Text(Vec<u8>),
    /// A literal that was kept, and whether it may hold NUL (`~{5}`, RFC 3516).
    Literal(Vec<u8>, bool),
    /// A literal that was handed on, and whether it may hold NUL.
    Streamed(u64, bool),
}

/// A literal that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Literal {
    /// Its length.
    pub bytes: u64,
    /// The client waits for `+` before it sends it.
    pub waits: bool,
    /// It may hold NUL.
    pub binary: bool,
}

/// What happens with a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It becomes a part of the frame.
    Keep,
    /// Its bytes are given to the caller while they come.
    Stream,
    /// The frame is refused: a literal that waits is never sent and ends the frame, any other one is read and dropped
    /// with the rest of the frame.
    Refuse,
}

/// What a reader has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameStep<'a> {
    /// All bytes were taken, and more must come.
    More,
    /// A literal comes: [`FrameReader::decide`] is next.
    Announced(Literal),
    /// Bytes of a literal that is handed on.
    Data(&'a [u8]),
    /// A frame is whole.
    Frame(Vec<Part>),
    /// A frame that was refused is over; these are the parts before the literal.
    Refused(Vec<Part>),
}

/// Why bytes are no frame. The connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// More text and literals than the limit.
    #[error("a command or response of more than {0} bytes")]
    TooLong(usize),
    /// More literals than the limit.
    #[error("a command or response with more than {0} literals")]
    TooManyLiterals(usize),
    /// A line ends with an LF alone.
    #[error("a line feed stands alone; lines end with CR LF")]
    BareLineFeed,
    /// The caller did not say what happens with a literal, or said it where there is none.
    #[error("no literal waits for a decision")]
    Undecided,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameState {
    Line,
    Undecided(Literal),
    Keep { missing: u64, binary: bool },
    Stream { missing: u64 },
    Drop { missing: u64 },
}

/// Puts frames together.
#[derive(Clone, Debug)]
pub struct FrameReader {
    limits: FrameLimits,
    speaker: Speaker,
    state: FrameState,
    parts: Vec<Part>,
    line: Vec<u8>,
    kept_bytes: usize,
    literals: usize,
    refused: bool,
}

impl FrameReader {
    /// Nothing has arrived yet.
    #[must_use]
    pub fn new(limits: FrameLimits, speaker: Speaker) -> Self {
        Self {
            limits,
            speaker,
            state: FrameState::Line,
            parts: Vec::new(),
            line: Vec::new(),
            kept_bytes: 0,
            literals: 0,
            refused: false,
        }
    }

    /// Other limits from now on: a server allows more after log-in.
    pub fn set_limits(&mut self, limits: FrameLimits) {
        self.limits = limits;
    }

    /// Text before the literal that is announced.
    #[must_use]
    pub fn text_before(&self) -> &[u8] {
        match self.parts.last() {
            Some(Part::Text(text)) => text,
            _ => &[],
        }
    }

    /// The parts of the frame that have come.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether nothing of a frame has arrived.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.state == FrameState::Line && self.line.is_empty() && self.parts.is_empty()
    }

    /// Takes bytes; says how many, and what they were. What is left is for the next call.
    ///
    /// # Errors
    /// [`FrameError`]
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, FrameStep<'a>), FrameError> {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            match self.state {
                FrameState::Undecided(_) => return Err(FrameError::Undecided),
                FrameState::Line => {
                    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                        self.append(rest)?;
                        return Ok((bytes.len(), FrameStep::More));
                    };
                    at += end + 1;
                    self.append(rest.get(..end).unwrap_or_default())?;
                    if let Some(step) = self.line_ended()? {
                        return Ok((at, step));
                    }
                }
                FrameState::Keep { missing: 0, .. }
                | FrameState::Stream { missing: 0 }
                | FrameState::Drop { missing: 0 } => {
                    self.state = FrameState::Line;
                }
                _ if rest.is_empty() => return Ok((at, FrameStep::More)),
                FrameState::Keep { missing, binary } => {
                    let taken = first(rest, missing);
                    at += taken.len();
                    if let Some(Part::Literal(literal, _)) = self.parts.last_mut() {
                        literal.extend_from_slice(taken);
                    }
                    self.state = FrameState::Keep { missing: missing - taken.len() as u64, binary };
                }
                FrameState::Stream { missing } => {
                    let taken = first(rest, missing);
                    at += taken.len();
                    self.state = FrameState::Stream { missing: missing - taken.len() as u64 };
                    return Ok((at, FrameStep::Data(taken)));
                }
                FrameState::Drop { missing } => {
                    let taken = first(rest, missing);
                    at += taken.len();
                    self.state = FrameState::Drop { missing: missing - taken.len() as u64 };
                }
            }
        }
    }

    /// Says what happens with the literal that was announced. Gives the parts of a frame that is over with it: the
    /// client waited, and the literal was refused.
    ///
    /// # Errors
    /// The literal is to be kept and does not fit, or there is none.
    pub fn decide(&mut self, decision: Decision) -> Result<Option<Vec<Part>>, FrameError> {
        let FrameState::Undecided(literal) = self.state else { return Err(FrameError::Undecided) };
        let Literal { bytes, waits, binary } = literal;
        match decision {
            Decision::Keep => {
                let count = usize::try_from(bytes).ok();
                let kept = count.and_then(|count| self.kept_bytes.checked_add(count));
                match kept.filter(|kept| *kept <= self.limits.bytes) {
                    Some(kept) => self.kept_bytes = kept,
                    None => return Err(FrameError::TooLong(self.limits.bytes)),
                }
                self.parts.push(Part::Literal(Vec::new(), binary));
                self.state = FrameState::Keep { missing: bytes, binary };
            }
            Decision::Stream => {
                self.parts.push(Part::Streamed(bytes, binary));
                self.state = FrameState::Stream { missing: bytes };
            }
            // The client sends nothing of it: the next byte begins a command.
            Decision::Refuse if waits => return Ok(Some(self.start_again())),
            Decision::Refuse => {
                self.refused = true;
                self.state = FrameState::Drop { missing: bytes };
            }
        }
        Ok(None)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), FrameError> {
        self.kept_bytes = self.kept_bytes.saturating_add(bytes.len());
        if self.kept_bytes > self.limits.bytes {
            return Err(FrameError::TooLong(self.limits.bytes));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// A line is whole, but for its LF.
    fn line_ended(&mut self) -> Result<Option<FrameStep<'static>>, FrameError> {
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        } else if !self.limits.bare_line_feed {
            return Err(FrameError::BareLineFeed);
        }
        let is_text = self.speaker == Speaker::Server && self.parts.is_empty() && is_status(&line);
        let announced = if is_text { None } else { announced(&line, self.speaker) };
        let Some((literal, text_bytes)) = announced else {
            let refused = self.refused;
            if !refused {
                self.parts.push(Part::Text(line));
            }
            let parts = self.start_again();
            return Ok(Some(if refused { FrameStep::Refused(parts) } else { FrameStep::Frame(parts) }));
        };
        self.literals = self.literals.saturating_add(1);
        if self.literals > self.limits.literals {
            return Err(FrameError::TooManyLiterals(self.limits.literals));
        }
        if self.refused {
            if literal.waits {
                let parts = self.start_again();
                return Ok(Some(FrameStep::Refused(parts)));
            }
            self.state = FrameState::Drop { missing: literal.bytes };
            return Ok(None);
        }
        line.truncate(text_bytes);
        self.parts.push(Part::Text(line));
        self.state = FrameState::Undecided(literal);
        Ok(Some(FrameStep::Announced(literal)))
    }

    fn start_again(&mut self) -> Vec<Part> {
        self.state = FrameState::Line;
        self.line = Vec::new();
        self.kept_bytes = 0;
        self.literals = 0;
        self.refused = false;
        std::mem::take(&mut self.parts)
    }
}

fn first(bytes: &[u8], count: u64) -> &[u8] {
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(bytes.len());
    bytes.get(..count).unwrap_or_default()
}

/// Whether a line of a server is a status with text that people read: `* OK ..`, `+ ..`, or a tagged response.
fn is_status(line: &[u8]) -> bool {
    if line.first() == Some(&b'+') {
        return true;
    }
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let tag = words.next().unwrap_or_default();
    let word = words.next().unwrap_or_default().to_ascii_uppercase();
    tag != b"*" || matches!(word.as_slice(), b"OK" | b"NO" | b"BAD" | b"BYE" | b"PREAUTH")
}

/// The literal that a line announces at its end, `{12}`, `{12+}` or `~{12}`, and the length of the text before it.
/// A server's literals never wait.
#[must_use]
pub fn announced(line: &[u8], speaker: Speaker) -> Option<(Literal, usize)> {
    let inner = line.strip_suffix(b"}")?;
    let open = inner.iter().rposition(|byte| *byte == b'{')?;
    let digits = inner.get(open + 1..)?;
    let (digits, plus) = match digits.strip_suffix(b"+") {
        Some(digits) => (digits, true),
        None => (digits, false),
    };
    let valid = (1..=20).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let bytes = if valid { std::str::from_utf8(digits).ok()?.parse().ok()? } else { return None };
    let before = inner.get(..open).unwrap_or_default();
    let binary = before.ends_with(b"~");
    let waits = !plus && speaker == Speaker::Client;
    Some((Literal { bytes, waits, binary }, if binary { open - 1 } else { open }))
}
