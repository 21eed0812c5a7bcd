//! Series: rules, dates, exceptions, components for single instances, clocks that change.

use proptest::prelude::*;
use scrinium_calendar::civil::CivilTime;
use scrinium_calendar::rule::RuleError;
use scrinium_calendar::series::{InstantRange, Occurrence, Series, SeriesNote};
use scrinium_calendar::zone::{Instant, Zone, ZoneNote};

use crate::generator::{horizon_days, rule};
use crate::support::{EVER, calendar, days, series, start, starts, zone};

/// Start, end and instance of each occurrence, in UTC: `01-05T08:00 60 01-05T08:00`.
fn all(lines: &str) -> Vec<String> {
    let series = series(lines);
    let floating = zone("Europe/Berlin");
    let text = |instant: Instant| {
        let (year, month, day) = CivilTime(instant.0).date();
        let second = CivilTime(instant.0).second_of_day();
        format!("{year}-{month:02}-{day:02}T{:02}:{:02}", second / 3600, second / 60 % 60)
    };
    let show = |occurrence: &Occurrence| {
        let (start, end) = occurrence.instants(&floating);
        let id = occurrence.recurrence_id.as_ref().map(|id| text(id.instant(&floating))).unwrap_or_default();
        format!("{} {} {id}", text(start), (end.0 - start.0) / 60).trim_end().to_owned()
    };
    series.occurrences(EVER, &floating, 20).occurrences.iter().map(show).collect()
}

const BERLIN: &str = "DTSTART;TZID=Europe/Berlin:20260327T023000\nDURATION:PT1H\n";

#[test]
fn clocks_that_are_put_forward_skip_what_a_rule_gives_and_not_what_is_written() {
    // 29 March 2026, 2:30, does not exist, and is not counted.
    let found = all(&format!("{BERLIN}RRULE:FREQ=DAILY;COUNT=4"));
    assert_eq!(
        found,
        [
            "2026-03-27T01:30 60 2026-03-27T01:30",
            "2026-03-28T01:30 60 2026-03-28T01:30",
            "2026-03-30T00:30 60 2026-03-30T00:30",
            "2026-03-31T00:30 60 2026-03-31T00:30",
        ]
    );
    let found = all(&format!("{BERLIN}RDATE;TZID=Europe/Berlin:20260329T023000"));
    assert_eq!(found[1], "2026-03-29T01:30 60 2026-03-29T01:30");
    let in_gap = "DTSTART;TZID=Europe/Berlin:20260329T023000\nRRULE:FREQ=DAILY;COUNT=2";
    assert_eq!(all(in_gap), ["2026-03-29T01:30 0 2026-03-29T01:30", "2026-03-30T00:30 0 2026-03-30T00:30"]);
    let each_year =
        "DTSTART;TZID=Europe/Berlin:20250330T013000\nRRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU;BYHOUR=2;COUNT=3";
    assert_eq!(all(each_year), ["2025-03-30T00:30 0 2025-03-30T00:30"], "all others lie in the gap");
}

#[test]
fn what_clocks_show_twice_is_the_first() {
    let found = all(
        "DTSTART;TZID=Europe/Berlin:20261024T023000\nDTEND;TZID=Europe/Berlin:20261024T033000\nRRULE:FREQ=DAILY;COUNT=3",
    );
    assert_eq!(
        found,
        [
            "2026-10-24T00:30 60 2026-10-24T00:30",
            "2026-10-25T00:30 60 2026-10-25T00:30",
            "2026-10-26T01:30 60 2026-10-26T01:30",
        ]
    );
    // DTEND makes exact lengths, DURATION nominal ones.
    let exact = all(
        "DTSTART;TZID=Europe/Berlin:20261023T120000\nDTEND;TZID=Europe/Berlin:20261024T120000\nRRULE:FREQ=DAILY;COUNT=2",
    );
    assert_eq!(exact[1], "2026-10-24T10:00 1440 2026-10-24T10:00");
    let nominal = all("DTSTART;TZID=Europe/Berlin:20261023T120000\nDURATION:P1D\nRRULE:FREQ=DAILY;COUNT=2");
    assert_eq!(nominal[1], "2026-10-24T10:00 1500 2026-10-24T10:00");
}

