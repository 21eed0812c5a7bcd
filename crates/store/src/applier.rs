//! Brings what the log has made durable into the tree: as it is committed, and again after a crash.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use scrinium_log::{Apply, Log, Recovery, Sequence};

use crate::StoreError;
use crate::health::Health;
use crate::progress::Progress;
use crate::tree::Tree;

/// Records read again after a crash are applied so many bytes at a time.
pub(crate) const REPLAY_BYTES: usize = 4 << 20;

/// A replay that takes longer says how far it is, this often.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// How long commits that are in the log wait for space in the tree, before the store fails. RocksDB looks
/// for space every five seconds.
const WAIT_FOR_SPACE: Duration = Duration::from_secs(30);

const TRY_AGAIN: Duration = Duration::from_millis(250);

/// Applies each group of the committer as one write.
pub(crate) struct Applier {
    pub(crate) tree: Arc<Tree>,
    pub(crate) health: Arc<Health>,
    pub(crate) progress: Arc<Progress>,
}

impl Apply for Applier {
    fn apply(&mut self, first: Sequence, records: &[Bytes]) -> Result<(), String> {
        self.write_when_there_is_space(first, records).map_err(|error| {
            let reason = match error {
                StoreError::Failed { reason } => reason,
                other => other.to_string(),
            };
            self.health.fail(&reason);
            reason
        })
    }
}

impl Applier {
    /// These records are in the log, so that refusing them now would only delay them until the store is
    /// opened again. Applying one twice does no harm.
    fn write_when_there_is_space(&self, first: Sequence, records: &[Bytes]) -> Result<(), StoreError> {
        let deadline = Instant::now() + WAIT_FOR_SPACE;
        loop {
            match self.write(first, records) {
                Err(StoreError::Full) if Instant::now() < deadline => {
                    self.health.wait_for_space(true);
                    thread::sleep(TRY_AGAIN);
                }
                Err(StoreError::Full) => {
                    self.health.wait_for_space(false);
                    let seconds = WAIT_FOR_SPACE.as_secs();
                    let reason = format!("the disk stayed full for {seconds} s with commits waiting for it");
                    return Err(StoreError::Failed { reason });
                }
                result => {
                    self.health.wait_for_space(false);
                    return result;
                }
            }
        }
    }

    fn write(&self, first: Sequence, records: &[Bytes]) -> Result<(), StoreError> {
        let mut write = self.tree.start_write();
        let mut bytes = 0_u64;
        for record in records {
            write.add(record)?;
            bytes += record.len() as u64;
        }
        let last = Sequence(first.0.saturating_add(records.len() as u64).saturating_sub(1));
        write.reach(last);
        write.finish()?;
        self.progress.applied(last, bytes);
        Ok(())
    }
}

/// Applies the records of the log that the tree has not reached.
pub(crate) fn replay(
    tree: &Tree,
    log: &Log,
    recovery: &Recovery,
    progress: &Progress,
) -> Result<(), StoreError> {
    let position = tree.position()?;
    progress.flushed(position);
    let next = Sequence(position.0.saturating_add(1));
    if next.0 > recovery.next.0 || (next.0 < recovery.first.0 && recovery.first.0 < recovery.next.0) {
        return Err(misfit(tree, position, recovery));
    }
    if next.0 == recovery.next.0 {
        return Ok(());
    }
    let records = recovery.next.0 - next.0;
    tracing::info!(records, "reading the log again from where the store had come");
    let started = Instant::now();
    let mut reported = started;
    let mut write = tree.start_write();
    let mut group_bytes = 0_u64;
    let mut last = position;
    for record in log.read_from(next)? {
        let record = record?;
        write.add(&record.bytes)?;
        group_bytes += record.bytes.len() as u64;
        last = record.sequence;
        if write.size_bytes() >= REPLAY_BYTES {
            let full = std::mem::replace(&mut write, tree.start_write());
            finish(full, last, group_bytes, progress)?;
            group_bytes = 0;
            if reported.elapsed() >= REPORT_EVERY {
                reported = Instant::now();
                tracing::info!(done = last.0 - position.0, records, "still reading the log");
            }
        }
    }
    if group_bytes > 0 {
        finish(write, last, group_bytes, progress)?;
    }
    tracing::info!(records, elapsed = ?started.elapsed(), "the log was read");
    Ok(())
}

fn finish(
    mut write: crate::tree::TreeWrite<'_>,
    last: Sequence,
    bytes: u64,
    progress: &Progress,
) -> Result<(), StoreError> {
    write.reach(last);
    write.finish()?;
    progress.applied(last, bytes);
    Ok(())
}

fn misfit(tree: &Tree, position: Sequence, recovery: &Recovery) -> StoreError {
    StoreError::ForeignLog {
        log_dir: tree.folder.log.clone(),
        dir: tree.folder.dir.clone(),
        what: format!(
            "the store has come to record {}, the log holds {} up to {}; bring back the log of this store",
            position.0,
            recovery.first.0,
            recovery.next.0.saturating_sub(1)
        ),
    }
}
