//! The thread that stores records: one batch a second at most.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::{Condvar, Mutex};
use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_database::{DatabaseError, Edit, EditMode};
use scrinium_statistics::Registry;
use scrinium_views::OpenDatabase;
use serde_json::json;

use super::design::{self, PrepareError};
use super::queue::minute_of;
use super::record::{Record, time_text};
use super::retention::{self, Keep};
use super::{Class, LogDatabase, fields_of, figures, quietly};

const ROUND_EVERY: Duration = Duration::from_secs(1);

/// Records of one batch, and the bytes of their documents: it must fit into half of the smallest extent of the log.
const BATCH_RECORDS: usize = 500;
const BATCH_BYTES: usize = 128 << 10;

/// Batches that are stored at the end, at most.
const LAST_BATCHES: usize = 100;

/// What cannot be stored is tried again after this.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Not at once: a start has enough to do.
const FIRST_REMOVAL_AFTER: Duration = Duration::from_secs(600);
const REMOVAL_EVERY: Duration = Duration::from_secs(3600);

/// What the writer needs of the server.
pub(crate) struct LogParts {
    pub(crate) databases: Databases,
    pub(crate) statistics: Registry,
    /// The database's name; not empty.
    pub(crate) name: String,
    /// How long documents are kept, as it is set now.
    pub(crate) keep: Box<dyn Fn() -> Keep + Send>,
}

