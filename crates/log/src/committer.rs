//! One thread that writes what all others submit, unless a lone writer can do it on its own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use scrinium_assertion::never;
use scrinium_statistics::Registry;

use crate::agree::Agree;
use crate::apply::{Apply, ApplyAny, FailureEpoch};
use crate::error::cause;
use crate::frame::RECORD_OVERHEAD;
use crate::group::GroupOutcome;
use crate::measures::Measures;
use crate::{Archive, Cause, Commit, Log, LogError, Sequence};

/// A group is cut at this size, or at what an extent takes, so that one commit does not wait for a very
/// large write. A larger record makes a group of its own.
const GROUP_BYTES: usize = 4 << 20;

/// After this many groups of one record, anyone who commits is taken to be the only one. A few are not enough:
/// with several writers groups of one occur now and then, and then it is better to wait for the others.
const LONE_GROUPS: u32 = 16;

/// How long those who commit wait for the archive when the log has its largest size, before they are refused.
const ARCHIVE_WITHIN: Duration = Duration::from_secs(30);

/// How often, and after which pauses, an extent is asked for again while the system lacks handles.
const SCARCE_TRIES: u32 = 10;
const SCARCE_PAUSE: Duration = Duration::from_millis(50);

/// What a waiting record costs besides its bytes, so that empty ones cannot pile up without bound.
const WAITING_OVERHEAD: usize = RECORD_OVERHEAD + size_of::<Bytes>();

/// Owns a [`Log`] on its thread and joins all waiting records into one write and one sync.
///
/// Dropping it stops it, as [`Committer::stop`] does.
pub struct Committer {
    shared: Arc<SharedCommitter>,
    /// `None` once it was stopped.
    engine: Arc<Mutex<Option<Engine>>>,
    thread: Option<JoinHandle<()>>,
    archive: Option<Archive>,
    log_key: u64,
    /// Servers agree on what is written, so nothing stays out of the log.
    agrees: bool,
}

#[derive(Debug)]
struct SharedCommitter {
    queue: Mutex<Queue>,
    work: Condvar,
    space: Condvar,
    last_synced: AtomicU64,
    /// As in the queue, for reading without its lock.
    failures: AtomicU64,
    /// This many groups in sequence held one record, and nobody came while they were written.
    lone_groups: AtomicU32,
    queue_bytes: usize,
    group_bytes: usize,
    max_record_bytes: usize,
}

#[derive(Debug, Default)]
struct Queue {
    groups: VecDeque<Group>,
    /// Of records that stay out of the log. All of them are taken at once, since they share what makes them
    /// durable.
    unlogged: VecDeque<Group>,
    /// Whose turn it is when both wait.
    unlogged_next: bool,
    /// Whether the log is still where it was is to be looked at.
    check: bool,
    waiting_bytes: usize,
    release_before: Option<Sequence>,
    failure: Option<LogError>,
    /// How often groups were refused or failed, and why the last time.
    failures: u64,
    last_refusal: Option<LogError>,
    stopping: bool,
}

/// Records that will share a frame.
#[derive(Debug, Default)]
struct Group {
    records: Vec<Bytes>,
    bytes: usize,
    outcome: Arc<GroupOutcome>,
}

/// Whether a record goes into the log.
#[derive(Clone, Copy, Debug)]
enum Line {
    Logged,
    Unlogged,
}

enum Work {
    Group(Group),
    Unlogged(VecDeque<Group>),
    Release(Sequence),
    Check,
    Nothing,
    Stop,
}

impl Committer {
    /// Starts the thread. If the system refuses one, the committer has failed from the start.
    pub fn start(log: Log, apply: impl Apply, statistics: &Registry) -> Self {
        Self::start_with(log, Box::new(apply), None, statistics)
    }

