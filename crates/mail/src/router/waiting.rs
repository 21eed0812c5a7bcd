//! What waits in one mail.box, followed by its change feed.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use scrinium_assertion::never;
use scrinium_clock::Clock;
use scrinium_database::{ChangesQuery, DatabaseError, ReadOptions, Result, Since};
use scrinium_views::OpenDatabase;
use serde_json::{Map, Value, json};

use super::delivery::ROUTER;
use super::failure::{DEAD, HELD};
use crate::memo::field;

/// Under which the router remembers its position in a mail.box.
const TASK: &str = "router";

/// More dead letters than these are not counted across a restart.
const MOST_DEAD_KEPT: usize = 10_000;

/// Changes taken from the feed at a time.
const CHANGES_AT_ONCE: usize = 64;

/// A memo that is to be delivered.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Its mail.box, by its place in the router's list.
    pub(super) mailbox: usize,
    pub(crate) id: String,
    pub(crate) revision: String,
    pub(super) change_number: u64,
    /// Its document, with `_id`, `_rev` and `_attachments`.
    pub(crate) memo: Map<String, Value>,
    pub(super) first_seen: Instant,
    pub(super) attempts: u32,
}

/// A memo that could not be delivered yet.
#[derive(Debug, Clone, Copy)]
struct Retry {
    change_number: u64,
    first_seen: Instant,
    attempts: u32,
    due: Instant,
}

/// Memos that wait for an attempt, by their ids, and in the order in which they are due.
#[derive(Default)]
struct Retries {
    by_id: HashMap<String, Retry>,
    by_due: BTreeSet<(Instant, String)>,
}

impl Retries {
    fn insert(&mut self, id: &str, retry: Retry) {
        self.remove(id);
        self.by_due.insert((retry.due, id.to_owned()));
        self.by_id.insert(id.to_owned(), retry);
    }

    fn remove(&mut self, id: &str) {
        if let Some(retry) = self.by_id.remove(id) {
            self.by_due.remove(&(retry.due, id.to_owned()));
        }
    }

    /// Those that are due, the longest due first.
    fn due(&self, now: Instant) -> impl Iterator<Item = (&String, &Retry)> {
        let due = self.by_due.iter().take_while(move |(due, _)| *due <= now);
        due.filter_map(|(_, id)| self.by_id.get_key_value(id))
    }
}

/// One mail.box and what the router knows of it.
pub(super) struct Followed {
    pub(super) database: OpenDatabase,
    clock: Clock,
    /// Up to which change its feed was read.
    reached: u64,
    retries: Retries,
    /// Ids of dead letters.
    dead: BTreeSet<String>,
    checkpoint: u64,
    checkpoint_at: Instant,
}

impl Followed {
    /// Goes on where the last router of this mail.box stopped.
    pub(super) fn open(database: &OpenDatabase, clock: &Clock) -> Result<Self> {
        // What cannot be read is as if it were not there: all that waits is looked at once more.
        let stored = database.task_state(TASK)?;
        let stored: Value =
            stored.and_then(|stored| serde_json::from_slice(&stored).ok()).unwrap_or_default();
        let since = stored.get("since").and_then(Value::as_str).unwrap_or("0");
        // A sequence of another database of this name counts as 0: all of it is read.
        let reached = database.parse_sequence(since).unwrap_or(0);
        let dead = stored.get("dead").and_then(Value::as_array).into_iter().flatten();
        Ok(Self {
            database: database.clone(),
            clock: clock.clone(),
            reached,
            retries: Retries::default(),
            dead: dead.filter_map(Value::as_str).map(str::to_owned).collect(),
            checkpoint: reached,
            checkpoint_at: clock.instant(),
        })
    }

    pub(super) fn dead_letters(&self) -> usize {
        self.dead.len()
    }

    /// Adds memos that are due to `round`, while it has less than `most_memos` and `most_bytes`.
    pub(super) fn collect(
        &mut self,
        mailbox: usize,
        round: &mut Vec<Waiting>,
        most_memos: usize,
        most_bytes: &mut usize,
    ) -> Result<()> {
        self.collect_retries(mailbox, round, most_memos, most_bytes)?;
        if self.database.visible_change_number() == self.reached {
            return Ok(());
        }
        let query = ChangesQuery {
            since: Since::At(self.database.sequence_text(self.reached)),
            include_documents: true,
            ..ChangesQuery::default()
        };
        let mut changes = self.database.changes(query, &ROUTER)?;
        while round.len() < most_memos && *most_bytes > 0 {
            let some = changes.next_changes(CHANGES_AT_ONCE.min(most_memos - round.len()))?;
            if some.is_empty() {
                break;
            }
            for change in some {
                self.reached = change.change_number;
                // Whatever was known of an earlier revision is out of date.
                self.retries.remove(&change.id);
                self.dead.remove(&change.id);
                if change.deleted || change.id.starts_with("_design/") {
                    continue;
                }
                let Some(document) = change.document else {
                    return Err(never!(
                        "changes that were asked for with documents have them",
                        "{}",
                        change.id
                    )
                    .into());
                };
                // A document that is damaged comes as null.
                let Some(memo) = document.to_object() else {
                    self.tell_unreadable(&change.id);
                    continue;
                };
                *most_bytes = most_bytes.saturating_sub(document.len());
                let retry = Retry {
                    change_number: change.change_number,
                    first_seen: self.clock.instant(),
                    attempts: 0,
                    due: self.clock.instant(),
                };
                self.take(mailbox, change.id, memo, retry, round);
            }
        }
        Ok(())
    }

