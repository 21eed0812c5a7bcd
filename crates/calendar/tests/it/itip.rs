//! Transcripts: what is stored, what comes in the shapes of Google, Outlook, Exchange, Apple and Thunderbird, and what becomes of it.

use scrinium_calendar::busy::BusyKind;
use scrinium_calendar::civil::CivilTime;
use scrinium_calendar::imip::{Language, SchedulingMail, is_calendar_type};
use scrinium_calendar::itip::{
    Answer, Autoprocess, AutoprocessAction, Change, FilingRule, Incoming, ItipOutcome, Person, Reason,
    SenderRule, Storing, accept_counter, answer, change, decline_counter, receive,
};
use scrinium_calendar::time::CalendarTime;
use scrinium_calendar::zone::Instant;
use scrinium_dav_wire::content::{Component, ContentLimits};

use crate::support::zone;

const GOOGLE: &str = "BEGIN:VCALENDAR\nPRODID:-//Google Inc//Google Calendar 70.9054//EN\nVERSION:2.0\nCALSCALE:GREGORIAN\nMETHOD:REQUEST\nBEGIN:VEVENT\nDTSTART:20260105T090000Z\nDTEND:20260105T100000Z\nDTSTAMP:20260101T120000Z\nORGANIZER;CN=Gus:mailto:gus@g.test\nUID:abc@google.com\nATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=ACCEPTED;RSVP=TRUE;CN=Gus;X-NUM-GUESTS=0:mailto:gus@g.test\nATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=NEEDS-ACTION;RSVP=TRUE;CN=ada@a.test;X-NUM-GUESTS=0:mailto:ada@a.test\nCREATED:20260101T110000Z\nLAST-MODIFIED:20260101T120000Z\nSEQUENCE:0\nSTATUS:CONFIRMED\nSUMMARY:Plan\nTRANSP:OPAQUE\nEND:VEVENT\nEND:VCALENDAR\n";

const OUTLOOK: &str = "BEGIN:VCALENDAR\nMETHOD:REQUEST\nPRODID:Microsoft Exchange Server 2010\nVERSION:2.0\nBEGIN:VTIMEZONE\nTZID:W. Europe Standard Time\nBEGIN:STANDARD\nDTSTART:16010101T030000\nTZOFFSETFROM:+0200\nTZOFFSETTO:+0100\nRRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10\nEND:STANDARD\nBEGIN:DAYLIGHT\nDTSTART:16010101T020000\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0200\nRRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3\nEND:DAYLIGHT\nEND:VTIMEZONE\nBEGIN:VEVENT\nORGANIZER;CN=Otto:MAILTO:otto@o.test\nATTENDEE;ROLE=REQ-PARTICIPANT;PARTSTAT=NEEDS-ACTION;RSVP=TRUE;CN=Ada:MAILTO:Ada@A.test\nRRULE:FREQ=WEEKLY;COUNT=4;INTERVAL=1;BYDAY=MO;WKST=SU\nUID:040000008200E00074C5B7101A82E008\nSUMMARY;LANGUAGE=de-DE:Runde\nDTSTART;TZID=W. Europe Standard Time:20260105T090000\nDTEND;TZID=W. Europe Standard Time:20260105T100000\nCLASS:PUBLIC\nPRIORITY:5\nDTSTAMP:20260101T120000Z\nTRANSP:OPAQUE\nSTATUS:CONFIRMED\nSEQUENCE:0\nX-MICROSOFT-CDO-APPT-SEQUENCE:0\nX-MICROSOFT-CDO-BUSYSTATUS:TENTATIVE\nX-MICROSOFT-CDO-INTENDEDSTATUS:BUSY\nX-MICROSOFT-DISALLOW-COUNTER:FALSE\nBEGIN:VALARM\nDESCRIPTION:REMINDER\nTRIGGER;RELATED=START:-PT15M\nACTION:DISPLAY\nEND:VALARM\nEND:VEVENT\nEND:VCALENDAR\n";

const OWN: &str = "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\nUID:own\nDTSTAMP:20260101T120000Z\nDTSTART;TZID=Europe/Berlin:20260105T090000\nDTEND;TZID=Europe/Berlin:20260105T100000\nRRULE:FREQ=WEEKLY;COUNT=4\nSUMMARY:Round\nORGANIZER:mailto:ada@a.test\nATTENDEE;PARTSTAT=ACCEPTED:mailto:ada@a.test\nATTENDEE;CN=Bob:mailto:bob@b.test\nATTENDEE;SCHEDULE-AGENT=CLIENT:mailto:cy@c.test\nBEGIN:VALARM\nTRIGGER:-PT5M\nACTION:DISPLAY\nEND:VALARM\nEND:VEVENT\nEND:VCALENDAR\n";

