//! A series: all components of a calendar with one UID, and the occurrences that they give together.
//!
//! The set is (rules, RDATE and DTSTART) without EXDATE; then components with a RECURRENCE-ID take the place of their instance
//! (RFC 5545, section 3.8.5). An instance is known by its moment alone, however its RECURRENCE-ID is written. Every question is answered
//! from where it begins, never from the series' start.

mod read;
mod set;
mod timeline;

use std::collections::BTreeMap;

use crate::civil::{CivilTime, DAY_S};
use crate::event::{ComponentKind, Event};
use crate::rule::RuleError;
use crate::time::{CalendarTime, Extent, instant_of_key};
use crate::zone::{Instant, Zone, ZoneNote};
use set::{Identity, RecurrenceSet};
use timeline::Timeline;

/// Instances that are looked at for one question.
const INSTANCES_MAX: usize = 100_000;

/// What somebody who reads the calendar should know about a series.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum SeriesNote {
    /// A rule cannot be expanded; it is left out.
    Rule(RuleError),
    Zone(ZoneNote),
    /// A line is no time; it is left out.
    UnreadableTime {
        name: String,
    },
    /// Several components stand for the same instance, or for the series; the latest one holds.
    Outdated {
        item: usize,
    },
}

/// All components with one UID.
#[derive(Clone, Debug)]
pub struct Series {
    kind: ComponentKind,
    uid: String,
    master: Option<Event>,
    set: Option<RecurrenceSet>,
    /// In the order of their instances.
    overrides: Vec<Event>,
    /// Instances that have a component of their own, by moment; where it is only a day, by day.
    by_key: BTreeMap<i64, usize>,
    by_day: BTreeMap<i64, usize>,
    /// THISANDFUTURE: from which instance on, and which component.
    moves: Vec<(i64, usize)>,
    /// Components for single instances by when they are: moments, and what clocks show of days and floating times.
    moments: Timeline,
    civil_times: Timeline,
    /// How far an occurrence may reach behind its instance's time, and how far it may lie before it, in seconds.
    reach: (i64, i64),
    notes: Vec<SeriesNote>,
}

/// One occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The place of its component among the items of the calendar.
    pub item: usize,
    /// When it begins.
    pub start: CalendarTime,
    /// When it ends, as a [`CalendarTime::key`]: seconds since 1970, of the moment or of the clock.
    pub end_key: i64,
    /// Which instance of a series it is: when it would begin by the series' rules. `None` if it does not recur.
    pub recurrence_id: Option<CalendarTime>,
}

impl Occurrence {
    /// Start and end as moments, where clocks of days and floating times hang in the zone `floating`.
    #[must_use]
    pub fn instants(&self, floating: &Zone) -> (Instant, Instant) {
        let end = instant_of_key(self.end_key, self.start.zone().is_some(), floating);
        (self.start.instant(floating), end)
    }
}

/// A span of time: from a moment up to, and without, another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct InstantRange {
    pub from: Instant,
    pub to: Instant,
}

impl InstantRange {
    /// Whether something overlaps it (RFC 4791, section 9.9). What takes no time overlaps the span that it lies in.
    #[must_use]
    pub fn overlaps(&self, (start, end): (Instant, Instant)) -> bool {
        start < self.to && (end > self.from || (start == end && start >= self.from))
    }
}

/// Occurrences in a span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OccurrenceList {
    /// In the order in which they begin.
    pub occurrences: Vec<Occurrence>,
    /// There are others, beyond the limit.
    pub is_cut: bool,
}

impl Series {
    /// What its components are.
    #[must_use]
    pub fn kind(&self) -> ComponentKind {
        self.kind
    }

    /// Its UID; empty if its component has none.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// The component without a RECURRENCE-ID. Somebody who is invited to single instances has none.
    #[must_use]
    pub fn master(&self) -> Option<&Event> {
        self.master.as_ref()
    }

    /// The components for single instances.
    #[must_use]
    pub fn overrides(&self) -> &[Event] {
        &self.overrides
    }

    /// What somebody who reads the calendar should know.
    #[must_use]
    pub fn notes(&self) -> &[SeriesNote] {
        &self.notes
    }

    /// Whether it has more than one instance by its rules and dates.
    #[must_use]
    pub fn is_recurring(&self) -> bool {
        self.set.as_ref().is_some_and(RecurrenceSet::is_recurring)
    }

