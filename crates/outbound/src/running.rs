//! The queue as a task: rounds follow each other while there is something to do.

use std::sync::Arc;
use std::time::Duration;

use scrinium_clock::Clock;
use scrinium_database::{Database, DatabaseError};
use scrinium_mail_queue::DestinationStatus;
use scrinium_mail_queue::show::{QueueCommand, Selection};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::courier::Event;
use crate::manager::{QueueManager, RoundReport};
use crate::orders::{ChosenEntries, Ordered, QueueOrder, QueueReport, chosen, queue_report};
use crate::signing::{KeyKeeper, PublishedKey};

/// Events that wait for a round.
const EVENTS_MAX: usize = 4_096;

/// Entries that one round hears something about.
const ORDERED_AT_ONCE: usize = 500;

/// Without anything to do, a round looks whether the clock was set.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// After trouble with the store.
const TROUBLE_SLEEP: Duration = Duration::from_secs(2);

/// An order waits so long for its round.
const ORDER_TIMEOUT: Duration = Duration::from_secs(60);

/// The queue of a server that runs.
pub struct Outbound {
    manager: QueueManager,
    events: mpsc::Receiver<Event>,
    sender: mpsc::Sender<Event>,
    clock: Clock,
    keys: Option<KeyKeeper>,
}

impl Outbound {
    /// A channel for a courier's events.
    #[must_use]
    pub fn channel() -> (mpsc::Sender<Event>, mpsc::Receiver<Event>) {
        mpsc::channel(EVENTS_MAX)
    }

    /// A queue that hears `events`, to whose other end `sender` leads.
    #[must_use]
    pub fn new(
        manager: QueueManager,
        (sender, events): (mpsc::Sender<Event>, mpsc::Receiver<Event>),
        clock: Clock,
    ) -> Self {
        Self { manager, events, sender, clock, keys: None }
    }

    /// Looks after keys that sign while the queue runs.
    #[must_use]
    pub fn with_keys(self, keys: Option<KeyKeeper>) -> Self {
        Self { keys, ..self }
    }

    /// Runs until it is stopped. Rounds run where blocking is allowed.
    #[must_use]
    pub fn start(self) -> OutboundHandle {
        let (stop, stopped) = watch::channel(false);
        let (shown, seen) = watch::channel(Vec::new());
        let database = Arc::clone(self.manager.database());
        let (sender, keys) = (self.sender.clone(), self.keys.clone());
        let keeping = keys.clone().map(|keys| tokio::spawn(keys.run()));
        let task = tokio::spawn(self.run(stopped, shown));
        let handle = Shared { stop, sender, database, runtime: Handle::current(), destinations: seen, keys };
        OutboundHandle { shared: Arc::new(handle), task: Some(task), keeping }
    }

    async fn run(mut self, mut stopped: watch::Receiver<bool>, shown: watch::Sender<Vec<DestinationStatus>>) {
        let mut changes = self.manager.database().watch();
        let mut events = Vec::new();
        while !*stopped.borrow() {
            changes.mark_unchanged();
            while events.len() < EVENTS_MAX
                && let Ok(event) = self.events.try_recv()
            {
                events.push(event);
            }
            let taken = std::mem::take(&mut events);
            let mut manager = self.manager;
            let round = tokio::task::spawn_blocking(move || {
                let result = manager.round(taken);
                (manager, result)
            });
            let result;
            (self.manager, result) = match round.await {
                Ok(done) => done,
                // The process ends.
                Err(error) if error.is_cancelled() => return,
                Err(error) => {
                    tracing::error!(%error, "the queue of outgoing mail has stopped");
                    return;
                }
            };
            shown.send_replace(self.manager.destinations().collect());
            let sleep = self.sleep_after(&result);
            if sleep.is_zero() {
                continue;
            }
            tokio::select! {
                _ = changes.changed() => {}
                event = self.events.recv() => events.extend(event),
                () = tokio::time::sleep(sleep) => {}
                _ = stopped.changed() => {}
            }
        }
    }

