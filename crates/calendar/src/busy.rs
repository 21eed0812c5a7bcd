//! Free and busy time: of one entry, of many calendars together, and what is free for all (RFC 5545, section 3.6.4; RFC 4791,
//! section 7.10; RFC 6638, section 5).

mod availability;
mod component;
mod search;

use std::collections::BTreeMap;

use scrinium_dav_wire::content::Component;

use crate::address::{answer_of, attendee, comparable};
use crate::event::component_at;
use crate::series::{InstantRange, OccurrenceList, Series};
use crate::zone::{Instant, Zone};
pub use availability::{Availability, add_availability};
pub use component::{FreeBusyHead, read, write};
pub use search::{CommonTimes, FreeSlot, Participant, SlotQuestion};

/// Occurrences of one series that a question looks at.
const OCCURRENCES_MAX: usize = 100_000;

/// What a time is taken by. The later one holds where two overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum BusyKind {
    #[default]
    Free,
    Tentative,
    /// Out of the office, or beyond working hours.
    Unavailable,
    Busy,
}

impl BusyKind {
    /// FBTYPE (RFC 5545, section 3.2.9).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Free => "FREE",
            Self::Tentative => "BUSY-TENTATIVE",
            Self::Unavailable => "BUSY-UNAVAILABLE",
            Self::Busy => "BUSY",
        }
    }

    /// By FBTYPE; what nobody knows is busy (RFC 5545, section 3.2.9).
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        let known = [Self::Free, Self::Tentative, Self::Unavailable];
        known.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name.trim())).unwrap_or(Self::Busy)
    }

    /// What an event takes of the time of somebody with these addresses ([`comparable`]). Cancelled and transparent ones take none
    /// (RFC 4791, section 7.10), nor does what he declined or delegated; what he has not answered, or only tentatively, is tentative.
    #[must_use]
    pub fn of(event: &Component, addresses: &[String]) -> Self {
        let value = |name: &str| event.line(name).map(|line| line.value().trim().to_ascii_uppercase());
        let (status, transparency) = (value("STATUS"), value("TRANSP"));
        let answer = attendee(event, addresses).map(answer_of);
        let is_organizer =
            event.line("ORGANIZER").is_some_and(|line| addresses.contains(&comparable(line.value())));
        let answer = answer.as_deref().filter(|answer| !is_organizer || *answer != "NEEDS-ACTION");
        if event.name() != "VEVENT"
            || status.as_deref() == Some("CANCELLED")
            || transparency.as_deref() == Some("TRANSPARENT")
            || matches!(answer, Some("DECLINED" | "DELEGATED"))
        {
            return Self::Free;
        }
        match value("X-MICROSOFT-CDO-BUSYSTATUS").as_deref() {
            Some("FREE") => return Self::Free,
            Some("OOF") => return Self::Unavailable,
            Some("TENTATIVE") => return Self::Tentative,
            _ => {}
        }
        match (status.as_deref(), answer) {
            (Some("TENTATIVE"), _) | (_, Some("NEEDS-ACTION" | "TENTATIVE")) => Self::Tentative,
            _ => Self::Busy,
        }
    }
}

/// A part of a span that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct BusyPeriod {
    pub range: InstantRange,
    pub kind: BusyKind,
}

/// The busy time of somebody in a span, out of whatever he has. Periods are gathered, and merged when they are asked for.
#[derive(Clone, Debug)]
pub struct BusyTime {
    range: InstantRange,
    gathered: Vec<BusyPeriod>,
    /// Something had more occurrences than are looked at, and this does not hold all of them.
    pub is_cut: bool,
}

impl BusyTime {
    /// Nothing yet, in a span.
    #[must_use]
    pub fn new(range: InstantRange) -> Self {
        Self { range, gathered: Vec::new(), is_cut: false }
    }

    /// The span.
    #[must_use]
    pub fn range(&self) -> InstantRange {
        self.range
    }

    /// Adds a period, as far as it lies in the span.
    pub fn add(&mut self, from: Instant, to: Instant, kind: BusyKind) {
        let range = InstantRange { from: from.max(self.range.from), to: to.min(self.range.to) };
        if kind != BusyKind::Free && range.from < range.to {
            self.gathered.push(BusyPeriod { range, kind });
        }
    }

    /// Adds the events and stored free-busy components of a calendar object that belongs to somebody with these addresses. Days and
    /// floating times count in the zone `floating`: of the request, else of the calendar, else of the person.
    pub fn add_calendar(&mut self, calendar: &Component, addresses: &[String], floating: &Zone) {
        for series in Series::read_all(calendar, floating) {
            let OccurrenceList { occurrences, is_cut } =
                series.occurrences(self.range, floating, OCCURRENCES_MAX);
            self.is_cut |= is_cut;
            let mut kinds: BTreeMap<usize, BusyKind> = BTreeMap::new();
            for occurrence in occurrences {
                let kind = *kinds.entry(occurrence.item).or_insert_with(|| {
                    let event = component_at(calendar, occurrence.item);
                    event.map_or(BusyKind::Free, |event| BusyKind::of(event, addresses))
                });
                let (start, end) = occurrence.instants(floating);
                self.add(start, end, kind);
            }
        }
        for stored in calendar.components().filter(|part| part.name() == "VFREEBUSY") {
            for period in component::periods(stored) {
                self.add(period.range.from, period.range.to, period.kind);
            }
        }
    }

    /// Adds what somebody else has gathered.
    pub fn add_all(&mut self, periods: &[BusyPeriod]) {
        for period in periods {
            self.add(period.range.from, period.range.to, period.kind);
        }
    }

    /// Periods that are apart, in order; those that touch are of different kinds. O(n log n).
    #[must_use]
    pub fn periods(&self) -> Vec<BusyPeriod> {
        let mut edges: Vec<(Instant, BusyKind, i64)> = Vec::with_capacity(2 * self.gathered.len());
        for period in &self.gathered {
            edges.push((period.range.from, period.kind, 1));
            edges.push((period.range.to, period.kind, -1));
        }
        edges.sort_unstable();
        let kinds = [BusyKind::Busy, BusyKind::Unavailable, BusyKind::Tentative];
        let mut open = [0_i64; 3];
        let mut merged: Vec<BusyPeriod> = Vec::new();
        let mut edges = edges.into_iter().peekable();
        while let Some((at, kind, step)) = edges.next() {
            for (count, _) in open.iter_mut().zip(kinds).filter(|(_, known)| *known == kind) {
                *count += step;
            }
            let Some((next, ..)) = edges.peek() else { break };
            let holds = kinds.into_iter().zip(open).find(|(_, count)| *count > 0).map(|(kind, _)| kind);
            let Some(kind) = holds.filter(|_| *next > at) else { continue };
            match merged.last_mut().filter(|last| last.kind == kind && last.range.to == at) {
                Some(last) => last.range.to = *next,
                None => merged.push(BusyPeriod { range: InstantRange { from: at, to: *next }, kind }),
            }
        }
        merged
    }
}
