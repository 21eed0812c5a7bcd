//! When what is in a calendar takes place: an index in memory, made from the sources.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use scrinium_calendar::busy::{BusyKind, BusyTime};
use scrinium_calendar::index::{Entry, EntryKey, IndexParts, IndexWindow, SeriesEntry, scans};
use scrinium_calendar::series::{InstantRange, Series};
use scrinium_calendar::zone::{Instant, Zone};
use scrinium_dav_wire::content::Component;

/// Occurrences of one series that are looked at beyond the window for one question.
const BEYOND_MAX: usize = 10_000;

/// The window moves when so much of its future has gone.
const WINDOW_STEP_S: i64 = 7 * 86_400;

/// Orders entries: when, of which member, and which of it.
type Place = (EntryKey, u64, u32);

/// Occurrences of the members of a calendar, by time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Occurrences {
    window: IndexWindow,
    entries: BTreeMap<Place, Entry>,
    /// Series with more than their entries, by member.
    series: BTreeMap<u64, Vec<SeriesEntry>>,
    /// The keys of a member's entries.
    places: HashMap<u64, Vec<Place>>,
}

impl Occurrences {
    pub(crate) fn new(now: Instant) -> Self {
        let window = IndexWindow::around(now);
        Self { window, entries: BTreeMap::new(), series: BTreeMap::new(), places: HashMap::new() }
    }

    /// Whether the window lies so far back that it is to be made once more.
    pub(crate) fn is_old(&self, now: Instant) -> bool {
        let fresh = IndexWindow::around(now);
        fresh.to - self.window.to > WINDOW_STEP_S || self.window.to - fresh.to > WINDOW_STEP_S
    }

    /// A member comes, in the place of what it was. `addresses` are those of the calendar's owner.
    pub(crate) fn put(&mut self, uid: u64, (calendar, series): (&Component, &Series), addresses: &[String]) {
        self.remove(uid);
        let parts = IndexParts::of(calendar, series, addresses, self.window);
        let mut places = Vec::with_capacity(parts.entries.len());
        for (number, entry) in (0..).zip(parts.entries) {
            let place = (entry.key, uid, number);
            places.push(place);
            self.entries.insert(place, entry);
        }
        if !places.is_empty() {
            self.places.insert(uid, places);
        }
        if let Some(series) = parts.series {
            self.series.insert(uid, vec![series]);
        }
    }

    pub(crate) fn remove(&mut self, uid: u64) {
        for place in self.places.remove(&uid).unwrap_or_default() {
            self.entries.remove(&place);
        }
        self.series.remove(&uid);
    }