fn read(text: &str) -> Component {
    Component::parse(text.as_bytes(), ContentLimits::default()).unwrap()
}

fn ada() -> Person {
    Person {
        addresses: vec!["ada@a.test".to_owned(), "a.lovelace@a.test".to_owned()],
        zone: zone("Europe/Berlin"),
    }
}

fn at(minute: i64) -> Instant {
    Instant(CivilTime::new(2026, 1, 2, minute * 60).0)
}

fn from<'a>(calendar: &'a Component, sender: &'a str) -> Incoming<'a> {
    Incoming { calendar, mime_method: None, sender, is_authenticated: true, is_known: true }
}

fn got(stored: Option<&Component>, text: &str, sender: &str, minute: i64) -> ItipOutcome {
    receive(stored, &from(&read(text), sender), FilingRule::Known, &ada(), at(minute))
}

fn stored(outcome: &ItipOutcome) -> Component {
    match &outcome.storing {
        Storing::Put(calendar) => calendar.clone(),
        other => panic!("{other:?}: {}", outcome.reason),
    }
}

fn put(old: Option<&Component>, new: Option<&Component>, minute: i64) -> Result<ItipOutcome, Reason> {
    change(Change { stored: old, new, keeps_answers: false, informs: true }, &ada(), at(minute))
}

fn text(calendar: &Component) -> String {
    String::from_utf8(calendar.to_bytes()).unwrap().replace("\r\n ", "").replace("\r\n", "\n")
}

fn told(outcome: &ItipOutcome) -> Vec<String> {
    outcome.messages.iter().map(|one| format!("{} {} > {}", one.method.name(), one.from, one.to)).collect()
}

fn accepted(calendar: &Component, partstat: &str, minute: i64) -> ItipOutcome {
    let given = Answer { partstat: partstat.to_owned(), ..Answer::default() };
    answer(calendar, &given, &ada(), at(minute)).unwrap()
}

#[test]
fn an_invitation_of_google_is_filed_answered_moved_and_cancelled() {
    let filed = got(None, GOOGLE, "gus@g.test", 0);
    assert_eq!(filed.reason, Reason::FiledNew);
    let first = stored(&filed);
    assert_eq!(text(&first), GOOGLE.replace("METHOD:REQUEST\n", ""), "all but the method is kept");
    assert_eq!(got(Some(&first), GOOGLE, "gus@g.test", 1).reason, Reason::NothingNew);
    let yes = accepted(&first, "accepted", 2);
    assert_eq!(
        text(&yes.messages[0].calendar),
        "BEGIN:VCALENDAR\nPRODID:-//Scrinium//Calendar//EN\nVERSION:2.0\nCALSCALE:GREGORIAN\nMETHOD:REPLY\nBEGIN:VEVENT\nDTSTART:20260105T090000Z\nDTEND:20260105T100000Z\nORGANIZER;CN=Gus:mailto:gus@g.test\nUID:abc@google.com\nSEQUENCE:0\nSUMMARY:Plan\nATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=ACCEPTED;CN=ada@a.test;X-NUM-GUESTS=0:mailto:ada@a.test\nDTSTAMP:20260102T000200Z\nEND:VEVENT\nEND:VCALENDAR\n"
    );
    assert_eq!(told(&yes), ["REPLY ada@a.test > gus@g.test"]);
    let mine = stored(&yes);
    assert_eq!(told(&accepted(&mine, "ACCEPTED", 3)), Vec::<String>::new(), "the same answer is given once");
    // A title changes: the answer stays. It crossed the change, so it is given once more.
    let renamed = GOOGLE.replace("SUMMARY:Plan", "SUMMARY:Plan B").replace("T120000Z\nORG", "T130000Z\nORG");
    let outcome = got(Some(&mine), &renamed, "gus@g.test", 4);
    assert_eq!(told(&outcome), ["REPLY ada@a.test > gus@g.test"]);
    assert!(text(&stored(&outcome)).contains("PARTSTAT=ACCEPTED;CN=ada"));
    // Another time asks again.
    let moved = renamed.replace("20260105T", "20260106T").replace("SEQUENCE:0", "SEQUENCE:1");
    let outcome = got(Some(&stored(&outcome)), &moved, "gus@g.test", 5);
    let mine = stored(&outcome);
    assert!(text(&mine).contains("PARTSTAT=NEEDS-ACTION;RSVP=TRUE;CN=ada") && outcome.messages.is_empty());
    assert_eq!(got(Some(&mine), &renamed, "gus@g.test", 6).reason, Reason::Outdated);
    let over = moved
        .replace("METHOD:REQUEST", "METHOD:CANCEL")
        .replace("CONFIRMED", "CANCELLED")
        .replace("SEQUENCE:1", "SEQUENCE:2");
    let outcome = got(Some(&mine), &over, "gus@g.test", 7);
    assert_eq!(outcome.reason, Reason::FiledCancellation);
    let gone = stored(&outcome);
    assert_eq!(got(Some(&gone), &moved, "gus@g.test", 8).reason, Reason::Outdated, "what is over stays over");
    // A cancelled invitation is deleted without a word, as is one that was never answered.
    assert_eq!(told(&put(Some(&gone), None, 9).unwrap()), Vec::<String>::new());
    assert_eq!(told(&put(Some(&mine), None, 9).unwrap()), Vec::<String>::new());
    let left = put(Some(&stored(&yes)), None, 9).unwrap();
    assert!(text(&left.messages[0].calendar).contains("PARTSTAT=DECLINED"));
}