    /// A bound for its span, as keys: nothing begins before the first one, nothing ends behind the second; `None` if it has no end.
    #[must_use]
    pub fn span(&self) -> Option<(i64, Option<i64>)> {
        let starts =
            self.overrides.iter().filter_map(|event| event.start.as_ref().map(|start| (start, event.extent)));
        let own: Vec<(i64, i64)> =
            starts.map(|(start, extent)| (start.key(), extent.end_key(start))).collect();
        let (mut first, mut last) = (own.iter().map(|own| own.0).min(), own.iter().map(|own| own.1).max());
        let mut is_endless = false;
        if let Some(set) = &self.set {
            let (lead, trail) = self.reach;
            first = Some(first.unwrap_or(i64::MAX).min(set.first_key() - trail));
            match set.last_key() {
                Some(key) => last = Some(last.unwrap_or(i64::MIN).max(key + lead)),
                None => is_endless = true,
            }
        }
        Some((first?, last.filter(|_| !is_endless)))
    }

    /// To be called when all components are there: what questions would otherwise look for each time.
    fn finish(&mut self) {
        self.reach = self.measured_reach();
        let (mut moments, mut civil_times) = (Vec::new(), Vec::new());
        for (place, event) in self.overrides.iter().enumerate() {
            let Some(start) = &event.start else { continue };
            let times = if start.zone().is_some() { &mut moments } else { &mut civil_times };
            times.push((start.key(), event.extent.end_key(start), place));
        }
        self.moments = Timeline::new(moments);
        self.civil_times = Timeline::new(civil_times);
    }

    fn measured_reach(&self) -> (i64, i64) {
        let set = self.set.as_ref().map_or(0, RecurrenceSet::most_s);
        let master = self.master.as_ref().map_or(0, |master| master.extent.most_s());
        let (mut lead, mut trail) = (set.max(master), 0);
        for event in self.moves.iter().filter_map(|(_, index)| self.overrides.get(*index)) {
            if let (Some(start), Some(id)) = (&event.start, &event.recurrence_id) {
                // A day more, for changes of clocks and of the zone.
                let shift = start.key() - id.time.key();
                lead = lead.max(shift + event.extent.most_s() + DAY_S);
                trail = trail.max(DAY_S - shift);
            }
        }
        (lead, trail)
    }

    /// The first of all that overlaps a span, at most `most`, in the order in which it begins. Days and floating times count in
    /// the zone `floating`.
    #[must_use]
    pub fn occurrences(&self, range: InstantRange, floating: &Zone, most: usize) -> OccurrenceList {
        let mut list = self.overrides_within(range, floating, most);
        if let Some(set) = &self.set {
            self.add_instances(set, range, floating, most, &mut list);
        }
        list.occurrences.sort_by_cached_key(|occurrence| (occurrence.instants(floating), occurrence.item));
        list.is_cut |= list.occurrences.len() > most;
        list.occurrences.truncate(most);
        list
    }

    fn overrides_within(&self, range: InstantRange, floating: &Zone, most: usize) -> OccurrenceList {
        // Around what clocks skip or show twice, their order is not that of moments; a day covers it.
        let (from, to) = (floating.civil_of(range.from).0, floating.civil_of(range.to).0);
        let civil = self.civil_times.overlapping(from.saturating_sub(DAY_S), to.saturating_add(DAY_S));
        let mut list = OccurrenceList::default();
        for places in [self.moments.overlapping(range.from.0, range.to.0), civil] {
            let found = places.filter_map(|place| Self::own_occurrence(self.overrides.get(place)?));
            let mut found = found.filter(|own| range.overlaps(own.instants(floating)));
            list.occurrences.extend(found.by_ref().take(most));
            list.is_cut |= found.next().is_some();
        }
        list
    }

    fn add_instances(
        &self,
        set: &RecurrenceSet,
        range: InstantRange,
        floating: &Zone,
        most: usize,
        list: &mut OccurrenceList,
    ) {
        let (lead, trail) = self.reach;
        let (from, to) = (self.key_of(range.from, floating), self.key_of(range.to, floating));
        // What moved with an earlier one may come before others.
        let most = if self.moves.is_empty() { most } else { INSTANCES_MAX };
        let (mut looked_at, mut found) = (0, 0);
        for identity in set.walk_from(from.saturating_sub(lead.saturating_add(DAY_S))) {
            if identity.key >= to.saturating_add(trail + DAY_S) {
                break;
            }
            looked_at += 1;
            if looked_at > INSTANCES_MAX || found >= most {
                list.is_cut = true;
                break;
            }
            let occurrence = self.occurrence(set, &identity, floating);
            let occurrence = occurrence.filter(|found| range.overlaps(found.instants(floating)));
            found += usize::from(occurrence.is_some());
            list.occurrences.extend(occurrence);
        }
    }

