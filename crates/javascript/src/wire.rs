//! What the server and a process that runs functions say to each other.
//!
//! A frame is its length (4 bytes) and this many bytes; numbers are little-endian, a text is its length (4 bytes) and its
//! bytes. Neither side believes the other: lengths are held against what is there before anything is reserved.
//!
//! | first byte | request | then |
//! |---|---|---|
//! | 1 | prepare an engine | limits, modules, `this`, and the sources, each with a byte that says to leave it out |
//! | 2 | map documents | the function to begin with, how many calls at most, a byte for each function that says to leave it out, documents |
//! | 3 | reduce | keys, or none, and values |
//! | 4 | validate edits | for each: the document, the one before, the user's context, the security object |
//! | 5 | let a document through a filter | the document, the request |
//! | 6 | update a document | the document or `null`, the request |
//!
//! An answer has for each source, call, reduction or edit one result, in their order, perhaps for the first few only; then the
//! lines that were logged; and at its beginning whether the next call could not be ended.

use crate::error::ScriptError;
use crate::limits::Limits;

/// The first bytes of a process: who it is, and which version of this file it speaks.
pub(crate) const MAGIC: &[u8; 8] = b"scrjs\x00\x00\x02";

/// How functions are told apart from each other and what they get.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Program {
    pub(crate) sources: Vec<String>,
    /// Texts of CommonJS modules by their paths, a JSON object.
    pub(crate) modules: Option<String>,
    /// What functions find as `this`, as JSON.
    pub(crate) this: Option<String>,
    pub(crate) limits: Limits,
}

/// What a process is asked.
#[derive(Debug)]
pub(crate) enum Request<'a> {
    /// Always first, and once.
    Prepare {
        program: Program,
        left_out: Vec<bool>,
    },
    Map {
        first: usize,
        calls_max: usize,
        left_out: Vec<bool>,
        documents: Vec<&'a str>,
    },
    Reduce {
        keys: Option<&'a str>,
        values: &'a str,
    },
    Validate(Vec<Edited<'a>>),
    Filter(Requested<'a>),
    Update(Requested<'a>),
}

/// A document and the request that it is for, as JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requested<'a> {
    /// `null` if there is none.
    pub(crate) document: &'a str,
    pub(crate) request: &'a str,
}

/// An edit that is to be validated; all of it JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edited<'a> {
    pub(crate) new: &'a str,
    /// `null` if there is none.
    pub(crate) old: &'a str,
    pub(crate) user: &'a str,
    pub(crate) security: &'a str,
}

/// What one call came to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct CallOutcome {
    /// Processor time of a call that took long; 0 for others.
    pub(crate) slow_us: u32,
    pub(crate) result: Result<String, ScriptError>,
}

/// What a process answers.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Answer {
    /// The call after the outcomes could not be ended; the process is gone.
    pub(crate) is_stuck: bool,
    pub(crate) outcomes: Vec<CallOutcome>,
    /// Which function said it, and what.
    pub(crate) log: Vec<(u32, String)>,
}

/// Bytes being written.
#[derive(Default)]
pub(crate) struct Output(Vec<u8>);

impl Output {
    /// An empty frame.
    pub(crate) fn frame() -> Self {
        Self(vec![0; 4])
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(crate) fn number(&mut self, number: usize) {
        // What does not fit is refused before it is written; this is longer than any frame.
        self.0.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
    }

    fn large(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn optional(&mut self, text: Option<&str>) {
        self.byte(u8::from(text.is_some()));
        self.text(text.unwrap_or_default());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    /// What was written, without a frame around it.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The whole frame with its length.
    pub(crate) fn framed(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len().saturating_sub(4)).unwrap_or(u32::MAX);
        if let Some(head) = self.0.first_chunk_mut::<4>() {
            *head = length.to_le_bytes();
        }
        self.0
    }
}

/// Bytes being read; nothing is given that is not there.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*word))
    }

    fn number(&mut self) -> Option<usize> {
        usize::try_from(self.word()?).ok()
    }

