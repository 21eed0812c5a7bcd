//! All replications of a server: ordered, found, cancelled, shown.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use parking_lot::Mutex;
use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_database::Identity;
use scrinium_statistics::Registry;
use scrinium_worker::WorkerPool;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use crate::count::Counts;
use crate::end::End;
use crate::engine::{EngineOptions, Replication, Turns};
use crate::error::{ErrorKind, ReplicationError, Result};
use crate::follow::Documents;
use crate::job::{BackOff, Check, Job};
use crate::local::{LocalEnd, People};
use crate::order::{EndOrder, Order};
use crate::remote::{AddressRules, RemoteEnd, Transport};
use crate::schedule::Priority;
use crate::settle::SettleRule;

/// Jobs that were over last and are still shown, at most.
const OVER_MAX: usize = 200;

/// Documents that are asked for at once, in the beginning.
const READ_AT_ONCE: usize = 100;

/// Limits of all replications together.
#[derive(Clone, Debug)]
pub struct ReplicatorOptions {
    /// Jobs at a time.
    pub jobs_max: usize,
    /// Pages under way at a time, of all jobs together: what bounds memory and requests.
    pub pages_at_once: usize,
    /// How each proceeds.
    pub engine: EngineOptions,
    /// When what failed is tried again.
    pub back_off: BackOff,
    /// Where other servers may be.
    pub rules: AddressRules,
    /// Certificates that are believed, next to the system's (DER).
    pub further_roots: Vec<Vec<u8>>,
    /// The name of this server in answers.
    pub node: String,
}

impl Default for ReplicatorOptions {
    fn default() -> Self {
        Self {
            jobs_max: 5000,
            pages_at_once: 16,
            engine: EngineOptions::default(),
            back_off: BackOff::default(),
            rules: AddressRules::default(),
            further_roots: Vec::new(),
            node: String::from("scrinium@127.0.0.1"),
        }
    }
}

/// All replications of a server. Clones share them.
#[derive(Clone)]
pub struct Replicator(Arc<Shared>);

/// What [`Replicator`] shares; only this crate sees inside.
pub struct Shared {
    pub(crate) databases: Databases,
    pub(crate) workers: WorkerPool,
    pub(crate) people: Arc<dyn People>,
    pub(crate) clock: Clock,
    pub(crate) options: ReplicatorOptions,
    pub(crate) documents: Documents,
    pub(crate) stopping: watch::Sender<bool>,
    /// Orders may come from threads of other kinds.
    pub(crate) runtime: Handle,
    transport: Transport,
    turns: Arc<Semaphore>,
    /// What those of low and of medium priority may have of them.
    low_turns: Arc<Semaphore>,
    medium_turns: Arc<Semaphore>,
    jobs: Mutex<BTreeMap<String, Arc<Job>>>,
}

impl std::ops::Deref for Replicator {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Replicator {
    /// A server's replications; nothing runs yet.
    ///
    /// # Panics
    /// Outside of a runtime of tokio, in which they will run.
    #[must_use]
    pub fn new(
        databases: &Databases,
        workers: &WorkerPool,
        people: Arc<dyn People>,
        (options, statistics): (ReplicatorOptions, &Registry),
    ) -> Self {
        let transport = Transport::trusting(options.rules.clone(), options.further_roots.clone());
        let replicator = Self(Arc::new(Shared {
            clock: databases.clock().clone(),
            databases: databases.clone(),
            workers: workers.clone(),
            people,
            documents: Documents::default(),
            stopping: watch::Sender::new(false),
            runtime: Handle::current(),
            transport,
            turns: Arc::new(Semaphore::new(options.pages_at_once.max(1))),
            low_turns: Arc::new(Semaphore::new((options.pages_at_once / 4).max(1))),
            medium_turns: Arc::new(Semaphore::new(
                (options.pages_at_once - options.pages_at_once / 4).max(1),
            )),
            jobs: Mutex::default(),
            options,
        }));
        let shared = Arc::downgrade(&replicator.0);
        #[allow(clippy::cast_precision_loss, reason = "there are not 2^53 jobs")]
        statistics.gauge("Replica.Jobs", move || {
            shared
                .upgrade()
                .map_or(0.0, |shared| shared.jobs.lock().values().filter(|job| !job.is_over()).count() as f64)
        });
        replicator
    }

