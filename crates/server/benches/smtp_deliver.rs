//! Messages of 10 KB by SMTP over 32 connections into people's mail files, with Postfix and Dovecot, and with Dovecot's LMTP alone.
//!
//! Each side in turn gets messages for some seconds; the time counts until the last is in its recipient's mailbox. Whatever is
//! acknowledged is synced, on all sides. `cargo bench -p scrinium-server --bench smtp_deliver`; `SCRINIUM_SECONDS` is how long
//! each round sends, `SCRINIUM_ROUNDS` how many there are.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a benchmark stops at the first error")]

mod mail;

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use mail::ours::Ours;
use mail::peers::Peers;
use mail::sender::{Dialect, send_for};
use mail::until_delivered;
use scrinium_bench::{Against, Line, report, setting};

const CONNECTIONS: u64 = 32;
const MESSAGE_BYTES: usize = 10 << 10;

fn main() {
    let lasts = Duration::from_secs(setting("SCRINIUM_SECONDS", 5));
    let rounds = setting("SCRINIUM_ROUNDS", 3);
    let Some(peers) = Peers::start() else { return };
    let mut ours = Ours::start(&[]);
    let number = AtomicU64::new(0);
    let mut rates: [Vec<f64>; 3] = Default::default();
    for round in 0..=rounds {
        let mut measured = Vec::new();
        let before = ours.delivered();
        let sent = send_for((ours.smtp, Dialect::Smtp), CONNECTIONS, lasts, (&number, MESSAGE_BYTES));
        let took = until_delivered(sent.began, before + sent.messages, || ours.delivered());
        measured.push((sent, took));
        for (to, dialect) in [(peers.smtp, Dialect::Smtp), (peers.lmtp, Dialect::Lmtp)] {
            let before = peers.delivered();
            let sent = send_for((to, dialect), CONNECTIONS, lasts, (&number, MESSAGE_BYTES));
            let took = until_delivered(sent.began, before + sent.messages, || peers.delivered());
            measured.push((sent, took));
        }
        for ((name, rates), (sent, took)) in
            ["ours", "Postfix and Dovecot", "Dovecot LMTP"].iter().zip(&mut rates).zip(measured)
        {
            let rate = sent.messages as f64 / took.as_secs_f64();
            eprintln!(
                "round {round}: {name}: {} messages, acknowledged in {:.2?}, delivered in {took:.2?}: {rate:.0}/s",
                sent.messages, sent.took
            );
            // The first round makes mailboxes and fills caches.
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    let [ours, both, lmtp] = &rates;
    for (case, against, theirs) in [
        ("10 KB, 32 connections, against Postfix and Dovecot", "Postfix and Dovecot (asked for: 10)", both),
        ("10 KB, 32 connections, against Dovecot LMTP", "Dovecot's LMTP (asked for: 3)", lmtp),
    ] {
        let against = Against::Measured(against, theirs);
        report(&Line { name: "smtp-deliver", case, values: ours, unit: "messages/s", against });
    }
}
