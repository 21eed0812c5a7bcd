//! A replication that somebody has ordered: tried again until it is done, or told to stop.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::count::Counts;
use crate::engine::{Ended, Replication};
use crate::error::{ErrorKind, ReplicationError, Result};
use crate::name::iso_time;
use crate::schedule::Schedule;

/// Events of a job that are remembered.
const EVENTS_MAX: usize = 20;

/// The first wait after a failure, and the longest; each further one is twice as long.
#[derive(Clone, Copy, Debug)]
pub struct BackOff {
    /// The first.
    pub first: Duration,
    /// The longest.
    pub longest: Duration,
}

impl Default for BackOff {
    fn default() -> Self {
        Self { first: Duration::from_secs(2), longest: Duration::from_mins(15) }
    }
}

impl BackOff {
    fn wait(self, failures: u32, error: &ReplicationError) -> Duration {
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
        // Jobs that failed together do not come back together.
        let spread = doubled.mul_f64(rand::random::<f64>() / 4.0 + 1.0);
        spread.min(self.longest).max(error.retry_after.unwrap_or_default())
    }
}

/// What a job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It is carried out, or waits for changes.
    Running,
    /// It failed, and is tried again later.
    Crashing,
    /// It was done, and waits for its next time.
    Waiting,
    /// It is done.
    Completed,
    /// It cannot be done.
    Failed,
    /// It was told to stop.
    Cancelled,
}

impl JobState {
    /// CouchDB's word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Crashing => "crashing",
            Self::Waiting => "pending",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing follows.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// What happened to a job.
#[derive(Clone, Debug)]
pub struct JobStatus {
    /// What it is doing.
    pub state: JobState,
    /// Failures in a row.
    pub failures: u32,
    /// The last one, as a sentence.
    pub reason: Option<String>,
    /// When the state changed.
    pub changed: String,
    /// When it was ordered.
    pub started: String,
    /// How it ended.
    pub ended: Option<Result<Ended>>,
    events: VecDeque<(String, &'static str, Option<String>)>,
}

/// Whether the one who ordered a job may still do so.
pub(crate) type Check = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// A replication that somebody has ordered.
pub struct Job {
    /// Its name, as it is shown and cancelled by.
    pub id: String,
    /// The document that orders it, if it is one.
    pub document: Option<String>,
    /// Who ordered it.
    pub user: Option<String>,
    /// Where documents come from, as it is shown.
    pub source: String,
    /// Where they go to.
    pub target: String,
    /// What it has done.
    pub counts: Arc<Counts>,
    replication: Arc<Replication>,
    check: Check,
    back_off: BackOff,
    schedule: Option<Schedule>,
    status: Mutex<JobStatus>,
    over: watch::Sender<bool>,
    stop: watch::Sender<bool>,
}

impl Job {
    pub(crate) fn new(
        (id, document, user): (String, Option<String>, Option<String>),
        replication: Arc<Replication>,
        (check, back_off, schedule): (Check, BackOff, Option<Schedule>),
    ) -> Self {
        let now = iso_time(&replication.clock);
        Self {
            id,
            document,
            user,
            source: replication.source.shown().to_owned(),
            target: replication.target.shown().to_owned(),
            counts: Arc::clone(&replication.counts),
            status: Mutex::new(JobStatus {
                state: JobState::Running,
                failures: 0,
                reason: None,
                changed: now.clone(),
                started: now.clone(),
                ended: None,
                events: VecDeque::from([(now, "added", None)]),
            }),
            replication,
            check,
            back_off,
            schedule,
            over: watch::Sender::new(false),
            stop: watch::Sender::new(false),
        }
    }

    /// What happened to it.
    #[must_use]
    pub fn status(&self) -> JobStatus {
        self.status.lock().clone()
    }

    /// Whether it goes on for ever: as documents change, or by a schedule.
    #[must_use]
    pub fn is_continuous(&self) -> bool {
        self.replication.continuous || self.schedule.is_some()
    }

    /// Whether nothing follows.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.status.lock().state.is_over()
    }

    /// Whether it is over, or about to be: it has been told to stop.
    pub(crate) fn is_ending(&self) -> bool {
        *self.stop.borrow() || self.is_over()
    }

