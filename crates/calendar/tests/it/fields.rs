//! Fields of documents from calendars, and back, line by line.

use proptest::prelude::*;
use scrinium_calendar::civil::CivilTime;
use scrinium_calendar::fields::{FieldError, FieldList, FieldValue, create, patch, read};
use scrinium_calendar::series::Series;
use scrinium_calendar::zone::Instant;
use scrinium_dav_wire::content::{Component, ContentLimits};

use crate::support::zone;

const MEETING: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Other//EN\r\nX-WR-CALNAME:Work\r\nBEGIN:VEVENT\r\nUID:m-1@a.test\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;TZID=\"Europe/Berlin\":20260105T090000\r\nDTEND;TZID=\"Europe/Berlin\":20260105T103000\r\nSUMMARY;LANGUAGE=en:Plan\\, and\r\n  budget\r\nLOCATION:Room 1\r\nDESCRIPTION:One\\ntwo\r\nSEQUENCE:2\r\nORGANIZER;CN=Ada Lovelace:mailto:ada@a.test\r\nATTENDEE;ROLE=CHAIR;PARTSTAT=ACCEPTED:mailto:ada@a.test\r\nATTENDEE;CN=\"Babbage, Charles\";PARTSTAT=ACCEPTED;X-NUM-GUESTS=1:MAILTO:charles@a.test\r\nATTENDEE;ROLE=OPT-PARTICIPANT:mailto:george@b.test\r\nATTENDEE;CUTYPE=ROOM;CN=Room 1:mailto:room1@a.test\r\nCLASS:CONFIDENTIAL\r\nCATEGORIES:Budget,Plans\\, long\r\nX-CUSTOM;A=^'b^':kept\r\nBEGIN:VALARM\r\nACTION:DISPLAY\r\nDESCRIPTION:Soon\r\nTRIGGER:-PT15M\r\nX-MOZ:1\r\nEND:VALARM\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

fn parse(text: &str) -> Component {
    Component::parse(text.as_bytes(), ContentLimits::default()).unwrap()
}

fn now() -> Instant {
    Instant(CivilTime::new(2026, 1, 3, 3600).0)
}

fn fields(calendar: &Component) -> FieldList {
    let berlin = zone("Europe/Berlin");
    let all = Series::read_all(calendar, &berlin);
    read(calendar, &all[0], "ada", now(), &berlin)
}

fn shown(fields: &FieldList) -> String {
    let value = |value: &FieldValue| match value {
        FieldValue::Text(text) => text.replace('\n', "|"),
        FieldValue::Texts(texts) => format!("[{}]", texts.join("; ")),
        FieldValue::Number(number) => format!("#{number}"),
    };
    fields.iter().map(|(name, field)| format!("{name}={}\n", value(field))).collect()
}

fn text(text: &str) -> Option<FieldValue> {
    Some(FieldValue::Text(text.to_owned()))
}

fn texts(texts: &[&str]) -> Option<FieldValue> {
    Some(FieldValue::Texts(texts.iter().map(|text| (*text).to_owned()).collect()))
}

fn patched(calendar: &str, changes: &[(&str, Option<FieldValue>)]) -> Result<String, FieldError> {
    let mut calendar = parse(calendar);
    let changes: Vec<_> = changes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    patch(&mut calendar, "m-1@a.test", &changes, &zone("Europe/Berlin"), now())?;
    Ok(String::from_utf8(calendar.to_bytes()).unwrap())
}

/// Lines that went, and lines that came.
fn difference(before: &str, after: &str) -> (Vec<String>, Vec<String>) {
    let only = |one: &str, other: &str| -> Vec<String> {
        one.split("\r\n")
            .filter(|line| !other.split("\r\n").any(|there| there == *line))
            .map(str::to_owned)
            .collect()
    };
    (only(before, after), only(after, before))
}

