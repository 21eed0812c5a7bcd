//! An entry of the queue: a message's recipients at one destination, their states, and what comes next.

use scrinium_smtp_wire::{Mailbox, Notify, OriginalRecipient};
use serde::{Deserialize, Serialize};

use crate::due::{DueRow, Lane, SenderLane};
use crate::encoded;
use crate::message::{Destination, Envelope, Priority, is_false, is_id, is_text};
use crate::notice::NoticePlan;
use crate::outcome::{Cause, Ending, Outcome};
use crate::policy::QueuePolicy;
use crate::random::Random;
use crate::record::{Change, RecipientOutcome, Record};

/// More recipients at one destination become several entries.
pub const ENTRY_RECIPIENTS_MAX: usize = 1_000;

/// Where an entry is, in Postfix's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Queue {
    /// It was not tried yet.
    Incoming,
    /// An attempt is under way.
    Active,
    /// It was tried, and is tried again.
    Deferred,
    /// It is kept back until somebody releases it.
    Hold,
    /// It failed, and nobody may be notified.
    Dead,
    /// Nothing is left to do.
    Done,
}

impl Queue {
    /// Its name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Incoming => "incoming",
            Self::Active => "active",
            Self::Deferred => "deferred",
            Self::Hold => "hold",
            Self::Dead => "dead",
            Self::Done => "done",
        }
    }
}

/// Where a recipient is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum RecipientState {
    #[default]
    Waiting,
    Delivered,
    Failed,
}

/// One recipient of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipient {
    /// Where the message goes.
    #[serde(with = "encoded::mailbox")]
    pub address: Mailbox,
    /// ORCPT: the address that the sender wrote (RFC 3461, section 4.2).
    #[serde(default, with = "encoded::original", skip_serializing_if = "Option::is_none")]
    pub original: Option<OriginalRecipient>,
    /// NOTIFY (RFC 3461, section 4.1).
    #[serde(default, with = "encoded::notify", skip_serializing_if = "Option::is_none")]
    pub notify: Option<Notify>,
    /// Where he is.
    #[serde(default)]
    pub state: RecipientState,
    /// How the last attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The sender heard of the delay.
    #[serde(default, skip_serializing_if = "is_false")]
    pub delay_noticed: bool,
    /// The sender heard of the end.
    #[serde(default, skip_serializing_if = "is_false")]
    pub end_noticed: bool,
}

/// An attempt that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptMark {
    /// From 1.
    pub number: u32,
    /// When.
    pub started_ms: u64,
}

/// Who keeps an entry back, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldMark {
    /// A person, or the name of a rule.
    pub by: String,
    /// A sentence.
    pub reason: String,
    /// Since when.
    pub since_ms: u64,
}

/// A message's recipients at one destination. It changes by [`QueueEntry::apply`] alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueEntry {
    /// What names it: the message's id, a stroke and a number.
    pub id: String,
    /// The message's id.
    pub message: String,
    /// Where it goes.
    pub destination: Destination,
    /// What it shares with the other entries of the message.
    pub envelope: Envelope,
    /// Bytes of the message's source.
    pub size_bytes: u64,
    /// When the message was accepted.
    pub arrived_ms: u64,
    /// Not tried before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_ms: Option<u64>,
    /// When it is given up.
    pub expires_ms: u64,
    /// How urgent it is.
    #[serde(default)]
    pub priority: Priority,
    /// Kept back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<HoldMark>,
    /// Attempts that began.
    #[serde(default)]
    pub attempts: u32,
    /// Attempts in a row that the server's own end cut off.
    #[serde(default)]
    pub interruptions: u32,
    /// The attempt that is under way, or that the server's end cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptMark>,
    /// When it is tried next.
    pub due_ms: u64,
    /// When the last recipient's fate was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Nothing is left of it but its records.
    #[serde(default, skip_serializing_if = "is_false")]
    pub removed: bool,
    /// The recipients. Their places are their names in records.
    pub recipients: Vec<Recipient>,
}

