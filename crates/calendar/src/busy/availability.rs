//! Working hours (VAVAILABILITY, RFC 7953): what lies beyond them is unavailable.

use scrinium_dav_wire::content::{Component, ContentItem};
use scrinium_dav_wire::value::Duration;

use super::{BusyKind, BusyTime, OCCURRENCES_MAX};
use crate::series::{InstantRange, Series};
use crate::time::{CalendarTime, Extent, instant_of_key};
use crate::zone::{Instant, Zone, ZoneNames};

/// Components that are looked at.
const COMPONENTS_MAX: usize = 64;

/// One VAVAILABILITY, in a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    /// From 1, which is the highest, to 9; 0 is below all of them (RFC 7953, section 3.1).
    pub priority: u8,
    /// Where it says anything, within the span that was asked for.
    pub range: InstantRange,
    /// What holds within that and outside of `available`.
    pub kind: BusyKind,
    /// In order, apart.
    pub available: Vec<InstantRange>,
}

impl Availability {
    /// All of a calendar, as far as they say something about a span.
    #[must_use]
    pub fn read_all(calendar: &Component, range: InstantRange, floating: &Zone) -> Vec<Self> {
        let parts = calendar.components().filter(|part| part.name() == "VAVAILABILITY").take(COMPONENTS_MAX);
        parts.filter_map(|part| Self::read(calendar, part, range, floating)).collect()
    }

    fn read(calendar: &Component, part: &Component, asked: InstantRange, floating: &Zone) -> Option<Self> {
        let mut zones = ZoneNames::new(calendar, floating.clone());
        let start = part.line("DTSTART").and_then(|line| CalendarTime::read(line, &mut zones));
        let end = part.line("DTEND").and_then(|line| CalendarTime::read(line, &mut zones));
        let end = end.map(|end| end.instant(floating)).or_else(|| {
            let duration = Duration::parse(part.line("DURATION")?.value().trim()).ok()?;
            let start = start.as_ref()?;
            let end = Extent::from_duration(&duration).end_key(start);
            Some(instant_of_key(end, start.zone().is_some(), floating))
        });
        let start = start.map(|start| start.instant(floating));
        let range = InstantRange {
            from: start.unwrap_or(asked.from).max(asked.from),
            to: end.unwrap_or(asked.to).min(asked.to),
        };
        if range.from >= range.to {
            return None;
        }
        let priority = part.line("PRIORITY").and_then(|line| line.value().trim().parse().ok());
        // BUSYTYPE (RFC 7953, section 3.2).
        let kind =
            part.line("BUSYTYPE").map_or(BusyKind::Unavailable, |line| BusyKind::of_name(line.value()));
        Some(Self {
            priority: priority.unwrap_or(0),
            range,
            kind,
            available: available(calendar, part, range, floating)?,
        })
    }
}

/// AVAILABLE parts recur as events do: they are read as events, with the zones of their calendar.
fn available(
    calendar: &Component,
    part: &Component,
    range: InstantRange,
    floating: &Zone,
) -> Option<Vec<InstantRange>> {
    let mut as_events = Component::new("VCALENDAR")?;
    let zones = calendar.components().filter(|part| part.name() == "VTIMEZONE").cloned();
    as_events.items.extend(zones.map(ContentItem::Component));
    for available in part.components().filter(|part| part.name() == "AVAILABLE") {
        let mut event = Component::new("VEVENT")?;
        event.items.clone_from(&available.items);
        as_events.items.push(ContentItem::Component(event));
    }
    let mut times = BusyTime::new(range);
    for series in Series::read_all(&as_events, floating) {
        for occurrence in series.occurrences(range, floating, OCCURRENCES_MAX).occurrences {
            let (start, end) = occurrence.instants(floating);
            times.add(start, end, BusyKind::Busy);
        }
    }
    Some(times.periods().into_iter().map(|period| period.range).collect())
}

/// Adds what is beyond working hours. Where several speak of a time, the one with the highest priority holds; of equal ones the
/// first (RFC 7953, section 4.1).
pub fn add_availability(busy: &mut BusyTime, availabilities: &[Availability]) {
    let mut order: Vec<&Availability> = availabilities.iter().collect();
    order.sort_by_key(|availability| (availability.priority.wrapping_sub(1)).min(9));
    // What is not spoken of yet.
    let mut open = vec![busy.range()];
    for availability in order {
        let taken = [availability.range];
        let spoken = common(&open, &taken);
        for part in without(&spoken, &availability.available) {
            busy.add(part.from, part.to, availability.kind);
        }
        open = without(&open, &taken);
    }
}

/// What is in both; each in order and apart.
fn common(one: &[InstantRange], other: &[InstantRange]) -> Vec<InstantRange> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut found = Vec::new();
    while let (Some(first), Some(second)) = (one.peek(), other.peek()) {
        let range = InstantRange { from: first.from.max(second.from), to: first.to.min(second.to) };
        if range.from < range.to {
            found.push(range);
        }
        if first.to < second.to {
            one.next()
        } else {
            other.next()
        };
    }
    found
}

/// What is in the first and not in the second; each in order and apart.
fn without(one: &[InstantRange], other: &[InstantRange]) -> Vec<InstantRange> {
    let mut gaps = Vec::with_capacity(other.len() + 1);
    let mut from = Instant(i64::MIN);
    for taken in other {
        gaps.push(InstantRange { from, to: taken.from });
        from = taken.to;
    }
    gaps.push(InstantRange { from, to: Instant(i64::MAX) });
    common(one, &gaps)
}
