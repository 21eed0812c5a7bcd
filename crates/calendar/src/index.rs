//! What a calendar object gives to an index of occurrences, and what a question reads of it.
//!
//! Each occurrence within a window is an [`Entry`], whose key orders it by how long it takes and then by its start. A question reads a
//! few ranges of keys ([`scans`]): of each class of lengths what begins at most that length before the span. No event that began
//! long ago is missed, and no other one is read. What a series has beyond the window comes from its [`SeriesEntry`], which holds
//! what says its times; it seeks, so that this costs the same in any year.

use std::collections::BTreeMap;

use scrinium_dav_wire::content::{Component, ContentItem, ContentLimits};

use crate::busy::BusyKind;
use crate::civil::DAY_S;
use crate::event::{component_at, is_private};
use crate::series::{InstantRange, Occurrence, OccurrenceList, Series};
use crate::time::{CalendarTime, instant_of_key};
use crate::zone::{Instant, Zone};

/// Occurrences of one series that are entries. Denser ones are asked each time.
pub const ENTRIES_MAX: usize = 1_000;
/// The version of what is written here. Under another one, and under another release of the zones
/// ([`crate::zone::data_version`]), an index is built again.
pub const VERSION: u32 = 1;

/// How long something takes, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum LengthClass {
    NoTime,
    Hour,
    FourHours,
    Day,
    Week,
    FiveWeeks,
    Year,
    Longer,
}

impl LengthClass {
    /// All, in order.
    pub const ALL: [Self; 8] = [
        Self::NoTime,
        Self::Hour,
        Self::FourHours,
        Self::Day,
        Self::Week,
        Self::FiveWeeks,
        Self::Year,
        Self::Longer,
    ];

    /// The longest that is in it, in seconds; `None` for the last one.
    #[must_use]
    pub fn length_s(self) -> Option<i64> {
        match self {
            Self::NoTime => Some(0),
            Self::Hour => Some(3_600),
            Self::FourHours => Some(4 * 3_600),
            Self::Day => Some(DAY_S),
            Self::Week => Some(7 * DAY_S),
            Self::FiveWeeks => Some(35 * DAY_S),
            Self::Year => Some(366 * DAY_S),
            Self::Longer => None,
        }
    }

    fn of(length_s: i64) -> Self {
        let fits = |class: &Self| class.length_s().is_none_or(|most| length_s <= most);
        Self::ALL.into_iter().find(fits).unwrap_or(Self::Longer)
    }
}

/// What orders entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryKey {
    /// A day or a floating time, whose start is what clocks show.
    pub is_floating: bool,
    /// How long it takes.
    pub class: LengthClass,
    /// [`CalendarTime::key`] of the start.
    pub start: i64,
}

impl EntryKey {
    /// Bytes in the same order.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 10] {
        let mut bytes = [u8::from(self.is_floating), self.class as u8, 0, 0, 0, 0, 0, 0, 0, 0];
        let start = (self.start.cast_unsigned() ^ (1 << 63)).to_be_bytes();
        for (place, byte) in bytes.iter_mut().skip(2).zip(start) {
            *place = byte;
        }
        bytes
    }

    /// The key of bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 10]) -> Option<Self> {
        let [floating, class, start @ ..] = bytes;
        Some(Self {
            is_floating: match floating {
                0 => false,
                1 => true,
                _ => return None,
            },
            class: *LengthClass::ALL.get(usize::from(class))?,
            start: (u64::from_be_bytes(start) ^ (1 << 63)).cast_signed(),
        })
    }
}

/// One occurrence in an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What orders it.
    pub key: EntryKey,
    /// [`CalendarTime::key`] of the end.
    pub end: i64,
    /// [`CalendarTime::key`] of its instance, where it recurs: unique within the object.
    pub instance: Option<i64>,
    /// A whole day, or several.
    pub is_day: bool,
    /// What it takes of its owner's time.
    pub kind: BusyKind,
    /// Its component has an alarm.
    pub has_alarm: bool,
    /// CLASS is other than PUBLIC.
    pub is_private: bool,
    /// The place of its component among the items of the calendar.
    pub item: usize,
}

/// What all occurrences of a component have in common.
#[derive(Clone, Copy, Default)]
struct ComponentFacts {
    kind: BusyKind,
    has_alarm: bool,
    is_private: bool,
}

impl ComponentFacts {
    fn of(component: &Component, addresses: &[String]) -> Self {
        Self {
            kind: BusyKind::of(component, addresses),
            has_alarm: component.components().any(|part| part.name() == "VALARM"),
            is_private: is_private(component),
        }
    }
}

/// Entries of occurrences. Each component is looked at once, however often it occurs.
struct EntryMaker<'a> {
    calendar: &'a Component,
    addresses: &'a [String],
    known: BTreeMap<usize, ComponentFacts>,
}

