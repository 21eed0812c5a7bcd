//! What stands in lines: texts, dates, times, durations, periods (RFC 5545, section 3.3).

use std::fmt;

pub use scrinium_line_wire::Day;
use thiserror::Error;

/// The value is not of the type that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the value is not valid")]
pub struct ValueError;

/// A text as it is written.
#[must_use]
pub fn escape_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | ';' | ',' => {
                out.push('\\');
                out.push(character);
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push('\t'),
            character if character.is_ascii_control() => {}
            character => out.push(character),
        }
    }
    out
}

/// The text that a value stands for.
#[must_use]
pub fn unescape_text(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value.chars();
    while let Some(character) = rest.next() {
        match character {
            '\\' => match rest.next() {
                Some('n' | 'N') => out.push('\n'),
                Some(escaped) => out.push(escaped),
                None => out.push('\\'),
            },
            character => out.push(character),
        }
    }
    out
}

/// The values of a line that has several, split at `separator` (`,`, or `;` in cards), still escaped.
pub fn split_values(value: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    value.split(move |character| {
        let splits = character == separator && !escaped;
        escaped = character == '\\' && !escaped;
        splits
    })
}

/// A day as calendars write it: `20260131`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Date(pub Day);

impl Date {
    /// Reads a date.
    ///
    /// # Errors
    /// [`ValueError`]
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        if text.len() != 8 {
            return Err(ValueError);
        }
        let part = |from: usize, to: usize| digits(text.get(from..to).unwrap_or_default());
        let small = |number: u64| u8::try_from(number).map_err(|_| ValueError);
        let year = u16::try_from(part(0, 4)?).map_err(|_| ValueError)?;
        Day::new(year, small(part(4, 6)?)?, small(part(6, 8)?)?).map(Self).ok_or(ValueError)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.0.parts();
        write!(formatter, "{year:04}{month:02}{day:02}")
    }
}

/// A date, or a date with a time: of a zone that the line names, of the place where one is, or UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DateTime {
    date: Date,
    second_of_day: Option<u32>,
    utc: bool,
}

impl DateTime {
    /// A day.
    #[must_use]
    pub fn day(date: Date) -> Self {
        Self { date, second_of_day: None, utc: false }
    }

    /// A time. `None` if there is no such time. A second 60 becomes 59.
    #[must_use]
    pub fn new(date: Date, (hour, minute, second): (u8, u8, u8), utc: bool) -> Option<Self> {
        let second_of_day = u32::from(hour) * 3600 + u32::from(minute) * 60 + u32::from(second.min(59));
        let valid = hour < 24 && minute < 60 && second <= 60;
        valid.then_some(Self { date, second_of_day: Some(second_of_day), utc })
    }

    /// The day.
    #[must_use]
    pub fn date(&self) -> Date {
        self.date
    }

    /// Seconds since the day began, unless it is the whole day.
    #[must_use]
    pub fn second_of_day(&self) -> Option<u32> {
        self.second_of_day
    }

    /// Whether it is UTC.
    #[must_use]
    pub fn is_utc(&self) -> bool {
        self.utc
    }

    /// Reads a date, or a date with a time.
    ///
    /// # Errors
    /// [`ValueError`]
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        let Some((date, time)) = text.split_once(['T', 't']) else { return Date::parse(text).map(Self::day) };
        let (time, utc) = match time.strip_suffix(['Z', 'z']) {
            Some(time) => (time, true),
            None => (time, false),
        };
        if time.len() != 6 {
            return Err(ValueError);
        }
        let part = |from: usize, to: usize| {
            let number = digits(time.get(from..to).unwrap_or_default())?;
            u8::try_from(number).map_err(|_| ValueError)
        };
        Self::new(Date::parse(date)?, (part(0, 2)?, part(2, 4)?, part(4, 6)?), utc).ok_or(ValueError)
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(second) = self.second_of_day else { return self.date.fmt(formatter) };
        let utc = if self.utc { "Z" } else { "" };
        write!(formatter, "{}T{:02}{:02}{:02}{utc}", self.date, second / 3600, second / 60 % 60, second % 60)
    }
}

/// How long something takes: `-P1DT2H`. Days are days of the calendar, however many hours they have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Duration {
    /// Before, not after.
    pub negative: bool,
    /// Weeks and days.
    pub days: u32,
    /// Hours, minutes and seconds.
    pub seconds: u32,
}

