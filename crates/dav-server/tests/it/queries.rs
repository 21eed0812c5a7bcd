//! Queries find what looking at every occurrence finds.

use proptest::prelude::*;
use scrinium_calendar::civil::CivilTime;
use scrinium_calendar::series::{InstantRange, Series};
use scrinium_calendar::zone::{Instant, Zone};
use scrinium_dav_wire::content::{Component, ContentLimits};

use crate::common::{CALENDAR, Server, TASKS, event, query, range};

/// Where events begin: around the window of what is written out, far before and far behind it.
fn start() -> impl Strategy<Value = (i64, u8, u8)> {
    (prop_oneof![4 => 2026..2028_i64, 1 => 1970..2026_i64, 1 => 2028..2110_i64], 1..13_u8, 1..29_u8)
}

fn an_event() -> impl Strategy<Value = (String, String)> {
    let zone = prop_oneof![
        Just((";TZID=Europe/Berlin", "T090000")),
        Just((";TZID=America/New_York", "T233000")),
        Just(("", "T120000Z")),
        Just(("", "T070000")),
        Just((";VALUE=DATE", "")),
    ];
    let rule = prop_oneof![
        3 => Just(""),
        1 => Just("RRULE:FREQ=WEEKLY\r\n"),
        1 => Just("RRULE:FREQ=DAILY;COUNT=20\r\n"),
        1 => Just("RRULE:FREQ=MONTHLY;BYDAY=-1FR;UNTIL=20270101T000000Z\r\n"),
        1 => Just("RRULE:FREQ=YEARLY;INTERVAL=2\r\n"),
    ];
    let length = prop_oneof![
        Just(""),
        Just("DURATION:PT90M\r\n"),
        Just("DURATION:P3D\r\n"),
        Just("DURATION:P60D\r\n")
    ];
    (start(), zone, rule, length).prop_map(|((year, month, day), (zone, time), rule, length)| {
        // A day takes days.
        let length = if time.is_empty() { length.replace("PT90M", "P1D") } else { length.to_owned() };
        (format!("{zone}:{year:04}{month:02}{day:02}{time}"), format!("{length}{rule}"))
    })
}

fn written(instant: i64) -> String {
    let time = CivilTime(instant);
    let (year, month, day) = time.date();
    let second = time.second_of_day();
    format!("{year:04}{month:02}{day:02}T{:02}{:02}{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn a_span_holds_what_takes_place_in_it(
        events in proptest::collection::vec(an_event(), 1..12),
        questions in proptest::collection::vec((start(), 1..2_000_i64), 1..8),
    ) {
        let server = Server::start();
        let mut sources = Vec::new();
        for (number, (start, more)) in events.iter().enumerate() {
            let source = event(&format!("u{number}"), start, more);
            server.put(&format!("{number:02}.ics"), &source).expect(201);
            sources.push(source);
        }
        for ((year, month, day), hours) in questions {
            let from = CivilTime::new(year, month, day, 0).0;
            let span = InstantRange { from: Instant(from), to: Instant(from + hours * 3600) };
            let takes_place = |source: &String| {
                let calendar = Component::parse(source.as_bytes(), ContentLimits::default()).unwrap();
                let all = Series::read_all(&calendar, &Zone::utc());
                !all[0].occurrences(span, &Zone::utc(), 1).occurrences.is_empty()
            };
            let expected: Vec<String> = sources
                .iter()
                .enumerate()
                .filter(|(_, source)| takes_place(source))
                .map(|(number, _)| format!("{number:02}.ics"))
                .collect();
            let filter = range("VEVENT", &written(span.from.0), &written(span.to.0));
            for service in [&server.service, &server.fresh()] {
                let asked = ("REPORT", CALENDAR);
                let mut names = server.ask_of(service, "ada", asked, &[("depth", "1")], query(&filter, "")).names();
                names.sort();
                prop_assert_eq!(&names, &expected);
            }
        }
    }
}

