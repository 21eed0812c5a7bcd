//! The router: takes memos out of the mail.box databases and puts them into the mail databases of their
//! recipients, or into the queue of outgoing mail.
//!
//! It works in rounds. A round takes what waits in all mail.boxes, expands the recipients, writes to each mail
//! database all that is for it in one batch (the batches of a round share the log's syncs), waits until all is
//! durable, then stores the word to senders of memos that did not reach everybody, and only then removes the
//! memos from their mail.box. While a round runs the next one gathers, so that rounds are small when
//! the server is idle and large when it is busy.
//!
//! A crash anywhere in a round lets the next router deliver the same memos again; a mail database that has a
//! memo, or had it and its owner deleted it, does not get it twice (see [`delivery::delivered_id`]).

mod delivery;
mod failure;
mod routed;
mod waiting;

pub(crate) use delivery::{delivered_json, queued_id, repeated_id, was_delivered};
pub(crate) use failure::{Failure, HELD, is_failure_memo};
pub(crate) use waiting::Waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::select_all;
use scrinium_assertion::{always, never};
use scrinium_catalog::Databases;
use scrinium_database::{DatabaseError, Edit, EditMode, Result, Updated};
use scrinium_directory::Found;
use scrinium_statistics::{Counter, Operation, Registry};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::calendars::CalendarKeeper;
use crate::mailbox::Mailboxes;
use crate::outgoing::OutgoingQueue;
use crate::quarantine::keeping_back;
use crate::recipients::Resolver;
use crate::rules::RuleBook;
use crate::sieve::ScriptBook;
use delivery::{Deliverer, Outcome};
pub(crate) use routed::OnRouted;
use waiting::Followed;

pub use routed::{Routed, RoutedState};

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
    /// How often the router's position is remembered.
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
    /// Recipients elsewhere for whom memos went into the queue of outgoing mail.
    pub handed_over: u64,
    /// Memos that left their mail.box.
    pub routed: u64,
    /// Senders who were told of a failure.
    pub failures: u64,
    /// Memos that became dead letters.
    pub dead: u64,
    /// Memos that a rule of the server keeps back.
    pub held: u64,
    /// Memos that are kept for another attempt.
    pub later: u64,
}

/// Delivers memos. One server has one router.
pub struct Router {
    databases: Databases,
    resolver: Resolver,
    rules: RuleBook,
    scripts: ScriptBook,
    outgoing: Option<OutgoingQueue>,
    calendars: Option<Arc<dyn CalendarKeeper>>,
    options: RouterOptions,
    mailboxes: Vec<Followed>,
    statistics: RouterStatistics,
    on_routed: Option<OnRouted>,
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
    fn register(registry: &Registry, mailboxes: &[OpenDatabase]) -> Self {
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
            // One that cannot be read now counts as empty: a gauge has no way to fail.
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
        let followed = mailboxes.all().iter().map(|mailbox| Followed::open(mailbox, databases.clock()));
        Ok(Self {
            databases: databases.clone(),
            resolver,
            rules: RuleBook::new(databases),
            scripts: ScriptBook::new(databases),
            outgoing: None,
            calendars: None,
            options,
            mailboxes: followed.collect::<Result<_>>()?,
            statistics,
            on_routed: None,
        })
    }

    /// Puts what is for people elsewhere into the queue of outgoing mail. Without it they are unknown.
    #[must_use]
    pub fn with_outgoing(mut self, queue: OutgoingQueue) -> Self {
        self.resolver = self.resolver.reaching_outside();
        self.outgoing = Some(queue);
        self
    }

    /// Has messages about meetings filed by who keeps calendars, before they are delivered.
    #[must_use]
    pub fn with_calendars(mut self, keeper: Arc<dyn CalendarKeeper>) -> Self {
        self.calendars = Some(keeper);
        self
    }