    fn large(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.number()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    fn optional(&mut self) -> Option<Option<&'a str>> {
        let is_there = self.flag()?;
        let text = self.text()?;
        Some(is_there.then_some(text))
    }

    /// This many of what takes at least a byte each.
    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        if count > self.0.len() {
            return None;
        }
        let mut list = Vec::with_capacity(count.min(1024));
        for _ in 0..count {
            list.push(read(self)?);
        }
        Some(list)
    }

    const fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }
}

impl Program {
    fn put(&self, out: &mut Output, left_out: &[bool]) {
        let Limits {
            memory_bytes,
            call_time_ms,
            stack_bytes,
            emitted_max,
            emitted_bytes_max,
            reduce_limit: _,
        } = self.limits;
        for number in [memory_bytes, stack_bytes, emitted_bytes_max] {
            out.large(number as u64);
        }
        out.large(call_time_ms);
        out.large(u64::from(emitted_max));
        out.optional(self.modules.as_deref());
        out.optional(self.this.as_deref());
        out.number(self.sources.len());
        for (place, source) in self.sources.iter().enumerate() {
            out.byte(u8::from(left_out.get(place) == Some(&true)));
            out.text(source);
        }
    }

    fn read(input: &mut Input<'_>) -> Option<(Self, Vec<bool>)> {
        let size = |number: u64| usize::try_from(number).ok();
        let limits = Limits {
            memory_bytes: size(input.large()?)?,
            stack_bytes: size(input.large()?)?,
            emitted_bytes_max: size(input.large()?)?,
            call_time_ms: input.large()?,
            emitted_max: u32::try_from(input.large()?).ok()?,
            ..Limits::default()
        };
        let modules = input.optional()?.map(str::to_owned);
        let this = input.optional()?.map(str::to_owned);
        let sources = input.list(|input| Some((input.flag()?, input.text()?.to_owned())))?;
        let (left_out, sources) = sources.into_iter().unzip();
        Some((Self { sources, modules, this, limits }, left_out))
    }

    /// What tells programs apart.
    pub(crate) fn digest(&self) -> u128 {
        let mut out = Output::default();
        self.put(&mut out, &[]);
        xxhash_rust::xxh3::xxh3_128(&out.into_bytes())
    }
}

impl<'a> Request<'a> {
    /// The request as a frame.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Output::frame();
        match self {
            Self::Prepare { program, left_out } => {
                out.byte(1);
                program.put(&mut out, left_out);
            }
            Self::Map { first, calls_max, left_out, documents } => {
                out.byte(2);
                out.number(*first);
                out.number(*calls_max);
                out.number(left_out.len());
                left_out.iter().for_each(|flag| out.byte(u8::from(*flag)));
                out.number(documents.len());
                documents.iter().for_each(|document| out.text(document));
            }
            Self::Reduce { keys, values } => {
                out.byte(3);
                out.optional(*keys);
                out.text(values);
            }
            Self::Validate(edits) => {
                out.byte(4);
                out.number(edits.len());
                for Edited { new, old, user, security } in edits {
                    [new, old, user, security].into_iter().for_each(|text| out.text(text));
                }
            }
            Self::Filter(requested) => requested.put(&mut out, 5),
            Self::Update(requested) => requested.put(&mut out, 6),
        }
        out.framed()
    }

    /// The request in a frame without its length.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        let request = match input.byte()? {
            1 => {
                let (program, left_out) = Program::read(&mut input)?;
                Self::Prepare { program, left_out }
            }
            2 => Self::Map {
                first: input.number()?,
                calls_max: input.number()?,
                left_out: input.list(Input::flag)?,
                documents: input.list(Input::text)?,
            },
            3 => Self::Reduce { keys: input.optional()?, values: input.text()? },
            4 => Self::Validate(input.list(|input| {
                Some(Edited {
                    new: input.text()?,
                    old: input.text()?,
                    user: input.text()?,
                    security: input.text()?,
                })
            })?),
            5 => Self::Filter(Requested::read(&mut input)?),
            6 => Self::Update(Requested::read(&mut input)?),
            _ => return None,
        };
        input.is_at_end().then_some(request)
    }
}

