//! What can go wrong with a backup, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use scrinium_store::{LogError, StoreError};

use crate::age::{CipherError, KeyError};

/// Why a backup was not made, checked or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
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
    /// The folder holds something else.
    #[error(
        "{place} is not empty and no repository of backups; name an empty folder, or one that backups were made in"
    )]
    NoRepository {
        /// The repository's place.
        place: String,
    },
    /// There is no backup of that name, or none at all.
    #[error("{place} holds no backup {wanted}; scrinium backup list {place} shows what there is")]
    NoBackup {
        /// The repository's place.
        place: String,
        /// What was asked for.
        wanted: String,
    },
    /// A newer server has written it.
    #[error("{what} has format {found}, and this server knows formats up to {supported}; use a newer server")]
    NewerFormat {
        /// The file that says so.
        what: String,
        /// The format found.
        found: u64,
        /// The newest that is known here.
        supported: u64,
    },
    /// A file of the repository is not what was written.
    #[error("{what} is damaged: {problem}; use another backup, and make a new one in another repository")]
    Damaged {
        /// The file.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Somebody else works on the repository.
    #[error("{place} is in use by another backup, verify, prune or restore; wait until it has ended")]
    Locked {
        /// The repository's place.
        place: String,
    },
    /// A file changed or went while it was read, so that the backup would not be whole.
    #[error("{} changed while it was backed up; no backup was made: {problem}", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What was seen.
        problem: String,
    },
    /// The folder to restore into holds something.
    #[error("{} is not empty; a backup is restored into an empty folder only", dir.display())]
    NotEmpty {
        /// The folder.
        dir: PathBuf,
    },
    /// A restore into the folder did not come to its end, or is under way.
    #[error(
        "{} holds an interrupted restore, or one that is still running; remove everything in it, then restore again",
        dir.display()
    )]
    Interrupted {
        /// The folder.
        dir: PathBuf,
    },
    /// The store of objects refused, or did not answer.
    #[error("{name}: {reason}")]
    Remote {
        /// The object.
        name: String,
        /// What was said.
        reason: String,
    },
    /// There is not enough space.
    #[error(
        "{place} has {free_bytes} bytes free and {needed_bytes} are needed; make room, or name another folder"
    )]
    NoSpace {
        /// Where.
        place: String,
        /// What is to be written.
        needed_bytes: u64,
        /// What there is.
        free_bytes: u64,
    },
    /// What was asked for cannot be reached with what there is.
    #[error("{0}")]
    OutOfReach(String),
    /// The repository's backups are encrypted to another key than the server's setting, or are not encrypted.
    #[error("{}", other_protection(place, found.as_deref(), wanted.as_deref()))]
    OtherProtection {
        /// The repository's place.
        place: String,
        /// To whom its backups are encrypted.
        found: Option<String>,
        /// To whom they are to be.
        wanted: Option<String>,
    },
    /// The private key is needed and was not given.
    #[error("{what} is encrypted: say --identity FILE, the file of the private key")]
    NeedsIdentity {
        /// The backup.
        what: String,
    },
    /// Something cannot be encrypted or decrypted.
    #[error("{what}: {source}")]
    Cipher {
        /// The file.
        what: String,
        /// Why.
        source: CipherError,
    },
    /// A key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Somebody asked it to stop.
    #[error("it was stopped; nothing was made")]
    Cancelled,
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log's archive could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

fn other_protection(place: &str, found: Option<&str>, wanted: Option<&str>) -> String {
    let elsewhere = "name an empty folder for new backups";
    match (found, wanted) {
        (None, _) => {
            format!("the backups in {place} are not encrypted, and backup.recipient is set: {elsewhere}")
        }
        (Some(found), None) => format!(
            "the backups in {place} are encrypted to {found}: set it as backup.recipient in the configuration file, or {elsewhere}"
        ),
        (Some(found), Some(_)) => format!(
            "the backups in {place} are encrypted to {found}, which is not backup.recipient: {elsewhere}, and keep the \
             private keys of both"
        ),
    }
}

impl BackupError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { action, path: path.clone(), source }
    }

    /// An error if there is not enough space, as far as that is known.
    pub(crate) fn check_space(place: String, needed_bytes: u64, free_bytes: Option<u64>) -> Result<(), Self> {
        match free_bytes.filter(|free_bytes| *free_bytes < needed_bytes) {
            Some(free_bytes) => Err(Self::NoSpace { place, needed_bytes, free_bytes }),
            None => Ok(()),
        }
    }

    pub(crate) fn cipher(what: &str, source: CipherError) -> Self {
        Self::Cipher { what: what.to_owned(), source }
    }

    pub(crate) fn damaged(what: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Damaged { what: what.into(), problem: problem.into() }
    }
}
