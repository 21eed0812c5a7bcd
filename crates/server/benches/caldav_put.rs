//! Events stored by CalDAV over 8 connections, each into a calendar of its own, with Radicale. What is acknowledged is synced, on both sides.
//!
//! `cargo bench -p scrinium-server --bench caldav_put`; `SCRINIUM_SECONDS` is how long each round stores, `SCRINIUM_ROUNDS` how many
//! there are.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a benchmark stops at the first error")]

mod calendar;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use calendar::{Client, Ours, Radicale, calendar_of, event, person};
use scrinium_bench::{Against, Line, report, setting};

const CLIENTS: u64 = 8;

/// Asked for, in a second.
const ASKED_FOR: f64 = 2_000.0;

/// Where people store, and by which passwords.
struct Place {
    name: &'static str,
    address: SocketAddr,
    passwords: Vec<String>,
    /// What the path of somebody's calendar has before and behind the name.
    path: (&'static str, &'static str),
}

impl Place {
    fn client(&self, number: usize) -> (Client, String) {
        let name = person(number as u64);
        let client = Client::new(self.address, &name, self.passwords.get(number).unwrap());
        (client, format!("{}{name}{}", self.path.0, self.path.1))
    }
}

fn main() {
    let lasts = Duration::from_secs_f64(setting("SCRINIUM_SECONDS", 5.0));
    let rounds = setting("SCRINIUM_ROUNDS", 3);
    let mut ours = Ours::start(CLIENTS);
    let passwords = (0..CLIENTS).map(|number| ours.password(&person(number))).collect();
    let own = ("/_dav/calendars/", "/calendar/");
    let mut places = vec![Place { name: "ours", address: ours.server.address(), passwords, path: own }];
    let radicale = Radicale::start();
    if let Some(radicale) = &radicale {
        let passwords = (0..CLIENTS).map(|_| "any".to_owned()).collect();
        let theirs = ("/", "/calendar/");
        places.push(Place { name: "Radicale", address: radicale.address, passwords, path: theirs });
    }
    places.iter().for_each(prepare);
    let number = AtomicU64::new(0);
    let mut rates: [Vec<f64>; 2] = Default::default();
    for round in 0..=rounds {
        for (place, rates) in places.iter().zip(&mut rates) {
            let rate = stored_a_second(place, lasts, &number);
            eprintln!("round {round}: {}: {rate:.0} events/s", place.name);
            // The first round fills caches.
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    let [ours, theirs] = &rates;
    let line =
        |case, against| report(&Line { name: "caldav-put", case, values: ours, unit: "events/s", against });
    if radicale.is_some() {
        line("8 clients, against Radicale", Against::Measured("Radicale (asked for: 10)", theirs));
    }
    line("8 clients, asked for", Against::Given("asked for", ASKED_FOR));
}

fn prepare(place: &Place) {
    for number in 0..place.passwords.len() {
        let (mut client, path) = place.client(number);
        // Ours has one for everybody who comes.
        let (status, answer) = client.ask(("PROPFIND", &path), "Depth: 0\r\n", "");
        if status == 404 {
            client.expect(("MKCALENDAR", &path), "", "");
        } else {
            assert_eq!(status, 207, "{answer}");
        }
    }
}

fn stored_a_second(place: &Place, lasts: Duration, number: &AtomicU64) -> f64 {
    let (began, stored) = (Instant::now(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for who in 0..place.passwords.len() {
            let stored = &stored;
            scope.spawn(move || {
                let (mut client, path) = place.client(who);
                while began.elapsed() < lasts {
                    let number = number.fetch_add(1, Ordering::Relaxed);
                    let uid = format!("event-{number}");
                    let day = i64::try_from(number % 700).unwrap_or(0) - 350;
                    let body = calendar_of(&event(&uid, day, number % 24, ""));
                    let path = format!("{path}{uid}.ics");
                    client.expect(
                        ("PUT", &path),
                        "Content-Type: text/calendar\r\nIf-None-Match: *\r\n",
                        &body,
                    );
                    stored.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    stored.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
}