/// A running writer. When it is dropped, what waits is stored, which blocks.
pub(crate) struct LogWriter {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl LogWriter {
    /// Opens the database and begins to store; `None` if there can be no log database, which is logged.
    pub(crate) fn start(log: &LogDatabase, parts: LogParts) -> Option<Self> {
        let name = parts.name.clone();
        let now = parts.databases.clock().timestamp();
        let mut writer = Writer::new(log.clone(), parts, now);
        if let Err(error @ PrepareError::Foreign(_)) = quietly(|| writer.open()) {
            tracing::warn!(%error, "no log database is kept");
            log.refuse();
            return None;
        }
        let stop = Arc::new(Stop::default());
        let asked = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("log-database".to_owned())
            .spawn(move || quietly(|| writer.run(&asked)));
        match thread {
            Ok(thread) => Some(Self { stop, thread: Some(thread) }),
            Err(error) => {
                tracing::warn!(%error, name, "no log database is kept: cannot start a thread for it");
                log.refuse();
                None
            }
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        *self.stop.asked.lock() = true;
        self.stop.changed.notify_all();
        // A panic was told by the thread itself.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// What the thread does.
pub(super) struct Writer {
    log: LogDatabase,
    pub(super) parts: LogParts,
    clock: Clock,
    database: Option<OpenDatabase>,
    /// What is to be stored next, or may not have been.
    batch: Vec<Record>,
    usage: VecDeque<Record>,
    minute: i64,
    hour_began: Timestamp,
    /// Set while it cannot be stored: when to try again.
    retry_at: Option<Instant>,
    remove_at: Instant,
    removal: Option<Removal>,
}

struct Removal {
    go_on: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Writer {
    pub(super) fn new(log: LogDatabase, parts: LogParts, now: Timestamp) -> Self {
        let clock = parts.databases.clock().clone();
        Self {
            log,
            parts,
            database: None,
            batch: Vec::new(),
            usage: VecDeque::new(),
            minute: minute_of(now),
            hour_began: now,
            retry_at: None,
            remove_at: clock.instant() + FIRST_REMOVAL_AFTER,
            clock,
            removal: None,
        }
    }

    fn run(&mut self, stop: &Stop) {
        let mut asked = stop.asked.lock();
        while !*asked {
            stop.changed.wait_for(&mut asked, ROUND_EVERY);
            if *asked {
                break;
            }
            drop(asked);
            self.round(self.clock.timestamp());
            self.begin_removal();
            asked = stop.asked.lock();
        }
        drop(asked);
        self.end(self.clock.timestamp());
    }

    /// Adds what the clock asks for, and stores a batch.
    pub(super) fn round(&mut self, now: Timestamp) {
        self.look_at_clock(now);
        self.store();
    }

    /// Stores what waits, and what was used in the hour that has not ended.
    pub(super) fn end(&mut self, now: Timestamp) {
        self.take_usage(now);
        self.log.tell_of_logins();
        self.retry_at = None;
        for _ in 0..LAST_BATCHES {
            self.store();
            if self.retry_at.is_some() || self.is_done() {
                break;
            }
        }
        if let Some(Removal { go_on, thread }) = self.removal.take() {
            go_on.store(false, Ordering::Relaxed);
            drop(thread.join());
        }
    }

    fn is_done(&self) -> bool {
        self.batch.is_empty() && self.usage.is_empty() && self.log.shared.queue.lock().len() == 0
    }

    fn look_at_clock(&mut self, now: Timestamp) {
        let (minute, hour_of) = (minute_of(now), |minute: i64| minute.div_euclid(60));
        if minute == self.minute {
            return;
        }
        let is_new_hour = hour_of(minute) != hour_of(self.minute);
        self.minute = minute;
        if self.retry_at.is_none() && !self.log.shared.queue.lock().is_full() {
            self.tell_what_was_left_out(now);
        }
        self.log.tell_of_logins();
        let figures = figures::fields(&self.parts.statistics.snapshot());
        if is_new_hour {
            self.take_usage(now);
            self.add(Class::Hourly, now, figures.clone());
        }
        self.add(Class::Statistics, now, figures);
    }

    fn add(&self, class: Class, now: Timestamp, fields: serde_json::Map<String, serde_json::Value>) {
        let record = self.log.make(class, now, fields);
        self.log.shared.queue.lock().push(class, record);
    }

    fn tell_what_was_left_out(&self, now: Timestamp) {
        let left_out = self.log.shared.queue.lock().take_left_out();
        for (class, count) in left_out {
            self.log.shared.left_out.add(count);
            let text = format!("{count} {} were left out of the log database", class.plural());
            let fields = json!({
                "Level": "warn",
                "Source": "log_database",
                "Text": text,
                "Fields": {"kind": class.form(), "count": count},
            });
            self.add(Class::Event, now, fields_of(fields));
        }
    }

    fn take_usage(&mut self, now: Timestamp) {
        let began = std::mem::replace(&mut self.hour_began, now);
        for (database, person, counts) in self.log.shared.usage.take().into_lines() {
            let fields = json!({
                "Since": time_text(began),
                "Database": database,
                "Person": person,
                "Reads": counts.reads,
                "Writes": counts.writes,
                "ReceivedBytes": counts.received_bytes,
                "SentBytes": counts.sent_bytes,
            });
            // What the hour before has left there is not stored for ten thousand seconds; it makes room.
            if self.usage.len() > super::usage::PAIRS_MAX {
                self.log.shared.queue.lock().leave_out(Class::Usage, 1);
                continue;
            }
            self.usage.push_back(self.log.make(Class::Usage, now, fields_of(fields)));
        }
    }

    fn store(&mut self) {
        if self.retry_at.is_some_and(|at| self.clock.instant() < at) {
            return;
        }
        if self.batch.is_empty() {
            self.batch = take_some(&mut self.usage);
            if self.batch.is_empty() {
                self.batch = self.log.shared.queue.lock().take(take_some);
            }
        }
        if self.batch.is_empty() {
            return;
        }
        match self.store_batch() {
            Ok(written) => {
                self.log.shared.written.add(written);
                self.batch.clear();
                if self.retry_at.take().is_some() {
                    tracing::info!(database = self.parts.name, "the log database is written again");
                }
            }
            Err(error) if !error.may_pass() => {
                tracing::warn!(database = self.parts.name, %error, "records were not taken by the log database");
                self.log.shared.left_out.add(self.batch.len() as u64);
                self.batch.clear();
            }
            Err(error) => {
                // Somebody has dropped it: it is made again.
                self.database = None;
                if self.retry_at.is_none() {
                    tracing::warn!(
                        database = self.parts.name, %error,
                        "the log database cannot be written; what fits into memory waits until it can"
                    );
                }
                self.retry_at = Some(self.clock.instant() + RETRY_AFTER);
            }
        }
    }

    /// Opens the database unless it is open where it is now.
    pub(super) fn open(&mut self) -> Result<OpenDatabase, PrepareError> {
        if let Some(database) = self.database.as_ref().filter(|database| database.moved().is_none()) {
            return Ok(database.clone());
        }
        let database = design::prepare(&self.parts.databases, &self.parts.name)?;
        self.database = Some(database.clone());
        Ok(database)
    }

    /// Stores the batch; how many records of it are there now.
    fn store_batch(&mut self) -> Result<u64, PrepareError> {
        let edits = self.batch.iter().map(|record| Edit {
            id: Some(record.id.clone()),
            json: record.json.clone(),
            ..Edit::default()
        });
        let edits = edits.collect();
        let results = self.open()?.update_in_parts(edits, EditMode::Interactive, &design::KEEPER)?.wait()?;
        let mut written = 0;
        for result in results {
            match result {
                // A conflict: it was stored although that was not known.
                Ok(_) | Err(DatabaseError::Conflict) => written += 1,
                Err(error @ (DatabaseError::Full { .. } | DatabaseError::Unavailable { .. })) => {
                    return Err(error.into());
                }
                Err(_) => self.log.shared.left_out.add(1),
            }
        }
        Ok(written)
    }

    /// Begins to remove what is old, in the background, when it is time and the last removal has ended.
    fn begin_removal(&mut self) {
        if self.clock.instant() < self.remove_at
            || self.removal.as_ref().is_some_and(|removal| !removal.thread.is_finished())
        {
            return;
        }
        self.remove_at = self.clock.instant() + REMOVAL_EVERY;
        let Ok(database) = self.open() else { return };
        let (databases, keep) = (self.parts.databases.clone(), (self.parts.keep)());
        let go_on = Arc::new(AtomicBool::new(true));
        let asked = Arc::clone(&go_on);
        let work = move || {
            let removed = quietly(|| {
                retention::remove_old(&databases, &database, keep, databases.clock().timestamp(), &|| {
                    asked.load(Ordering::Relaxed)
                })
            });
            match removed {
                Ok(removed) => tracing::debug!(?removed, "what was old left the log database"),
                Err(error) => {
                    tracing::warn!(%error, "what is old was not removed from the log database; it is tried again in an hour");
                }
            }
        };
        let thread = std::thread::Builder::new().name("log-removal".to_owned()).spawn(work);
        self.removal = thread.ok().map(|thread| Removal { go_on, thread });
    }
}

/// The oldest records, as many as one batch takes.
fn take_some(records: &mut VecDeque<Record>) -> Vec<Record> {
    let mut bytes = 0;
    let fits = |record: &&Record| {
        bytes += record.json.len();
        bytes <= BATCH_BYTES
    };
    let rest = records.iter().skip(1).take(BATCH_RECORDS - 1).take_while(fits).count();
    records.drain(..records.len().min(rest + 1)).collect()
}