#[test]
fn an_end_is_understood_in_each_form() {
    let until = |start: &str, until: &str| {
        starts(&series(&format!("DTSTART{start}\nRRULE:FREQ=DAILY;UNTIL={until}")), EVER, 20).len()
    };
    let (tokyo, new_york) = (";TZID=Asia/Tokyo:20260105T090000", ";TZID=America/New_York:20260105T200000");
    // 9:00 in Tokyo is 0:00 UTC; 20:00 in New York 1:00 UTC on the next day.
    assert_eq!(until(tokyo, "20260108T000000Z"), 4);
    assert_eq!(until(tokyo, "20260107T235959Z"), 3);
    assert_eq!(until(new_york, "20260108T010000Z"), 3);
    assert_eq!(until(new_york, "20260108T005959Z"), 2);
    for zoned in [tokyo, new_york, ":20260105T090000", ":20260105T090000Z"] {
        assert_eq!(until(zoned, "20260107"), 3, "{zoned}");
    }
    assert_eq!(until(tokyo, "20260107T090000"), 3);
    assert_eq!(until(tokyo, "20260107T085959"), 2);
    assert_eq!(until(":20260105T090000", "20260107T090000Z"), 3);
    for day in ["20260107", "20260107T000000Z", "20260107T235959Z", "20260107T120000"] {
        assert_eq!(until(";VALUE=DATE:20260105", day), 3, "{day}");
    }
    assert_eq!(until(tokyo, "20250101"), 1, "the start is always an instance");
}

#[test]
fn the_start_is_the_first_of_the_count_whether_the_rule_gives_it_or_not() {
    let found = starts(&series("DTSTART:20260101T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=3"), EVER, 20);
    assert_eq!(found, ["20260101T090000", "20260105T090000", "20260112T090000"]);
    assert_eq!(
        starts(&series("DTSTART:20260101T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=1"), EVER, 20),
        ["20260101T090000"]
    );
    let few = series("DTSTART:20260101T090000\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30;COUNT=5");
    assert_eq!(starts(&few, EVER, 20), ["20260101T090000"]);
    // Exceptions do not make a series longer.
    let less = series("DTSTART:20260101T090000\nRRULE:FREQ=DAILY;COUNT=3\nEXDATE:20260102T090000");
    assert_eq!(starts(&less, EVER, 20), ["20260101T090000", "20260103T090000"]);
    let many = series("DTSTART:20260101T090000\nRRULE:FREQ=DAILY;COUNT=100001");
    assert_eq!(many.notes(), [SeriesNote::Rule(RuleError::CountTooLarge(100_000))]);
}

#[test]
fn dates_and_exceptions_are_matched_by_their_moment_however_they_are_written() {
    let base = "DTSTART;TZID=Europe/Berlin:20260105T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=4\n";
    for exception in [
        "EXDATE:20260106T080000Z",
        "EXDATE;TZID=America/New_York:20260106T030000",
        "EXDATE;VALUE=DATE:20260106",
        "EXDATE:20260106T090000",
        "EXRULE:FREQ=WEEKLY;BYDAY=TU",
    ] {
        let found = all(&format!("{base}{exception}"));
        assert_eq!(found.len(), 3, "{exception}");
        assert!(!found.iter().any(|found| found.contains("01-06")), "{exception}");
    }
    // RDATE in other zones, with periods, equal to an instance; and not spared by EXDATE.
    let found = all(&format!(
        "{base}RDATE;VALUE=PERIOD:20260201T080000Z/PT3H,20260106T080000Z/20260106T100000Z\nRDATE;TZID=Asia/Tokyo:20260202T170000,20260203T170000\nEXDATE:20260203T080000Z"
    ));
    assert_eq!(
        found,
        [
            "2026-01-05T08:00 60 2026-01-05T08:00",
            "2026-01-06T08:00 120 2026-01-06T08:00",
            "2026-01-07T08:00 60 2026-01-07T08:00",
            "2026-01-08T08:00 60 2026-01-08T08:00",
            "2026-02-01T08:00 180 2026-02-01T08:00",
            "2026-02-02T08:00 60 2026-02-02T08:00",
        ]
    );
    let days = all(
        "DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=DAILY;COUNT=3\nEXDATE;TZID=Europe/Berlin:20260106T000000",
    );
    assert_eq!(days.len(), 2);
}

