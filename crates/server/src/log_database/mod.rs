//! The log database: what happens on the server, as documents that are read with views.
//!
//! Anyone who has something to tell makes a record ([`LogDatabase::record`]), which costs a lock of a bounded queue and never
//! waits. A thread of its own takes the records that have gathered, at most once a second, and stores them as one batch
//! ([`writer`]); it adds the statistics of each minute and each hour ([`figures`]), and who used which database
//! ([`usage`]). What is older than it is to be kept goes, and leaves no tombstones ([`retention`]).
//!
//! Nothing is recorded of what these threads do themselves, so that a record never leads to another one.

mod audit;
mod design;
mod events;
mod figures;
mod logins;
mod queue;
mod record;
mod requests;
mod retention;
#[cfg(test)]
mod tests;
mod usage;
mod writer;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use scrinium_catalog::Databases;
use scrinium_clock::{Clock, milliseconds};
use scrinium_mail::Routed;
use scrinium_mail_queue::show::trace;
use scrinium_outbound::Told;
use scrinium_statistics::{Counter, Registry, TaskState, TaskStatus};
use serde_json::{Map, Value, json};

use crate::config::{RunningConfiguration, Settings};
use logins::LoginTable;
use queue::Queue;
use record::{Names, Record, bounded};
use retention::Keep;
use usage::UsageTable;
use writer::LogParts;

pub(crate) use design::{MESSAGES_DESIGN, MESSAGES_VIEW};
pub(crate) use events::EventLayer;
pub(crate) use record::{Class, time_text};
pub(crate) use writer::LogWriter;

/// Details of a task with a longer text are left out, so that they stay within the document.
const DETAILS_BYTES_MAX: usize = 1500;

thread_local! {
    /// Whether what this thread does is not to be recorded.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, of which nothing is recorded.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let before = QUIET.replace(true);
    let done = work();
    QUIET.set(before);
    done
}

/// Takes records for the log database. Clones share one queue.
#[derive(Clone)]
pub struct LogDatabase {
    shared: Arc<SharedLogDatabase>,
}

struct SharedLogDatabase {
    clock: Clock,
    names: Names,
    queue: Mutex<Queue>,
    usage: UsageTable,
    logins: LoginTable,
    /// In microseconds; `u64::MAX`: no operation is slow.
    slow_after_us: AtomicU64,
    per_minute: AtomicUsize,
    written: Counter,
    left_out: Counter,
}

impl LogDatabase {
    /// Takes records from the start, before there is a database to keep them in, with the times of `clock`. Counts `LogDatabase.Written` and
    /// `LogDatabase.LeftOut` (documents), and shows `LogDatabase.Waiting`.
    #[must_use]
    pub fn new(statistics: &Registry, clock: &Clock) -> Self {
        let shared = Arc::new(SharedLogDatabase {
            clock: clock.clone(),
            names: Names::default(),
            queue: Mutex::default(),
            usage: UsageTable::default(),
            logins: LoginTable::default(),
            slow_after_us: AtomicU64::new(u64::MAX),
            per_minute: AtomicUsize::new(usize::MAX),
            written: statistics.counter("LogDatabase.Written"),
            left_out: statistics.counter("LogDatabase.LeftOut"),
        });
        let counted = Arc::downgrade(&shared);
        #[allow(clippy::cast_precision_loss, reason = "the queue is bounded")]
        statistics.gauge("LogDatabase.Waiting", move || {
            counted.upgrade().map_or(0.0, |shared| shared.queue.lock().len() as f64)
        });
        Self { shared }
    }

    /// Takes the server's name, and what can be changed while running, also when it is.
    pub(crate) fn follow(&self, configuration: &RunningConfiguration, server: &str) {
        // One server's records name one server.
        let _first = self.shared.names.server.set(server.to_owned());
        self.set(&configuration.settings());
        for key in ["log_database.slow_after", "log_database.per_minute"] {
            let log = self.clone();
            configuration.on_change(key, move |settings| {
                log.set(settings);
                Ok(())
            });
        }
        // These are read whenever old documents are looked for.
        for key in [
            "log_database.keep_for",
            "log_database.keep_mail_for",
            "log_database.keep_hourly_for",
            "log_database.keep_audit_for",
        ] {
            configuration.on_change(key, |_| Ok(()));
        }
    }

    /// Opens the database that the settings name, and begins to store. `None`: none is kept.
    pub(crate) fn start(
        &self,
        databases: &Databases,
        configuration: &RunningConfiguration,
        statistics: &Registry,
    ) -> Option<LogWriter> {
        let name = configuration.settings().log_database.name.clone();
        if name.is_empty() {
            self.refuse();
            return None;
        }
        let configuration = configuration.clone();
        let keep = move || {
            let settings = configuration.settings();
            let keep = &settings.log_database;
            Keep {
                documents: keep.keep_for,
                mail: keep.keep_mail_for,
                hourly: keep.keep_hourly_for,
                audit: keep.keep_audit_for,
            }
        };
        let (databases, statistics) = (databases.clone(), statistics.clone());
        LogWriter::start(self, LogParts { databases, statistics, name, keep: Box::new(keep) })
    }

