//! Meetings: what others have in their calendars when somebody changes one, and what strangers cannot make of that.

use std::time::Duration;

use bytes::Bytes;
use scrinium_database::{Access, Edit, EditMode, ReadOptions};
use scrinium_mail::{EnvelopeItems, IncomingMessage, MessageSource, SenderVerdict};
use serde_json::{Value, json};

use crate::common::{Answer, CALENDAR, Server, event, query};

static TEST: Access = Access::of_the_server("a test");

const BOBS: &str = "/_dav/calendars/bob/calendar/";
const OUTBOX: &str = "/_dav/calendars/ada/outbox/";

/// A meeting of Ada's with Bob.
fn meeting(uid: &str, start: &str, more: &str) -> String {
    let people = "ORGANIZER:mailto:ada@acme.example\r\nATTENDEE;PARTSTAT=ACCEPTED:mailto:ada@acme.example\r\n\
         ATTENDEE;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:bob@acme.example\r\nDURATION:PT1H\r\n";
    event(uid, start, &format!("{people}{more}"))
}

fn as_of(server: &Server, who: &str, method: &str, path: &str, body: impl Into<Bytes>) -> Answer {
    server.ask_as(who, method, path, &[("depth", "1")], body)
}

/// Whatever lies in a collection: name and text of each.
fn all(server: &Server, who: &str, collection: &str) -> Vec<(String, String)> {
    let listed = as_of(server, who, "REPORT", collection, query("<C:comp-filter name=\"VEVENT\"/>", ""));
    let get = |name: String| {
        let text = as_of(server, who, "GET", &format!("{collection}{name}"), "").expect(200).text();
        (name, text.replace("\r\n ", ""))
    };
    listed.names().into_iter().map(get).collect()
}

/// The line of an attendee.
fn answer_of(text: &str, address: &str) -> String {
    let line = text.lines().find(|line| line.starts_with("ATTENDEE") && line.ends_with(address));
    line.unwrap_or_else(|| panic!("{address} is not in {text}")).to_owned()
}

/// What the mail of somebody says of calendars, and what it is called.
fn notes(server: &Server, who: &str) -> Vec<(String, Option<String>)> {
    let database = server.databases.get(&format!("mail/{who}")).unwrap();
    let folder = database.folder("Inbox", None).unwrap();
    let snapshot = database.store().snapshot();
    let members = database.members_at(&snapshot, folder.number, 0, 100).unwrap();
    let read = |id: &str| -> Value {
        serde_json::from_str(database.read(id, &ReadOptions::default(), &TEST).unwrap().json.as_str())
            .unwrap()
    };
    let memos = members.iter().map(|(_, member)| read(&member.id));
    memos
        .map(|memo| {
            let text = |name: &str| memo.get(name).and_then(Value::as_str).map(str::to_owned);
            (text("Subject").unwrap_or_default(), text("$CalendarNote"))
        })
        .collect()
}

fn store(server: &Server, who: &str, document: &Value) {
    let database = server.databases.get(&format!("mail/{who}")).unwrap();
    let edit = Edit { json: document.to_string().into(), ..Edit::default() };
    let stored = database.update(vec![edit], EditMode::Interactive, &TEST).unwrap().wait().unwrap();
    stored.into_iter().for_each(|one| drop(one.unwrap()));
}