    /// Calls `told` with every memo that a round has taken up, on the round's thread, so it must not wait.
    #[must_use]
    pub fn on_routed(mut self, told: impl Fn(&Routed<'_>) + Send + Sync + 'static) -> Self {
        self.on_routed = Some(Arc::new(told));
        self
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
            let mailboxes: Vec<OpenDatabase> =
                self.mailboxes.iter().map(|mailbox| mailbox.database.clone()).collect();
            let deliverer = Deliverer {
                databases: &self.databases,
                mailboxes: &mailboxes,
                resolver: &self.resolver,
                rules: &self.rules,
                scripts: &self.scripts,
                outgoing: self.outgoing.as_ref(),
                calendars: self.calendars.as_deref(),
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
        always!(
            outcomes.len() == waiting.len(),
            "each memo of a round has an outcome",
            "{} of {}",
            outcomes.len(),
            waiting.len()
        )?;
        let mut endings: Vec<(Taken<'_>, Ending)> = Vec::with_capacity(waiting.len());
        for (memo, outcome) in waiting.iter().zip(outcomes) {
            round.delivered += outcome.delivered;
            round.handed_over += outcome.handed_over as u64;
            self.statistics.delivered.add(outcome.delivered);
            match (&outcome.later, outcome.release_ms) {
                (Some(reason), _) => self.keep(memo, reason, round),
                (None, Some(release_ms)) => self.postpone(memo, release_ms),
                (None, None) => endings.push((Taken { memo, outcome }, self.ending(memo, outcome)?)),
            }
        }
        // First the word to the senders: only when it is stored may the memo go.
        let told = self.write(&endings, |_, ending| match ending {
            Ending::Tell(failure) => Some(edit_of(failure)),
            Ending::Remove | Ending::Bury(_) | Ending::Hold(_) => None,
        })?;
        let mut ended: Vec<(Taken<'_>, Ending)> = Vec::with_capacity(endings.len());
        for ((taken, ending), told) in endings.into_iter().zip(told) {
            match told {
                // A conflict: the last attempt got as far as here.
                None | Some(Ok(_) | Err(DatabaseError::Conflict)) => ended.push((taken, ending)),
                Some(Err(error)) => self.keep(taken.memo, &error.to_string(), round),
            }
        }
        let results = self.write(&ended, |taken, ending| Some(ending.edit(taken.memo)))?;
        for ((taken, ending), result) in ended.into_iter().zip(results) {
            match result {
                Some(Ok(_)) => self.count(taken, &ending, round),
                // Somebody changed it this moment: the feed brings it again.
                None | Some(Err(DatabaseError::Conflict)) => {}
                Some(Err(error)) => self.keep(taken.memo, &error.to_string(), round),
            }
        }
        Ok(())
    }

    /// Writes an edit for each memo that needs one into its mail.box, in one batch a mail.box, and waits. The
    /// results are in the order of the memos; `None` for those that needed none.
    fn write(
        &self,
        endings: &[(Taken<'_>, Ending)],
        edit_of: impl Fn(&Taken<'_>, &Ending) -> Option<Edit>,
    ) -> Result<Vec<Option<Result<Updated>>>> {
        let mut edits: Vec<Vec<Edit>> = self.mailboxes.iter().map(|_| Vec::new()).collect();
        let mut places: Vec<Vec<usize>> = edits.iter().map(|_| Vec::new()).collect();
        for (place, (taken, ending)) in endings.iter().enumerate() {
            // A memo that needs no edit has no result.
            let Some(edit) = edit_of(taken, ending) else { continue };
            let mailbox = taken.memo.mailbox;
            let (Some(edits), Some(places)) = (edits.get_mut(mailbox), places.get_mut(mailbox)) else {
                return Err(never!("a memo waits in one of the mail.boxes", "number {mailbox}").into());
            };
            edits.push(edit);
            places.push(place);
        }
        let mut updates = Vec::new();
        for ((mailbox, edits), places) in self.mailboxes.iter().zip(edits).zip(places) {
            if !edits.is_empty() {
                updates.push((
                    mailbox.database.update_in_parts(edits, EditMode::Interactive, &delivery::ROUTER)?,
                    places,
                ));
            }
        }
        let mut results: Vec<Option<Result<Updated>>> = endings.iter().map(|_| None).collect();
        for (update, places) in updates {
            let written = update.wait()?;
            let (count, expected) = (written.len(), places.len());
            always!(count == expected, "each edit of an update has a result", "{count} of {expected}")?;
            for (place, result) in places.into_iter().zip(written) {
                let slot = results.get_mut(place);
                *slot.ok_or_else(|| never!("a memo that was written for is one of these"))? = Some(result);
            }
        }
        Ok(results)
    }

    /// How a memo leaves the router's hands.
    fn ending(&self, waiting: &Waiting, outcome: &Outcome) -> Result<Ending> {
        if let Some(reason) = &outcome.held {
            return Ok(Ending::Hold(failure::held_memo(&waiting.memo, reason)));
        }
        if outcome.failures.is_empty() {
            return Ok(Ending::Remove);
        }
        let sender = failure::notified_of(&waiting.memo)
            .filter(|sender| matches!(self.resolver.find(sender), Found::Person(_)));
        let Some(sender) = sender else {
            return Ok(Ending::Bury(failure::dead_letter(&waiting.memo, &outcome.failures)));
        };
        let mailbox = self.mailboxes.get(waiting.mailbox);
        let mailbox = mailbox.ok_or_else(|| never!("a memo waits in one of the mail.boxes"))?;
        let id = delivery::failure_id(&mailbox.database, waiting);
        if delivery::was_delivered(&mailbox.database, &id)? {
            // The sender was told before a crash; the word may be delivered and gone by now.
            return Ok(Ending::Remove);
        }
        let clock = self.databases.clock();
        Ok(Ending::Tell(failure::failure_memo(&id, &waiting.memo, sender, &outcome.failures, clock)))
    }

    fn keep(&mut self, memo: &Waiting, reason: &str, round: &mut Round) {
        let attempts = memo.attempts + 1;
        tracing::warn!(memo = %memo.id, attempts, %reason, "a memo waits for another attempt");
        self.retry_later(memo);
        round.later += 1;
        self.tell(&Routed {
            reason: Some(reason),
            ..Routed::of(memo, RoutedState::Waiting, self.waited(memo))
        });
    }

    /// The time since a memo was seen first.
    fn waited(&self, memo: &Waiting) -> Duration {
        self.databases.clock().elapsed(memo.first_seen)
    }

    fn tell(&self, routed: &Routed<'_>) {
        if let Some(told) = &self.on_routed {
            told(routed);
        }
    }

    fn count(&self, taken: Taken<'_>, ending: &Ending, round: &mut Round) {
        let Taken { memo, outcome } = taken;
        let elapsed = self.waited(memo);
        self.tell(&Routed {
            delivered: outcome.delivered,
            handed_over: outcome.handed_over,
            failed: outcome.failures.len(),
            reason: outcome
                .held
                .as_deref()
                .or_else(|| outcome.failures.first().map(|failure| failure.reason.as_str())),
            ..Routed::of(memo, ending.state(outcome), elapsed)
        });
        self.statistics.deliver.record(elapsed);
        match ending {
            Ending::Bury(_) => {
                round.dead += 1;
                return;
            }
            Ending::Hold(_) => {
                round.held += 1;
                return;
            }
            Ending::Remove | Ending::Tell(_) => {}
        }
        if let Ending::Tell(_) = ending {
            round.failures += 1;
            self.statistics.failures.add(1);
        }
        round.routed += 1;
        self.statistics.routed.add(1);
        let milliseconds = scrinium_clock::milliseconds(elapsed);
        self.statistics.deliver_time_ms.fetch_add(milliseconds, Ordering::Relaxed);
    }

    fn retry_later(&mut self, memo: &Waiting) {
        let doublings = memo.attempts.min(16);
        let delay = self.options.first_retry.saturating_mul(1 << doublings).min(self.options.longest_retry);
        match self.mailboxes.get_mut(memo.mailbox) {
            Some(mailbox) => mailbox.retry(memo, delay),
            None => {
                never!("a memo waits in one of the mail.boxes", "number {}", memo.mailbox);
            }
        }
    }

    /// Keeps a memo whose sender has said when it may be delivered.
    fn postpone(&mut self, memo: &Waiting, release_ms: u64) {
        let wait_ms = release_ms.saturating_sub(self.databases.clock().now_ms());
        if let Some(mailbox) = self.mailboxes.get_mut(memo.mailbox) {
            mailbox.postpone(memo, Duration::from_millis(wait_ms));
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
            let (router, result) = match round.await {
                Ok(done) => done,
                // The process ends: the round was never begun, and the next start begins it.
                Err(error) if error.is_cancelled() => return,
                Err(error) => {
                    tracing::error!(%error, "the router has stopped");
                    return;
                }
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
                let now = self.databases.clock().instant();
                let due_in = self.next_due().map(|due| due.saturating_duration_since(now));
                let sleep = due_in.unwrap_or(Duration::MAX).min(self.options.checkpoint_every);
                tokio::select! {
                    _ = select_all(watches.iter_mut().map(|watch| Box::pin(watch.changed()))) => {}
                    () = tokio::time::sleep(sleep) => {}
                    _ = stopped.changed() => {}
                }
            }
        }
    }
}

/// A memo that was taken up, and what became of it.
#[derive(Clone, Copy)]
struct Taken<'r> {
    memo: &'r Waiting,
    outcome: &'r Outcome,
}

/// How a memo's stay in its mail.box ends.
enum Ending {
    /// It reached everybody, or its sender knows whom it did not reach.
    Remove,
    /// The sender gets this memo first.
    Tell(Value),
    /// It stays, as this dead letter.
    Bury(Value),
    /// It stays, as this, until an administrator takes its `$State` out.
    Hold(Value),
}

impl Ending {
    const fn state(&self, outcome: &Outcome) -> RoutedState {
        match self {
            Self::Remove if outcome.failures.is_empty() => RoutedState::Delivered,
            // The sender may have been told before a crash.
            Self::Remove | Self::Tell(_) => RoutedState::Returned,
            Self::Bury(_) => RoutedState::Dead,
            Self::Hold(_) => RoutedState::Held,
        }
    }

    /// The edit of the memo itself.
    fn edit(&self, memo: &Waiting) -> Edit {
        match self {
            Self::Remove | Self::Tell(_) => {
                edit_of(&json!({"_id": memo.id, "_rev": memo.revision, "_deleted": true}))
            }
            Self::Bury(kept) => edit_of(kept),
            Self::Hold(kept) => keeping_back(kept),
        }
    }
}

fn edit_of(document: &Value) -> Edit {
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