impl<'a> EntryMaker<'a> {
    fn new(calendar: &'a Component, addresses: &'a [String]) -> Self {
        Self { calendar, addresses, known: BTreeMap::new() }
    }

    fn entry(&mut self, occurrence: &Occurrence) -> Entry {
        let (calendar, addresses) = (self.calendar, self.addresses);
        let facts = *self.known.entry(occurrence.item).or_insert_with(|| {
            let component = component_at(calendar, occurrence.item);
            component.map(|component| ComponentFacts::of(component, addresses)).unwrap_or_default()
        });
        Entry::new(occurrence, facts)
    }
}

impl Entry {
    fn new(occurrence: &Occurrence, facts: ComponentFacts) -> Self {
        let start = occurrence.start.key();
        let ComponentFacts { kind, has_alarm, is_private } = facts;
        Self {
            key: EntryKey {
                is_floating: occurrence.start.zone().is_none(),
                class: LengthClass::of(occurrence.end_key - start),
                start,
            },
            end: occurrence.end_key,
            instance: occurrence.recurrence_id.as_ref().map(CalendarTime::key),
            is_day: occurrence.start.is_day(),
            kind,
            has_alarm,
            is_private,
            item: occurrence.item,
        }
    }

    /// Start and end, where clocks of days and floating times hang in the zone `floating`.
    #[must_use]
    pub fn instants(&self, floating: &Zone) -> (Instant, Instant) {
        let instant = |key| instant_of_key(key, !self.key.is_floating, floating);
        (instant(self.key.start), instant(self.end))
    }
}

/// The time whose occurrences are entries, in keys: the same for everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct IndexWindow {
    pub from: i64,
    pub to: i64,
}

impl IndexWindow {
    /// From 62 days before a moment to 400 days behind it.
    #[must_use]
    pub fn around(now: Instant) -> Self {
        Self { from: now.0 - 62 * DAY_S, to: now.0 + 400 * DAY_S }
    }

    /// Whether entries alone answer for a span: no series has anything there that they have not, but for dense ones.
    #[must_use]
    pub fn answers(self, range: InstantRange) -> bool {
        beyond(range, self).is_empty()
    }

    fn holds(self, start: i64, end: i64) -> bool {
        self.range().overlaps((Instant(start), Instant(end)))
    }

    fn range(self) -> InstantRange {
        InstantRange { from: Instant(self.from), to: Instant(self.to) }
    }
}

/// What a series has beyond the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesEntry {
    /// Nothing begins before this key.
    pub first: i64,
    /// Nothing ends behind this one; `None` if it has no end.
    pub last: Option<i64>,
    /// It has too many occurrences for entries: it is asked for all.
    pub is_dense: bool,
    /// A calendar of what says when its occurrences are, and whose time they take; components keep their places.
    pub source: Vec<u8>,
}

/// What one series gives to an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexParts {
    /// Its occurrences in the window; all, if it does not recur.
    pub entries: Vec<Entry>,
    /// What it has besides.
    pub series: Option<SeriesEntry>,
}

impl IndexParts {
    /// Of a series in the calendar of somebody with these addresses ([`crate::address::comparable`]).
    #[must_use]
    pub fn of(calendar: &Component, series: &Series, addresses: &[String], window: IndexWindow) -> Self {
        let all = InstantRange { from: Instant(i64::MIN / 4), to: Instant(i64::MAX / 4) };
        // Floating times count in UTC, where they are their keys.
        let entries = |list: OccurrenceList| -> Vec<Entry> {
            let mut maker = EntryMaker::new(calendar, addresses);
            list.occurrences.iter().map(|occurrence| maker.entry(occurrence)).collect()
        };
        if !series.is_recurring() {
            let list = series.occurrences(all, &Zone::utc(), ENTRIES_MAX);
            if !list.is_cut {
                return Self { entries: entries(list), series: None };
            }
        }
        let Some((first, last)) = series.span() else { return Self::default() };
        let list = series.occurrences(window.range(), &Zone::utc(), ENTRIES_MAX);
        let is_dense = list.is_cut;
        let is_within = !is_dense && first >= window.from && last.is_some_and(|last| last < window.to);
        let beyond =
            (!is_within).then(|| SeriesEntry { first, last, is_dense, source: compact(calendar, series) });
        Self { entries: if is_dense { Vec::new() } else { entries(list) }, series: beyond }
    }
}

impl SeriesEntry {
    /// Whether it may have something for a question that entries do not have. O(1).
    #[must_use]
    pub fn may_answer(&self, range: InstantRange, window: IndexWindow) -> bool {
        let is_alive = self.first < range.to.0.saturating_add(DAY_S)
            && self.last.is_none_or(|last| last >= range.from.0.saturating_sub(DAY_S));
        is_alive && (self.is_dense || !beyond(range, window).is_empty())
    }

