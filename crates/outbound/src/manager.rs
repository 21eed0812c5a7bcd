//! The queue at work, in rounds: what happened is taken up, what is due is begun, and all records of a round are written in one
//! batch, before anything that they announce.

mod follow;
mod notice;
mod records;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use scrinium_clock::Clock;
use scrinium_database::{Database, DatabaseError, ReadOptions};
use scrinium_mail::{Mailboxes, OutgoingQueue, QUEUE_KEEPER, QueuedDocument};
use scrinium_mail_queue::report::ReportOptions;
use scrinium_mail_queue::route::{RouteError, Transport};
use scrinium_mail_queue::{
    AttemptId, Cause, ConnectionId, ConnectionUse, Destination, Dispatch, DueIndex, Effect, Ending, Network,
    Outcome, Queue, QueueEntry, QueuePolicy, Random, Record, Scheduler, SchedulerOptions, Step,
};
use scrinium_statistics::{Counter, Registry};
use scrinium_store::StoreError;

use crate::courier::{AttemptReport, Courier, Event, SendJob, TextSource, Way, WayJob};
use crate::index::{DiskDueIndex, IndexedEntry};
use crate::orders::{OrderReply, Ordered};
use records::Pending;

/// Attempts that one round begins.
const DISPATCHES_AT_ONCE: usize = 500;

/// Entries that one round settles.
const SETTLED_AT_ONCE: usize = 1_000;

/// Batches that one round writes, for what follows from what was written.
const BATCHES_MAX: usize = 8;

/// What could not be done is tried again after this.
const TROUBLE_MS: u64 = 5_000;

/// How a queue is worked on.
#[derive(Clone, Debug)]
pub struct ManagerOptions {
    /// When what is tried.
    pub policy: QueuePolicy,
    /// How much at once.
    pub scheduler: SchedulerOptions,
    /// Who writes notices.
    pub report: ReportOptions,
    /// Where chance begins.
    pub seed: u64,
}

/// What one round did, and when the next is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundReport {
    /// Records that were written.
    pub records: u64,
    /// The time of the next round, if nothing happens before: in milliseconds since 1970.
    pub wake_ms: Option<u64>,
    /// There is more to do at once.
    pub has_more: bool,
}

/// A record that is durable, and the entry as it is then.
pub struct Told<'a> {
    /// What happened.
    pub record: &'a Record,
    /// To what.
    pub entry: &'a QueueEntry,
}

