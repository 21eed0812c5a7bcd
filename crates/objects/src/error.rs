//! What can go wrong with objects, and what to do about it.

use std::io;
use std::path::PathBuf;

use scrinium_assertion::Fault;

use crate::bucket::BucketError;

/// Why an object was not written, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The store of objects has no such object.
    #[error(
        "object {object} is missing; bring it back there from a copy of that store, or save the attachment again"
    )]
    Missing {
        /// Its address.
        object: String,
    },
    /// The bytes of an object are not those that were written.
    #[error(
        "object {object} is damaged: {problem}; bring it back from a copy of that store, or save the attachment again"
    )]
    Damaged {
        /// Its address.
        object: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The store of objects does not answer.
    #[error("the attachment store {address} cannot be used now: {reason}; try again later")]
    Away {
        /// Where it is.
        address: String,
        /// What was said.
        reason: String,
    },
    /// The store of objects refuses.
    #[error(
        "the attachment store {address} refused: {reason}; look at attachment.store, the keys and the bucket's rights"
    )]
    Refused {
        /// Where it is.
        address: String,
        /// What was said.
        reason: String,
    },
    /// Too many wait for it already.
    #[error("too many already wait for the attachment store {address}; try again later")]
    Busy {
        /// Where it is.
        address: String,
    },
    /// What was to be written is not what it was said to be.
    #[error("what was to be uploaded changed meanwhile: {0}")]
    Source(String),
    /// A mistake in the server.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// A file on this machine could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

impl ObjectError {
    /// Whether the object itself is at fault, and not the way to it.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Damaged { .. })
    }

    pub(crate) fn of_bucket(address: &str, name: &str, error: BucketError) -> Self {
        let address = address.to_owned();
        match error {
            BucketError::Missing => Self::Missing { object: format!("{address}/{name}") },
            BucketError::Away(reason) => Self::Away { address, reason },
            BucketError::Refused(reason) => Self::Refused { address, reason },
        }
    }
}