#[test]
fn outlook_and_exchange_cancel_and_move_single_instances() {
    let series = stored(&got(None, OUTLOOK, "otto@o.test", 0));
    let series = stored(&accepted(&series, "ACCEPTED", 1));
    // An update of one instance, in another zone's name and with a sequence of its own.
    let one = OUTLOOK
        .replace(
            "RRULE:FREQ=WEEKLY;COUNT=4;INTERVAL=1;BYDAY=MO;WKST=SU",
            "RECURRENCE-ID;TZID=W. Europe Standard Time:20260112T090000",
        )
        .replace("Time:20260105T09", "Time:20260113T14")
        .replace("Time:20260105T10", "Time:20260113T15")
        .replace("SEQUENCE:0", "SEQUENCE:1")
        .replace("DTSTAMP:20260101T12", "DTSTAMP:20260101T13");
    let outcome = got(Some(&series), &one, "otto@o.test", 2);
    let both = stored(&outcome);
    assert_eq!(
        (both.components().filter(|part| part.name() == "VEVENT").count(), outcome.messages.len()),
        (2, 0)
    );
    assert!(text(&both).contains("RRULE") && text(&both).contains("PARTSTAT=ACCEPTED"), "the series stays");
    let over = one
        .replace("METHOD:REQUEST", "METHOD:CANCEL")
        .replace("20260112T090000", "20260119T090000")
        .replace("20260113T", "20260119T")
        .replace("T140000", "T090000");
    let outcome = got(Some(&both), &over, "otto@o.test", 3);
    assert_eq!(
        (
            outcome.reason.clone(),
            stored(&outcome).components().filter(|part| part.name() == "VEVENT").count()
        ),
        (Reason::FiledCancellation, 3)
    );
    assert_eq!(text(&stored(&outcome)).matches("STATUS:CANCELLED").count(), 1);
    // The series changes: what is older than it goes.
    let newer =
        OUTLOOK.replace("SEQUENCE:0", "SEQUENCE:2").replace("DTSTAMP:20260101T12", "DTSTAMP:20260101T14");
    let outcome = got(Some(&stored(&outcome)), &newer, "otto@o.test", 4);
    assert_eq!(stored(&outcome).components().filter(|part| part.name() == "VEVENT").count(), 1);
    assert_eq!(
        told(&outcome),
        ["REPLY ada@a.test > otto@o.test"],
        "the answer to the series holds, and is given again"
    );
    // Only a second instance, without the series.
    let other = one.replace("20260112T09", "20260126T09");
    let alone = stored(&got(None, &one, "otto@o.test", 5));
    let two = stored(&got(Some(&alone), &other, "otto@o.test", 6));
    assert_eq!(two.components().filter(|part| part.name() == "VEVENT").count(), 2);
}

