//! Sets of sequence numbers and UIDs (RFC 9051, section 9, `sequence-set`).

use std::fmt;

use thiserror::Error;

/// More ranges than this are refused.
pub const RANGES_MAX: usize = 1 << 15;

/// It is no set of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no set of numbers")]
pub struct SetError;

/// A number from 1, or the last one that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SetNumber {
    /// A number, not 0.
    Number(u32),
    /// `*`
    Last,
}

impl SetNumber {
    fn parse(text: &str) -> Result<Self, SetError> {
        if text == "*" {
            return Ok(Self::Last);
        }
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = if digits { text.parse().ok() } else { None };
        number.filter(|number| *number > 0).map(Self::Number).ok_or(SetError)
    }

    fn resolve(self, last: u32) -> u32 {
        match self {
            Self::Number(number) => number,
            Self::Last => last,
        }
    }
}

impl fmt::Display for SetNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Last => formatter.write_str("*"),
        }
    }
}

/// A set as it came: ranges may descend and overlap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SequenceSet {
    /// Ranges, at least one; a single number is a range of itself.
    Ranges(Vec<(SetNumber, SetNumber)>),
    /// `$`: what the last SEARCH saved (RFC 5182).
    Saved,
}

impl SequenceSet {
    /// Reads a set.
    ///
    /// # Errors
    /// [`SetError`], also for more than [`RANGES_MAX`] ranges.
    pub fn parse(text: &str) -> Result<Self, SetError> {
        if text == "$" {
            return Ok(Self::Saved);
        }
        let mut ranges = Vec::new();
        for range in text.split(',') {
            if ranges.len() >= RANGES_MAX {
                return Err(SetError);
            }
            let (from, to) = range.split_once(':').unwrap_or((range, range));
            ranges.push((SetNumber::parse(from)?, SetNumber::parse(to)?));
        }
        Ok(Self::Ranges(ranges))
    }

    /// Whether it looks like a set: a key of SEARCH is one.
    #[must_use]
    pub fn is_like(text: &str) -> bool {
        text == "$" || text.starts_with(|first: char| first.is_ascii_digit() || first == '*')
    }

    /// Ranges of numbers in ascending order, without overlaps, where `*` is `last`. `n:*` holds the last one also
    /// where `n` is greater. Nothing is known of a saved set.
    #[must_use]
    pub fn resolve(&self, last: u32) -> Vec<(u32, u32)> {
        let Self::Ranges(ranges) = self else { return Vec::new() };
        let mut ranges: Vec<(u32, u32)> = ranges
            .iter()
            .map(|(from, to)| (from.resolve(last), to.resolve(last)))
            .map(|(from, to)| (from.min(to), from.max(to)))
            .filter(|(_, to)| *to > 0)
            .collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (from, to) in ranges {
            match merged.last_mut() {
                Some((_, end)) if from <= end.saturating_add(1) => *end = (*end).max(to),
                _ => merged.push((from, to)),
            }
        }
        merged
    }

    /// The set of these numbers, in their order, with runs put together. `None` if there are none, or one is 0.
    #[must_use]
    pub fn of_numbers(numbers: impl IntoIterator<Item = u32>) -> Option<Self> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for number in numbers {
            if number == 0 {
                return None;
            }
            match ranges.last_mut() {
                Some((_, end)) if end.checked_add(1) == Some(number) => *end = number,
                _ => ranges.push((number, number)),
            }
        }
        let range = |(from, to): (u32, u32)| (SetNumber::Number(from), SetNumber::Number(to));
        (!ranges.is_empty()).then(|| Self::Ranges(ranges.into_iter().map(range).collect()))
    }

    /// The range from one number to another or to the last.
    #[must_use]
    pub fn range(from: SetNumber, to: SetNumber) -> Self {
        Self::Ranges(vec![(from, to)])
    }
}

impl fmt::Display for SequenceSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Ranges(ranges) = self else { return formatter.write_str("$") };
        for (index, (from, to)) in ranges.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            if from == to {
                write!(formatter, "{comma}{from}")?;
            } else {
                write!(formatter, "{comma}{from}:{to}")?;
            }
        }
        Ok(())
    }
}