    /// Orders a replication that is kept in memory: it ends with the server.
    ///
    /// # Errors
    /// What is wrong with the order, and whatever the one who orders it may not.
    pub fn order(&self, members: &Map<String, Value>, by: &Identity) -> Result<Arc<Job>> {
        let order = Order::parse(members)?;
        order.check_allowed(by.is_administrator())?;
        self.begin(&order, by, None)
    }

    /// Begins what was ordered; the same order again is the job that runs already.
    pub(crate) fn begin(&self, order: &Order, by: &Identity, document: Option<&str>) -> Result<Arc<Job>> {
        let whose = match &order.user {
            None => by.clone(),
            Some(name) => self.people.named(name).ok_or_else(|| {
                ReplicationError::order(format!("There is nobody of the name {name:?} for `user_ctx`."))
            })?,
        };
        let source = self.end(&order.source, &whose)?;
        let target = self.end_settling(&order.target, &whose, order.settle.clone())?;
        let ends = (&*source.identity(), &*target.identity());
        if ends.0 == ends.1 {
            return Err(ReplicationError::order("Source and target are the same database."));
        }
        let owner = whose.name().unwrap_or_default();
        let name = order.name(&format!("{}/{owner}", self.databases.server_uuid()), ends);
        let id = format!("{name}{}", order.suffix());
        let mut options = self.options.engine.clone();
        options.checkpoint_every = order.checkpoint_every.unwrap_or(options.checkpoint_every);
        options.page_changes = order.page_changes.unwrap_or(options.page_changes);
        let replication = Arc::new(Replication {
            source,
            target,
            filter: Arc::new(order.filter.clone()),
            name,
            continuous: order.continuous,
            create_target: order.create_target,
            winners_only: order.winners_only,
            since: order.since.clone(),
            uses_checkpoints: order.uses_checkpoints,
            options,
            counts: Arc::new(Counts::default()),
            clock: self.clock.clone(),
            turns: self.turns_of(order.priority),
            read_at_once: Arc::new(AtomicUsize::new(READ_AT_ONCE)),
        });
        let names = (id, document.map(str::to_owned), by.name().map(str::to_owned));
        let schedule = order.schedule.clone();
        let (people, by, order) = (Arc::clone(&self.people), by.clone(), order.clone());
        let check = move || {
            let present = people.present(&by).ok_or_else(|| {
                let reason = "The person whose replication this is may not act any more.";
                ReplicationError::new(ErrorKind::Unauthorized, reason)
            })?;
            order.check_allowed(present.is_administrator())
        };
        let proceeds = (Box::new(check) as Check, self.options.back_off, schedule);
        self.enter(Job::new(names, replication, proceeds))
    }

    /// Puts a job into the list and begins it.
    fn enter(&self, job: Job) -> Result<Arc<Job>> {
        let mut jobs = self.jobs.lock();
        let previous = jobs.get(&job.id).cloned();
        if let Some(present) = previous.as_ref().filter(|present| !present.is_ending()) {
            if job.document.is_some() && present.document != job.document {
                let by = present.document.as_deref().unwrap_or("_replicate");
                return Err(ReplicationError::order(format!(
                    "The same replication runs already; it was ordered by {by:?}."
                )));
            }
            return Ok(Arc::clone(present));
        }
        let over = jobs.values().filter(|job| job.is_over()).count();
        if jobs.len() - over >= self.options.jobs_max {
            let reason = format!(
                "This server carries out at most {} replications at a time (`replication.max_jobs`).",
                self.options.jobs_max
            );
            return Err(ReplicationError::new(ErrorKind::Unavailable, reason));
        }
        if over > OVER_MAX {
            forget_oldest(&mut jobs);
        }
        let job = Arc::new(job);
        jobs.insert(job.id.clone(), Arc::clone(&job));
        // What waits for changes, or is kept in a document, is tried again by itself.
        let fails_at_once = job.document.is_none() && !job.is_continuous();
        let begun = Arc::clone(&job);
        self.runtime.spawn(async move {
            // One that was cancelled just now lets go of the checkpoint first.
            if let Some(previous) = previous {
                drop(previous.over().await);
            }
            begun.work(fails_at_once).await;
        });
        Ok(job)
    }