#[test]
fn an_organizers_client_is_helped_with_sequence_answers_and_messages() {
    let mine = read(OWN);
    let sent = put(None, Some(&mine), 0).unwrap();
    assert_eq!(told(&sent), ["REQUEST ada@a.test > bob@b.test"], "the client informs cy itself");
    let request = text(&sent.messages[0].calendar);
    assert!(
        !request.contains("VALARM") && !request.contains("SCHEDULE") && request.contains("METHOD:REQUEST")
    );
    let kept = stored(&sent);
    assert_eq!(text(&kept), OWN.replace("CN=Bob:", "CN=Bob;SCHEDULE-STATUS=1.0:"), "nothing else is touched");
    // Apple's answer, with its own lines, at once and again.
    let yes = "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//Apple Inc.//macOS 15.1//EN\nMETHOD:REPLY\nBEGIN:VEVENT\nUID:own\nDTSTAMP:20260102T010000Z\nDTSTART;TZID=Europe/Berlin:20260105T090000\nORGANIZER:mailto:ada@a.test\nSEQUENCE:0\nATTENDEE;CN=Bob;PARTSTAT=ACCEPTED:mailto:Bob@B.test\nEND:VEVENT\nEND:VCALENDAR\n";
    let outcome = got(Some(&kept), yes, "bob@b.test", 1);
    assert_eq!(
        outcome.reason,
        Reason::FiledAnswer { attendee: "bob@b.test".to_owned(), answer: "ACCEPTED".to_owned() }
    );
    assert!(outcome.messages.is_empty(), "no others are sent an answer");
    let kept = stored(&outcome);
    assert_eq!(got(Some(&kept), yes, "bob@b.test", 2).reason, Reason::NothingNew);
    // A client that has not seen it changes the title: the answer stays, and the sequence.
    let renamed = read(&OWN.replace("Round", "Circle"));
    let outcome = put(Some(&kept), Some(&renamed), 3).unwrap();
    assert!(
        text(&stored(&outcome)).contains("PARTSTAT=ACCEPTED")
            && !text(&stored(&outcome)).contains("SEQUENCE")
    );
    assert_eq!(told(&outcome), ["REQUEST ada@a.test > bob@b.test"]);
    assert_eq!(
        told(&put(Some(&stored(&outcome)), Some(&renamed), 4).unwrap()),
        Vec::<String>::new(),
        "nothing changed"
    );
    // Another time: the sequence rises, and all are asked again.
    let moved = read(&OWN.replace("20260105T09", "20260105T08"));
    let outcome = put(Some(&kept), Some(&moved), 5).unwrap();
    let later = stored(&outcome);
    assert!(text(&later).contains("SEQUENCE:1") && text(&later).contains("CN=Bob;PARTSTAT=NEEDS-ACTION"));
    assert_eq!(got(Some(&later), yes, "bob@b.test", 6).reason, Reason::OutdatedAnswer);
    // Somebody new gets all; who is left out, an end; who deletes it ends it for all.
    let invited = read(&OWN.replace("ATTENDEE;CN=Bob:mailto:bob@b.test", "ATTENDEE:mailto:eve@e.test"));
    let outcome = put(Some(&kept), Some(&invited), 7).unwrap();
    assert_eq!(told(&outcome), ["CANCEL ada@a.test > bob@b.test", "REQUEST ada@a.test > eve@e.test"]);
    let outcome = put(Some(&kept), None, 8).unwrap();
    assert_eq!(
        (told(&outcome), outcome.storing.clone()),
        (vec!["CANCEL ada@a.test > bob@b.test".to_owned()], Storing::Delete)
    );
    assert!(
        text(&outcome.messages[0].calendar).contains("SEQUENCE:1\nSTATUS:CANCELLED")
            || text(&outcome.messages[0].calendar).contains("STATUS:CANCELLED\nSEQUENCE:1")
    );
    // Without a word: Schedule-Reply: F.
    let quiet = Change { stored: Some(&kept), new: None, keeps_answers: false, informs: false };
    assert!(change(quiet, &ada(), at(9)).unwrap().messages.is_empty());
}

