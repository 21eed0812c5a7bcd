//! What can go wrong in a store.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use scrinium_assertion::Fault;
use scrinium_log::{Cause, LogError};

use crate::Family;

/// What went wrong in the store, to what, and what a person can do about it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused an operation on a file.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// RocksDB failed otherwise than by damage or a full disk.
    #[error("cannot {action} the tree of the store: {message}")]
    Tree {
        /// What was tried, as a verb.
        action: &'static str,
        /// RocksDB's words.
        message: String,
    },

    /// Files of the store contradict each other or their checksums.
    #[error("the store in {} is damaged: {what}; see docs/operate/fixup.md for how to recover", path.display())]
    Corrupt {
        /// The store's folder.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },

    /// The transaction log is damaged before its end, or lacks a file.
    #[error(transparent)]
    DamagedLog(LogError),

    /// The transaction log cannot be opened or read otherwise.
    #[error(transparent)]
    Log(LogError),

    /// The log folder does not belong to this store, or lacks records that this store needs.
    #[error("the log in {} does not fit the store in {}: {what}", log_dir.display(), dir.display())]
    ForeignLog {
        /// The log's folder.
        log_dir: PathBuf,
        /// The store's folder.
        dir: PathBuf,
        /// What does not fit.
        what: String,
    },

    /// The disk is full. Reads go on, and so does removing for a while; writes go on once there is space again.
    #[error(
        "the disk of the store is full; writes resume when there is space again, as after deleting something"
    )]
    Full,

    /// The log has its largest size, and what it holds could not be brought into the tree's files. Reads go on; writes
    /// go on once it could.
    #[error(
        "{0}; writes resume once there is space for the databases' own files, or with a larger log.max_size"
    )]
    LogAtLimit(LogError),

    /// The system has no file handle at the moment. Nothing was written; writes go on as soon as it has.
    #[error("{0}; it is tried again with the next write")]
    Scarce(LogError),

    /// A write or a sync failed, so that the store takes no more writes until it is opened again.
    #[error(
        "the store takes no writes until it is opened again: {reason}; put that right and restart (docs/operate/logging.md)"
    )]
    Failed {
        /// What failed first, as a sentence.
        reason: String,
        /// The error itself, where it is known.
        #[source]
        cause: Option<Cause>,
    },

    /// A mistake in the server. Nothing was changed.
    #[error(transparent)]
    Fault(#[from] Fault),

    /// Commits are held while somebody takes a snapshot of the disks. Nothing was changed.
    #[error(
        "changes are held for {} s more at most, while a snapshot of the disks is taken; try again then",
        left.as_secs_f64().ceil()
    )]
    Frozen {
        /// When they are taken again at the latest.
        left: Duration,
    },

    /// The store was closed by somebody who shares it.
    #[error("the store was closed")]
    Closed,

    /// The store was written by a newer server.
    #[error(
        "{} has format {found}, and this server knows formats up to {supported}; use a newer server",
        path.display()
    )]
    NewerFormat {
        /// The file that says so.
        path: PathBuf,
        /// The format found.
        found: u32,
        /// The newest format known here.
        supported: u32,
    },

    /// Another process has the store open.
    #[error("{} is in use by {}; stop it first", dir.display(), holder(*pid))]
    Locked {
        /// The store's folder.
        dir: PathBuf,
        /// The process that holds it, where it left its number.
        pid: Option<u32>,
    },

    /// Bytes that are no batch.
    #[error("a batch cannot be read at byte {offset}: {what}")]
    Batch {
        /// Where in the batch.
        offset: usize,
        /// What is wrong there.
        what: &'static str,
    },

    /// A batch is longer than a record of the log may be.
    #[error("a batch of {bytes} bytes is over the limit of {limit_bytes}; split it")]
    TooLarge {
        /// Its encoded length.
        bytes: usize,
        /// The longest that is taken.
        limit_bytes: usize,
    },

    /// A derived family in a logged batch, or the other way round.
    #[error("the family {family} cannot be changed by {operation}")]
    WrongFamily {
        /// The first such family.
        family: Family,
        /// The operation that was called.
        operation: &'static str,
    },

    /// Keys to ingest did not come in strictly ascending order.
    #[error("entry {entry} to be ingested does not come after the one before it")]
    Unsorted {
        /// Counted from 0.
        entry: u64,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

impl StoreError {
    /// An [`StoreError::Io`], or [`StoreError::Full`] if that is what the operating system means.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Io { action, path: path.to_path_buf(), source },
        }
    }

    /// What RocksDB said, sorted by what can be done about it.
    pub(crate) fn tree(action: &'static str, dir: &Path, error: &rocksdb::Error) -> Self {
        let message = error.to_string();
        if is_no_space(&message) {
            return Self::Full;
        }
        match error.kind() {
            rocksdb::ErrorKind::Corruption => Self::Corrupt { path: dir.to_path_buf(), what: message },
            // RocksDB reports what stopped a merge in the background in the words of another error.
            _ if message.contains("Corruption") => Self::Corrupt { path: dir.to_path_buf(), what: message },
            _ => Self::Tree { action, message },
        }
    }
}

impl From<LogError> for StoreError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Full { .. } => Self::Full,
            LogError::AtLimit { .. } => Self::LogAtLimit(error),
            LogError::Scarce { .. } => Self::Scarce(error),
            LogError::Damaged { .. } | LogError::Missing { .. } => Self::DamagedLog(error),
            LogError::NewerFormat { file, found, supported } => {
                Self::NewerFormat { path: file, found, supported }
            }
            LogError::Locked { dir } => Self::Locked { dir, pid: None },
            LogError::Failed { cause } => Self::Failed { reason: cause.to_string(), cause: Some(cause) },
            LogError::Fault(fault) => Self::Fault(fault),
            LogError::TooLarge { bytes, limit_bytes } => Self::TooLarge { bytes, limit_bytes },
            LogError::Stopped => Self::Closed,
            LogError::Io { .. }
            | LogError::NotHeld { .. }
            | LogError::Options { .. }
            | LogError::Refused { .. }
            | LogError::Unknown { .. }
            | LogError::Misplaced { .. }
            | LogError::Archive { .. } => Self::Log(error),
        }
    }
}

impl StoreError {
    /// Whether the system had no file handle, or no memory, for what was to be opened.
    #[must_use]
    pub fn is_scarce(&self) -> bool {
        let lacks = |source: &io::Error| {
            source.kind() == io::ErrorKind::OutOfMemory
                || matches!(Errno::from_io_error(source), Some(Errno::MFILE | Errno::NFILE))
        };
        match self {
            Self::Scarce(_) => true,
            Self::Io { source, .. } => lacks(source),
            Self::Log(LogError::Io { source, .. }) => lacks(source),
            // RocksDB tells it in the system's words.
            Self::Tree { message, .. } => message.contains("Too many open files"),
            _ => false,
        }
    }

    /// What happened, without what follows from it where the store has failed.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Failed { reason, .. } => reason.clone(),
            other => other.to_string(),
        }
    }

    /// What a commit is answered with; a failed write or sync of the log has stopped all later ones too.
    pub(crate) fn of_commit(error: LogError) -> Self {
        match error {
            LogError::Io { .. } => Self::Failed { reason: error.to_string(), cause: Some(Arc::new(error)) },
            other => other.into(),
        }
    }
}

/// RocksDB gives its status as words; both are those of ENOSPC.
fn is_no_space(message: &str) -> bool {
    message.contains("No space left on device") || message.contains("NoSpace")
}
