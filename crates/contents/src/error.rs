//! What can go wrong with a content.

use scrinium_objects::ObjectError;
use scrinium_store::StoreError;

use crate::hex::hex;

/// Result of an operation on contents.
pub type Result<T> = std::result::Result<T, ContentError>;

/// What can go wrong with a content.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// A record, or bytes, that cannot be read.
    #[error(
        "The stored {what} of `{key}` cannot be read: it is damaged; see docs/operate/fixup.md for how to recover."
    )]
    Damaged {
        /// What it is.
        what: &'static str,
        /// What it is named by.
        key: String,
    },
    /// More bytes came than a content may have.
    #[error("The attachment is larger than {limit_bytes} bytes, the limit that `attachment.max_bytes` sets.")]
    TooLarge {
        /// How many it may have.
        limit_bytes: u64,
    },
    /// Bytes that are not encoded as is said of them.
    #[error("The attachment is not gzip, as its encoding says.")]
    Encoding,
    /// The address of a store of objects is not valid.
    #[error("{reason}")]
    Address {
        /// What is wrong with it.
        reason: String,
    },
    /// Somebody stopped the work.
    #[error("It was stopped.")]
    Stopped,
    /// What the store reports.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What a store of objects reports.
    #[error("An attachment cannot be read or stored: {0}.")]
    Object(#[source] ObjectError),
}

impl ContentError {
    /// What cannot be read.
    pub(crate) fn damaged(what: &'static str, key: impl Into<String>) -> Self {
        Self::Damaged { what, key: key.into() }
    }

    /// Whether bytes are lost or not what they should be, so that trying again does not help.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Object(error) => is_lost(error),
            Self::Store(error) => {
                !error.is_scarce()
                    && !matches!(
                        error,
                        StoreError::Full
                            | StoreError::LogAtLimit(_)
                            | StoreError::Failed { .. }
                            | StoreError::Frozen { .. }
                            | StoreError::TooLarge { .. }
                    )
            }
            Self::TooLarge { .. } | Self::Encoding | Self::Address { .. } | Self::Stopped => false,
        }
    }

    /// Whether it may be otherwise when it is tried again later.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Stopped => true,
            Self::Object(error) => !is_lost(error) && !is_full(error),
            Self::Store(error) => {
                error.is_scarce() || matches!(error, StoreError::Failed { .. } | StoreError::Frozen { .. })
            }
            Self::Damaged { .. } | Self::TooLarge { .. } | Self::Encoding | Self::Address { .. } => false,
        }
    }

    /// Whether a disk has no room for it.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match self {
            Self::Object(error) => is_full(error),
            Self::Store(error) => matches!(error, StoreError::Full | StoreError::LogAtLimit(_)),
            _ => false,
        }
    }
}

const fn is_lost(error: &ObjectError) -> bool {
    matches!(error, ObjectError::Missing { .. } | ObjectError::Damaged { .. } | ObjectError::Source(_))
}

fn is_full(error: &ObjectError) -> bool {
    matches!(error, ObjectError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull)
}

/// Says in the log that a key cannot be read, for work that goes on with the next one.
pub(crate) fn damaged_key(what: &str, key: &[u8]) {
    tracing::error!(key = hex(key), "a {what} cannot be read: its key is damaged; see docs/operate/fixup.md");
}

impl From<ObjectError> for ContentError {
    fn from(error: ObjectError) -> Self {
        if is_lost(&error) {
            tracing::error!(%error, "an attachment cannot be read or stored");
        }
        Self::Object(error)
    }
}