    /// As [`Committer::start`], for a log on whose records several servers agree: each group is agreed on before it is written,
    /// and no larger than that allows; nothing stays out of the log.
    pub fn start_agreed(log: Log, apply: impl Apply, agree: impl Agree, statistics: &Registry) -> Self {
        Self::start_with(log, Box::new(apply), Some(Box::new(agree)), statistics)
    }

    fn start_with(
        log: Log,
        apply: Box<dyn ApplyAny>,
        agree: Option<Box<dyn Agree>>,
        statistics: &Registry,
    ) -> Self {
        let agreed_bytes = agree.as_ref().map_or(usize::MAX, |agree| agree.group_bytes());
        let shared = Arc::new(SharedCommitter {
            queue: Mutex::default(),
            work: Condvar::new(),
            space: Condvar::new(),
            last_synced: AtomicU64::new(log.last().0),
            failures: AtomicU64::new(0),
            lone_groups: AtomicU32::new(LONE_GROUPS),
            queue_bytes: log.options().queue_bytes,
            group_bytes: GROUP_BYTES.min(log.options().largest_record_bytes()).min(agreed_bytes),
            max_record_bytes: log
                .options()
                .max_record_bytes
                .min(agreed_bytes.saturating_sub(RECORD_OVERHEAD)),
        });
        let measures = Measures::register(statistics, &log);
        let (archive, log_key) = (log.archive(), log.key());
        let agrees = agree.is_some();
        let engine = Engine { shared: shared.clone(), log, apply, agree, measures };
        let engine = Arc::new(Mutex::new(Some(engine)));
        let run = {
            let (shared, engine) = (shared.clone(), engine.clone());
            move || run(&shared, &engine)
        };
        let thread = std::thread::Builder::new().name("log-committer".to_owned()).spawn(run);
        if let Err(error) = &thread {
            shared.fail(cause(format!("no thread for its commits: {error}")));
        }
        Self { shared, engine, thread: thread.ok(), archive, log_key, agrees }
    }

    /// The longest record that it takes, in bytes.
    #[must_use]
    pub fn max_record_bytes(&self) -> usize {
        self.shared.max_record_bytes
    }

    /// Hands a record over. The order of calls is the order in the log and of application. Blocks the thread
    /// while more than `queue_bytes` are waiting.
    ///
    /// # Errors
    /// [`LogError::TooLarge`]; [`LogError::Failed`] after a failure; [`LogError::Stopped`].
    pub fn submit(&self, record: Bytes) -> Result<Commit, LogError> {
        self.enqueue(record, Line::Logged, None)
    }

    /// As [`Committer::submit`], unless a record was refused since [`Committer::failures`] answered with `epoch`: one
    /// that builds on a record that failed must not be stored.
    ///
    /// # Errors
    /// As [`Committer::submit`], and why the last record was refused.
    pub fn submit_after(&self, epoch: FailureEpoch, record: Bytes) -> Result<Commit, LogError> {
        self.enqueue(record, Line::Logged, Some(epoch))
    }

    /// As [`Committer::submit_after`] (or [`Committer::submit`], without an `epoch`) for a record that stays out of
    /// the log: it is answered when it is durable where it was applied. Such records take effect in the order
    /// of calls among themselves, and so do those of the log; of two that are not of one kind the later takes effect
    /// after the earlier only if that was answered before. All that wait become durable together.
    ///
    /// What was visible when a record was submitted is durable before the record is, of whichever kind: the log is
    /// not written while records that are not in it are applied and not yet durable.
    ///
    /// # Errors
    /// As [`Committer::submit_after`].
    pub fn submit_unlogged(&self, epoch: Option<FailureEpoch>, record: Bytes) -> Result<Commit, LogError> {
        let line = if self.agrees { Line::Logged } else { Line::Unlogged };
        self.enqueue(record, line, epoch)
    }

