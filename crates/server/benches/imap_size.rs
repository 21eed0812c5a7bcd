//! What the commands of IMAP take in mailboxes of several sizes, and FETCH 1:* (FLAGS) also at Dovecot (mdbox).
//!
//! `cargo bench -p scrinium-server --bench imap_size`; `SCRINIUM_SIZES` are the sizes, ascending (10000,80000,1000000), and
//! `SCRINIUM_ROUNDS` how often each command is timed. What a server refuses is said, and left out.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

mod mail;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use mail::imap::{Client, Place, dated, fill, ours_with_imap};
use mail::peers::Dovecot;
use scrinium_bench::{Against, Line, report, setting, sizes};

/// The size at which Dovecot is asked too, and limits are given.
const COMPARED: u64 = 80_000;
const MESSAGE_BYTES: usize = 1 << 10;
const UNSEEN: u64 = 100;

/// One message has it.
const RARE: &str = "quinquagesimal";

/// A command: its name, the most milliseconds that are asked for at 80,000, and how many times as long it may take at the largest size
/// as at the smallest; without that it is given by the line.
const COMMANDS: [(&str, Option<f64>, Option<f64>); 10] = [
    ("SELECT", Some(1.0), Some(1.5)),
    ("STATUS", None, Some(1.5)),
    ("FETCH of 31 envelopes in a new session", Some(1.0), Some(2.0)),
    ("FETCH of new", None, Some(1.5)),
    ("FETCH 1:* (FLAGS)", None, None),
    ("STORE", None, Some(1.5)),
    ("UID SEARCH UNSEEN", Some(0.5), Some(1.5)),
    ("APPEND of 10 KB", Some(2.0), Some(1.5)),
    ("SORT REVERSE DATE", Some(100.0), None),
    ("SEARCH TEXT of a rare word", Some(10.0), None),
];

/// Milliseconds of a command, round by round.
type Times = BTreeMap<&'static str, Vec<f64>>;

fn main() {
    let rounds: usize = setting("SCRINIUM_ROUNDS", 11);
    let sizes = sizes(&[10_000, COMPARED, 1_000_000]);
    let (ours, place, _) = ours_with_imap(1, &[]);
    let mut there = 0;
    let mut by_size = Vec::new();
    for size in &sizes {
        fill_to(ours.lmtp, &place, there, *size);
        there = *size;
        let times = measure(&place, *size, rounds);
        for (command, values) in &times {
            eprintln!("{size} messages: {command}: {:.3} ms", scrinium_bench::median(values));
        }
        by_size.push((*size, times));
    }
    let theirs = if sizes.contains(&COMPARED) { of_dovecot(rounds) } else { None };
    for (command, asked_ms, grows) in COMMANDS {
        if let Some((_, times)) = by_size.iter().find(|(size, _)| *size == COMPARED) {
            report_compared(command, asked_ms, times, theirs.as_ref());
        }
        if let [(smallest, small), .., (largest, large)] = by_size.as_slice() {
            report_grown(command, grows, (*smallest, small), (*largest, large));
        }
    }
}

fn report_compared(command: &str, asked_ms: Option<f64>, times: &Times, theirs: Option<&Times>) {
    let Some(values) = times.get(command) else { return };
    let case = format!("{command}, {COMPARED}");
    let line = |against| report(&Line { name: "imap-size", case: &case, values, unit: "ms", against });
    match (asked_ms, theirs.and_then(|theirs| theirs.get(command))) {
        (Some(asked), _) => line(Against::Given("asked for", asked)),
        (None, Some(theirs)) => line(Against::Measured("Dovecot, mdbox (asked for: 1 at most)", theirs)),
        (None, None) => {}
    }
}

fn report_grown(
    command: &str,
    grows: Option<f64>,
    (smallest, small): (u64, &Times),
    (largest, large): (u64, &Times),
) {
    let (Some(small), Some(large)) = (small.get(command), large.get(command)) else { return };
    match grows {
        Some(most) => {
            let case = format!("{command}, {largest} against {smallest}");
            let against = format!("at {smallest} messages (asked for: {most} at most)");
            let against = Against::Measured(&against, small);
            report(&Line { name: "imap-size", case: &case, values: large, unit: "ms", against });
        }
        None => {
            let a_line = |times: &[f64], lines: u64| -> Vec<f64> {
                times.iter().map(|ms| ms * 1000.0 / lines as f64).collect()
            };
            let (small, large) = (a_line(small, smallest), a_line(large, largest));
            let case = format!("{command}, a line");
            let against = format!("at {smallest} messages");
            let against = Against::Measured(&against, &small);
            report(&Line { name: "imap-size", case: &case, values: &large, unit: "us", against });
        }
    }
}

