//! What nobody means well by.

use crate::common::{CALENDAR, CONTACTS, Server, event, query};

#[test]
fn bodies_and_depths_without_end_are_refused() {
    let server = Server::start();
    let entities = "<!DOCTYPE x [<!ENTITY a \"rosebud\">]><D:propfind xmlns:D=\"DAV:\"><D:prop><D:a>&a;</D:a></D:prop></D:propfind>";
    let deep = format!("<D:propfind xmlns:D=\"DAV:\">{}", "<D:x>".repeat(10_000));
    let many =
        format!("<D:propfind xmlns:D=\"DAV:\"><D:prop>{}</D:prop></D:propfind>", "<D:x/>".repeat(60_000));
    for body in [entities, &deep, &many, "<", "\u{0}", "<D:propfind xmlns:D=\"DAV:\"/>"] {
        for method in ["PROPFIND", "PROPPATCH", "REPORT", "MKCOL", "MKCALENDAR"] {
            let answer = server.ask(method, CALENDAR, body.to_owned());
            assert!(
                [400, 403, 405, 413].contains(&answer.status),
                "{method} {}: {}",
                answer.status,
                &body[..body.len().min(60)]
            );
        }
    }
    for depth in ["infinity", "2", "x", ""] {
        let answer = server.ask_as("ada", "PROPFIND", "/_dav/calendars/ada/", &[("depth", depth)], "");
        assert!(answer.expect(403).text().contains("propfind-finite-depth"));
    }
}

#[test]
fn paths_lead_nowhere_else() {
    let server = Server::start();
    let body = event("e", ":20260310T090000Z", "");
    for path in [
        "/_dav/calendars/ada/calendar/../../bob/x.ics",
        "/_dav/calendars/ada/calendar/%2e%2e/x.ics",
        "/_dav/calendars/ada/calendar/a/b.ics",
        "/_dav/calendars/ada/calendar/%00.ics",
        "/_dav/calendars/ada/calendar/%ff.ics",
        "/_dav/calendars/ada%2Fcalendar/x.ics",
        "/_dav/calendars/ADA/calendar/x.ics",
        "/_dav/files/ada/a%5Cb",
        "/_dav/files/ada/../bob/x",
        "/_dav/files/ada/%00",
        "/_dav/files/",
        "/_dav/files/ada/none/x.txt",
        "/_dav/calendars//calendar/x.ics",
    ] {
        let answer = server.ask("PUT", path, body.clone());
        assert!([404, 405, 409].contains(&answer.status), "{path}: {}", answer.status);
    }
    server.put(&"x".repeat(256), &body).expect(404);
    server.put("..%2F..%2Fx.ics", &body).expect(201);
    assert_eq!(server.ask("PROPFIND", CALENDAR, "").names()[1], "..%2F..%2Fx.ics");
    server.ask("MKCALENDAR", "/_dav/calendars/ada/a%5Cb/", "").expect(403);
    server.ask("MKCALENDAR", "/_dav/calendars/ada/%20/", "").expect(403);
    server.ask("MKCALENDAR", "/_dav/calendars/ada/CALENDAR/", "").expect(403);
}

#[test]
fn what_is_no_calendar_is_not_stored() {
    let server = Server::start();
    let good = event("e", ":20260310T090000Z", "");
    for (body, condition) in [
        (String::new(), "valid-calendar-data"),
        ("BEGIN:VCALENDAR\r\n".to_owned(), "valid-calendar-data"),
        (format!("{good}{good}"), "valid-calendar-data"),
        ("BEGIN:VCARD\r\nEND:VCARD\r\n".to_owned(), "valid-calendar-data"),
        ("BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n".to_owned(), "valid-calendar-object-resource"),
        (good.replace("UID:e\r\n", ""), "valid-calendar-object-resource"),
        (good.replace("UID:e", &format!("UID:{}", "x".repeat(2_000))), "valid-calendar-object-resource"),
        (good.replace("VEVENT", "VTODO"), "supported-calendar-component"),
        (good.replace("VEVENT", "VFREEBUSY"), "supported-calendar-component"),
    ] {
        let answer = server.put("e.ics", &body).expect(403);
        assert!(answer.text().contains(condition), "{body}\n{}", answer.text());
    }
    let refused = server.ask("PUT", &format!("{CONTACTS}c.vcf"), good).expect(403);
    assert!(refused.text().contains("valid-address-data"));
}

#[test]
fn a_rule_without_end_costs_little() {
    let server = Server::start();
    for (name, rule) in [
        ("secondly", "FREQ=SECONDLY"),
        ("never", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"),
        ("sets", "FREQ=MINUTELY;BYSETPOS=-1;BYSECOND=0,1,2"),
    ] {
        let body = event(name, ":00010101T000000Z", &format!("RRULE:{rule}\r\n"));
        server.put(&format!("{name}.ics"), &body).expect(201);
    }
    let filter = crate::common::range("VEVENT", "20260301T000000Z", "20270301T000000Z");
    let answer = server.ask("REPORT", CALENDAR, query(&filter, ""));
    let mut names = answer.names();
    names.sort();
    assert_eq!(names, ["secondly.ics", "sets.ics"]);
    // What would have to be written out without end is left out of the answer.
    let data = "<C:expand start=\"20260301T000000Z\" end=\"20270301T000000Z\"/>";
    let answer = server.ask("REPORT", CALENDAR, query(&filter, data));
    assert!(answer.body.len() < 1 << 20, "{}", answer.body.len());
}