    fn collect_retries(
        &mut self,
        mailbox: usize,
        round: &mut Vec<Waiting>,
        most_memos: usize,
        most_bytes: &mut usize,
    ) -> Result<()> {
        let now = self.clock.instant();
        let due: Vec<(String, Retry)> = self
            .retries
            .due(now)
            .take(most_memos.saturating_sub(round.len()))
            .map(|(id, retry)| (id.clone(), *retry))
            .collect();
        for (id, retry) in due {
            if *most_bytes == 0 {
                break;
            }
            match self.database.read(&id, &ReadOptions::default(), &ROUTER) {
                Ok(document) => {
                    self.retries.remove(&id);
                    *most_bytes = most_bytes.saturating_sub(document.json.len());
                    let Some(memo) = document.json.to_object() else {
                        return Err(never!("a document that is stored is an object", "{id}").into());
                    };
                    self.take(mailbox, id, memo, retry, round);
                }
                Err(DatabaseError::NotFound { .. }) => self.retries.remove(&id),
                // It holds up no other memo.
                Err(DatabaseError::Damaged { .. }) => {
                    self.retries.remove(&id);
                    self.tell_unreadable(&id);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A memo that is damaged stays in its mail.box until a fixup has mended it, which the feed tells.
    fn tell_unreadable(&self, id: &str) {
        let mailbox = self.database.name();
        tracing::error!(mailbox, memo = id, "a memo is damaged and is not delivered: load fixup {mailbox}");
    }

    fn take(
        &mut self,
        mailbox: usize,
        id: String,
        memo: Map<String, Value>,
        retry: Retry,
        round: &mut Vec<Waiting>,
    ) {
        match memo.get(field::STATE).and_then(Value::as_str) {
            Some(DEAD) => drop(self.dead.insert(id)),
            // The administrator's next edit of it comes by the feed.
            Some(HELD) => {}
            _ => {
                let Some(revision) = memo.get("_rev").and_then(Value::as_str).map(str::to_owned) else {
                    never!("a document that is read tells its revision", "{id}");
                    return;
                };
                let Retry { change_number, first_seen, attempts, .. } = retry;
                round.push(Waiting { mailbox, id, revision, change_number, memo, first_seen, attempts });
            }
        }
    }

    /// Keeps a memo for another attempt after `delay`.
    pub(super) fn retry(&mut self, waiting: &Waiting, delay: Duration) {
        self.keep(waiting, delay, waiting.attempts + 1);
    }

    /// Keeps a memo that is not to be delivered before `delay` is over.
    pub(super) fn postpone(&mut self, waiting: &Waiting, delay: Duration) {
        self.keep(waiting, delay, waiting.attempts);
    }

    fn keep(&mut self, waiting: &Waiting, delay: Duration, attempts: u32) {
        let now = self.clock.instant();
        let retry = Retry {
            change_number: waiting.change_number,
            first_seen: waiting.first_seen,
            attempts,
            due: now.checked_add(delay).unwrap_or(now),
        };
        self.retries.insert(&waiting.id, retry);
    }

    /// When the next memo is due again, if one is kept.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.retries.by_due.first().map(|(due, _)| *due)
    }

    /// Whether the feed holds changes that were not read.
    pub(super) fn has_more(&self) -> bool {
        self.database.visible_change_number() > self.reached
    }

    /// Remembers the router's position, so that the next one need not read tombstones again; nothing
    /// depends on it but the time of a start. Called between rounds, when all that was read is settled or kept
    /// for another attempt.
    pub(super) fn save_checkpoint(&mut self, every: Duration) -> Result<()> {
        if self.clock.elapsed(self.checkpoint_at) < every {
            return Ok(());
        }
        let oldest_kept = self.retries.by_id.values().map(|retry| retry.change_number).min();
        let settled = oldest_kept.map_or(self.reached, |oldest| oldest.saturating_sub(1).min(self.reached));
        if settled == self.checkpoint {
            return Ok(());
        }
        let dead: Vec<&String> = self.dead.iter().take(MOST_DEAD_KEPT).collect();
        let document = json!({"since": self.database.sequence_text(settled), "dead": dead}).to_string();
        self.database.set_task_state(TASK, document.as_bytes())?;
        self.checkpoint = settled;
        self.checkpoint_at = self.clock.instant();
        Ok(())
    }
}
