//! Programs that keep calendars in two places, as people have them, and other people's tests of calendar servers.
//!
//! `scripts/calendar-programs` brings them; what is not there is left out, and the test says so. `SCRINIUM_EVENTS` is how many events
//! are kept in two places.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use scrinium_fault::skip;

use crate::calendars::{CALENDAR, ask, with_people};
use crate::common::{SMALL, Server};
use crate::mail_programs::{cached, run};

/// Tests of python-caldav's that are not passed, and why.
const OTHERWISE: [(&str, &str); 1] = [(
    "testPrincipals",
    "it asks for no property (RFC 3744, section 9.4): what it wants to know stands beside the element `prop`, and not in it",
)];

/// What its tests of scheduling want to be sure of before they begin.
const SCHEDULING: &str = "{\"scheduling\": full, \"scheduling.freebusy-query\": full, \"scheduling.schedule-tag\": full, \
     \"scheduling.schedule-tag.stable-partstat\": full, \"scheduling.mailbox.inbox-delivery\": full}";

fn programs() -> Option<PathBuf> {
    let folder = cached("calendar-programs-1");
    if folder.join("complete").exists() {
        return Some(folder);
    }
    skip("there are no calendar programs to try; scripts/calendar-programs brings them");
    None
}

fn event(number: usize) -> String {
    let (day, hour) = (1 + number % 28, number % 24);
    let series = if number.is_multiple_of(10) { "RRULE:FREQ=WEEKLY;COUNT=20\r\n" } else { "" };
    format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\nBEGIN:VEVENT\r\nUID:event-{number}\r\nDTSTAMP:20260101T000000Z\r\n\
         DTSTART:202603{day:02}T{hour:02}0000Z\r\nDURATION:PT1H\r\nSUMMARY:Nr. {number} \u{fc}ber\r\n{series}END:VEVENT\r\nEND:VCALENDAR\r\n"
    )
}

/// Summaries and names of the files in a folder.
fn near(folder: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder).into_iter().flatten().map(|file| file.unwrap().path());
    files
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let of = |name: &str| {
                text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned()
            };
            (of("UID:"), of("SUMMARY:"))
        })
        .collect()
}

/// Names and tags of what is in the calendar.
fn far(server: &Server) -> BTreeMap<String, String> {
    let body = "<D:propfind xmlns:D=\"DAV:\"><D:prop><D:getetag/></D:prop></D:propfind>";
    let answer = ask(server, "ada", ("PROPFIND", CALENDAR), "Depth: 1\r\n", body).expect(207).text();
    let part = |response: &str, from: &str, to: &str| {
        response.split_once(from).and_then(|(_, rest)| rest.split_once(to)).map(|(text, _)| text.to_owned())
    };
    let responses = answer.split("<D:response>").skip(1);
    responses
        .filter_map(|response| {
            Some((part(response, "<D:href>", "</D:href>")?, part(response, "<D:getetag>", "</D:getetag>")?))
        })
        .collect()
}

#[test]
fn vdirsyncer_keeps_two_places_the_same() {
    let Some(programs) = programs() else { return };
    let count = std::env::var("SCRINIUM_EVENTS").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    with_people(&server);
    let shown = folder.path().display();
    let settings = folder.path().join("vdirsyncer");
    let text = format!(
        "[general]\nstatus_path = \"{shown}/status/\"\n[pair both]\na = \"near\"\nb = \"far\"\ncollections = [\"calendar\"]\n\
         [storage near]\ntype = \"filesystem\"\npath = \"{shown}/near/\"\nfileext = \".ics\"\n\
         [storage far]\ntype = \"caldav\"\nurl = \"http://{}/_dav/\"\nusername = \"ada\"\npassword = \"a secret of ada's\"\n",
        server.address()
    );
    fs::write(&settings, text).unwrap();
    let calendar = folder.path().join("near/calendar");
    fs::create_dir_all(&calendar).unwrap();
    for number in 0..count {
        fs::write(calendar.join(format!("event-{number}.ics")), event(number)).unwrap();
    }
    let sync = |what: &str| {
        let program = programs.join("python/bin/vdirsyncer");
        run(&program, |command| {
            command.env("HOME", folder.path()).arg("--config").arg(&settings).arg(what);
        })
        .unwrap();
    };
    sync("discover");
    sync("sync");
    let (here, there) = (near(&calendar), far(&server));
    assert_eq!((here.len(), there.len()), (count, count));
    sync("sync");
    assert!(here == near(&calendar) && there == far(&server), "a second run has changed something");
    // What is changed, made and deleted in one place comes to the other.
    fs::write(calendar.join("event-1.ics"), event(1).replace("Nr. 1", "Changed")).unwrap();
    fs::remove_file(calendar.join("event-2.ics")).unwrap();
    let made = format!("{CALENDAR}made.ics");
    ask(&server, "ada", ("PUT", &made), "", &event(count)).expect(201);
    let gone = there.keys().next_back().unwrap();
    ask(&server, "ada", ("DELETE", gone), "", "").expect(204);
    sync("sync");
    let (here, there) = (near(&calendar), far(&server));
    assert_eq!((here.len(), there.len()), (count - 1, count - 1));
    assert!(here[&format!("event-{count}")].starts_with("Nr."), "{here:?}");
    assert!(here.get("event-1").is_none_or(|title| title.starts_with("Changed")), "{here:?}");
    sync("sync");
    assert!(here == near(&calendar) && there == far(&server), "one more run has changed something");
}

