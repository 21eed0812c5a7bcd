//! Brings what the log has made durable into the tree: as it is committed, and again after a crash.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use scrinium_assertion::always;
use scrinium_log::{Apply, Log, Record, Recovery, Sequence};

use crate::StoreError;
use crate::archiving;
use crate::health::Health;
use crate::keeper::Bell;
use crate::progress::Progress;
use crate::redo::{ReplayEstimate, Replayed};
use crate::tree::{Tree, TreeWrite};

/// Records read again after a crash are applied this many bytes at a time.
pub(crate) const REPLAY_BYTES: usize = 4 << 20;

/// A replay that takes longer says how far it is, this often.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// How long commits that are in the log wait for space in the tree, before the store fails. RocksDB looks
/// for space every five seconds.
const WAIT_FOR_SPACE: Duration = Duration::from_secs(30);

const TRY_AGAIN: Duration = Duration::from_millis(250);

/// Applies each group of the committer as one write.
pub(crate) struct Applier {
    /// The last record of the log that was applied.
    pub(crate) reached: Sequence,
    pub(crate) tree: Arc<Tree>,
    pub(crate) health: Arc<Health>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) redo: Arc<ReplayEstimate>,
    pub(crate) bell: Arc<Bell>,
}

/// Why commits could not be applied, in words that others build a sentence around.
#[derive(Debug, thiserror::Error)]
#[error("{}", source.reason())]
pub(crate) struct ApplyError {
    source: Arc<StoreError>,
}

impl From<StoreError> for ApplyError {
    fn from(error: StoreError) -> Self {
        Self { source: Arc::new(error) }
    }
}

impl Apply for Applier {
    type Error = ApplyError;

    fn apply(&mut self, first: Sequence, records: &[Bytes]) -> Result<(), ApplyError> {
        let applied = self.check_follows(first);
        let applied = applied.and_then(|()| self.when_there_is_space(|| self.write(first, records)));
        self.reached = self.or_fail(applied)?;
        Ok(())
    }

    fn make_durable(&mut self) -> Result<Sequence, ApplyError> {
        let made = self.when_there_is_space(|| self.tree.flush()).and_then(|()| self.tree.flushed_position());
        let position = made?;
        self.progress.flushed(position);
        Ok(position)
    }

    fn apply_unlogged(&mut self, records: &mut dyn Iterator<Item = &Bytes>) -> Result<(), ApplyError> {
        let records: Vec<&Bytes> = records.collect();
        self.or_fail(self.when_there_is_space(|| self.write_unlogged(&records)))
    }
}

impl Applier {
    fn or_fail<T>(&self, result: Result<T, StoreError>) -> Result<T, ApplyError> {
        result.map_err(|error| {
            let reason = error.reason();
            if matches!(error, StoreError::Corrupt { .. }) {
                // A compaction came to a damaged block: the next opening goes without what is damaged.
                crate::damage::note(&self.tree.folder.dir, &reason);
            }
            self.health.fail(&reason);
            error.into()
        })
    }

    /// The tree has every record of the log up to the one before `first`, and none after it.
    fn check_follows(&self, first: Sequence) -> Result<(), StoreError> {
        always!(
            first.0 == self.reached.0.saturating_add(1),
            "records are applied in the order of the log, each once",
            "{first:?} after {:?}",
            self.reached
        )?;
        Ok(())
    }

    /// What is in the log would only be delayed by refusing it now, until the store is opened again; what is not
    /// has been seen by readers. Applying a record twice does no harm.
    fn when_there_is_space<T>(&self, write: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let deadline = Instant::now() + WAIT_FOR_SPACE;
        loop {
            match write() {
                Err(StoreError::Full) if Instant::now() < deadline => {
                    self.health.wait_for_space(true);
                    thread::sleep(TRY_AGAIN);
                }
                Err(StoreError::Full) => {
                    self.health.wait_for_space(false);
                    let seconds = WAIT_FOR_SPACE.as_secs();
                    let reason = format!("the disk stayed full for {seconds} s with commits waiting for it");
                    return Err(StoreError::Failed { reason, cause: Some(Arc::new(StoreError::Full)) });
                }
                result => {
                    self.health.wait_for_space(false);
                    return result;
                }
            }
        }
    }

    fn write(&self, first: Sequence, records: &[Bytes]) -> Result<Sequence, StoreError> {
        let started = Instant::now();
        let mut write = self.tree.start_write();
        let mut bytes = 0_u64;
        for record in records {
            write.add(record)?;
            bytes += record.len() as u64;
        }
        let last = Sequence(first.0.saturating_add(records.len() as u64).saturating_sub(1));
        write.reach(last);
        write.finish()?;
        self.redo.applied(bytes, started.elapsed());
        if self.progress.applied(last, bytes) >= self.redo.limit_bytes() {
            self.bell.ring();
        }
        Ok(last)
    }