#[test]
fn a_meeting_is_invited_to_answered_moved_and_cancelled() {
    let server = Server::start();
    let put = server.put("m.ics", &meeting("m1", ":20260310T090000Z", "")).expect(201);
    let tag = put.headers["schedule-tag"].clone();
    server.deliver();
    let filed = all(&server, "bob", BOBS);
    let [(name, text)] = filed.as_slice() else { panic!("{filed:?}") };
    assert!(answer_of(text, "bob@acme.example").contains("NEEDS-ACTION"), "{text}");
    assert!(!text.contains("METHOD"), "{text}");
    let inbox = all(&server, "bob", "/_dav/calendars/bob/inbox/");
    assert!(matches!(inbox.as_slice(), [(_, text)] if text.contains("METHOD:REQUEST")), "{inbox:?}");
    assert_eq!(
        notes(&server, "bob"),
        [("Invitation: rosebud m1".to_owned(), Some("filed: a new meeting".to_owned()))]
    );

    // Bob accepts: the tag of his copy stays, and Ada sees it.
    let path = format!("{BOBS}{name}");
    let before = as_of(&server, "bob", "GET", &path, "").headers["schedule-tag"].clone();
    let accepted = text.replace("PARTSTAT=NEEDS-ACTION", "PARTSTAT=ACCEPTED");
    server.manual.advance(Duration::from_secs(5));
    as_of(&server, "bob", "PUT", &path, accepted).expect(204);
    assert_eq!(as_of(&server, "bob", "GET", &path, "").headers["schedule-tag"], before);
    server.deliver();
    let own = as_of(&server, "ada", "GET", &format!("{CALENDAR}m.ics"), "");
    assert!(
        answer_of(&own.text().replace("\r\n ", ""), "bob@acme.example").contains("ACCEPTED"),
        "{}",
        own.text()
    );
    assert_eq!(own.headers["schedule-tag"], tag, "an answer leaves it");

    // Ada, whose program has not seen that, changes the place: the answer stays. Then the time: Bob is asked again.
    let condition = [("if-schedule-tag-match", tag.to_str().unwrap())];
    server.manual.advance(Duration::from_secs(5));
    let place = meeting("m1", ":20260310T090000Z", "LOCATION:Room 1\r\n");
    server.ask_as("ada", "PUT", &format!("{CALENDAR}m.ics"), &condition, place.clone()).expect(204);
    server.ask_as("ada", "PUT", &format!("{CALENDAR}m.ics"), &condition, place).expect(412);
    server.deliver();
    let text = all(&server, "bob", BOBS).remove(0).1;
    assert!(
        text.contains("LOCATION:Room 1") && answer_of(&text, "bob@acme.example").contains("ACCEPTED"),
        "{text}"
    );
    server.manual.advance(Duration::from_secs(5));
    server.put("m.ics", &meeting("m1", ":20260311T090000Z", "")).expect(204);
    server.deliver();
    let text = all(&server, "bob", BOBS).remove(0).1;
    assert!(
        answer_of(&text, "bob@acme.example").contains("NEEDS-ACTION") && text.contains("SEQUENCE:1"),
        "{text}"
    );

    server.manual.advance(Duration::from_secs(5));
    as_of(&server, "ada", "DELETE", &format!("{CALENDAR}m.ics"), "").expect(204);
    server.deliver();
    let left = all(&server, "bob", BOBS);
    assert!(left.iter().all(|(_, text)| text.contains("STATUS:CANCELLED")), "{left:?}");
    let told: Vec<String> = notes(&server, "bob").into_iter().map(|(subject, _)| subject).collect();
    assert_eq!(
        told,
        ["Invitation: rosebud m1", "Invitation: rosebud m1", "Updated: rosebud m1", "Cancelled: rosebud m1"]
    );
    assert_eq!(notes(&server, "ada").len(), 1, "one answer");
}