#[test]
fn a_meeting_has_dominos_fields() {
    assert_eq!(
        shown(&fields(&parse(MEETING))),
        "\
Form=Appointment
Subject=Plan, and budget
Location=Room 1
Body=One|two
ApptUNID=m-1@a.test
SequenceNum=#2
StartDateTime=2026-01-05T08:00:00Z
CalendarDateTime=2026-01-05T08:00:00Z
StartTimeZone=Europe/Berlin
EndDateTime=2026-01-05T09:30:00Z
AppointmentType=3
Chair=Ada Lovelace <ada@a.test>
RequiredAttendees=[\"Babbage, Charles\" <charles@a.test>]
OptionalAttendees=[george@b.test]
Room=[Room 1 <room1@a.test>]
$BusyName=ada
$BusyPriority=1
OrgConfidential=1
$Alarm=#1
$AlarmOffset=#-15
$AlarmUnit=M
$AlarmDescription=Soon
Categories=[Budget; Plans, long]
"
    );
}

#[test]
fn each_kind_of_entry_is_known_by_what_it_is() {
    let kind = |lines: &str| {
        let fields = fields(&parse(&format!(
            "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\n{lines}\nEND:VEVENT\nEND:VCALENDAR\n"
        )));
        let find =
            |name: &str| fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value.clone());
        (find("AppointmentType"), find("StartDateTime"))
    };
    assert_eq!(kind("DTSTART:20260105T090000\nDURATION:PT1H"), (text("0"), text("2026-01-05T09:00:00")));
    assert_eq!(
        kind("DTSTART;VALUE=DATE:19900601\nTRANSP:TRANSPARENT\nRRULE:FREQ=YEARLY"),
        (text("1"), text("2026-06-01"))
    );
    assert_eq!(kind("DTSTART;VALUE=DATE:20260105"), (text("2"), text("2026-01-05")));
    assert_eq!(kind("DTSTART:20260105T090000Z\nDTEND:20260105T100000Z\nATTENDEE:mailto:a@b").0, text("3"));
    assert_eq!(kind("DTSTART:20260105T090000Z"), (text("4"), text("2026-01-05T09:00:00Z")));
    assert_eq!(kind("DTSTART:20260105T090000Z\nX-LOTUS-APPTTYPE:1").0, text("1"));
    // Of a series that is over, its start.
    assert_eq!(kind("DTSTART:20250105T090000Z\nRRULE:FREQ=DAILY;COUNT=3").1, text("2025-01-05T09:00:00Z"));
}

#[test]
fn a_field_that_changes_is_one_line() {
    let stamp = ("DTSTAMP:20260101T000000Z".to_owned(), "DTSTAMP:20260103T010000Z".to_owned());
    let changed = |name: &str, value: Option<FieldValue>| {
        let (mut went, mut came) = difference(MEETING, &patched(MEETING, &[(name, value)]).unwrap());
        assert_eq!((went.remove(0), came.remove(0)), stamp);
        (went, came)
    };
    let lines = |lines: &[&str]| -> Vec<String> { lines.iter().map(|line| (*line).to_owned()).collect() };
    assert_eq!(
        changed("Subject", text("New; plan")),
        (
            lines(&["SUMMARY;LANGUAGE=en:Plan\\, and", "  budget"]),
            lines(&["SUMMARY;LANGUAGE=en:New\\; plan"])
        )
    );
    assert_eq!(changed("Location", None), (lines(&["LOCATION:Room 1"]), lines(&[])));
    assert_eq!(
        changed("RequiredAttendees", texts(&["\"Babbage, Charles\" <charles@a.test>", "Mary <mary@c.test>"])),
        (
            lines(&[]),
            lines(&[
                "ATTENDEE;CN=Mary;ROLE=REQ-PARTICIPANT;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailt",
                " o:mary@c.test"
            ])
        )
    );
    assert_eq!(
        changed("OptionalAttendees", texts(&["charles@a.test"])),
        (
            lines(&[
                "ATTENDEE;CN=\"Babbage, Charles\";PARTSTAT=ACCEPTED;X-NUM-GUESTS=1:MAILTO:charles@a.test",
                "ATTENDEE;ROLE=OPT-PARTICIPANT:mailto:george@b.test",
            ]),
            lines(&[
                "ATTENDEE;CN=\"Babbage, Charles\";PARTSTAT=ACCEPTED;X-NUM-GUESTS=1;ROLE=OPT-PA",
                " RTICIPANT:MAILTO:charles@a.test"
            ])
        )
    );
    assert_eq!(changed("OrgConfidential", text("")), (lines(&["CLASS:CONFIDENTIAL"]), lines(&[])));
    assert_eq!(changed("BookFreeTime", text("1")), (lines(&[]), lines(&["TRANSP:TRANSPARENT"])));
    assert_eq!(
        changed("$AlarmOffset", Some(FieldValue::Number(-60))),
        (lines(&["TRIGGER:-PT15M"]), lines(&["TRIGGER:-PT1H"]))
    );
    assert_eq!(
        changed("StartDateTime", text("2026-07-06T08:00:00+02:00")),
        (
            lines(&[
                "DTSTART;TZID=\"Europe/Berlin\":20260105T090000",
                "DTEND;TZID=\"Europe/Berlin\":20260105T103000"
            ]),
            lines(&[
                "DTSTART;TZID=Europe/Berlin:20260706T080000",
                "DTEND;TZID=Europe/Berlin:20260706T093000"
            ])
        )
    );
    assert_eq!(
        changed("EndDateTime", text("2026-01-05T11:00:00")).1,
        lines(&["DTEND;TZID=Europe/Berlin:20260105T110000"])
    );
    assert_eq!(changed("RepeatRule", text("FREQ=DAILY;COUNT=2")).1, lines(&["RRULE:FREQ=DAILY;COUNT=2"]));
    assert_eq!(changed("Chair", text("charles@a.test")).1, lines(&["ORGANIZER:mailto:charles@a.test"]));
}

