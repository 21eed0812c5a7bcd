//! JavaScript of views: what tells functions apart, reductions by them, and what their errors mean to those who ask.

use scrinium_javascript::{ReduceEngine, Reducer, Row, ScriptError};

use super::definition::Definition;
use super::entries::StoredEntry;
use crate::database::Database;
use crate::error::DatabaseError;

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

impl Database {
    /// What reduces by a function, in processes of this database.
    pub(super) fn reducer(&self, reducer: &Reducer) -> ReduceEngine {
        ReduceEngine::new(&self.common.wide.scripts, self.uuid(), reducer.clone())
    }
}

/// Reduces the entries of a view by its function.
pub(super) struct Reducing<'a> {
    pub(super) definition: &'a Definition,
    pub(super) engine: &'a mut ReduceEngine,
}

impl scrinium_index::Reduce for Reducing<'_> {
    type Error = DatabaseError;

    fn reduce(&mut self, entries: &[(Vec<u8>, Vec<u8>)]) -> Result<Vec<u8>, DatabaseError> {
        let damaged = || DatabaseError::damaged("entry of a view", &self.definition.name);
        let entries: Option<Vec<StoredEntry<'_>>> = entries
            .iter()
            .map(|(key, value)| StoredEntry::decode(self.definition, key, value, std::iter::empty()))
            .collect();
        let entries = entries.ok_or_else(damaged)?;
        let rows: Option<Vec<Row<'_>>> = entries.iter().map(row).collect();
        Ok(self.engine.reduce(&rows.ok_or_else(damaged)?)?.into_bytes())
    }

    fn rereduce(&mut self, reductions: &[std::sync::Arc<[u8]>]) -> Result<Vec<u8>, DatabaseError> {
        let states: Vec<String> =
            reductions.iter().map(|state| String::from_utf8_lossy(state).into_owned()).collect();
        Ok(self.engine.rereduce(&states)?.into_bytes())
    }
}

fn row<'a>(entry: &'a StoredEntry<'_>) -> Option<Row<'a>> {
    match entry.columns.as_slice() {
        [key, value] => Some(Row { key_json: key, id: entry.id()?, value_json: value }),
        _ => None,
    }
}

impl From<ScriptError> for DatabaseError {
    fn from(error: ScriptError) -> Self {
        let reason = error.to_string();
        match error {
            // It says nothing of the function, nor of what it was given.
            ScriptError::Unavailable { .. } => Self::Unavailable { reason },
            error => Self::BadRequest { error: error.error(), reason },
        }
    }
}
