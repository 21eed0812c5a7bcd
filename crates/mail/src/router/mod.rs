//! The router: takes memos out of the mail.box databases and puts them into the mail databases of their
//! recipients.
//!
//! It works in rounds. A round takes what waits in all mail.boxes, expands the recipients, writes to each mail
//! database all that is for it in one batch (the batches of a round share the log's syncs), waits until all is
//! durable, and only then removes the memos from their mail.box, each in the same batch as the word to its
//! sender if somebody was not reached. While a round runs the next one gathers, so that rounds are small when
//! the server is idle and large when it is busy.
//!
//! A crash anywhere in a round lets the next router deliver the same memos again; a mail database that has a
//! memo, or had it and its owner deleted it, does not get it twice (see [`delivery::delivered_id`]).

mod delivery;
mod failure;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::select_all;
use scrinium_database::{Database, DatabaseError, Databases, Edit, EditMode, Result, Update};
use scrinium_statistics::{Counter, Operation, Registry};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::mailbox::Mailboxes;
use crate::recipients::Resolver;
use delivery::{Deliverer, Outcome};
use waiting::{Followed, Waiting};

/// How the router works.
#[derive(Debug, Clone)]
pub struct RouterOptions {
    /// Memos in one round.
    pub round_memos: usize,
    /// A round ends at this many bytes of documents too.
    pub round_bytes: usize,
    /// Batches that may be on their way to the disk at once.
    pub updates_at_once: usize,
    /// A memo that could not be delivered is tried again after this, then after twice as long, and so on.
    pub first_retry: Duration,
    /// The longest time between two attempts.
    pub longest_retry: Duration,
    /// How often it is remembered how far the router has come.
    pub checkpoint_every: Duration,
}

impl Default for RouterOptions {
    fn default() -> Self {
        Self {
            round_memos: 500,
            round_bytes: 32 << 20,
            updates_at_once: 1_000,
            first_retry: Duration::from_secs(1),
            longest_retry: Duration::from_mins(5),
            checkpoint_every: Duration::from_secs(10),
        }
    }
}

/// What one round did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    /// Memos that were taken up.
    pub memos: u64,
    /// Deliveries, one for each mail database that got a memo.
    pub delivered: u64,
    /// Memos that left their mail.box.
    pub routed: u64,
    /// Senders who were told of a failure.
    pub failures: u64,
    /// Memos that became dead letters.
    pub dead: u64,
    /// Memos that are kept for another attempt.
    pub later: u64,
}

/// Delivers memos. One server has one router.
pub struct Router {
    databases: Databases,
    resolver: Resolver,
    options: RouterOptions,
    mailboxes: Vec<Followed>,
    statistics: RouterStatistics,
}

struct RouterStatistics {
    delivered: Counter,
    routed: Counter,
    failures: Counter,
    deliver: Operation,
    dead: Arc<AtomicU64>,
    deliver_time_ms: Arc<AtomicU64>,
}

impl RouterStatistics {
    fn register(registry: &Registry, mailboxes: &[Arc<Database>]) -> Self {
        let dead = Arc::new(AtomicU64::new(0));
        let deliver_time_ms = Arc::new(AtomicU64::new(0));
        let routed = registry.counter("Mail.Routed");
        #[allow(clippy::cast_precision_loss, reason = "statistics need no more than 53 bits")]
        let as_number = |count: u64| count as f64;
        let shown = Arc::clone(&dead);
        registry.gauge("Mail.Dead", move || as_number(shown.load(Ordering::Relaxed)));
        let (total, count) = (Arc::clone(&deliver_time_ms), routed.clone());
        registry.gauge("Mail.AverageDeliverTime", move || {
            as_number(total.load(Ordering::Relaxed)) / as_number(count.value().max(1))
        });
        let (boxes, not_waiting) = (mailboxes.to_vec(), Arc::clone(&dead));
        registry.gauge("Mail.Waiting", move || {
            let held = boxes.iter().filter_map(|mailbox| mailbox.info().ok()).map(|info| info.document_count);
            as_number(held.sum::<u64>().saturating_sub(not_waiting.load(Ordering::Relaxed)))
        });
        Self {
            delivered: registry.counter("Mail.Delivered"),
            routed,
            failures: registry.counter("Mail.TransferFailures"),
            deliver: registry.operation("MAIL_DELIVER"),
            dead,
            deliver_time_ms,
        }
    }
}