#[test]
fn thunderbird_puts_its_own_copy_and_attendees_may_not_change_the_meeting() {
    let own = read(
        &GOOGLE
            .replace("METHOD:REQUEST\n", "")
            .replace("PARTSTAT=NEEDS-ACTION;RSVP=TRUE;CN=ada", "PARTSTAT=ACCEPTED;CN=ada"),
    );
    assert_eq!(told(&put(None, Some(&own), 0).unwrap()), ["REPLY ada@a.test > gus@g.test"]);
    let filed = stored(&got(None, GOOGLE, "gus@g.test", 0));
    let outcome = put(Some(&filed), Some(&own), 1).unwrap();
    assert_eq!(told(&outcome), ["REPLY ada@a.test > gus@g.test"]);
    // Raised by the client; an attendee's sequence stays.
    let raised = read(&text(&own).replace("SEQUENCE:0", "SEQUENCE:7"));
    assert!(text(&stored(&put(Some(&filed), Some(&raised), 2).unwrap())).contains("SEQUENCE:0"));
    let moved = read(&text(&own).replace("DTSTART:20260105T09", "DTSTART:20260105T08"));
    assert_eq!(
        put(Some(&filed), Some(&moved), 3),
        Err(Reason::OrganizersLine { line: "DTSTART".to_owned() })
    );
    let stolen =
        read(&text(&own).replace("ORGANIZER;CN=Gus:mailto:gus@g.test", "ORGANIZER:mailto:eve@e.test"));
    assert_eq!(put(Some(&filed), Some(&stolen), 4), Err(Reason::OrganizerChanged));
    let silent = read(&text(&own).replace("ORGANIZER;", "ORGANIZER;SCHEDULE-AGENT=CLIENT;"));
    assert!(put(None, Some(&silent), 5).unwrap().messages.is_empty());
    // One date is taken out: it is declined, and nothing else.
    let series = stored(&accepted(&stored(&got(None, OUTLOOK, "otto@o.test", 0)), "ACCEPTED", 1));
    let without = read(
        &text(&series)
            .replace("CLASS:PUBLIC", "EXDATE;TZID=W. Europe Standard Time:20260112T090000\nCLASS:PUBLIC"),
    );
    let outcome = put(Some(&series), Some(&without), 6).unwrap();
    let reply = text(&outcome.messages[0].calendar);
    assert!(
        reply.contains("RECURRENCE-ID;TZID=W. Europe Standard Time:20260112T090000")
            && reply.contains("PARTSTAT=DECLINED")
    );
    assert_eq!(reply.matches("BEGIN:VEVENT").count(), 1);
}

#[test]
fn whom_a_message_comes_from_decides() {
    let filed = stored(&got(None, GOOGLE, "gus@g.test", 0));
    let mail = read(GOOGLE);
    let refused = |incoming: Incoming<'_>, rule| receive(None, &incoming, rule, &ada(), at(1)).reason;
    assert_eq!(
        refused(Incoming { is_authenticated: false, ..from(&mail, "gus@g.test") }, FilingRule::Known),
        Reason::SenderNotAuthenticated
    );
    let unknown = || Incoming { is_known: false, ..from(&mail, "gus@g.test") };
    assert_eq!(
        refused(unknown(), FilingRule::Known),
        Reason::SenderUnknown { sender: "gus@g.test".to_owned() }
    );
    assert_eq!(refused(unknown(), FilingRule::Authenticated), Reason::FiledNew);
    assert_eq!(refused(from(&mail, "gus@g.test"), FilingRule::Nobody), Reason::FilingOff);
    assert_eq!(
        refused(Incoming { mime_method: Some("CANCEL"), ..from(&mail, "gus@g.test") }, FilingRule::Known),
        Reason::UnknownMethod("CANCEL, and REQUEST".to_owned())
    );
    let forwarded =
        Reason::SenderIsNotOrganizer { sender: "eve@e.test".to_owned(), organizer: "gus@g.test".to_owned() };
    assert_eq!(got(None, GOOGLE, "eve@e.test", 1).reason, forwarded);
    let over = GOOGLE.replace("METHOD:REQUEST", "METHOD:CANCEL").replace("SEQUENCE:0", "SEQUENCE:1");
    assert_eq!(got(Some(&filed), &over, "eve@e.test", 1).reason, forwarded);
    let claimed = over.replace("ORGANIZER;CN=Gus:mailto:gus@g.test", "ORGANIZER:mailto:eve@e.test");
    assert_eq!(
        got(Some(&filed), &claimed, "eve@e.test", 1).reason,
        Reason::OtherOrganizer { organizer: "gus@g.test".to_owned() }
    );
    let sent_by = over.replace("ORGANIZER;CN=Gus:", "ORGANIZER;SENT-BY=\"mailto:eve@e.test\":");
    assert_eq!(
        got(Some(&filed), &sent_by, "eve@e.test", 1).reason,
        forwarded,
        "who has not acted for them before is not believed"
    );
    assert_eq!(
        got(None, &GOOGLE.replace("mailto:ada@a.test", "mailto:ed@a.test"), "gus@g.test", 1).reason,
        Reason::NotInvited
    );
    assert_eq!(
        got(None, &GOOGLE.replace("mailto:ada@a.test", "MAILTO:A.Lovelace@A.test"), "gus@g.test", 1).reason,
        Reason::FiledNew
    );
    for (from, to, reason) in [
        ("METHOD:REQUEST", "METHOD:VOTE", Reason::UnknownMethod("VOTE".to_owned())),
        ("UID:abc@google.com\n", "", Reason::NoUid),
        ("ORGANIZER;CN=Gus:mailto:gus@g.test\n", "", Reason::NoOrganizer),
        ("VEVENT", "VOTHER", Reason::NothingToSchedule),
        ("METHOD:REQUEST", "METHOD:REPLY", Reason::UnknownMeeting),
        ("METHOD:REQUEST", "METHOD:REFRESH", Reason::UnknownMeeting),
    ] {
        assert_eq!(got(None, &GOOGLE.replace(from, to), "gus@g.test", 1).reason, reason, "{to}");
    }
}

