//! What can go wrong with an index.

use scrinium_assertion::Fault;
use scrinium_store::StoreError;

/// An index that cannot be opened, read or changed.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index was built by a newer version of this server.
    #[error(
        "index {id} has format {found}, this server reads up to {newest}; start the newer server or drop the index"
    )]
    NewerFormat {
        /// The index.
        id: u64,
        /// The format found.
        found: u8,
        /// The newest one known here.
        newest: u8,
    },
    /// The index was built with another order of keys or another number of sums; drop it and build it again.
    #[error("index {id} was built with another {what}; drop it and build it again")]
    Outdated {
        /// The index.
        id: u64,
        /// `collation` or `number of sums`.
        what: &'static str,
    },
    /// The records of the index contradict each other; drop it and build it again.
    #[error("index {id} is damaged: {what}; drop it and build it again")]
    Damaged {
        /// The index.
        id: u64,
        /// What does not fit.
        what: &'static str,
    },
    /// The number may not be an index's, or more sums were asked for than an entry may carry.
    #[error("an index cannot have {what}")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
    },
    /// A key is longer than 65,535 bytes.
    #[error("a key of {bytes} bytes is longer than {limit_bytes}", limit_bytes = crate::KEY_BYTES_MAX)]
    KeyTooLong {
        /// Its length.
        bytes: usize,
    },
    /// The entries of a rebuild did not come in strictly ascending order.
    #[error("entry {entry} of the rebuild does not come after the one before it")]
    Unsorted {
        /// Counted from 0.
        entry: u64,
    },
    /// A mistake in the server; the index was not changed.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The source of a rebuild's entries failed; nothing was kept.
    #[error("the entries of the rebuild cannot be read: {0}")]
    Source(#[source] Box<dyn std::error::Error + Send + Sync>),
}
