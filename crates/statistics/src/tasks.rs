//! What the server is busy with: one table of long jobs, their progress and their end.
//!
//! A part that starts a job (a view build, an import, a compaction) asks the table for a [`Task`] and
//! reports into it; the console's `show tasks` and `/_active_tasks` read the table. Reporting costs a
//! look at the clock and two atomic stores, so it may be called for every document.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Mutex, RwLock};
use scrinium_clock::{Clock, from_unix_ms, milliseconds, unix_s};
use serde_json::{Map, Value, json};

/// Ended tasks that are kept; the oldest goes first.
const HISTORY: usize = 256;

/// The rate is taken over this many samples, a second or more apart.
const SAMPLES: usize = 16;
const SAMPLE_EVERY_MS: u64 = 1000;

/// A total that nobody knows yet.
const UNKNOWN: u64 = u64::MAX;

/// Told of every task that has ended.
type OnEnd = Box<dyn Fn(&TaskStatus) + Send + Sync>;

/// The table of running and ended tasks. Clones share it.
#[derive(Clone)]
pub struct Tasks {
    shared: Arc<Table>,
}

struct Table {
    clock: Clock,
    /// When the table was made: the time of day in milliseconds since 1970, and the monotonic time. How long a task
    /// takes does not depend on a clock that is set.
    began: (u64, Instant),
    next: AtomicU64,
    /// As long as the handles that their owners hold, so it needs no bound of its own.
    running: RwLock<BTreeMap<u64, Arc<Entry>>>,
    ended: Mutex<VecDeque<TaskStatus>>,
    on_end: OnceLock<OnEnd>,
}

struct Entry {
    id: u64,
    kind: String,
    database: Option<String>,
    started_ms: u64,
    done: AtomicU64,
    total: AtomicU64,
    updated_ms: AtomicU64,
    sampled_ms: AtomicU64,
    cancel: AtomicBool,
    /// Whether it stops working when asked to pause.
    pausable: AtomicBool,
    paused: AtomicBool,
    samples: Mutex<VecDeque<(u64, u64)>>,
    details: Mutex<BTreeMap<String, Value>>,
}

/// How a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// It works.
    Running,
    /// It did all it was to do.
    Finished,
    /// It was told to stop, and stopped.
    Cancelled,
    /// It could not go on, for this reason.
    Failed(String),
}

impl TaskState {
    /// One word for it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
            Self::Failed(_) => "failed",
        }
    }
}

/// One line of the table, as it stood when it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskStatus {
    /// Number of the task; never used twice while the server runs.
    pub id: u64,
    /// What it does, in CouchDB's words where it has one (`indexer`, `database_compaction`).
    pub kind: String,
    /// The database that it works on.
    pub database: Option<String>,
    /// Units done.
    pub done: u64,
    /// Units to do, where that is known.
    pub total: Option<u64>,
    /// Units a second: lately while it runs, overall once it ended.
    pub rate: f64,
    /// Time to the end at that rate.
    pub remaining: Option<Duration>,
    /// When it started.
    pub started: SystemTime,
    /// When it last reported.
    pub updated: SystemTime,
    /// How it stands.
    pub state: TaskState,
    /// Somebody asked it to stop.
    pub cancel_requested: bool,
    /// Somebody asked it to pause, and it waits, or is about to, until it is asked to continue.
    pub paused: bool,
    /// What else it tells, under the names that `/_active_tasks` shows (`design_document`, `source`).
    pub details: BTreeMap<String, Value>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self::with_clock(&Clock::default())
    }
}

impl Tasks {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty table whose times are told by `clock`.
    #[must_use]
    pub fn with_clock(clock: &Clock) -> Self {
        let table = Table {
            clock: clock.clone(),
            began: (clock.now_ms(), clock.instant()),
            next: AtomicU64::new(1),
            running: RwLock::default(),
            ended: Mutex::default(),
            on_end: OnceLock::new(),
        };
        Self { shared: Arc::new(table) }
    }

    /// Enters a task of this kind, with the units it has to do where they are known.
    #[must_use]
    pub fn start(&self, kind: &str, database: Option<&str>, total: Option<u64>) -> Task {
        let now_ms = self.shared.now_ms();
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let entry = Arc::new(Entry {
            id,
            kind: kind.to_owned(),
            database: database.map(str::to_owned),
            started_ms: now_ms,
            done: AtomicU64::new(0),
            total: AtomicU64::new(total.unwrap_or(UNKNOWN)),
            updated_ms: AtomicU64::new(now_ms),
            sampled_ms: AtomicU64::new(now_ms),
            cancel: AtomicBool::new(false),
            pausable: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            samples: Mutex::new(VecDeque::from([(now_ms, 0)])),
            details: Mutex::default(),
        });
        self.shared.running.write().insert(id, entry.clone());
        Task { entry, table: self.shared.clone(), ended: false }
    }

