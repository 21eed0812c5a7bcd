//! What can go wrong with a database. A protocol says it in its own words and numbers.

use std::sync::Arc;

use scrinium_assertion::Fault;
use scrinium_contents::ContentError;
use scrinium_document::DocumentError;
use scrinium_store::StoreError;

/// Result of a database operation.
pub type Result<T> = std::result::Result<T, DatabaseError>;

/// What of a request is not as it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvalidInput {
    /// Its form, or a value in it.
    Request,
    /// What is asked of a view.
    Query,
    /// A design document: a formula, a function or a definition in it.
    Design,
    /// The name of a reduce function that there is none of.
    Reducer,
    /// What a function of a design document answered.
    ScriptValue,
    /// A reduce function does not reduce.
    ReduceOverflow,
    /// A function of a design document took too long, or did not end.
    ScriptTime,
    /// A function of a design document needs too much memory.
    ScriptMemory,
    /// A function of a design document answered what is no JSON.
    ScriptJson,
    /// A function of a design document failed.
    ScriptFailure,
    /// The name of a database.
    DatabaseName,
    /// The name of a folder.
    FolderName,
    /// A database has as many folders as it may have.
    FolderCount,
    /// A member of a document that begins with an underscore.
    Document,
    /// The id of a document.
    DocumentId,
    /// A part of a stored document, which cannot be read.
    Stored,
}

impl InvalidInput {
    /// Whether it is a function of a design document that cannot be used, or failed.
    #[must_use]
    pub const fn is_of_function(self) -> bool {
        matches!(
            self,
            Self::Design
                | Self::ScriptValue
                | Self::ScriptTime
                | Self::ScriptMemory
                | Self::ScriptJson
                | Self::ScriptFailure
        )
    }
}

/// What is larger, or more, than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Oversized {
    /// What is to be stored at once.
    Request,
    /// A document.
    Document,
    /// An attachment.
    Attachment,
    /// The readers of a document.
    Readers,
    /// A person's `_local` documents.
    LocalDocuments,
    /// The numbers that a folder has given to documents.
    Folder,
    /// What a database holds, by its quota.
    Database,
}

/// What went wrong, to what, and what can be done.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DatabaseError {
    /// Nothing of that name is there: `missing`, `deleted`, `Database does not exist.`
    #[error("{reason}")]
    NotFound {
        /// What is missing.
        reason: String,
    },
    /// The edit does not build on a current leaf revision.
    #[error("Document update conflict.")]
    Conflict,
    /// The request itself is wrong.
    #[error("{reason}")]
    Invalid {
        /// What of it.
        input: InvalidInput,
        /// What is wrong with it.
        reason: String,
    },
    /// A query or an index that is refused, or that no index can answer: the error of the language of queries, which says
    /// why. Clones share it.
    #[error("{0}")]
    Query(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// A database of that name exists.
    #[error("{reason}")]
    Exists {
        /// What exists.
        reason: String,
    },
    /// A limit on size was passed.
    #[error("{reason}")]
    TooLarge {
        /// What is too large.
        what: Oversized,
        /// Which limit, and where it is set.
        reason: String,
    },
    /// Not allowed, no matter who asks.
    #[error("{reason}")]
    Forbidden {
        /// Why not.
        reason: String,
    },
    /// Who asks has not shown that they may, as `validate_doc_update` of a design document says.
    #[error("{reason}")]
    Unauthorized {
        /// Why not.
        reason: String,
    },
    /// What an edit was validated against has changed; it is validated again, and nobody notices.
    #[error("The document was changed again and again while it was validated; try again.")]
    Stale,
    /// A stub stands for an attachment that is not there.
    #[error("{reason}")]
    MissingStub {
        /// What is missing.
        reason: String,
    },
    /// The disk is full; reading continues.
    #[error("{reason}")]
    Full {
        /// What was refused and what to do.
        reason: String,
    },
    /// Too many wait for the same.
    #[error("{reason}")]
    Busy {
        /// For what.
        reason: String,
        /// When to try again.
        retry_after_s: u64,
    },
    /// The server cannot do it now.
    #[error("{reason}")]
    Unavailable {
        /// Why, and what to do.
        reason: String,
    },
    /// A stored record that cannot be read; others are not concerned.
    #[error("{}", damage(what, key))]
    Damaged {
        /// What kind of record.
        what: String,
        /// What it is found by.
        key: String,
    },
    /// What the store reports: its files are damaged or cannot be used, or it was closed. A full disk, a batch that is too
    /// long, and what passes by itself have variants of their own.
    #[error("{0}")]
    Store(#[source] Arc<StoreError>),
    /// A mistake in the server. Nothing was changed.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// What cannot be read at all, or a fault in the server.
    #[error("{reason}")]
    Internal {
        /// What was found.
        reason: String,
    },
}

impl DatabaseError {
    /// Whether something that is stored cannot be read, so that what does not need it continues without it.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Store(_) | Self::Internal { .. })
    }

    /// What happened, to what, and what can be done.
    #[must_use]
    pub fn reason(&self) -> String {
        self.to_string()
    }

    /// Whether it is the server that could not do it, and nothing is wrong with what was asked for.
    pub fn is_of_the_server(&self) -> bool {
        match self {
            Self::Full { .. }
            | Self::Busy { .. }
            | Self::Unavailable { .. }
            | Self::Stale
            | Self::Damaged { .. }
            | Self::Store(_)
            | Self::Internal { .. }
            | Self::Fault(_) => true,
            Self::NotFound { .. }
            | Self::Conflict
            | Self::Invalid { .. }
            | Self::Query(_)
            | Self::Exists { .. }
            | Self::TooLarge { .. }
            | Self::Forbidden { .. }
            | Self::Unauthorized { .. }
            | Self::MissingStub { .. } => false,
        }
    }

    /// A document that is not there.
    #[must_use]
    pub fn missing() -> Self {
        Self::NotFound { reason: "missing".to_owned() }
    }

    /// A document of which a tombstone is left.
    #[must_use]
    pub fn deleted() -> Self {
        Self::NotFound { reason: "deleted".to_owned() }
    }

    /// A database that is not there.
    #[must_use]
    pub fn no_database() -> Self {
        Self::NotFound { reason: "Database does not exist.".to_owned() }
    }

    /// A request that is wrong.
    #[must_use]
    pub fn bad_request(reason: impl Into<String>) -> Self {
        Self::Invalid { input: InvalidInput::Request, reason: reason.into() }
    }

    /// A stored record that cannot be decoded.
    #[must_use]
    pub fn damaged(what: &str, key: &str) -> Self {
        Self::Damaged { what: what.to_owned(), key: key.to_owned() }
    }

    /// A content that cannot be read. It lies apart from the documents that refer to it, which may be many.
    pub(crate) fn damaged_content(what: &str, key: &str) -> Self {
        Self::Internal { reason: damage(what, key) }
    }
}

