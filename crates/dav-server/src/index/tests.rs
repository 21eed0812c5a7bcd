//! What a question reads, and that what leaves or moves leaves nothing behind.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use scrinium_calendar::civil::CivilTime;
use scrinium_calendar::zone::Instant;
use scrinium_statistics::Registry;
use scrinium_store::StoreOptions;

use super::*;

const OF: (u32, u32) = (9, 4);

fn store() -> (Store, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = StoreOptions::new(folder.path());
    options.budget_bytes = Some(64 << 20);
    options.log_extent_bytes = 4 << 20;
    let store = Store::open(options, &Registry::new()).unwrap();
    // Closing takes a second, which tests need not wait for.
    std::mem::forget(store.clone());
    (store, folder)
}

fn put(index: &mut ShelfIndex<'_>, uid: u64, start: i64, rule: &str) {
    let (year, month, day) = CivilTime(start).date();
    let hour = CivilTime(start).second_of_day() / 3600;
    let source = format!(
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:{uid}\r\nDTSTART:{year:04}{month:02}{day:02}T{hour:02}0000Z\r\n\
         DURATION:PT1H\r\n{rule}END:VEVENT\r\nEND:VCALENDAR\r\n"
    );
    let calendar = Component::parse(source.as_bytes(), ContentLimits::default()).unwrap();
    let series = Series::read_all(&calendar, &Zone::utc());
    let parts = IndexParts::of(&calendar, &series[0], &[], index.window());
    let member = Member {
        uid,
        id: format!("cal-{uid}"),
        name: format!("{uid}.ics"),
        object: uid.to_string(),
        tag: "t".to_owned(),
        schedule_tag: None,
        bytes: source.len(),
        kind: Some(ComponentKind::Event),
        is_private: false,
    };
    index.put(&member, &Brings { parts, addresses: Vec::new() }, None).unwrap();
}

fn begun(store: &Store) -> ShelfIndex<'_> {
    let window = IndexWindow::around(Instant(CivilTime::new(2026, 3, 1, 0).0));
    ShelfIndex::begin(store, OF, [0; 16], window).unwrap()
}

/// Ten years of events, one in twenty a series; the week from the 2nd of March 2026 holds the same in both sizes.
fn filled(store: &Store, events: u64) -> ShelfIndex<'_> {
    let mut index = begun(store);
    let week = CivilTime::new(2026, 3, 2, 0).0;
    for number in 0..15 {
        put(&mut index, number, week + number.cast_signed() * 8 * 3600, "");
    }
    for number in 15..20 {
        put(&mut index, number, week - 70 * 86_400 + number.cast_signed() * 3600, "RRULE:FREQ=WEEKLY\r\n");
    }
    for number in 20..events {
        let aside = 20 * 86_400 + (number.cast_signed() * 7_919 * 3600) % (1_800 * 86_400);
        let start = if number % 2 == 0 { week - aside } else { week + aside };
        let rule = if number % 20 == 0 { "RRULE:FREQ=DAILY;COUNT=3\r\n" } else { "" };
        put(&mut index, number, start, rule);
    }
    index
}

#[test]
fn a_week_costs_what_it_holds() {
    let week = CivilTime::new(2026, 3, 2, 0).0;
    let range = InstantRange { from: Instant(week), to: Instant(week + 7 * 86_400) };
    let read = [200, 3_000].map(|events| {
        let (store, _folder) = store();
        let contents = filled(&store, events).contents(store.snapshot());
        assert_eq!(contents.members_in(range, &[], &Zone::utc()).unwrap().len(), 20);
        contents.each_entry(range, &Zone::utc(), |_, _| {}).unwrap()
    });
    assert_eq!(read[0], read[1], "keys that a week's question reads, of few events and of many");
}

#[test]
fn what_left_leaves_nothing() {
    let (store, _folder) = store();
    let mut index = filled(&store, 100);
    (0..100).for_each(|uid| index.remove(uid, None).unwrap());
    assert_eq!(index.contents(store.snapshot()).each_between(&[0], &[u8::MAX], |_, _| Ok(true)).unwrap(), 0);
}

#[test]
fn a_window_that_moves_leaves_what_one_that_is_made_there_has() {
    fn rows(index: &ShelfIndex<'_>) -> Vec<Row> {
        let mut rows = Vec::new();
        let look = |key: &[u8], value: &[u8]| {
            rows.push((key.to_vec(), value.to_vec()));
            Ok(true)
        };
        index.contents(index.store.snapshot()).each_between(&[0], &[u8::MAX], look).unwrap();
        rows
    }
    let rules = ["RRULE:FREQ=WEEKLY\r\n", "RRULE:FREQ=DAILY;COUNT=900\r\n", "RRULE:FREQ=MINUTELY\r\n", ""];
    let start = CivilTime::new(2025, 11, 1, 9).0;
    let (store, _folder) = store();
    let mut moved = begun(&store);
    for (uid, rule) in (1..).zip(rules) {
        put(&mut moved, uid, start, rule);
    }
    let window = IndexWindow { from: moved.window().from + 200 * DAY_S, to: moved.window().to + 200 * DAY_S };
    moved.move_window(window, (&[], &Zone::utc())).unwrap();
    let found = rows(&moved);
    let mut made = ShelfIndex::begin(&store, OF, [0; 16], window).unwrap();
    for (uid, rule) in (1..).zip(rules) {
        put(&mut made, uid, start, rule);
    }
    made.finish(0).unwrap();
    assert_eq!(found, rows(&made));
}
