//! What people ask of the queue: what waits where and why, and what became of a message.

use std::collections::BTreeMap;
use std::fmt;

use crate::entry::{Queue, QueueEntry};
use crate::message::{Destination, Language};
use crate::notice::NoticeKind;
use crate::outcome::Outcome;
use crate::record::{Change, Record};
use crate::report::explain;
use crate::scheduler::DestinationStatus;

/// What waits for one destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DestinationSummary {
    /// Entries in each queue.
    pub counts: BTreeMap<Queue, u64>,
    /// Recipients who wait.
    pub recipients: u64,
    /// Bytes of the messages.
    pub size_bytes: u64,
    /// When the oldest message was accepted.
    pub oldest_ms: Option<u64>,
    /// When something is tried next.
    pub next_ms: Option<u64>,
    /// Why the entry that was tried last waits.
    pub reason: Option<String>,
    reason_ms: u64,
}

impl DestinationSummary {
    /// Adds an entry.
    pub fn add(&mut self, entry: &QueueEntry) {
        let queue = entry.queue();
        if queue == Queue::Done {
            return;
        }
        *self.counts.entry(queue).or_default() += 1;
        let waiting = entry.waiting();
        self.recipients += waiting.len() as u64;
        self.size_bytes = self.size_bytes.saturating_add(entry.size_bytes);
        self.oldest_ms = Some(self.oldest_ms.map_or(entry.arrived_ms, |oldest| oldest.min(entry.arrived_ms)));
        if matches!(queue, Queue::Incoming | Queue::Deferred) {
            self.next_ms = Some(self.next_ms.map_or(entry.due_ms, |next| next.min(entry.due_ms)));
        }
        // The due time is the later, the later the attempt was.
        if let Some(outcome) = waiting_outcome(entry).filter(|_| entry.due_ms >= self.reason_ms) {
            self.reason = Some(reason(outcome));
            self.reason_ms = entry.due_ms;
        }
    }

    /// Entries in all queues.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.counts.values().sum()
    }

    /// What is known of the destination itself: a closed one is tried when it opens, whatever the entries say.
    pub fn refine(&mut self, status: &DestinationStatus) {
        if let (Some(until_ms), Some(next_ms)) = (status.closed_until_ms, self.next_ms) {
            self.next_ms = Some(next_ms.max(until_ms));
        }
    }
}

/// What waits, by destination: `show queue`.
#[must_use]
pub fn by_destination<'a>(
    entries: impl IntoIterator<Item = &'a QueueEntry>,
) -> BTreeMap<Destination, DestinationSummary> {
    let mut destinations: BTreeMap<Destination, DestinationSummary> = BTreeMap::new();
    for entry in entries {
        if entry.queue() != Queue::Done {
            destinations.entry(entry.destination.clone()).or_default().add(entry);
        }
    }
    destinations
}

/// The outcome that keeps an entry waiting.
fn waiting_outcome(entry: &QueueEntry) -> Option<&Outcome> {
    entry.recipient(*entry.waiting().first()?)?.outcome.as_ref()
}

/// Why, in words, with the server's answer.
fn reason(outcome: &Outcome) -> String {
    let sentence = explain(outcome, Language::English);
    match &outcome.reply {
        Some(reply) => format!("{sentence} It answered: {reply}"),
        None => sentence,
    }
}

/// Why an entry is where it is, in a sentence.
#[must_use]
pub fn why(entry: &QueueEntry) -> String {
    match (entry.queue(), &entry.hold) {
        (Queue::Hold, Some(hold)) if hold.reason.is_empty() => format!("Kept back by {}.", hold.by),
        (Queue::Hold, Some(hold)) => format!("Kept back by {}: {}", hold.by, hold.reason),
        (Queue::Incoming, _) if entry.release_ms.is_some_and(|release| release > entry.arrived_ms) => {
            "Waits for the time that its sender chose.".to_owned()
        }
        (Queue::Incoming, _) => "Waits for its first attempt.".to_owned(),
        (Queue::Active, _) => "Is being sent.".to_owned(),
        (Queue::Dead, _) => {
            let last = entry.recipients.iter().filter_map(|recipient| recipient.outcome.as_ref()).next_back();
            let reason = last.map(reason).unwrap_or_default();
            format!("Could not be delivered, and has no sender who could be notified. {reason}")
                .trim_end()
                .to_owned()
        }
        (Queue::Done, _) => "Is done.".to_owned(),
        (Queue::Deferred | Queue::Hold, _) => {
            waiting_outcome(entry).map_or_else(|| "Waits for another attempt.".to_owned(), reason)
        }
    }
}

/// What an administrator says to the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueCommand {
    /// `tell router hold`, with a reason.
    Hold(String),
    /// `tell router release`.
    Release,
    /// `tell router retry`.
    Retry,
    /// `tell router delete`; with a notice to the sender or without.
    Delete {
        /// The sender hears of it.
        notifies: bool,
    },
}

impl QueueCommand {
    /// The record that carries it out for an entry; `None` if the entry is not in a queue where it means anything.
    #[must_use]
    pub fn record(&self, entry: &QueueEntry, by: &str, now_ms: u64) -> Option<Record> {
        match self {
            Self::Hold(reason) => entry.keep_back(now_ms, by, reason),
            Self::Release => entry.release(now_ms, by),
            Self::Retry => entry.retry(now_ms, by),
            Self::Delete { notifies } => entry.delete(now_ms, by, *notifies),
        }
    }