#[test]
fn a_component_takes_the_place_of_its_instance() {
    let base =
        "DTSTART;TZID=Europe/Berlin:20260105T090000\nDURATION:PT1H\nSEQUENCE:3\nRRULE:FREQ=DAILY;COUNT=3\n";
    for id in [
        ";TZID=Europe/Berlin:20260106T090000",
        ":20260106T080000Z",
        ";VALUE=DATE:20260106",
        ";TZID=America/New_York:20260106T030000",
    ] {
        let found = all(&format!(
            "{base}+RECURRENCE-ID{id}\nDTSTART;TZID=Europe/Berlin:20260301T120000\nDURATION:PT2H"
        ));
        assert_eq!(found.len(), 3, "{id}");
        assert!(found[2].starts_with("2026-03-01T11:00 120 2026-01-0"), "{found:?}");
    }
    // A moved instance is found where it went, and not where it was.
    let moved = series(&format!("{base}+RECURRENCE-ID:20260106T080000Z\nDTSTART:20260301T110000Z"));
    assert_eq!(starts(&moved, days((2026, 1, 6), (2026, 1, 7)), 20), Vec::<String>::new());
    assert_eq!(starts(&moved, days((2026, 3, 1), (2026, 3, 2)), 20), ["20260301T110000Z"]);
    // Of two for one instance the later version holds, whatever the series has.
    let twice = series(&format!(
        "{base}+RECURRENCE-ID:20260106T080000Z\nSEQUENCE:1\nDTSTART:20260110T110000Z\n+RECURRENCE-ID:20260106T080000Z\nDTSTART:20260111T110000Z\nSEQUENCE:0"
    ));
    assert_eq!(starts(&twice, EVER, 20)[2], "20260110T110000Z");
    assert_eq!(twice.notes(), [SeriesNote::Outdated { item: 2 }]);
    // Instances without their series, as for somebody who is invited to two of many.
    let orphans = all(
        "RECURRENCE-ID:20260106T080000Z\nDTSTART:20260106T080000Z\n+RECURRENCE-ID:20260107T080000Z\nDTSTART:20260107T090000Z",
    );
    assert_eq!(orphans, ["2026-01-06T08:00 0 2026-01-06T08:00", "2026-01-07T09:00 0 2026-01-07T08:00"]);
}

#[test]
fn this_and_future_moves_all_later_ones_on_the_clocks_of_their_zone() {
    let base = "DTSTART;TZID=Europe/Berlin:20260326T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=6\n";
    let found = all(&format!(
        "{base}+RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Berlin:20260328T090000\nDTSTART;TZID=Europe/Berlin:20260328T110000\nDURATION:PT30M\n+RECURRENCE-ID;TZID=Europe/Berlin:20260330T090000\nDTSTART;TZID=Europe/Berlin:20260401T070000\nDURATION:PT5M"
    ));
    assert_eq!(
        found,
        [
            "2026-03-26T08:00 60 2026-03-26T08:00",
            "2026-03-27T08:00 60 2026-03-27T08:00",
            "2026-03-28T10:00 30 2026-03-28T08:00",
            // Clocks have changed; it stays at eleven.
            "2026-03-29T09:00 30 2026-03-29T07:00",
            "2026-03-31T09:00 30 2026-03-31T07:00",
            "2026-04-01T05:00 5 2026-03-30T07:00",
        ]
    );
    let moved_far = series(&format!(
        "{base}+RECURRENCE-ID;RANGE=THISANDFUTURE:20260328T080000Z\nDTSTART:20270101T000000Z"
    ));
    assert_eq!(starts(&moved_far, days((2027, 1, 3), (2027, 1, 4)), 20), ["20270103T230000Z"]);
    let berlin = zone("Europe/Berlin");
    let next = moved_far.next_from(Instant(CivilTime::new(2026, 6, 1, 0).0), &berlin).unwrap();
    assert_eq!(start(&next), "20270101T000000Z");
}

