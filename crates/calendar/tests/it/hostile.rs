//! What is sent to do harm: many lines, deep components, rules that explode. Work is bounded by size and constants.

use proptest::prelude::*;

use scrinium_calendar::series::{InstantRange, Series, SeriesNote};
use scrinium_calendar::zone::{Instant, Zone};
use scrinium_dav_wire::content::{Component, ContentError, ContentLimits};

use crate::support::{EVER, days, series, starts};

fn repeated(head: &str, line: impl Fn(usize) -> String, count: usize) -> String {
    let lines: Vec<String> = (0..count).map(line).collect();
    format!("{head}\n{}", lines.join("\n"))
}

#[test]
fn a_million_lines_and_deep_components_are_refused() {
    let limits = ContentLimits::default();
    let lines = format!("BEGIN:VCALENDAR\n{}END:VCALENDAR\n", "RDATE:20260101\n".repeat(1_000_000));
    assert_eq!(Component::parse(lines.as_bytes(), limits), Err(ContentError::TooManyLines(limits.lines)));
    let deep = "BEGIN:VEVENT\n".repeat(1_000_000);
    assert_eq!(Component::parse(deep.as_bytes(), limits), Err(ContentError::TooDeep(limits.depth)));
}

#[test]
fn rules_that_explode_cost_what_others_do() {
    let all = |most: u8| (0..=most).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let every_second = format!("BYHOUR={};BYMINUTE={};BYSECOND={}", all(23), all(59), all(59));
    let rules = [
        "FREQ=SECONDLY".to_owned(),
        format!("FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;{every_second}"),
        format!("FREQ=MONTHLY;BYMONTHDAY=1,2,3,-1,-2,-3;{every_second}"),
    ];
    for rule in rules {
        let endless = series(&format!("DTSTART:00010101T000000\nRRULE:{rule}"));
        let list = endless.occurrences(EVER, &Zone::utc(), 1_000);
        assert!(list.is_cut && list.occurrences.len() == 1_000, "{rule}");
        let late = endless.occurrences(days((9000, 1, 1), (9000, 2, 1)), &Zone::utc(), 10);
        assert!(late.is_cut && late.occurrences.len() == 10, "{rule}");
    }
    // All of a rule is excluded by another one.
    let nothing = series("DTSTART:20260101T000000\nRRULE:FREQ=SECONDLY\nEXRULE:FREQ=SECONDLY");
    let list = nothing.occurrences(EVER, &Zone::utc(), 1_000);
    assert!(list.is_cut && list.occurrences.is_empty());
    assert_eq!(nothing.next_from(Instant(0), &Zone::utc()), None);
    // Rules that never fit, as many as there may be, and those beyond.
    let never = "RRULE:FREQ=SECONDLY;INTERVAL=7;BYMONTH=2;BYMONTHDAY=30;COUNT=100000".to_owned();
    let many = series(&repeated("DTSTART:20260101T000000", |_| never.clone(), 100));
    assert_eq!(starts(&many, EVER, 10), ["20260101T000000"]);
    assert!(many.notes().iter().all(|note| matches!(note, SeriesNote::Rule(_))) && many.notes().len() > 80);
}

#[test]
fn many_dates_exceptions_and_instances() {
    let time = |number: usize| {
        format!("{:04}0101T{:02}{:02}00Z", 2000 + number / 1_440 % 1_000, number / 60 % 24, number % 60)
    };
    let lines = repeated(
        "DTSTART:20000101T000000Z\nRRULE:FREQ=DAILY",
        |number| format!("EXDATE:{}\nRDATE:{}", time(number), time(number)),
        20_000,
    );
    let many = series(&lines);
    assert_eq!(
        many.occurrences(days((2012, 1, 1), (2013, 1, 1)), &Zone::utc(), 1_000).occurrences.len(),
        365
    );
    let overrides = repeated(
        "DTSTART:20000101T000000Z\nRRULE:FREQ=MINUTELY",
        |number| format!("+RECURRENCE-ID;RANGE=THISANDFUTURE:{}\nDTSTART:{}", time(number), time(number + 1)),
        10_000,
    );
    assert_eq!(series(&overrides).overrides().len(), 10_000);
}

#[test]
fn many_zones_with_many_changes_are_compiled_within_a_limit() {
    let part = "BEGIN:STANDARD\nDTSTART:00010101T000000\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0200\nRRULE:FREQ=WEEKLY\nEND:STANDARD\n";
    let zones: String =
        (0..500).map(|number| format!("BEGIN:VTIMEZONE\nTZID:Z{number}\n{part}END:VTIMEZONE\n")).collect();
    let events: String = (0..500)
        .map(|number| {
            format!("BEGIN:VEVENT\nUID:{number}\nDTSTART;TZID=Z{number}:20260101T000000\nEND:VEVENT\n")
        })
        .collect();
    let text = format!("BEGIN:VCALENDAR\n{zones}{events}END:VCALENDAR\n");
    let calendar = Component::parse(text.as_bytes(), ContentLimits::default()).unwrap();
    let all = Series::read_all(&calendar, &Zone::utc());
    assert_eq!(all.len(), 500);
    assert!(all.iter().all(|series| matches!(series.notes(), [SeriesNote::Zone(_)])));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::support::cases(50)))]
    #[test]
    fn nearly_right_calendars_are_read_and_answered(lines in prop::collection::vec(prop::sample::select(vec![
        "DTSTART:20260329T023000", "DTSTART;TZID=Europe/Berlin:20260329T023000", "DTSTART;VALUE=DATE:00010101", "DTSTART:99991231T235959Z",
        "DTSTART;TZID=Pacific/Apia:20111230T120000", "DTEND:20260329T033000", "DTEND;VALUE=DATE:99991231", "DURATION:P4294967295D", "DURATION:-P1D",
        "DUE:20260101T000000Z", "RRULE:FREQ=DAILY", "RRULE:FREQ=YEARLY;COUNT=3", "RRULE:FREQ=MONTHLY;RSCALE=GREGORIAN;SKIP=FORWARD;BYMONTHDAY=31,-31",
        "RRULE:FREQ=SECONDLY;INTERVAL=4294967295;UNTIL=00010101", "RRULE:FREQ=HOURLY;UNTIL=99991231T235959Z", "RDATE;VALUE=PERIOD:20260101T000000Z/PT1H,x/y,/",
        "RDATE;VALUE=DATE:20260105", "EXDATE:20260329", "EXRULE:FREQ=WEEKLY", "RECURRENCE-ID;RANGE=THISANDFUTURE:20260401T023000",
        "RECURRENCE-ID;VALUE=DATE:20260330", "SEQUENCE:99999999999", "DTSTAMP:x", "+SUMMARY:next",
    ]), 0..14), from in -62_200_000_000_i64..253_500_000_000, length in 0_i64..100_000_000) {
        let text = crate::support::calendar(&lines.join("\n")).to_bytes();
        let calendar = Component::parse(&text, ContentLimits::default()).unwrap();
        let zone = crate::support::zone("America/New_York");
        let range = InstantRange { from: Instant(from), to: Instant(from + length) };
        for series in Series::read_all(&calendar, &zone) {
            let found = series.occurrences(range, &zone, 50).occurrences;
            prop_assert!(found.iter().all(|found| range.overlaps(found.instants(&zone))));
            prop_assert!(found.is_sorted_by_key(|found| found.instants(&zone).0));
            if let Some(next) = series.next_from(Instant(from), &zone) {
                prop_assert!(next.instants(&zone).0 >= Instant(from));
            }
            let _ = series.span();

        }
    }
}