#[test]
fn delegates_come_instead_and_strangers_are_shown_to_the_chair() {
    let mine = stored(&put(None, Some(&read(OWN)), 0).unwrap());
    let reply = |lines: &str, minute: i64| {
        format!(
            "BEGIN:VCALENDAR\nVERSION:2.0\nMETHOD:REPLY\nBEGIN:VEVENT\nUID:own\nDTSTAMP:20260102T01{minute:02}00Z\nORGANIZER:mailto:ada@a.test\n{lines}\nEND:VEVENT\nEND:VCALENDAR\n"
        )
    };
    let stranger =
        got(Some(&mine), &reply("ATTENDEE;PARTSTAT=ACCEPTED:mailto:eve@e.test", 0), "eve@e.test", 1);
    assert_eq!(stranger.reason, Reason::Stranger { attendee: "eve@e.test".to_owned() });
    let forged = got(Some(&mine), &reply("ATTENDEE;PARTSTAT=DECLINED:mailto:bob@b.test", 0), "eve@e.test", 1);
    assert_eq!(
        forged.reason,
        Reason::SenderIsNotAttendee { sender: "eve@e.test".to_owned(), attendee: "bob@b.test".to_owned() }
    );
    let lines = "ATTENDEE;PARTSTAT=DELEGATED;DELEGATED-TO=\"mailto:dan@b.test\":mailto:bob@b.test\nATTENDEE;PARTSTAT=NEEDS-ACTION;DELEGATED-FROM=\"mailto:bob@b.test\":mailto:dan@b.test";
    let delegated = stored(&got(Some(&mine), &reply(lines, 1), "bob@b.test", 2));
    let dan = got(
        Some(&delegated),
        &reply("ATTENDEE;PARTSTAT=ACCEPTED;DELEGATED-FROM=\"mailto:bob@b.test\":mailto:dan@b.test", 2),
        "dan@b.test",
        3,
    );
    assert_eq!(
        dan.reason,
        Reason::FiledAnswer { attendee: "dan@b.test".to_owned(), answer: "ACCEPTED".to_owned() }
    );
    // An answer to one date makes a part for it; to a date that there is not, nothing.
    let one = |day: &str| {
        reply(&format!("RECURRENCE-ID:{day}T080000Z\nATTENDEE;PARTSTAT=DECLINED:mailto:bob@b.test"), 4)
    };
    assert_eq!(stored(&got(Some(&mine), &one("20260112"), "bob@b.test", 4)).components().count(), 2);
    assert_eq!(got(Some(&mine), &one("20260113"), "bob@b.test", 4).reason, Reason::UnknownInstance);
    // Ada delegates: the organizer and the delegate are told.
    let filed = stored(&got(None, GOOGLE, "gus@g.test", 0));
    let given =
        Answer { partstat: "DELEGATED".to_owned(), instance: None, delegate: Some("bea@a.test".to_owned()) };
    let outcome = answer(&filed, &given, &ada(), at(5)).unwrap();
    assert_eq!(told(&outcome), ["REPLY ada@a.test > gus@g.test", "REQUEST ada@a.test > bea@a.test"]);
    let bea = Person { addresses: vec!["bea@a.test".to_owned()], zone: zone("UTC") };
    let invitation = &outcome.messages[1].calendar;
    assert_eq!(
        receive(None, &from(invitation, "ada@a.test"), FilingRule::Known, &bea, at(6)).reason,
        Reason::FiledNew
    );
    let given = Answer {
        partstat: "ACCEPTED".to_owned(),
        instance: Some(CalendarTime::from_instant(Instant(0))),
        delegate: None,
    };
    assert_eq!(answer(&filed, &given, &ada(), at(7)), Err(Reason::UnknownInstance));
}

