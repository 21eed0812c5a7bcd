//! Calendars over the HTTP port: who comes in, what a kill leaves, and that nothing hostile is read at length.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use scrinium_fault::wait_until;
use serde_json::json;

use crate::common::{Answer, SMALL, Server, read_answer};

const WITHIN: Duration = Duration::from_secs(60);
pub(crate) const CALENDAR: &str = "/_dav/calendars/ada/calendar/";

pub(crate) fn ask(
    server: &Server,
    who: &str,
    (method, path): (&str, &str),
    headers: &str,
    body: &str,
) -> Answer {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(WITHIN)).unwrap();
    let login = match who {
        "" => String::new(),
        who => format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{who}:a secret of {who}'s"))),
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{login}{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    (&stream).write_all(format!("{head}{body}").as_bytes()).unwrap();
    read_answer(&mut BufReader::new(stream)).unwrap()
}

pub(crate) fn with_people(server: &Server) {
    let mut client = server.client();
    for (name, protocols) in
        [("ada", None), ("bob", Some("http")), ("cal", Some("caldav")), ("card", Some("carddav"))]
    {
        let mut person = json!({"_id": format!("person:{name}"), "Form": "Person", "ShortName": name,
            "FullName": [format!("{name} Someone")], "InternetAddress": format!("{name}@acme.example"), "password": format!("a secret of {name}'s")});
        if let Some(protocol) = protocols {
            person["Protocols"] = json!([protocol]);
        }
        client.json("PUT", &format!("/directory/person:{name}"), &person).unwrap().expect(201);
    }
}

fn event(number: usize) -> String {
    format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:{number}\r\nDTSTAMP:20260101T000000Z\r\n\
         DTSTART:20260310T090000Z\r\nSUMMARY:{number}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
}

#[test]
fn programs_find_the_calendar_and_it_outlives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &SMALL);
    with_people(&server);
    for (path, method) in [("/.well-known/caldav", "PROPFIND"), ("/.well-known/carddav", "GET")] {
        let answer = ask(&server, "", (method, path), "", "").expect(301);
        assert_eq!(answer.header("location"), Some("/_dav/"));
    }
    for path in ["/", "/_dav/", CALENDAR] {
        let answer = ask(&server, "", ("PROPFIND", path), "Depth: 0\r\n", "").expect(401);
        assert!(answer.header("www-authenticate").unwrap().starts_with("Basic"), "{path}");
    }
    let principal = "<D:propfind xmlns:D=\"DAV:\"><D:prop><D:current-user-principal/></D:prop></D:propfind>";
    let answer = ask(&server, "ada", ("PROPFIND", "/"), "Depth: 0\r\n", principal).expect(207);
    assert!(answer.text().contains("/_dav/principals/ada/"), "{}", answer.text());
    let answer = ask(&server, "ada", ("OPTIONS", CALENDAR), "", "").expect(200);
    assert!(answer.header("dav").unwrap().contains("calendar-access"));
    for number in 0..5 {
        let path = format!("{CALENDAR}{number}.ics");
        ask(&server, "ada", ("PUT", &path), "If-None-Match: *\r\n", &event(number)).expect(201);
    }
    server.kill();
    server = Server::start(folder.path(), &SMALL);
    for number in 0..5 {
        let path = format!("{CALENDAR}{number}.ics");
        assert_eq!(ask(&server, "ada", ("GET", &path), "", "").expect(200).text(), event(number));
        ask(&server, "ada", ("PUT", &path), "If-None-Match: *\r\n", &event(number)).expect(412);
    }
}

#[test]
fn accounts_open_what_their_protocols_say() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    with_people(&server);
    let calendars = |who: &str| format!("/_dav/calendars/{who}/");
    let contacts = |who: &str| format!("/_dav/contacts/{who}/");
    for (who, path, is_let_in) in [
        ("ada", calendars("ada"), true),
        ("ada", contacts("ada"), true),
        ("bob", calendars("bob"), false),
        ("bob", contacts("bob"), false),
        ("cal", calendars("cal"), true),
        ("cal", contacts("cal"), false),
        ("card", contacts("card"), true),
        ("card", calendars("card"), false),
    ] {
        let answer = ask(&server, who, ("PROPFIND", &path), "Depth: 1\r\n", "");
        assert_eq!(answer.status == 207, is_let_in, "{who} {path} {}", answer.text());
    }
    let documents = |who: &str| ask(&server, who, ("GET", "/_all_dbs"), "", "").status;
    assert_eq!(documents("bob"), documents("ada"));
    for who in ["cal", "card"] {
        assert!([401, 403].contains(&documents(who)), "{who}");
    }
}

#[test]
fn what_is_too_long_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    with_people(&server);
    for (method, bytes) in
        [("PUT", 11 << 20), ("PROPFIND", 2 << 20), ("REPORT", 2 << 20), ("MKCALENDAR", 2 << 20)]
    {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(WITHIN)).unwrap();
        let login = STANDARD.encode("ada:a secret of ada's");
        let head = format!(
            "{method} {CALENDAR}x.ics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {login}\r\n\
             Content-Length: {bytes}\r\n\r\n"
        );
        (&stream).write_all(head.as_bytes()).unwrap();
        assert_eq!(read_answer(&mut BufReader::new(stream)).unwrap().status, 413, "{method}");
    }
    // A stranger is asked who they are, whatever they announce.
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(WITHIN)).unwrap();
    let head = format!("PUT {CALENDAR}x.ics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11000000\r\n\r\n");
    (&stream).write_all(head.as_bytes()).unwrap();
    assert_eq!(read_answer(&mut BufReader::new(stream)).unwrap().status, 401);
}

#[test]
fn a_meeting_reaches_whom_it_is_for_and_the_answer_who_called_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    with_people(&server);
    let meeting = event(1).replace(
        "END:VEVENT",
        "DURATION:PT1H\r\nORGANIZER:mailto:ada@acme.example\r\nATTENDEE;PARTSTAT=NEEDS-ACTION:mailto:cal@acme.example\r\nEND:VEVENT",
    );
    let own = format!("{CALENDAR}m.ics");
    ask(&server, "ada", ("PUT", &own), "", &meeting).expect(201);
    let query = "<C:calendar-query xmlns:C=\"urn:ietf:params:xml:ns:caldav\" xmlns:D=\"DAV:\"><D:prop><C:calendar-data/></D:prop>\
         <C:filter><C:comp-filter name=\"VCALENDAR\"/></C:filter></C:calendar-query>";
    let theirs = "/_dav/calendars/cal/calendar/";
    let has = |who: &str, path: &str, wanted: &str| {
        let listed = ask(&server, who, ("REPORT", path), "Depth: 1\r\n", query);
        (listed.status == 207 && listed.text().replace("\r\n ", "").contains(wanted)).then(|| listed.text())
    };
    let mut filed = None;
    wait_until("it is filed", WITHIN, || {
        filed = has("cal", theirs, "UID:1");
        filed.is_some()
    });
    let filed = filed.unwrap();
    let href = filed.split_once("<D:href>").and_then(|(_, rest)| rest.split_once("</D:href>")).unwrap().0;
    let text = ask(&server, "cal", ("GET", href), "", "").expect(200).text();
    let accepted = text.replace("PARTSTAT=NEEDS-ACTION", "PARTSTAT=ACCEPTED");
    ask(&server, "cal", ("PUT", href), "", &accepted).expect(204);
    wait_until("the answer comes", WITHIN, || has("ada", CALENDAR, "PARTSTAT=ACCEPTED").is_some());
}
