//! What can go wrong with the log, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use scrinium_assertion::Fault;

use crate::{NotAgreed, Sequence};

/// What made the log stop. Every commit that is refused afterwards shares it.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Why the log could not do what it was asked. Clones share the cause, since every commit of a group
/// is answered with it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LogError {
    /// The operating system refused an operation on a file of the log.
    #[error("cannot {action} {}: {source}", file.display())]
    Io {
        /// What was tried, as a verb: "write", "sync", "rename".
        action: &'static str,
        /// The file or directory.
        file: PathBuf,
        /// What the operating system said.
        source: Arc<io::Error>,
    },
    /// Bytes that had been written and synced are no longer what they were.
    #[error(
        "the transaction log is damaged at byte {offset} of {}: {problem}; put the file back from a mirror or a \
         backup, or run `scrinium log verify` and then `scrinium log salvage` (docs/operate/logging.md)",
        file.display()
    )]
    Damaged {
        /// The damaged file.
        file: PathBuf,
        /// Where the damaged frame or header begins.
        offset: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A file that the control file names is not there.
    #[error(
        "the transaction log lacks {}; put it back from a mirror or a backup, or run `scrinium log verify` and \
         then `scrinium log salvage` (docs/operate/logging.md)",
        file.display()
    )]
    Missing {
        /// The file that is not there.
        file: PathBuf,
    },
    /// A newer release has written this log.
    #[error(
        "{} has log format {found}, this release reads up to {supported}; start the newer release",
        file.display()
    )]
    NewerFormat {
        /// The file that says so.
        file: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this release knows.
        supported: u32,
    },
    /// Another process has this log open.
    #[error("the transaction log in {} is in use by another process; stop that one first", dir.display())]
    Locked {
        /// The log's directory.
        dir: PathBuf,
    },
    /// No space for the next extent. Nothing was written; commits are taken again once there is space.
    #[error(
        "no space for a new log extent of {needed_bytes} bytes in {}; free some space or move the log",
        dir.display()
    )]
    Full {
        /// The log's directory.
        dir: PathBuf,
        /// The size of the extent that did not fit.
        needed_bytes: u64,
    },
    /// The system has no file handle, or no memory for one, at the moment. Nothing was written; commits are taken
    /// again once it has.
    #[error("cannot {action} {} for now: {source}", file.display())]
    Scarce {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file.
        file: PathBuf,
        /// What the operating system said.
        source: Arc<io::Error>,
    },
    /// The log has its largest size and could not be emptied. Nothing was written; commits are taken again
    /// once it could.
    #[error(
        "the transaction log in {} has its largest size of {max_bytes} bytes and could not be emptied: {reason}",
        dir.display()
    )]
    AtLimit {
        /// The log's directory.
        dir: PathBuf,
        /// The largest size that it may have.
        max_bytes: u64,
        /// Why what it holds is still needed.
        reason: Arc<str>,
    },
    /// An earlier write, sync or application failed; nothing is taken until the log is reopened.
    #[error(
        "the transaction log stopped after a failure ({cause}); restart the server (docs/operate/logging.md)"
    )]
    Failed {
        /// The first failure.
        #[source]
        cause: Cause,
    },
    /// A mistake in the server. Nothing was written.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// A record is larger than the log takes.
    #[error("a record of {bytes} bytes exceeds the log's limit of {limit_bytes}; split the batch")]
    TooLarge {
        /// The record's size.
        bytes: usize,
        /// The largest that is taken.
        limit_bytes: usize,
    },
    /// The log does not hold that record: released, or not yet written.
    #[error("the log holds records {} up to {}, not {}", first.0, next.0.saturating_sub(1), sequence.0)]
    NotHeld {
        /// The record asked for.
        sequence: Sequence,
        /// The oldest record held.
        first: Sequence,
        /// The number that the next record will get.
        next: Sequence,
    },
    /// The archive of the log takes nothing, or lacks something. The log keeps what is not archived.
    #[error("the archive of the transaction log in {}: {reason}", dir.display())]
    Archive {
        /// The archive's folder.
        dir: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The servers did not agree on the record. It is nowhere, and never will be.
    #[error("the change was not agreed on: {cause}")]
    Refused {
        /// Why not.
        #[source]
        cause: Cause,
    },
    /// Nobody knows whether the servers agreed on the record. It may come, or not.
    #[error("the change may or may not be stored: {cause}")]
    Unknown {
        /// Why.
        #[source]
        cause: Cause,
    },
    /// Records that were agreed on elsewhere do not follow those that are here. Nothing was written.
    #[error("record {} is to be written next, not {}", next.0, first.0)]
    Misplaced {
        /// The first of the records.
        first: Sequence,
        /// The number that the next record gets.
        next: Sequence,
    },
    /// The committer was stopped.
    #[error("the transaction log was closed")]
    Stopped,
    /// The options contradict each other.
    #[error("the log cannot be opened with these options: {problem}")]
    Options {
        /// What is wrong with them.
        problem: String,
    },
}

/// Whether the system says that the process, or all processes together, have as many files open as they may. No sync
/// fails so.
pub(crate) fn lacks_handles(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

impl LogError {
    /// Of a step that opens a file, and syncs nothing.
    pub(crate) fn opening(action: &'static str, file: &Path, source: io::Error) -> Self {
        if lacks_handles(&source) || Errno::from_io_error(&source) == Some(Errno::NOMEM) {
            Self::Scarce { action, file: file.to_owned(), source: Arc::new(source) }
        } else {
            Self::io(action, file, source)
        }
    }

    /// Whether nothing was written, and the same may go well later.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::AtLimit { .. } | Self::Scarce { .. } | Self::Refused { .. })
    }

    pub(crate) fn io(action: &'static str, file: &Path, source: io::Error) -> Self {
        Self::Io { action, file: file.to_owned(), source: Arc::new(source) }
    }
}

impl From<NotAgreed> for LogError {
    fn from(error: NotAgreed) -> Self {
        match error {
            NotAgreed::Refused(cause) => Self::Refused { cause },
            NotAgreed::Unknown(cause) => Self::Unknown { cause },
        }
    }
}

/// A failure that no other part reports, as a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Sentence(String);

pub(crate) fn cause(sentence: String) -> Cause {
    Arc::new(Sentence(sentence))
}
