//! Errors as CouchDB words them: a status, a short name and a reason.

use std::borrow::Cow;
use std::time::Duration;

use http::StatusCode;
use http::header::{ALLOW, CONTENT_RANGE, HeaderName, HeaderValue, RETRY_AFTER};
use scrinium_accounting::Overdrawn;
use scrinium_contents::ContentError;
use scrinium_database::{DatabaseError, InvalidInput, Oversized};
use scrinium_document::DocumentError;
use scrinium_mango::MangoError;
use scrinium_views::refused_query;
use scrinium_worker::WorkerError;

use crate::authority::{CredentialRefusal, LoginRefusal};

/// A refusal, on its way to becoming `{"error":…,"reason":…}`.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}: {reason}")]
pub struct HttpError {
    /// The HTTP status.
    pub status: StatusCode,
    /// CouchDB's short name of what went wrong.
    pub error: Cow<'static, str>,
    /// CouchDB's sentence.
    pub reason: Cow<'static, str>,
    /// Boxed, because few have one and all are moved about.
    pub(crate) header: Option<Box<(HeaderName, HeaderValue)>>,
}

type Words = Cow<'static, str>;

impl HttpError {
    pub(crate) fn new(status: StatusCode, error: impl Into<Words>, reason: impl Into<Words>) -> Self {
        Self { status, error: error.into(), reason: reason.into(), header: None }
    }

    pub(crate) fn bad_request(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", reason)
    }

    pub(crate) fn query_parse(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "query_parse_error", reason)
    }

    pub(crate) fn invalid_json() -> Self {
        Self::bad_request("invalid UTF-8 JSON")
    }

    pub(crate) fn not_object() -> Self {
        Self::bad_request("Request body must be a JSON object")
    }

    pub(crate) fn not_found(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", reason)
    }

    pub(crate) fn unauthorized(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", reason)
    }

    pub(crate) fn forbidden(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", reason)
    }

    /// Somebody who has signed in too long ago for what they ask: a page has them do it again, and asks again.
    pub(crate) fn sign_in_again(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "sign_in_again", reason)
    }

    /// `allow` as in the header: `GET,HEAD`.
    pub(crate) fn method_not_allowed(allow: &str) -> Self {
        let reason = format!("Only {allow} allowed");
        let mut error = Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", reason);
        error.header = HeaderValue::try_from(allow).ok().map(|value| Box::new((ALLOW, value)));
        error
    }

    pub(crate) fn not_json() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "bad_content_type",
            "Content-Type must be application/json",
        )
    }

    pub(crate) fn not_implemented(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "not_implemented", reason)
    }

    pub(crate) fn too_large() -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "the request entity is too large")
    }

    /// The route's own limit.
    pub(crate) fn beyond_route(bytes: usize) -> Self {
        let reason = format!("the request entity is too large: it may have {bytes} bytes here");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", reason)
    }

    /// What no request can have, however idle the server is.
    pub(crate) fn beyond_budget(bytes: usize) -> Self {
        let reason = format!(
            "the request is too large: parsed, it may use at most {bytes} bytes of memory \
             (http.body_budget_bytes); send it in parts"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", reason)
    }

    /// A content that is not what its digest says.
    pub(crate) fn corrupted() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "content_md5_mismatch", "Possible message corruption.")
    }

    /// A revision of an attachment's document that is not there, in CouchDB's words.
    pub(crate) fn missing_revision() -> Self {
        Self::new(StatusCode::CONFLICT, "not_found", "missing_rev")
    }

    /// The JSON of a document whose attachments come next to it.
    pub(crate) fn document_too_large(most: usize) -> Self {
        let reason = format!("the document's JSON may have at most {most} bytes (document.max_bytes)");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "document_too_large", reason)
    }

    /// More than `most` of `what`.
    pub(crate) fn too_many_values(what: &str, most: usize) -> Self {
        let reason = format!("{what} may hold at most {most} values here; send it in parts");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", reason)
    }

    /// 503 that passes by itself.
    pub(crate) fn busy(reason: impl Into<Words>) -> Self {
        let mut refusal = Self::unavailable(reason);
        refusal.header = Some(Box::new((RETRY_AFTER, HeaderValue::from_static("1"))));
        refusal
    }

    /// What storing an attachment's content refused.
    pub(crate) fn of_attachment(error: impl Into<DatabaseError>) -> Self {
        let error = error.into();
        let too_large = matches!(error, DatabaseError::TooLarge { .. });
        let error = Self::from(error);
        if too_large { Self { error: "attachment_too_large".into(), ..error } } else { error }
    }

    fn with_retry_after(mut self, seconds: u64) -> Self {
        self.header = Some(Box::new((RETRY_AFTER, HeaderValue::from(seconds))));
        self
    }

    pub(crate) fn unavailable(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason)
    }

    pub(crate) fn internal(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_server_error", reason)
    }

    pub(crate) fn timed_out() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "timeout", "The request came too slowly.")
    }

    /// RFC 9110 §15.5.17: the answer says how long the content is.
    pub(crate) fn range_not_satisfiable(length: u64) -> Self {
        let mut error = Self::new(
            StatusCode::RANGE_NOT_SATISFIABLE,
            "requested_range_not_satisfiable",
            "Requested range not satisfiable",
        );
        let text = format!("bytes */{length}");
        error.header = HeaderValue::try_from(text).ok().map(|value| Box::new((CONTENT_RANGE, value)));
        error
    }
}