    /// Why it does nothing to an entry.
    #[must_use]
    pub fn refusal(&self, entry: &QueueEntry) -> String {
        let queue = entry.queue();
        let hint = match (self, queue) {
            (_, Queue::Done) => "nothing is left to do for it",
            (Self::Delete { .. } | Self::Retry, Queue::Active) => {
                "it is being sent; repeat the command in a minute"
            }
            (Self::Retry, Queue::Hold) => "it is kept back; release it first",
            (Self::Hold(_), Queue::Hold) => "it is kept back already",
            (Self::Release, _) => "it is not kept back",
            _ => "nobody waits for it any more",
        };
        format!("{}: {hint}", entry.id)
    }
}

/// Which entries a command is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All.
    All,
    /// An entry, or all entries of a message, by id or Message-ID.
    Message(String),
    /// All for a host, as `show queue` names it.
    Destination(String),
    /// All from an address; `<>` is the null sender.
    Sender(String),
    /// All that still wait for this recipient.
    Recipient(String),
}

impl Selection {
    /// Whether an entry is meant.
    #[must_use]
    pub fn includes(&self, entry: &QueueEntry) -> bool {
        let envelope = &entry.envelope;
        match self {
            Self::All => true,
            Self::Message(id) => {
                entry.id == *id || entry.message == *id || envelope.message_id.as_deref() == Some(id)
            }
            Self::Destination(name) => {
                let destination = &entry.destination;
                destination.host.eq_ignore_ascii_case(name)
                    || destination.to_string().eq_ignore_ascii_case(name)
            }
            Self::Sender(address) => match &envelope.sender {
                None => address == "<>",
                Some(sender) => sender.to_string().eq_ignore_ascii_case(address),
            },
            Self::Recipient(address) => entry.waiting().into_iter().any(|place| {
                entry
                    .recipient(place)
                    .is_some_and(|recipient| recipient.address.to_string().eq_ignore_ascii_case(address))
            }),
        }
    }
}

/// One line of `mail trace`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLine {
    /// When.
    pub at_ms: u64,
    /// The entry.
    pub entry: String,
    /// What happened.
    pub words: String,
}

impl fmt::Display for TraceLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = i64::try_from(self.at_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        write!(formatter, "{:.0}  {}  {}", time.unwrap_or_default(), self.entry, self.words)
    }
}

/// What the records of a message say, in their order: where is it?
#[must_use]
pub fn trace<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<TraceLine> {
    let mut entries: BTreeMap<&str, &QueueEntry> = BTreeMap::new();
    let mut lines = Vec::new();
    for record in records {
        if let Change::Queued(entry) = &record.change {
            entries.insert(&record.entry, entry);
        }
        let entry = entries.get(record.entry.as_str()).copied();
        for words in traced(&record.change, entry) {
            lines.push(TraceLine { at_ms: record.at_ms, entry: record.entry.clone(), words });
        }
    }
    lines
}

fn traced(change: &Change, entry: Option<&QueueEntry>) -> Vec<String> {
    let named = |places: &[u32]| {
        let name = |place: &u32| {
            let recipient = entry.and_then(|entry| entry.recipient(*place));
            recipient.map_or_else(|| format!("recipient {place}"), |recipient| recipient.address.to_string())
        };
        match places {
            [one] => name(one),
            [one, two] => format!("{} and {}", name(one), name(two)),
            [first, ..] => format!("{} and {} more", name(first), places.len() - 1),
            [] => "nobody".to_owned(),
        }
    };
    match change {
        Change::Queued(entry) => {
            let count = entry.recipients.len();
            let recipients =
                if count == 1 { "1 recipient".to_owned() } else { format!("{count} recipients") };
            vec![format!("queued for {} at {}", recipients, entry.destination)]
        }
        Change::Began { attempt } => vec![format!("attempt {attempt} began")],
        Change::Ended { outcomes, .. } => outcomes
            .iter()
            .map(|group| {
                format!("{}: {} ({})", named(&group.recipients), reason(&group.outcome), group.outcome.status)
            })
            .collect(),
        Change::Noticed { kind, recipients, .. } => {
            let what = match kind {
                NoticeKind::Failure => "failure",
                NoticeKind::Delay => "delay",
                NoticeKind::Success => "delivery",
                NoticeKind::Relayed => "passing on",
            };
            vec![format!("the sender was notified of the {what} for {}", named(recipients))]
        }
        Change::Expired => vec!["given up at the end of its lifetime".to_owned()],
        Change::Held { by, reason } if reason.is_empty() => vec![format!("kept back by {by}")],
        Change::Held { by, reason } => vec![format!("kept back by {by}: {reason}")],
        Change::Released { by } => vec![format!("released by {by}")],
        Change::Retried { by } => vec![format!("tried again at once, by {by}")],
        Change::Deleted { by, .. } => vec![format!("deleted by {by}")],
        Change::Removed => vec!["done, and removed from the queue".to_owned()],
    }
}
