//! Times as calendars write them: a day, a floating time, a time in a zone (RFC 5545, sections 3.3.4 and 3.3.5).

use scrinium_dav_wire::content::ContentLine;
use scrinium_dav_wire::value::{Date, DateTime, Day, Duration};

use crate::civil::{CivilTime, DAY_S, small};
use crate::zone::{CivilOrigin, Instant, Zone, ZoneNames};

/// A day or a time. Days and floating times are the same on every clock; a time in a zone is a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalendarTime {
    civil: CivilTime,
    kind: TimeKind,
}

/// What a time is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeKind {
    /// A whole day.
    Day,
    /// At this time wherever one is.
    Floating,
    /// In this zone, which may be UTC.
    Zoned(Zone),
}

impl CalendarTime {
    /// A time; of a day, its beginning.
    #[must_use]
    pub fn new(civil: CivilTime, kind: TimeKind) -> Self {
        let civil = if kind == TimeKind::Day { CivilTime(civil.day() * DAY_S) } else { civil };
        Self { civil, kind }
    }

    /// A moment, as a time in UTC.
    #[must_use]
    pub fn from_instant(instant: Instant) -> Self {
        Self { civil: CivilTime(instant.0), kind: TimeKind::Zoned(Zone::utc()) }
    }

    /// What clocks show.
    #[must_use]
    pub fn civil(&self) -> CivilTime {
        self.civil
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> &TimeKind {
        &self.kind
    }

    /// Whether it is a whole day.
    #[must_use]
    pub fn is_day(&self) -> bool {
        self.kind == TimeKind::Day
    }

    /// Its zone; none for days and floating times.
    #[must_use]
    pub fn zone(&self) -> Option<&Zone> {
        match &self.kind {
            TimeKind::Zoned(zone) => Some(zone),
            TimeKind::Day | TimeKind::Floating => None,
        }
    }

    /// The moment, where clocks of days and floating times hang in the zone `floating`. Of a day it is the beginning.
    #[must_use]
    pub fn instant(&self, floating: &Zone) -> Instant {
        let zone = self.zone().unwrap_or(floating);
        // Only at the very end of the year 9999 there is no moment.
        zone.instant_of(self.civil, CivilOrigin::Written).unwrap_or(Instant(self.civil.0))
    }

    /// What orders times of one kind: the seconds of the moment, or what clocks show of days and floating times.
    #[must_use]
    pub fn key(&self) -> i64 {
        self.zone().map_or(self.civil.0, |zone| self.instant(zone).0)
    }

    /// The same kind of time, at another one.
    #[must_use]
    pub fn at(&self, civil: CivilTime) -> Self {
        Self::new(civil, self.kind.clone())
    }

    /// The same kind of time, at another [`key`](Self::key).
    pub(crate) fn at_key(&self, key: i64) -> Self {
        self.at(self.zone().map_or(CivilTime(key), |zone| zone.civil_of(Instant(key))))
    }

    /// Reads the value of a line: DTSTART, DTEND, DUE, RECURRENCE-ID. The zone is that of its parameter TZID. `None` if it is no
    /// time, or lies before the year 1.
    #[must_use]
    pub fn read(line: &ContentLine, zones: &mut ZoneNames<'_>) -> Option<Self> {
        Self::read_value(line.value().trim(), line.parameter("TZID"), zones)
    }

    /// The same for one of several values of a line (RDATE, EXDATE).
    pub(crate) fn read_value(text: &str, tzid: Option<&str>, zones: &mut ZoneNames<'_>) -> Option<Self> {
        let value = DateTime::parse(text).ok()?;
        let civil = civil_of_value(&value)?;
        let kind = match (value.second_of_day(), value.is_utc(), tzid) {
            (None, _, _) => TimeKind::Day,
            (Some(_), true, _) => TimeKind::Zoned(Zone::utc()),
            (Some(_), false, Some(tzid)) => TimeKind::Zoned(zones.resolve(tzid)),
            (Some(_), false, None) => TimeKind::Floating,
        };
        Some(Self { civil, kind })
    }

    /// As calendars write it; `None` beyond the years that they can write. What has a zone other than UTC needs it as the parameter
    /// TZID.
    #[must_use]
    pub fn value(&self) -> Option<DateTime> {
        let (year, month, day) = self.civil.date();
        let date = Date(Day::new(u16::try_from(year).ok()?, month, day)?);
        if self.is_day() {
            return Some(DateTime::day(date));
        }
        let second = self.civil.second_of_day();
        let time = (small(second / 3600), small(second / 60 % 60), small(second % 60));
        DateTime::new(date, time, self.zone().is_some_and(Zone::is_utc))
    }
}

/// The moment of a [`CalendarTime::key`]: of a time in a zone it is the key; days and floating times count in the zone `floating`.
pub(crate) fn instant_of_key(key: i64, is_zoned: bool, floating: &Zone) -> Instant {
    if is_zoned {
        Instant(key)
    } else {
        CalendarTime::new(CivilTime(key), TimeKind::Floating).instant(floating)
    }
}

/// What a clock shows; `None` for the year 0.
pub(crate) fn civil_of_value(value: &DateTime) -> Option<CivilTime> {
    let (year, month, day) = value.date().0.parts();
    let second = value.second_of_day().unwrap_or_default();
    (year > 0).then(|| CivilTime::new(i64::from(year), month, day, i64::from(second)))
}

/// How long something takes (RFC 5545, section 3.8.5.3): DTEND makes it exact, DURATION nominal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Seconds between two moments, or between two times of floating clocks.
    Exact(i64),
    /// Days as the calendar counts them, then seconds.
    Nominal {
        /// Days.
        days: i64,
        /// Seconds.
        seconds: i64,
    },
}

