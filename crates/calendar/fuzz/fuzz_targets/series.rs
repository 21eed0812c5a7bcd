//! Any bytes as a calendar: no panic, no work without end, and what lies in a year is in order and overlaps it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_calendar::civil::CivilTime;
use scrinium_calendar::series::{InstantRange, Series};
use scrinium_calendar::zone::{Instant, Zone};
use scrinium_dav_wire::content::{Component, ContentLimits};

fuzz_target!(|bytes: &[u8]| {
    let Ok((all, _)) = Component::parse_file(bytes, ContentLimits::default()) else { return };
    let zone = Zone::named("Europe/Berlin").unwrap_or_else(Zone::utc);
    let second = |year| Instant(CivilTime::new(year, 1, 1, 0).0);
    let range = InstantRange { from: second(2026), to: second(2027) };
    for series in all.iter().flat_map(|calendar| Series::read_all(calendar, &zone)) {
        let found = series.occurrences(range, &zone, 1_000).occurrences;
        assert!(found.len() <= 1_000);
        assert!(found.iter().all(|found| range.overlaps(found.instants(&zone))));
        let _ = (series.next_from(range.from, &zone), series.span());
    }
});