impl Router {
    /// A router over `mailboxes`, going on where the last one stopped.
    ///
    /// Statistics: `Mail.Delivered`, `Mail.Routed`, `Mail.Dead`, `Mail.Waiting`, `Mail.TransferFailures`,
    /// `Mail.AverageDeliverTime` (milliseconds), and the operation `MAIL_DELIVER`.
    ///
    /// # Errors
    /// What the database reports.
    pub fn open(
        databases: &Databases,
        mailboxes: &Mailboxes,
        resolver: Resolver,
        options: RouterOptions,
        statistics: &Registry,
    ) -> Result<Self> {
        let statistics = RouterStatistics::register(statistics, mailboxes.all());
        let followed: Result<Vec<Followed>> = mailboxes.all().iter().map(Followed::open).collect();
        Ok(Self { databases: databases.clone(), resolver, options, mailboxes: followed?, statistics })
    }

    /// Runs one round: takes up what waits, at most [`RouterOptions::round_memos`]. Blocks.
    ///
    /// # Errors
    /// What a mail.box reports: nothing is lost, and the next round takes it up again. What a recipient's mail
    /// database reports only delays or fails the memos to it.
    pub fn round(&mut self) -> Result<Round> {
        let mut waiting = Vec::new();
        let mut bytes_left = self.options.round_bytes;
        for (place, mailbox) in self.mailboxes.iter_mut().enumerate() {
            let most_memos = self.options.round_memos;
            if let Err(error) = mailbox.collect(place, &mut waiting, most_memos, &mut bytes_left) {
                // What was read already is not in the feed again.
                self.keep_all(&waiting);
                return Err(error);
            }
        }
        let mut round = Round { memos: waiting.len() as u64, ..Round::default() };
        if !waiting.is_empty() {
            let mailboxes: Vec<Arc<Database>> =
                self.mailboxes.iter().map(|mailbox| Arc::clone(&mailbox.database)).collect();
            let deliverer = Deliverer {
                databases: &self.databases,
                mailboxes: &mailboxes,
                resolver: &self.resolver,
                updates_at_once: self.options.updates_at_once,
            };
            let outcomes = deliverer.deliver(&waiting);
            let settled = self.settle(&waiting, &outcomes, &mut round);
            if let Err(error) = settled {
                // None of them may be forgotten, whatever was settled.
                self.keep_all(&waiting);
                return Err(error);
            }
        }
        let dead: usize = self.mailboxes.iter().map(Followed::dead_letters).sum();
        self.statistics.dead.store(dead as u64, Ordering::Relaxed);
        for mailbox in &mut self.mailboxes {
            mailbox.save_checkpoint(self.options.checkpoint_every)?;
        }
        Ok(round)
    }