    fn turns_of(&self, priority: Priority) -> Turns {
        let all = Arc::clone(&self.turns);
        match priority {
            Priority::High => Turns::of(all),
            Priority::Medium => Turns::some_of(all, Arc::clone(&self.medium_turns)),
            Priority::Low => Turns::some_of(all, Arc::clone(&self.low_turns)),
        }
    }

    fn end(&self, order: &EndOrder, whose: &Identity) -> Result<Arc<dyn End>> {
        self.end_settling(order, whose, None)
    }

    /// An end, at which conflicts are settled by a rule where it is a database of this server.
    fn end_settling(
        &self,
        order: &EndOrder,
        whose: &Identity,
        rule: Option<SettleRule>,
    ) -> Result<Arc<dyn End>> {
        let name = match order {
            EndOrder::Local(name) => name.clone(),
            EndOrder::Remote(options) => match options.own_database(&self.options.rules) {
                Some(name) => name,
                None => return Ok(Arc::new(RemoteEnd::new(&self.transport, options.clone())?)),
            },
        };
        let people = Arc::clone(&self.people);
        let (databases, workers) = (self.databases.clone(), self.workers.clone());
        let end = LocalEnd::new(databases, workers, people, (whose.clone(), &name));
        Ok(Arc::new(end.settling(rule)))
    }

    /// Cancels what was ordered by `_replicate`: the same order again, or its name.
    ///
    /// # Errors
    /// There is no such replication, or it is somebody else's.
    pub fn cancel(&self, members: &Map<String, Value>, by: &Identity) -> Result<String> {
        let named = ["_local_id", "replication_id", "id"].iter().find_map(|name| members.get(*name));
        let id = match named.and_then(Value::as_str) {
            Some(id) => id.to_owned(),
            None => self.name_of(members, by)?,
        };
        let job = self.job(&id).filter(|job| !job.is_ending() && job.document.is_none());
        let is_theirs = |job: &Arc<Job>| by.is_administrator() || job.user.as_deref() == by.name();
        let job = job.filter(is_theirs).ok_or_else(|| {
            ReplicationError::new(ErrorKind::NotFound, "There is no such replication to cancel.")
        })?;
        job.cancel();
        Ok(id)
    }

    fn name_of(&self, members: &Map<String, Value>, by: &Identity) -> Result<String> {
        let order = Order::parse(members)?;
        order.check_allowed(by.is_administrator())?;
        let (source, target) = (self.end(&order.source, by)?, self.end(&order.target, by)?);
        let owner = order.user.as_deref().or_else(|| by.name()).unwrap_or_default();
        let uuid = format!("{}/{owner}", self.databases.server_uuid());
        Ok(format!("{}{}", order.name(&uuid, (&source.identity(), &target.identity())), order.suffix()))
    }

    /// A job by its name.
    #[must_use]
    pub fn job(&self, id: &str) -> Option<Arc<Job>> {
        self.jobs.lock().get(id).cloned()
    }

    /// All jobs that are not over.
    #[must_use]
    pub fn jobs(&self) -> Vec<Arc<Job>> {
        self.jobs.lock().values().filter(|job| !job.is_over()).cloned().collect()
    }

    /// The name of this server in answers.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.options.node
    }

    /// Stops everything. What came after the last checkpoint is looked at again when it goes on.
    pub async fn stop(&self) {
        self.stopping.send_replace(true);
        let jobs = self.jobs();
        for job in &jobs {
            job.cancel();
        }
        let all = futures_util::future::join_all(jobs.iter().map(|job| job.over()));
        drop(tokio::time::timeout(Duration::from_secs(5), all).await);
    }
}

/// Half of what was over, so that it need not be done for each.
fn forget_oldest(jobs: &mut BTreeMap<String, Arc<Job>>) {
    let over = jobs.values().filter(|job| job.is_over());
    let mut over: Vec<(String, String)> = over.map(|job| (job.status().changed, job.id.clone())).collect();
    over.sort_unstable();
    for (_, id) in over.iter().take(over.len() / 2) {
        jobs.remove(id);
    }
}
