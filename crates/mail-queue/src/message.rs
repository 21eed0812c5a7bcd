//! A message as it is handed to the queue, and how it is split into entries.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use scrinium_smtp_wire::{Domain, Hold, Mailbox, Notify, OriginalRecipient, Return};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::encoded;
use crate::entry::{ENTRY_RECIPIENTS_MAX, HoldMark, QueueEntry, Recipient, RecipientState};
use crate::verp::verp_encode;

/// A longer id is refused.
pub const ID_MAX_BYTES: usize = 240;

/// A message with more recipients is refused.
pub const MESSAGE_RECIPIENTS_MAX: usize = 50_000;

/// Texts of an envelope: a Message-ID, a person's name, a transport, a host.
const TEXT_MAX_BYTES: usize = 1_000;

/// In which language a sender reads notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Language {
    #[default]
    English,
    German,
}

/// How urgent a message is. Among those that are due, of seven that go four are urgent, two normal and one can wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Priority {
    High,
    #[default]
    Normal,
    Low,
}

impl Priority {
    /// From MT-PRIORITY, -9 to 9 (RFC 6710).
    #[must_use]
    pub fn of_transfer(priority: i8) -> Self {
        match priority {
            1.. => Self::High,
            0 => Self::Normal,
            ..0 => Self::Low,
        }
    }
}

/// Where an entry goes: what has its own concurrency, connections and pauses.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Destination {
    /// The transport's name, `smtp` for one.
    pub transport: String,
    /// A domain in lower case, or the relay host.
    pub host: String,
    /// A message with REQUIRETLS never shares a connection with one without (RFC 8689).
    #[serde(default, skip_serializing_if = "is_false")]
    pub require_tls: bool,
}

impl Destination {
    /// The destination of a domain by MX.
    #[must_use]
    pub fn domain(domain: &str) -> Self {
        Self { transport: "smtp".to_owned(), host: domain.to_ascii_lowercase(), require_tls: false }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.transport != "smtp" {
            write!(formatter, "{}:", self.transport)?;
        }
        formatter.write_str(&self.host)?;
        formatter.write_str(if self.require_tls { " (TLS required)" } else { "" })
    }
}

/// What is the same for all recipients of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Envelope {
    /// Whom the message is from; `None` is the null sender, who is never notified.
    #[serde(with = "encoded::optional_mailbox", skip_serializing_if = "Option::is_none")]
    pub sender: Option<Mailbox>,
    /// ENVID (RFC 3461, section 4.4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope_id: Option<String>,
    /// RET (RFC 3461, section 4.3).
    #[serde(with = "encoded::return_content", skip_serializing_if = "Option::is_none")]
    pub return_content: Option<Return>,
    /// SMTPUTF8 (RFC 6531).
    #[serde(skip_serializing_if = "is_false")]
    pub utf8: bool,
    /// BODY=8BITMIME (RFC 6152).
    #[serde(skip_serializing_if = "is_false")]
    pub eight_bit: bool,
    /// REQUIRETLS (RFC 8689).
    #[serde(skip_serializing_if = "is_false")]
    pub require_tls: bool,
    /// The message's Message-ID, in its brackets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The person who submitted it, if one logged in. His or her messages share a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitter: Option<String>,
    /// The message itself is a report, whatever its sender: a multipart/report, for one.
    #[serde(skip_serializing_if = "is_false")]
    pub is_report: bool,
    /// Each recipient gets a sender of his own, so that a bounce names him.
    #[serde(skip_serializing_if = "is_false")]
    pub verp: bool,
    /// The sender's language.
    pub language: Language,
}

impl Envelope {
    /// Whether nobody may be notified of what becomes of it (RFC 5321, section 6.1).
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.sender.is_none() || self.is_report
    }

    /// Who shares a turn: the person who submitted, else the sender.
    #[must_use]
    pub fn turn(&self) -> String {
        match (&self.submitter, &self.sender) {
            (Some(person), _) => person.clone(),
            (None, Some(sender)) => sender.to_string(),
            (None, None) => "<>".to_owned(),
        }
    }
}

/// Whether a text of a record is within its limits.
pub(crate) fn is_text(text: &str) -> bool {
    text.len() <= TEXT_MAX_BYTES && !text.chars().any(char::is_control)
}

/// Whether an id of a record is.
pub(crate) fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= ID_MAX_BYTES && is_text(id)
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// A recipient as SMTP names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecipient {
    /// Where the message goes, after rewriting.
    pub address: Mailbox,
    /// ORCPT.
    pub original: Option<OriginalRecipient>,
    /// NOTIFY.
    pub notify: Option<Notify>,
}

/// A message as it is handed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// What names the message in the queue.
    pub id: String,
    /// What is the same for all recipients.
    pub envelope: Envelope,
    /// Bytes of its source.
    pub size_bytes: u64,
    /// When it was accepted.
    pub arrived_ms: u64,
    /// Not tried before this (RFC 4865).
    pub release_ms: Option<u64>,
    /// How long it is tried, from its release.
    pub lifetime_ms: u64,
    /// How urgent it is.
    pub priority: Priority,
    /// Kept back from the beginning, by a rule for one.
    pub hold: Option<HoldMark>,
}

/// Why a message cannot be queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SplitError {
    /// Nobody.
    #[error("the message has no recipients")]
    NoRecipients,
    /// [`MESSAGE_RECIPIENTS_MAX`].
    #[error("the message has more than {MESSAGE_RECIPIENTS_MAX} recipients")]
    TooManyRecipients,
    /// An id, a Message-ID, a person's name or a destination.
    #[error("an id or a name of the message is empty or too long")]
    Text,
}