/// What is to be done with an entry now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Put the notice into the queue under its id, unless it is or was there, and then record [`QueueEntry::noticed`].
    Notify(NoticePlan),
    /// Record [`QueueEntry::expire`].
    Expire,
    /// Record [`QueueEntry::begin`] when the scheduler says so, and then connect.
    Attempt,
    /// An attempt is under way, or was cut off: after a start, record [`QueueEntry::interrupted`].
    Await,
    /// Nothing before this; if it is `None`, before a person decides.
    Wait(Option<u64>),
    /// Record [`QueueEntry::remove`], and remove the entry.
    Remove,
}

impl QueueEntry {
    /// Where it is.
    #[must_use]
    pub fn queue(&self) -> Queue {
        if self.removed {
            return Queue::Done;
        }
        if self.attempt.is_some() {
            return Queue::Active;
        }
        if self.has_waiting() {
            return match (&self.hold, self.attempts) {
                (Some(_), _) => Queue::Hold,
                (None, 0) => Queue::Incoming,
                (None, _) => Queue::Deferred,
            };
        }
        if self.is_dead() { Queue::Dead } else { Queue::Done }
    }

    /// The recipient of a place.
    #[must_use]
    pub fn recipient(&self, place: u32) -> Option<&Recipient> {
        self.recipients.get(usize::try_from(place).ok()?)
    }

    pub(crate) fn has_waiting(&self) -> bool {
        self.recipients.iter().any(|recipient| recipient.state == RecipientState::Waiting)
    }

    fn is_dead(&self) -> bool {
        let is_lost = |recipient: &Recipient| {
            let was_deleted =
                recipient.outcome.as_ref().is_some_and(|outcome| outcome.cause == Cause::Deleted);
            recipient.state == RecipientState::Failed && !was_deleted
        };
        self.envelope.is_silent() && self.recipients.iter().any(is_lost)
    }

    /// Places of the recipients who wait.
    #[must_use]
    pub fn waiting(&self) -> Vec<u32> {
        let waiting = |recipient: &Recipient| recipient.state == RecipientState::Waiting;
        (0..)
            .zip(&self.recipients)
            .filter(|(_, recipient)| waiting(recipient))
            .map(|(place, _)| place)
            .collect()
    }

    /// When it could be tried first.
    pub(crate) fn first_ms(&self) -> u64 {
        self.release_ms.map_or(self.arrived_ms, |release| release.max(self.arrived_ms))
    }

    /// What is to be done now. Notices come before everything, so that the recipients of a notice are the same when a
    /// crash makes it be planned again.
    #[must_use]
    pub fn step(&self, now_ms: u64, policy: &QueuePolicy) -> Step {
        if self.removed {
            return Step::Remove;
        }
        if self.attempt.is_some() {
            return Step::Await;
        }
        if let Some(plan) = self.notice(now_ms, policy) {
            return Step::Notify(plan);
        }
        if !self.has_waiting() {
            let until_ms = self.ended_ms.unwrap_or(now_ms).saturating_add(policy.dead_ms);
            let is_kept = self.is_dead() && now_ms < until_ms;
            return if is_kept { Step::Wait(Some(until_ms)) } else { Step::Remove };
        }
        if self.hold.is_some() {
            return Step::Wait(None);
        }
        if self.is_expired(now_ms, policy) {
            return Step::Expire;
        }
        if now_ms >= self.due_ms {
            return Step::Attempt;
        }
        let deadline_ms = self.deadline_ms(policy).unwrap_or(u64::MAX);
        Step::Wait(Some(self.due_ms.min(deadline_ms)))
    }

    /// The last attempt is made at the end of the lifetime, and decides. If it cannot be made because the destination is
    /// closed, the entry is given up a while later.
    fn is_expired(&self, now_ms: u64, policy: &QueuePolicy) -> bool {
        let was_last = self.attempts > 0 && self.due_ms > now_ms && now_ms >= self.expires_ms;
        was_last || now_ms >= self.given_up_ms(policy)
    }