    /// The first occurrence that begins at or after a moment.
    #[must_use]
    pub fn next_from(&self, from: Instant, floating: &Zone) -> Option<Occurrence> {
        let begins = |occurrence: &Occurrence| occurrence.instants(floating).0;
        let mut best = self.next_override(from, floating);
        let Some(set) = &self.set else { return best };
        let (lead, trail) = self.reach;
        let key = self.key_of(from, floating);
        for identity in set.walk_from(key.saturating_sub(lead.saturating_add(DAY_S))).take(INSTANCES_MAX) {
            let is_beyond =
                |best: &Occurrence| identity.key > self.key_of(begins(best), floating) + trail + DAY_S;
            if best.as_ref().is_some_and(is_beyond) {
                break;
            }
            let found = self.occurrence(set, &identity, floating).filter(|found| begins(found) >= from);
            best = best.into_iter().chain(found).min_by_key(begins);
        }
        best
    }

    fn next_override(&self, from: Instant, floating: &Zone) -> Option<Occurrence> {
        let begins = |occurrence: &Occurrence| occurrence.instants(floating).0;
        let own = |place| Self::own_occurrence(self.overrides.get(place)?);
        let moment = self.moments.from(from.0).find_map(own);
        let civil_from = floating.civil_of(from).0.saturating_sub(DAY_S);
        let mut civil = self.civil_times.from(civil_from).filter_map(own).filter(|own| begins(own) >= from);
        let first = civil.next();
        // Others within a day of it may be earlier, where clocks change.
        let last = first.as_ref().map_or(i64::MIN, |first| first.start.key() + DAY_S);
        let civil = first.into_iter().chain(civil.take_while(|own| own.start.key() <= last));
        moment.into_iter().chain(civil).min_by_key(begins)
    }

    /// A moment in what orders instances of this series.
    fn key_of(&self, instant: Instant, floating: &Zone) -> i64 {
        match self.set.as_ref().is_some_and(RecurrenceSet::is_zoned) {
            true => instant.0,
            false => floating.civil_of(instant).0,
        }
    }

    fn own_occurrence(event: &Event) -> Option<Occurrence> {
        let start = event.start.clone()?;
        let recurrence_id = event.recurrence_id.as_ref().map(|id| id.time.clone());
        Some(Occurrence { item: event.item, end_key: event.extent.end_key(&start), start, recurrence_id })
    }

    /// What stands at an instance, unless it is excluded or has a component of its own.
    fn occurrence(&self, set: &RecurrenceSet, identity: &Identity, floating: &Zone) -> Option<Occurrence> {
        let day = identity.start.civil().day();
        let is_overridden = self.by_key.contains_key(&identity.key) || self.by_day.contains_key(&day);
        if is_overridden || set.excludes(identity) {
            return None;
        }
        let moved = self.moves.partition_point(|(key, _)| *key <= identity.key).checked_sub(1);
        if let Some(event) = moved.and_then(|place| self.overrides.get(self.moves.get(place)?.1)) {
            return moved_occurrence(event, identity, floating);
        }
        let master = self.master.as_ref()?;
        let extent: Extent = identity.extent.unwrap_or(master.extent);
        Some(Occurrence {
            item: master.item,
            end_key: extent.end_key(&identity.start),
            start: identity.start.clone(),
            recurrence_id: set.is_recurring().then(|| identity.start.clone()),
        })
    }
}

/// An instance behind one that moved with all later ones: by as much, on the clocks of the new zone (RFC 5545, section
/// 3.8.4.4).
fn moved_occurrence(event: &Event, identity: &Identity, floating: &Zone) -> Option<Occurrence> {
    let (start, id) = (event.start.as_ref()?, event.recurrence_id.as_ref()?);
    let civil_in_new_zone = |time: &CalendarTime| match start.zone() {
        Some(zone) => zone.civil_of(time.instant(floating)),
        None => time.civil(),
    };
    let shift = start.civil().0 - civil_in_new_zone(&id.time).0;
    let moved = start.at(CivilTime(civil_in_new_zone(&identity.start).0 + shift));
    Some(Occurrence {
        item: event.item,
        end_key: event.extent.end_key(&moved),
        start: moved,
        recurrence_id: Some(identity.start.clone()),
    })
}
