//! The status and the short name by which these tests know an error, as CouchDB's clients do.

use scrinium_database::{DatabaseError, InvalidInput, Oversized};

pub(crate) trait Words {
    fn status(&self) -> u16;
    fn error(&self) -> &'static str;
}

impl Words for DatabaseError {
    fn status(&self) -> u16 {
        match self {
            Self::Invalid { .. } => 400,
            Self::Unauthorized { .. } => 401,
            Self::Forbidden { .. } => 403,
            Self::NotFound { .. } => 404,
            Self::Conflict => 409,
            Self::Exists { .. } | Self::MissingStub { .. } => 412,
            Self::TooLarge { .. } => 413,
            Self::Query(error) => error.status(),
            Self::Busy { .. } | Self::Unavailable { .. } | Self::Stale => 503,
            Self::Full { .. } => 507,
            _ => 500,
        }
    }

    fn error(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::Conflict => "conflict",
            Self::MissingStub { .. } => "missing_stub",
            Self::Query(error) => error.error(),
            Self::Forbidden { .. } => "forbidden",
            Self::Unauthorized { .. } => "unauthorized",
            Self::Exists { .. } => "file_exists",
            Self::TooLarge { what: Oversized::Document, .. } => "document_too_large",
            Self::TooLarge { what: Oversized::Attachment, .. } => "attachment_too_large",
            Self::Invalid { input, .. } => match input {
                InvalidInput::Request => "bad_request",
                InvalidInput::Query => "query_parse_error",
                InvalidInput::Design => "compilation_error",
                InvalidInput::Reducer => "invalid_design_doc",
                InvalidInput::FolderName => "illegal_folder_name",
                InvalidInput::DocumentId => "illegal_docid",
                InvalidInput::Document => "doc_validation",
                InvalidInput::ScriptFailure => "map_runtime_error",
                InvalidInput::ScriptTime => "os_process_timeout",
                InvalidInput::ScriptValue => "invalid_value",
                InvalidInput::ReduceOverflow => "reduce_overflow_error",
                _ => "another",
            },
            _ => "internal_server_error",
        }
    }
}
