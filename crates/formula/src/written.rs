//! Date-times and ranges as people write them: in a constant `[...]`, or in a text given to `@TextToTime`.

use jiff::civil::{self, Date, Time};
use jiff::tz::{Offset, TimeZone};

use crate::datetime::{DateTime, MAX_WRITTEN_BYTES, digits, moment_of, read_date, two_digits};
use crate::range::{DateTimeRange, RangeFault};

/// What joins the ends of a range; it also stands within dates and before offsets from UTC.
const RANGE_SIGN: char = '-';

/// Two dates have two of the signs each and two offsets one each; the last one is the range's own. With more of
/// them a text is no range, and is not tried at each.
const MAX_RANGE_SIGNS: usize = 7;

/// What a person has written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Written {
    Point(WrittenPoint),
    Range { start: WrittenPoint, end: WrittenPoint },
}

/// A date, a time of day or a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WrittenPoint {
    /// It means the same everywhere.
    Fixed(DateTime),
    /// It means a moment only in a time zone.
    Local(civil::DateTime),
}

/// Why what is written well means nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WrittenFault {
    OutsideCalendar,
    Range(RangeFault),
}

impl WrittenFault {
    pub(crate) const fn message(self) -> &'static str {
        match self {
            Self::OutsideCalendar => "the date is outside the calendar",
            Self::Range(fault) => fault.message(),
        }
    }
}

impl Written {
    /// Reads a date-time, or two with a `-` between them. Where the first is a moment, the second may be a time of
    /// day of the same date. What RFC 3339 defines is read as well, as in documents.
    pub(crate) fn read(text: &str) -> Option<Self> {
        const LONGEST: usize = 2 * MAX_WRITTEN_BYTES + 1;
        if text.len() > LONGEST {
            return None;
        }
        let text = text.trim();
        if let Some(point) = WrittenPoint::read(text) {
            return Some(Self::Point(point));
        }
        if let Some(exact @ DateTime::Range(_)) = DateTime::from_rfc3339(text) {
            return Some(Self::Point(WrittenPoint::Fixed(exact)));
        }
        if text.matches(RANGE_SIGN).count() > MAX_RANGE_SIGNS {
            return None;
        }
        text.match_indices(RANGE_SIGN).find_map(|(place, sign)| {
            let start = WrittenPoint::read(text.get(..place)?)?;
            let end = WrittenPoint::read(text.get(place + sign.len()..)?)?;
            Some(Self::Range { start, end: end.on_the_day_of(start) })
        })
    }

    /// What it means whatever the time zone; none if it means different things.
    pub(crate) fn fixed(self) -> Option<Result<DateTime, WrittenFault>> {
        match self {
            Self::Point(WrittenPoint::Fixed(point)) => Some(Ok(point)),
            Self::Range { start: WrittenPoint::Fixed(_), end: WrittenPoint::Fixed(_) } => {
                Some(self.in_zone(&TimeZone::UTC))
            }
            Self::Point(WrittenPoint::Local(_)) | Self::Range { .. } => None,
        }
    }

    pub(crate) fn in_zone(self, zone: &TimeZone) -> Result<DateTime, WrittenFault> {
        let point = |point: WrittenPoint| point.in_zone(zone).ok_or(WrittenFault::OutsideCalendar);
        match self {
            Self::Point(written) => point(written),
            Self::Range { start, end } => DateTimeRange::between(point(start)?, point(end)?)
                .map(DateTime::Range)
                .map_err(WrittenFault::Range),
        }
    }
}

impl WrittenPoint {
    /// Reads what RFC 3339 defines; `2026-11-21`, `2026/11/21`, `11/21/2026`, `11-21-2026`, `11.21.2026` (month
    /// before day; a year of two digits lies between 1950 and 2049); `10:00`, `10:00:30`, `5:30 PM`; and a date
    /// followed by a time of day.
    fn read(text: &str) -> Option<Self> {
        if text.len() > MAX_WRITTEN_BYTES {
            return None;
        }
        let text = text.trim();
        if let Some(exact) = DateTime::point_from_rfc3339(text) {
            return Some(Self::Fixed(exact));
        }
        let (first, rest) =
            text.split_once([' ', 'T', 't']).map_or((text, ""), |(first, rest)| (first, rest.trim()));
        let Some(date) = read_date(first).or_else(|| read_parts(first)) else {
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

    fn in_zone(self, zone: &TimeZone) -> Option<DateTime> {
        match self {
            Self::Fixed(time) => Some(time),
            Self::Local(local) => moment_of(local, zone).map(DateTime::Moment),
        }
    }

    /// A time of day behind a moment, as the end of a range, is one of the same date.
    fn on_the_day_of(self, start: Self) -> Self {
        match (start, self) {
            (Self::Local(start), Self::Fixed(DateTime::Time(time))) => {
                Self::Local(start.date().to_datetime(time))
            }
            _ => self,
        }
    }
}

/// A date of three numbers: the year first if it has four digits, else month, day and year.
fn read_parts(text: &str) -> Option<Date> {
    let separator = text.find(['/', '-', '.']).and_then(|place| text.get(place..=place))?;
    let mut parts = text.split(separator);
    let (first, second, third) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let (year, month, day) = if first.len() == 4 { (first, second, third) } else { (third, first, second) };
    if month.len() > 2 || day.len() > 2 {
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