    fn set(&self, settings: &Settings) {
        let slow_after = settings.log_database.slow_after;
        let slow_after_us = if slow_after.is_zero() { u128::from(u64::MAX) } else { slow_after.as_micros() };
        let slow_after_us = u64::try_from(slow_after_us).unwrap_or(u64::MAX);
        self.shared.slow_after_us.store(slow_after_us, Ordering::Relaxed);
        self.shared.per_minute.store(settings.log_database.per_minute, Ordering::Relaxed);
    }

    /// Takes no more records, and forgets those that wait: there is no database for them.
    fn refuse(&self) {
        self.shared.queue.lock().close();
        drop(self.shared.usage.take());
    }

    /// Makes a record of what `fields` tells, unless this many of its kind have come in this minute, or wait, that it is
    /// only counted.
    pub(crate) fn record(&self, class: Class, fields: impl FnOnce() -> Map<String, Value>) {
        if QUIET.get() {
            return;
        }
        let now = self.shared.clock.timestamp();
        let limit = self.shared.per_minute.load(Ordering::Relaxed);
        if !self.shared.queue.lock().admits(class, now, limit) {
            return;
        }
        let record = self.make(class, now, fields());
        self.shared.queue.lock().push(class, record);
    }

    /// Makes a record of what the queue has room for, however many of its kind there are: for what is bounded otherwise.
    fn record_always(&self, class: Class, fields: impl FnOnce() -> Map<String, Value>) {
        let record = self.make(class, self.shared.clock.timestamp(), fields());
        self.shared.queue.lock().push(class, record);
    }

    fn make(&self, class: Class, now: Timestamp, fields: Map<String, Value>) -> Record {
        self.shared.names.make(class, now, fields)
    }

    /// Records a task that has ended.
    pub(crate) fn task_run(&self, task: &TaskStatus) {
        self.record(Class::Task, || {
            let reason = match &task.state {
                TaskState::Failed(reason) => bounded(reason),
                _ => "",
            };
            let took = task.updated.duration_since(task.started).unwrap_or_default();
            let details = Value::from_iter(task.details.clone());
            let details = Some(details).filter(|details| details.to_string().len() <= DETAILS_BYTES_MAX);
            let started = Timestamp::try_from(task.started).unwrap_or_default();
            fields_of(json!({
                "Task": task.kind,
                "Number": task.id,
                "Database": task.database.as_deref().unwrap_or_default(),
                "Started": format!("{started:.3}"),
                "Outcome": task.state.name(),
                "Reason": reason,
                "Done": task.done,
                "Total": task.total,
                "Milliseconds": milliseconds(took),
                "Details": details,
            }))
        });
    }

    /// Records what happens to an entry of the queue of outgoing mail.
    pub(crate) fn queued_mail(&self, told: &Told<'_>) {
        let entry = told.entry;
        // The line names recipients, which only the first record of an entry does by itself.
        let lines = trace([&entry.snapshot(entry.arrived_ms), told.record]);
        let is_first = matches!(told.record.change, scrinium_mail_queue::Change::Queued(_));
        for line in lines.into_iter().skip(usize::from(!is_first)) {
            self.record_always(Class::Outgoing, || {
                fields_of(json!({
                    "Change": told.record.change.word(),
                    "From": bounded(&entry.envelope.turn()),
                    "Memo": bounded(&entry.id),
                    "MessageID": bounded(entry.envelope.message_id.as_deref().unwrap_or_default()),
                    "Destination": bounded(&entry.destination.to_string()),
                    "Attempts": entry.attempts,
                    "Words": bounded(&line.words),
                }))
            });
        }
    }

    /// Records what became of a memo.
    pub(crate) fn routed(&self, routed: &Routed<'_>) {
        self.record(Class::Mail, || {
            fields_of(json!({
                "State": routed.state.word(),
                "From": bounded(routed.from),
                "Memo": bounded(routed.id),
                "MessageID": bounded(routed.message_id),
                "Delivered": routed.delivered,
                "HandedOver": routed.handed_over,
                "Words": routed_words(routed),
                "Failed": routed.failed,
                "Attempts": routed.attempts + 1,
                "Milliseconds": milliseconds(routed.elapsed),
                "Reason": bounded(routed.reason.unwrap_or_default()),
            }))
        });
    }
}

/// What became of a memo, in words.
fn routed_words(routed: &Routed<'_>) -> String {
    let mut words = format!("{}: {} mail files", routed.state.word(), routed.delivered);
    if routed.handed_over > 0 {
        words.push_str(&format!(", queued for {} recipients elsewhere", routed.handed_over));
    }
    if routed.failed > 0 {
        words.push_str(&format!(", {} recipients not reached", routed.failed));
    }
    if let Some(reason) = routed.reason {
        words.push_str(&format!(": {}", bounded(reason)));
    }
    words
}

fn fields_of(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
