//! Dates as commands and responses have them (RFC 9051, section 9, `date` and `date-time`).

use std::fmt;

use scrinium_line_wire::Day;
use thiserror::Error;

/// It is no date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no date")]
pub struct DateError;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A day as commands write it: `1-Feb-1994`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Date(pub Day);

impl Date {
    /// Reads a date.
    ///
    /// # Errors
    /// [`DateError`]
    pub fn parse(text: &str) -> Result<Self, DateError> {
        let mut parts = text.trim_start().splitn(3, '-');
        let mut part = || parts.next().ok_or(DateError);
        let (day, month, year) = (part()?, part()?, part()?);
        let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month)).ok_or(DateError)?;
        let month = u8::try_from(month + 1).map_err(|_| DateError)?;
        if year.len() != 4 {
            return Err(DateError);
        }
        let day = u8::try_from(number(day)?).map_err(|_| DateError)?;
        Day::new(number(year)?, month, day).map(Self).ok_or(DateError)
    }

    /// Year, the month's name and the day.
    fn named_parts(self) -> (u16, &'static str, u8) {
        let (year, month, day) = self.0.parts();
        let name = MONTHS.get(usize::from(month).saturating_sub(1)).copied().unwrap_or_default();
        (year, name, day)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.named_parts();
        write!(formatter, "{day}-{month}-{year:04}")
    }
}

/// A time: `17-Jul-1996 02:44:25 -0700`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DateTime {
    date: Date,
    second_of_day: u32,
    zone_minutes: i16,
}

impl DateTime {
    /// The day and time where it was that time, and how many minutes the place is east of Greenwich. `None` if there is
    /// no such time. A second 60 becomes 59.
    #[must_use]
    pub fn new(date: Date, (hour, minute, second): (u8, u8, u8), zone_minutes: i16) -> Option<Self> {
        let valid = hour < 24 && minute < 60 && second <= 60 && zone_minutes.unsigned_abs() < 24 * 60;
        let second_of_day = u32::from(hour) * 3600 + u32::from(minute) * 60 + u32::from(second.min(59));
        valid.then_some(Self { date, second_of_day, zone_minutes })
    }

    /// The day.
    #[must_use]
    pub fn date(&self) -> Date {
        self.date
    }

    /// Seconds since the day began there.
    #[must_use]
    pub fn second_of_day(&self) -> u32 {
        self.second_of_day
    }

    /// Minutes east of Greenwich.
    #[must_use]
    pub fn zone_minutes(&self) -> i16 {
        self.zone_minutes
    }

    /// Reads a time.
    ///
    /// # Errors
    /// [`DateError`]
    pub fn parse(text: &str) -> Result<Self, DateError> {
        let mut words = text.split_ascii_whitespace();
        let mut word = || words.next().ok_or(DateError);
        let (date, time, zone) = (word()?, word()?, word()?);
        let date = Date::parse(date)?;
        let mut parts = time.split(':');
        let mut part = || -> Result<u8, DateError> {
            u8::try_from(number(parts.next().ok_or(DateError)?)?).map_err(|_| DateError)
        };
        let clock = (part()?, part()?, part()?);
        let (sign, zone) = match zone.split_at_checked(1) {
            Some(("+", zone)) => (1, zone),
            Some(("-", zone)) => (-1, zone),
            _ => return Err(DateError),
        };
        let (hours, minutes) = zone.split_at_checked(2).filter(|_| zone.len() == 4).ok_or(DateError)?;
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        let minutes = i16::try_from(hours * 60 + minutes).map_err(|_| DateError)?;
        Self::new(date, clock, sign * minutes).ok_or(DateError)
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { date, second_of_day, zone_minutes } = *self;
        let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
        let (sign, zone) = (if zone_minutes < 0 { '-' } else { '+' }, zone_minutes.unsigned_abs());
        let (year, month, day) = date.named_parts();
        write!(
            formatter,
            "{day:02}-{month}-{year:04} {hour:02}:{minute:02}:{second:02} {sign}{:02}{:02}",
            zone / 60,
            zone % 60
        )
    }
}

fn number(digits: &str) -> Result<u16, DateError> {
    let valid = (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if valid { digits.parse().map_err(|_| DateError) } else { Err(DateError) }
}
