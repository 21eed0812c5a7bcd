//! Messages, replies and seeds for the tests.

use scrinium_mail_queue::outcome::{SessionEnd, SessionReport};
use scrinium_mail_queue::{
    Destination, Envelope, NewMessage, NewRecipient, Priority, QueueEntry, QueuePolicy,
};
use scrinium_smtp_wire::{Mailbox, Reply};

/// When the tests begin: 2026-11-26, in the morning.
pub(crate) const START_MS: u64 = 1_795_683_600_000;

pub(crate) const SECOND_MS: u64 = 1_000;
pub(crate) const MINUTE_MS: u64 = 60 * SECOND_MS;
pub(crate) const HOUR_MS: u64 = 60 * MINUTE_MS;
pub(crate) const DAY_MS: u64 = 24 * HOUR_MS;

/// The seed of a run: `SCRINIUM_SEED`, or the usual one. Printed, so that a failure can be repeated.
pub(crate) fn seed() -> u64 {
    let seed = std::env::var("SCRINIUM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_126);
    println!("SCRINIUM_SEED={seed}");
    seed
}

pub(crate) fn mailbox(text: &str) -> Mailbox {
    Mailbox::parse(text.as_bytes()).unwrap()
}

pub(crate) fn to(address: &str) -> NewRecipient {
    NewRecipient { address: mailbox(address), original: None, notify: None }
}

pub(crate) fn message(id: &str, sender: Option<&str>, arrived_ms: u64) -> NewMessage {
    let policy = QueuePolicy::default();
    NewMessage {
        id: id.to_owned(),
        envelope: Envelope {
            sender: sender.map(mailbox),
            message_id: Some(format!("<{id}@example.org>")),
            ..Envelope::default()
        },
        size_bytes: 10_000,
        arrived_ms,
        release_ms: None,
        lifetime_ms: policy.lifetime_of(sender.is_none()),
        priority: Priority::Normal,
        hold: None,
    }
}

pub(crate) fn by_domain(address: &Mailbox) -> Destination {
    Destination::domain(&address.domain().to_string())
}

pub(crate) fn entry(id: &str, sender: Option<&str>, recipients: &[&str]) -> QueueEntry {
    let recipients = recipients.iter().map(|address| to(address)).collect();
    let mut entries = message(id, sender, START_MS).split(recipients, by_domain).unwrap();
    assert_eq!(entries.len(), 1);
    entries.remove(0)
}

pub(crate) fn reply(text: &str) -> Reply {
    let (code, text) = text.split_once(' ').unwrap();
    Reply::new(code.parse().unwrap(), text)
}

/// A session that ended so, behind these answers to RCPT.
pub(crate) fn session(recipients: &[&str], end: SessionEnd) -> SessionReport {
    SessionReport {
        host: Some("mx.example.net".to_owned()),
        has_dsn: true,
        is_final: false,
        recipients: recipients.iter().map(|text| reply(text)).collect(),
        end,
    }
}