#[test]
fn proposals_are_the_chairs_to_decide() {
    let mine = stored(&put(None, Some(&read(OWN)), 0).unwrap());
    let counter = OWN
        .replace("VERSION:2.0", "VERSION:2.0\nMETHOD:COUNTER")
        .replace("Berlin:20260105T09", "Berlin:20260105T14")
        .replace("Berlin:20260105T10", "Berlin:20260105T15");
    assert_eq!(
        got(Some(&mine), &counter, "bob@b.test", 1).reason,
        Reason::Proposal { from: "bob@b.test".to_owned() }
    );
    let agreed = accept_counter(&mine, &read(&counter), &ada()).unwrap();
    let outcome = put(Some(&mine), Some(&agreed), 2).unwrap();
    assert!(
        text(&stored(&outcome)).contains("DTSTART;TZID=Europe/Berlin:20260105T140000")
            && told(&outcome) == ["REQUEST ada@a.test > bob@b.test"]
    );
    let no = decline_counter(&mine, &read(&counter), "bob@b.test", &ada(), at(3)).unwrap();
    assert!(text(&no.calendar).contains("METHOD:DECLINECOUNTER"));
    let closed = stored(
        &put(
            Some(&mine),
            Some(&read(&OWN.replace("SUMMARY", "X-MICROSOFT-DISALLOW-COUNTER:TRUE\nSUMMARY"))),
            4,
        )
        .unwrap(),
    );
    let refused = got(Some(&closed), &counter, "bob@b.test", 5);
    assert_eq!(
        (refused.reason.clone(), told(&refused)),
        (Reason::ProposalRefused, vec!["DECLINECOUNTER ada@a.test > bob@b.test".to_owned()])
    );
}

#[test]
fn one_more_date_is_added_and_who_missed_something_asks_for_it() {
    let series = stored(&got(None, OUTLOOK, "otto@o.test", 0));
    let added = OUTLOOK
        .replace("METHOD:REQUEST", "METHOD:ADD")
        .replace("RRULE:FREQ=WEEKLY;COUNT=4;INTERVAL=1;BYDAY=MO;WKST=SU\n", "")
        .replace("Time:20260105T", "Time:20260107T")
        .replace("SEQUENCE:0", "SEQUENCE:1");
    let outcome = got(Some(&series), &added, "otto@o.test", 1);
    assert!(text(&stored(&outcome)).contains("RDATE;TZID=W. Europe Standard Time:20260107T090000"));
    assert_eq!(got(Some(&stored(&outcome)), &added, "otto@o.test", 2).reason, Reason::NothingNew);
    for missed in [
        got(None, &added, "otto@o.test", 3),
        got(Some(&series), &added.replace("SEQUENCE:1", "SEQUENCE:5"), "otto@o.test", 3),
    ] {
        assert_eq!(
            (missed.reason.clone(), told(&missed)),
            (Reason::AskedOrganizer, vec!["REFRESH ada@a.test > otto@o.test".to_owned()])
        );
    }
    let mine = stored(&put(None, Some(&read(OWN)), 0).unwrap());
    let refresh = "BEGIN:VCALENDAR\nMETHOD:REFRESH\nBEGIN:VEVENT\nUID:own\nORGANIZER:mailto:ada@a.test\nATTENDEE:mailto:bob@b.test\nEND:VEVENT\nEND:VCALENDAR\n";
    assert_eq!(told(&got(Some(&mine), refresh, "bob@b.test", 4)), ["REQUEST ada@a.test > bob@b.test"]);
    assert_eq!(
        got(Some(&mine), refresh, "eve@e.test", 4).reason,
        Reason::Stranger { attendee: "eve@e.test".to_owned() }
    );
}

