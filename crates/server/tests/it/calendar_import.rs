//! Calendars and contacts out of files: with a server and without, once however often, and nobody hears of it.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::calendars::{CALENDAR, ask, with_people};
use crate::common::{SMALL, Server, answer, beside};

const TASKS: &str = "/_dav/calendars/ada/tasks/";
const CONTACTS: &str = "/_dav/contacts/ada/contacts/";

/// As Outlook and Google export: zones once, exceptions anywhere, a method, no UID, a meeting with others.
const EXPORTED: &str = "BEGIN:VCALENDAR\r\nPRODID:-//Elsewhere//EN\r\nVERSION:2.0\r\nMETHOD:PUBLISH\r\nX-WR-CALNAME:Ada\r\n\
    BEGIN:VTIMEZONE\r\nTZID:W. Europe Standard Time\r\nBEGIN:STANDARD\r\nDTSTART:16010101T030000\r\nTZOFFSETFROM:+0200\r\n\
    TZOFFSETTO:+0100\r\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\r\nEND:STANDARD\r\nBEGIN:DAYLIGHT\r\nDTSTART:16010101T020000\r\n\
    TZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\r\nEND:DAYLIGHT\r\nEND:VTIMEZONE\r\n\
    BEGIN:VEVENT\r\nUID:series\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;TZID=W. Europe Standard Time:20260105T090000\r\n\
    RRULE:FREQ=WEEKLY;COUNT=10\r\nSUMMARY:Weekly\r\nORGANIZER:mailto:ada@acme.example\r\n\
    ATTENDEE;PARTSTAT=NEEDS-ACTION:mailto:cal@acme.example\r\nEND:VEVENT\r\n\
    BEGIN:VEVENT\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;VALUE=DATE:20260310\r\nSUMMARY:Nameless\r\nEND:VEVENT\r\n\
    BEGIN:VTODO\r\nUID:todo\r\nDTSTAMP:20260101T000000Z\r\nSUMMARY:Paint\r\nEND:VTODO\r\n\
    BEGIN:VEVENT\r\nUID:series\r\nDTSTAMP:20260101T000000Z\r\nRECURRENCE-ID;TZID=W. Europe Standard Time:20260112T090000\r\n\
    DTSTART;TZID=W. Europe Standard Time:20260113T090000\r\nSUMMARY:Moved\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

const CARDS: &str = "BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Grace Hopper\r\nN:Hopper;Grace;;;\r\nEMAIL:grace@else.example\r\nEND:VCARD\r\n\
    BEGIN:VCARD\r\nVERSION:2.1\r\nN:M\u{fc}ller;J\u{f6}rg\r\nFN:J\u{f6}rg M\u{fc}ller\r\nTEL;WORK:+49 1\r\nEND:VCARD\r\n";

fn import(folder: &Path, listen: &str, arguments: &[&str]) -> Output {
    let none: [(&str, &str); 0] = [];
    beside(folder, none, listen, &[&["--json", "import"][..], arguments].concat()).output().unwrap()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// How many entries a collection shows.
fn count(server: &Server, path: &str) -> usize {
    let body = "<D:propfind xmlns:D=\"DAV:\"><D:prop><D:getetag/></D:prop></D:propfind>";
    let text = ask(server, "ada", ("PROPFIND", path), "Depth: 1\r\n", body).expect(207).text();
    text.matches("<D:response>").count() - 1
}

fn told(answer: &Value) -> [u64; 3] {
    ["added", "present", "left_out"].map(|member| answer[member].as_u64().unwrap())
}

#[test]
fn files_come_once_by_the_port_and_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let mut server = Server::start(data, &SMALL);
    with_people(&server);
    let listen = server.address().to_string();
    let takeout = data.join("takeout/Calendar");
    fs::create_dir_all(&takeout).unwrap();
    fs::write(takeout.join("ada.ics"), EXPORTED).unwrap();
    fs::write(takeout.join("notes.txt"), "no calendar").unwrap();
    let archive = data.join("takeout.zip");
    let mut zip = zip::ZipWriter::new(File::create(&archive).unwrap());
    zip.start_file("Takeout/Contacts/all.vcf", zip::write::SimpleFileOptions::default()).unwrap();
    zip.write_all(CARDS.as_bytes()).unwrap();
    zip.finish().unwrap();
    let (takeout, archive) = (shown(&data.join("takeout")), shown(&archive));
    let told_by = |arguments: &[&str]| told(&answer(&import(data, &listen, arguments)));
    assert_eq!(told_by(&["ics", &takeout, "--person", "ada"]), [3, 0, 0]);
    assert_eq!(told_by(&["vcf", &archive, "--person", "ada"]), [2, 0, 0]);
    assert_eq!([CALENDAR, TASKS, CONTACTS].map(|path| count(&server, path)), [2, 1, 2]);
    let query = "<C:calendar-query xmlns:C=\"urn:ietf:params:xml:ns:caldav\" xmlns:D=\"DAV:\"><D:prop><C:calendar-data/></D:prop>\
        <C:filter><C:comp-filter name=\"VCALENDAR\"><C:comp-filter name=\"VEVENT\">\
        <C:time-range start=\"20260113T080000Z\" end=\"20260113T083000Z\"/></C:comp-filter></C:comp-filter></C:filter></C:calendar-query>";
    let found = ask(&server, "ada", ("REPORT", CALENDAR), "Depth: 1\r\n", query).expect(207).text();
    assert!(found.contains("SUMMARY:Moved") && found.contains("SUMMARY:Weekly"), "{found}");
    // Nobody is invited by what was long ago, and the person whose it is reads it as of a program.
    let others = server.client().get("/mail%2Fcal/_all_docs").unwrap();
    assert!(!others.text().contains("calmsg-"), "{}", others.text());
    assert_eq!(told_by(&["ics", &takeout, "--person", "ada"]), [0, 3, 0]);
    server.kill();
    let file = data.join("more.ics");
    fs::write(&file, EXPORTED.replace("UID:series", "UID:other")).unwrap();
    let file = shown(&file);
    assert_eq!(told_by(&["ics", &file, "--person", "ada", "--calendar", "old"]), [1, 2, 0]);
    assert_eq!(told_by(&["vcf", &archive, "--person", "ada"]), [0, 2, 0]);
    server = Server::start(data, &SMALL);
    assert_eq!(["/_dav/calendars/ada/old/", CALENDAR, CONTACTS].map(|path| count(&server, path)), [1, 2, 2]);
}

#[test]
fn what_cannot_be_imported_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let mut server = Server::start(data, &SMALL);
    with_people(&server);
    server.kill();
    let file = data.join("mixed.ics");
    let two_kinds = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:a\r\nDTSTART:20260101T000000Z\r\nEND:VEVENT\r\n\
        BEGIN:VTODO\r\nUID:a\r\nEND:VTODO\r\nBEGIN:VEVENT\r\nUID:b\r\nDTSTART:20260101T000000Z\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    fs::write(&file, two_kinds).unwrap();
    let path = shown(&file);
    let output = import(data, "127.0.0.1:0", &["ics", &path, "--person", "ada"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((told(&report), report["files"].clone()), ([1, 0, 1], json!(1)));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("mixed.ics, entry 1: the components of one resource"), "{said}");
    for (arguments, code) in [
        (["ics", path.as_str(), "--person", "nobody"], 1),
        (["ics", &shown(data), "--person", "ada"], 1),
        (["vcf", &shown(&data.join("none")), "--person", "ada"], 1),
        (["ics", path.as_str(), "--person=ada", "--calendar=inbox"], 2),
    ] {
        let output = import(data, "127.0.0.1:0", &arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    }
}
