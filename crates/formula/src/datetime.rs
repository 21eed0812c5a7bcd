//! Dates, times of day, moments and ranges of them: reading, writing and comparing them.
//!
//! As in the original, a date-time may lack its time of day (a date) or its date (a time of day). A
//! moment is a point on the time line; what date and time of day it has depends on the time zone of the
//! evaluation.

use std::cmp::Ordering;
use std::fmt;

use jiff::civil::{self, Date, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan};

use crate::range::DateTimeRange;

/// No date-time is longer than this as it is written, so that long texts need not be looked through.
pub(crate) const MAX_WRITTEN_BYTES: usize = 64;

/// A date, a time of day, a moment, or a range of one of these. It prints as ISO 8601, a moment in UTC.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DateTime {
    /// A day of the calendar, without a time of day.
    Date(Date),
    /// A time of day, of no particular day.
    Time(Time),
    /// A point in time.
    Moment(Timestamp),
    /// All from one of these to another.
    Range(DateTimeRange),
}

impl From<Date> for DateTime {
    fn from(date: Date) -> Self {
        Self::Date(date)
    }
}

impl From<Time> for DateTime {
    fn from(time: Time) -> Self {
        Self::Time(time)
    }
}

impl From<Timestamp> for DateTime {
    fn from(moment: Timestamp) -> Self {
        Self::Moment(moment)
    }
}

impl From<DateTimeRange> for DateTime {
    fn from(range: DateTimeRange) -> Self {
        Self::Range(range)
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Date(date) => date.fmt(formatter),
            Self::Time(time) => time.fmt(formatter),
            Self::Moment(moment) => moment.fmt(formatter),
            Self::Range(range) => range.fmt(formatter),
        }
    }
}

