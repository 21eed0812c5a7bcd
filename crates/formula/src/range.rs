//! Date-time ranges.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::{Date, Time};

use crate::datetime::DateTime;

/// From one date, time of day or moment to another of the same kind. It prints as ISO 8601 writes an interval:
/// `2026-11-21/2026-11-23`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct DateTimeRange(Ends);

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Ends {
    Dates(Date, Date),
    Times(Time, Time),
    /// Microseconds since 1970 rather than two timestamps, so that a range makes no value of the language larger.
    Moments {
        start_us: i64,
        end_us: i64,
    },
}

/// Why two date-times are not the ends of a range.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RangeFault {
    /// A date and a moment, or either and a time of day.
    Kinds,
    /// The end is before the start.
    Order,
}

impl RangeFault {
    pub(crate) const fn message(self) -> &'static str {
        match self {
            Self::Kinds => {
                "a range goes from date to date, from time of day to time of day, or from moment to moment"
            }
            Self::Order => "the range ends before it starts",
        }
    }
}

impl DateTimeRange {
    /// The range from `start` to `end`, both included. Times of day may go past midnight.
    pub(crate) fn between(start: DateTime, end: DateTime) -> Result<Self, RangeFault> {
        match (start, end) {
            (DateTime::Time(start), DateTime::Time(end)) => Ok(Self(Ends::Times(start, end))),
            (DateTime::Date(start), DateTime::Date(end)) if start <= end => Ok(Self(Ends::Dates(start, end))),
            (DateTime::Moment(start), DateTime::Moment(end)) if start <= end => {
                Ok(Self(Ends::Moments { start_us: start.as_microsecond(), end_us: end.as_microsecond() }))
            }
            (DateTime::Date(_), DateTime::Date(_)) | (DateTime::Moment(_), DateTime::Moment(_)) => {
                Err(RangeFault::Order)
            }
            _ => Err(RangeFault::Kinds),
        }
    }

    /// Where it starts: a date, a time of day or a moment.
    #[must_use]
    pub fn start(self) -> DateTime {
        match self.0 {
            Ends::Dates(start, _) => DateTime::Date(start),
            Ends::Times(start, _) => DateTime::Time(start),
            Ends::Moments { start_us, .. } => DateTime::Moment(moment(start_us)),
        }
    }

    /// Where it ends.
    #[must_use]
    pub fn end(self) -> DateTime {
        match self.0 {
            Ends::Dates(_, end) => DateTime::Date(end),
            Ends::Times(_, end) => DateTime::Time(end),
            Ends::Moments { end_us, .. } => DateTime::Moment(moment(end_us)),
        }
    }
}

/// What was a timestamp is one again.
fn moment(us: i64) -> Timestamp {
    Timestamp::from_microsecond(us).unwrap_or(Timestamp::MIN)
}

impl fmt::Display for DateTimeRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.start(), self.end())
    }
}

#[cfg(test)]
mod tests {
    use crate::value::Value;

    /// Evaluating copies values all the time; ranges are rare and must not make all others larger.
    #[test]
    fn a_range_makes_no_value_larger() {
        assert!(size_of::<Value>() <= 4 * size_of::<u64>(), "{} bytes", size_of::<Value>());
    }
}