#[test]
fn a_program_that_puts_its_own_copy_of_what_was_filed_has_the_same_meeting() {
    let server = Server::start();
    server.put("m.ics", &meeting("m2", ":20260310T090000Z", "")).expect(201);
    server.deliver();
    let (name, text) = all(&server, "bob", BOBS).remove(0);
    let accepted = text.replace("PARTSTAT=NEEDS-ACTION", "PARTSTAT=ACCEPTED");
    let own = format!("{BOBS}own.ics");
    server.manual.advance(Duration::from_secs(5));
    server.ask_as("bob", "PUT", &own, &[("if-none-match", "*")], accepted.clone()).expect(201);
    let after = all(&server, "bob", BOBS);
    assert!(matches!(after.as_slice(), [(name, _)] if name == "own.ics"), "{after:?}");
    as_of(&server, "bob", "GET", &format!("{BOBS}{name}"), "").expect(404);
    server.deliver();
    let answered = as_of(&server, "ada", "GET", &format!("{CALENDAR}m.ics"), "").text().replace("\r\n ", "");
    assert!(answer_of(&answered, "bob@acme.example").contains("ACCEPTED"), "{answered}");
    // Now it is Bob's; in another calendar of his it is refused, with where it lies.
    as_of(&server, "bob", "MKCALENDAR", "/_dav/calendars/bob/other/", "").expect(201);
    let refused = as_of(&server, "bob", "PUT", "/_dav/calendars/bob/other/x.ics", accepted).expect(403);
    assert!(refused.text().contains("unique-scheduling-object-resource"), "{}", refused.text());
    assert!(refused.text().contains("/calendar/own.ics"), "{}", refused.text());
}

#[test]
fn who_deletes_a_calendar_cancels_what_is_in_it() {
    let server = Server::start();
    server.ask("MKCALENDAR", "/_dav/calendars/ada/work/", "").expect(201);
    server.ask("PUT", "/_dav/calendars/ada/work/m.ics", meeting("w", ":20260310T090000Z", "")).expect(201);
    server.deliver();
    server.manual.advance(Duration::from_secs(5));
    server.ask_as("ada", "DELETE", "/_dav/calendars/ada/work/", &[], "").expect(204);
    server.deliver();
    let left = all(&server, "bob", BOBS);
    assert!(matches!(left.as_slice(), [(_, text)] if text.contains("STATUS:CANCELLED")), "{left:?}");
}

#[test]
fn an_editor_takes_over_no_meeting_that_is_its_owners_alone() {
    let server = Server::start();
    for (uid, class) in [("open", ""), ("secret", "CLASS:PRIVATE\r\n")] {
        let invitation = meeting(uid, ":20260310T090000Z", class)
            .replace("ada@acme.example", "swapped")
            .replace("bob@acme.example", "ada@acme.example")
            .replace("swapped", "bob@acme.example");
        as_of(&server, "bob", "PUT", &format!("{BOBS}{uid}.ics"), invitation).expect(201);
    }
    server.deliver();
    assert_eq!(all(&server, "ada", CALENDAR).len(), 2);
    let own = |uid: &str| {
        meeting(uid, ":20260310T090000Z", "").replace("ORGANIZER:mailto:ada", "ORGANIZER:mailto:bob")
    };
    as_of(&server, "edith", "PUT", &format!("{CALENDAR}mine.ics"), own("open")).expect(201);
    as_of(&server, "edith", "PUT", &format!("{CALENDAR}theirs.ics"), own("secret")).expect(403);
    let kept = all(&server, "ada", CALENDAR);
    assert!(
        kept.iter().any(|(_, text)| text.contains("UID:secret") && text.contains("CLASS:PRIVATE")),
        "{kept:?}"
    );
}

/// A message of somebody outside.
fn letter(from: &str, calendar: &str) -> IncomingMessage {
    let text = format!(
        "From: <{from}>\r\nTo: <bob@acme.example>\r\nSubject: x\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/calendar; method=REQUEST\r\n\r\n\
         {calendar}\r\n--b--\r\n"
    );
    IncomingMessage {
        source: MessageSource::from(Bytes::from(text)),
        recipients: vec!["bob@acme.example".to_owned()],
        return_path: from.to_owned(),
        envelope: EnvelopeItems::default(),
    }
}