/// Hears of every record; it must not wait.
type OnRecord = Arc<dyn Fn(&Told<'_>) + Send + Sync>;

/// An attempt that was given out.
struct Attempt {
    id: Arc<str>,
    transport: Transport,
    connection: Option<ConnectionId>,
    way: Option<Way>,
}

/// What is to be done when a record is written, or cannot be.
#[derive(Clone, Copy)]
enum Then {
    Nothing,
    /// The attempt is made.
    Send(AttemptId),
    /// The attempt is over.
    Finish(AttemptId, Effect, ConnectionUse),
}

/// Works on the queue of a server. One server has one.
pub struct QueueManager {
    queue: OutgoingQueue,
    database: Arc<Database>,
    mailboxes: Mailboxes,
    courier: Arc<dyn Courier>,
    options: ManagerOptions,
    index: DiskDueIndex,
    scheduler: Scheduler,
    random: Random,
    clock: Clock,
    attempts: HashMap<AttemptId, Attempt>,
    /// Entries of which an attempt was given out, until its end is written down.
    active: HashSet<Arc<str>>,
    /// Records that are to be written.
    work: Vec<Pending>,
    /// Entries of which something may be left to do.
    unsettled: BTreeSet<Arc<str>>,
    /// Those that wait until trouble is over, and when they are looked at again.
    troubled: BTreeSet<(u64, Arc<str>)>,
    /// Revisions that this has written and the feed will show.
    own: HashMap<String, String>,
    /// How far the feed was read.
    reached: u64,
    on_record: Option<OnRecord>,
    statistics: QueueStatistics,
}

struct QueueStatistics {
    attempts: Counter,
    delivered: Counter,
    deferred: Counter,
    failed: Counter,
    notices: Counter,
    queues: [(Queue, Arc<AtomicU64>); 5],
}

impl QueueStatistics {
    fn register(registry: &Registry) -> Self {
        let counter = |name: &str| registry.counter(&format!("Outbound.{name}"));
        let queue = |queue: Queue, name: &str| {
            let count = Arc::new(AtomicU64::new(0));
            let shown = Arc::clone(&count);
            #[allow(clippy::cast_precision_loss, reason = "statistics need no more than 53 bits")]
            registry.gauge(name, move || shown.load(Ordering::Relaxed) as f64);
            (queue, count)
        };
        Self {
            attempts: counter("Attempts"),
            delivered: counter("Delivered"),
            deferred: counter("Deferred"),
            failed: counter("Failed"),
            notices: counter("Notices"),
            queues: [
                queue(Queue::Incoming, "Outbound.Queue.Incoming"),
                queue(Queue::Active, "Outbound.Queue.Active"),
                queue(Queue::Deferred, "Outbound.Queue.Deferred"),
                queue(Queue::Hold, "Mail.Hold"),
                queue(Queue::Dead, "Outbound.Queue.Dead"),
            ],
        }
    }

    fn show(&self, index: &DiskDueIndex) {
        for (queue, count) in &self.queues {
            count.store(index.count_of(*queue), Ordering::Relaxed);
        }
    }
}

impl QueueManager {
    /// Goes on where the last one stopped: attempts that were under way then are written down as cut off.
    ///
    /// Statistics: `Outbound.Attempts`; recipients `Outbound.Delivered`, `Outbound.Deferred` and `Outbound.Failed`;
    /// `Outbound.Notices`; entries `Outbound.Queue.Incoming`, `.Active`, `.Deferred` and `.Dead`, and `Mail.Hold`.
    ///
    /// # Errors
    /// What the store reports.
    pub fn open(
        queue: OutgoingQueue,
        mailboxes: Mailboxes,
        courier: Arc<dyn Courier>,
        mut options: ManagerOptions,
        (clock, registry): (Clock, &Registry),
    ) -> Result<Self, DatabaseError> {
        options.policy.serving_since_ms = clock.now_ms();
        let database = Arc::clone(queue.database());
        let index = DiskDueIndex::open(database.store().clone(), database.number())?;
        let reached = index.position()?.reached;
        let mut manager = Self {
            scheduler: Scheduler::new(options.scheduler.clone(), options.seed),
            random: Random::new(options.seed ^ 0x5bd1_e995),
            queue,
            database,
            mailboxes,
            courier,
            options,
            index,
            clock,
            attempts: HashMap::new(),
            active: HashSet::new(),
            work: Vec::new(),
            unsettled: BTreeSet::new(),
            troubled: BTreeSet::new(),
            own: HashMap::new(),
            reached,
            on_record: None,
            statistics: QueueStatistics::register(registry),
        };
        manager.take_up_unsettled()?;
        Ok(manager)
    }

    /// Calls `told` with every record once it is durable, on the round's thread, so it must not wait.
    #[must_use]
    pub fn on_record(mut self, told: impl Fn(&Told<'_>) + Send + Sync + 'static) -> Self {
        self.on_record = Some(Arc::new(told));
        self
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Attempts that are under way.
    #[must_use]
    pub fn open_attempts(&self) -> usize {
        self.attempts.len()
    }

    /// Entries that are held in memory.
    #[must_use]
    pub fn window_entries(&self) -> usize {
        self.scheduler.window_entries()
    }

    /// Destinations that are remembered.
    pub fn destinations(&self) -> impl Iterator<Item = scrinium_mail_queue::DestinationStatus> + '_ {
        self.scheduler.destinations()
    }

    /// Takes up what happened, begins what is due, and writes it all down. Blocks.
    ///
    /// # Errors
    /// What the database reports: nothing is lost, and the next round goes on with it.
    pub fn round(&mut self, events: Vec<Event>) -> Result<RoundReport, DatabaseError> {
        let mut orders = Vec::new();
        let mut troubles = None;
        for event in events {
            if let Err(error) = self.take(event, &mut orders) {
                troubles = Some(error);
            }
        }
        let worked = self.work_round();
        for (reply, ordered) in orders {
            // Who has asked may have gone.
            let _gone = reply.send(ordered);
        }
        self.statistics.show(&self.index);
        match (worked, troubles) {
            (Err(error), _) | (Ok(_), Some(error)) => Err(error),
            (Ok(report), None) => Ok(report),
        }
    }

    fn work_round(&mut self) -> Result<RoundReport, DatabaseError> {
        let now_ms = self.clock.now_ms();
        self.follow()?;
        self.take_up_troubled(now_ms);
        let ids = self.scheduler.deadlines(now_ms, &mut self.index)?;
        self.unsettled.extend(ids);
        let mut report = RoundReport::default();
        self.write_all(&mut report)?;
        report.has_more |= self.scheduler.refill(now_ms, &mut self.index)?;
        report.has_more |= self.dispatch_all(now_ms)?;
        self.write_all(&mut report)?;
        for connection in self.scheduler.stale_connections(now_ms) {
            self.courier.close(connection);
        }
        report.has_more |= !self.work.is_empty() || !self.unsettled.is_empty();
        let troubled_ms = self.troubled.first().map(|(until_ms, _)| *until_ms);
        let next_ms = self.scheduler.wake_ms(now_ms, &mut self.index)?;
        report.wake_ms = [troubled_ms, next_ms].into_iter().flatten().min();
        Ok(report)
    }

    fn take(&mut self, event: Event, orders: &mut Vec<(OrderReply, Ordered)>) -> Result<(), DatabaseError> {
        let now_ms = self.clock.now_ms();
        match event {
            Event::Way { attempt, way: Ok(way) } => self.way_found(attempt, way, now_ms),
            Event::Way { attempt, way: Err(error) } => self.no_way(attempt, &error, now_ms),
            Event::Claim(claim) => {
                let is_claimed = self.scheduler.claim_network(claim.attempt, claim.network, now_ms);
                let _gone = claim.reply.send(is_claimed);
                Ok(())
            }
            Event::Connected(attempt) => {
                self.scheduler.connected(attempt);
                Ok(())
            }
            Event::Ended { attempt, report } => self.ended(attempt, &report, now_ms),
            Event::Lost(connection) => {
                self.scheduler.connection_lost(connection);
                Ok(())
            }
            Event::Order { order, reply } => {
                let ordered = self.carry_out(&order, now_ms)?;
                orders.push((reply, ordered));
                Ok(())
            }
        }
    }

    fn carry_out(
        &mut self,
        order: &crate::orders::ChosenEntries,
        now_ms: u64,
    ) -> Result<Ordered, DatabaseError> {
        let mut ordered = Ordered::default();
        let mut destinations: BTreeSet<Destination> = BTreeSet::new();
        for id in &order.ids {
            let Some(document) = self.read(id)? else { continue };
            match order.command.record(&document.entry, &order.by, now_ms) {
                Some(record) => {
                    ordered.done += 1;
                    destinations.insert(document.entry.destination.clone());
                    self.work.push(Pending { id: Arc::clone(id), record, then: Then::Nothing });
                }
                None => ordered.refused(order.command.refusal(&document.entry)),
            }
        }
        if order.command == scrinium_mail_queue::show::QueueCommand::Retry {
            for destination in destinations {
                self.scheduler.reopen(&destination, now_ms);
            }
        }
        Ok(ordered)
    }

    fn way_found(&mut self, attempt: AttemptId, way: Way, now_ms: u64) -> Result<(), DatabaseError> {
        let Some(known) = self.attempts.get_mut(&attempt) else { return Ok(()) };
        let id = Arc::clone(&known.id);
        let first = way.targets.first().map(|target| target.address);
        known.way = Some(way);
        let begun = match self.read(&id)? {
            Some(document) => document.entry.begin(now_ms, &self.options.policy),
            None => None,
        };
        let Some(record) = begun else {
            // Somebody has deleted it, or keeps it back.
            self.forget(attempt);
            self.scheduler.cancel(attempt, now_ms);
            self.unsettled.insert(id);
            return Ok(());
        };
        let network = first.map(Network::from);
        if network.is_some_and(|network| !self.scheduler.claim_network(attempt, network, now_ms)) {
            // It comes again when the network has a place.
            self.forget(attempt);
            return Ok(());
        }
        self.work.push(Pending { id, record, then: Then::Send(attempt) });
        Ok(())
    }

    fn no_way(&mut self, attempt: AttemptId, error: &RouteError, now_ms: u64) -> Result<(), DatabaseError> {
        self.end_unmade(attempt, &error.outcome(), now_ms)
    }

    /// An attempt for which no connection was needed.
    fn end_unmade(
        &mut self,
        attempt: AttemptId,
        outcome: &Outcome,
        now_ms: u64,
    ) -> Result<(), DatabaseError> {
        let Some(Attempt { id, .. }) = self.forget(attempt) else { return Ok(()) };
        let Some(QueuedDocument { mut entry, .. }) = self.read(&id)? else {
            self.scheduler.cancel(attempt, now_ms);
            return Ok(());
        };
        let policy = &self.options.policy;
        let outcomes: Vec<(u32, Outcome)> =
            entry.waiting().into_iter().map(|place| (place, outcome.clone())).collect();
        let begun = entry.begin(now_ms, policy).filter(|begun| entry.apply(begun).is_ok());
        let ended = entry.end(now_ms, &outcomes, policy, &mut self.random);
        let (Some(begun), Some(ended)) = (begun, ended) else {
            self.scheduler.cancel(attempt, now_ms);
            self.unsettled.insert(id);
            return Ok(());
        };
        self.count(&outcomes);
        self.active.insert(Arc::clone(&id));
        self.work.push(Pending { id: Arc::clone(&id), record: begun, then: Then::Nothing });
        let then = Then::Finish(attempt, Effect::Nothing, ConnectionUse::Closed);
        self.work.push(Pending { id, record: ended, then });
        Ok(())
    }

    fn ended(
        &mut self,
        attempt: AttemptId,
        report: &AttemptReport,
        now_ms: u64,
    ) -> Result<(), DatabaseError> {
        let Some(Attempt { id, .. }) = self.attempts.get(&attempt) else { return Ok(()) };
        let id = Arc::clone(id);
        let then = Then::Finish(attempt, report.effect, report.connection);
        let record = match self.read(&id)? {
            Some(document) => {
                document.entry.end(now_ms, &report.outcomes, &self.options.policy, &mut self.random)
            }
            None => None,
        };
        self.attempts.remove(&attempt);
        match record {
            Some(record) => {
                self.count(&report.outcomes);
                self.work.push(Pending { id, record, then });
            }
            // It was taken out of the database meanwhile.
            None => self.do_after(&id, then, now_ms),
        }
        Ok(())
    }

    fn count(&self, outcomes: &[(u32, Outcome)]) {
        for (_, outcome) in outcomes {
            let counter = match outcome.ending {
                ending if ending.is_success() => &self.statistics.delivered,
                Ending::Failed => &self.statistics.failed,
                _ => &self.statistics.deferred,
            };
            counter.add(1);
        }
    }

    fn forget(&mut self, attempt: AttemptId) -> Option<Attempt> {
        let known = self.attempts.remove(&attempt)?;
        self.active.remove(&known.id);
        Some(known)
    }

    /// Gives out what is due. Whether there may be more.
    fn dispatch_all(&mut self, now_ms: u64) -> Result<bool, DatabaseError> {
        for _ in 0..DISPATCHES_AT_ONCE {
            let Some(dispatch) = self.scheduler.next(now_ms) else { return Ok(false) };
            let attempt = dispatch.attempt;
            if let Err(error) = self.dispatch(dispatch, now_ms) {
                self.forget(attempt);
                self.scheduler.cancel(attempt, now_ms);
                return Err(error);
            }
        }
        Ok(true)
    }

    fn dispatch(&mut self, dispatch: Dispatch, now_ms: u64) -> Result<(), DatabaseError> {
        let Dispatch { attempt, entry: id, destination, connection } = dispatch;
        let Some(document) = self.read(&id)? else {
            self.index.set(&id, None)?;
            self.scheduler.cancel(attempt, now_ms);
            return Ok(());
        };
        let begun = document.entry.begin(now_ms, &self.options.policy);
        let (Some(begun), false) = (begun, self.active.contains(&id)) else {
            self.scheduler.cancel(attempt, now_ms);
            self.refresh(&document, now_ms)?;
            self.unsettled.insert(id);
            return Ok(());
        };
        let transports = &self.queue.options().transports;
        let first = document.entry.waiting().first().and_then(|place| document.entry.recipient(*place));
        let Some(address) = first.map(|recipient| recipient.address.clone()) else {
            self.scheduler.cancel(attempt, now_ms);
            return Ok(());
        };
        let transport = transports.find(&address).clone();
        if self.has_other_way(&document.entry) {
            self.scheduler.cancel(attempt, now_ms);
            return self.reroute(&document, now_ms);
        }
        let known = Attempt { id: Arc::clone(&id), transport, connection, way: None };
        let transport = known.transport.clone();
        self.attempts.insert(attempt, known);
        self.active.insert(Arc::clone(&id));
        match transport {
            Transport::Refuse(refusal) => self.end_unmade(attempt, &refusal.outcome(), now_ms),
            Transport::Local => {
                let outcome = Outcome::new(Ending::Failed, Cause::RecipientRefused);
                self.end_unmade(attempt, &outcome, now_ms)
            }
            Transport::Hold(reason) => {
                self.forget(attempt);
                self.scheduler.cancel(attempt, now_ms);
                let held = document.entry.keep_back(now_ms, "a transport rule", &reason);
                self.work.extend(held.map(|record| Pending { id, record, then: Then::Nothing }));
                Ok(())
            }
            Transport::Exchangers { .. } | Transport::Relay { .. } | Transport::Lmtp { .. } => {
                if connection.is_some() {
                    self.work.push(Pending { id, record: begun, then: Then::Send(attempt) });
                } else {
                    let domain = address.domain().clone();
                    self.courier.find_way(WayJob { attempt, domain, transport, destination });
                }
                Ok(())
            }
        }
    }

    /// Whether the rules lead recipients who wait another way than when the message was queued.
    fn has_other_way(&self, entry: &QueueEntry) -> bool {
        let transports = &self.queue.options().transports;
        entry.waiting().into_iter().filter_map(|place| entry.recipient(place)).any(|recipient| {
            let mut destination = transports.destination(&recipient.address);
            destination.require_tls |= entry.envelope.require_tls;
            destination != entry.destination
        })
    }

    /// Has an attempt made whose beginning is written down.
    fn send(&mut self, attempt: AttemptId, document: &QueuedDocument, now_ms: u64) {
        let Some(known) = self.attempts.get_mut(&attempt) else { return };
        self.statistics.attempts.add(1);
        let text = TextSource::open(&self.database, document);
        let way = known.way.take();
        let (transport, connection) = (known.transport.clone(), known.connection);
        match text {
            Ok(text) => self.courier.send(SendJob {
                attempt,
                entry: document.entry.clone(),
                transport,
                way,
                connection,
                text,
            }),
            Err(error) => {
                tracing::warn!(entry = %document.entry.id, %error, "the source of a queued message cannot be read");
                let outcome = Outcome::new(Ending::Deferred, Cause::ServerStopped);
                let outcomes = document.entry.waiting().into_iter().map(|place| (place, outcome.clone()));
                let report = AttemptReport {
                    outcomes: outcomes.collect(),
                    effect: Effect::Nothing,
                    connection: connection.map_or(ConnectionUse::Closed, ConnectionUse::Open),
                };
                if let Err(error) = self.ended(attempt, &report, now_ms) {
                    tracing::warn!(%error, "the end of an attempt is written down later");
                }
            }
        }
    }

    fn do_after(&mut self, id: &Arc<str>, then: Then, now_ms: u64) {
        match then {
            Then::Nothing => {}
            Then::Send(attempt) => {
                self.forget(attempt);
                self.scheduler.cancel(attempt, now_ms);
            }
            Then::Finish(attempt, effect, connection) => {
                self.active.remove(id);
                self.scheduler.finish(attempt, effect, connection, now_ms);
            }
        }
    }

    /// Does what is left to do for an entry, whatever its times.
    fn settle(&mut self, id: &Arc<str>, now_ms: u64) -> Result<(), DatabaseError> {
        if self.active.contains(id) {
            return Ok(());
        }
        let Some(document) = self.read(id)? else {
            self.index.set(id, None)?;
            return Ok(());
        };
        let entry = &document.entry;
        let policy = &self.options.policy;
        let record = match entry.step(now_ms, policy) {
            Step::Notify(plan) => match self.notify(&document, &plan, now_ms) {
                Ok(()) => Some(entry.noticed(now_ms, &plan)),
                Err(error) => {
                    tracing::warn!(entry = %id, %error, "a notice to a sender is put off");
                    self.trouble(id, now_ms);
                    self.index.postpone(&entry.lane(), now_ms + TROUBLE_MS)?;
                    return Ok(());
                }
            },
            Step::Expire => entry.expire(now_ms, policy),
            Step::Remove => entry.remove(now_ms, policy),
            Step::Await => entry.interrupted(now_ms),
            Step::Attempt | Step::Wait(_) => None,
        };
        match record {
            Some(record) => self.work.push(Pending { id: Arc::clone(id), record, then: Then::Nothing }),
            None => self.refresh(&document, now_ms)?,
        }
        Ok(())
    }

    fn trouble(&mut self, id: &Arc<str>, now_ms: u64) {
        self.troubled.insert((now_ms + TROUBLE_MS, Arc::clone(id)));
    }

    fn take_up_troubled(&mut self, now_ms: u64) {
        while self.troubled.first().is_some_and(|(until_ms, _)| *until_ms <= now_ms) {
            self.unsettled.extend(self.troubled.pop_first().map(|(_, id)| id));
        }
    }

    /// Sets the row of an entry.
    fn refresh(&mut self, document: &QueuedDocument, now_ms: u64) -> Result<(), StoreError> {
        let indexed = IndexedEntry::of(&document.entry, now_ms, &self.options.policy);
        self.index.set(&document.entry.id, Some(&indexed))
    }

    /// An entry as it stands in the database; `None` if it is gone, or is not an entry.
    fn read(&self, id: &str) -> Result<Option<QueuedDocument>, DatabaseError> {
        let document = match self.database.read(id, &ReadOptions::default(), &QUEUE_KEEPER) {
            Ok(document) => document,
            Err(DatabaseError::NotFound { .. }) => return Ok(None),
            Err(DatabaseError::Damaged { .. }) => {
                tracing::error!(entry = id, "a queued message is damaged: load fixup smtp.box");
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let Some(fields) = document.json.to_object() else { return Ok(None) };
        match QueuedDocument::read(fields) {
            Ok(document) if document.entry.id == id => Ok(Some(document)),
            Ok(_) => Ok(None),
            Err(error) => {
                tracing::warn!(entry = id, %error, "a document of the mail queue is passed over");
                Ok(None)
            }
        }
    }
}