    /// Writes records that were agreed on elsewhere, syncs and applies them as one group. The caller's thread does the work, once
    /// what is being written is done.
    ///
    /// # Errors
    /// [`LogError::Misplaced`], [`LogError::Full`] and its kin leave everything as it was; the others are final.
    pub fn follow(&self, first: Sequence, records: &[Bytes]) -> Result<(), LogError> {
        let mut engine = self.engine.lock();
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        engine.as_mut().ok_or(LogError::Stopped)?.follow(first, records)
    }

    /// It changes when records are refused or fail after they were taken. All that were taken before are answered
    /// then.
    #[must_use]
    pub fn failures(&self) -> FailureEpoch {
        FailureEpoch(self.shared.failures.load(Ordering::Acquire))
    }

    fn enqueue(&self, record: Bytes, line: Line, epoch: Option<FailureEpoch>) -> Result<Commit, LogError> {
        self.check_size(&record)?;
        let waiting = record.len() + WAITING_OVERHEAD;
        let mut queue = self.shared.queue.lock();
        while !queue.has_room(waiting, self.shared.queue_bytes) {
            self.shared.space.wait(&mut queue);
        }
        if let Some(failure) = &queue.failure {
            return Err(failure.clone());
        }
        if epoch.is_some_and(|epoch| epoch.0 != queue.failures) {
            let refusal = queue.last_refusal.clone();
            return Err(refusal.unwrap_or_else(|| never!("an epoch ends by a refusal").into()));
        }
        let idle = queue.is_idle();
        let commit = queue.add(record, line, waiting, self.shared.group_bytes);
        drop(queue);
        // Where groups wait already, the thread is awake or about to be.
        if idle {
            self.shared.work.notify_one();
        }
        Ok(commit)
    }

    /// As [`Committer::submit`], then waits for the answer. While nobody else writes, the caller's thread does
    /// the work, which saves waking the committer's and being woken by it.
    ///
    /// # Errors
    /// As [`Committer::submit`] and [`Commit::wait`].
    pub fn commit(&self, record: Bytes) -> Result<Sequence, LogError> {
        self.check_size(&record)?;
        if self.shared.lone_groups.load(Ordering::Relaxed) >= LONE_GROUPS {
            let queue = self.shared.queue.lock();
            // What was submitted before must be written before: it waits in the queue, or it is being
            // written by the one who holds the engine.
            if queue.is_idle()
                && queue.failure.is_none()
                && let Some(mut engine) = self.engine.try_lock()
                && let Some(engine) = engine.as_mut()
            {
                drop(queue);
                return engine.commit_alone(&record);
            }
            self.shared.lone_groups.store(0, Ordering::Relaxed);
        }
        self.submit(record)?.wait()
    }

    fn check_size(&self, record: &Bytes) -> Result<(), LogError> {
        let (bytes, limit_bytes) = (record.len(), self.shared.max_record_bytes);
        if bytes > limit_bytes { Err(LogError::TooLarge { bytes, limit_bytes }) } else { Ok(()) }
    }

    /// Whether nothing waits and nothing is being written: all that was handed over is answered.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let queue = self.shared.queue.lock();
        // What is taken from the queue is taken by the one who holds the engine.
        queue.is_idle() && self.engine.try_lock().is_some()
    }

    /// Lets go of extents that hold only records before `sequence`, when the thread comes to it.
    pub fn release_before(&self, sequence: Sequence) {
        let mut queue = self.shared.queue.lock();
        queue.release_before = queue.release_before.max(Some(sequence));
        self.shared.work.notify_one();
    }

    /// Copies what is written of the last extent into the archive; see [`Log::archive_tail`]. Waits while a
    /// group is written.
    #[must_use]
    pub fn archive_tail(&self) -> Option<Sequence> {
        self.engine.lock().as_mut()?.log.archive_tail()
    }

    /// The archive, if there is one.
    #[must_use]
    pub fn archive(&self) -> Option<Archive> {
        self.archive.clone()
    }

    /// See [`Log::key`].
    #[must_use]
    pub fn log_key(&self) -> u64 {
        self.log_key
    }

    /// Makes the thread check that the log is still where it was; if not, the committer has failed.
    pub fn check_there(&self) {
        self.shared.queue.lock().check = true;
        self.shared.work.notify_one();
    }

    /// The last record that is durable, whether or not it is applied yet.
    #[must_use]
    pub fn last_synced(&self) -> Sequence {
        Sequence(self.shared.last_synced.load(Ordering::Acquire))
    }

    /// Why nothing is taken any more, if so: what [`Committer::submit`] answers. A full disk is no failure.
    #[must_use]
    pub fn failure(&self) -> Option<LogError> {
        self.shared.queue.lock().failure.clone()
    }

    /// Writes what waits, closes the log and ends the thread.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shared.queue.lock().stopping = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic has been printed, and every commit was answered with the failure.
            drop(thread.join());
        }
    }
}