#[test]
fn only_who_is_proven_and_known_puts_something_into_a_calendar() {
    let server = Server::start();
    let request = |from: &str| {
        let text =
            meeting("m3", ":20260310T090000Z", "").replace("VERSION:2.0", "VERSION:2.0\r\nMETHOD:REQUEST");
        text.replace("ada@acme.example", from)
    };
    let vouched = SenderVerdict { is_vouched_for: true, is_author_vouched_for: true, is_suspect: false };
    let unproven = SenderVerdict { is_vouched_for: true, ..SenderVerdict::default() };
    let cases = [
        ("ada@acme.example", Some(unproven), "not filed: the sender's address was not proven"),
        ("ada@acme.example", None, "not filed: the sender's address was not proven"),
        // Nobody outside speaks for people here, whatever their domain's keys say.
        ("ada@acme.example", Some(vouched), "not filed: the sender's address was not proven"),
        ("eve@far.example", Some(unproven), "not filed: the sender's address was not proven"),
        (
            "eve@far.example",
            Some(vouched),
            "not filed: eve@far.example is not known here, and only known senders' invitations are filed",
        ),
    ];
    for (place, (from, sender, said)) in cases.into_iter().enumerate() {
        let envelope = EnvelopeItems { sender, ..EnvelopeItems::default() };
        let message = IncomingMessage { envelope, ..letter(from, &request(from)) };
        server.mailboxes.deposit_message(&format!("forged-{place}"), &message).unwrap();
        server.deliver();
        let last = notes(&server, "bob").pop().unwrap();
        assert_eq!(last.1.as_deref(), Some(said), "case {place}");
        assert!(all(&server, "bob", BOBS).is_empty(), "case {place}");
    }
    // Whom Bob has among his contacts he knows.
    let card = "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:c\r\nFN:Eve\r\nEMAIL:Eve@far.example\r\nEND:VCARD\r\n";
    as_of(&server, "bob", "PUT", "/_dav/contacts/bob/contacts/c.vcf", card).expect(201);
    let envelope = EnvelopeItems { sender: Some(vouched), ..EnvelopeItems::default() };
    for id in ["known", "known-again"] {
        let message = IncomingMessage {
            envelope: envelope.clone(),
            ..letter("eve@far.example", &request("eve@far.example"))
        };
        server.mailboxes.deposit_message(id, &message).unwrap();
        server.deliver();
        assert_eq!(all(&server, "bob", BOBS).len(), 1);
    }
    let said: Vec<Option<String>> = notes(&server, "bob").into_iter().map(|note| note.1).collect();
    let [.., first, again] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(first.as_deref(), Some("filed: a new meeting"));
    assert_eq!(again.as_deref(), Some("not filed: the same is there already"));
}

#[test]
fn what_somebody_lets_be_answered_is_answered() {
    let server = Server::start();
    server.ask_as("bob", "PROPFIND", "/_dav/calendars/bob/", &[("depth", "1")], "").multistatus();
    store(
        &server,
        "bob",
        &json!({"_id": "calendarprofile", "AutoProcess": "decline-if-busy", "AutoProcessFrom": ["ada@acme.example"]}),
    );
    for (name, start, answer) in [
        ("a", ":20260310T090000Z", "ACCEPTED"),
        ("b", ":20260310T093000Z", "DECLINED"),
        ("c", ":20260310T110000Z", "ACCEPTED"),
    ] {
        server.put(&format!("{name}.ics"), &meeting(name, start, "")).expect(201);
        server.deliver();
        let text =
            as_of(&server, "ada", "GET", &format!("{CALENDAR}{name}.ics"), "").text().replace("\r\n ", "");
        assert!(answer_of(&text, "bob@acme.example").contains(answer), "{name}: {text}");
    }
}

/// A meeting of Ada's in a room.
fn booking(uid: &str, start: &str, more: &str) -> String {
    let people = "ORGANIZER:mailto:ada@acme.example\r\nATTENDEE;PARTSTAT=ACCEPTED:mailto:ada@acme.example\r\n\
         ATTENDEE;CUTYPE=ROOM;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:room@acme.example\r\nDURATION:PT1H\r\n";
    event(uid, start, &format!("{people}{more}"))
}

