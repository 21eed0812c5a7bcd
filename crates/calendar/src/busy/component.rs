//! VFREEBUSY (RFC 5545, section 3.6.4): as stored and sent, and written.

use scrinium_dav_wire::Parameter;
use scrinium_dav_wire::content::{Component, ContentLine};
use scrinium_dav_wire::value::{DateTime, Period};

use super::{BusyKind, BusyPeriod, BusyTime};
use crate::series::InstantRange;
use crate::time::{CalendarTime, Extent, civil_of_value};
use crate::zone::Instant;

/// Periods of one component that are read.
const PERIODS_MAX: usize = 100_000;
/// Periods in one line, as written.
const PERIODS_PER_LINE: usize = 32;

/// What a VFREEBUSY says besides its periods. Lines are copied as they stand in the question (RFC 6638, section 5).
#[derive(Clone, Debug, Default)]
pub struct FreeBusyHead {
    /// `REPLY` to a question, `PUBLISH` for a file; none in a report (RFC 4791, section 7.10).
    pub method: Option<&'static str>,
    /// UID.
    pub uid: Option<String>,
    /// DTSTAMP.
    pub now: Instant,
    /// ORGANIZER of the question.
    pub organizer: Option<ContentLine>,
    /// ATTENDEE whose time it is.
    pub attendee: Option<ContentLine>,
}

/// The periods of a VFREEBUSY. What cannot be read is left out; free ones are no periods.
pub(super) fn periods(component: &Component) -> impl Iterator<Item = BusyPeriod> {
    let lines = component.lines().filter(|line| line.name() == "FREEBUSY");
    let periods = lines.flat_map(|line| {
        let kind = line.parameter("FBTYPE").map_or(BusyKind::Busy, BusyKind::of_name);
        line.value().split(',').filter_map(move |period| {
            let range = range_of(&Period::parse(period.trim()).ok()?)?;
            Some(BusyPeriod { range, kind })
        })
    });
    periods.take(PERIODS_MAX)
}

/// Periods are in UTC (RFC 5545, section 3.8.2.6).
fn range_of(period: &Period) -> Option<InstantRange> {
    let instant = |time: &DateTime| civil_of_value(time).map(|civil| Instant(civil.0));
    let (from, to) = match period {
        Period::Until(start, end) => (instant(start)?, instant(end)?),
        Period::For(start, duration) => {
            let start = CalendarTime::from_instant(instant(start)?);
            (Instant(start.key()), Instant(Extent::from_duration(duration).end_key(&start)))
        }
    };
    (from < to).then_some(InstantRange { from, to })
}

/// Reads the busy time of a calendar with VFREEBUSY components, such as somebody's answer, in a span.
#[must_use]
pub fn read(calendar: &Component, range: InstantRange) -> BusyTime {
    let mut busy = BusyTime::new(range);
    for component in calendar.components().filter(|part| part.name() == "VFREEBUSY") {
        busy.add_all(&periods(component).collect::<Vec<_>>());
    }
    busy
}

/// Writes a VCALENDAR with one VFREEBUSY. Times are in UTC; each kind has lines of its own.
#[must_use]
pub fn write(busy: &BusyTime, head: FreeBusyHead) -> Option<Component> {
    let mut calendar = Component::new("VCALENDAR")?;
    let mut lines = vec![line("VERSION", Vec::new(), "2.0"), line("PRODID", Vec::new(), crate::PRODUCT)];
    lines.extend(head.method.map(|method| line("METHOD", Vec::new(), method)));
    lines.into_iter().flatten().for_each(|line| calendar.push(line));
    let mut component = Component::new("VFREEBUSY")?;
    let utc = |instant: Instant| Some(CalendarTime::from_instant(instant).value()?.to_string());
    let time = |name: &str, instant| line(name, Vec::new(), &utc(instant)?);
    let range = busy.range();
    let uid = head.uid.as_deref().and_then(|uid| line("UID", Vec::new(), uid));
    let head_lines = [uid, time("DTSTAMP", head.now), time("DTSTART", range.from), time("DTEND", range.to)];
    head_lines
        .into_iter()
        .chain([head.organizer, head.attendee])
        .flatten()
        .for_each(|line| component.push(line));
    let merged = busy.periods();
    for kind in [BusyKind::Busy, BusyKind::Tentative, BusyKind::Unavailable] {
        let values: Vec<String> = merged
            .iter()
            .filter(|period| period.kind == kind)
            .filter_map(|period| Some(format!("{}/{}", utc(period.range.from)?, utc(period.range.to)?)))
            .collect();
        for part in values.chunks(PERIODS_PER_LINE) {
            let parameters = vec![Parameter::new("FBTYPE", kind.name())];
            line("FREEBUSY", parameters, &part.join(",")).into_iter().for_each(|line| component.push(line));
        }
    }
    calendar.items.push(scrinium_dav_wire::content::ContentItem::Component(component));
    Some(calendar)
}

fn line(name: &str, parameters: Vec<Parameter>, value: &str) -> Option<ContentLine> {
    ContentLine::new(name, parameters, value)
}