impl std::fmt::Debug for Committer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Committer").field("last_synced", &self.last_synced()).finish_non_exhaustive()
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.end();
    }
}

impl Queue {
    /// A record larger than the whole queue is taken when nothing else waits. After a failure there is room
    /// for anyone who waits to be refused.
    fn has_room(&self, waiting: usize, queue_bytes: usize) -> bool {
        self.waiting_bytes == 0 || self.waiting_bytes + waiting <= queue_bytes || self.failure.is_some()
    }

    /// Whether no record waits, of either kind.
    fn is_idle(&self) -> bool {
        self.groups.is_empty() && self.unlogged.is_empty()
    }

    fn has_work(&self) -> bool {
        !self.is_idle() || self.release_before.is_some() || self.check
    }

    /// So much less waits.
    fn took(&mut self, bytes: usize) {
        self.waiting_bytes = self.waiting_bytes.checked_sub(bytes).unwrap_or_else(|| {
            never!("what is taken from the queue was counted when it came", "{bytes} bytes");
            0
        });
    }

    fn add(&mut self, record: Bytes, line: Line, waiting: usize, group_bytes: usize) -> Commit {
        self.waiting_bytes += waiting;
        let groups = match line {
            Line::Logged => &mut self.groups,
            Line::Unlogged => &mut self.unlogged,
        };
        let mut group = match groups.pop_back() {
            Some(group) if group.bytes + waiting <= group_bytes => group,
            full => {
                groups.extend(full);
                Group::default()
            }
        };
        let commit = Commit::new(group.outcome.clone(), group.records.len() as u64);
        group.records.push(record);
        group.bytes += waiting;
        groups.push_back(group);
        commit
    }
}

impl SharedCommitter {
    fn wait_for_work(&self) {
        let mut queue = self.queue.lock();
        while !queue.has_work() && !queue.stopping {
            self.work.wait(&mut queue);
        }
    }

    fn next_work(&self) -> Work {
        let mut queue = self.queue.lock();
        // First, since under load there is always a group; it costs next to nothing.
        if let Some(sequence) = queue.release_before.take() {
            return Work::Release(sequence);
        }
        if std::mem::take(&mut queue.check) {
            return Work::Check;
        }
        let unlogged = !queue.unlogged.is_empty() && (queue.unlogged_next || queue.groups.is_empty());
        queue.unlogged_next = !unlogged;
        if unlogged {
            let groups = std::mem::take(&mut queue.unlogged);
            queue.took(groups.iter().map(|group| group.bytes).sum());
            drop(queue);
            self.space.notify_all();
            return Work::Unlogged(groups);
        }
        if let Some(group) = queue.groups.pop_front() {
            queue.took(group.bytes);
            drop(queue);
            self.space.notify_all();
            return Work::Group(group);
        }
        if queue.stopping { Work::Stop } else { Work::Nothing }
    }

    /// Refuses everything that waits and everything to come.
    fn fail(&self, cause: Cause) {
        let failure = LogError::Failed { cause };
        self.queue.lock().failure.get_or_insert_with(|| failure.clone());
        self.refuse_waiting(&failure);
    }