    fn sleep_after(&self, result: &Result<RoundReport, DatabaseError>) -> Duration {
        match result {
            Ok(report) if report.has_more => Duration::ZERO,
            Ok(report) => {
                let now_ms = self.clock.now_ms();
                let wake_in = report.wake_ms.map(|wake_ms| wake_ms.saturating_sub(now_ms));
                wake_in.map_or(LONGEST_SLEEP, Duration::from_millis).min(LONGEST_SLEEP)
            }
            Err(error) => {
                tracing::warn!(%error, "the queue of outgoing mail cannot be read or written; it tries again");
                TROUBLE_SLEEP
            }
        }
    }
}

struct Shared {
    stop: watch::Sender<bool>,
    sender: mpsc::Sender<Event>,
    database: Arc<Database>,
    runtime: Handle,
    destinations: watch::Receiver<Vec<DestinationStatus>>,
    keys: Option<KeyKeeper>,
}

/// A queue that runs. Clones of [`OutboundHandle::controls`] ask it and order it.
pub struct OutboundHandle {
    shared: Arc<Shared>,
    task: Option<JoinHandle<()>>,
    keeping: Option<JoinHandle<()>>,
}

/// What asks a queue, and orders it.
#[derive(Clone)]
pub struct OutboundControls {
    shared: Arc<Shared>,
}

impl OutboundHandle {
    /// For the console.
    #[must_use]
    pub fn controls(&self) -> OutboundControls {
        OutboundControls { shared: Arc::clone(&self.shared) }
    }

    /// Stops the queue after the round that is running. Attempts under way are cut off, and are gone on with at the next start.
    pub async fn stop(mut self) {
        self.shared.stop.send_replace(true);
        if let Some(keeping) = self.keeping.take() {
            // A key is whole in its file or not there.
            keeping.abort();
        }
        if let Some(task) = self.task.take() {
            // It ends by itself; a panic of its task was logged by the runtime.
            drop(task.await);
        }
    }
}

impl OutboundControls {
    /// The keys that sign what leaves, as DNS should have them; `None` where nothing is signed.
    #[must_use]
    pub fn published_keys(&self) -> Option<Vec<PublishedKey>> {
        self.shared.keys.as_ref().map(KeyKeeper::published)
    }

    /// What waits. Blocks for as long as the queue is long.
    ///
    /// # Errors
    /// What the database reports.
    pub fn report(&self, selection: Option<&Selection>, most: usize) -> Result<QueueReport, DatabaseError> {
        let mut report = queue_report(&self.shared.database, selection, most)?;
        for status in self.shared.destinations.borrow().iter() {
            if let Some(summary) = report.destinations.get_mut(status.destination.as_ref()) {
                summary.refine(status);
            }
        }
        Ok(report)
    }

    /// Carries out an order. Blocks; not to be called where waiting is forbidden.
    ///
    /// # Errors
    /// Why it was not, in words.
    pub fn order(&self, order: &QueueOrder) -> Result<Ordered, String> {
        let ids = chosen(&self.shared.database, &order.selection).map_err(|error| error.to_string())?;
        let mut ordered = Ordered::default();
        for some in ids.chunks(ORDERED_AT_ONCE) {
            let (reply, answer) = oneshot::channel();
            let chosen = ChosenEntries {
                ids: some.to_vec(),
                command: QueueCommand::clone(&order.command),
                by: order.by.clone(),
            };
            let sender = self.shared.sender.clone();
            let answered = self.shared.runtime.block_on(async move {
                let sent = sender.send(Event::Order { order: chosen, reply });
                let asked = async {
                    sent.await.map_err(|_| ())?;
                    answer.await.map_err(|_| ())
                };
                tokio::time::timeout(ORDER_TIMEOUT, asked).await
            });
            match answered {
                Ok(Ok(done)) => ordered.add(done),
                _ => return Err("the queue does not answer; it may be about to stop".to_owned()),
            }
        }
        Ok(ordered)
    }
}