    /// Tells it to stop.
    pub fn cancel(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until nothing follows, and says how it ended.
    pub async fn over(&self) -> Result<Ended> {
        let mut over = self.over.subscribe();
        // It lives as long as the job.
        drop(over.wait_for(|over| *over).await);
        self.status.lock().ended.clone().unwrap_or_else(|| Err(ReplicationError::cancelled()))
    }

    /// Carries it out. Who waits for an order that is not kept anywhere hears of its failure at once.
    pub(crate) async fn work(self: Arc<Self>, fails_at_once: bool) {
        let mut stop = self.stop.subscribe();
        let worked = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => Err(ReplicationError::cancelled()),
            worked = Box::pin(self.try_again(fails_at_once)) => worked,
        };
        let state = match &worked {
            Ok(_) => JobState::Completed,
            Err(error) if error.kind == ErrorKind::Cancelled => JobState::Cancelled,
            Err(_) => JobState::Failed,
        };
        let reason = worked.as_ref().err().map(ReplicationError::told);
        self.status.lock().ended = Some(worked);
        self.change(state, reason);
        self.over.send_replace(true);
    }

    async fn try_again(&self, fails_at_once: bool) -> Result<Ended> {
        loop {
            self.change(JobState::Running, None);
            let written = crate::count::written(&self.counts);
            let run = async {
                (self.check)()?;
                self.replication.run().await
            };
            let began = self.replication.clock.timestamp();
            let error = match (run.await, &self.schedule) {
                (Ok(_), Some(schedule)) => {
                    self.change(JobState::Waiting, None);
                    tokio::time::sleep(schedule.wait(began, self.replication.clock.timestamp())).await;
                    continue;
                }
                (Ok(ended), None) => return Ok(ended),
                (Err(error), _) => error,
            };
            if error.is_final() || fails_at_once {
                return Err(error);
            }
            let failures = {
                let mut status = self.status.lock();
                // What got on meanwhile is not stuck.
                let is_further = crate::count::written(&self.counts) > written;
                status.failures = if is_further { 1 } else { status.failures.saturating_add(1) };
                status.failures
            };
            let wait = self.back_off.wait(failures, &error);
            tracing::debug!(job = self.id, %error, ?wait, "a replication failed and is tried again");
            self.change(JobState::Crashing, Some(error.told()));
            tokio::time::sleep(wait).await;
        }
    }

    fn change(&self, state: JobState, reason: Option<String>) {
        let now = iso_time(&self.replication.clock);
        let mut status = self.status.lock();
        let event = match state {
            JobState::Running => "started",
            JobState::Crashing | JobState::Failed => "crashed",
            JobState::Completed | JobState::Waiting => "completed",
            JobState::Cancelled => "stopped",
        };
        if status.events.len() >= EVENTS_MAX {
            status.events.pop_back();
        }
        status.events.push_front((now.clone(), event, reason.clone()));
        let is_done = matches!(state, JobState::Completed | JobState::Waiting);
        if is_done {
            status.failures = 0;
        }
        // While it is tried again, it is known why it was not done.
        if reason.is_some() || is_done {
            status.reason = reason;
        }
        status.state = state;
        status.changed = now;
    }

    /// As `_scheduler/jobs` lists it.
    #[must_use]
    pub fn shown(&self, node: &str) -> Value {
        let status = self.status();
        let history = status.events.iter().map(|(time, event, reason)| match reason {
            Some(reason) => json!({"timestamp": time, "type": event, "reason": reason}),
            None => json!({"timestamp": time, "type": event}),
        });
        json!({
            "database": self.document.as_ref().map(|_| crate::REPLICATOR_DATABASE),
            "doc_id": self.document,
            "id": self.id,
            "source": self.source,
            "target": self.target,
            "user": self.user,
            "node": node,
            "pid": null,
            "start_time": status.started,
            "state": status.state.word(),
            "history": history.collect::<Vec<_>>(),
            "info": self.info(&status),
        })
    }

    /// Counts, and why it is not done.
    pub(crate) fn info(&self, status: &JobStatus) -> Value {
        let counts = self.counts.shown();
        let Some(reason) = &status.reason else { return counts };
        // In front, where clients look for it.
        let mut info = json!({"error": reason});
        if let (Some(members), Value::Object(counts)) = (info.as_object_mut(), counts) {
            members.extend(counts);
        }
        info
    }

    /// As `_active_tasks` lists it.
    #[must_use]
    pub fn task(&self, node: &str) -> Value {
        let status = self.status();
        let mut task = self.counts.shown();
        if let Some(members) = task.as_object_mut() {
            for (name, value) in [
                ("type", json!("replication")),
                ("node", json!(node)),
                ("replication_id", json!(self.id)),
                ("database", json!(self.document.as_ref().map(|_| crate::REPLICATOR_DATABASE))),
                ("doc_id", json!(self.document)),
                ("continuous", json!(self.is_continuous())),
                ("source", json!(self.source)),
                ("target", json!(self.target)),
                ("user", json!(self.user)),
                ("started_on", json!(status.started)),
                ("updated_on", json!(status.changed)),
            ] {
                members.insert(name.to_owned(), value);
            }
        }
        task
    }
}