    /// Later records may build on those that were refused, so they are refused with them.
    fn refuse_waiting(&self, error: &LogError) {
        let groups = {
            let mut queue = self.queue.lock();
            queue.waiting_bytes = 0;
            queue.failures += 1;
            queue.last_refusal = Some(error.clone());
            let groups = std::mem::take(&mut queue.groups);
            groups.into_iter().chain(std::mem::take(&mut queue.unlogged))
        };
        self.space.notify_all();
        for group in groups {
            group.outcome.answer(Err(error.clone()));
        }
        let failures = self.queue.lock().failures;
        self.failures.store(failures, Ordering::Release);
    }
}

/// What writes. Anyone who holds it is the only writer.
struct Engine {
    shared: Arc<SharedCommitter>,
    log: Log,
    apply: Box<dyn ApplyAny>,
    /// `None`: this server alone decides.
    agree: Option<Box<dyn Agree>>,
    measures: Measures,
}

/// Answers what would otherwise be waited for without end, should the thread panic.
struct Watch<'a> {
    shared: &'a SharedCommitter,
    current: &'a [Group],
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let cause = cause("a thread panicked while it committed".to_owned());
            for group in self.current {
                group.outcome.answer(Err(LogError::Failed { cause: cause.clone() }));
            }
            self.shared.fail(cause);
        }
    }
}

/// The committer's thread.
fn run(shared: &SharedCommitter, engine: &Mutex<Option<Engine>>) {
    loop {
        shared.wait_for_work();
        let mut held = engine.lock();
        let Some(engine) = held.as_mut() else {
            never!("nobody but this thread takes the engine away");
            return;
        };
        // Taken only now, so that a lone writer that finds the queue empty and the engine free cannot
        // overtake it.
        match shared.next_work() {
            Work::Group(group) => engine.commit(&group),
            Work::Unlogged(mut groups) => engine.commit_unlogged(groups.make_contiguous()),
            Work::Check => engine.check_there(),
            // A failed log refuses it, which is said to everyone else already.
            Work::Release(sequence) => drop(engine.log.release_before(sequence)),
            Work::Nothing => {}
            Work::Stop => {
                if let Some(Err(error)) = held.take().map(|engine| engine.log.close()) {
                    shared.fail(Arc::new(error));
                }
                shared.queue.lock().failure.get_or_insert(LogError::Stopped);
                return;
            }
        }
    }
}

impl Engine {
    fn commit(&mut self, group: &Group) {
        let shared = self.shared.clone();
        let _watch = Watch { shared: &shared, current: std::slice::from_ref(group) };
        let answer = self.settle(&group.records);
        group.outcome.answer(answer);
    }

    fn commit_alone(&mut self, record: &Bytes) -> Result<Sequence, LogError> {
        let shared = self.shared.clone();
        let _watch = Watch { shared: &shared, current: &[] };
        self.settle(std::slice::from_ref(record))
    }

    /// Applies what stays out of the log, and makes it durable at once.
    fn commit_unlogged(&mut self, groups: &[Group]) {
        let shared = self.shared.clone();
        let _watch = Watch { shared: &shared, current: groups };
        let timer = self.measures.start_unlogged();
        let mut records = groups.iter().flat_map(|group| &group.records);
        let applied = self.apply.apply_unlogged(&mut records);
        drop(timer);
        let answer = match applied {
            Ok(()) => {
                self.measures.unlogged(groups.iter().map(|group| group.records.len()).sum());
                Ok(self.log.last())
            }
            Err(cause) => {
                self.shared.fail(cause.clone());
                Err(LogError::Failed { cause })
            }
        };
        groups.iter().for_each(|group| group.outcome.answer(answer.clone()));
    }

    fn check_there(&mut self) {
        if let Err(error) = self.log.check_there() {
            self.shared.fail(Arc::new(error));
        }
    }

