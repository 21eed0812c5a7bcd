//! What can go wrong: a formula that cannot be compiled, an evaluation that was stopped, and the error
//! value, which is an ordinary outcome of evaluating.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::value::Kind;

/// Why a formula cannot be compiled, where, and what to do about it.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line}, column {column}: {message}; {advice}")]
pub struct FormulaError {
    /// What sort of mistake it is.
    pub kind: FormulaErrorKind,
    /// What is wrong.
    pub message: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The column in characters, counted from 1.
    pub column: u32,
    /// What the author of the formula can do.
    pub advice: String,
}

impl FormulaError {
    /// The byte of the source that it is about.
    pub(crate) fn offset(&self, source: &str) -> usize {
        let counted_from_0 =
            |number: u32| usize::try_from(number).map_or(0, |number| number.saturating_sub(1));
        let start = source.split_inclusive('\n').take(counted_from_0(self.line)).map(str::len).sum();
        let line = source.get(start..).unwrap_or("");
        start + line.char_indices().nth(counted_from_0(self.column)).map_or(line.len(), |(place, _)| place)
    }
}

/// The sorts of mistakes in a formula.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FormulaErrorKind {
    /// The text does not follow the grammar.
    Syntax,
    /// No function has this name.
    UnknownFunction,
    /// The function has too few, too many, or unsuitable arguments.
    Arguments,
    /// The function or statement exists in the language but cannot be used here.
    NotPermitted,
    /// The formula is longer or more deeply nested than is accepted.
    TooLarge,
}

impl FormulaErrorKind {
    /// The sort as a word for programs: `unknown_function`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::UnknownFunction => "unknown_function",
            Self::Arguments => "arguments",
            Self::NotPermitted => "not_permitted",
            Self::TooLarge => "too_large",
        }
    }
}

/// Why an evaluation was stopped. Unlike an error value it cannot be caught by the formula.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum EvaluationError {
    /// The formula did more work than one evaluation may, most likely in a loop that does not end.
    #[error(
        "the formula was stopped after {limit} steps for one document; \
         look for a loop that does not end, or for lists that grow in it"
    )]
    TooMuchWork {
        /// The steps allowed.
        limit: u32,
    },
    /// A text grew over the limit.
    #[error("the formula made a text of more than {limit_bytes} bytes; shorten it, for example with @Left")]
    TextTooLong {
        /// The bytes allowed.
        limit_bytes: usize,
    },
    /// A list grew over the limit.
    #[error("the formula made a list of more than {limit} elements; shorten it, for example with @Subset")]
    ListTooLong {
        /// The elements allowed.
        limit: usize,
    },
}

/// An error as a value: what an operator or function answers that cannot do what it was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorValue {
    reason: Reason,
    /// The function or operator that raised it; empty where there is none.
    origin: &'static str,
    line: u32,
    column: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reason {
    /// An operator does not work on these two types.
    Operands { left: Kind, right: Kind },
    /// An operator or statement does not work on this type.
    Operand { expected: &'static str, found: Kind },
    /// An argument of a function has the wrong type.
    Argument { argument: &'static str, expected: &'static str, found: Kind },
    /// Anything else that is wrong with the data.
    Message(Cow<'static, str>),
}

impl ErrorValue {
    pub(crate) fn new(origin: &'static str, reason: Reason) -> Arc<Self> {
        Arc::new(Self { reason, origin, line: 0, column: 0 })
    }

    pub(crate) fn message(origin: &'static str, message: impl Into<Cow<'static, str>>) -> Arc<Self> {
        Self::new(origin, Reason::Message(message.into()))
    }

    /// Where in the formula it arose: line and column, counted from 1; none for an error that was not
    /// raised by a formula.
    #[must_use]
    pub const fn position(&self) -> Option<(u32, u32)> {
        if self.line == 0 { None } else { Some((self.line, self.column)) }
    }

    /// Notes the place, unless a place inside it is noted already.
    pub(crate) fn located(mut self: Arc<Self>, line: u32, column: u32) -> Arc<Self> {
        if self.line == 0 {
            let this = Arc::make_mut(&mut self);
            this.line = line;
            this.column = column;
        }
        self
    }
}

impl fmt::Display for ErrorValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(formatter, "line {}, column {}: ", self.line, self.column)?;
        }
        let origin = self.origin;
        match &self.reason {
            Reason::Operands { left, right } => {
                write!(formatter, "{origin} does not go with {left} on its left and {right} on its right; ")?;
                formatter.write_str(conversion(*left, *right))
            }
            Reason::Operand { expected, found } => {
                write!(formatter, "{origin} needs {expected}, not {found}")
            }
            Reason::Argument { argument, expected, found } => {
                write!(formatter, "{origin} needs {expected} as '{argument}', not {found}")
            }
            Reason::Message(message) if origin.is_empty() => formatter.write_str(message),
            Reason::Message(message) => write!(formatter, "{origin}: {message}"),
        }
    }
}

/// What would bring two types together.
fn conversion(left: Kind, right: Kind) -> &'static str {
    match (left, right) {
        (Kind::Text, Kind::Number) | (Kind::Number, Kind::Text) => {
            "convert one of them with @Text or @TextToNumber"
        }
        (Kind::Text, Kind::Time) | (Kind::Time, Kind::Text) => {
            "convert one of them with @Text or @TextToTime"
        }
        (Kind::Text, Kind::Text) => "convert both with @TextToNumber to reckon with them",
        _ => "convert one of them, or use @Adjust to change a date-time",
    }
}
