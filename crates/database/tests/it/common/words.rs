//! The status and the short name by which these tests know an error, as CouchDB's clients do.

use scrinium_database::{DatabaseError, InvalidInput, Oversized};
use scrinium_mango::MangoError;

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
            Self::Query(error) => error.downcast_ref::<MangoError>().unwrap().status(),
            Self::Busy { .. } | Self::Unavailable { .. } | Self::Stale => 503,
            Self::Full { .. } => 507,
            Self::Damaged { .. } | Self::Store(_) | Self::Internal { .. } | Self::Fault(_) => 500,
        }
    }

    fn error(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::Conflict => "conflict",
            Self::MissingStub { .. } => "missing_stub",
            Self::Query(error) => error.downcast_ref::<MangoError>().unwrap().error(),
            Self::Forbidden { .. } => "forbidden",
            Self::Unauthorized { .. } => "unauthorized",
            Self::Exists { .. } => "file_exists",
            Self::TooLarge { what, .. } => match what {
                Oversized::Request => "too_large",
                Oversized::Document => "document_too_large",
                Oversized::Attachment => "attachment_too_large",
                Oversized::Readers => "too_many_readers",
                Oversized::LocalDocuments => "too_many_local_documents",
                Oversized::Folder => "folder_used_up",
                Oversized::Database => "quota_exceeded",
            },
            Self::Full { .. } => "insufficient_storage",
            Self::Busy { .. } | Self::Unavailable { .. } | Self::Stale => "service_unavailable",
            Self::Damaged { .. } | Self::Store(_) | Self::Internal { .. } | Self::Fault(_) => {
                "internal_server_error"
            }
            Self::Invalid { input, .. } => match input {
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
            },
        }
    }
}