/// Fills the mailbox up; all but the last hundred are read then, and one has the rare word.
fn fill_to(lmtp: SocketAddr, place: &Place, there: u64, size: u64) {
    let began = Instant::now();
    fill(lmtp, there..size - 1, MESSAGE_BYTES);
    let mut client = place.log_in(0);
    if there == 0 {
        let text = String::from_utf8(dated(size - 1, MESSAGE_BYTES)).unwrap();
        client.append("INBOX", text.replacen("\r\n\r\n", &format!("\r\n\r\n{RARE}\r\n"), 1).as_bytes());
    } else {
        client.append("INBOX", &dated(size - 1, MESSAGE_BYTES));
    }
    client.ask("SELECT INBOX");
    let last = size - UNSEEN;
    for first in (there.max(1)..=last).step_by(5_000) {
        client.ask(&format!("STORE {first}:{} +FLAGS.SILENT (\\Seen)", (first + 4_999).min(last)));
    }
    eprintln!("{size} messages are there, after {:.0?}", began.elapsed());
}

fn of_dovecot(rounds: usize) -> Option<Times> {
    let dovecot = Dovecot::start()?;
    let place = Place::open_to_all(dovecot.imap, 1);
    fill_to(dovecot.lmtp, &place, 0, COMPARED);
    let mut client = place.log_in(0);
    client.ask("SELECT INBOX");
    let mut times = Times::new();
    for round in 0..=rounds {
        let took = timed(&mut client, "FETCH 1:* (FLAGS)");
        if round > 0 {
            times.entry("FETCH 1:* (FLAGS)").or_default().extend(took);
        }
    }
    Some(times)
}

/// Milliseconds until the answer is over; `None`, with a word on why, where the server refuses.
fn timed(client: &mut Client<TcpStream>, command: &str) -> Option<f64> {
    let began = Instant::now();
    match client.answer(command) {
        Ok(_) => Some(began.elapsed().as_secs_f64() * 1000.0),
        Err(refusal) => {
            eprintln!("{command}: {refusal}");
            None
        }
    }
}

fn measure(place: &Place, size: u64, rounds: usize) -> Times {
    let mut times = Times::new();
    for round in 0..=rounds {
        let mut client = place.log_in(0);
        let mut took = Vec::new();
        took.push(("SELECT", timed(&mut client, "SELECT INBOX")));
        let envelopes = format!("FETCH {}:{} (ENVELOPE)", size / 2, size / 2 + 30);
        took.push(("FETCH of 31 envelopes in a new session", timed(&mut client, &envelopes)));
        took.push(("STATUS", timed(&mut client, "STATUS INBOX (MESSAGES UNSEEN UIDNEXT)")));
        took.push(("FETCH 1:* (FLAGS)", timed(&mut client, "FETCH 1:* (FLAGS)")));
        took.push(("UID SEARCH UNSEEN", timed(&mut client, "UID SEARCH UNSEEN")));
        let flag = if round % 2 == 0 { "+FLAGS" } else { "-FLAGS" };
        took.push(("STORE", timed(&mut client, &format!("STORE {} {flag} (\\Flagged)", size / 2))));
        took.push(("SORT REVERSE DATE", timed(&mut client, "SORT (REVERSE DATE) UTF-8 ALL")));
        took.push(("SEARCH TEXT of a rare word", timed(&mut client, &format!("SEARCH TEXT {RARE}"))));
        let text = dated(size + round as u64, 10 << 10);
        let began = Instant::now();
        client.append("INBOX", &text);
        took.push(("APPEND of 10 KB", Some(began.elapsed().as_secs_f64() * 1000.0)));
        client.ask("NOOP");
        took.push(("FETCH of new", timed(&mut client, "FETCH * (UID FLAGS BODY.PEEK[])")));
        // The next size finds what this one has found, and a hundred are unread.
        client.ask("STORE * +FLAGS.SILENT (\\Deleted)");
        client.ask("EXPUNGE");
        client.ask("LOGOUT");
        if round > 0 {
            for (name, took) in took {
                times.entry(name).or_default().extend(took);
            }
        }
    }
    times
}