/// Books, and gives the room's answer as Ada has it then, with all of her copy.
fn book(server: &Server, name: &str, text: &str) -> (String, String) {
    server.manual.advance(Duration::from_secs(5));
    let put = server.put(&format!("{name}.ics"), text);
    assert!([201, 204].contains(&put.status), "{}", put.text());
    server.deliver();
    let own = as_of(server, "ada", "GET", &format!("{CALENDAR}{name}.ics"), "").text().replace("\r\n ", "");
    let line = answer_of(&own, "room@acme.example");
    let answer =
        line.split("PARTSTAT=").nth(1).and_then(|rest| rest.split([';', ':']).next()).unwrap().to_owned();
    (answer, own)
}

fn with_room(rules: &Value) -> Server {
    let server = Server::start();
    server.person("room", &json!({}));
    server.directory.catch_up().unwrap();
    server.ask_as("room", "PROPFIND", "/_dav/calendars/room/", &[("depth", "1")], "").multistatus();
    let mut profile = json!({"_id": "calendarprofile", "Resource": "room"});
    profile.as_object_mut().unwrap().extend(rules.as_object().unwrap().clone());
    store(&server, "room", &profile);
    server
}

#[test]
fn a_room_is_booked_once_keeps_what_it_had_and_says_why_not() {
    let server = with_room(&json!({"Capacity": 2}));
    let answer = |name: &str, text: &str| book(&server, name, text).0;
    assert_eq!(answer("a", &booking("a", ":20260310T090000Z", "")), "ACCEPTED");
    assert_eq!(answer("b", &booking("b", ":20260310T093000Z", "")), "DECLINED");
    assert_eq!(answer("c", &booking("c", ":20260310T100000Z", "")), "ACCEPTED");
    let said: Vec<String> = notes(&server, "ada").into_iter().map(|(subject, _)| subject).collect();
    assert_eq!(said, ["Accepted: rosebud a", "Declined: rosebud b", "Accepted: rosebud c"]);
    // A move that is refused leaves the room what it had; one that is not gives the old time back.
    assert_eq!(answer("a", &booking("a", ":20260310T101500Z", "")), "DECLINED");
    assert_eq!(answer("d", &booking("d", ":20260310T090000Z", "")), "DECLINED");
    assert_eq!(answer("a", &booking("a", ":20260311T090000Z", "")), "ACCEPTED");
    assert_eq!(answer("e", &booking("e", ":20260310T090000Z", "")), "ACCEPTED");
    // So does a cancellation.
    server.manual.advance(Duration::from_secs(5));
    server.ask("DELETE", &format!("{CALENDAR}e.ics"), "").expect(204);
    server.deliver();
    assert_eq!(answer("f", &booking("f", ":20260310T090000Z", "")), "ACCEPTED");
    let crowd: String = (0..2).map(|n| format!("ATTENDEE:mailto:p{n}@far.example\r\n")).collect();
    assert_eq!(answer("g", &booking("g", ":20260312T090000Z", &crowd)), "DECLINED", "three do not fit in");
}

#[test]
fn a_room_of_the_directory_is_one_without_saying_so_itself() {
    let server = Server::start();
    server.person("room", &json!({"Resource": "room", "Site": "Berlin", "Capacity": 2}));
    server.directory.catch_up().unwrap();
    let asked = question("ada@acme.example", &["room@acme.example"]);
    let answer = as_of(&server, "ada", "POST", OUTBOX, asked.clone()).expect(200).text();
    assert!(answer.contains("2.0;Success") && !answer.contains("FREEBUSY;"), "{answer}");
    assert_eq!(book(&server, "a", &booking("a", ":20260310T090000Z", "")).0, "ACCEPTED");
    assert_eq!(book(&server, "b", &booking("b", ":20260310T093000Z", "")).0, "DECLINED");
    let answer = as_of(&server, "ada", "POST", OUTBOX, asked).expect(200).text();
    assert!(answer.contains("FBTYPE=BUSY:20260310T090000Z/"), "{answer}");
    let crowd: String = (0..2).map(|n| format!("ATTENDEE:mailto:p{n}@far.example\r\n")).collect();
    assert_eq!(
        book(&server, "c", &booking("c", ":20260312T090000Z", &crowd)).0,
        "DECLINED",
        "three do not fit in"
    );
    // What the room says itself counts first.
    store(&server, "room", &json!({"_id": "calendarprofile", "Resource": "room", "Booking": "nobody"}));
    assert_eq!(book(&server, "d", &booking("d", ":20260313T090000Z", "")).0, "DECLINED");
}