impl Duration {
    /// Reads a duration.
    ///
    /// # Errors
    /// [`ValueError`]
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let rest = rest.strip_prefix(['P', 'p']).ok_or(ValueError)?;
        let (days, time) = match rest.split_once(['T', 't']) {
            Some((days, time)) if !time.is_empty() => (days, time),
            Some(_) => return Err(ValueError),
            None if rest.is_empty() => return Err(ValueError),
            None => (rest, ""),
        };
        let days = units(days, &[('W', 7), ('D', 1)])?;
        let seconds = units(time, &[('H', 3600), ('M', 60), ('S', 1)])?;
        Ok(Self { negative, days, seconds })
    }
}

/// Numbers, each with its unit, in the order of the units.
fn units(text: &str, units: &[(char, u64)]) -> Result<u32, ValueError> {
    let mut total: u64 = 0;
    let mut rest = text;
    let mut next = units.iter();
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or(ValueError)?;
        let (number, after) = rest.split_at(end);
        let unit = after.chars().next().ok_or(ValueError)?.to_ascii_uppercase();
        let (_, factor) = next.find(|(known, _)| *known == unit).ok_or(ValueError)?;
        let more = digits(number)?.checked_mul(*factor).ok_or(ValueError)?;
        total = total.checked_add(more).ok_or(ValueError)?;
        rest = after.get(1..).ok_or(ValueError)?;
    }
    u32::try_from(total).map_err(|_| ValueError)
}

impl fmt::Display for Duration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { negative, days, seconds } = *self;
        out.write_str(if negative { "-P" } else { "P" })?;
        if days > 0 && seconds == 0 && days.is_multiple_of(7) {
            return write!(out, "{}W", days / 7);
        }
        if days > 0 {
            write!(out, "{days}D")?;
        }
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        if seconds > 0 || days == 0 {
            out.write_str("T")?;
        }
        if hours > 0 {
            write!(out, "{hours}H")?;
        }
        // Minutes stand between hours and seconds (RFC 5545, section 3.3.6).
        if minutes > 0 || (hours > 0 && rest > 0) {
            write!(out, "{minutes}M")?;
        }
        if rest > 0 || (seconds == 0 && days == 0) {
            write!(out, "{rest}S")?;
        }
        Ok(())
    }
}

/// From a time to another, or for a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Period {
    Until(DateTime, DateTime),
    For(DateTime, Duration),
}

impl Period {
    /// Reads a period.
    ///
    /// # Errors
    /// [`ValueError`]
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        let (start, end) = text.split_once('/').ok_or(ValueError)?;
        let start = DateTime::parse(start)?;
        if end.starts_with(['P', 'p', '+', '-']) {
            return Duration::parse(end).map(|duration| Self::For(start, duration));
        }
        DateTime::parse(end).map(|end| Self::Until(start, end))
    }
}

impl fmt::Display for Period {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Until(start, end) => write!(formatter, "{start}/{end}"),
            Self::For(start, duration) => write!(formatter, "{start}/{duration}"),
        }
    }
}

/// How far a zone is from UTC, in seconds: `+0100`.
///
/// # Errors
/// [`ValueError`]
pub fn parse_utc_offset(text: &str) -> Result<i32, ValueError> {
    let (sign, rest) = match text.split_at_checked(1) {
        Some(("+", rest)) => (1, rest),
        Some(("-", rest)) => (-1, rest),
        _ => return Err(ValueError),
    };
    if rest.len() != 4 && rest.len() != 6 {
        return Err(ValueError);
    }
    let part = |from: usize| digits(rest.get(from..from + 2).unwrap_or("00"));
    let (hours, minutes, seconds) = (part(0)?, part(2)?, part(4)?);
    if hours > 23 || minutes > 59 || seconds > 59 {
        return Err(ValueError);
    }
    let offset = i32::try_from(hours * 3600 + minutes * 60 + seconds).map_err(|_| ValueError)?;
    Ok(sign * offset)
}

pub(crate) fn digits(text: &str) -> Result<u64, ValueError> {
    let valid = (1..=10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if valid { text.parse().map_err(|_| ValueError) } else { Err(ValueError) }
}
