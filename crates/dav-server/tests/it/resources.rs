//! What is stored is what comes back, and a request's conditions hold.

use serde_json::Value;

use crate::common::{CALENDAR, CONTACTS, Server, TASKS, event};

/// Bytes that a parser would like to put in order: folds, lower case, an odd line end, lines of nobody's.
const ODD: &str = "BEGIN:VCALENDAR\r\nversion:2.0\nPRODID:x\r\nX-ODD;A=\"b:c\";B=1:val\\,ue\r\nBEGIN:VEVENT\r\nUID:odd@example\r\n\
    DTSTAMP:20260101T000000Z\r\nDTSTART;TZID=\"Europe/Berlin\":20260310T090000\r\nSUMMARY:Caf\r\n é mit Stra\r\n\tße\r\n\
    END:VEVENT\r\nEND:VCALENDAR\r\n";

#[test]
fn what_is_put_comes_back_byte_for_byte() {
    let server = Server::start();
    for (name, path) in [
        ("odd.ics", "odd.ics"),
        ("a b@c%2F#?.ics", "a%20b@c%252F%23%3F.ics"),
        ("Termin Ж.ics", "Termin%20%D0%96.ics"),
    ] {
        let source = ODD.replace("odd@example", name);
        let put = server.put(path, &source).expect(201);
        let got = server.ask("GET", &format!("{CALENDAR}{path}"), "").expect(200);
        assert_eq!(got.text(), source);
        assert_eq!(got.tag(), put.tag());
        // Other spellings of the path are the same resource.
        let spelled = path.replace('@', "%40");
        server.ask("GET", &format!("{CALENDAR}{spelled}"), "").expect(200);
        let answer = server.ask("PROPFIND", &format!("{CALENDAR}{path}"), "");
        let told = answer.multistatus();
        assert_eq!(told.responses[0].property("DAV:", "getetag").unwrap().text(), put.tag());
    }
    // The same bytes once more are the same tag, and other ones another.
    let tag = server.put("odd.ics", &ODD.replace("odd@example", "odd.ics")).expect(204).tag();
    let other = ODD.replace("odd@example", "odd.ics").replace("Caf", "Tee");
    assert_ne!(server.put("odd.ics", &other).expect(204).tag(), tag);
    server.ask("DELETE", &format!("{CALENDAR}odd.ics"), "").expect(204);
    server.ask("GET", &format!("{CALENDAR}odd.ics"), "").expect(404);
}

#[test]
fn conditions_hold() {
    let server = Server::start();
    let path = format!("{CALENDAR}e.ics");
    let put = |condition: (&str, &str), body: String| server.ask_as("ada", "PUT", &path, &[condition], body);
    let first = event("e", ":20260310T090000Z", "");
    put(("if-match", "*"), first.clone()).expect(412);
    let tag = put(("if-none-match", "*"), first.clone()).expect(201).tag();
    put(("if-none-match", "*"), first.clone()).expect(412);
    put(("if-match", "\"other\""), first.clone()).expect(412);
    put(("if-match", "no tag"), first.clone()).expect(412);
    let second = event("e", ":20260310T100000Z", "");
    let newer = put(("if-match", &tag), second.clone()).expect(204).tag();
    put(("if-match", &tag), first).expect(412);
    server.ask_as("ada", "GET", &path, &[("if-none-match", &newer)], "").expect(304);
    server.ask_as("ada", "DELETE", &path, &[("if-match", &tag)], "").expect(412);
    let wanted = [("if-match", newer.as_str()), ("prefer", "return=representation")];
    let answer = server.ask_as("ada", "PUT", &path, &wanted, second.clone()).expect(200);
    assert_eq!(answer.text(), second);
    server.ask_as("ada", "DELETE", &path, &[("if-match", &newer)], "").expect(204);
}

#[test]
fn a_uid_stands_once_in_a_collection_and_stays() {
    let server = Server::start();
    server.put("one.ics", &event("same", ":20260310T090000Z", "")).expect(201);
    let refused = server.put("two.ics", &event("same", ":20260310T090000Z", "")).expect(403);
    assert!(refused.text().contains("no-uid-conflict"), "{}", refused.text());
    assert!(refused.text().contains("/_dav/calendars/ada/calendar/one.ics"), "{}", refused.text());
    server.put("one.ics", &event("another", ":20260310T090000Z", "")).expect(403);
    server.ask("DELETE", &format!("{CALENDAR}one.ics"), "").expect(204);
    server.put("two.ics", &event("same", ":20260310T090000Z", "")).expect(201);
    server.put("one.ics", &event("another", ":20260310T090000Z", "")).expect(201);
    // Elsewhere it is another document.
    server.ask("MKCALENDAR", "/_dav/calendars/ada/work/", "").expect(201);
    let path = "/_dav/calendars/ada/work/x.ics";
    server.ask("PUT", path, event("same", ":20260310T110000Z", "")).expect(201);
    assert!(server.ask("GET", path, "").expect(200).text().contains("T110000Z"));
    assert!(server.ask("GET", &format!("{CALENDAR}two.ics"), "").expect(200).text().contains("T090000Z"));
}