#[test]
fn days_and_floating_times_hang_on_the_clock_of_who_asks() {
    let day = series("DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=WEEKLY");
    let range = InstantRange {
        from: Instant(CivilTime::new(2026, 1, 12, 0).0),
        to: Instant(CivilTime::new(2026, 1, 12, 3600).0),
    };
    let count = |zone_name: &str, range| day.occurrences(range, &zone(zone_name), 9).occurrences.len();
    assert_eq!(
        (count("UTC", range), count("Asia/Tokyo", range), count("America/New_York", range)),
        (1, 1, 0)
    );
    let floating = series("DTSTART:20260105T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY");
    let found = floating.next_from(Instant(CivilTime::new(2026, 7, 1, 0).0), &zone("Asia/Tokyo")).unwrap();
    assert_eq!(found.instants(&zone("Asia/Tokyo")).0, Instant(CivilTime::new(2026, 7, 1, 0).0));
}

#[test]
fn the_year_2100_and_the_last_ones() {
    let leap = series("DTSTART;TZID=Europe/Berlin:20960229T090000\nRRULE:FREQ=YEARLY");
    assert_eq!(starts(&leap, EVER, 2), ["20960229T090000", "21040229T090000"]);
    let daily = series("DTSTART;TZID=Europe/Berlin:20000101T090000\nRRULE:FREQ=DAILY");
    assert_eq!(starts(&daily, days((2100, 2, 28), (2100, 3, 2)), 9), ["21000228T090000", "21000301T090000"]);
    let summer = daily.next_from(Instant(CivilTime::new(2100, 7, 1, 0).0), &Zone::utc()).unwrap();
    assert_eq!(summer.instants(&Zone::utc()).0, Instant(CivilTime::new(2100, 7, 1, 7 * 3600).0));
    assert_eq!(starts(&daily, days((9999, 12, 30), (9999, 12, 31)), 9), ["99991230T090000"]);
    let old = series("DTSTART;VALUE=DATE:00010101\nRRULE:FREQ=YEARLY");
    assert_eq!(starts(&old, days((1, 1, 1), (1, 12, 31)), 9), ["00010101"]);
    assert_eq!(starts(&old, days((2026, 6, 1), (2027, 6, 1)), 9), ["20270101"]);
}

#[test]
fn what_cannot_be_read_is_noted_and_the_rest_is_there() {
    let found = series(
        "DTSTART;TZID=Nowhere:20260105T090000\nDTEND:tomorrow\nRRULE:FREQ=YEARLY;RSCALE=HEBREW\nRRULE:nonsense\nRDATE:20260106T080000Z,x",
    );
    assert_eq!(starts(&found, EVER, 9), ["20260105T090000", "20260106T080000Z"]);
    assert_eq!(
        found.notes(),
        [
            SeriesNote::UnreadableTime { name: "DTEND".to_owned() },
            SeriesNote::Rule(RuleError::OtherCalendar("HEBREW".to_owned())),
            SeriesNote::Rule(RuleError::Malformed),
            SeriesNote::UnreadableTime { name: "RDATE".to_owned() },
            SeriesNote::Zone(ZoneNote::Unknown { tzid: "Nowhere".to_owned(), definition: None }),
        ]
    );
}

