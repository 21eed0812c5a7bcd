//! Published calendars: who has the link sees what is meant for them, until the owner takes it back, and nobody else makes one.

use crate::common::{CALENDAR, CONTACTS, Server, event};

const PUBLISH: &str = "<CS:publish-calendar xmlns:CS=\"http://calendarserver.org/ns/\"/>";
const UNPUBLISH: &str = "<CS:unpublish-calendar xmlns:CS=\"http://calendarserver.org/ns/\"/>";
const ASK: &str = "<D:propfind xmlns:D=\"DAV:\" xmlns:CS=\"http://calendarserver.org/ns/\" xmlns:S=\"urn:scrinium:dav\"><D:prop>\
    <CS:publish-url/><S:published/></D:prop></D:propfind>";

fn filled() -> Server {
    let server = Server::start();
    let people = "ORGANIZER:mailto:ada@acme.example\r\nATTENDEE;PARTSTAT=ACCEPTED:mailto:bob@acme.example\r\n\
        DURATION:PT1H\r\nRRULE:FREQ=WEEKLY\r\nBEGIN:VALARM\r\nACTION:DISPLAY\r\nTRIGGER:-PT5M\r\nEND:VALARM\r\n";
    server.put("open.ics", &event("open", ";TZID=Europe/Berlin:20260310T090000", people)).expect(201);
    let own = event("own-secret", ":20260310T110000Z", "DURATION:PT1H\r\nCLASS:PRIVATE\r\n");
    server.put("own.ics", &own).expect(201);
    server.put("old.ics", &event("long-ago", ":20200310T110000Z", "")).expect(201);
    server
}

fn publish(server: &Server) -> String {
    let answer = server.ask("POST", CALENDAR, PUBLISH).expect(200).text();
    let (_, rest) = answer.split_once("<D:href>").unwrap();
    rest.split_once("</D:href>").unwrap().0.to_owned()
}

#[test]
fn a_link_shows_what_is_public_until_it_is_taken_back() {
    let server = filled();
    let link = publish(&server);
    assert_eq!(publish(&server), link, "a calendar has one link");
    let shown = server.published(&link).expect(200);
    assert!(shown.headers["content-security-policy"].to_str().unwrap().contains("sandbox"));
    let shown = shown.text();
    assert!(shown.contains("UID:open") && shown.contains("RRULE:FREQ=WEEKLY"), "{shown}");
    for hidden in ["own-secret", "long-ago", "bob@", "ada@", "VALARM"] {
        assert!(!shown.contains(hidden), "{hidden}: {shown}");
    }
    let busy = server.published(&link.replace(".ics", ".ifb")).expect(200).text().replace("\r\n ", "");
    assert!(busy.contains("FBTYPE=BUSY:20260310T080000Z/20260310T090000Z"), "{busy}");
    // What is private takes time too, and says no more.
    assert!(busy.contains("20260310T110000Z/20260310T120000Z") && !busy.contains("rosebud"), "{busy}");
    // Clients change what is theirs, and the link stays.
    let name = "<D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop><D:displayname>Open days</D:displayname></D:prop></D:set></D:propertyupdate>";
    server.ask("PROPPATCH", CALENDAR, name).multistatus();
    assert!(server.published(&link).expect(200).text().contains("X-WR-CALNAME:Open days"));
    server.ask("POST", CALENDAR, UNPUBLISH).expect(200);
    server.published(&link).expect(404);
    let other = publish(&server);
    assert_ne!(other, link, "a link that was taken back opens nothing again");
    server.published(&link).expect(404);
    server.published(&other).expect(200);
}

#[test]
fn nobody_but_the_owner_publishes_or_is_told_the_link() {
    let server = filled();
    for who in ["edith", "rita", "bob", "admin", ""] {
        for order in [PUBLISH, UNPUBLISH] {
            let answer = server.ask_as(who, "POST", CALENDAR, &[], order);
            assert!([403, 404].contains(&answer.status), "{who}: {}", answer.text());
        }
    }
    let secret = publish(&server).rsplit('/').next().unwrap().replace(".ics", "");
    for (who, sees) in [("ada", true), ("edith", false), ("rita", false), ("bob", false)] {
        for body in [ASK, ""] {
            let told = server.ask_as(who, "PROPFIND", CALENDAR, &[("depth", "0")], body);
            let is_told = told.text().contains(&secret);
            assert_eq!(is_told, sees && !body.is_empty(), "{who}: {}", told.text());
        }
    }
    // Nor does a program that sets properties choose a secret.
    let own = "<D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop><S:published xmlns:S=\"urn:scrinium:dav\">guessed</S:published></D:prop></D:set></D:propertyupdate>";
    for who in ["ada", "edith"] {
        let told = server.ask_as(who, "PROPPATCH", CALENDAR, &[], own).multistatus();
        assert_eq!(told.responses[0].properties[0].status, 403);
    }
    server.published("/_published/ada/guessed.ics").expect(404);
    let made = "<D:mkcol xmlns:D=\"DAV:\"><D:set><D:prop><S:published xmlns:S=\"urn:scrinium:dav\">guessed</S:published></D:prop></D:set></D:mkcol>";
    server.ask("MKCOL", "/_dav/calendars/ada/made/", made).expect(201);
    server.published("/_published/ada/guessed.ics").expect(404);
    for path in [CONTACTS, "/_dav/calendars/ada/", "/_dav/"] {
        server.ask("POST", path, PUBLISH).expect(405);
    }
    server.ask("POST", "/_dav/calendars/ada/inbox/", PUBLISH).expect(403);
    server.ask("POST", CALENDAR, "<x/>").expect(405);
    server.ask("POST", CALENDAR, "<").expect(405);
}

#[test]
fn what_is_no_link_opens_nothing() {
    let server = filled();
    let link = publish(&server);
    let (rest, secret) = link.rsplit_once('/').unwrap();
    for path in [
        rest.to_owned(),
        format!("{rest}/.ics"),
        format!("{rest}/{}.ics", "0".repeat(32)),
        format!("{rest}/{}", secret.to_uppercase()),
        format!("{rest}/{}", secret.replace("ics", "txt")),
        format!("{rest}/x/{secret}"),
        format!("/_published/bob/{secret}"),
        format!("/_published/nobody/{secret}"),
        format!("/_published/%00/{secret}"),
        format!("/_published/../{secret}"),
        format!("/_dav/ada/{secret}"),
        "/_published/%ff/%ff.ics".to_owned(),
    ] {
        server.published(&path).expect(404);
    }
}