#[test]
fn litmus_finds_nothing_to_say_about_files() {
    let litmus = cached("calendar-programs-1").join("litmus");
    if !litmus.join("complete").exists() {
        return skip("litmus is not there; scripts/calendar-programs brings it");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    with_people(&server);
    let url = format!("http://{}/_dav/files/ada/", server.address());
    let mut passed = 0;
    for suite in ["basic", "copymove", "props", "locks", "http"] {
        let libraries = fs::read_dir(litmus.join("usr/lib")).unwrap().map(|entry| entry.unwrap().path());
        let libraries: Vec<String> = libraries.map(|path| path.display().to_string()).collect();
        let output = Command::new(litmus.join("usr/libexec/litmus").join(suite))
            .current_dir(folder.path())
            .env("LD_LIBRARY_PATH", libraries.join(":"))
            .arg("--htdocs")
            .arg(litmus.join("usr/share/litmus/htdocs"))
            .args([url.as_str(), "ada", "a secret of ada's"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let summary = said.split("tests run: ").nth(1).unwrap_or_default();
        assert!(summary.contains(" 0 failed"), "{suite}: {said}");
        passed += summary.split(' ').next().unwrap().parse::<usize>().unwrap();
    }
    assert_eq!(passed, 104);
}

#[test]
fn the_tests_of_python_caldav_are_passed_but_those_with_a_reason() {
    if std::env::var_os("SCRINIUM_TIMES").is_none() {
        return skip("the tests of python-caldav take minutes; make torture runs them");
    }
    let Some(programs) = programs() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    with_people(&server);
    let mut client = server.client();
    for name in ["eve", "fay"] {
        let person = serde_json::json!({"Form": "Person", "ShortName": name, "FullName": [format!("{name} Someone")],
            "InternetAddress": format!("{name}@acme.example"), "password": format!("a secret of {name}'s")});
        client.json("PUT", &format!("/directory/person:{name}"), &person).unwrap().expect(201);
    }
    // The suite writes beside itself.
    let suite = folder.path().join("caldav");
    let copied = Command::new("cp").arg("-r").arg(programs.join("caldav")).arg(&suite).status().unwrap();
    assert!(copied.success());
    let url = format!("http://{}/_dav/", server.address());
    let user = |name: &str| {
        format!("      - {{url: \"{url}\", username: {name}, password: \"a secret of {name}'s\"}}\n")
    };
    let settings = format!(
        "test-servers:\n  ours:\n    type: external\n    enabled: true\n    url: {url}\n    username: ada\n    \
         password: \"a secret of ada's\"\n    features: {SCHEDULING}\n    scheduling_users:\n{}{}{}  radicale:\n    enabled: false\n  xandikos:\n    enabled: false\n",
        user("ada"),
        user("eve"),
        user("fay")
    );
    fs::write(suite.join("tests/caldav_test_servers.yaml"), settings).unwrap();
    let output = Command::new(programs.join("python/bin/python"))
        .current_dir(&suite)
        .env("PYTHON_CALDAV_TEST_DOCKER", "0")
        .env("HOME", folder.path())
        .args(["-m", "pytest", "-q", "-rfE", "-W", "ignore", "-p", "no:cacheprovider"])
        .args(["-o", "asyncio_default_fixture_loop_scope=function", "tests/test_caldav.py", "-k", "ours"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let failed: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR ")))
        .filter_map(|line| line.split("::").last()?.split(' ').next())
        .collect();
    let passed = said
        .lines()
        .last()
        .and_then(|line| line.split(" passed").next()?.rsplit(' ').next()?.parse::<usize>().ok());
    assert!(passed.is_some_and(|passed| passed >= 70), "{said}");
    let unexpected: Vec<&&str> =
        failed.iter().filter(|name| OTHERWISE.iter().all(|(known, _)| known != *name)).collect();
    assert!(unexpected.is_empty(), "{unexpected:?}\n{said}");
    println!("{}", said.lines().last().unwrap_or_default());
}