    /// The running tasks, oldest first.
    #[must_use]
    pub fn running(&self) -> Vec<TaskStatus> {
        let entries: Vec<_> = self.shared.running.read().values().cloned().collect();
        let now_ms = self.shared.now_ms();
        entries.iter().map(|entry| entry.status(now_ms, TaskState::Running)).collect()
    }

    /// The latest tasks that ended, newest first; at most 256.
    #[must_use]
    pub fn ended(&self) -> Vec<TaskStatus> {
        self.shared.ended.lock().iter().rev().cloned().collect()
    }

    /// Calls `told` with every task that ends from now on, on the thread that ends it, so it must not wait. Only the
    /// first call counts.
    pub fn on_end(&self, told: impl Fn(&TaskStatus) + Send + Sync + 'static) {
        // Nobody else may take the place of the one who is informed already.
        let _first = self.shared.on_end.set(Box::new(told));
    }

    /// Asks a running task to stop; it does so when it next looks. False if there is none of this number.
    #[must_use]
    pub fn cancel(&self, id: u64) -> bool {
        let running = self.shared.running.read();
        let Some(entry) = running.get(&id) else { return false };
        entry.cancel.store(true, Ordering::Relaxed);
        true
    }

    /// Asks a running task to pause, or to go on; it does so when it next looks.
    ///
    /// # Errors
    /// [`PauseError`]: there is no such task, or it knows no pause.
    pub fn pause(&self, id: u64, paused: bool) -> Result<(), PauseError> {
        let entry = self.shared.running.read().get(&id).cloned().ok_or(PauseError::NotRunning)?;
        if !entry.pausable.load(Ordering::Relaxed) {
            return Err(PauseError::Unable { kind: entry.kind.clone() });
        }
        if entry.paused.swap(paused, Ordering::Relaxed) && !paused {
            // The time that it stood still says nothing of how fast it goes.
            let done = entry.done.load(Ordering::Relaxed);
            *entry.samples.lock() = VecDeque::from([(self.shared.now_ms(), done)]);
        }
        Ok(())
    }

    /// The running tasks as CouchDB's `GET /_active_tasks` answers: an array of objects with `type`,
    /// `database`, `changes_done`, `total_changes`, `progress` (percent), `started_on` and `updated_on`
    /// (seconds since 1970), besides the details. `pid` is the number that the console knows it by; `eta_seconds` is
    /// the time to the end where that is known, and `paused` is there while it has to wait.
    #[must_use]
    pub fn active_tasks(&self) -> Value {
        Value::Array(self.running().iter().map(TaskStatus::active_task).collect())
    }
}

/// Why a task was not paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PauseError {
    /// None of this number is running.
    NotRunning,
    /// It cannot pause.
    Unable {
        /// What it does.
        kind: String,
    },
}

impl Table {
    fn now_ms(&self) -> u64 {
        self.began.0.saturating_add(milliseconds(self.clock.elapsed(self.began.1)))
    }

    fn end(&self, entry: &Entry, state: TaskState) {
        let status = entry.status(self.now_ms(), state);
        if let Some(told) = self.on_end.get() {
            told(&status);
        }
        {
            let mut ended = self.ended.lock();
            if ended.len() >= HISTORY {
                ended.pop_front();
            }
            ended.push_back(status);
        }
        // Last, so that who asks for the running tasks first, then for those that ended, misses none.
        self.running.write().remove(&entry.id);
    }
}

/// The handle of one running task. A handle dropped without [`Task::finish`] or [`Task::fail`] counts as
/// cancelled if it was asked to stop, and as failed otherwise.
pub struct Task {
    entry: Arc<Entry>,
    table: Arc<Table>,
    ended: bool,
}

