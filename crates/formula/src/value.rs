//! Values of the language: every value is a list of texts, of numbers or of times, or it is an error.
//!
//! One element is by far the most common length, so it is held without a heap allocation: a number or a
//! time in place, a text of up to 23 bytes in place, a longer one shared. Longer lists are shared too,
//! so that copying any value is cheap.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use smol_str::{SmolStr, format_smolstr};

use crate::datetime::DateTime;
use crate::error::ErrorValue;
use crate::number::shown;

/// A piece of text: up to 23 bytes in place, more shared between copies.
pub type Text = SmolStr;

/// One or more elements of one type; never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct List<T>(Elements<T>);

#[derive(Clone, Debug, PartialEq)]
enum Elements<T> {
    One(T),
    Many(Arc<[T]>),
}

impl<T> List<T> {
    /// The list of one element.
    pub const fn one(element: T) -> Self {
        Self(Elements::One(element))
    }

    /// The list of these elements; none if there are none.
    #[must_use]
    pub fn from_vec(mut elements: Vec<T>) -> Option<Self> {
        if elements.len() > 1 {
            return Some(Self(Elements::Many(elements.into())));
        }
        elements.pop().map(Self::one)
    }

    /// The list of what a function makes of each element.
    pub(crate) fn map<U>(&self, apply: impl FnMut(&T) -> U) -> List<U> {
        List(match &self.0 {
            Elements::One(element) => Elements::One({ apply }(element)),
            Elements::Many(elements) => Elements::Many(elements.iter().map(apply).collect()),
        })
    }

    /// The list of what a function makes of each element; or the first error.
    pub(crate) fn try_map<U, E>(&self, mut apply: impl FnMut(&T) -> Result<U, E>) -> Result<List<U>, E> {
        Ok(List(match &self.0 {
            Elements::One(element) => Elements::One(apply(element)?),
            Elements::Many(elements) => Elements::Many(elements.iter().map(apply).collect::<Result<_, E>>()?),
        }))
    }

    /// The only element of a list of one.
    #[must_use]
    pub const fn single(&self) -> Option<&T> {
        match &self.0 {
            Elements::One(element) => Some(element),
            Elements::Many(_) => None,
        }
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Elements::One(element) => std::slice::from_ref(element),
            Elements::Many(elements) => elements,
        }
    }
}

/// What a formula computes with. Lists are never empty: what would be an empty list is the empty text.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// One or more texts. A field that a document does not have reads as one empty text.
    Text(List<Text>),
    /// One or more numbers, always finite. True is 1, false is 0.
    Number(List<f64>),
    /// One or more dates, times of day, or moments.
    Time(List<DateTime>),
    /// What an operator or function answers that cannot do what it was asked. It passes through
    /// everything it is given to, except what asks for it, such as `@IsError`.
    Error(Arc<ErrorValue>),
}

/// The type of a value, as messages name it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Kind {
    Text,
    Number,
    Time,
    Error,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Text => "text",
            Self::Number => "a number",
            Self::Time => "a date-time",
            Self::Error => "an error",
        })
    }
}

impl Value {
    /// One text.
    pub fn text(text: impl Into<Text>) -> Self {
        Self::Text(List::one(text.into()))
    }

    /// The empty text, which is also what a missing field reads as.
    #[must_use]
    pub const fn empty() -> Self {
        Self::Text(List::one(SmolStr::new_inline("")))
    }

    /// One number. What is not finite has no place in a document, so that it becomes an error value.
    #[must_use]
    pub fn number(number: f64) -> Self {
        if number.is_finite() {
            Self::Number(List::one(number))
        } else {
            Self::Error(ErrorValue::message("", "the number is too large"))
        }
    }

    /// True or false, as 1 or 0.
    #[must_use]
    pub const fn truth(truth: bool) -> Self {
        Self::Number(List::one(if truth { 1.0 } else { 0.0 }))
    }

    /// One date, time of day or moment.
    pub fn time(time: impl Into<DateTime>) -> Self {
        Self::Time(List::one(time.into()))
    }

    /// These texts; the empty text if there are none.
    #[must_use]
    pub fn texts(texts: Vec<Text>) -> Self {
        List::from_vec(texts).map_or_else(Self::empty, Self::Text)
    }

    /// These numbers, all of which must be finite; the empty text if there are none.
    #[must_use]
    pub fn numbers(numbers: Vec<f64>) -> Self {
        List::from_vec(numbers).map_or_else(Self::empty, Self::Number)
    }

    /// These times; the empty text if there are none.
    #[must_use]
    pub fn times(times: Vec<DateTime>) -> Self {
        List::from_vec(times).map_or_else(Self::empty, Self::Time)
    }

    /// The type of the elements.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Text(_) => Kind::Text,
            Self::Number(_) => Kind::Number,
            Self::Time(_) => Kind::Time,
            Self::Error(_) => Kind::Error,
        }
    }

    /// How many elements there are; an error counts as one.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a value is never empty")]
    pub fn len(&self) -> usize {
        match self {
            Self::Text(list) => list.len(),
            Self::Number(list) => list.len(),
            Self::Time(list) => list.len(),
            Self::Error(_) => 1,
        }
    }

    /// Whether this is an error.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// Whether this is one empty text, as of a missing field.
    #[must_use]
    pub fn is_empty_text(&self) -> bool {
        matches!(self, Self::Text(list) if list.single().is_some_and(|text| text.is_empty()))
    }

    /// Whether this is a number, or a list of them, of which one at least is not 0.
    #[must_use]
    pub fn is_true(&self) -> bool {
        matches!(self, Self::Number(list) if list.iter().any(|number| *number != 0.0))
    }

    /// The element at `index`, counted from 0, as a value of its own.
    #[must_use]
    pub fn element(&self, index: usize) -> Option<Self> {
        match self {
            Self::Text(list) => list.get(index).cloned().map(|text| Self::Text(List::one(text))),
            Self::Number(list) => list.get(index).map(|number| Self::Number(List::one(*number))),
            Self::Time(list) => list.get(index).map(|time| Self::Time(List::one(*time))),
            Self::Error(_) => (index == 0).then(|| self.clone()),
        }
    }

    /// Each element as a text for people: numbers with up to 15 digits, times as ISO 8601.
    #[must_use]
    pub fn to_texts(&self) -> List<Text> {
        match self {
            Self::Text(list) => list.clone(),
            Self::Number(list) => list.map(|number| shown(*number)),
            Self::Time(list) => list.map(|time| format_smolstr!("{time}")),
            Self::Error(error) => List::one(format_smolstr!("{error}")),
        }
    }

    /// These elements, by their place counted from 0, in this order; the empty text if there are none.
    pub(crate) fn pick(&self, places: impl Iterator<Item = usize>) -> Self {
        match self {
            Self::Text(list) => Self::texts(places.filter_map(|place| list.get(place)).cloned().collect()),
            Self::Number(list) => {
                Self::numbers(places.filter_map(|place| list.get(place)).copied().collect())
            }
            Self::Time(list) => Self::times(places.filter_map(|place| list.get(place)).copied().collect()),
            Self::Error(_) => self.clone(),
        }
    }

    /// How much work it is to copy or look through this value: its elements, and its text in steps of
    /// 16 bytes.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Text(list) => list.iter().map(|text| 1 + text.len() / 16).sum(),
            Self::Number(list) => list.len(),
            Self::Time(list) => list.len(),
            Self::Error(_) => 1,
        }
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::number(number)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::truth(truth)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<DateTime> for Value {
    fn from(time: DateTime) -> Self {
        Self::time(time)
    }
}
