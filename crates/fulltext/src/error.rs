//! What can go wrong with full text.

use scrinium_assertion::Fault;
use scrinium_store::StoreError;

/// An index that cannot be read or changed, or a query that is not answered.
#[derive(Debug, thiserror::Error)]
pub enum FullTextError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index was made by a newer version of this server.
    #[error(
        "full-text index {id} has format {found}, this server reads up to {newest}; start the newer server or drop the index"
    )]
    NewerFormat {
        /// The index.
        id: u64,
        /// The format found.
        found: u8,
        /// The newest one known here.
        newest: u8,
    },
    /// The index was made by an older analysis, or with other options.
    #[error("full-text index {id} was made with another {what}; drop it and build it again")]
    Outdated {
        /// The index.
        id: u64,
        /// `format` or `analysis`.
        what: &'static str,
    },
    /// The records of the index contradict each other.
    #[error("full-text index {id} is damaged: {what}; drop it and build it again")]
    Damaged {
        /// The index.
        id: u64,
        /// What does not fit.
        what: &'static str,
    },
    /// More than four thousand million documents were added since it was built.
    #[error("full-text index {id} has no addresses left; drop it and build it again")]
    Exhausted {
        /// The index.
        id: u64,
    },
    /// A query that is not in the syntax.
    #[error("the query is not understood at character {at}: {what}")]
    Syntax {
        /// Characters before what is not understood.
        at: usize,
        /// What is wrong, and what would be right.
        what: &'static str,
    },
    /// A query that asks for more than its limits allow.
    #[error("the query needs more than {limit} {what}; ask for longer or rarer words")]
    TooBroad {
        /// `postings`, `terms`, `clauses` or `hits`.
        what: &'static str,
        /// How many are allowed.
        limit: u64,
    },
    /// A bookmark that was not given out for this query and order.
    #[error("the bookmark does not belong to this query; ask without it to begin at the first page")]
    Bookmark,
    /// A mistake in the server; the index was not changed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl FullTextError {
    /// Whether the index is to be dropped and built again.
    #[must_use]
    pub fn needs_rebuild(&self) -> bool {
        match self {
            Self::Outdated { .. } | Self::Damaged { .. } | Self::Exhausted { .. } => true,
            Self::Store(error) => matches!(error, StoreError::Corrupt { .. }),
            _ => false,
        }
    }
}
