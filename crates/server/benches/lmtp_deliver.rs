//! Messages of 10 KB by LMTP over 8 connections into people's mail files, with Dovecot's LMTP: how many, and what one costs of the
//! processor.
//!
//! Each side in turn gets messages for some seconds; the time counts until the last is in its recipient's mailbox.
//! `cargo bench -p scrinium-server --bench lmtp_deliver`; `SCRINIUM_SECONDS` is how long each round sends, `SCRINIUM_ROUNDS` how
//! many there are.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

mod mail;

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use mail::ours::Ours;
use mail::peers::Peers;
use mail::sender::{Dialect, send_for};
use mail::until_delivered;
use scrinium_bench::{Against, Line, report, setting};

const CONNECTIONS: u64 = 8;
const MESSAGE_BYTES: usize = 10 << 10;

fn main() {
    let lasts = Duration::from_secs(setting("SCRINIUM_SECONDS", 5));
    let rounds = setting("SCRINIUM_ROUNDS", 3);
    let Some(peers) = Peers::start() else { return };
    let mut ours = Ours::start(&[]);
    let number = AtomicU64::new(0);
    let (mut rates, mut costs): ([Vec<f64>; 2], [Vec<f64>; 2]) = Default::default();
    for round in 0..=rounds {
        let (before, ticks) = (ours.delivered(), ours.ticks());
        let sent = send_for((ours.lmtp, Dialect::Lmtp), CONNECTIONS, lasts, (&number, MESSAGE_BYTES));
        let took = until_delivered(sent.began, before + sent.messages, || ours.delivered());
        let of_us = (sent.messages, took, ours.ticks() - ticks);
        let (before, ticks) = (peers.delivered(), peers.dovecot_ticks());
        let sent = send_for((peers.lmtp, Dialect::Lmtp), CONNECTIONS, lasts, (&number, MESSAGE_BYTES));
        let took = until_delivered(sent.began, before + sent.messages, || peers.delivered());
        let of_them = (sent.messages, took, peers.dovecot_ticks().saturating_sub(ticks));
        for (place, (name, (messages, took, ticks))) in
            [("ours", of_us), ("Dovecot", of_them)].into_iter().enumerate()
        {
            let rate = messages as f64 / took.as_secs_f64();
            let cost_us = ticks as f64 * 10_000.0 / messages as f64;
            eprintln!(
                "round {round}: {name}: {messages} messages in {took:.2?}: {rate:.0}/s, {cost_us:.0} us of processor each"
            );
            // The first round makes mailboxes and fills caches.
            if round > 0 {
                rates[place].push(rate);
                costs[place].push(cost_us);
            }
        }
    }
    let [ours, theirs] = &rates;
    let against = Against::Measured("Dovecot's LMTP, mdbox (asked for: 5)", theirs);
    let case = "8 connections, messages";
    report(&Line { name: "lmtp-deliver", case, values: ours, unit: "messages/s", against });
    let [ours, theirs] = &costs;
    let against = Against::Measured("Dovecot's LMTP, mdbox (asked for: a third at most)", theirs);
    let case = "8 connections, CPU a message";
    report(&Line { name: "lmtp-deliver", case, values: ours, unit: "us", against });
}
