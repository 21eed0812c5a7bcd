//! Dates, times of day and moments: reading, writing and comparing them.
//!
//! As in the original, a date-time may lack its time of day (a date) or its date (a time of day). A
//! moment is a point on the time line; what date and time of day it has depends on the time zone of the
//! evaluation.

use std::cmp::Ordering;
use std::fmt;

use jiff::civil::{self, Date, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan};

/// No date-time is longer than this as it is written, so that long texts need not be looked through.
const MAX_WRITTEN_BYTES: usize = 64;

/// A date, a time of day, or a moment. It prints as ISO 8601, a moment in UTC.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DateTime {
    /// A day of the calendar, without a time of day.
    Date(Date),
    /// A time of day, of no particular day.
    Time(Time),
    /// A point in time.
    Moment(Timestamp),
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

impl fmt::Display for DateTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Date(date) => date.fmt(formatter),
            Self::Time(time) => time.fmt(formatter),
            Self::Moment(moment) => moment.fmt(formatter),
        }
    }
}

impl DateTime {
    /// Reads a full date (`2026-11-21`) or a date-time with its offset from UTC
    /// (`2026-11-21T10:00:00Z`, `2026-11-21t10:00:00.5+01:00`) as RFC 3339, section 5.6, defines them.
    /// Nothing else, not even a blank around it, so that no ordinary text is taken for a time by mistake.
    #[must_use]
    pub fn from_rfc3339(text: &str) -> Option<Self> {
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

    /// The date in a time zone; none for a time of day.
    pub(crate) fn date(self, zone: &TimeZone) -> Option<Date> {
        match self {
            Self::Date(date) => Some(date),
            Self::Time(_) => None,
            Self::Moment(moment) => Some(zone.to_datetime(moment).date()),
        }
    }

    /// The time of day in a time zone; none for a date.
    pub(crate) fn time_of_day(self, zone: &TimeZone) -> Option<Time> {
        match self {
            Self::Date(_) => None,
            Self::Time(time) => Some(time),
            Self::Moment(moment) => Some(zone.to_datetime(moment).time()),
        }
    }

    /// The moment: a date's midnight at its beginning. None for a time of day.
    pub(crate) fn moment(self, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Date(date) => moment_of(date.to_datetime(Time::midnight()), zone),
            Self::Time(_) => None,
            Self::Moment(moment) => Some(moment),
        }
    }

    /// How two times relate for an operator. What one of them lacks is left out of the comparison: a date
    /// beside a moment compares the days, a time of day beside a moment the times of day. None where
    /// nothing is left: a date beside a time of day.
    pub(crate) fn compare(self, other: Self, zone: &TimeZone) -> Option<Ordering> {
        match (self, other) {
            (Self::Moment(left), Self::Moment(right)) => Some(left.cmp(&right)),
            (Self::Time(_), _) | (_, Self::Time(_)) => {
                Some(self.time_of_day(zone)?.cmp(&other.time_of_day(zone)?))
            }
            _ => Some(self.date(zone)?.cmp(&other.date(zone)?)),
        }
    }

    /// A total order, for sorting: times of day first, then by the moment, a date before the moments of
    /// its day.
    pub(crate) fn order(self, other: Self, zone: &TimeZone) -> Ordering {
        let key = |time: Self| match time {
            Self::Time(time) => (0, Timestamp::MIN, time),
            Self::Date(_) => (1, time.moment(zone).unwrap_or(Timestamp::MIN), Time::MIN),
            Self::Moment(moment) => (1, moment, Time::MAX),
        };
        key(self).cmp(&key(other))
    }

    /// Seconds from `earlier` to `self`. Between two dates every day has 86,400, whatever the clocks did.
    pub(crate) fn seconds_since(self, earlier: Self, zone: &TimeZone) -> Option<f64> {
        let span = match (self, earlier) {
            (Self::Date(left), Self::Date(right)) => left.duration_since(right),
            (Self::Time(left), Self::Time(right)) => left.duration_since(right),
            _ => self.moment(zone)?.duration_since(earlier.moment(zone)?),
        };
        Some(span.as_secs_f64())
    }