impl NewMessage {
    /// The entries of a message: the recipients of each destination, at most [`ENTRY_RECIPIENTS_MAX`] in one. A
    /// recipient who is named twice gets the message once. The same message gives the same entries.
    ///
    /// # Errors
    /// [`SplitError`]
    pub fn split(
        &self,
        recipients: Vec<NewRecipient>,
        mut destination_of: impl FnMut(&Mailbox) -> Destination,
    ) -> Result<Vec<QueueEntry>, SplitError> {
        if recipients.is_empty() {
            return Err(SplitError::NoRecipients);
        }
        if recipients.len() > MESSAGE_RECIPIENTS_MAX {
            return Err(SplitError::TooManyRecipients);
        }
        let mut named = HashSet::new();
        let mut destinations: BTreeMap<Destination, Vec<Recipient>> = BTreeMap::new();
        for recipient in recipients {
            if !named.insert(comparable(&recipient.address)) {
                continue;
            }
            let mut destination = destination_of(&recipient.address);
            destination.require_tls |= self.envelope.require_tls;
            destinations.entry(destination).or_default().push(recipient.into());
        }
        let mut entries = Vec::new();
        for (destination, recipients) in destinations {
            for recipients in recipients.chunks(ENTRY_RECIPIENTS_MAX) {
                let id = format!("{}/{}", self.id, entries.len() + 1);
                entries.push(self.entry(id, destination.clone(), recipients.to_vec()));
            }
        }
        if entries.iter().all(QueueEntry::is_valid) { Ok(entries) } else { Err(SplitError::Text) }
    }

    fn entry(&self, id: String, destination: Destination, recipients: Vec<Recipient>) -> QueueEntry {
        let first_ms = self.release_ms.map_or(self.arrived_ms, |release| release.max(self.arrived_ms));
        QueueEntry {
            id,
            message: self.id.clone(),
            destination,
            envelope: self.envelope.clone(),
            size_bytes: self.size_bytes,
            arrived_ms: self.arrived_ms,
            release_ms: self.release_ms,
            expires_ms: first_ms.saturating_add(self.lifetime_ms),
            priority: self.priority,
            hold: self.hold.clone(),
            attempts: 0,
            interruptions: 0,
            attempt: None,
            due_ms: first_ms,
            ended_ms: None,
            removed: false,
            recipients,
        }
    }
}

impl From<NewRecipient> for Recipient {
    fn from(recipient: NewRecipient) -> Self {
        Self {
            address: recipient.address,
            original: recipient.original,
            notify: recipient.notify,
            state: RecipientState::Waiting,
            outcome: None,
            delay_noticed: false,
            end_noticed: false,
        }
    }
}

/// An address so that the same mailbox is the same text: domains have no case, local parts do.
fn comparable(address: &Mailbox) -> (String, String) {
    (address.local().to_owned(), domain_name(address.domain()))
}

/// A domain in lower case.
pub(crate) fn domain_name(domain: &Domain) -> String {
    domain.to_string().to_lowercase()
}

/// One MAIL command and its recipients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The sender; `None` is the null sender.
    pub sender: Option<Mailbox>,
    /// Places of the recipients in their entry.
    pub recipients: Vec<u32>,
}

impl QueueEntry {
    /// The transactions that bring an entry to a server which takes `recipients_max` at once (RFC 9422), 100 if it does
    /// not say (RFC 5321, section 4.5.3.1.8). Where each recipient has a sender of his own each has his transaction.
    #[must_use]
    pub fn transactions(&self, recipients_max: Option<usize>) -> Vec<Transaction> {
        let waiting = self.waiting();
        let sender = &self.envelope.sender;
        let mut transactions = Vec::new();
        let mut shared = Vec::new();
        for place in waiting {
            let own = match (self.envelope.verp, sender, self.recipient(place)) {
                (true, Some(sender), Some(recipient)) => verp_encode(sender, &recipient.address),
                _ => None,
            };
            match own {
                Some(own) => transactions.push(Transaction { sender: Some(own), recipients: vec![place] }),
                None => shared.push(place),
            }
        }
        for recipients in shared.chunks(recipients_max.unwrap_or(100).max(1)) {
            transactions.push(Transaction { sender: sender.clone(), recipients: recipients.to_vec() });
        }
        transactions
    }
}

/// Why a message cannot wait for its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReleaseError {
    /// HOLDUNTIL.
    #[error("the time of release is not valid; write it as 2026-11-26T09:00:00Z")]
    Time,
    /// Later than what the server offers.
    #[error("the time of release is too far away")]
    TooFar,
}

/// When a message with HOLDFOR or HOLDUNTIL is released (RFC 4865; its erratum 2040: HOLDUNTIL is a time of RFC 3339). A
/// time that has passed is now.
///
/// # Errors
/// [`ReleaseError`]
pub fn release_time_ms(hold: &Hold, now_ms: u64, longest_ms: u64) -> Result<u64, ReleaseError> {
    let release_ms = match hold {
        Hold::ForSeconds(seconds) => now_ms.saturating_add(seconds.saturating_mul(1_000)),
        Hold::Until(time) => {
            let time: jiff::Timestamp = time.parse().map_err(|_| ReleaseError::Time)?;
            u64::try_from(time.as_millisecond()).unwrap_or(0).max(now_ms)
        }
    };
    let is_near = release_ms.saturating_sub(now_ms) <= longest_ms;
    if is_near { Ok(release_ms) } else { Err(ReleaseError::TooFar) }
}
