//! What comes back of a calendar or card (RFC 4791, section 9.6; RFC 6352, section 10.4).

use scrinium_calendar::civil::CivilTime;
use scrinium_calendar::series::{InstantRange, Occurrence, Series};
use scrinium_calendar::time::{CalendarTime, TimeKind};
use scrinium_calendar::zone::{Instant, Zone};
use scrinium_dav_wire::content::{Component, ContentItem, ContentLimits, ContentLine};
use scrinium_dav_wire::report::{AddressData, CalendarData};
use scrinium_dav_wire::{ComponentSelection, Parameter};

use crate::filter::instants;

/// Instances of one object that are written out.
pub const INSTANCES_MAX: usize = 4_000;

/// A calendar as it is asked for. Asked for as it is, it is the same bytes. `None`: it has more instances in the range than
/// [`INSTANCES_MAX`].
#[must_use]
pub fn calendar_data(source: &[u8], asked: &CalendarData, floating: &Zone) -> Option<Vec<u8>> {
    if *asked == CalendarData::default() {
        return Some(source.to_vec());
    }
    let Ok(mut calendar) = Component::parse(source, ContentLimits::default()) else {
        return Some(source.to_vec());
    };
    if let Some(range) = &asked.expand {
        calendar = expanded(&calendar, instants(range), floating)?;
    } else if let Some(range) = &asked.limit_recurrence_set {
        limit_overrides(&mut calendar, instants(range), floating);
    }
    if let Some(selection) = &asked.components {
        calendar = selected(&calendar, selection)?;
    }
    Some(calendar.to_bytes())
}

/// Each instance in the range as a component of its own, in UTC (RFC 4791, section 9.6.5).
fn expanded(calendar: &Component, range: InstantRange, floating: &Zone) -> Option<Component> {
    let mut instances = Component::new("VCALENDAR")?;
    instances.items.extend(calendar.lines().cloned().map(ContentItem::Line));
    for series in Series::read_all(calendar, floating) {
        let list = series.occurrences(range, floating, INSTANCES_MAX);
        if list.is_cut {
            return None;
        }
        for occurrence in &list.occurrences {
            let Some(ContentItem::Component(part)) = calendar.items.get(occurrence.item) else { continue };
            instances.items.push(ContentItem::Component(instance(part, occurrence)));
        }
        // What has no time is in no range, and has no instances.
        if list.occurrences.is_empty() && series.span().is_none() {
            let parts = calendar.components().filter(|part| part.name() != "VTIMEZONE");
            instances.items.extend(parts.cloned().map(ContentItem::Component));
        }
    }
    Some(instances)
}

fn instance(part: &Component, occurrence: &Occurrence) -> Component {
    let mut own = part.clone();
    for name in ["RRULE", "RDATE", "EXDATE", "EXRULE", "RECURRENCE-ID"] {
        own.remove(name);
    }
    let end = match occurrence.start.kind() {
        TimeKind::Zoned(_) => CalendarTime::from_instant(Instant(occurrence.end_key)),
        kind => CalendarTime::new(CivilTime(occurrence.end_key), kind.clone()),
    };
    let has = |name: &str| part.line(name).is_some();
    let times = [
        ("DTSTART", has("DTSTART").then_some(&occurrence.start)),
        ("DTEND", has("DTEND").then_some(&end)),
        ("DUE", has("DUE").then_some(&end)),
        ("RECURRENCE-ID", occurrence.recurrence_id.as_ref()),
    ];
    for (name, time) in times {
        if let Some(line) = time.and_then(|time| time_line(name, time)) {
            own.replace(name, vec![line]);
        }
    }
    own
}

/// In UTC, unless it has no zone.
fn time_line(name: &str, time: &CalendarTime) -> Option<ContentLine> {
    let time = match time.zone() {
        Some(zone) => CalendarTime::from_instant(time.instant(zone)),
        None => time.clone(),
    };
    let parameters = if time.is_day() { vec![Parameter::new("VALUE", "DATE")] } else { Vec::new() };
    ContentLine::new(name, parameters, &time.value()?.to_string())
}

/// The series, and of its exceptions those that take place in the range or would have (RFC 4791, section 9.6.6).
fn limit_overrides(calendar: &mut Component, range: InstantRange, floating: &Zone) {
    let mut kept = Vec::new();
    for series in Series::read_all(calendar, floating) {
        kept.extend(series.master().map(|master| master.item));
        for event in series.overrides() {
            let end = |time: &CalendarTime| {
                Instant(match time.zone() {
                    Some(_) => event.extent.end_key(time),
                    None => {
                        CalendarTime::new(CivilTime(event.extent.end_key(time)), TimeKind::Floating)
                            .instant(floating)
                            .0
                    }
                })
            };
            let lies = |time: &CalendarTime| range.overlaps((time.instant(floating), end(time)));
            let is_later = event.recurrence_id.as_ref().is_some_and(|id| id.is_and_future);
            let was = event.recurrence_id.as_ref().is_some_and(|id| lies(&id.time));
            if is_later || was || event.start.as_ref().is_some_and(lies) {
                kept.push(event.item);
            }
        }
    }
    let mut place = 0;
    calendar.items.retain(|item| {
        let is_kept = match item {
            ContentItem::Component(part) if part.name() != "VTIMEZONE" => kept.contains(&place),
            _ => true,
        };
        place += 1;
        is_kept
    });
}

/// The lines and components that are asked for.
fn selected(component: &Component, selection: &ComponentSelection) -> Option<Component> {
    let mut own = Component::new(component.name())?;
    for item in &component.items {
        match item {
            ContentItem::Line(line) => {
                own.items.extend(selected_line(line, selection).map(ContentItem::Line));
            }
            ContentItem::Component(part) => {
                let inner = match &selection.components {
                    None => Some(part.clone()),
                    Some(all) => all
                        .iter()
                        .find(|one| one.name.eq_ignore_ascii_case(part.name()))
                        .and_then(|one| selected(part, one)),
                };
                own.items.extend(inner.map(ContentItem::Component));
            }
        }
    }
    Some(own)
}

fn selected_line(line: &ContentLine, selection: &ComponentSelection) -> Option<ContentLine> {
    let Some(all) = &selection.properties else { return Some(line.clone()) };
    let (_, without_value) = all.iter().find(|(name, _)| line.name().eq_ignore_ascii_case(name))?;
    let mut own = line.clone();
    if *without_value {
        own.set_value("");
    }
    Some(own)
}

/// A card as it is asked for.
#[must_use]
pub fn address_data(source: &[u8], asked: &AddressData) -> Vec<u8> {
    let Some(names) = &asked.properties else { return source.to_vec() };
    let Ok(mut card) = Component::parse(source, ContentLimits::default()) else { return source.to_vec() };
    // A card has to have these (RFC 6350, sections 6.2.1 and 6.7.9).
    let is_kept = |line: &ContentLine| {
        ["VERSION", "UID", "FN"].contains(&line.name())
            || names.iter().any(|name| line.name().eq_ignore_ascii_case(name))
    };
    card.items.retain(|item| matches!(item, ContentItem::Line(line) if is_kept(line)));
    card.to_bytes()
}
