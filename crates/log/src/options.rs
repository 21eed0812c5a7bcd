//! How a log is opened.

use std::path::PathBuf;

use scrinium_clock::Clock;

use crate::buffer::BLOCK_BYTES;
use crate::extent::FIRST_FRAME;
use crate::frame::{FRAME_ALIGNMENT, HEADER_BYTES, RECORD_OVERHEAD};
use crate::{LogError, Sequence};

/// Small enough for tests, large enough for some frames.
const SMALLEST_EXTENT: u64 = 4 * BLOCK_BYTES;

/// One that is written, one that is ready to be, one that is emptied.
const FEWEST_EXTENTS: u64 = 3;

/// Lengths in a frame have 32 bits.
const LARGEST_EXTENT: u64 = 2 << 30;

/// Whether writes go past the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirectIo {
    /// Where the file system takes it, else through the page cache.
    #[default]
    Auto,
    /// Through the page cache.
    Off,
}

/// How a log is opened. [`LogOptions::new`] gives the defaults.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The directory of the log's files, made if it is not there; best on a device of its own.
    pub dir: PathBuf,
    /// Size of an extent in bytes, a multiple of 4,096. A log keeps the size that it was made with.
    pub extent_bytes: u64,
    /// How many released extents are kept for reuse, besides the one that is made ready; more are deleted.
    pub spare_extents: usize,
    /// Whether writes go past the page cache.
    pub direct_io: DirectIo,
    /// The largest record that is taken, in bytes. A log that was made with smaller extents takes less.
    pub max_record_bytes: usize,
    /// Bytes that may wait for the committer before `submit` blocks.
    pub queue_bytes: usize,
    /// Where extents are copied before they are used again, if anywhere.
    pub archive_dir: Option<PathBuf>,
    /// The most that the log's extents take on disk together, in bytes; at least three extents. `None`: all
    /// that there is.
    pub max_bytes: Option<u64>,
    /// The number of the first record of a log that is made new, at least 1; one that exists keeps its numbers.
    pub first: Sequence,
    /// What tells the time that a group of records is marked with.
    pub clock: Clock,
    /// Off, records are not synced: a crash of the machine loses them. For measuring what syncs cost.
    #[doc(hidden)]
    pub sync: bool,
}

impl LogOptions {
    /// Extents of 64 MiB, three spare, direct I/O where possible, records up to 32 MiB, a queue of 64 MiB.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            extent_bytes: 64 << 20,
            spare_extents: 3,
            direct_io: DirectIo::Auto,
            max_record_bytes: 32 << 20,
            queue_bytes: 64 << 20,
            archive_dir: None,
            max_bytes: None,
            first: Sequence(1),
            clock: Clock::default(),
            sync: true,
        }
    }

    /// How many extents there may be, where there is a bound.
    pub(crate) fn max_extents(&self) -> Option<u64> {
        self.max_bytes.map(|max_bytes| max_bytes / self.extent_bytes.max(1))
    }

    /// Whether the bound leaves an extent to write, one made ready and one that is emptied meanwhile.
    pub(crate) fn check_bound(&self) -> Result<(), LogError> {
        match self.max_extents() {
            Some(extents) if extents < FEWEST_EXTENTS => {
                let problem = format!(
                    "it may take at most {} bytes, but its extents have {} bytes and there must be \
                     {FEWEST_EXTENTS} of them; allow at least {}",
                    self.max_bytes.unwrap_or_default(),
                    self.extent_bytes,
                    self.extent_bytes.saturating_mul(FEWEST_EXTENTS)
                );
                Err(LogError::Options { problem })
            }
            _ => Ok(()),
        }
    }

    /// The largest record that an extent of this size can take.
    pub(crate) fn largest_record_bytes(&self) -> usize {
        let overhead = FIRST_FRAME + (FRAME_ALIGNMENT + HEADER_BYTES + RECORD_OVERHEAD) as u64;
        usize::try_from(self.extent_bytes.saturating_sub(overhead)).unwrap_or(usize::MAX)
    }

    pub(crate) fn check(&self) -> Result<(), LogError> {
        let problem = if !(SMALLEST_EXTENT..=LARGEST_EXTENT).contains(&self.extent_bytes) {
            format!(
                "an extent must have {SMALLEST_EXTENT} to {LARGEST_EXTENT} bytes, not {}",
                self.extent_bytes
            )
        } else if !self.extent_bytes.is_multiple_of(BLOCK_BYTES) {
            format!("an extent must be a multiple of {BLOCK_BYTES} bytes, not {}", self.extent_bytes)
        } else if self.max_record_bytes > self.largest_record_bytes() {
            let largest = self.largest_record_bytes();
            format!(
                "a record of {} bytes does not fit into an extent, {largest} would",
                self.max_record_bytes
            )
        } else {
            return Ok(());
        };
        Err(LogError::Options { problem })
    }
}