    /// Readers see these records a moment before they are durable; nobody learns that they are stored, nothing
    /// else is committed, and nothing derived from them is on disk, before.
    fn write_unlogged(&self, records: &[&Bytes]) -> Result<(), StoreError> {
        archiving::note_unlogged(&self.tree)?;
        let mut write = self.tree.start_write();
        for record in records {
            write.add(record)?;
            if write.size_bytes() >= REPLAY_BYTES {
                std::mem::replace(&mut write, self.tree.start_write()).finish()?;
            }
        }
        write.finish()?;
        self.tree.flush()
    }
}

/// Batches that wait between the thread that reads the log and the one that applies it.
const READ_AHEAD: usize = 3;

/// A part of the log that was read and is to be applied.
struct Part<'tree> {
    write: TreeWrite<'tree>,
    last: Sequence,
    bytes: u64,
}

/// Applies the records of the log that the tree has not reached.
pub(crate) fn replay(
    tree: &Tree,
    log: &Log,
    recovery: &Recovery,
    progress: &Progress,
) -> Result<Replayed, StoreError> {
    let position = reached(tree, recovery)?;
    progress.flushed(position);
    let next = Sequence(position.0.saturating_add(1));
    if next.0 > recovery.next.0 || (next.0 < recovery.first.0 && recovery.first.0 < recovery.next.0) {
        return Err(misfit(tree, position, recovery));
    }
    if next.0 == recovery.next.0 {
        return Ok(Replayed::default());
    }
    let records = recovery.next.0 - next.0;
    tracing::info!(records, "reading the log again from the store's position");
    let started = Instant::now();
    let bytes =
        apply_again(tree, log.read_from(next)?.map(|record| Ok(record?)), position, records, progress)?;
    let replayed = Replayed { records, bytes, elapsed: started.elapsed() };
    tracing::info!(records, bytes, elapsed = ?replayed.elapsed, bytes_per_second = replayed.speed(), "the log was read");
    Ok(replayed)
}

/// Applies records in order while later ones are being read. Returns how many bytes they had.
pub(crate) fn apply_again(
    tree: &Tree,
    mut read: impl Iterator<Item = Result<Record, StoreError>> + Send,
    position: Sequence,
    records: u64,
    progress: &Progress,
) -> Result<u64, StoreError> {
    let (sender, receiver) = std::sync::mpsc::sync_channel(READ_AHEAD);
    thread::scope(|scope| {
        let reading = thread::Builder::new().name("log-replay".to_owned()).spawn_scoped(scope, move || {
            // Anyone who applies has failed if nobody takes it.
            while let Some(part) = next_part(tree, &mut read).transpose() {
                if sender.send(part).is_err() {
                    break;
                }
            }
        });
        reading.map_err(|error| StoreError::io("start a thread for", &tree.folder.dir, error))?;
        let mut reported = Instant::now();
        let mut total_bytes = 0;
        for part in receiver {
            let Part { mut write, last, bytes } = part?;
            write.reach(last);
            write.finish()?;
            progress.applied(last, bytes);
            total_bytes += bytes;
            if reported.elapsed() >= REPORT_EVERY {
                reported = Instant::now();
                tracing::info!(done = last.0 - position.0, records, "still reading the log");
            }
        }
        Ok(total_bytes)
    })
}

/// The position of the tree. Where the file that holds it is damaged, the log is read again from its beginning: it
/// holds what the tree may lack, and applying a record twice does no harm.
fn reached(tree: &Tree, recovery: &Recovery) -> Result<Sequence, StoreError> {
    let own_is_damaged = tree.damaged.iter().any(|file| file.family.is_none());
    match tree.position() {
        Err(error) if own_is_damaged => {
            tracing::error!(%error, "the store's position in the log cannot be read; reading all of the log again");
            let position = Sequence(recovery.first.0.saturating_sub(1));
            let mut write = tree.start_write();
            write.reach(position);
            write.finish()?;
            Ok(position)
        }
        position => position,
    }
}

/// This many records as one write takes; `None` after the last.
fn next_part<'tree>(
    tree: &'tree Tree,
    read: &mut impl Iterator<Item = Result<Record, StoreError>>,
) -> Result<Option<Part<'tree>>, StoreError> {
    let mut part = None;
    for record in read {
        let record = record?;
        let Part { write, last, bytes } =
            part.get_or_insert_with(|| Part { write: tree.start_write(), last: record.sequence, bytes: 0 });
        write.add(&record.bytes)?;
        *last = record.sequence;
        *bytes += record.bytes.len() as u64;
        if write.size_bytes() >= REPLAY_BYTES {
            break;
        }
    }
    Ok(part)
}

fn misfit(tree: &Tree, position: Sequence, recovery: &Recovery) -> StoreError {
    StoreError::ForeignLog {
        log_dir: tree.folder.log.clone(),
        dir: tree.folder.dir.clone(),
        what: format!(
            "the store has reached record {}, the log holds {} up to {}; bring back the log of this store, or run \
             `scrinium log salvage` if it is lost (docs/operate/logging.md)",
            position.0,
            recovery.first.0,
            recovery.next.0.saturating_sub(1)
        ),
    }
}
