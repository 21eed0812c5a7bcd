//! A calendar into its series.

use std::collections::BTreeMap;

use scrinium_dav_wire::content::{Component, ContentItem};
use scrinium_dav_wire::recurrence::RecurrenceRule;

use super::set::{InstanceKey, RULES_MAX, RecurrenceSet};
use super::timeline::Timeline;
use super::{Series, SeriesNote};
use crate::event::{ComponentKind, Event, component_at, times};
use crate::rule::RuleError;
use crate::zone::{Zone, ZoneNames};

/// Notes that are kept of one series.
const NOTES_MAX: usize = 100;
/// Dates of one component.
const DATES_MAX: usize = 100_000;

impl Series {
    /// All series of a VCALENDAR, in the order in which their UIDs first stand. `fallback` is the zone of the calendar that it
    /// lies in: of floating times, and of zones that nobody knows.
    #[must_use]
    pub fn read_all(calendar: &Component, fallback: &Zone) -> Vec<Self> {
        let mut zones = ZoneNames::new(calendar, fallback.clone());
        let mut order: BTreeMap<(ComponentKind, String), usize> = BTreeMap::new();
        let mut groups: Vec<(ComponentKind, String, Vec<usize>)> = Vec::new();
        for (item, component) in components(calendar) {
            let Some(kind) = ComponentKind::of(component) else { continue };
            let uid = component.line("UID").map(|line| line.value().to_owned()).unwrap_or_default();
            let known = order.get(&(kind, uid.clone())).copied().filter(|_| !uid.is_empty());
            match known.and_then(|place| groups.get_mut(place)) {
                Some((_, _, items)) => items.push(item),
                None => {
                    order.insert((kind, uid.clone()), groups.len());
                    groups.push((kind, uid, vec![item]));
                }
            }
        }
        groups.into_iter().map(|(kind, uid, items)| read(calendar, kind, uid, &items, &mut zones)).collect()
    }

    pub(super) fn note(&mut self, note: SeriesNote) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        }
    }

    /// Takes a component in, or the one that it replaces out.
    fn take_master(&mut self, event: Event) {
        match &self.master {
            Some(master) if master.precedence() > event.precedence() => {
                self.note(SeriesNote::Outdated { item: event.item });
            }
            _ => {
                if let Some(old) = self.master.replace(event) {
                    self.note(SeriesNote::Outdated { item: old.item });
                }
            }
        }
    }

    fn place_overrides(&mut self, events: Vec<Event>) {
        let mut latest: BTreeMap<(bool, i64), Event> = BTreeMap::new();
        for event in events {
            let Some(id) = &event.recurrence_id else { continue };
            let key = match self.set.as_ref().map(|set| set.key_of(&id.time)) {
                Some(InstanceKey::Day(day)) => (true, day),
                Some(InstanceKey::Moment(key)) => (false, key),
                None => (false, id.time.key()),
            };
            // Of two for one instance the later one holds, whatever SEQUENCE the series has.
            let outdated = match latest.remove(&key) {
                Some(known) if known.precedence() > event.precedence() => {
                    latest.insert(key, known);
                    Some(event.item)
                }
                known => {
                    latest.insert(key, event);
                    known.map(|known| known.item)
                }
            };
            if let Some(item) = outdated {
                self.note(SeriesNote::Outdated { item });
            }
        }
        for ((is_day, key), event) in latest {
            let place = self.overrides.len();
            let by = if is_day { &mut self.by_day } else { &mut self.by_key };
            by.insert(key, place);
            let moves = event.recurrence_id.as_ref().is_some_and(|id| id.is_and_future);
            if moves && event.start.is_some() {
                let moment = event.recurrence_id.as_ref().map_or(key, |id| id.time.key());
                self.moves.push((if is_day { moment } else { key }, place));
            }
            self.overrides.push(event);
        }
        self.moves.sort_unstable();
    }
}

fn components(calendar: &Component) -> impl Iterator<Item = (usize, &Component)> {
    calendar.items.iter().enumerate().filter_map(|(item, content)| match content {
        ContentItem::Component(component) => Some((item, component)),
        ContentItem::Line(_) => None,
    })
}

fn read(
    calendar: &Component,
    kind: ComponentKind,
    uid: String,
    items: &[usize],
    zones: &mut ZoneNames<'_>,
) -> Series {
    let noted_before = zones.notes().len();
    let mut series = Series {
        kind,
        uid,
        master: None,
        set: None,
        overrides: Vec::new(),
        by_key: BTreeMap::new(),
        by_day: BTreeMap::new(),
        moves: Vec::new(),
        moments: Timeline::default(),
        civil_times: Timeline::default(),
        reach: (0, 0),
        notes: Vec::new(),
    };
    let mut overrides = Vec::new();
    for item in items {
        let Some(component) = component_at(calendar, *item) else { continue };
        let event = Event::read(*item, component, zones);
        for name in ["DTSTART", "DTEND", "DUE", "RECURRENCE-ID"] {
            if let Some(line) = component.line(name)
                && crate::time::CalendarTime::read(line, zones).is_none()
            {
                series.note(SeriesNote::UnreadableTime { name: name.to_owned() });
            }
        }
        if event.recurrence_id.is_some() {
            overrides.push(event);
        } else if component.line("RECURRENCE-ID").is_none() {
            series.take_master(event);
        }
    }
    let master = series.master.clone();
    if let Some((master, component)) =
        master.and_then(|master| Some((master.clone(), component_at(calendar, master.item)?)))
        && let Some(start) = master.start
    {
        series.set = Some(set(component, start, zones, &mut series));
    }
    series.place_overrides(overrides);
    series.finish();
    for note in zones.notes().get(noted_before..).unwrap_or_default() {
        series.note(SeriesNote::Zone(note.clone()));
    }
    series
}

fn set(
    component: &Component,
    start: crate::time::CalendarTime,
    zones: &mut ZoneNames<'_>,
    series: &mut Series,
) -> RecurrenceSet {
    let mut set = RecurrenceSet::new(start);
    let mut dates = 0;
    let mut rules = 0;
    for line in component.lines() {
        match line.name() {
            "RRULE" | "EXRULE" => {
                rules += 1;
                let added = if rules > 2 * RULES_MAX {
                    Err(RuleError::TooManyRules(RULES_MAX))
                } else {
                    let rule = RecurrenceRule::parse(line.value().trim()).map_err(|_| RuleError::Malformed);
                    rule.and_then(|rule| match line.name() {
                        "RRULE" => set.add_rule(&rule),
                        _ => set.add_excluding_rule(&rule),
                    })
                };
                if let Err(error) = added {
                    series.note(SeriesNote::Rule(error));
                }
            }
            "RDATE" | "EXDATE" => {
                let given = times(line, zones);
                if given.len() < line.value().split(',').count() {
                    series.note(SeriesNote::UnreadableTime { name: line.name().to_owned() });
                }
                dates += given.len();
                for (time, extent) in given.into_iter().filter(|_| dates <= DATES_MAX) {
                    if line.name() == "RDATE" {
                        set.add_date(&time, extent);
                    } else {
                        set.add_exception(&time);
                    }
                }
            }
            _ => {}
        }
    }
    set.finish();
    set
}
