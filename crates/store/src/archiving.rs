//! The log's archive, as the store looks after it: the tail is copied now and then, and what goes wrong is said.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use scrinium_clock::Clock;
use scrinium_log::{Archive, ArchiveStatus, Committer, Log, mark_break};
use scrinium_statistics::Registry;

use crate::keeper::Core;
use crate::tree::Tree;
use crate::{Batch, StoreError};

/// Under this name the tree keeps whether changes have been made that were in no log since it was archived last.
const UNLOGGED: &[u8] = b"unlogged";

/// Notes that changes are made which are in no log, with the next flush.
pub(crate) fn note_unlogged(tree: &Tree) -> Result<(), StoreError> {
    tree.set_note(UNLOGGED, 1)
}

/// Where changes were made that are in no log, what follows them must not be applied to a backup from before: an empty
/// record that the archive has a mark for keeps the two apart.
pub(crate) fn begin(tree: &Tree, log: &mut Log, archive_dir: &Path) -> Result<(), StoreError> {
    if tree.note(UNLOGGED)?.is_none_or(|unlogged| unlogged == 0) {
        return Ok(());
    }
    let barrier = log.append(&[Batch::new().into_bytes()])?;
    mark_break(archive_dir, log.key(), barrier)?;
    let mut write = tree.start_write();
    write.reach(barrier);
    write.finish()?;
    tree.set_note(UNLOGGED, 0)?;
    tree.flush()
}

/// The archive of an open store, if it has one.
pub(crate) struct Archiving {
    archive: Option<Archive>,
    every: Duration,
    clock: Clock,
    last: Mutex<Instant>,
    /// The archive takes nothing, and that was said.
    failing: AtomicBool,
}

impl Archiving {
    pub(crate) fn new(committer: &Committer, every: Duration, clock: &Clock) -> Self {
        Self {
            archive: committer.archive(),
            every,
            last: Mutex::new(clock.instant()),
            clock: clock.clone(),
            failing: AtomicBool::new(false),
        }
    }

    pub(crate) fn archive(&self) -> Option<&Archive> {
        self.archive.as_ref()
    }

    /// `Log.Archive.Segments` and `.Bytes` (written), `.Failures` (copies that failed), `.Waiting` (files of the log
    /// that wait to be copied), `.LastSequence` (the last record that is in it).
    #[allow(clippy::cast_precision_loss, reason = "a statistic needs no more than 53 bits")]
    pub(crate) fn register(&self, statistics: &Registry) {
        let Some(archive) = &self.archive else { return };
        let gauge = |name: &str, read: fn(&ArchiveStatus) -> u64| {
            let archive = archive.clone();
            statistics.gauge(name, move || read(&archive.status()) as f64);
        };
        gauge("Log.Archive.Segments", |status| status.segments);
        gauge("Log.Archive.Bytes", |status| status.bytes);
        gauge("Log.Archive.Failures", |status| status.failures);
        gauge("Log.Archive.Waiting", |status| status.waiting as u64);
        gauge("Log.Archive.LastSequence", |status| status.next.0.saturating_sub(1));
    }

    /// Whether it is time to copy the tail.
    fn is_due(&self) -> bool {
        let mut last = self.last.lock();
        let due = !self.every.is_zero() && self.clock.elapsed(*last) >= self.every;
        if due {
            *last = self.clock.instant();
        }
        due
    }

    /// Says when the archive begins to take nothing, and when it takes something again.
    fn tell(&self, status: &ArchiveStatus) {
        let dir = status.dir.display();
        match &status.failure {
            Some(failure) if !self.failing.swap(true, Ordering::Relaxed) => tracing::error!(
                %failure, waiting = status.waiting,
                "the log is not archived in {dir}: it keeps what is not, and grows until that is fixed; make room \
                 there or bring the folder back, or set log.style"
            ),
            None if self.failing.swap(false, Ordering::Relaxed) => {
                tracing::info!("the log is archived in {dir} again");
            }
            _ => {}
        }
    }
}

impl Core {
    /// Once a second.
    pub(crate) fn look_at_archive(&self) {
        let Some(archive) = self.archiving.archive() else { return };
        self.archiving.tell(&archive.status());
        if self.archiving.is_due()
            && let Some(committer) = self.committer.read().as_ref()
        {
            // What cannot be copied now is tried again, and was told.
            let _copied_before = committer.archive_tail();
        }
    }

    /// Copies all that was answered before this call.
    pub(crate) fn archive_log(&self, limit: Duration) -> Result<(), StoreError> {
        let Some(archive) = self.archiving.archive() else { return Ok(()) };
        let next = self.committer.read().as_ref().ok_or(StoreError::Closed)?.archive_tail();
        next.map_or(Ok(()), |next| Ok(archive.wait(next, limit)?))
    }
}