fn damage(what: &str, key: &str) -> String {
    format!(
        "The stored {what} of `{key}` cannot be read: it is damaged; see docs/operate/fixup.md for how to recover."
    )
}

/// A content lies apart from the documents that refer to it, which may be many: one that cannot be read is not passed over
/// as a document is.
impl From<ContentError> for DatabaseError {
    fn from(error: ContentError) -> Self {
        let reason = error.to_string();
        match error {
            ContentError::Store(error) => error.into(),
            ContentError::Damaged { .. } => Self::Internal { reason },
            ContentError::TooLarge { .. } => Self::TooLarge { what: Oversized::Attachment, reason },
            ContentError::Address { .. } | ContentError::Encoding => Self::bad_request(reason),
            ContentError::Stopped => Self::Unavailable { reason },
            ContentError::Object(_) if error.is_damage() => Self::Internal { reason },
            ContentError::Object(_) if error.is_full() => Self::Full { reason },
            ContentError::Object(_) => Self::Unavailable { reason },
        }
    }
}

impl From<StoreError> for DatabaseError {
    fn from(error: StoreError) -> Self {
        let reason = error.to_string();
        match error {
            StoreError::Full | StoreError::LogAtLimit(_) => Self::Full { reason },
            StoreError::Failed { .. } | StoreError::Scarce(_) | StoreError::Frozen { .. } => {
                Self::Unavailable { reason }
            }
            // No file handle, or no memory for one: that passes.
            scarce if scarce.is_scarce() => Self::Unavailable { reason },
            StoreError::TooLarge { bytes, limit_bytes } => Self::TooLarge {
                what: Oversized::Request,
                reason: format!(
                    "What is to be stored takes {bytes} bytes of the log, which takes {limit_bytes} at once; send it in \
                     several requests."
                ),
            },
            StoreError::Fault(fault) => Self::Fault(fault),
            StoreError::Corrupt { .. }
            | StoreError::DamagedLog(_)
            | StoreError::ForeignLog { .. }
            | StoreError::NewerFormat { .. }
            | StoreError::Batch { .. }
            | StoreError::Io { .. }
            | StoreError::Tree { .. }
            | StoreError::Log(_)
            | StoreError::Locked { .. }
            | StoreError::Closed
            | StoreError::WrongFamily { .. }
            | StoreError::Unsorted { .. } => Self::Store(Arc::new(error)),
        }
    }
}

impl From<DocumentError> for DatabaseError {
    fn from(error: DocumentError) -> Self {
        let reason = error.reason().into_owned();
        let invalid = |input: InvalidInput| Self::Invalid { input, reason: reason.clone() };
        match error {
            DocumentError::Conflict => Self::Conflict,
            DocumentError::DocumentTooLarge(_) => Self::TooLarge { what: Oversized::Document, reason },
            DocumentError::AttachmentTooLarge(_) => Self::TooLarge { what: Oversized::Attachment, reason },
            DocumentError::InvalidJson | DocumentError::BadRequest(_) => invalid(InvalidInput::Request),
            DocumentError::DocumentValidation(_) => invalid(InvalidInput::Document),
            DocumentError::IllegalDocumentId(_) => invalid(InvalidInput::DocumentId),
            DocumentError::Damaged { .. } | DocumentError::NewerFormat { .. } => {
                invalid(InvalidInput::Stored)
            }
        }
    }
}
