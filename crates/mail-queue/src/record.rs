//! Records: what is written before each effect, as fields of a document, and how they give the state again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::entry::{AttemptMark, HoldMark, QueueEntry, Recipient, RecipientState};
use crate::message::{is_id, is_text};
use crate::notice::NoticeKind;
use crate::outcome::{Cause, Ending, Outcome};

/// A longer record is refused before it is read. An entry of 1,000 recipients, each with a long address and a long
/// answer, fits.
pub const RECORD_MAX_BYTES: usize = 8 << 20;

/// The version of the form, in each record.
const VERSION: u64 = 1;

/// The same outcome for several recipients of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipientOutcome {
    /// Their places.
    pub recipients: Vec<u32>,
    /// What became of them.
    pub outcome: Outcome,
}

impl RecipientOutcome {
    /// Outcomes with equal ones next to each other put together.
    #[must_use]
    pub fn grouped(outcomes: &[(u32, Outcome)]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for (place, outcome) in outcomes {
            match groups.last_mut().filter(|group| group.outcome == *outcome) {
                Some(group) => group.recipients.push(*place),
                None => groups.push(Self { recipients: vec![*place], outcome: outcome.clone() }),
            }
        }
        groups
    }
}

/// What happens to an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "lowercase")]
pub enum Change {
    /// It is in the queue, in this state.
    Queued(Box<QueueEntry>),
    /// An attempt begins.
    Began {
        /// Its number, from 1.
        attempt: u32,
    },
    /// An attempt has ended.
    Ended {
        /// Its number.
        attempt: u32,
        /// What became of whom.
        outcomes: Vec<RecipientOutcome>,
        /// When those who still wait are tried again.
        due_ms: u64,
        /// The server's own end cut it off.
        #[serde(default, skip_serializing_if = "crate::message::is_false")]
        interrupted: bool,
    },
    /// A notice to the sender is in the queue.
    Noticed {
        /// What it says.
        kind: NoticeKind,
        /// Its id.
        id: String,
        /// Of whom.
        recipients: Vec<u32>,
    },
    /// It is given up.
    Expired,
    /// It is kept back.
    Held {
        /// By whom.
        by: String,
        /// A sentence.
        reason: String,
    },
    /// It is kept back no longer.
    Released {
        /// By whom.
        by: String,
    },
    /// It is due at once.
    Retried {
        /// By whom.
        by: String,
    },
    /// Who still waits gets nothing.
    Deleted {
        /// By whom.
        by: String,
        /// The sender hears of it.
        notifies: bool,
    },
    /// Nothing is left to do.
    Removed,
}

/// One change of one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The entry's id.
    pub entry: String,
    /// When.
    pub at_ms: u64,
    /// What.
    #[serde(flatten)]
    pub change: Change,
}

/// Why bytes are no record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// [`RECORD_MAX_BYTES`].
    #[error("a record of the mail queue has more than {RECORD_MAX_BYTES} bytes")]
    TooLong,
    /// Of a later version.
    #[error("a record of the mail queue has version {0}, which this version of the server does not know")]
    Version(u64),
    /// Not its fields.
    #[error("a record of the mail queue is damaged: {0}")]
    Fields(String),
    /// A text, list or place is out of its limits.
    #[error("a record of the mail queue has a text, list or number that is out of its limits")]
    Limits,
}

impl Record {
    /// The record as fields.
    #[must_use]
    pub fn to_fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("version".to_owned(), Value::from(VERSION));
        // A record is made of texts, numbers and lists, all of which JSON has.
        if let Ok(Value::Object(own)) = serde_json::to_value(self) {
            fields.extend(own);
        }
        fields
    }

    /// The record as bytes of JSON.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Value::Object(self.to_fields()).to_string().into_bytes()
    }

    /// Reads bytes of JSON.
    ///
    /// # Errors
    /// [`RecordError`]
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        if bytes.len() > RECORD_MAX_BYTES {
            return Err(RecordError::TooLong);
        }
        let value: Value =
            serde_json::from_slice(bytes).map_err(|error| RecordError::Fields(error.to_string()))?;
        Self::from_fields(value)
    }

    /// Reads fields.
    ///
    /// # Errors
    /// [`RecordError`]
    pub fn from_fields(fields: Value) -> Result<Self, RecordError> {
        match fields.get("version").and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(version) => return Err(RecordError::Version(version)),
            None => return Err(RecordError::Fields("it has no version".to_owned())),
        }
        let record: Self =
            serde_json::from_value(fields).map_err(|error| RecordError::Fields(error.to_string()))?;
        if record.is_valid() { Ok(record) } else { Err(RecordError::Limits) }
    }

    fn is_valid(&self) -> bool {
        is_id(&self.entry)
            && match &self.change {
                Change::Queued(entry) => entry.is_valid() && entry.id == self.entry,
                Change::Ended { outcomes, .. } => outcomes.iter().all(|group| group.outcome.is_valid()),
                Change::Noticed { id, .. } => is_id(id),
                Change::Held { by, reason } => is_text(by) && is_text(reason),
                Change::Released { by } | Change::Retried { by } | Change::Deleted { by, .. } => is_text(by),
                Change::Began { .. } | Change::Expired | Change::Removed => true,
            }
    }
}

