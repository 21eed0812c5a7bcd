//! JavaScript of views: what tells functions apart, reductions by them, and what their errors mean to those who ask.

use scrinium_database::DatabaseError;
use scrinium_document::json::stored_value;
use scrinium_index::IndexError;
use scrinium_javascript::{ReduceEngine, Reducer, Row, ScriptError};
use serde_json::{Value, json};

use crate::definition::Definition;
use crate::entries::StoredEntry;
use crate::error::{index_error, script_error};
use crate::open::OpenDatabase;
use crate::streams::plain;

/// CouchDB's state of a reduction that did not shrink.
const OVERFLOW: &str = "reduce_overflow_error";
const OVERFLOW_START: &str = "{\"reduce_overflow_error\":";

/// What a function is: the digest of its source.
pub(crate) type Functions = [u8; 16];

/// What tells functions apart.
pub(crate) fn functions_of(sources: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Functions {
    let mut hasher = blake3::Hasher::new();
    for source in sources {
        let source = source.as_ref();
        hasher.update(&(source.len() as u64).to_be_bytes());
        hasher.update(source);
    }
    let mut functions = [0; 16];
    hasher.finalize_xof().fill(&mut functions);
    functions
}

impl OpenDatabase {
    /// What reduces by a function, in processes of this database.
    pub(super) fn reducer(&self, reducer: &Reducer) -> ReduceEngine {
        ReduceEngine::new(&self.server.scripts, self.uuid(), reducer.clone())
    }
}

/// Why entries could not be reduced.
#[derive(Debug)]
pub(crate) struct ReduceError(DatabaseError);

impl From<DatabaseError> for ReduceError {
    fn from(error: DatabaseError) -> Self {
        Self(error)
    }
}

impl From<IndexError> for ReduceError {
    fn from(error: IndexError) -> Self {
        Self(index_error(error))
    }
}

impl From<ReduceError> for DatabaseError {
    fn from(error: ReduceError) -> Self {
        error.0
    }
}

/// Reduces the entries of a view by its function.
pub(super) struct Reducing<'a> {
    pub(super) definition: &'a Definition,
    pub(super) engine: &'a mut ReduceEngine,
}

impl scrinium_index::Reduce for Reducing<'_> {
    type Error = ReduceError;

    fn reduce(&mut self, entries: &[(Vec<u8>, Vec<u8>)]) -> Result<Vec<u8>, ReduceError> {
        let damaged = || DatabaseError::damaged("entry of a view", &self.definition.name);
        let keys = entries.iter().map(|(key, _)| plain(key));
        let entries: Option<Vec<StoredEntry<'_>>> = entries
            .iter()
            .map(|(key, value)| StoredEntry::decode(self.definition, key, value, std::iter::empty()))
            .collect();
        let entries = entries.ok_or_else(damaged)?;
        let rows: Option<Vec<Row<'_>>> =
            entries.iter().zip(keys).map(|(entry, key)| row(entry, key)).collect();
        let reduced = self.engine.reduce(&rows.ok_or_else(damaged)?);
        self.kept(reduced)
    }

    fn rereduce(&mut self, reductions: &[std::sync::Arc<[u8]>]) -> Result<Vec<u8>, ReduceError> {
        // What has overflowed stays so, whatever is added to it.
        if let Some(overflown) = reductions.iter().find(|state| overflow_reason(state).is_some()) {
            return Ok(overflown.to_vec());
        }
        let states: Vec<String> =
            reductions.iter().map(|state| String::from_utf8_lossy(state).into_owned()).collect();
        let reduced = self.engine.rereduce(&states);
        self.kept(reduced)
    }
}

impl Reducing<'_> {
    /// The state that is kept. As in CouchDB, a function that throws gives null, and one whose reductions grow gives an
    /// object that says so; both concern the group alone that they are part of.
    fn kept(&self, reduced: Result<String, ScriptError>) -> Result<Vec<u8>, ReduceError> {
        match reduced {
            Ok(state) => Ok(state.into_bytes()),
            Err(error @ (ScriptError::Thrown { .. } | ScriptError::Stack { .. })) => {
                tracing::debug!(view = self.definition.name, %error, "a reduce function threw");
                Ok(b"null".to_vec())
            }
            Err(ScriptError::ReduceOverflow { reason }) => {
                Ok(json!({ OVERFLOW: reason }).to_string().into_bytes())
            }
            Err(error) => Err(script_error(&error).into()),
        }
    }
}

/// Why a state is no reduction: the function's output did not shrink.
pub(super) fn overflow_reason(state: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(state).ok().filter(|text| text.starts_with(OVERFLOW_START))?;
    match stored_value(text)? {
        Value::Object(members) if members.len() == 1 => Some(members.get(OVERFLOW)?.as_str()?.to_owned()),
        _ => None,
    }
}

fn row<'a>(entry: &'a StoredEntry<'_>, order: &'a [u8]) -> Option<Row<'a>> {
    match entry.columns.as_slice() {
        [key, value] => Some(Row { key_json: key, id: entry.id()?, value_json: value, order }),
        _ => None,
    }
}
