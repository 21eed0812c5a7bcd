//! The archive: extents are copied before they are used again, so that a backup can be brought forward to any
//! record, or any moment, after it.
//!
//! A thread copies each extent when the next one is begun, and the beginning of the one that is written when it
//! is set to. What cannot be copied stays in the log and is tried again; nothing that is not in the archive is
//! ever let go of.

pub(crate) mod folder;
pub(crate) mod segment;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::system::System;
use crate::{LogError, Sequence};
use segment::{Job, SegmentHeader, Source};

/// A copy that failed is tried again after this time.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// How the archive of an open log stands. Clones are of the same one.
#[derive(Clone)]
pub struct Archive {
    shared: Arc<SharedArchive>,
}

/// What is known of the archive at one moment.
#[derive(Clone, Debug)]
pub struct ArchiveStatus {
    /// The folder that segments are copied into.
    pub dir: PathBuf,
    /// All records before this one are in the archive.
    pub next: Sequence,
    /// Extents, or beginnings of one, that wait to be copied.
    pub waiting: usize,
    /// Segments written since the log was opened, those included that a longer one has replaced.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Copies that failed since the log was opened.
    pub failures: u64,
    /// Why the last one failed, if none has succeeded since.
    pub failure: Option<LogError>,
}

struct SharedArchive {
    system: Arc<dyn System>,
    source: Source,
    dir: PathBuf,
    state: Mutex<ArchiveState>,
    changed: Condvar,
}

#[derive(Default)]
struct ArchiveState {
    /// In order; as many as there are extents at most.
    jobs: VecDeque<Job>,
    next: u64,
    segments: u64,
    bytes: u64,
    failures: u64,
    failure: Option<LogError>,
    try_at: Option<Instant>,
    stop: bool,
}

impl Archive {
    /// How it stands.
    #[must_use]
    pub fn status(&self) -> ArchiveStatus {
        let state = self.shared.state.lock();
        ArchiveStatus {
            dir: self.shared.dir.clone(),
            next: Sequence(state.next),
            waiting: state.jobs.len(),
            segments: state.segments,
            bytes: state.bytes,
            failures: state.failures,
            failure: state.failure.clone(),
        }
    }

    /// The key of the log that is archived, which its folder in the archive is named by.
    #[must_use]
    pub fn key(&self) -> u64 {
        self.shared.source.key
    }

    /// Waits until all records before `next` are in the archive, but no longer than `limit`.
    ///
    /// # Errors
    /// [`LogError::Archive`] if a copy fails meanwhile, or the time is over.
    pub fn wait(&self, next: Sequence, limit: Duration) -> Result<(), LogError> {
        let deadline = Instant::now() + limit;
        let mut state = self.shared.state.lock();
        let failures = state.failures;
        state.try_at = None;
        self.shared.changed.notify_all();
        while state.next < next.0 {
            let failed = state.failures > failures;
            if failed || self.shared.changed.wait_until(&mut state, deadline).timed_out() {
                let reason = match &state.failure {
                    Some(failure) => failure.to_string(),
                    None => format!("it took longer than {} s", limit.as_secs()),
                };
                return Err(LogError::Archive { dir: self.shared.dir.clone(), reason });
            }
        }
        Ok(())
    }
}

/// The archive with its thread, as the log holds it.
pub(crate) struct Archiver {
    archive: Archive,
    thread: Option<JoinHandle<()>>,
}

impl Archiver {
    /// Starts with the extents that are complete; `active` is the first record of the one that is written.
    pub(crate) fn start(
        system: Arc<dyn System>,
        source: Source,
        dir: PathBuf,
        complete: Vec<Job>,
        active: u64,
    ) -> Result<Self, LogError> {
        let mut state = ArchiveState {
            next: complete.first().map_or(active, |job| job.live.first),
            ..ArchiveState::default()
        };
        let folder = segment::folder(&dir, source.key);
        for job in complete {
            let path = segment::path(&folder, job.live.first);
            let there = state.jobs.is_empty()
                && SegmentHeader::read(&*system, &path).is_ok_and(|header| header.next == job.next);
            if there {
                state.next = job.next;
            } else {
                state.jobs.push_back(job);
            }
        }
        let shared = SharedArchive { system, source, dir, state: Mutex::new(state), changed: Condvar::new() };
        let shared = Arc::new(shared);
        let work = {
            let shared = shared.clone();
            Box::new(move || shared.run())
        };
        let thread = shared.system.spawn("log-archive", work);
        let thread = thread.map_err(|error| LogError::io("start a thread for", &shared.dir, error))?;
        let this = Self { archive: Archive { shared }, thread };
        this.without_thread();
        Ok(this)
    }

    pub(crate) fn archive(&self) -> Archive {
        self.archive.clone()
    }

    /// All records before this one are in the archive.
    pub(crate) fn next(&self) -> u64 {
        self.archive.shared.state.lock().next
    }

    /// Copies an extent, or as much of it as is written.
    pub(crate) fn copy(&self, job: Job) {
        let mut state = self.archive.shared.state.lock();
        if job.next <= state.next {
            return;
        }
        match state.jobs.back_mut().filter(|last| last.live == job.live) {
            Some(last) => *last = job,
            None => state.jobs.push_back(job),
        }
        drop(state);
        self.archive.shared.changed.notify_all();
        self.without_thread();
    }

    /// Does the work here where the system runs no threads.
    fn without_thread(&self) {
        if self.thread.is_none() {
            while self.archive.shared.step() {}
        }
    }

    /// Ends the thread; what it has not copied is copied when the log is opened again.
    pub(crate) fn stop(&mut self) {
        self.archive.shared.state.lock().stop = true;
        self.archive.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic has been printed; nothing that was not copied is let go of.
            drop(thread.join());
        }
    }
}

impl SharedArchive {
    fn run(&self) {
        loop {
            let mut state = self.state.lock();
            while !state.stop {
                match (state.jobs.is_empty(), state.try_at) {
                    (true, _) => self.changed.wait(&mut state),
                    (false, Some(at)) if Instant::now() < at => {
                        self.changed.wait_until(&mut state, at);
                    }
                    _ => break,
                }
            }
            if state.stop {
                return;
            }
            drop(state);
            self.step();
        }
    }

    /// Copies the first extent that waits. False if there is none, or it failed.
    fn step(&self) -> bool {
        let Some(job) = self.state.lock().jobs.front().copied() else { return false };
        let copied = segment::copy(&*self.system, &self.source, job, &self.dir);
        let mut state = self.state.lock();
        let succeeded = copied.is_ok();
        match copied {
            Ok(bytes) => {
                // More of the same extent may have been asked for meanwhile.
                if state.jobs.front() == Some(&job) {
                    state.jobs.pop_front();
                }
                state.next = state.next.max(job.next);
                state.segments += 1;
                state.bytes += bytes;
                state.failure = None;
                state.try_at = None;
            }
            Err(error) => {
                state.failures += 1;
                state.failure = Some(error);
                state.try_at = Some(Instant::now() + TRY_AGAIN);
            }
        }
        drop(state);
        self.changed.notify_all();
        succeeded
    }
}