    /// Members that take place in a span, each once, ascending.
    pub(crate) fn members_in(&self, range: InstantRange, addresses: &[String], floating: &Zone) -> Vec<u64> {
        let mut found: Vec<u64> = self.entries_in(range, floating).map(|(uid, _)| uid).collect();
        for (uid, all) in &self.series {
            let answers = |series: &SeriesEntry| {
                series.may_answer(range, self.window)
                    && !series.answer(range, self.window, addresses, floating, 1).is_empty()
            };
            if all.iter().any(answers) {
                found.push(*uid);
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Adds what takes time in a span, but for one member.
    pub(crate) fn add_busy(
        &self,
        busy: &mut BusyTime,
        addresses: &[String],
        floating: &Zone,
        but_for: Option<u64>,
    ) {
        self.each_taken(busy.range(), (addresses, floating), but_for, |entry| {
            let (from, to) = entry.instants(floating);
            busy.add(from, to, entry.kind);
        });
    }

    /// Hands on each occurrence that takes time in a span, but for those of one member.
    pub(crate) fn each_taken(
        &self,
        range: InstantRange,
        (addresses, floating): (&[String], &Zone),
        but_for: Option<u64>,
        mut taken: impl FnMut(&Entry),
    ) {
        let mut add = |entry: &Entry| {
            if entry.kind != BusyKind::Free {
                taken(entry);
            }
        };
        let counts = |uid: u64| but_for != Some(uid);
        self.entries_in(range, floating).filter(|(uid, _)| counts(*uid)).for_each(|(_, entry)| add(entry));
        for series in self.series.iter().filter(|(uid, _)| counts(**uid)).flat_map(|(_, all)| all) {
            if series.may_answer(range, self.window) {
                let beyond = series.answer(range, self.window, addresses, floating, BEYOND_MAX);
                beyond.iter().for_each(&mut add);
            }
        }
    }

    /// How many keys a question reads: for tests of its cost.
    #[cfg(test)]
    pub(crate) fn read_for(&self, range: InstantRange, floating: &Zone) -> usize {
        scans(range, floating).into_iter().map(|scan| self.scan(scan).count()).sum()
    }

    fn scan(&self, (from, to): (EntryKey, EntryKey)) -> impl Iterator<Item = (&Place, &Entry)> {
        let bounds = (Bound::Included((from, 0, 0)), Bound::Excluded((to, 0, 0)));
        // A span without a length has no keys.
        let is_sound = (from.start) < to.start;
        is_sound.then(|| self.entries.range(bounds)).into_iter().flatten()
    }

    fn entries_in<'a>(
        &'a self,
        range: InstantRange,
        floating: &'a Zone,
    ) -> impl Iterator<Item = (u64, &'a Entry)> {
        let scanned = scans(range, floating).into_iter().flat_map(move |scan| self.scan(scan));
        let within = scanned.filter(move |(_, entry)| range.overlaps(entry.instants(floating)));
        within.map(|((_, uid, _), entry)| (*uid, entry))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

    use scrinium_calendar::civil::CivilTime;
    use scrinium_dav_wire::content::ContentLimits;

    use super::*;

    /// Ten years of events, one in twenty a series; the week from the 2nd of March 2026 holds the same in both sizes.
    fn filled(events: u64) -> Occurrences {
        let mut occurrences = Occurrences::new(Instant(CivilTime::new(2026, 3, 1, 0).0));
        let mut put = |uid: u64, start: i64, rule: &str| {
            let (year, month, day) = CivilTime(start).date();
            let hour = CivilTime(start).second_of_day() / 3600;
            let source = format!(
                "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:{uid}\r\nDTSTART:{year:04}{month:02}{day:02}T{hour:02}0000Z\r\n\
                 DURATION:PT1H\r\n{rule}END:VEVENT\r\nEND:VCALENDAR\r\n"
            );
            let calendar = Component::parse(source.as_bytes(), ContentLimits::default()).unwrap();
            let series = Series::read_all(&calendar, &Zone::utc());
            occurrences.put(uid, (&calendar, &series[0]), &[]);
        };
        let week = CivilTime::new(2026, 3, 2, 0).0;
        for number in 0..15 {
            put(number, week + number.cast_signed() * 8 * 3600, "");
        }
        for number in 15..20 {
            put(number, week - 70 * 86_400 + number.cast_signed() * 3600, "RRULE:FREQ=WEEKLY\r\n");
        }
        for number in 20..events {
            let aside = 20 * 86_400 + (number.cast_signed() * 7_919 * 3600) % (1_800 * 86_400);
            let start = if number % 2 == 0 { week - aside } else { week + aside };
            put(number, start, if number % 20 == 0 { "RRULE:FREQ=DAILY;COUNT=3\r\n" } else { "" });
        }
        occurrences
    }

    #[test]
    fn a_week_costs_what_it_holds() {
        let week = CivilTime::new(2026, 3, 2, 0).0;
        let range = InstantRange { from: Instant(week), to: Instant(week + 7 * 86_400) };
        let found = [200, 5_000].map(|events| {
            let occurrences = filled(events);
            assert_eq!(occurrences.members_in(range, &[], &Zone::utc()).len(), 20);
            occurrences.read_for(range, &Zone::utc())
        });
        assert_eq!(found[0], found[1], "keys that a week's question reads, of few events and of many");
    }

    #[test]
    fn what_left_is_in_no_span() {
        let mut occurrences = filled(200);
        let empty = Occurrences::new(Instant(CivilTime::new(2026, 3, 1, 0).0));
        (0..200).for_each(|uid| occurrences.remove(uid));
        assert_eq!(occurrences, empty);
    }
}
