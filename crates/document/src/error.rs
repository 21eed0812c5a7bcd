//! What can be wrong with a document, in CouchDB's words.

use std::borrow::Cow;

/// A document, or a part of one, that is refused.
///
/// [`error`](Self::error) and [`reason`](Self::reason) are the two members of CouchDB's error body
/// and [`status`](Self::status) its HTTP status, so that a protocol can answer without a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Not JSON, or not UTF-8; CouchDB gives one reason for both.
    #[error("invalid UTF-8 JSON")]
    InvalidJson,
    /// The request has a form that CouchDB refuses as `bad_request`.
    #[error("{0}")]
    BadRequest(Cow<'static, str>),
    /// A member beginning with an underscore is unknown or has the wrong form.
    #[error("{0}")]
    DocumentValidation(Cow<'static, str>),
    /// The id may not be given to a document.
    #[error("{0}")]
    IllegalDocumentId(Cow<'static, str>),
    /// The edit does not follow a leaf of the document's revision tree.
    #[error("Document update conflict.")]
    Conflict,
    /// The fields together are larger than the configured limit; holds the id, as CouchDB answers.
    #[error("document {0} is larger than this server takes")]
    DocumentTooLarge(String),
    /// One attachment is larger than the configured limit; holds its name.
    #[error("attachment {0} is larger than this server takes")]
    AttachmentTooLarge(String),
    /// Stored bytes that no version of this crate wrote.
    #[error("stored {what} is damaged: {detail}; restore the database from a backup or a replica")]
    Damaged {
        /// Which record: `revision tree` or `fields`.
        what: &'static str,
        /// What does not fit.
        detail: &'static str,
    },
    /// Stored bytes written by a newer version.
    #[error("stored {what} has format {version}, this version reads up to {newest}; start the newer version")]
    NewerFormat {
        /// Which record.
        what: &'static str,
        /// The version found.
        version: u8,
        /// The newest version that this build reads.
        newest: u8,
    },
}

impl DocumentError {
    /// CouchDB's error word, the member `error` of the answer.
    #[must_use]
    pub fn error(&self) -> &'static str {
        match self {
            Self::InvalidJson | Self::BadRequest(_) => "bad_request",
            Self::DocumentValidation(_) => "doc_validation",
            Self::IllegalDocumentId(_) => "illegal_docid",
            Self::Conflict => "conflict",
            Self::DocumentTooLarge(_) => "document_too_large",
            Self::AttachmentTooLarge(_) => "attachment_too_large",
            Self::Damaged { .. } | Self::NewerFormat { .. } => "internal_server_error",
        }
    }

    /// CouchDB's explanation, the member `reason` of the answer.
    #[must_use]
    pub fn reason(&self) -> Cow<'_, str> {
        match self {
            Self::DocumentTooLarge(name) | Self::AttachmentTooLarge(name) => Cow::Borrowed(name),
            other => Cow::Owned(other.to_string()),
        }
    }

    /// The HTTP status that CouchDB answers with.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::InvalidJson
            | Self::BadRequest(_)
            | Self::DocumentValidation(_)
            | Self::IllegalDocumentId(_) => 400,
            Self::Conflict => 409,
            Self::DocumentTooLarge(_) | Self::AttachmentTooLarge(_) => 413,
            Self::Damaged { .. } | Self::NewerFormat { .. } => 500,
        }
    }
}