#[test]
fn what_stays_the_same_keeps_every_byte() {
    let changes: Vec<(&str, Option<FieldValue>)> = fields(&parse(MEETING))
        .into_iter()
        .filter(|(name, _)| *name != "ApptUNID")
        .map(|(name, value)| (name, Some(value)))
        .collect();
    assert_eq!(patched(MEETING, &changes).unwrap(), MEETING);
    assert_eq!(patched(MEETING, &[("Other", text("x")), ("CalendarDateTime", text("x"))]).unwrap(), MEETING);
}

#[test]
fn what_cannot_be_changed_says_why() {
    let error = |name: &str, value: Option<FieldValue>| patched(MEETING, &[(name, value)]).unwrap_err();
    let field = |name: &str| name.to_owned();
    assert_eq!(error("ApptUNID", text("x")), FieldError::Derived { field: field("ApptUNID") });
    assert_eq!(
        error("Subject", Some(FieldValue::Number(1))),
        FieldError::WrongType { field: field("Subject"), expected: "text" }
    );
    for wrong in ["soon", "2026-02-30", "2026-01-05T24:00:00Z", "2026-1-5", "2026-01-05T09:00:00+1"] {
        assert!(matches!(error("StartDateTime", text(wrong)), FieldError::NotATime { .. }), "{wrong}");
    }
    assert!(matches!(error("StartTimeZone", text("Mars")), FieldError::UnknownZone { .. }));
    assert!(matches!(error("RepeatRule", text("OFTEN")), FieldError::NotARule { .. }));
    assert!(matches!(error("Chair", text("Ada")), FieldError::NotAMailbox { .. }));
    assert!(matches!(error("EndDateTime", text("2026-01-04T00:00:00Z")), FieldError::EndBeforeStart { .. }));
    let repeating = MEETING.replace("SEQUENCE:2", "SEQUENCE:2\r\nRRULE:FREQ=DAILY");
    let wrong =
        patched(&repeating, &[("Subject", text("x")), ("StartDateTime", text("2026-01-06T08:00:00Z"))]);
    assert_eq!(wrong, Err(FieldError::Repeating { field: field("StartDateTime") }));
    let none = patch(&mut parse(MEETING), "other", &[], &zone("UTC"), now());
    assert_eq!(none, Err(FieldError::NoComponent("other".to_owned())));
}

