//! What a mail program does that checks mail, again and again over 8 connections: log in by an app password, select, fetch five
//! messages, mark one as deleted, expunge, append one of 10 KB, log out. With Dovecot (mdbox), in turn.
//!
//! Whatever is acknowledged is synced, on both sides. `cargo bench -p scrinium-server --bench imap_cycle`; `SCRINIUM_SECONDS` is how
//! long each round goes on, `SCRINIUM_ROUNDS` how many there are.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a benchmark stops at the first error")]

mod mail;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mail::imap::{Place, dated, ours_with_imap};
use mail::peers::Dovecot;
use scrinium_bench::{Against, Line, report, setting};

const CONNECTIONS: u64 = 8;
const MESSAGE_BYTES: usize = 10 << 10;

/// Messages of a mailbox, before and after each cycle.
const MESSAGES: u64 = 20;

fn main() {
    let lasts = Duration::from_secs(setting("SCRINIUM_SECONDS", 5));
    let rounds = setting("SCRINIUM_ROUNDS", 3);
    let Some(dovecot) = Dovecot::start() else { return };
    let (_ours, our_place, _) = ours_with_imap(CONNECTIONS, &[]);
    let places = [("ours", our_place), ("Dovecot", Place::open_to_all(dovecot.imap, CONNECTIONS))];
    let number = AtomicU64::new(0);
    for (_, place) in &places {
        for who in 0..CONNECTIONS {
            let mut client = place.log_in(who);
            for _ in 0..MESSAGES {
                client.append("INBOX", &dated(number.fetch_add(1, Ordering::Relaxed), MESSAGE_BYTES));
            }
        }
    }
    let mut rates: [Vec<f64>; 2] = Default::default();
    for round in 0..=rounds {
        for ((name, place), rates) in places.iter().zip(&mut rates) {
            let rate = cycles_a_second(place, lasts, &number);
            eprintln!("round {round}: {name}: {rate:.0} cycles/s");
            // The first round fills caches.
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    let [ours, theirs] = &rates;
    let against = Against::Measured("Dovecot, mdbox (asked for: 5)", theirs);
    let case = "8 connections, against Dovecot mdbox";
    report(&Line { name: "imap-cycle", case, values: ours, unit: "cycles/s", against });
}

fn cycles_a_second(place: &Place, lasts: Duration, number: &AtomicU64) -> f64 {
    let (began, done) = (Instant::now(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for who in 0..CONNECTIONS {
            let done = &done;
            scope.spawn(move || {
                while began.elapsed() < lasts {
                    let text = dated(number.fetch_add(1, Ordering::Relaxed), MESSAGE_BYTES);
                    cycle(place, who, &text);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
}

fn cycle(place: &Place, who: u64, text: &[u8]) {
    let mut client = place.log_in(who);
    client.ask("SELECT INBOX");
    let lines = client.ask("FETCH 1:5 (UID FLAGS ENVELOPE BODY.PEEK[])");
    assert!(lines >= 5, "{lines} lines of five messages");
    client.ask("STORE 1 +FLAGS (\\Deleted)");
    client.ask("EXPUNGE");
    client.append("INBOX", text);
    client.ask("LOGOUT");
}