impl<'a> Requested<'a> {
    fn put(&self, out: &mut Output, kind: u8) {
        out.byte(kind);
        out.text(self.document);
        out.text(self.request);
    }

    fn read(input: &mut Input<'a>) -> Option<Self> {
        Some(Self { document: input.text()?, request: input.text()? })
    }
}

impl CallOutcome {
    pub(crate) fn put(&self, out: &mut Output) {
        out.number(usize::try_from(self.slow_us).unwrap_or(usize::MAX));
        match &self.result {
            Ok(text) => {
                out.byte(0);
                out.text(text);
            }
            Err(error) => put_error(out, error),
        }
    }

    fn read(input: &mut Input<'_>, limits: &Limits) -> Option<Self> {
        let slow_us = input.word()?;
        let kind = input.byte()?;
        let result = match kind {
            0 => Ok(input.text()?.to_owned()),
            kind => Err(read_error(kind, input, limits)?),
        };
        Some(Self { slow_us, result })
    }
}

impl Answer {
    /// An answer's frame, of outcomes and lines that were written one by one.
    pub(crate) fn encode(is_stuck: bool, outcomes: (usize, &[u8]), log: (usize, &[u8])) -> Vec<u8> {
        let mut out = Output::frame();
        out.byte(u8::from(is_stuck));
        for (count, bytes) in [outcomes, log] {
            out.number(count);
            out.bytes(bytes);
        }
        out.framed()
    }

    /// The answer in a frame without its length.
    pub(crate) fn decode(bytes: &[u8], limits: &Limits) -> Option<Self> {
        let mut input = Input::new(bytes);
        let answer = Self {
            is_stuck: input.flag()?,
            outcomes: input.list(|input| CallOutcome::read(input, limits))?,
            log: input.list(|input| Some((input.word()?, input.text()?.to_owned())))?,
        };
        input.is_at_end().then_some(answer)
    }
}

/// Only what a process itself finds is ever sent; limits are those that it was given.
fn put_error(out: &mut Output, error: &ScriptError) {
    match error {
        ScriptError::Syntax { line, column, message } => {
            out.byte(1);
            out.number(usize::try_from(*line).unwrap_or_default());
            out.number(usize::try_from(*column).unwrap_or_default());
            out.text(message);
        }
        ScriptError::NotAFunction { found } => {
            out.byte(2);
            out.text(found);
        }
        ScriptError::Json { message } => {
            out.byte(3);
            out.text(message);
        }
        ScriptError::Time { .. } => out.byte(5),
        ScriptError::Memory { .. } => out.byte(6),
        ScriptError::Stack { .. } => out.byte(7),
        ScriptError::TooMuchEmitted { .. } => out.byte(8),
        ScriptError::Runaway => out.byte(9),
        other => {
            out.byte(4);
            out.text(&other.to_string());
        }
    }
}

fn read_error(kind: u8, input: &mut Input<'_>, limits: &Limits) -> Option<ScriptError> {
    /// A process that is believed nothing could send more.
    const MESSAGE_MAX: usize = 4000;
    let message = |input: &mut Input<'_>| Some(input.text()?.chars().take(MESSAGE_MAX).collect::<String>());
    Some(match kind {
        1 => ScriptError::Syntax { line: input.word()?, column: input.word()?, message: message(input)? },
        2 => ScriptError::NotAFunction { found: message(input)? },
        3 => ScriptError::Json { message: message(input)? },
        4 => ScriptError::Thrown { message: message(input)? },
        5 => ScriptError::Time { limit_ms: limits.call_time_ms },
        6 => ScriptError::Memory { limit_bytes: limits.memory_bytes },
        7 => ScriptError::Stack { limit_bytes: limits.stack_bytes },
        8 => ScriptError::TooMuchEmitted {
            entries_max: limits.emitted_max,
            bytes_max: limits.emitted_bytes_max,
        },
        9 => ScriptError::Runaway,
        _ => return None,
    })
}