#[test]
fn a_series_is_booked_as_far_as_the_rules_let_it() {
    let weekly = "RRULE:FREQ=WEEKLY;COUNT=4\r\n";
    for (percent, answer) in [(0, "DECLINED"), (25, "ACCEPTED")] {
        let server = with_room(&json!({"ConflictsPercent": percent}));
        book(&server, "one", &booking("one", ":20260317T090000Z", ""));
        let (given, own) = book(&server, "all", &booking("all", ":20260310T090000Z", weekly));
        assert_eq!(given, answer, "{own}");
        assert_eq!(own.contains("RECURRENCE-ID:20260317T090000Z"), percent > 0, "{own}");
    }
    let server = with_room(
        &json!({"BookingsAtOnce": 2, "Booking": "only-others-ask", "Bookers": ["bob@acme.example"]}),
    );
    let given = ["a", "b", "c"].map(|name| book(&server, name, &booking(name, ":20260310T090000Z", "")).0);
    assert_eq!(given, ["TENTATIVE", "TENTATIVE", "DECLINED"]);
    let server = with_room(&json!({"Booking": ["nonsense"]}));
    assert_eq!(book(&server, "a", &booking("a", ":20260310T090000Z", "")).0, "DECLINED");
}

fn question(organizer: &str, attendees: &[&str]) -> String {
    let attendees: String = attendees.iter().map(|one| format!("ATTENDEE:mailto:{one}\r\n")).collect();
    format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:REQUEST\r\nBEGIN:VFREEBUSY\r\nUID:q\r\nDTSTAMP:20260101T000000Z\r\n\
         DTSTART:20260309T000000Z\r\nDTEND:20260316T000000Z\r\nORGANIZER:mailto:{organizer}\r\n{attendees}\
         END:VFREEBUSY\r\nEND:VCALENDAR\r\n"
    )
}

#[test]
fn free_time_is_told_to_whom_it_may_be_and_to_nobody_else() {
    let server = Server::start();
    server.put("m.ics", &meeting("m4", ":20260310T090000Z", "")).expect(201);
    as_of(
        &server,
        "bob",
        "PUT",
        &format!("{BOBS}secret.ics"),
        event("s", ":20260311T090000Z", "DURATION:PT2H\r\n"),
    )
    .expect(201);
    server.deliver();
    let asked =
        question("ada@acme.example", &["ada@acme.example", "bob@acme.example", "nobody@acme.example"]);
    let answer = as_of(&server, "ada", "POST", OUTBOX, asked.clone()).expect(200).text();
    assert!(answer.contains("FBTYPE=BUSY:20260310T090000Z/20260310T100000Z"), "{answer}");
    assert!(answer.contains("FBTYPE=BUSY:20260311T090000Z/20260311T110000Z"), "{answer}");
    assert!(answer.contains("FBTYPE=BUSY-TENTATIVE:20260310T090000Z/20260310T100000Z"), "{answer}");
    assert_eq!(answer.matches("3.7;Invalid calendar user").count(), 1, "{answer}");
    assert!(!answer.contains("rosebud"), "{answer}");

    store(&server, "bob", &json!({"_id": "calendarprofile", "BusyAccess": ["cora@acme.example"]}));
    let answer = as_of(&server, "ada", "POST", OUTBOX, asked.clone()).expect(200).text();
    assert!(!answer.contains("20260311T090000Z"), "{answer}");
    assert_eq!(answer.matches("3.7;Invalid calendar user").count(), 2, "{answer}");

    // People of another domain, where nobody lets them read the directory.
    server.person("olga", &json!({"InternetAddress": "olga@other.example"}));
    server.directory.catch_up().unwrap();
    let theirs = question("olga@other.example", &["ada@acme.example"]);
    let answer = as_of(&server, "olga", "POST", "/_dav/calendars/olga/outbox/", theirs).expect(200).text();
    assert!(answer.contains("3.7;") && !answer.contains("FREEBUSY"), "{answer}");

    // Who reads somebody's calendars asks nothing in their name, and nobody asks in another's.
    for who in ["rita", "edith"] {
        as_of(&server, who, "POST", OUTBOX, asked.clone()).expect(403);
        as_of(&server, who, "PROPFIND", OUTBOX, "").expect(404);
    }
    as_of(&server, "bob", "POST", OUTBOX, asked.clone()).expect(404);
    as_of(&server, "bob", "POST", "/_dav/calendars/bob/outbox/", asked).expect(403);
    for wrong in [
        "",
        "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n",
        &question("ada@acme.example", &[]).replace("20260316", "20290316"),
    ] {
        as_of(&server, "ada", "POST", OUTBOX, wrong.to_owned()).expect(403);
    }
    as_of(&server, "ada", "POST", CALENDAR, question("ada@acme.example", &[])).expect(405);
}

