//! One component of a calendar, as far as time is concerned: VEVENT, VTODO, VJOURNAL.

use scrinium_dav_wire::content::{Component, ContentItem, ContentLine};
use scrinium_dav_wire::value::{DateTime, Duration};

use crate::time::{CalendarTime, Extent, civil_of_value};
use crate::zone::{Zone, ZoneNames};

/// What a component is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ComponentKind {
    Event,
    Todo,
    Journal,
}

impl ComponentKind {
    /// By its name: VEVENT, VTODO, VJOURNAL.
    #[must_use]
    pub fn of(component: &Component) -> Option<Self> {
        match component.name() {
            "VEVENT" => Some(Self::Event),
            "VTODO" => Some(Self::Todo),
            "VJOURNAL" => Some(Self::Journal),
            _ => None,
        }
    }
}

/// Which instance of a series a component stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecurrenceId {
    /// When the instance would begin by the series' rules.
    pub time: CalendarTime,
    /// All later ones as well (RANGE=THISANDFUTURE).
    pub is_and_future: bool,
}

/// The time of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its place among the items of the calendar.
    pub item: usize,
    /// DTSTART; for a to-do without one, DUE. To-dos and journals may have neither.
    pub start: Option<CalendarTime>,
    /// How long it takes.
    pub extent: Extent,
    /// `None` for the series itself.
    pub recurrence_id: Option<RecurrenceId>,
    /// SEQUENCE, or 0.
    pub sequence: u32,
    /// DTSTAMP, in civil seconds of UTC; 0 where there is none.
    pub stamp_s: i64,
}

impl Event {
    /// Reads a component. A time that cannot be read is as good as absent.
    #[must_use]
    pub fn read(item: usize, component: &Component, zones: &mut ZoneNames<'_>) -> Self {
        let start_line = component.line("DTSTART");
        let end_line = component.line("DTEND").or_else(|| component.line("DUE"));
        let start = start_line.and_then(|line| CalendarTime::read(line, zones));
        let end = end_line.and_then(|line| CalendarTime::read(line, zones));
        let duration = component.line("DURATION").and_then(|line| Duration::parse(line.value().trim()).ok());
        let extent = extent(
            start.as_ref(),
            end.as_ref(),
            duration.as_ref(),
            ComponentKind::of(component),
            zones.fallback(),
        );
        let recurrence_id = component.line("RECURRENCE-ID").and_then(|line| {
            let is_and_future =
                line.parameter("RANGE").is_some_and(|range| range.eq_ignore_ascii_case("THISANDFUTURE"));
            Some(RecurrenceId { time: CalendarTime::read(line, zones)?, is_and_future })
        });
        Self {
            item,
            start: start.or(end),
            extent,
            recurrence_id,
            sequence: sequence(component),
            stamp_s: stamp_s(component),
        }
    }

    /// Which of two components for the same instance holds: the later one (RFC 5546, section 2.1.5).
    pub(crate) fn precedence(&self) -> (u32, i64, usize) {
        (self.sequence, self.stamp_s, self.item)
    }
}

/// RFC 5545, sections 3.6.1 and 3.8.2: a day without an end takes a day, a time none.
fn extent(
    start: Option<&CalendarTime>,
    end: Option<&CalendarTime>,
    duration: Option<&Duration>,
    kind: Option<ComponentKind>,
    floating: &Zone,
) -> Extent {
    match (start, end, duration) {
        (Some(start), Some(end), _) => match Extent::between(start, end, floating) {
            // Some programs write the same day as start and end.
            Extent::Exact(0) if start.is_day() && kind == Some(ComponentKind::Event) => ONE_DAY,
            extent => extent,
        },
        (Some(_), None, Some(duration)) => Extent::from_duration(duration),
        (Some(start), None, None) if start.is_day() && kind != Some(ComponentKind::Todo) => ONE_DAY,
        _ => Extent::NONE,
    }
}

const ONE_DAY: Extent = Extent::Nominal { days: 1, seconds: 0 };

/// The component at a place among the items of a calendar.
pub(crate) fn component_at(calendar: &Component, item: usize) -> Option<&Component> {
    match calendar.items.get(item)? {
        ContentItem::Component(component) => Some(component),
        ContentItem::Line(_) => None,
    }
}

/// Whether CLASS is other than PUBLIC.
pub(crate) fn is_private(component: &Component) -> bool {
    component.line("CLASS").is_some_and(|class| !class.value().trim().eq_ignore_ascii_case("PUBLIC"))
}

/// SEQUENCE, or 0.
#[must_use]
pub fn sequence(component: &Component) -> u32 {
    component.line("SEQUENCE").and_then(|line| line.value().trim().parse().ok()).unwrap_or_default()
}

/// DTSTAMP as civil seconds of UTC, or 0.
#[must_use]
pub fn stamp_s(component: &Component) -> i64 {
    let time = component.line("DTSTAMP").and_then(|line| DateTime::parse(line.value().trim()).ok());
    time.and_then(|time| civil_of_value(&time)).map_or(0, |civil| civil.0)
}

/// The times of a line with several values (RDATE, EXDATE), each with the end of its period where it is one.
pub(crate) fn times(line: &ContentLine, zones: &mut ZoneNames<'_>) -> Vec<(CalendarTime, Option<Extent>)> {
    let tzid = line.parameter("TZID");
    let values = line.value().split(',').map(str::trim);
    let times = values.filter_map(|value| match value.split_once('/') {
        None => CalendarTime::read_value(value, tzid, zones).map(|time| (time, None)),
        Some((start, end)) => {
            let start = CalendarTime::read_value(start, tzid, zones)?;
            let extent = match Duration::parse(end) {
                Ok(duration) => Extent::from_duration(&duration),
                Err(_) => {
                    let end = CalendarTime::read_value(end, tzid, zones)?;
                    Extent::between(&start, &end, zones.fallback())
                }
            };
            Some((start, Some(extent)))
        }
    });
    times.collect()
}
