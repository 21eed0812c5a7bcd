//! One thread that writes what all others submit.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use scrinium_statistics::Registry;

use crate::group::Outcome;
use crate::{Commit, Log, LogError, Sequence};

/// A group is cut at this size, so that one commit does not wait for a very large write.
const GROUP_BYTES: usize = 4 << 20;

/// Takes durable records, in order, before they are answered.
pub trait Apply: Send + 'static {
    /// Applies a group; `first` is the number of its first record.
    ///
    /// # Errors
    /// A message; the committer then refuses everything until the log is opened anew.
    fn apply(&mut self, first: Sequence, records: &[Bytes]) -> Result<(), String>;
}

/// Owns a [`Log`] on its thread and joins all waiting records into one write and one sync.
#[derive(Debug)]
pub struct Committer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    space: Condvar,
    last_synced: AtomicU64,
    queue_bytes: usize,
    max_record_bytes: usize,
}

#[derive(Debug, Default)]
struct Queue {
    groups: VecDeque<Group>,
    waiting_bytes: usize,
    release_before: Option<Sequence>,
    failure: Option<LogError>,
    stopping: bool,
}

#[derive(Debug, Default)]
struct Group {
    records: Vec<Bytes>,
    bytes: usize,
    outcome: Arc<Outcome>,
}

impl Committer {
    /// Starts the thread.
    pub fn start(log: Log, apply: impl Apply, _statistics: &Registry) -> Self {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            work: Condvar::new(),
            space: Condvar::new(),
            last_synced: AtomicU64::new(log.last().0),
            queue_bytes: log.options.queue_bytes,
            max_record_bytes: log.options.max_record_bytes,
        });
        let thread = std::thread::spawn({
            let shared = shared.clone();
            move || run(&shared, log, apply)
        });
        Self { shared, thread: Some(thread) }
    }

    /// Hands a record over. The order of calls is the order in the log and of application. Blocks while the
    /// queue is full.
    ///
    /// # Errors
    /// See [`LogError`].
    pub fn submit(&self, record: Bytes) -> Result<Commit, LogError> {
        let bytes = record.len();
        if bytes > self.shared.max_record_bytes {
            return Err(LogError::TooLarge { bytes, limit_bytes: self.shared.max_record_bytes });
        }
        let mut queue = self.shared.queue.lock();
        while queue.waiting_bytes > 0
            && queue.waiting_bytes + bytes > self.shared.queue_bytes
            && queue.failure.is_none()
        {
            self.shared.space.wait(&mut queue);
        }
        if let Some(failure) = &queue.failure {
            return Err(failure.clone());
        }
        queue.waiting_bytes += bytes;
        if queue.groups.back().is_none_or(|group| group.bytes + bytes > GROUP_BYTES) {
            queue.groups.push_back(Group::default());
        }
        let Some(group) = queue.groups.back_mut() else { return Err(LogError::Stopped) };
        let index = u32::try_from(group.records.len()).unwrap_or(u32::MAX);
        group.records.push(record);
        group.bytes += bytes;
        let commit = Commit::new(group.outcome.clone(), index);
        drop(queue);
        self.shared.work.notify_one();
        Ok(commit)
    }

    /// Lets go of extents that hold only records before `sequence`, when the thread comes to it.
    pub fn release_before(&self, sequence: Sequence) {
        let mut queue = self.shared.queue.lock();
        queue.release_before = queue.release_before.max(Some(sequence));
        self.shared.work.notify_one();
    }

    /// The last record that is durable.
    #[must_use]
    pub fn last_synced(&self) -> Sequence {
        Sequence(self.shared.last_synced.load(Ordering::Acquire))
    }

    /// Why nothing is taken any more, if so.
    #[must_use]
    pub fn failure(&self) -> Option<LogError> {
        self.shared.queue.lock().failure.clone()
    }

    /// Writes what waits and ends the thread.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shared.queue.lock().stopping = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.end();
    }
}

fn run(shared: &Shared, mut log: Log, mut apply: impl Apply) {
    loop {
        let mut queue = shared.queue.lock();
        let group = loop {
            if let Some(group) = queue.groups.pop_front() {
                break group;
            }
            if queue.stopping {
                return;
            }
            shared.work.wait(&mut queue);
        };
        queue.waiting_bytes -= group.bytes;
        let failure = queue.failure.clone();
        drop(queue);
        shared.space.notify_all();
        let answer = match failure {
            Some(failure) => Err(failure),
            None => commit(shared, &mut log, &mut apply, &group.records),
        };
        if let Err(error) = &answer {
            shared.queue.lock().failure = Some(LogError::Failed { reason: error.to_string().into() });
        }
        group.outcome.answer(answer);
    }
}

fn commit(
    shared: &Shared,
    log: &mut Log,
    apply: &mut impl Apply,
    records: &[Bytes],
) -> Result<Sequence, LogError> {
    let last = log.append(records)?;
    shared.last_synced.store(last.0, Ordering::Release);
    let first = Sequence(last.0 + 1 - records.len() as u64);
    apply.apply(first, records).map_err(|reason| LogError::Failed { reason: reason.into() })?;
    Ok(first)
}