#[test]
fn a_length_is_what_the_lines_say() {
    let length = |lines: &str| all(&format!("DTSTART{lines}"))[0].split(' ').nth(1).unwrap().to_owned();
    assert_eq!(length(";VALUE=DATE:20260105"), "1440");
    assert_eq!(length(";VALUE=DATE:20260105\nDTEND;VALUE=DATE:20260105"), "1440");
    assert_eq!(length(";VALUE=DATE:20260105\nDTEND;VALUE=DATE:20260107"), "2880");
    assert_eq!(length(";VALUE=DATE:20260105\nDURATION:P1W"), "10080");
    assert_eq!(length(":20260105T090000Z"), "0");
    assert_eq!(length(":20260105T090000Z\nDTEND:20260105T080000Z"), "0");
    assert_eq!(
        length(";TZID=Europe/Berlin:20260105T090000\nDTEND;TZID=America/New_York:20260105T090000"),
        "360"
    );
    assert_eq!(length(":20260105T090000Z\nDURATION:-PT1H"), "0");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::support::cases(15)))]
    #[test]
    fn a_span_shows_what_lies_in_it_of_all(
        rule in rule(),
        zone_name in prop::sample::select(vec![";TZID=Europe/Berlin:", ";TZID=America/New_York:", ":", ";TZID=Australia/Lord_Howe:"]),
        hours in 0_i64..48,
        count in prop::option::of(1_u32..40),
        moves in prop::collection::vec((0_usize..30, -40_i64..40, any::<bool>()), 0..4),
        spans in prop::collection::vec((0_i64..1000, 0_i64..300), 1..6),
    ) {
        let count = count.map(|count| format!(";COUNT={count}")).unwrap_or_default();
        let base = format!("DTSTART{zone_name}20260327T013000\nDURATION:PT{hours}H\nRRULE:{rule}{count}\n");
        let ids: Vec<String> = starts(&series(&base), EVER, 30);
        let mut lines = base;
        for (place, shift, future) in moves {
            let Some(id) = ids.get(place) else { continue };
            let range = if future { ";RANGE=THISANDFUTURE" } else { "" };
            let day = format!("202604{:02}", 15 + shift / 3);
            lines += &format!("+RECURRENCE-ID{range}{zone_name}{id}\nDTSTART{zone_name}{day}T110000\nDURATION:PT{}M\n", shift.abs());
        }
        let floating = zone("America/New_York");
        let series = series(&lines);
        let all = series.occurrences(EVER, &floating, 400).occurrences;
        // What lies behind those that were asked for is not known.
        let horizon = all.iter().map(|found| found.instants(&floating).0.0).max().unwrap_or_default() - 40 * 86_400;
        let unit = horizon_days(rule.frequency) * 86;
        for (from, length) in spans {
            let from = CivilTime::new(2026, 3, 20, 0).0 + from * unit;
            let range = InstantRange { from: Instant(from), to: Instant(from + length * unit) };
            if all.len() >= 400 && range.to.0 > horizon {
                continue;
            }
            let expected: Vec<&Occurrence> = all.iter().filter(|found| range.overlaps(found.instants(&floating))).collect();
            let found = series.occurrences(range, &floating, 10_000).occurrences;
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{}", lines);
            let next = series.next_from(range.from, &floating).map(|found| found.instants(&floating).0);
            let expected = all.iter().map(|found| found.instants(&floating).0).filter(|begins| *begins >= range.from).min();
            if expected.is_some_and(|expected| all.len() < 400 || expected.0 < horizon) || all.len() < 400 {
                prop_assert_eq!(next, expected, "{}", lines);
            }
        }
        if let Some((first, last)) = series.span() {
            for found in &all {
                prop_assert!(found.start.key() >= first && last.is_none_or(|last| found.end_key <= last), "{}", lines);
            }
        }
    }
}

#[test]
fn a_file_holds_many_series() {
    let calendar =
        calendar("DTSTART:20260101T090000\n+DTSTART:20260102T090000\nRECURRENCE-ID:20260102T090000");
    assert_eq!(Series::read_all(&calendar, &Zone::utc()).len(), 1);
    let text = String::from_utf8(calendar.to_bytes()).unwrap().replacen("UID:1\r\n", "", 2);
    let calendar = scrinium_dav_wire::content::Component::parse(text.as_bytes(), Default::default()).unwrap();
    assert_eq!(Series::read_all(&calendar, &Zone::utc()).len(), 2, "what has no UID stands alone");
}
