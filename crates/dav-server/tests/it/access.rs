//! Everybody, with every method: what somebody may not read is in no answer, and what they may not change stays.

use crate::common::{CALENDAR, CONTACTS, Server, event, query};

/// What the owner alone may see, or delegates too.
const SECRET: &str = "rosebud";

/// What somebody is in Ada's calendar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    Owner,
    Editor,
    Reader,
    Stranger,
}

const PEOPLE: [(&str, Standing); 6] = [
    ("ada", Standing::Owner),
    ("edith", Standing::Editor),
    ("rita", Standing::Reader),
    ("bob", Standing::Stranger),
    ("admin", Standing::Stranger),
    ("", Standing::Stranger),
];

fn filled() -> Server {
    let server = Server::start();
    server.put("open.ics", &event("open", ":20260310T090000Z", "")).expect(201);
    server.put("own.ics", &event("own-secret", ":20260310T110000Z", "CLASS:PRIVATE\r\n")).expect(201);
    let card = format!("BEGIN:VCARD\r\nVERSION:4.0\r\nUID:c\r\nFN:{SECRET}\r\nEND:VCARD\r\n");
    server.ask("PUT", &format!("{CONTACTS}c.vcf"), card).expect(201);
    server
}

/// Each way to read, with what it is asked of.
fn reads() -> Vec<(&'static str, String, String)> {
    let multiget = |area: &str, name: &str, href: &str| {
        format!(
            "<C:{name} xmlns:C=\"urn:ietf:params:xml:ns:{area}\" xmlns:D=\"DAV:\"><D:prop><D:getetag/><C:calendar-data/>\
             <C:address-data/></D:prop><D:href>{href}</D:href></C:{name}>"
        )
    };
    let sync = "<D:sync-collection xmlns:D=\"DAV:\"><D:sync-token/><D:sync-level>1</D:sync-level><D:prop>\
        <D:getetag/></D:prop></D:sync-collection>";
    let busy = "<C:free-busy-query xmlns:C=\"urn:ietf:params:xml:ns:caldav\"><C:time-range \
        start=\"20260301T000000Z\" end=\"20260401T000000Z\"/></C:free-busy-query>";
    let mut all = vec![
        ("GET", format!("{CALENDAR}open.ics"), String::new()),
        ("GET", format!("{CONTACTS}c.vcf"), String::new()),
        ("REPORT", CALENDAR.to_owned(), query("", "")),
        (
            "REPORT",
            CALENDAR.to_owned(),
            multiget("caldav", "calendar-multiget", &format!("{CALENDAR}open.ics")),
        ),
        (
            "REPORT",
            CONTACTS.to_owned(),
            multiget("carddav", "addressbook-multiget", &format!("{CONTACTS}c.vcf")),
        ),
        ("REPORT", CALENDAR.to_owned(), sync.to_owned()),
        ("REPORT", CALENDAR.to_owned(), busy.to_owned()),
    ];
    for path in [CALENDAR, CONTACTS, "/_dav/calendars/ada/", "/_dav/contacts/ada/"] {
        all.push(("PROPFIND", path.to_owned(), String::new()));
    }
    all
}

#[test]
fn nobody_reads_what_is_not_for_them() {
    let server = filled();
    for (who, standing) in PEOPLE {
        for (method, path, body) in reads() {
            let answer = server.ask_as(who, method, &path, &[("depth", "1")], body.clone());
            let asked = format!("{who}: {method} {path} {body}\n{}", answer.text());
            if standing == Standing::Stranger {
                assert_eq!(answer.status, 404, "{asked}");
                assert!(!answer.text().contains(SECRET), "{asked}");
            } else {
                assert!(answer.status < 300, "{asked}");
            }
            // What is private is its owner's, also where others edit the rest.
            if standing != Standing::Owner {
                assert!(
                    !answer.text().contains("own-secret") && !answer.text().contains("own.ics"),
                    "{asked}"
                );
            }
        }
        let answer = server.ask_as(who, "GET", &format!("{CALENDAR}own.ics"), &[], "");
        assert_eq!(answer.status, if standing == Standing::Owner { 200 } else { 404 }, "{who}");
        // The root, the principals and the own principal lead on, and tell of nobody else.
        for path in ["/", "/_dav/", "/_dav/principals/", "/_dav/calendars/", "/_dav/contacts/"] {
            let answer = server.ask_as(who, "PROPFIND", path, &[("depth", "1")], "");
            assert_eq!(answer.status, 207, "{who} {path}");
            assert!(standing == Standing::Owner || !answer.text().contains("/ada/"), "{who} {path}");
        }
    }
}

#[test]
fn nobody_changes_what_is_not_theirs() {
    let property = "<D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop><D:displayname>x</D:displayname></D:prop>\
        </D:set></D:propertyupdate>";
    let to = [("destination", "/_dav/calendars/ada/calendar/moved.ics"), ("depth", "infinity")];
    for (who, standing) in PEOPLE {
        let server = filled();
        let before = server.ask("PROPFIND", CALENDAR, "").text();
        let changes: [(&str, String, String); 8] = [
            ("PUT", format!("{CALENDAR}new.ics"), event("new", ":20260310T090000Z", "")),
            ("PUT", format!("{CALENDAR}open.ics"), event("open", ":20260310T093000Z", "")),
            ("COPY", format!("{CALENDAR}open.ics"), String::new()),
            ("MOVE", format!("{CALENDAR}open.ics"), String::new()),
            ("MKCALENDAR", "/_dav/calendars/ada/more/".to_owned(), String::new()),
            ("PROPPATCH", CALENDAR.to_owned(), property.to_owned()),
            ("DELETE", format!("{CALENDAR}moved.ics"), String::new()),
            ("DELETE", CALENDAR.to_owned(), String::new()),
        ];
        for (method, path, body) in changes {
            let answer = server.ask_as(who, method, &path, &to, body);
            let asked = format!("{who}: {method} {path} {}", answer.text());
            match standing {
                // A copy in the same collection has the same UID.
                Standing::Owner | Standing::Editor if method == "COPY" => {
                    assert_eq!(answer.status, 403, "{asked}");
                }
                // With a collection goes what is private in it.
                Standing::Editor if path == CALENDAR && method == "DELETE" => {
                    assert_eq!(answer.status, 403, "{asked}");
                }
                Standing::Owner | Standing::Editor => assert!(answer.status < 300, "{asked}"),
                Standing::Reader => assert!([403, 404].contains(&answer.status), "{asked}"),
                Standing::Stranger => assert_eq!(answer.status, 404, "{asked}"),
            }
            assert!(standing == Standing::Owner || !answer.text().contains("own-secret"), "{asked}");
        }
        let is_same = server.ask("PROPFIND", CALENDAR, "").text() == before;
        assert_eq!(is_same, matches!(standing, Standing::Reader | Standing::Stranger), "{who}");
    }
}

#[test]
fn an_editor_does_not_reach_what_is_private() {
    let server = filled();
    let path = format!("{CALENDAR}own.ics");
    server.ask_as("edith", "DELETE", &path, &[], "").expect(404);
    server.ask_as("edith", "PUT", &path, &[], event("own-secret", ":20260310T110000Z", "")).expect(403);
    server.ask("GET", &path, "").expect(200);
}