    fn given_up_ms(&self, policy: &QueuePolicy) -> u64 {
        let since_ms = self.expires_ms.max(self.due_ms).max(policy.serving_since_ms);
        since_ms.saturating_add(policy.expiry_grace_ms)
    }

    /// When it is to be looked at, even if its destination is closed: for a delay notice, or because it expires.
    #[must_use]
    pub fn deadline_ms(&self, policy: &QueuePolicy) -> Option<u64> {
        match self.queue() {
            Queue::Active | Queue::Hold | Queue::Done => None,
            Queue::Dead => Some(self.ended_ms.unwrap_or(0).saturating_add(policy.dead_ms)),
            Queue::Incoming => Some(self.given_up_ms(policy)),
            Queue::Deferred if self.awaits_delay_notice() && self.delayed_ms(policy) < self.expires_ms => {
                Some(self.delayed_ms(policy).min(self.given_up_ms(policy)))
            }
            Queue::Deferred if self.due_ms > self.expires_ms => Some(self.expires_ms),
            Queue::Deferred => Some(self.given_up_ms(policy)),
        }
    }

    /// Its row in an index by due time; `None` if it is in none.
    #[must_use]
    pub fn due_row(&self, policy: &QueuePolicy) -> Option<DueRow> {
        let is_due = matches!(self.queue(), Queue::Incoming | Queue::Deferred);
        let (due_ms, deadline_ms) = (is_due.then_some(self.due_ms), self.deadline_ms(policy));
        if due_ms.is_none() && deadline_ms.is_none() {
            return None;
        }
        Some(DueRow { id: self.id.as_str().into(), lane: self.lane(), due_ms, deadline_ms })
    }

    /// Whose turn it takes, and where.
    #[must_use]
    pub fn lane(&self) -> Lane {
        let sender = SenderLane { priority: self.priority, sender: self.envelope.turn().into() };
        Lane { sender, destination: self.destination.clone().into() }
    }

    fn record(&self, now_ms: u64, change: Change) -> Record {
        Record { entry: self.id.clone(), at_ms: now_ms, change }
    }

    /// The entry as its first record, or as one that replaces all records before it.
    #[must_use]
    pub fn snapshot(&self, now_ms: u64) -> Record {
        self.record(now_ms, Change::Queued(Box::new(self.clone())))
    }

    /// An attempt begins. To be recorded before the connection, or before the first command on one that is open. `None` if
    /// the entry is not to be tried now.
    #[must_use]
    pub fn begin(&self, now_ms: u64, policy: &QueuePolicy) -> Option<Record> {
        let is_due = self.step(now_ms, policy) == Step::Attempt;
        let number = self.attempts.saturating_add(1);
        is_due.then(|| self.record(now_ms, Change::Began { attempt: number }))
    }

    /// How the attempt that is under way ended. Recipients without an outcome wait for the next one. `None` if no attempt
    /// is under way.
    #[must_use]
    pub fn end(
        &self,
        now_ms: u64,
        outcomes: &[(u32, Outcome)],
        policy: &QueuePolicy,
        random: &mut Random,
    ) -> Option<Record> {
        let AttemptMark { number: attempt, .. } = self.attempt?;
        let due_ms = policy.next_due_ms(attempt, now_ms, random);
        // The last attempt is made when the message is about to be given up, not long before.
        let due_ms = if now_ms < self.expires_ms { due_ms.min(self.expires_ms) } else { due_ms };
        let outcomes = RecipientOutcome::grouped(outcomes);
        Some(self.record(now_ms, Change::Ended { attempt, outcomes, due_ms, interrupted: false }))
    }

    /// The attempt that was under way when the server stopped: nobody knows how far it came. `None` if none was.
    #[must_use]
    pub fn interrupted(&self, now_ms: u64) -> Option<Record> {
        let AttemptMark { number: attempt, .. } = self.attempt?;
        let due_ms = QueuePolicy::interrupted_due_ms(self.interruptions.saturating_add(1), now_ms);
        let outcome = Outcome::new(Ending::Unknown, Cause::ServerStopped);
        let outcomes: Vec<(u32, Outcome)> =
            self.waiting().into_iter().map(|place| (place, outcome.clone())).collect();
        let outcomes = RecipientOutcome::grouped(&outcomes);
        Some(self.record(now_ms, Change::Ended { attempt, outcomes, due_ms, interrupted: true }))
    }