#[test]
fn nobody_puts_anything_among_the_messages_about_meetings() {
    let server = Server::start();
    let inbox = "/_dav/calendars/ada/inbox/";
    server.ask("PROPFIND", "/_dav/calendars/ada/", "").multistatus();
    server.ask("PUT", &format!("{inbox}x.ics"), event("x", ":20260310T090000Z", "")).expect(403);
    server.ask("MKCALENDAR", "/_dav/calendars/ada/outbox/", "").expect(403);
    server.ask("DELETE", inbox, "").expect(403);
    server.put("x.ics", &event("x", ":20260310T090000Z", "")).expect(201);
    let to_inbox = [("destination", "/_dav/calendars/ada/inbox/x.ics")];
    for method in ["COPY", "MOVE"] {
        server.ask_as("ada", method, &format!("{CALENDAR}x.ics"), &to_inbox, "").expect(403);
    }
    let found = server.ask("PROPFIND", "/_dav/principals/ada/", "<D:propfind xmlns:D=\"DAV:\" xmlns:C=\"urn:ietf:params:xml:ns:caldav\"><D:prop><C:schedule-inbox-URL/><C:schedule-outbox-URL/></D:prop></D:propfind>");
    assert!(found.text().contains(inbox) && found.text().contains(OUTBOX), "{}", found.text());
}

#[test]
fn a_meeting_with_too_many_copies_is_refused_before_any_is_made() {
    let server = Server::start();
    let people: String = (0..2_001).map(|n| format!("ATTENDEE:mailto:p{n}@far.example\r\n")).collect();
    let text = event("many", ":20260310T090000Z", &format!("ORGANIZER:mailto:ada@acme.example\r\n{people}"));
    let refused = server.put("many.ics", &text).expect(403);
    assert!(refused.text().contains("max-attendees-per-instance"), "{}", refused.text());
    // Who is one of many makes no copies: the meeting is kept, answered and deleted.
    let theirs = text
        .replace("ORGANIZER:mailto:ada@acme", "ATTENDEE:mailto:ada@acme.example\r\nORGANIZER:mailto:eve@far");
    server.put("many.ics", &theirs).expect(201);
    server
        .put("many.ics", &theirs.replace("ATTENDEE:mailto:ada@", "ATTENDEE;PARTSTAT=ACCEPTED:mailto:ada@"))
        .expect(204);
    server.ask("DELETE", &format!("{CALENDAR}many.ics"), "").expect(204);
}
