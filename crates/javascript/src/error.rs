//! Why a function, or a document in it, gives no result.

/// Why a function cannot be used, or gives nothing for one document or one reduction.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ScriptError {
    /// The source is not JavaScript.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// The line, counted from 1; 0 if it is not known.
        line: u32,
        /// The column, counted from 1; 0 if it is not known.
        column: u32,
        /// What is wrong there.
        message: String,
    },
    /// The source is JavaScript but no function.
    #[error("the source gives {found} and no function; write it as `function (doc) {{ ... }}`")]
    NotAFunction {
        /// What it gives, as `typeof` tells it.
        found: String,
    },
    /// A built-in reduce function that does not exist, in CouchDB's words.
    #[error("`{name}` is not a supported reduce function.")]
    UnknownReducer {
        /// The name that was given.
        name: String,
    },
    /// What was given as a document, key or value is not JSON, or is nested too deeply.
    #[error("this cannot be read as JSON: {message}")]
    Json {
        /// What is wrong with it.
        message: String,
    },
    /// The function threw this.
    #[error("{message}")]
    Thrown {
        /// What was thrown and where, shortened to 1,000 characters.
        message: String,
    },
    /// The function did not end within its time.
    #[error("the function was stopped after {limit_ms} ms; look for a loop that does not end")]
    Time {
        /// The processor time allowed, in milliseconds.
        limit_ms: u64,
    },
    /// The function used too much memory; or it threw null, as the engine does when no memory is left.
    #[error("the function needed more than {limit_bytes} bytes of memory")]
    Memory {
        /// The bytes allowed.
        limit_bytes: usize,
    },
    /// The function called itself too deeply.
    #[error("the function's calls are nested too deeply for {limit_bytes} bytes of stack")]
    Stack {
        /// The bytes allowed.
        limit_bytes: usize,
    },
    /// The document emitted too much into one view.
    #[error("the document emitted more than {entries_max} entries or {bytes_max} bytes")]
    TooMuchEmitted {
        /// The entries allowed.
        entries_max: u32,
        /// The bytes allowed.
        bytes_max: usize,
    },
    /// A value is not one that a built-in reduce function can take, in CouchDB's words.
    #[error("{reason}")]
    InvalidValue {
        /// What it takes and what it got.
        reason: String,
    },
    /// The reduction is hardly smaller than what went into it, in CouchDB's words.
    #[error("{reason}")]
    ReduceOverflow {
        /// How it begins and how large it is.
        reason: String,
    },
    /// The function could not be stopped within its process, which was ended.
    #[error(
        "the function could not be stopped, and the process that ran it was ended; look for a loop that does not end"
    )]
    Runaway,
    /// The function ended the process that ran it.
    #[error("the function ended the process that ran it, or used far too much processor time there")]
    Ended,
    /// The function is not called any more in this build.
    #[error("the function was switched off: {why}; change it, or build its view again")]
    SwitchedOff {
        /// What it did.
        why: String,
    },
    /// No engine can be had now. This says nothing of the function or the document; it has to be tried again.
    #[error("JavaScript cannot be run now: {reason}")]
    Unavailable {
        /// Why not, and what helps.
        reason: String,
    },
}

impl ScriptError {
    /// CouchDB's word for it, the member `error` of its JSON error bodies.
    #[must_use]
    pub const fn error(&self) -> &'static str {
        match self {
            Self::Syntax { .. } | Self::NotAFunction { .. } => "compilation_error",
            Self::UnknownReducer { .. } => "invalid_design_doc",
            Self::InvalidValue { .. } => "invalid_value",
            Self::ReduceOverflow { .. } => "reduce_overflow_error",
            Self::Time { .. } | Self::Runaway | Self::Ended | Self::SwitchedOff { .. } => {
                "os_process_timeout"
            }
            Self::Memory { .. } | Self::Stack { .. } => "InternalError",
            Self::Json { .. } => "invalid_json",
            Self::Thrown { .. } | Self::TooMuchEmitted { .. } => "map_runtime_error",
            Self::Unavailable { .. } => "service_unavailable",
        }
    }

    /// Whether the function had to be stopped from outside.
    pub(crate) const fn is_stop(&self) -> bool {
        matches!(self, Self::Time { .. } | Self::Runaway | Self::Ended)
    }
}
