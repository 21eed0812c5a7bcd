//! Messages that go straight into mail files, and those that cannot.

use std::path::Path;

use bytes::Bytes;
use scrinium_clock::Clock;
use scrinium_database::DatabaseOptions;
use scrinium_mail::{
    Deposited, EnvelopeItems, IncomingMail, IncomingMessage, MessageSource, Resolver, RoutedState,
};
use serde_json::json;

use crate::common::{Server, noise, put};

const NOW_MS: u64 = 1_795_684_851_000;

fn incoming(server: &Server) -> IncomingMail {
    let resolver = Resolver::new(server.directory.clone(), &["home.example".to_owned()]);
    IncomingMail::new(&server.databases, server.mailboxes.clone(), resolver, &server.statistics)
}

fn message(subject: &str, recipients: &[&str], text: &[u8]) -> IncomingMessage {
    let head = format!("Message-ID: <{subject}@far.example>\r\nSubject: {subject}\r\n\r\n");
    IncomingMessage {
        source: MessageSource::from(Bytes::from([head.as_bytes(), text].concat())),
        recipients: recipients.iter().map(|name| (*name).to_owned()).collect(),
        return_path: "eve@far.example".to_owned(),
        envelope: EnvelopeItems { repeat_id: Some(subject.to_owned()), ..EnvelopeItems::default() },
    }
}

fn waiting(server: &Server) -> usize {
    ["mail.box", "mail1.box"].iter().map(|name| server.documents(name).len()).sum()
}

fn count(server: &Server, name: &str) -> usize {
    server.documents(&format!("mail/{name}")).len()
}

fn names(number: usize) -> Vec<String> {
    (0..number).map(|number| format!("p{number}")).collect()
}

fn open(folder: &Path, number: usize) -> (Server, Vec<String>) {
    let names = names(number);
    let people: Vec<&str> = names.iter().map(String::as_str).collect();
    (Server::open(folder, &people), names)
}

#[test]
fn a_message_for_several_people_is_one_batch_with_its_source_once() {
    let folder = tempfile::tempdir().unwrap();
    let (server, names) = open(folder.path(), 16);
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let mail = incoming(&server);
    // The mail files are made.
    assert_eq!(mail.accept("first", &message("first", &all, b"Text.\r\n")).unwrap(), Deposited::Now);
    let text = noise(1, 100_000);
    let before = ["Log.Bytes", "Log.Records"].map(|name| server.statistic(name));
    assert_eq!(mail.accept("second", &message("second", &all, &text)).unwrap(), Deposited::Now);
    let after = ["Log.Bytes", "Log.Records"].map(|name| server.statistic(name));
    assert_eq!(after[1] - before[1], 1.0, "one record of the log, and so one sync");
    let bytes = after[0] - before[0];
    // The text is there twice for all of them: in the source, and as the memo's field `Body`.
    assert!((100_000.0..300_000.0).contains(&bytes), "{bytes} bytes of log for a text of 100,000");
    for name in &names {
        assert_eq!(count(&server, name), 2);
        let database = server.databases.get(&format!("mail/{name}")).unwrap();
        let inbox = database.folder_members("Inbox", 0, 10, (None, &crate::common::SERVER)).unwrap();
        assert_eq!(inbox.total, Some(2));
    }
    assert_eq!(waiting(&server), 0);
    assert_eq!(server.statistic("Mail.Delivered"), 32.0);
}

#[test]
fn a_message_is_there_once_whichever_way_it_comes() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = open(folder.path(), 3);
    let mail = incoming(&server);
    let one = message("one", &["p0"], b"Text.\r\n");
    assert_eq!(mail.accept("one", &one).unwrap(), Deposited::Now);
    assert_eq!(mail.accept("one", &one).unwrap(), Deposited::Before);
    // To one more: who has it does not get it again.
    let two = message("one", &["p0", "p1"], b"Text.\r\n");
    assert_eq!(mail.accept("two", &two).unwrap(), Deposited::Now);
    // By a mail.box too.
    server.mailboxes.deposit_message("three", &message("one", &["p1", "p2"], b"Text.\r\n")).unwrap();
    let mut router = server.router();
    server.route_all(&mut router);
    assert_eq!(["p0", "p1", "p2"].map(|name| count(&server, name)), [1, 1, 1]);
    // Who has deleted it does not get it again.
    let memo = server.documents("mail/p0").remove(0);
    let database = server.databases.get("mail/p0").unwrap();
    put(&database, json!({"_id": memo["_id"], "_rev": memo["_rev"], "_deleted": true})).unwrap();
    assert_eq!(mail.accept("one", &one).unwrap(), Deposited::Before);
    assert_eq!(count(&server, "p0"), 0);
}

#[test]
fn the_same_message_from_several_at_once_is_one_document() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = open(folder.path(), 4);
    let mail = incoming(&server);
    let all = ["p0", "p1", "p2", "p3"];
    std::thread::scope(|scope| {
        for first in 0..8 {
            let mail = &mail;
            scope.spawn(move || {
                for number in 0..20 {
                    let mut people = all;
                    people.rotate_left(first % 4);
                    let subject = format!("m{number}");
                    mail.accept(&subject, &message(&subject, &people[..2 + first % 3], b"Text.\r\n"))
                        .unwrap();
                }
            });
        }
    });
    let mut router = server.router();
    server.route_all(&mut router);
    for name in all {
        assert_eq!(count(&server, name), 20, "{name}");
    }
}

#[test]
fn what_is_for_many_or_for_nobody_here_goes_through_a_mail_box() {
    let folder = tempfile::tempdir().unwrap();
    let (server, names) = open(folder.path(), 17);
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let mail = incoming(&server);
    for (place, recipients) in [&all[..], &["p0", "nobody"], &["p0", "zoe@far.example"]].iter().enumerate() {
        let id = format!("m{place}");
        assert_eq!(mail.accept(&id, &message(&id, recipients, b"Text.\r\n")).unwrap(), Deposited::Now);
        assert_eq!(mail.accept(&id, &message(&id, recipients, b"Text.\r\n")).unwrap(), Deposited::Before);
        assert_eq!(waiting(&server), place + 1);
    }
    assert_eq!(count(&server, "p0"), 0);
}

#[test]
fn a_message_for_later_is_delivered_when_its_time_has_come() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW_MS);
    let server = Server::at(folder.path(), &["p0"], DatabaseOptions::default(), clock.clock());
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = std::sync::Arc::clone(&told);
    let mut router = server.router().on_routed(move |routed| heard.lock().unwrap().push(routed.state));
    let mut later = message("later", &["p0"], b"Text.\r\n");
    later.envelope.release_ms = Some(NOW_MS + 3_600_000);
    assert_eq!(incoming(&server).accept("later", &later).unwrap(), Deposited::Now);
    for minutes in [0, 30, 29] {
        clock.advance(std::time::Duration::from_secs(minutes * 60));
        server.route_all(&mut router);
        assert_eq!((count(&server, "p0"), waiting(&server)), (0, 1), "after {minutes} minutes more");
    }
    // Another router knows as well.
    drop(router);
    let mut router = server.router();
    server.route_all(&mut router);
    assert_eq!(count(&server, "p0"), 0);
    clock.advance(std::time::Duration::from_secs(61));
    server.route_all(&mut router);
    assert_eq!((count(&server, "p0"), waiting(&server)), (1, 0));
    assert!(!told.lock().unwrap().contains(&RoutedState::Waiting), "it is no failure");
}