impl Extent {
    /// No time at all.
    pub const NONE: Self = Self::Exact(0);

    pub(crate) fn from_duration(duration: &Duration) -> Self {
        // What ends before it begins takes no time.
        if duration.negative {
            return Self::NONE;
        }
        Self::Nominal { days: i64::from(duration.days), seconds: i64::from(duration.seconds) }
    }

    /// From a start to an end; nothing if the end is not behind it.
    pub(crate) fn between(start: &CalendarTime, end: &CalendarTime, floating: &Zone) -> Self {
        let seconds = match (start.is_day(), start.zone(), end.zone()) {
            // Days are counted, however many hours they have.
            (true, _, _) => {
                let partly = i64::from(end.civil().second_of_day() > 0);
                (end.civil().day() + partly - start.civil().day()) * DAY_S
            }
            (false, None, None) => end.civil().0 - start.civil().0,
            (false, start_zone, _) => {
                let floating = start_zone.unwrap_or(floating);
                end.instant(floating).0 - start.instant(floating).0
            }
        };
        Self::Exact(seconds.max(0))
    }

    /// The end of what begins at a time, as a [`CalendarTime::key`].
    #[must_use]
    pub fn end_key(self, start: &CalendarTime) -> i64 {
        match (self, &start.kind) {
            (Self::Exact(seconds), TimeKind::Day) => start.civil.0 + whole_days(seconds),
            (Self::Exact(seconds), _) => start.key() + seconds,
            (Self::Nominal { days, seconds }, TimeKind::Day) => {
                start.civil.0 + days * DAY_S + whole_days(seconds)
            }
            // Days keep the time of the clock, then seconds pass.
            (Self::Nominal { days, seconds }, _) => {
                start.at(CivilTime(start.civil.0 + days * DAY_S)).key() + seconds
            }
        }
    }

    /// At most this many seconds, whatever clocks do meanwhile.
    pub(crate) fn most_s(self) -> i64 {
        match self {
            Self::Exact(seconds) => seconds,
            Self::Nominal { days, seconds } => days * DAY_S + seconds + DAY_S,
        }
    }
}

/// Whole days that hold these seconds.
fn whole_days(seconds: i64) -> i64 {
    (seconds + DAY_S - 1).div_euclid(DAY_S) * DAY_S
}