    /// This time moved by seconds; a date becomes the moment counted from its beginning, a time of day
    /// goes round the clock. None if that is outside the calendar.
    pub(crate) fn plus_seconds(self, seconds: f64, zone: &TimeZone) -> Option<Self> {
        let duration = jiff::SignedDuration::try_from_secs_f64(seconds).ok()?;
        match self {
            Self::Time(time) => Some(Self::Time(time.wrapping_add(duration))),
            Self::Date(_) | Self::Moment(_) => {
                self.moment(zone)?.checked_add(duration).ok().map(Self::Moment)
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
fn read_date(text: &str) -> Option<Date> {
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

fn two_digits(text: &str) -> Option<i8> {
    if text.len() == 2 { digits(text).and_then(|number| i8::try_from(number).ok()) } else { None }
}

/// Digits only: no sign, no blank.
fn digits(text: &str) -> Option<i16> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// A date-time as a person writes it, in a constant `[...]` or a text given to `@TextToTime`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Written {
    /// It means the same everywhere.
    Fixed(DateTime),
    /// It means a moment only in a time zone.
    Local(civil::DateTime),
}

impl Written {
    /// Reads what RFC 3339 defines; `2026-11-21`, `11/21/2026`, `11-21-2026`, `11.21.2026` (month first;
    /// a year of two digits lies between 1950 and 2049); `10:00`, `10:00:30`, `5:30 PM`; and a date
    /// followed by a time of day.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if text.len() > MAX_WRITTEN_BYTES {
            return None;
        }
        let text = text.trim();
        if let Some(exact) = DateTime::from_rfc3339(text) {
            return Some(Self::Fixed(exact));
        }
        let (first, rest) =
            text.split_once([' ', 'T', 't']).map_or((text, ""), |(first, rest)| (first, rest.trim()));
        let Some(date) = read_date(first).or_else(|| read_month_first(first)) else {
            return read_clock(text).map(|time| Self::Fixed(DateTime::Time(time)));
        };
        if rest.is_empty() {
            return Some(Self::Fixed(DateTime::Date(date)));
        }
        if let Some(clock) = rest.strip_suffix(['Z', 'z']).or_else(|| rest.strip_suffix("GMT")) {
            let local = date.to_datetime(read_clock(clock)?);
            return Offset::UTC.to_timestamp(local).ok().map(|moment| Self::Fixed(DateTime::Moment(moment)));
        }
        Some(Self::Local(date.to_datetime(read_clock(rest)?)))
    }

    pub(crate) fn in_zone(self, zone: &TimeZone) -> Option<DateTime> {
        match self {
            Self::Fixed(time) => Some(time),
            Self::Local(local) => moment_of(local, zone).map(DateTime::Moment),
        }
    }
}

fn read_month_first(text: &str) -> Option<Date> {
    let separator = text.find(['/', '-', '.']).and_then(|place| text.get(place..=place))?;
    let mut parts = text.split(separator);
    let (month, day, year) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || month.len() > 2 || day.len() > 2 {
        return None;
    }
    let year = match (year.len(), digits(year)?) {
        (4, year) => year,
        (2, year) if year < 50 => 2000 + year,
        (2, year) => 1900 + year,
        _ => return None,
    };
    Date::new(year, i8::try_from(digits(month)?).ok()?, i8::try_from(digits(day)?).ok()?).ok()
}

/// `10:00`, `10:00:30`, `5 PM`, `5:30 pm`.
fn read_clock(text: &str) -> Option<Time> {
    let text = text.trim();
    let suffix = text.len().checked_sub(2).and_then(|place| text.split_at_checked(place));
    let (clock, half) = match suffix {
        Some((clock, half)) if half.eq_ignore_ascii_case("am") => (clock.trim_end(), Some(0)),
        Some((clock, half)) if half.eq_ignore_ascii_case("pm") => (clock.trim_end(), Some(12)),
        _ => (text, None),
    };
    let mut parts = clock.splitn(3, ':');
    let hour = digits(parts.next()?)?;
    let minute = match parts.next() {
        Some(minute) => two_digits(minute)?,
        None if half.is_some() => 0,
        None => return None,
    };
    let second = parts.next().map_or(Some(0), two_digits)?;
    let hour = match half {
        None => hour,
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(_) => return None,
    };
    Time::new(i8::try_from(hour).ok()?, minute, second, 0).ok()
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