    /// What it has in a span, and entries do not have.
    #[must_use]
    pub fn answer(
        &self,
        range: InstantRange,
        window: IndexWindow,
        addresses: &[String],
        floating: &Zone,
        most: usize,
    ) -> Vec<Entry> {
        let Ok(calendar) = Component::parse(&self.source, ContentLimits::default()) else {
            return Vec::new();
        };
        let parts = if self.is_dense { vec![range] } else { beyond(range, window) };
        let mut maker = EntryMaker::new(&calendar, addresses);
        let mut found = Vec::new();
        for series in Series::read_all(&calendar, floating) {
            for part in &parts {
                let list = series.occurrences(*part, floating, most.saturating_add(ENTRIES_MAX));
                let is_new = |one: &&Occurrence| {
                    (self.is_dense || !window.holds(one.start.key(), one.end_key))
                        && range.overlaps(one.instants(floating))
                };
                let new = list.occurrences.iter().filter(is_new);
                found.extend(new.map(|occurrence| maker.entry(occurrence)));
            }
        }
        found.truncate(most);
        found
    }
}

/// The parts of a question that reach beyond the window; a day more, for floating times of whatever zone.
fn beyond(range: InstantRange, window: IndexWindow) -> Vec<InstantRange> {
    let before = InstantRange { to: Instant(window.from + DAY_S).min(range.to), ..range };
    let behind = InstantRange { from: Instant(window.to - DAY_S).max(range.from), ..range };
    let is_before = range.from.0 < window.from + DAY_S;
    let is_behind = range.to.0 > window.to - DAY_S;
    match (is_before, is_behind) {
        (true, true) => vec![range],
        (true, false) => vec![before],
        (false, true) => vec![behind],
        (false, false) => Vec::new(),
    }
}

/// Keys to be read for a question: from the first up to, and without, the second, of each class and kind of time. Each entry found is
/// then held against the span ([`InstantRange::overlaps`]).
#[must_use]
pub fn scans(range: InstantRange, floating: &Zone) -> Vec<(EntryKey, EntryKey)> {
    let absolute = (false, range.from.0, range.to.0);
    // Where clocks change, their times are not in the order of moments.
    let (from, to) = (floating.civil_of(range.from).0, floating.civil_of(range.to).0);
    let civil = (true, from.saturating_sub(DAY_S), to.saturating_add(DAY_S));
    let mut scans = Vec::with_capacity(2 * LengthClass::ALL.len());
    for (is_floating, from, to) in [absolute, civil] {
        for class in LengthClass::ALL {
            let start = class.length_s().map_or(i64::MIN, |length| from.saturating_sub(length));
            let key = |start| EntryKey { is_floating, class, start };
            scans.push((key(start), key(to)));
        }
    }
    scans
}

/// Lines that say when something is, and whose time it takes.
const KEPT: [&str; 17] = [
    "UID",
    "DTSTART",
    "DTEND",
    "DUE",
    "DURATION",
    "RRULE",
    "EXRULE",
    "RDATE",
    "EXDATE",
    "RECURRENCE-ID",
    "SEQUENCE",
    "DTSTAMP",
    "STATUS",
    "TRANSP",
    "CLASS",
    "ORGANIZER",
    "X-MICROSOFT-CDO-BUSYSTATUS",
];

/// A calendar of one series with what says its times alone. Places of components stay what they are.
fn compact(calendar: &Component, series: &Series) -> Vec<u8> {
    let Some(mut small) = Component::new("VCALENDAR") else { return Vec::new() };
    for item in &calendar.items {
        let kept = match item {
            ContentItem::Component(part) if part.name() == "VTIMEZONE" => Some(item.clone()),
            ContentItem::Component(part) => compact_part(part, series),
            ContentItem::Line(_) => None,
        };
        let filler = || Component::new("X-NOTHING").map(ContentItem::Component);
        small.items.extend(kept.or_else(filler));
    }
    small.to_bytes()
}

fn compact_part(part: &Component, series: &Series) -> Option<ContentItem> {
    if part.line("UID").map(|line| line.value()).unwrap_or_default() != series.uid() {
        return None;
    }
    let mut small = Component::new(part.name())?;
    let kept = part.lines().filter(|line| KEPT.contains(&line.name()));
    small.items.extend(kept.cloned().map(ContentItem::Line));
    // Of attendees the answers are kept.
    for line in part.lines().filter(|line| line.name() == "ATTENDEE") {
        let parameters = line.parameters().iter().filter(|one| one.name == "PARTSTAT").cloned().collect();
        let short = scrinium_dav_wire::content::ContentLine::new("ATTENDEE", parameters, line.value());
        small.items.extend(short.map(ContentItem::Line));
    }
    if part.components().any(|inner| inner.name() == "VALARM") {
        small.items.extend(Component::new("VALARM").map(ContentItem::Component));
    }
    Some(ContentItem::Component(small))
}
