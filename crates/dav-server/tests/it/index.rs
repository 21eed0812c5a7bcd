//! The index of collections is derived: whatever is left of it, it becomes what it would be if it were made again.

use proptest::prelude::*;
use scrinium_contents::keys::successor;
use scrinium_store::{Batch, Direction, Family, KeyRange};

use crate::common::{CALENDAR, CONTACTS, Server, event};
use crate::sync::{carry_out, step};

type Row = (Vec<u8>, Vec<u8>);

const OTHER: &str = "/_dav/calendars/ada/other/";

/// What the keys of all indexes of ada's collections begin with.
fn beginning(server: &Server) -> [u8; 8] {
    let database = server.databases.get("mail/ada").unwrap();
    let mut beginning = [0xff; 8];
    beginning[..4].copy_from_slice(&database.database().number().to_be_bytes());
    beginning[7] = 0xfc;
    beginning
}

fn rows(server: &Server) -> Vec<Row> {
    let database = server.databases.get("mail/ada").unwrap();
    let (from, snapshot) = (beginning(server), database.database().store().snapshot());
    let to = successor(&from);
    let range = KeyRange { from: &from, to: Some(&to) };
    let mut cursor = snapshot.cursor(Family::DerivedScan, range, Direction::Forward);
    let mut rows = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        rows.push((key.to_vec(), value.to_vec()));
    }
    rows
}

/// As after a crash, which leaves what is derived as it stood some time before.
fn set_back(server: &Server, rows: &[Row]) {
    let database = server.databases.get("mail/ada").unwrap();
    let from = beginning(server);
    let mut batch = Batch::new();
    batch.delete_range(Family::DerivedScan, &from, &successor(&from));
    rows.iter().for_each(|(key, value)| batch.put(Family::DerivedScan, key, value));
    database.database().store().derived().write(batch).unwrap();
}

/// What two programs are shown, and then the rows, but for how far they reach.
fn looked_at(server: &Server) -> (Vec<String>, Vec<Row>) {
    let shown = [CALENDAR, OTHER, CONTACTS].map(|path| server.ask("PROPFIND", path, "").text());
    let mut rows = rows(server);
    rows.retain(|(key, _)| key[12] != b's');
    (shown.to_vec(), rows)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn what_is_left_of_an_index_becomes_what_is_made_again(
        before in proptest::collection::vec(step(), 1..20),
        after in proptest::collection::vec(step(), 1..20),
    ) {
        let server = Server::start();
        server.ask("MKCALENDAR", OTHER, "").expect(201);
        let card = "BEGIN:VCARD\r\nVERSION:4.0\r\nUID:c1\r\nFN:Bob\r\nEMAIL:bob@else.example\r\nEND:VCARD\r\n";
        server.ask("PUT", &format!("{CONTACTS}c1.vcf"), card).expect(201);
        let weekly = event("series", ";TZID=Europe/Berlin:20250105T090000", "RRULE:FREQ=WEEKLY\r\n");
        server.put("series.ics", &weekly).expect(201);
        before.iter().for_each(|step| carry_out(&server, step));
        looked_at(&server);
        let early = rows(&server);
        prop_assert!(early.len() > 60, "{}", early.len());
        after.iter().for_each(|step| carry_out(&server, step));
        let found = looked_at(&server);
        for left in [early, Vec::new()] {
            set_back(&server, &left);
            prop_assert_eq!(&looked_at(&server), &found);
        }
    }
}

#[test]
fn a_dropped_folder_leaves_no_index() {
    let server = Server::start();
    let before = looked_at(&server).1;
    let path = "/_dav/calendars/ada/gone/";
    for by_program in [true, false] {
        server.ask("MKCALENDAR", path, "").expect(201);
        let event = event("gone", ":20260310T100000Z", "");
        server.ask("PUT", &format!("{path}1.ics"), event).expect(201);
        assert!(rows(&server).len() > before.len());
        if by_program {
            server.ask_as("ada", "DELETE", path, &[], "").expect(204);
        } else {
            let database = server.databases.get("mail/ada").unwrap();
            database.database().drop_folder("Calendars\\gone").unwrap();
            // As the next server does that opens the database.
            server.ask_of(&server.fresh(), "ada", ("PROPFIND", CALENDAR), &[("depth", "1")], "");
        }
        assert_eq!(looked_at(&server).1, before);
    }
}
