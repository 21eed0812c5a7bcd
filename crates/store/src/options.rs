//! How a store is opened and scanned.

use std::path::PathBuf;
use std::time::Duration;

use scrinium_clock::Clock;

use crate::{LogFavor, LogStyle};

const MEGABYTE: u64 = 1 << 20;

/// Where a store lives and what it may use.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The store's folder; made if it is missing.
    pub dir: PathBuf,
    /// The folder of the transaction log, best on a device of its own. `None` is `log` within `dir`.
    pub log_dir: Option<PathBuf>,
    /// Memory for blocks, memtables and all that is reserved, together. `None` is a quarter of what the machine or
    /// its container has.
    pub budget_bytes: Option<u64>,
    /// Whether commits go into the log. Another style at the next opening keeps all data.
    pub log_style: LogStyle,
    /// What is favored: running, or restarting after a crash.
    pub log_favor: LogFavor,
    /// A checkpoint is made when this many bytes of log would have to be read again after a crash. 0: when
    /// `log_favor` says.
    pub checkpoint_log_bytes: u64,
    /// The most that the log takes on disk, at least three of its files. `None`: all that there is. A full log is
    /// emptied by a checkpoint while commits wait.
    pub log_max_bytes: Option<u64>,
    /// Writes are refused as [`Full`](crate::StoreError::Full) when the disk has less than this free, so
    /// that there is room left to flush and compact what was accepted, and for what is derived from it.
    pub reserve_bytes: u64,
    /// Size of one file of the log.
    pub log_extent_bytes: u64,
    /// Unused files of the log that are kept ready.
    pub log_spare_extents: usize,
    /// Commits that wait for the log hold at most this many bytes; further ones wait to be taken.
    pub queue_bytes: usize,
    /// Whether files are written past the page cache where the file system takes it.
    pub direct_io: bool,
    /// Off, a crash of the machine loses what was acknowledged. For measuring what syncs cost.
    #[doc(hidden)]
    pub sync: bool,
    /// Whether the tree's files are also read past it.
    pub direct_reads: bool,
    /// They are, too, if they take more than this many bytes when the store is opened; 0: however many.
    pub direct_reads_above_bytes: u64,
    /// What a compaction or a long scan reads ahead of each file, at most 16 MB; 0: as the budget allows, up to 2 MB.
    /// Merging keeps to what was set when the store was opened.
    pub read_ahead_bytes: u64,
    /// A sync of the log that takes so long or longer is reported; zero: none is.
    pub report_syncs_above: Duration,
    /// How many of the tree's files are open at once; a file that is needed beyond that is opened again each time.
    /// `None`: half of what the process may open.
    pub open_files: Option<u32>,
    /// Where files of the log are copied before they are used again, if anywhere.
    pub log_archive: Option<LogArchive>,
    /// What tells the time, to the store and to all that is kept in it ([`Store::clock`](crate::Store::clock)).
    pub clock: Clock,
}

/// Where and how often the log is archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogArchive {
    /// The archive's folder, which must be there; best on another device.
    pub dir: PathBuf,
    /// What is written of the last file is copied this often, where something was written. Zero: only whole files
    /// are, and what a backup asks for.
    pub every: Duration,
}

impl StoreOptions {
    /// The defaults for a store in `dir`.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            log_dir: None,
            budget_bytes: None,
            log_style: LogStyle::default(),
            log_favor: LogFavor::default(),
            checkpoint_log_bytes: 0,
            log_max_bytes: None,
            reserve_bytes: 256 * MEGABYTE,
            log_extent_bytes: 64 * MEGABYTE,
            log_spare_extents: 2,
            queue_bytes: 64 << 20,
            direct_io: true,
            open_files: None,
            log_archive: None,
            sync: true,
            direct_reads: false,
            direct_reads_above_bytes: 0,
            read_ahead_bytes: 0,
            report_syncs_above: Duration::ZERO,
            clock: Clock::default(),
        }
    }
}

/// The longest batch that one commit takes, in bytes as encoded; half a file of the log where files are
/// smaller than by default.
pub const MAX_BATCH_BYTES: usize = 32 << 20;

/// The longest batch for a log with files of this size.
pub(crate) fn max_batch_bytes(log_extent_bytes: u64) -> usize {
    usize::try_from(log_extent_bytes / 2).map_or(MAX_BATCH_BYTES, |half| half.min(MAX_BATCH_BYTES))
}

/// Which keys a cursor shows: from `from` up to, not including, `to`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyRange<'a> {
    /// The first key; empty is the beginning of the family.
    pub from: &'a [u8],
    /// The first key left out; `None` is the end of the family.
    pub to: Option<&'a [u8]>,
}

impl<'a> KeyRange<'a> {
    /// The whole family.
    pub const ALL: KeyRange<'static> = KeyRange { from: &[], to: None };

    /// From `from` up to, not including, `to`.
    #[must_use]
    pub fn new(from: &'a [u8], to: &'a [u8]) -> Self {
        Self { from, to: Some(to) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.to.is_some_and(|to| self.from >= to)
    }
}

/// The first key after all keys that start with `prefix`; `None` when there is none, because the prefix
/// is empty or all bytes of it are 0xff.
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix.get(..=last)?.to_vec();
    if let Some(byte) = end.last_mut() {
        *byte += 1;
    }
    Some(end)
}

/// Which way a cursor goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    #[default]
    Forward,
    /// Descending keys.
    Backward,
}

/// How a cursor reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanOptions {
    /// Which way it goes.
    pub direction: Direction,
    /// Bytes read ahead from the first block on, as far as the store's own setting allows; 0 lets it begin small and
    /// double while blocks come in sequence.
    pub read_ahead_bytes: usize,
    /// Whether blocks that it reads stay in memory. Off for a scan of much that is read once, lest it
    /// push out what others need.
    pub fill_cache: bool,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self { direction: Direction::Forward, read_ahead_bytes: 0, fill_cache: true }
    }
}

impl ScanOptions {
    /// For a long scan of what is read once: as much read-ahead as the store is set to, past the cache.
    #[must_use]
    pub fn long(direction: Direction) -> Self {
        Self { direction, read_ahead_bytes: usize::MAX, fill_cache: false }
    }
}
