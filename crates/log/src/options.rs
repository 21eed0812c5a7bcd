//! How a log is opened.

use std::path::PathBuf;

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
    /// Size of a new extent in bytes, a multiple of 4,096.
    pub extent_bytes: u64,
    /// How many released extents are kept for reuse; more are deleted.
    pub spare_extents: usize,
    /// Whether writes go past the page cache.
    pub direct_io: DirectIo,
    /// The largest record that is taken, in bytes.
    pub max_record_bytes: usize,
    /// Bytes that may wait for the committer before `submit` blocks.
    pub queue_bytes: usize,
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
        }
    }
}
