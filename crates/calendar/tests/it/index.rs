//! The index of occurrences against looking at everything, whatever the window and the asker's zone.

use std::collections::BTreeMap;

use proptest::prelude::*;
use scrinium_calendar::civil::DAY_S;
use scrinium_calendar::index::{Entry, EntryKey, IndexParts, IndexWindow, SeriesEntry, scans};
use scrinium_calendar::series::{InstantRange, Series};
use scrinium_calendar::zone::{Instant, Zone};
use scrinium_dav_wire::content::Component;

use crate::support::{calendar, cases, zone};

/// An index as a store would hold it.
#[derive(Default)]
struct Index {
    entries: BTreeMap<([u8; 10], usize, Option<i64>), Entry>,
    series: Vec<(usize, SeriesEntry)>,
    reads: std::cell::Cell<usize>,
}

impl Index {
    fn new(calendars: &[Component], window: IndexWindow) -> Self {
        let mut index = Self::default();
        for (id, calendar) in calendars.iter().enumerate() {
            for series in Series::read_all(calendar, &zone("Europe/Berlin")) {
                let parts = IndexParts::of(calendar, &series, &[], window);
                for entry in parts.entries {
                    index.entries.insert((entry.key.to_bytes(), id, entry.instance), entry);
                }
                index.series.extend(parts.series.map(|series| (id, series)));
            }
        }
        index
    }

    fn ask(&self, range: InstantRange, window: IndexWindow, floating: &Zone) -> Vec<(usize, Entry)> {
        let mut found = Vec::new();
        self.reads.set(0);
        for (from, to) in scans(range, floating) {
            assert_eq!(EntryKey::from_bytes(from.to_bytes()), Some(from));
            let keys = (from.to_bytes(), 0, None)..(to.to_bytes(), 0, None);
            for ((_, id, _), entry) in self.entries.range(keys) {
                self.reads.set(self.reads.get() + 1);
                if range.overlaps(entry.instants(floating)) {
                    found.push((*id, entry.clone()));
                }
            }
        }
        for (id, series) in self.series.iter().filter(|(_, series)| series.may_answer(range, window)) {
            found.extend(
                series.answer(range, window, &[], floating, 10_000).into_iter().map(|entry| (*id, entry)),
            );
        }
        sorted(found)
    }
}

fn sorted(mut found: Vec<(usize, Entry)>) -> Vec<(usize, Entry)> {
    found.sort_by_key(|(id, entry)| (*id, entry.key, entry.instance));
    found
}

fn time(kind: u8, day: i64, hour: i64) -> String {
    let (year, month, of_month) = scrinium_calendar::civil::date_of(20_454 + day);
    let date = format!("{year:04}{month:02}{of_month:02}");
    match kind {
        0 => format!(";VALUE=DATE:{date}"),
        1 => format!(":{date}T{hour:02}0000"),
        2 => format!(":{date}T{hour:02}0000Z"),
        _ => format!(";TZID=America/New_York:{date}T{hour:02}0000"),
    }
}

prop_compose! {
    fn object()(
        kind in 0_u8..4, day in -900_i64..900, hour in 0_i64..24,
        length in prop_oneof![Just(0_u32), 1_u32..5, 20_u32..30, 100_u32..2_000, 9_000_u32..20_000],
        rule in prop_oneof![
            Just(""), Just("RRULE:FREQ=DAILY;COUNT=5\n"), Just("RRULE:FREQ=WEEKLY\n"), Just("RRULE:FREQ=HOURLY;INTERVAL=7;COUNT=2000\n"),
            Just("RRULE:FREQ=MONTHLY;BYDAY=2FR;UNTIL=20270401\n"),
        ],
        moved in prop::option::of((0_u8..4, -40_i64..40)),
        excluded in any::<bool>(),
    ) -> String {
        let length = if rule.contains("HOURLY") { length % 100 } else { length };
        let mut lines = format!("DTSTART{}\nDURATION:PT{length}H\n{rule}", time(kind, day, hour));
        if excluded && !rule.is_empty() {
            lines.push_str(&format!("EXDATE{}\n", time(kind, day + 7, hour)));
        }
        if let (Some((new_kind, by)), false) = (moved, rule.is_empty()) {
            let (id, start) = (time(kind, day + 14, hour), time(new_kind, day + 14 + by, hour));
            lines.push_str(&format!("+RECURRENCE-ID{id}\nDTSTART{start}\nDURATION:PT2H\nTRANSP:TRANSPARENT"));
        }
        lines
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(24)))]
    #[test]
    fn each_question_is_answered_as_if_all_were_looked_at(
        objects in prop::collection::vec(object(), 1..6),
        window in (-300_i64..300, 1_i64..500),
        asked in (-1_000_i64 * DAY_S..1_200 * DAY_S, 1_i64..40 * DAY_S),
        name in prop::sample::select(vec!["UTC", "Asia/Tokyo", "America/New_York"]),
    ) {
        let epoch = 20_454 * DAY_S;
        let calendars: Vec<Component> = objects.iter().map(|lines| calendar(lines)).collect();
        let window = IndexWindow { from: epoch + window.0 * DAY_S, to: epoch + (window.0 + window.1) * DAY_S };
        let range = InstantRange { from: Instant(epoch + asked.0), to: Instant(epoch + asked.0 + asked.1) };
        let floating = zone(name);
        let found = Index::new(&calendars, window).ask(range, window, &floating);
        // A window that holds nothing leaves everything to the series, and one that holds all to entries.
        let nothing = IndexWindow { from: 0, to: 1 };
        let by_series = Index::new(&calendars, nothing).ask(range, nothing, &floating);
        prop_assert_eq!(&found, &by_series);
        let mut count = 0;
        for calendar in &calendars {
            for series in Series::read_all(calendar, &floating) {
                count += series.occurrences(range, &floating, 100_000).occurrences.len();
            }
        }
        prop_assert_eq!(found.len(), count);
    }
}

#[test]
fn a_week_reads_the_same_number_of_keys_among_many_events_as_among_few() {
    let window = IndexWindow::around(Instant(20_454 * DAY_S));
    let range = InstantRange { from: Instant(20_454 * DAY_S), to: Instant(20_461 * DAY_S) };
    let reads = |count: i64| {
        let at = |number: i64| if number < 20 { number % 7 } else { 40 + number % 3_000 };
        let calendars: Vec<Component> = (0..count)
            .map(|number| calendar(&format!("DTSTART{}\nDURATION:PT1H", time(2, at(number), number % 20))))
            .collect();
        let index = Index::new(&calendars, window);
        assert_eq!(index.ask(range, window, &Zone::utc()).len(), 20);
        index.reads.get()
    };
    assert_eq!(reads(100), reads(3_000));
    assert_eq!(reads(100), 20);
}