#[test]
fn settings_answer_for_their_owner() {
    let settings = |from, action| Autoprocess { from, action: Some(action) };
    let only = || SenderRule::Only(vec!["gus@g.test".to_owned()]);
    let partstat =
        |settings: &Autoprocess, busy| settings.answer("gus@g.test", busy).map(|answer| answer.partstat);
    for (action, free, busy) in [
        (AutoprocessAction::AcceptIfFree, Some("ACCEPTED"), None),
        (AutoprocessAction::AcceptAlways, Some("ACCEPTED"), Some("ACCEPTED")),
        (AutoprocessAction::DeclineIfBusy, Some("ACCEPTED"), Some("DECLINED")),
        (AutoprocessAction::DelegateTo("bea@a.test".to_owned()), Some("DELEGATED"), Some("DELEGATED")),
    ] {
        let settings = settings(only(), action);
        assert_eq!(partstat(&settings, BusyKind::Free).as_deref(), free);
        assert_eq!(partstat(&settings, BusyKind::Unavailable).as_deref(), busy);
        assert!(settings.answer("eve@e.test", BusyKind::Free).is_none());
    }
    let but = settings(SenderRule::AllBut(vec!["gus@g.test".to_owned()]), AutoprocessAction::AcceptAlways);
    assert!(partstat(&but, BusyKind::Free).is_none() && but.answer("eve@e.test", BusyKind::Busy).is_some());
    assert!(Autoprocess::default().answer("gus@g.test", BusyKind::Free).is_none());
}

#[test]
fn mails_say_it_in_the_language_and_on_the_clock_of_who_reads_them() {
    let sent = put(
        None,
        Some(&read(
            &OWN.replace("Round", "Round\\nBcc: eve@e.test")
                .replace("mailto:cy", "mailto:bob@b.test\nLOCATION:Room 1\nX-Y:"),
        )),
        0,
    )
    .unwrap();
    let mail = SchedulingMail::new(&sent.messages[0], Language::of_tag("en-GB"), &zone("Asia/Tokyo"));
    assert_eq!(mail.subject, "Invitation: Round Bcc: eve@e.test");
    assert_eq!(
        String::from_utf8_lossy(&mail.alternatives[0].content),
        "Round Bcc: eve@e.test\n\nInvitation\nWhen: Monday, 5 January 2026, 17:00 – 18:00 (Asia/Tokyo)\nRepeats\nWhere: Room 1\nOrganizer: ada@a.test\n"
    );
    assert_eq!(
        mail.alternatives[1].content_type,
        "text/calendar; method=REQUEST; charset=utf-8; component=VEVENT"
    );
    assert_eq!(mail.attachment.content, mail.alternatives[1].content);
    let filed = stored(&got(None, GOOGLE, "gus@g.test", 0));
    let german = SchedulingMail::new(
        &accepted(&filed, "DECLINED", 1).messages[0],
        Language::of_tag("de_AT"),
        &zone("Europe/Vienna"),
    );
    assert_eq!(german.subject, "Abgesagt: Plan");
    assert!(String::from_utf8_lossy(&german.alternatives[0].content).contains("Abgesagt: ada@a.test\nWann: Montag, 5. Januar 2026, 10:00 – 11:00 (Europe/Vienna)\nVeranstalter: Gus <gus@g.test>"));
    assert!(
        is_calendar_type("Application/ICS; name=x")
            && is_calendar_type("text/calendar")
            && !is_calendar_type("text/plain")
    );
}

#[test]
fn a_message_that_is_made_to_cost_much_costs_little() {
    // A zone of its own, with all that a definition may hold.
    let dates: Vec<String> = (0..2_000)
        .map(|number| format!("RDATE:{:04}{:02}01T020000", 1700 + number / 12, number % 12 + 1))
        .collect();
    let head = OUTLOOK
        .replace("COUNT=4;INTERVAL=1;BYDAY=MO;WKST=SU", "COUNT=100000")
        .replace("W. Europe Standard Time", "Nowhere")
        .replace("END:STANDARD", &format!("{}\nEND:STANDARD", dates.join("\n")));
    let series = stored(&got(None, &head, "otto@o.test", 0));
    let event = head.split("BEGIN:VEVENT").nth(1).unwrap().split("END:VEVENT").next().unwrap();
    let instance = |number: i64| {
        let (year, month, day) = CivilTime(CivilTime::new(2026, 1, 5, 0).0 + number * 7 * 86_400).date();
        let id = format!("RECURRENCE-ID:{year:04}{month:02}{day:02}T080000Z");
        format!(
            "BEGIN:VEVENT{}END:VEVENT\n",
            event.replace("RRULE:FREQ=WEEKLY;COUNT=100000", &id).replace("T12", "T13")
        )
    };
    let many = |count: i64| {
        let instances: String = (0..count).map(instance).collect();
        head.replace("END:VCALENDAR", &format!("{instances}END:VCALENDAR"))
    };
    let outcome = got(Some(&series), &many(500), "otto@o.test", 1);
    assert_eq!(outcome.reason, Reason::FiledChange);
    assert_eq!(got(Some(&series), &many(2_000), "otto@o.test", 1).reason, Reason::TooManyParts);
}