    /// Takes the memos of a round out of their mail.boxes, after all their deliveries are durable.
    fn settle(&mut self, waiting: &[Waiting], outcomes: &[Outcome], round: &mut Round) -> Result<()> {
        let mut edits: Vec<Vec<Edit>> = self.mailboxes.iter().map(|_| Vec::new()).collect();
        let mut done = Vec::new();
        for (memo, outcome) in waiting.iter().zip(outcomes) {
            round.delivered += outcome.delivered;
            self.statistics.delivered.add(outcome.delivered);
            if let Some(reason) = &outcome.later {
                tracing::warn!(memo = %memo.id, attempts = memo.attempts + 1, %reason, "a memo waits for another attempt");
                self.retry_later(memo);
                round.later += 1;
                continue;
            }
            let Some(edits) = edits.get_mut(memo.mailbox) else { continue };
            let ending = self.ending(memo, outcome)?;
            round.dead += u64::from(ending.dead);
            round.failures += u64::from(ending.told_sender);
            round.routed += u64::from(!ending.dead);
            edits.extend(ending.edits);
            done.push((memo.first_seen, ending.dead));
        }
        let updates: Result<Vec<Update>> = self
            .mailboxes
            .iter()
            .zip(edits)
            .filter(|(_, edits)| !edits.is_empty())
            .map(|(mailbox, edits)| mailbox.database.update(edits, EditMode::Interactive))
            .collect();
        for update in updates? {
            // An edit that conflicts is a memo that somebody changed: the feed brings it again.
            update.wait()?;
        }
        self.statistics.failures.add(round.failures);
        for (first_seen, dead) in done {
            let elapsed = first_seen.elapsed();
            self.statistics.deliver.record(elapsed);
            if !dead {
                self.statistics.routed.add(1);
                let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
                self.statistics.deliver_time_ms.fetch_add(milliseconds, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// How a memo leaves the router's hands.
    fn ending(&self, waiting: &Waiting, outcome: &Outcome) -> Result<Ending> {
        let remove = || {
            let tombstone = json!({"_id": waiting.id, "_rev": waiting.revision, "_deleted": true});
            edit_of(&tombstone)
        };
        if outcome.failures.is_empty() {
            return Ok(Ending { edits: vec![remove()], told_sender: false, dead: false });
        }
        let sender = failure::sender_of(&waiting.memo).filter(|sender| {
            let found = self.resolver.find(sender);
            matches!(found, scrinium_directory::Found::Person(_)) && !failure::is_failure_memo(&waiting.memo)
        });
        let mailbox = self.mailboxes.get(waiting.mailbox).ok_or(DatabaseError::Conflict)?;
        Ok(match sender {
            Some(sender) => {
                let id = delivery::failure_id(&mailbox.database, waiting);
                let memo = failure::failure_memo(&id, &waiting.memo, sender, &outcome.failures);
                Ending { edits: vec![remove(), edit_of(&memo)], told_sender: true, dead: false }
            }
            None => {
                let dead = failure::dead_letter(&waiting.memo, &outcome.failures);
                Ending { edits: vec![edit_of(&dead)], told_sender: false, dead: true }
            }
        })
    }

    fn retry_later(&mut self, memo: &Waiting) {
        let doublings = memo.attempts.min(16);
        let delay = self.options.first_retry.saturating_mul(1 << doublings).min(self.options.longest_retry);
        if let Some(mailbox) = self.mailboxes.get_mut(memo.mailbox) {
            mailbox.retry(memo, delay);
        }
    }

    fn keep_all(&mut self, waiting: &[Waiting]) {
        for memo in waiting {
            self.retry_later(memo);
        }
    }

    /// Whether a mail.box has changes that no round has read.
    fn has_more(&self) -> bool {
        self.mailboxes.iter().any(Followed::has_more)
    }

    /// When the first of the memos that are kept is to be tried again.
    fn next_due(&self) -> Option<Instant> {
        self.mailboxes.iter().filter_map(Followed::next_due).min()
    }

    /// Runs the router as a task until it is stopped. Rounds run where blocking is allowed.
    #[must_use]
    pub fn start(self) -> RouterHandle {
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(self.run(stopped));
        RouterHandle { stop, task }
    }

    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let mut watches: Vec<watch::Receiver<u64>> =
            self.mailboxes.iter().map(|mailbox| mailbox.database.watch()).collect();
        while !*stopped.borrow() {
            for watch in &mut watches {
                watch.mark_unchanged();
            }
            let round = tokio::task::spawn_blocking(move || {
                let result = self.round();
                (self, result)
            });
            let Ok((router, result)) = round.await else {
                tracing::error!("the router has stopped: a round panicked");
                return;
            };
            self = router;
            if let Err(error) = result {
                tracing::warn!(%error, "the router cannot read or write a mail.box; it tries again");
                tokio::select! {
                    () = tokio::time::sleep(self.options.first_retry) => {}
                    _ = stopped.changed() => {}
                }
            } else if !self.has_more() {
                // Also wakes without a deposit, to write a checkpoint.
                let checkpoint = Instant::now() + self.options.checkpoint_every;
                let due = self.next_due().map_or(checkpoint, |due| due.min(checkpoint));
                tokio::select! {
                    _ = select_all(watches.iter_mut().map(|watch| Box::pin(watch.changed()))) => {}
                    () = tokio::time::sleep_until(due.into()) => {}
                    _ = stopped.changed() => {}
                }
            }
        }
    }
}

/// The edits that end a memo's stay in its mail.box; one batch.
struct Ending {
    edits: Vec<Edit>,
    told_sender: bool,
    dead: bool,
}

fn edit_of(document: &serde_json::Value) -> Edit {
    Edit { json: document.to_string().into(), ..Edit::default() }
}

/// A running router.
pub struct RouterHandle {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl RouterHandle {
    /// Stops the router after the round that is running.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        // It ends by itself; a panic of its task was logged by the runtime.
        drop(self.task.await);
    }
}
