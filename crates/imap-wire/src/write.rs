//! Writes values: strings quoted where that can be, and as literals elsewhere.

use crate::frame::Speaker;
use crate::value::Value;

/// A longer string is a literal.
const QUOTED_MAX_BYTES: usize = 1000;

/// How strings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// A server's literals follow at once; a client waits for `+`, unless they are short enough.
    pub speaker: Speaker,
    /// A client's literals up to this length are sent without waiting: 4096 with LITERAL-, any with LITERAL+, 0
    /// without both (RFC 7888).
    pub unasked_bytes: u64,
    /// Strings beyond ASCII may be quoted: after UTF8=ACCEPT, or in IMAP4rev2.
    pub utf8: bool,
}

impl WriteOptions {
    /// A client, which waits before each literal.
    pub const CLIENT: Self = Self { speaker: Speaker::Client, unasked_bytes: 0, utf8: false };
    /// A server.
    pub const SERVER: Self = Self { speaker: Speaker::Server, unasked_bytes: 0, utf8: false };
}

/// What comes behind a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The command or response is over.
    End,
    /// The next segment, after the server has said `+`.
    Continuation,
    /// This many bytes of the caller's, then the next segment; `waits` says whether the server says `+` first.
    Data {
        /// The length of the literal.
        bytes: u64,
        /// Whether the server is waited for.
        waits: bool,
    },
}

/// Bytes to be sent at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What comes behind them.
    pub next: Next,
}

/// Writes values with a space between them, and the end of the line.
#[must_use]
pub fn write_values(values: &[Value], options: WriteOptions) -> Vec<Segment> {
    let mut writer = Writer { options, out: Vec::new(), segments: Vec::new() };
    writer.all(values, true);
    writer.out.extend_from_slice(b"\r\n");
    writer.end(Next::End);
    writer.segments
}

/// All bytes of segments that nothing comes between.
#[must_use]
pub fn joined(segments: &[Segment]) -> Vec<u8> {
    segments.iter().flat_map(|segment| segment.bytes.iter().copied()).collect()
}

struct Writer {
    options: WriteOptions,
    out: Vec<u8>,
    segments: Vec<Segment>,
}

impl Writer {
    fn end(&mut self, next: Next) {
        self.segments.push(Segment { bytes: std::mem::take(&mut self.out), next });
    }

    fn all(&mut self, values: &[Value], spaced: bool) {
        for (index, value) in values.iter().enumerate() {
            if index > 0 && spaced {
                self.out.push(b' ');
            }
            self.value(value);
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Atom(text) => self.out.extend(text.bytes().filter(|byte| *byte >= b' ' && *byte != 127)),
            Value::Text(bytes) if self.can_quote(bytes) => {
                self.out.push(b'"');
                for byte in bytes {
                    if matches!(byte, b'"' | b'\\') {
                        self.out.push(b'\\');
                    }
                    self.out.push(*byte);
                }
                self.out.push(b'"');
            }
            Value::Text(bytes) | Value::Literal(bytes) => self.literal(bytes, bytes.contains(&0)),
            Value::Binary(bytes) => self.literal(bytes, true),
            Value::Streamed(bytes, binary) => {
                let waits = self.announce(*bytes, *binary);
                self.end(Next::Data { bytes: *bytes, waits });
            }
            Value::List(values) => {
                self.out.push(b'(');
                self.all(values, true);
                self.out.push(b')');
            }
            Value::Run(values) => self.all(values, false),
        }
    }

    fn can_quote(&self, bytes: &[u8]) -> bool {
        bytes.len() <= QUOTED_MAX_BYTES
            && bytes.iter().all(|byte| matches!(byte, b' '..=b'~') || (self.options.utf8 && *byte >= 128))
            && (bytes.is_ascii() || std::str::from_utf8(bytes).is_ok())
    }

    fn literal(&mut self, bytes: &[u8], binary: bool) {
        if self.announce(bytes.len() as u64, binary) {
            self.end(Next::Continuation);
        }
        self.out.extend_from_slice(bytes);
    }

    /// Says whether the server is waited for.
    fn announce(&mut self, bytes: u64, binary: bool) -> bool {
        let is_client = self.options.speaker == Speaker::Client;
        let unasked = is_client && self.options.unasked_bytes > 0 && bytes <= self.options.unasked_bytes;
        let (tilde, plus) = (if binary { "~" } else { "" }, if unasked { "+" } else { "" });
        self.out.extend_from_slice(format!("{tilde}{{{bytes}{plus}}}\r\n").as_bytes());
        is_client && !unasked
    }
}