    /// Writes a group; an error is also that of what comes after.
    fn settle(&mut self, records: &[Bytes]) -> Result<Sequence, LogError> {
        let lone_groups = self.shared.lone_groups.load(Ordering::Relaxed);
        let lone_groups = if records.len() == 1 { lone_groups.saturating_add(1) } else { 0 };
        self.shared.lone_groups.store(lone_groups, Ordering::Relaxed);
        let answer = self.agree_and_write(records);
        self.note_failure(&answer);
        answer
    }

    fn note_failure<T>(&self, answer: &Result<T, LogError>) {
        match answer {
            Ok(_) => {}
            Err(passing) if passing.may_pass() => self.shared.refuse_waiting(passing),
            // What waits has not been tried: it is not written, whatever becomes of this one.
            Err(LogError::Unknown { cause }) => {
                self.shared.refuse_waiting(&LogError::Refused { cause: cause.clone() });
            }
            Err(error) => self.shared.fail(Arc::new(error.clone())),
        }
    }

    fn follow(&mut self, first: Sequence, records: &[Bytes]) -> Result<(), LogError> {
        let next = Sequence(self.log.last().0.saturating_add(1));
        if first != next {
            return Err(LogError::Misplaced { first, next });
        }
        let shared = self.shared.clone();
        let _watch = Watch { shared: &shared, current: &[] };
        let written = self.write(records);
        self.note_failure(&written);
        written.map(|_| ())
    }

    /// Without an agreement, all that this adds to a group is one look at it.
    fn agree_and_write(&mut self, records: &[Bytes]) -> Result<Sequence, LogError> {
        if self.agree.is_none() {
            return self.write(records);
        }
        // A full disk must be known before others have agreed.
        let last = self.with_patience(records, Log::prepare)?;
        let agree = self.agree.as_mut().ok_or_else(|| never!("an agreement stays"))?;
        agree.agree(Sequence(last.0.saturating_add(1)), records)?;
        // From here on the records are everybody's, and an error is no refusal any more.
        self.write(records).map_err(|error| match error {
            passing if passing.may_pass() => LogError::Failed { cause: Arc::new(passing) },
            other => other,
        })
    }

    /// A step that needs space or handles. Where the system lacks handles for a moment, it is tried again before those who
    /// commit are refused; where the log has its largest size, it is emptied first.
    fn with_patience(
        &mut self,
        records: &[Bytes],
        step: fn(&mut Log, &[Bytes]) -> Result<Sequence, LogError>,
    ) -> Result<Sequence, LogError> {
        let mut done = step(&mut self.log, records);
        for _ in 0..SCARCE_TRIES {
            if !matches!(done, Err(LogError::Scarce { .. })) {
                break;
            }
            std::thread::sleep(SCARCE_PAUSE);
            done = step(&mut self.log, records);
        }
        let Err(LogError::AtLimit { dir, max_bytes, .. }) = done else { return done };
        // Those who commit wait for it, rather than be refused.
        self.measures.waited();
        let settled = self.apply.make_durable();
        let settled = settled.map_err(|cause| {
            let reason = cause.to_string().into();
            LogError::AtLimit { dir, max_bytes, reason }
        })?;
        let settled = Sequence(settled.0.saturating_add(1));
        self.log.wait_for_archive(settled, ARCHIVE_WITHIN);
        self.log.release_before(settled)?;
        step(&mut self.log, records)
    }

    fn write(&mut self, records: &[Bytes]) -> Result<Sequence, LogError> {
        let timer = self.measures.start_sync();
        let last = self.with_patience(records, Log::append)?;
        drop(timer);
        self.measures.group(records);
        self.shared.last_synced.store(last.0, Ordering::Release);
        let first = (last.0 + 1).checked_sub(records.len() as u64);
        let first =
            Sequence(first.ok_or_else(|| never!("the last record of a group has the highest number"))?);
        self.apply.apply(first, records).map_err(|cause| LogError::Failed { cause })?;
        Ok(first)
    }
}