#[test]
fn filters_are_obeyed() {
    let server = Server::start();
    let alarm = "BEGIN:VALARM\r\nACTION:DISPLAY\r\nTRIGGER:-PT15M\r\nEND:VALARM\r\n";
    let more =
        format!("CATEGORIES:Work,Home\r\nATTENDEE;PARTSTAT=ACCEPTED:mailto:bob@acme.example\r\n{alarm}");
    server.put("a.ics", &event("a", ":20260310T090000Z", &more)).expect(201);
    server.put("b.ics", &event("b", ";VALUE=DATE:20260311", "RRULE:FREQ=WEEKLY\r\n")).expect(201);
    let found = |filter: &str| {
        let mut names = server.ask("REPORT", CALENDAR, query(filter, "")).names();
        names.sort();
        names.join(" ")
    };
    let component = |inner: &str| format!("<C:comp-filter name=\"VEVENT\">{inner}</C:comp-filter>");
    let text = |name: &str, text: &str| {
        component(&format!(
            "<C:prop-filter name=\"{name}\"><C:text-match>{text}</C:text-match></C:prop-filter>"
        ))
    };
    let a = "a.ics";
    let both = "a.ics b.ics";
    for (filter, expected) in [
        (String::new(), both),
        (component(""), both),
        ("<C:comp-filter name=\"VTODO\"/>".to_owned(), ""),
        (component("<C:prop-filter name=\"RRULE\"><C:is-not-defined/></C:prop-filter>"), a),
        (text("SUMMARY", "ROSEBUD A"), a),
        (text("CATEGORIES", "home"), a),
        (text("SUMMARY", "nothing"), ""),
        (
            component(
                "<C:prop-filter name=\"ATTENDEE\"><C:param-filter name=\"PARTSTAT\"><C:text-match>accepted</C:text-match>\
            </C:param-filter></C:prop-filter>",
            ),
            a,
        ),
        (component(&range("VALARM", "20260310T084000Z", "20260310T084600Z")), a),
        (component(&range("VALARM", "20260310T090000Z", "20260310T100000Z")), ""),
        (component("<C:comp-filter name=\"VALARM\"><C:is-not-defined/></C:comp-filter>"), "b.ics"),
        (range("VEVENT", "21000302T000000Z", "21000309T000000Z"), "b.ics"),
        ("<C:time-range start=\"20260310T000000Z\" end=\"20260311T000000Z\"/>".to_owned(), a),
    ] {
        assert_eq!(found(&filter), expected, "{filter}");
    }
    let unknown =
        "<C:prop-filter name=\"SUMMARY\"><C:text-match collation=\"i;x\">a</C:text-match></C:prop-filter>";
    let refused = server.ask("REPORT", CALENDAR, query(&component(unknown), "")).expect(403);
    assert!(refused.text().contains("supported-collation"));
}

#[test]
fn series_are_written_out_and_to_dos_found_by_when_they_are_due() {
    let server = Server::start();
    let series = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:s\r\nDTSTAMP:20260101T000000Z\r\n\
        DTSTART;TZID=Europe/Berlin:20260302T090000\r\nDTEND;TZID=Europe/Berlin:20260302T100000\r\nRRULE:FREQ=WEEKLY\r\n\
        SUMMARY:s\r\nEND:VEVENT\r\nBEGIN:VEVENT\r\nUID:s\r\nDTSTAMP:20260101T000000Z\r\nRECURRENCE-ID:20260309T080000Z\r\n\
        SEQUENCE:3\r\nDTSTART:20260310T120000Z\r\nDTEND:20260310T130000Z\r\nSUMMARY:moved\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    server.put("s.ics", series).expect(201);
    let filter = range("VEVENT", "20260302T000000Z", "20260401T000000Z");
    let data = "<C:expand start=\"20260302T000000Z\" end=\"20260401T000000Z\"/>";
    let answer = server.ask("REPORT", CALENDAR, query(&filter, data)).multistatus();
    assert_eq!(answer.responses.len(), 1);
    let text = answer.responses[0].property("urn:ietf:params:xml:ns:caldav", "calendar-data").unwrap().text();
    let starts: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("DTSTART:")).collect();
    // Clocks are put forward on the 29th.
    let expected =
        ["20260302T080000Z", "20260310T120000Z", "20260316T080000Z", "20260323T080000Z", "20260330T070000Z"];
    assert_eq!(starts, expected);
    assert!(!text.contains("RRULE") && text.matches("RECURRENCE-ID").count() == 5, "{text}");
    let busy = "<C:free-busy-query xmlns:C=\"urn:ietf:params:xml:ns:caldav\"><C:time-range \
        start=\"20260309T000000Z\" end=\"20260317T000000Z\"/></C:free-busy-query>";
    let text = server.ask("REPORT", CALENDAR, busy).expect(200).text();
    assert!(
        text.contains("20260310T120000Z/20260310T130000Z") && text.contains("20260316T080000Z/"),
        "{text}"
    );
    assert!(!text.contains("20260309T080000Z"), "{text}");

    let todo = |uid: &str, more: &str| {
        event(uid, ":x", more).replace("VEVENT", "VTODO").replace("DTSTART:x\r\n", "")
    };
    for (name, more) in
        [("none", ""), ("due", "DUE:20260310T120000Z\r\n"), ("later", "DUE:20270310T120000Z\r\n")]
    {
        server.ask("PUT", &format!("{TASKS}{name}.ics"), todo(name, more)).expect(201);
    }
    let mut names = server
        .ask("REPORT", TASKS, query(&range("VTODO", "20260301T000000Z", "20260401T000000Z"), ""))
        .names();
    names.sort();
    assert_eq!(names, ["due.ics", "none.ics"]);
}