#[test]
fn what_is_moved_and_copied_goes_where_it_should() {
    let server = Server::start();
    server.ask("MKCALENDAR", "/_dav/calendars/ada/work/", "").expect(201);
    server.put("e.ics", &event("e", ":20260310T090000Z", "")).expect(201);
    let go = |method: &str, from: &str, to: &str, overwrite: &str| {
        server.ask_as("ada", method, from, &[("destination", to), ("overwrite", overwrite)], "")
    };
    let (here, there) = (format!("{CALENDAR}e.ics"), "/_dav/calendars/ada/work/f.ics");
    go("MOVE", &here, there, "F").expect(201);
    server.ask("GET", &here, "").expect(404);
    server.ask("GET", there, "").expect(200);
    go("MOVE", there, "/_dav/calendars/ada/work/g.ics", "F").expect(201);
    server.ask("GET", there, "").expect(404);
    let there = "/_dav/calendars/ada/work/g.ics";
    go("COPY", there, &here, "F").expect(201);
    go("COPY", there, &here, "F").expect(412);
    go("COPY", there, &here, "T").expect(204);
    go("MOVE", there, &here, "T").expect(204);
    server.ask("GET", there, "").expect(404);
    server.ask("GET", &here, "").expect(200);
    go("MOVE", &here, "/_dav/calendars/ada/nowhere/e.ics", "T").expect(409);
    go("MOVE", &here, CONTACTS, "T").expect(403);
    go("MOVE", &here, "http://elsewhere.example/_dav/calendars/ada/work/e.ics", "T").expect(201);
    // Tasks take no events.
    go("MOVE", "/_dav/calendars/ada/work/e.ics", &format!("{TASKS}e.ics"), "T").expect(403);
}

#[test]
fn documents_have_the_fields_that_views_show() {
    let server = Server::start();
    let more = "DTEND:20260310T100000Z\r\nLOCATION:Room 1\r\nCATEGORIES:A,B\r\n";
    server.put("e.ics", &event("e", ":20260310T090000Z", more)).expect(201);
    let card = "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:c\r\nFN:Grace Hopper\r\nN:Hopper;Grace;;;\r\n\
        EMAIL;TYPE=work:grace@navy.example\r\nEND:VCARD\r\n";
    server.ask("PUT", &format!("{CONTACTS}c.vcf"), card).expect(201);
    assert_eq!(server.ask("GET", &format!("{CONTACTS}c.vcf"), "").expect(200).text(), card);
    let database = server.databases.get("mail/ada").unwrap();
    let access = scrinium_database::Access::of_the_server("a test");
    let folders =
        [("Calendars\\calendar", "Subject", "rosebud e"), ("Contacts\\contacts", "LastName", "Hopper")];
    for (folder, field, value) in folders {
        let members = database.folder_members(folder, 0, 10, (None, &access)).unwrap().members;
        let document = database.read(&members[0].id, &Default::default(), &access).unwrap();
        let document: Value = serde_json::from_str(document.json.as_str()).unwrap();
        assert_eq!(document[field], value, "{document}");
    }
}

#[test]
fn collections_are_made_changed_and_deleted() {
    let server = Server::start();
    let made = "<D:mkcol xmlns:D=\"DAV:\" xmlns:C=\"urn:ietf:params:xml:ns:caldav\"><D:set><D:prop><D:resourcetype>\
        <D:collection/><C:calendar/></D:resourcetype><D:displayname>Arbeit</D:displayname>\
        <C:supported-calendar-component-set><C:comp name=\"VTODO\"/></C:supported-calendar-component-set>\
        </D:prop></D:set></D:mkcol>";
    let path = "/_dav/calendars/ada/arbeit/";
    server.ask("MKCOL", path, made).expect(201);
    server.ask("MKCOL", path, made).expect(405);
    server.ask("MKCOL", "/_dav/contacts/ada/arbeit/", made).expect(403);
    server.ask("PUT", &format!("{path}e.ics"), event("e", ":20260310T090000Z", "")).expect(403);
    let changed = "<D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop><D:displayname>Work</D:displayname>\
        <X:calendar-color xmlns:X=\"http://apple.com/ns/ical/\">#ff0000</X:calendar-color></D:prop></D:set>\
        </D:propertyupdate>";
    let answer = server.ask("PROPPATCH", path, changed);
    assert_eq!(answer.multistatus().responses[0].properties[0].status, 200);
    let told = server.ask_as("ada", "PROPFIND", path, &[("depth", "0")], "").multistatus();
    assert_eq!(told.responses[0].property("DAV:", "displayname").unwrap().text(), "Work");
    let color = told.responses[0].property("http://apple.com/ns/ical/", "calendar-color");
    assert_eq!(color.unwrap().text(), "#ff0000");
    // All or nothing.
    let both = changed.replace(
        "<D:displayname>Work</D:displayname>",
        "<D:displayname>x</D:displayname><D:getetag>x</D:getetag>",
    );
    let refused = server.ask("PROPPATCH", path, both).multistatus();
    let statuses: Vec<u16> = refused.responses[0].properties.iter().map(|part| part.status).collect();
    assert_eq!(statuses, [403, 424]);
    let told = server.ask_as("ada", "PROPFIND", path, &[("depth", "0")], "").multistatus();
    assert_eq!(told.responses[0].property("DAV:", "displayname").unwrap().text(), "Work");
    server.ask_as("ada", "DELETE", path, &[], "").expect(204);
    server.ask_as("ada", "PROPFIND", path, &[("depth", "0")], "").expect(404);
}
