//! When many people are free in a week, asked as programs ask it: in one question to the outbox.
//!
//! `cargo bench -p scrinium-server --bench free_time`; `SCRINIUM_PEOPLE` is how many they are, `SCRINIUM_EVENTS` how many events each has in ten
//! years, `SCRINIUM_ROUNDS` how many rounds there are, and `SCRINIUM_REQUESTS` how many questions a round has.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a benchmark stops at the first error")]

mod calendar;

use std::time::Instant;

use calendar::{Client, DOMAIN, Ours, WEEK, person, ten_years};
use scrinium_bench::{Against, Line, median, report, setting};

/// Asked for.
const ASKED_MS: f64 = 20.0;

fn main() {
    let (people, events): (u64, u64) = (setting("SCRINIUM_PEOPLE", 200), setting("SCRINIUM_EVENTS", 1_000));
    let (rounds, requests): (usize, usize) =
        (setting("SCRINIUM_ROUNDS", 7), setting("SCRINIUM_REQUESTS", 20));
    let mut ours = Ours::start(people);
    let folder = scrinium_bench::folder();
    let file = folder.path().join("events.ics");
    std::fs::write(&file, ten_years(events, "event")).unwrap();
    let began = Instant::now();
    for number in 0..people {
        ours.import(&file, &person(number), "calendar");
    }
    eprintln!("{people} people have {events} events each, after {:.1?}", began.elapsed());
    let asker = person(0);
    let password = ours.password(&asker);
    let mut client = Client::new(ours.server.address(), &asker, &password);
    let path = format!("/_dav/calendars/{asker}/outbox/");
    let question = question(people);
    let mut ask = || {
        let began = Instant::now();
        let answer = client.expect(("POST", &path), "Content-Type: text/calendar\r\n", &question);
        let took = began.elapsed().as_secs_f64() * 1_000.0;
        let busy = answer.matches("FREEBUSY;").count() + answer.matches("FREEBUSY:").count();
        let told = answer.matches("2.0;Success").count() as u64;
        assert!(
            told == people && busy as u64 >= people,
            "{told} of {people} people, {busy} lines: {answer:.500}"
        );
        took
    };
    eprintln!("the first question takes {:.1} ms", ask());
    let round = |_| {
        let took: Vec<f64> = (0..requests).map(|_| ask()).collect();
        median(&took)
    };
    let times: Vec<f64> = (0..rounds).map(round).collect();
    let case = format!("{people} people, a week");
    let against = Against::Given("asked for", ASKED_MS);
    report(&Line { name: "free-time", case: &case, values: &times, unit: "ms", against });
}

fn question(people: u64) -> String {
    let (from, to) = WEEK;
    let attendee = |number| format!("ATTENDEE:mailto:{}@{DOMAIN}\r\n", person(number));
    let attendees: String = (0..people).map(attendee).collect();
    format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Bench//EN\r\nMETHOD:REQUEST\r\nBEGIN:VFREEBUSY\r\nUID:question\r\n\
         DTSTAMP:20260101T000000Z\r\nDTSTART:{from}\r\nDTEND:{to}\r\nORGANIZER:mailto:{}@{DOMAIN}\r\n{attendees}\
         END:VFREEBUSY\r\nEND:VCALENDAR\r\n",
        person(0)
    )
}