    /// The notice is in the queue.
    #[must_use]
    pub fn noticed(&self, now_ms: u64, plan: &NoticePlan) -> Record {
        self.record(
            now_ms,
            Change::Noticed { kind: plan.kind, id: plan.id.clone(), recipients: plan.recipients.clone() },
        )
    }

    /// Its lifetime is over: who still waits has failed. `None` if it is not, or an attempt is under way.
    #[must_use]
    pub fn expire(&self, now_ms: u64, policy: &QueuePolicy) -> Option<Record> {
        (self.step(now_ms, policy) == Step::Expire).then(|| self.record(now_ms, Change::Expired))
    }

    /// Nothing is left to do. `None` if there is.
    #[must_use]
    pub fn remove(&self, now_ms: u64, policy: &QueuePolicy) -> Option<Record> {
        (self.step(now_ms, policy) == Step::Remove).then(|| self.record(now_ms, Change::Removed))
    }

    /// `tell router hold`. `None` if nobody waits, or it is kept back already. An attempt that is under way goes on.
    #[must_use]
    pub fn keep_back(&self, now_ms: u64, by: &str, reason: &str) -> Option<Record> {
        let can_be = self.has_waiting() && self.hold.is_none();
        let (by, reason) = (crate::outcome::clean_text(by), crate::outcome::clean_text(reason));
        can_be.then(|| self.record(now_ms, Change::Held { by, reason }))
    }

    /// `tell router release`. `None` if it is not kept back.
    #[must_use]
    pub fn release(&self, now_ms: u64, by: &str) -> Option<Record> {
        let by = crate::outcome::clean_text(by);
        self.hold.as_ref().map(|_| self.record(now_ms, Change::Released { by }))
    }

    /// `tell router retry`: due at once. `None` if nobody waits, it is kept back, or an attempt is under way.
    #[must_use]
    pub fn retry(&self, now_ms: u64, by: &str) -> Option<Record> {
        let by = crate::outcome::clean_text(by);
        let can_be = self.has_waiting() && self.hold.is_none() && self.attempt.is_none();
        can_be.then(|| self.record(now_ms, Change::Retried { by }))
    }

    /// `tell router delete`: who still waits gets nothing. If `notifies`, the sender hears of it. `None` while an attempt is
    /// under way, whose outcome is to be known first, and if nothing is left to delete.
    #[must_use]
    pub fn delete(&self, now_ms: u64, by: &str, notifies: bool) -> Option<Record> {
        let by = crate::outcome::clean_text(by);
        let can_be = self.attempt.is_none()
            && matches!(self.queue(), Queue::Incoming | Queue::Deferred | Queue::Hold | Queue::Dead);
        can_be.then(|| self.record(now_ms, Change::Deleted { by, notifies }))
    }

    /// Whether its texts and numbers are within their limits.
    pub(crate) fn is_valid(&self) -> bool {
        let is_optional = |text: &Option<String>| text.as_deref().is_none_or(is_text);
        let is_name = |text: &str| !text.is_empty() && is_text(text);
        let envelope = &self.envelope;
        let texts = [&envelope.envelope_id, &envelope.message_id, &envelope.submitter];
        let has_outcomes = |recipient: &Recipient| recipient.outcome.as_ref().is_none_or(Outcome::is_valid);
        is_id(&self.id)
            && is_id(&self.message)
            && is_name(&self.destination.transport)
            && is_name(&self.destination.host)
            && texts.into_iter().all(is_optional)
            && self.hold.as_ref().is_none_or(|hold| is_text(&hold.by) && is_text(&hold.reason))
            && (1..=ENTRY_RECIPIENTS_MAX).contains(&self.recipients.len())
            && self.recipients.iter().all(has_outcomes)
    }
}