/// Those of a query that is refused.
fn terms_of_query(error: Option<&MangoError>) -> (StatusCode, &'static str) {
    let Some(error) = error else { return (StatusCode::BAD_REQUEST, "bad_request") };
    let status = StatusCode::from_u16(error.status());
    (status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), error.error())
}

/// CouchDB's status and short name of what a database reports.
pub(crate) fn couchdb_terms(error: &DatabaseError) -> (StatusCode, &'static str) {
    match error {
        DatabaseError::NotFound { .. } => (StatusCode::NOT_FOUND, "not_found"),
        DatabaseError::Conflict => (StatusCode::CONFLICT, "conflict"),
        DatabaseError::Invalid { input, .. } => (StatusCode::BAD_REQUEST, word_of_invalid(*input)),
        DatabaseError::Query(error) => terms_of_query(error.downcast_ref()),
        DatabaseError::Exists { .. } => (StatusCode::PRECONDITION_FAILED, "file_exists"),
        DatabaseError::MissingStub { .. } => (StatusCode::PRECONDITION_FAILED, "missing_stub"),
        DatabaseError::TooLarge { what, .. } => (StatusCode::PAYLOAD_TOO_LARGE, word_of_oversized(*what)),
        DatabaseError::Forbidden { .. } => (StatusCode::FORBIDDEN, "forbidden"),
        DatabaseError::Unauthorized { .. } => (StatusCode::UNAUTHORIZED, "unauthorized"),
        DatabaseError::Full { .. } => (StatusCode::INSUFFICIENT_STORAGE, "insufficient_storage"),
        DatabaseError::Busy { .. } | DatabaseError::Unavailable { .. } | DatabaseError::Stale => {
            (StatusCode::SERVICE_UNAVAILABLE, "service_unavailable")
        }
        DatabaseError::Damaged { .. }
        | DatabaseError::Store(_)
        | DatabaseError::Internal { .. }
        | DatabaseError::Fault(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal_server_error"),
    }
}

/// CouchDB's short name of what a database reports.
pub(crate) fn couchdb_word(error: &DatabaseError) -> &'static str {
    couchdb_terms(error).1
}

const fn word_of_invalid(input: InvalidInput) -> &'static str {
    match input {
        InvalidInput::Request => "bad_request",
        InvalidInput::Query => "query_parse_error",
        InvalidInput::Design => "compilation_error",
        InvalidInput::Reducer => "invalid_design_doc",
        InvalidInput::ScriptValue => "invalid_value",
        InvalidInput::ReduceOverflow => "reduce_overflow_error",
        InvalidInput::ScriptTime => "os_process_timeout",
        InvalidInput::ScriptMemory => "InternalError",
        InvalidInput::ScriptJson => "invalid_json",
        InvalidInput::ScriptFailure => "map_runtime_error",
        InvalidInput::DatabaseName => "illegal_database_name",
        InvalidInput::FolderName => "illegal_folder_name",
        InvalidInput::FolderCount => "too_many_folders",
        InvalidInput::Document => "doc_validation",
        InvalidInput::DocumentId => "illegal_docid",
        InvalidInput::Stored => "internal_server_error",
    }
}