/// Why records do not give a state.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RebuildError {
    /// The first record of an entry says what it is.
    #[error("the entry {0} of the mail queue has a record before it was queued")]
    NotQueued(String),
    /// Another entry's.
    #[error("a record of the entry {found} of the mail queue stands among those of {expected}")]
    OtherEntry {
        /// Whose records these are.
        expected: String,
        /// Whose this one is.
        found: String,
    },
    /// It cannot follow the records before it.
    #[error("the entry {entry} of the mail queue cannot be \"{change}\" after the records before")]
    OutOfOrder {
        /// The entry.
        entry: String,
        /// The record.
        change: &'static str,
    },
    /// A place of nobody.
    #[error("a record of the entry {0} of the mail queue names a recipient that it does not have")]
    NoSuchRecipient(String),
}

impl Change {
    /// Its name.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Queued(_) => "queued",
            Self::Began { .. } => "began",
            Self::Ended { .. } => "ended",
            Self::Noticed { .. } => "noticed",
            Self::Expired => "expired",
            Self::Held { .. } => "held",
            Self::Released { .. } => "released",
            Self::Retried { .. } => "retried",
            Self::Deleted { .. } => "deleted",
            Self::Removed => "removed",
        }
    }
}

impl QueueEntry {
    /// Carries out a record. If it fails, nothing has changed.
    ///
    /// # Errors
    /// [`RebuildError`]
    pub fn apply(&mut self, record: &Record) -> Result<(), RebuildError> {
        if record.entry != self.id {
            return Err(RebuildError::OtherEntry { expected: self.id.clone(), found: record.entry.clone() });
        }
        let out_of_order =
            || RebuildError::OutOfOrder { entry: record.entry.clone(), change: record.change.word() };
        let at_ms = record.at_ms;
        if self.removed && !matches!(record.change, Change::Queued(_) | Change::Removed) {
            return Err(out_of_order());
        }
        match &record.change {
            Change::Queued(entry) => self.clone_from(entry),
            Change::Began { attempt } => {
                if self.attempt.is_some() || *attempt != self.attempts.saturating_add(1) {
                    return Err(out_of_order());
                }
                self.attempts = *attempt;
                self.attempt = Some(AttemptMark { number: *attempt, started_ms: at_ms });
            }
            Change::Ended { attempt, outcomes, due_ms, interrupted } => {
                if self.attempt.is_none_or(|open| open.number != *attempt) {
                    return Err(out_of_order());
                }
                self.end_attempt(outcomes, at_ms)?;
                self.attempt = None;
                self.due_ms = *due_ms;
                self.interruptions = if *interrupted { self.interruptions.saturating_add(1) } else { 0 };
            }
            Change::Noticed { kind, recipients, .. } => self.mark_noticed(*kind, recipients)?,
            Change::Expired | Change::Deleted { .. } if self.attempt.is_some() => return Err(out_of_order()),
            Change::Expired => self.give_up(Cause::Expired, at_ms),
            Change::Deleted { notifies, .. } => {
                self.hold = None;
                self.give_up(Cause::Deleted, at_ms);
                self.silence(*notifies);
            }
            Change::Held { by, reason } => {
                self.hold = Some(HoldMark { by: by.clone(), reason: reason.clone(), since_ms: at_ms });
            }
            Change::Released { .. } => {
                // The time that it was kept back is not a part of its lifetime.
                let held_ms = self.hold.take().map_or(0, |hold| at_ms.saturating_sub(hold.since_ms));
                self.expires_ms = self.expires_ms.saturating_add(held_ms);
                self.due_ms = self.first_ms().max(at_ms);
            }
            Change::Retried { .. } => self.due_ms = at_ms,
            Change::Removed => self.removed = true,
        }
        Ok(())
    }