impl DateTime {
    /// Reads a full date (`2026-11-21`) or a date-time with its offset from UTC
    /// (`2026-11-21T10:00:00Z`, `2026-11-21t10:00:00.5+01:00`) as RFC 3339, section 5.6, defines them, or two
    /// dates or two date-times with a `/` between them, which is a range (appendix A, `period-explicit`).
    /// Nothing else, not even a blank around it, so that no ordinary text is taken for a time by mistake.
    #[must_use]
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        Self::point_from_rfc3339(text).or_else(|| {
            let (start, end) = text.split_once('/')?;
            let (start, end) = (Self::point_from_rfc3339(start)?, Self::point_from_rfc3339(end)?);
            DateTimeRange::between(start, end).ok().map(Self::Range)
        })
    }

    pub(crate) fn point_from_rfc3339(text: &str) -> Option<Self> {
        if text.len() > MAX_WRITTEN_BYTES {
            return None;
        }
        let (date, rest) = text.split_at_checked(10)?;
        let date = read_date(date)?;
        if rest.is_empty() {
            return Some(Self::Date(date));
        }
        let rest = rest.strip_prefix(['T', 't'])?;
        let (time, offset) = rest.split_at(rest.find(['Z', 'z', '+', '-'])?);
        let time = read_time(time)?;
        let offset = if matches!(offset, "Z" | "z") { Offset::UTC } else { read_offset(offset)? };
        offset.to_timestamp(date.to_datetime(time)).ok().map(Self::Moment)
    }

    /// Where a range starts; anything else as it is.
    pub(crate) fn start(self) -> Self {
        match self {
            Self::Range(range) => range.start(),
            point => point,
        }
    }

    /// Where a range ends; anything else as it is.
    pub(crate) fn end(self) -> Self {
        match self {
            Self::Range(range) => range.end(),
            point => point,
        }
    }

    /// The date in a time zone, of a range that of its start; none for a time of day.
    pub(crate) fn date(self, zone: &TimeZone) -> Option<Date> {
        match self {
            Self::Date(date) => Some(date),
            Self::Time(_) => None,
            Self::Moment(moment) => Some(zone.to_datetime(moment).date()),
            Self::Range(range) => range.start().date(zone),
        }
    }

    /// The time of day in a time zone, of a range that of its start; none for a date.
    pub(crate) fn time_of_day(self, zone: &TimeZone) -> Option<Time> {
        match self {
            Self::Date(_) => None,
            Self::Time(time) => Some(time),
            Self::Moment(moment) => Some(zone.to_datetime(moment).time()),
            Self::Range(range) => range.start().time_of_day(zone),
        }
    }

    /// The moment: a date's midnight at its beginning, a range's start. None for a time of day.
    pub(crate) fn moment(self, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Date(date) => moment_of(date.to_datetime(Time::midnight()), zone),
            Self::Time(_) => None,
            Self::Moment(moment) => Some(moment),
            Self::Range(range) => range.start().moment(zone),
        }
    }

    /// How two times relate for an operator. What one of them lacks is left out of the comparison: a date
    /// with a moment compares the days, a time of day with a moment the times of day. None where
    /// nothing is left: a date with a time of day. A range comes where it starts, and then where it ends; alongside
    /// it, anything else is a range that ends where it starts.
    pub(crate) fn compare(self, other: Self, zone: &TimeZone) -> Option<Ordering> {
        match (self, other) {
            (Self::Range(_), _) | (_, Self::Range(_)) => {
                let starts = self.start().compare(other.start(), zone)?;
                Some(starts.then(self.end().compare(other.end(), zone)?))
            }
            (Self::Moment(left), Self::Moment(right)) => Some(left.cmp(&right)),
            (Self::Time(_), _) | (_, Self::Time(_)) => {
                Some(self.time_of_day(zone)?.cmp(&other.time_of_day(zone)?))
            }
            _ => Some(self.date(zone)?.cmp(&other.date(zone)?)),
        }
    }

    /// A total order, for sorting: times of day first, then by the moment, a date before the moments of
    /// its day; ranges by their start and then by their end.
    pub(crate) fn order(self, other: Self, zone: &TimeZone) -> Ordering {
        let key = |point: Self| match point {
            Self::Time(time) => (0, Timestamp::MIN, time),
            Self::Moment(moment) => (1, moment, Time::MAX),
            Self::Date(_) | Self::Range(_) => (1, point.moment(zone).unwrap_or(Timestamp::MIN), Time::MIN),
        };
        key(self.start()).cmp(&key(other.start())).then_with(|| key(self.end()).cmp(&key(other.end())))
    }

    /// Seconds from `earlier` to `self`; a range has none. Between two dates every day has 86,400, whatever the
    /// clocks did.
    pub(crate) fn seconds_since(self, earlier: Self, zone: &TimeZone) -> Option<f64> {
        let span = match (self, earlier) {
            (Self::Range(_), _) | (_, Self::Range(_)) => return None,
            (Self::Date(left), Self::Date(right)) => left.duration_since(right),
            (Self::Time(left), Self::Time(right)) => left.duration_since(right),
            _ => self.moment(zone)?.duration_since(earlier.moment(zone)?),
        };
        Some(span.as_secs_f64())
    }

    /// This time moved by seconds; a date becomes the moment counted from its beginning, a time of day
    /// goes round the clock, and of a range both ends are moved. None if that is outside the calendar.
    pub(crate) fn plus_seconds(self, seconds: f64, zone: &TimeZone) -> Option<Self> {
        let duration = jiff::SignedDuration::try_from_secs_f64(seconds).ok()?;
        match self {
            Self::Time(time) => Some(Self::Time(time.wrapping_add(duration))),
            Self::Date(_) | Self::Moment(_) => {
                self.moment(zone)?.checked_add(duration).ok().map(Self::Moment)
            }
            Self::Range(range) => {
                let start = range.start().plus_seconds(seconds, zone)?;
                let end = range.end().plus_seconds(seconds, zone)?;
                DateTimeRange::between(start, end).ok().map(Self::Range)
            }
        }
    }
}

/// The moment at which clocks in `zone` show this; where they were put forward over it, the moment as
/// far after the change; where they show it twice, the first.
pub(crate) fn moment_of(local: civil::DateTime, zone: &TimeZone) -> Option<Timestamp> {
    zone.to_timestamp(local).ok()
}