impl Task {
    /// The number that the console knows it by.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.entry.id
    }

    /// Reports that `done` units are done so far.
    pub fn progress(&self, done: u64) {
        self.entry.done.store(done, Ordering::Relaxed);
        self.touch(done);
    }

    /// Reports `count` more units; for a task that several threads work on.
    pub fn advance(&self, count: u64) {
        let done = self.entry.done.fetch_add(count, Ordering::Relaxed).saturating_add(count);
        self.touch(done);
    }

    /// Says how many units there are to do, once that is known or changes.
    pub fn set_total(&self, total: u64) {
        self.entry.total.store(total, Ordering::Relaxed);
    }

    /// Tells something else of it, under the name that `/_active_tasks` is to show.
    pub fn detail(&self, name: &str, value: impl Into<Value>) {
        self.entry.details.lock().insert(name.to_owned(), value.into());
    }

    /// Whether somebody asked it to stop; a task looks often and drops its handle when it obeys.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.entry.cancel.load(Ordering::Relaxed)
    }

    /// From now on it can be told to pause: it asks [`Task::is_paused`] often, and waits as long as that is so.
    pub fn allow_pause(&self) {
        self.entry.pausable.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked it to pause, and not to go on since.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.entry.paused.load(Ordering::Relaxed)
    }

    /// It did all it was to do.
    pub fn finish(mut self) {
        self.end(TaskState::Finished);
    }

    /// It could not go on, for this reason.
    pub fn fail(mut self, reason: impl Into<String>) {
        self.end(TaskState::Failed(reason.into()));
    }

    fn touch(&self, done: u64) {
        let now_ms = self.table.now_ms();
        self.entry.updated_ms.store(now_ms, Ordering::Relaxed);
        let sampled_ms = self.entry.sampled_ms.load(Ordering::Relaxed);
        if now_ms.saturating_sub(sampled_ms) >= SAMPLE_EVERY_MS {
            self.entry.sampled_ms.store(now_ms, Ordering::Relaxed);
            let mut samples = self.entry.samples.lock();
            if samples.len() >= SAMPLES {
                samples.pop_front();
            }
            samples.push_back((now_ms, done));
        }
    }

    fn end(&mut self, state: TaskState) {
        self.ended = true;
        self.table.end(&self.entry, state);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let state = if self.is_cancelled() {
            TaskState::Cancelled
        } else {
            TaskState::Failed("it ended without a result".to_owned())
        };
        self.end(state);
    }
}

impl Entry {
    fn status(&self, now_ms: u64, state: TaskState) -> TaskStatus {
        let done = self.done.load(Ordering::Relaxed);
        let total = Some(self.total.load(Ordering::Relaxed)).filter(|total| *total != UNKNOWN);
        let since = match state {
            TaskState::Running => self.samples.lock().front().copied(),
            _ => None,
        };
        let (since_ms, since_done) = since.unwrap_or((self.started_ms, 0));
        let rate = per_second(done.saturating_sub(since_done), now_ms.saturating_sub(since_ms));
        let left = total.map(|total| total.saturating_sub(done));
        let paused = state == TaskState::Running && self.paused.load(Ordering::Relaxed);
        let remaining = match (&state, left) {
            (TaskState::Running, Some(left)) if !paused => time_for(left, rate),
            _ => None,
        };
        TaskStatus {
            id: self.id,
            kind: self.kind.clone(),
            database: self.database.clone(),
            done,
            total,
            rate,
            remaining,
            started: from_unix_ms(self.started_ms),
            updated: from_unix_ms(self.updated_ms.load(Ordering::Relaxed)),
            state,
            cancel_requested: self.cancel.load(Ordering::Relaxed),
            paused,
            details: self.details.lock().clone(),
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a rate needs no more than 53 bits")]
fn per_second(units: u64, elapsed_ms: u64) -> f64 {
    if elapsed_ms == 0 { 0.0 } else { units as f64 * 1000.0 / elapsed_ms as f64 }
}

#[allow(clippy::cast_precision_loss, reason = "an estimate needs no more than 53 bits")]
fn time_for(units: u64, rate: f64) -> Option<Duration> {
    if units == 0 {
        return Some(Duration::ZERO);
    }
    Duration::try_from_secs_f64(units as f64 / rate).ok()
}

impl TaskStatus {
    /// Percent done, rounded down; nothing where the total is not known.
    #[must_use]
    pub fn percent(&self) -> Option<u64> {
        match self.total? {
            0 => Some(100),
            total => Some((u128::from(self.done) * 100 / u128::from(total)).min(100) as u64),
        }
    }

    fn active_task(&self) -> Value {
        let mut object = Map::new();
        for (name, value) in &self.details {
            object.insert(name.clone(), value.clone());
        }
        object.insert("node".to_owned(), json!("_local"));
        object.insert("pid".to_owned(), json!(format!("<{}>", self.id)));
        object.insert("type".to_owned(), json!(self.kind));
        if let Some(database) = &self.database {
            object.insert("database".to_owned(), json!(database));
        }
        object.insert("changes_done".to_owned(), json!(self.done));
        if let Some(total) = self.total {
            object.insert("total_changes".to_owned(), json!(total));
        }
        if let Some(percent) = self.percent() {
            object.insert("progress".to_owned(), json!(percent));
        }
        if let Some(remaining) = self.remaining {
            object.insert(
                "eta_seconds".to_owned(),
                json!(remaining.as_secs() + u64::from(remaining.subsec_nanos() > 0)),
            );
        }
        if self.paused {
            object.insert("paused".to_owned(), json!(true));
        }
        object.insert("started_on".to_owned(), json!(unix_s(self.started)));
        object.insert("updated_on".to_owned(), json!(unix_s(self.updated)));
        Value::Object(object)
    }
}
