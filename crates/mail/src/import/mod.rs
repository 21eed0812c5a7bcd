//! Mail that lies in files: mbox, Maildir, folders of messages. Read one message at a time, in an order that
//! does not change, so that an import can be taken up again where it stopped.

mod ahead;
mod folder;
mod importer;
mod kind;
mod mbox;
mod names;
mod passed;
mod sequences;
mod state;
mod stream;
mod target;
mod walk;

use std::path::{Path, PathBuf};

use thiserror::Error;

pub use crate::source::{MEMORY_BYTES, MessageReader, MessageSource};
pub use importer::{
    ImportOptions, ImportReport, ImportTarget, ImportedMemo, Importer, Progress, RefusedMessage, StoredBatch,
};
pub(crate) use mbox::QuotedLines;
pub use mbox::{MboxItem, MboxReader, quote_mbox};
pub use passed::{PassedKind, PassedOver};
pub use state::MessageState;
pub(crate) use state::{EXPORT_MARK, EXPORTED_BY, KEYWORD_FILE};
pub use target::{MailDatabase, checkpoint_id, read_position, write_position};
pub use walk::{MailFiles, Measured, TRASH};

/// A message as it lay in a file.
#[derive(Debug, Clone)]
pub struct RawMessage {
    /// Its bytes; of a message in an mbox, without the line before it and the quoting.
    pub source: MessageSource,
    /// When it was delivered according to the mbox, in seconds since 1970.
    pub delivered_s: Option<i64>,
    /// Where the next message is looked for.
    pub position: Position,
    /// The folder that it goes into, by where it lay.
    pub folder: String,
    /// What its mail program kept of it.
    pub state: MessageState,
    /// Where it lay, for people.
    pub place: String,
}

/// A place between two messages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// The file, relative to what is imported; empty for a single file.
    pub path: PathBuf,
    /// Bytes of this file that have been read.
    pub offset: u64,
}

/// What cannot be read of the mail to import. [`ImportError::Start`], [`ImportError::NotMail`],
/// [`ImportError::Spool`] and [`ImportError::Target`] end an import; the others leave out a file or a message, which are
/// counted.
#[derive(Debug, Error)]
pub enum ImportError {
    /// There is nothing to read at this place.
    #[error("cannot read {path}: {error}", path = path.display())]
    Start {
        /// What was to be imported.
        path: PathBuf,
        /// Why it cannot be.
        error: std::io::Error,
    },
    /// What is at this place is something else.
    #[error("{path} is not mail but {what}: {advice}", path = path.display())]
    NotMail {
        /// What was to be imported.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// What to do with it.
        advice: String,
    },
    /// A file or folder cannot be read.
    #[error("cannot read {path}, it is left out: {error}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A message is larger than any that is kept.
    #[error("a message in {path} at byte {offset} has more than {limit} bytes, it is left out", path = path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Where in the file the message begins.
        offset: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Folders lie deeper in folders than anybody puts mail.
    #[error("{path} is too deep in folders, it is left out", path = path.display())]
    TooDeep {
        /// The folder.
        path: PathBuf,
    },
    /// There is no room for the temporary file of a large message.
    #[error("the import stopped; run it again to resume: {0}")]
    Spool(std::io::Error),
    /// The mail database did not take a batch.
    #[error("the import stopped; run it again to resume: {0}")]
    Target(String),
}

impl ImportError {
    /// A file or folder at `path` cannot be read, or what was read of it not be kept.
    fn reading(path: &Path, error: std::io::Error) -> Self {
        if crate::source::SpoolError::is(&error) {
            Self::Spool(error)
        } else {
            Self::File { path: path.to_owned(), error }
        }
    }
}

/// Whether a file is an mbox by its name: `mbox`, `Inbox.mbox`.
pub(crate) fn is_named_mbox(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mbox"))
        || path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("mbox"))
}