/// `YYYY-MM-DD`.
pub(crate) fn read_date(text: &str) -> Option<Date> {
    let (year, rest) = text.split_at_checked(4)?;
    let (month, day) = rest.strip_prefix('-')?.split_at_checked(2)?;
    let day = day.strip_prefix('-')?;
    Date::new(digits(year)?, two_digits(month)?, two_digits(day)?).ok()
}

/// `HH:MM:SS` with a fraction of up to nine digits. A leap second is taken for the one before it.
fn read_time(text: &str) -> Option<Time> {
    let (whole, fraction) = match text.split_once('.') {
        None => (text, 0),
        Some((whole, fraction)) => (whole, read_fraction(fraction)?),
    };
    let mut parts = whole.split(':').map(two_digits);
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() {
        return None;
    }
    Time::new(hour, minute, if second == 60 { 59 } else { second }, fraction).ok()
}

fn read_fraction(text: &str) -> Option<i32> {
    let places = u32::try_from(text.len()).ok().filter(|places| (1..=9).contains(places))?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse::<i32>().ok()?.checked_mul(10_i32.pow(9 - places))
}

/// `+HH:MM`.
fn read_offset(text: &str) -> Option<Offset> {
    let (sign, clock) = text.split_at_checked(1)?;
    let (hours, minutes) = clock.split_once(':')?;
    let (hours, minutes) = (i32::from(two_digits(hours)?), i32::from(two_digits(minutes)?));
    if hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = (hours * 60 + minutes) * 60;
    Offset::from_seconds(if sign == "-" { -seconds } else { seconds }).ok()
}

pub(crate) fn two_digits(text: &str) -> Option<i8> {
    if text.len() == 2 { digits(text).and_then(|number| i8::try_from(number).ok()) } else { None }
}

/// Digits only: no sign, no blank.
pub(crate) fn digits(text: &str) -> Option<i16> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// By how much `@Adjust` moves a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Adjustment {
    pub(crate) years: i64,
    pub(crate) months: i64,
    pub(crate) days: i64,
    pub(crate) hours: i64,
    pub(crate) minutes: i64,
    pub(crate) seconds: i64,
}

impl Adjustment {
    /// Applies the parts from seconds to years, as the original does. Days, months and years keep the
    /// time of day on the clock of `zone`; a day that a month lacks becomes its last. None if the result
    /// is outside the calendar.
    pub(crate) fn apply(self, time: DateTime, zone: &TimeZone) -> Option<DateTime> {
        let clock_seconds = self
            .hours
            .checked_mul(3600)?
            .checked_add(self.minutes.checked_mul(60)?)?
            .checked_add(self.seconds)?;
        let clock = jiff::SignedDuration::from_secs(clock_seconds);
        match time {
            DateTime::Time(time) => Some(DateTime::Time(time.wrapping_add(clock))),
            DateTime::Date(date) if clock_seconds == 0 => self.move_date(date).map(DateTime::Date),
            DateTime::Range(range) => {
                let (start, end) = (self.apply(range.start(), zone)?, self.apply(range.end(), zone)?);
                DateTimeRange::between(start, end).ok().map(DateTime::Range)
            }
            DateTime::Date(_) | DateTime::Moment(_) => {
                let moved = time.moment(zone)?.checked_add(clock).ok()?;
                if self.years == 0 && self.months == 0 && self.days == 0 {
                    return Some(DateTime::Moment(moved));
                }
                let local = zone.to_datetime(moved);
                let local = self.move_date(local.date())?.to_datetime(local.time());
                moment_of(local, zone).map(DateTime::Moment)
            }
        }
    }

    /// Whether it keeps every time of day.
    pub(crate) const fn is_whole_days(self) -> bool {
        self.hours == 0 && self.minutes == 0 && self.seconds == 0
    }

    fn move_date(self, date: Date) -> Option<Date> {
        let date = date.checked_add(1.day().checked_mul(self.days).ok()?).ok()?;
        let date = date.checked_add(1.month().checked_mul(self.months).ok()?).ok()?;
        date.checked_add(1.year().checked_mul(self.years).ok()?).ok()
    }
}