const fn word_of_oversized(what: Oversized) -> &'static str {
    match what {
        Oversized::Request => "too_large",
        Oversized::Document => "document_too_large",
        Oversized::Attachment => "attachment_too_large",
        Oversized::Readers => "too_many_readers",
        Oversized::LocalDocuments => "too_many_local_documents",
        Oversized::Folder => "folder_used_up",
        Oversized::Database => "quota_exceeded",
    }
}

impl From<DatabaseError> for HttpError {
    fn from(error: DatabaseError) -> Self {
        let (status, word) = couchdb_terms(&error);
        let refusal = Self::new(status, word, error.reason());
        match error {
            DatabaseError::Busy { retry_after_s, .. } => refusal.with_retry_after(retry_after_s),
            _ => refusal,
        }
    }
}

impl From<ContentError> for HttpError {
    fn from(error: ContentError) -> Self {
        DatabaseError::from(error).into()
    }
}

impl From<DocumentError> for HttpError {
    fn from(error: DocumentError) -> Self {
        DatabaseError::from(error).into()
    }
}

impl From<MangoError> for HttpError {
    fn from(error: MangoError) -> Self {
        refused_query(error).into()
    }
}

impl HttpError {
    /// 429 (RFC 6585 §4), with the whole seconds after which it may go well.
    pub(crate) fn too_many(reason: impl Into<Words>, retry_after: Duration) -> Self {
        let mut refusal = Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", reason);
        let seconds = retry_after.as_millis().div_ceil(1000).max(1);
        let seconds = HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX));
        refusal.header = Some(Box::new((RETRY_AFTER, seconds)));
        refusal
    }
}

impl From<Overdrawn> for HttpError {
    fn from(error: Overdrawn) -> Self {
        Self::too_many(error.to_string(), Duration::from_secs(1))
    }
}

impl From<LoginRefusal> for HttpError {
    fn from(error: LoginRefusal) -> Self {
        let reason = error.to_string();
        match error {
            LoginRefusal::Wrong | LoginRefusal::SecondStep(_) => Self::unauthorized(reason),
            LoginRefusal::Locked { .. } | LoginRefusal::Denied(_) => Self::forbidden(reason),
            LoginRefusal::Busy { retry_after } => Self::too_many(reason, retry_after),
            LoginRefusal::Away { retry_after } => {
                Self::unavailable(reason).with_retry_after(retry_after.as_secs())
            }
        }
    }
}

impl From<CredentialRefusal> for HttpError {
    fn from(error: CredentialRefusal) -> Self {
        let reason = error.to_string();
        match error {
            CredentialRefusal::Invalid(_) => Self::bad_request(reason),
            CredentialRefusal::Forbidden(_) => Self::forbidden(reason),
            CredentialRefusal::Stale => Self::sign_in_again(reason),
            CredentialRefusal::NotFound(_) => Self::new(StatusCode::NOT_FOUND, "not_found", reason),
            CredentialRefusal::Login(refusal) => refusal.into(),
            CredentialRefusal::Failed(_) => Self::unavailable(reason),
        }
    }
}