#[test]
fn a_document_without_a_calendar_gets_one() {
    let make = |fields: &[(&str, FieldValue)]| {
        let fields: Vec<_> = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let calendar =
            create(&fields, "new@a.test", "-//Scrinium//EN", &zone("Europe/Berlin"), now()).unwrap();
        String::from_utf8(parse(&String::from_utf8(calendar.to_bytes()).unwrap()).to_bytes()).unwrap()
    };
    let value = |text: &str| FieldValue::Text(text.to_owned());
    assert_eq!(
        make(&[
            ("Form", value("Appointment")),
            ("Subject", value("Talk")),
            ("StartTimeZone", value("Europe/Berlin")),
            ("StartDateTime", value("2026-07-06T06:00:00Z")),
            ("EndDateTime", value("2026-07-06T07:00:00Z")),
        ]),
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Scrinium//EN\r\nBEGIN:VEVENT\r\nUID:new@a.test\r\nDTSTAMP:20260103T010000Z\r\nSUMMARY:Talk\r\nDTSTART;TZID=Europe/Berlin:20260706T080000\r\nDTEND;TZID=Europe/Berlin:20260706T090000\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    );
    let anniversary =
        make(&[("AppointmentType", value("1")), ("StartDateTime", value("1990-06-01T00:00:00"))]);
    assert!(
        anniversary.contains("RRULE:FREQ=YEARLY\r\nTRANSP:TRANSPARENT\r\nDTSTART;VALUE=DATE:19900601\r\n"),
        "{anniversary}"
    );
    let task = make(&[
        ("Form", value("Task")),
        ("Subject", value("Do")),
        ("DueDateTime", value("2026-02-01")),
        ("$Alarm", FieldValue::Number(1)),
        ("$AlarmOffset", FieldValue::Number(-1)),
        ("$AlarmUnit", value("D")),
    ]);
    assert!(
        task.contains("BEGIN:VTODO")
            && task.contains("DUE;VALUE=DATE:20260201\r\n")
            && task.contains("TRIGGER:-P1D"),
        "{task}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::support::cases(60)))]
    #[test]
    fn what_is_patched_is_read_back_and_the_rest_is_untouched(
        subject in "[ -~é\n]{1,40}", location in "[ -~]{1,20}", second in 0_i64..4_000_000_000, length in 0_i64..1_000_000, private in any::<bool>(),
        categories in prop::collection::vec("[ -~]{1,9}", 1..4),
    ) {
        let time = |second: i64| {
            let civil = CivilTime(second);
            let (year, month, day) = civil.date();
            let second = civil.second_of_day();
            format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
        };
        let categories: Vec<String> = categories.iter().map(|category| category.trim().to_owned()).filter(|category| !category.is_empty()).collect();
        prop_assume!(!categories.is_empty());
        let changes = [
            ("Subject", text(&subject)), ("Location", text(&location)), ("StartDateTime", text(&time(second))),
            ("EndDateTime", text(&time(second + length))), ("OrgConfidential", text(if private { "1" } else { "" })),
            ("Categories", Some(FieldValue::Texts(categories))),
        ];
        let after = patched(MEETING, &changes).unwrap();
        let read = fields(&parse(&after));
        for (name, value) in changes {
            // What clocks show twice is the first; an hour is lost then.
            let is_time = name.ends_with("DateTime");
            let found = read.iter().find(|(field, _)| *field == name).map(|(_, value)| value.clone());
            let value = value.filter(|value| *value != FieldValue::Text(String::new()));
            prop_assert!(found == value || is_time, "{}: {:?} {:?}", name, found, value);
        }
        for line in ["X-WR-CALNAME:Work", "DESCRIPTION:One\\ntwo", "X-CUSTOM;A=^'b^':kept", "X-MOZ:1", "ATTENDEE;ROLE=CHAIR;PARTSTAT=ACCEPTED:mailto:ada@a.test"] {
            prop_assert!(after.contains(&format!("\r\n{line}\r\n")), "{}", line);
        }
    }
}