    fn recipient_mut(&mut self, place: u32) -> Option<&mut Recipient> {
        self.recipients.get_mut(usize::try_from(place).ok()?)
    }

    fn knows(&self, places: &[u32]) -> Result<(), RebuildError> {
        let all = places.iter().all(|place| self.recipient(*place).is_some());
        if all { Ok(()) } else { Err(RebuildError::NoSuchRecipient(self.id.clone())) }
    }

    fn end_attempt(&mut self, outcomes: &[RecipientOutcome], at_ms: u64) -> Result<(), RebuildError> {
        for group in outcomes {
            self.knows(&group.recipients)?;
        }
        for RecipientOutcome { recipients, outcome } in outcomes {
            let state = match outcome.ending {
                ending if ending.is_success() => RecipientState::Delivered,
                Ending::Failed => RecipientState::Failed,
                _ => RecipientState::Waiting,
            };
            for place in recipients {
                // An end is final: what comes later does not change it.
                let waiting = self.recipient_mut(*place);
                if let Some(recipient) =
                    waiting.filter(|recipient| recipient.state == RecipientState::Waiting)
                {
                    recipient.state = state;
                    recipient.outcome = Some(outcome.clone());
                }
            }
        }
        self.note_end(at_ms);
        Ok(())
    }

    fn mark_noticed(&mut self, kind: NoticeKind, places: &[u32]) -> Result<(), RebuildError> {
        self.knows(places)?;
        for place in places {
            let Some(recipient) = self.recipient_mut(*place) else { continue };
            match kind {
                NoticeKind::Delay => recipient.delay_noticed = true,
                _ => recipient.end_noticed = true,
            }
        }
        Ok(())
    }

    /// Who waits has failed. The last answer of a server stays as the reason behind the reason.
    fn give_up(&mut self, cause: Cause, at_ms: u64) {
        for recipient in
            self.recipients.iter_mut().filter(|recipient| recipient.state == RecipientState::Waiting)
        {
            let last = recipient.outcome.take();
            let mut outcome = Outcome::new(Ending::Failed, cause);
            if let Some(last) = last {
                outcome.reply = last.reply;
                outcome.host = last.host;
            }
            recipient.state = RecipientState::Failed;
            recipient.outcome = Some(outcome);
        }
        self.note_end(at_ms);
    }

    /// A deletion ends a dead entry as well; the sender hears of it only if he is to.
    fn silence(&mut self, notifies: bool) {
        for recipient in
            self.recipients.iter_mut().filter(|recipient| recipient.state == RecipientState::Failed)
        {
            let Some(outcome) = &mut recipient.outcome else { continue };
            if self.envelope.is_silent() {
                outcome.cause = Cause::Deleted;
            }
            recipient.end_noticed |= outcome.cause == Cause::Deleted && !notifies;
        }
    }

    fn note_end(&mut self, at_ms: u64) {
        if !self.has_waiting() && self.ended_ms.is_none() {
            self.ended_ms = Some(at_ms);
        }
    }
}

/// The state that the records of one entry give, in their order.
///
/// # Errors
/// [`RebuildError`]
pub fn rebuild<'a>(
    records: impl IntoIterator<Item = &'a Record>,
) -> Result<Option<QueueEntry>, RebuildError> {
    let mut state: Option<QueueEntry> = None;
    for record in records {
        match (&mut state, &record.change) {
            (Some(entry), _) => entry.apply(record)?,
            (None, Change::Queued(entry)) => state = Some(QueueEntry::clone(entry)),
            (None, _) => return Err(RebuildError::NotQueued(record.entry.clone())),
        }
    }
    Ok(state)
}

/// The entries that records of many give, without those that are removed.
///
/// # Errors
/// [`RebuildError`]
pub fn rebuild_queue<'a>(
    records: impl IntoIterator<Item = &'a Record>,
) -> Result<BTreeMap<String, QueueEntry>, RebuildError> {
    let mut entries: BTreeMap<String, QueueEntry> = BTreeMap::new();
    for record in records {
        match (entries.get_mut(&record.entry), &record.change) {
            (Some(entry), _) => entry.apply(record)?,
            (None, Change::Queued(entry)) => {
                entries.insert(record.entry.clone(), QueueEntry::clone(entry));
            }
            (None, _) => return Err(RebuildError::NotQueued(record.entry.clone())),
        }
    }
    entries.retain(|_, entry| !entry.removed);
    Ok(entries)
}