impl From<WorkerError> for HttpError {
    fn from(error: WorkerError) -> Self {
        let reason = error.to_string();
        match error {
            WorkerError::Busy { retry_after, .. } => {
                Self::unavailable(reason).with_retry_after(retry_after.as_secs())
            }
            WorkerError::Closed => Self::unavailable(reason),
            WorkerError::Panicked { .. } => Self::internal(reason),
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, HttpError>;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use scrinium_assertion::Fault;
    use scrinium_store::StoreError;

    use super::*;

    fn shown(error: DatabaseError) -> String {
        let HttpError { status, error, reason, .. } = error.into();
        format!("{} {error} {reason}", status.as_u16())
    }

    fn because() -> String {
        "Because.".to_owned()
    }

    /// What a client sees of each error of a database: another one would be a change of the interface.
    #[test]
    fn every_error_of_a_database_has_its_status_word_and_reason() {
        let reason = because;
        let fault = Fault { what: "it is so", file: "a.rs", line: 7 };
        let source = || std::io::Error::other("no");
        let pairs = [
            (DatabaseError::NotFound { reason: reason() }, "404 not_found Because."),
            (DatabaseError::Conflict, "409 conflict Document update conflict."),
            (
                refused_query(MangoError::MissingFieldName),
                "400 invalid_selector One or more conditions is missing a field name.",
            ),
            (DatabaseError::Exists { reason: reason() }, "412 file_exists Because."),
            (DatabaseError::MissingStub { reason: reason() }, "412 missing_stub Because."),
            (DatabaseError::Forbidden { reason: reason() }, "403 forbidden Because."),
            (DatabaseError::Unauthorized { reason: reason() }, "401 unauthorized Because."),
            (
                DatabaseError::Stale,
                "503 service_unavailable The document was changed again and again while it was validated; try again.",
            ),
            (DatabaseError::Full { reason: reason() }, "507 insufficient_storage Because."),
            (DatabaseError::Busy { reason: reason(), retry_after_s: 3 }, "503 service_unavailable Because."),
            (DatabaseError::Unavailable { reason: reason() }, "503 service_unavailable Because."),
            (
                DatabaseError::Damaged { what: "document".to_owned(), key: "a".to_owned() },
                "500 internal_server_error The stored document of `a` cannot be read",
            ),
            (DatabaseError::Internal { reason: reason() }, "500 internal_server_error Because."),
            (
                DatabaseError::Fault(fault),
                "500 internal_server_error a fault in the server at a.rs:7: it is so",
            ),
            (
                DatabaseError::Store(Arc::new(StoreError::Closed)),
                "500 internal_server_error the store was closed",
            ),
            (StoreError::Full.into(), "507 insufficient_storage the disk of the store is full"),
            (StoreError::Closed.into(), "500 internal_server_error the store was closed"),
            (
                StoreError::Locked { dir: PathBuf::from("/d"), pid: Some(5) }.into(),
                "500 internal_server_error /d is in use by process 5",
            ),
            (
                StoreError::Corrupt { path: PathBuf::from("/d"), what: "a block".to_owned() }.into(),
                "500 internal_server_error the store in /d is damaged: a block",
            ),
            (
                StoreError::Io { action: "read", path: PathBuf::from("/d/f"), source: source() }.into(),
                "500 internal_server_error cannot read /d/f: no",
            ),
            (
                StoreError::TooLarge { bytes: 9, limit_bytes: 8 }.into(),
                "413 too_large What is to be stored takes 9 bytes of the log, which takes 8 at once",
            ),
            (
                StoreError::Failed { reason: "a sync failed".to_owned(), cause: None }.into(),
                "503 service_unavailable the store takes no writes until it is opened again: a sync failed",
            ),
            (StoreError::Fault(fault).into(), "500 internal_server_error a fault in the server at a.rs:7"),
        ];
        for (error, expected) in pairs {
            let found = shown(error);
            assert!(found.starts_with(expected), "{found}\nand not\n{expected}");
        }
    }

    #[test]
    fn what_is_invalid_or_too_large_has_its_word() {
        let invalid = [
            (InvalidInput::Request, "bad_request"),
            (InvalidInput::Query, "query_parse_error"),
            (InvalidInput::Design, "compilation_error"),
            (InvalidInput::Reducer, "invalid_design_doc"),
            (InvalidInput::ScriptValue, "invalid_value"),
            (InvalidInput::ReduceOverflow, "reduce_overflow_error"),
            (InvalidInput::ScriptTime, "os_process_timeout"),
            (InvalidInput::ScriptMemory, "InternalError"),
            (InvalidInput::ScriptJson, "invalid_json"),
            (InvalidInput::ScriptFailure, "map_runtime_error"),
            (InvalidInput::DatabaseName, "illegal_database_name"),
            (InvalidInput::FolderName, "illegal_folder_name"),
            (InvalidInput::FolderCount, "too_many_folders"),
            (InvalidInput::Document, "doc_validation"),
            (InvalidInput::DocumentId, "illegal_docid"),
            (InvalidInput::Stored, "internal_server_error"),
        ];
        for (input, word) in invalid {
            assert_eq!(
                shown(DatabaseError::Invalid { input, reason: because() }),
                format!("400 {word} Because.")
            );
        }
        let oversized = [
            (Oversized::Request, "too_large"),
            (Oversized::Document, "document_too_large"),
            (Oversized::Attachment, "attachment_too_large"),
            (Oversized::Readers, "too_many_readers"),
            (Oversized::LocalDocuments, "too_many_local_documents"),
            (Oversized::Folder, "folder_used_up"),
            (Oversized::Database, "quota_exceeded"),
        ];
        for (what, word) in oversized {
            assert_eq!(
                shown(DatabaseError::TooLarge { what, reason: because() }),
                format!("413 {word} Because.")
            );
        }
    }
}
