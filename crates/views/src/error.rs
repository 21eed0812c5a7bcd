//! What goes wrong in what views are made of, as errors of databases.

use std::sync::Arc;

use scrinium_database::{DatabaseError, InvalidInput, Result};
use scrinium_index::IndexError;
use scrinium_javascript::ScriptError;
use scrinium_mango::MangoError;

/// Results of what views are made of.
pub(crate) trait OrDatabaseError<T> {
    /// The same as a result of a database.
    fn or_database_error(self) -> Result<T>;
}

impl<T> OrDatabaseError<T> for std::result::Result<T, IndexError> {
    fn or_database_error(self) -> Result<T> {
        self.map_err(index_error)
    }
}

impl<T> OrDatabaseError<T> for std::result::Result<T, MangoError> {
    fn or_database_error(self) -> Result<T> {
        self.map_err(refused_query)
    }
}

impl<T> OrDatabaseError<T> for std::result::Result<T, ScriptError> {
    fn or_database_error(self) -> Result<T> {
        self.map_err(|error| script_error(&error))
    }
}

pub(crate) fn index_error(error: IndexError) -> DatabaseError {
    match error {
        IndexError::Store(error) => error.into(),
        IndexError::Fault(fault) => DatabaseError::Fault(fault),
        other => DatabaseError::Internal { reason: other.to_string() },
    }
}

pub(crate) fn script_error(error: &ScriptError) -> DatabaseError {
    let reason = error.to_string();
    let input = match error {
        // It says nothing of the function, nor of what it was given.
        ScriptError::Unavailable { .. } => return DatabaseError::Unavailable { reason },
        ScriptError::Syntax { .. } | ScriptError::NotAFunction { .. } => InvalidInput::Design,
        ScriptError::UnknownReducer { .. } => InvalidInput::Reducer,
        ScriptError::InvalidValue { .. } => InvalidInput::ScriptValue,
        ScriptError::ReduceOverflow { .. } => InvalidInput::ReduceOverflow,
        ScriptError::Time { .. }
        | ScriptError::Runaway
        | ScriptError::Ended
        | ScriptError::SwitchedOff { .. } => InvalidInput::ScriptTime,
        ScriptError::Memory { .. } | ScriptError::Stack { .. } => InvalidInput::ScriptMemory,
        ScriptError::Json { .. } => InvalidInput::ScriptJson,
        ScriptError::Thrown { .. } | ScriptError::TooMuchEmitted { .. } => InvalidInput::ScriptFailure,
    };
    DatabaseError::Invalid { input, reason }
}

/// A query or an index definition that is refused.
#[must_use]
pub fn refused_query(error: MangoError) -> DatabaseError {
    DatabaseError::Query(Arc::new(error))
}
