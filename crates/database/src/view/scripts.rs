//! JavaScript engines: made when they are needed, kept for the next who runs the same functions.

use std::collections::VecDeque;

use parking_lot::Mutex;
use scrinium_javascript::{Limits, MapEngine, ReduceEngine, Row, ScriptError};
use serde_json::Value;

use super::definition::{Definition, KnownReducer};
use super::entries::StoredEntry;
use crate::error::DatabaseError;

/// Engines that are kept though nobody uses them; each takes some megabytes and a thread that sleeps.
const IDLE_MAX: usize = 8;

/// What an engine runs: the digest of its functions.
pub(crate) type Functions = [u8; 16];

/// Engines of all databases that are not in use.
#[derive(Default)]
pub(crate) struct Engines {
    maps: Idle<MapEngine>,
    reductions: Idle<ReduceEngine>,
}

/// Those used last are at the back.
struct Idle<E>(Mutex<VecDeque<(Functions, E)>>);

impl<E> Default for Idle<E> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// An engine, given back when dropped, unless its thread comes after all others, as those do that a build begins.
pub(crate) struct Lent<'a, E> {
    functions: Functions,
    /// `None` only while it is being dropped.
    engine: Option<E>,
    is_urgent: bool,
    home: &'a Idle<E>,
}

impl<E> Idle<E> {
    fn lend(
        &self,
        functions: Functions,
        make: impl FnOnce() -> Result<E, ScriptError>,
    ) -> Result<Lent<'_, E>, ScriptError> {
        let mut idle = self.0.lock();
        let place = idle.iter().rposition(|(of, _)| *of == functions);
        let kept = place.and_then(|place| idle.remove(place)).map(|(_, engine)| engine);
        drop(idle);
        let (engine, is_urgent) = match kept {
            Some(engine) => (engine, true),
            None => (make()?, !is_in_the_background()),
        };
        Ok(Lent { functions, engine: Some(engine), is_urgent, home: self })
    }
}

/// Whether threads that this one begins come after those of the process as a whole.
fn is_in_the_background() -> bool {
    use rustix::process::{getpid, getpriority_process};
    let niceness = |thread| getpriority_process(Some(thread)).unwrap_or(0);
    niceness(rustix::thread::gettid()) > niceness(getpid())
}

impl<E> Lent<'_, E> {
    pub(crate) const fn get(&mut self) -> Option<&mut E> {
        self.engine.as_mut()
    }
}

impl<E> Drop for Lent<'_, E> {
    fn drop(&mut self) {
        let Some(engine) = self.engine.take().filter(|_| self.is_urgent) else { return };
        let mut idle = self.home.0.lock();
        idle.push_back((self.functions, engine));
        let surplus = if idle.len() > IDLE_MAX { idle.pop_front() } else { None };
        drop(idle);
        // Its thread is waited for, so not under the lock.
        drop(surplus);
    }
}

impl Engines {
    pub(crate) fn map(
        &self,
        functions: Functions,
        sources: &[&str],
        library: Option<&Value>,
    ) -> Result<Lent<'_, MapEngine>, ScriptError> {
        self.maps.lend(functions, || MapEngine::new(sources, library, Limits::default()))
    }

    pub(crate) fn reduce(&self, known: &KnownReducer) -> Result<Lent<'_, ReduceEngine>, ScriptError> {
        self.reductions.lend(known.functions, || ReduceEngine::new(known.reducer.clone(), Limits::default()))
    }
}

/// What tells engines apart.
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
        Self::BadRequest { error: error.error(), reason: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn engines_that_a_build_begins_are_not_kept_for_those_who_wait() {
        let idle = Idle::<&str>::default();
        let lend = |name| drop(idle.lend([0; 16], || Ok(name)).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                rustix::process::setpriority_process(Some(rustix::thread::gettid()), 19).unwrap();
                lend("slow");
            });
        });
        assert_eq!(idle.0.lock().len(), 0);
        lend("quick");
        assert_eq!(idle.lend([0; 16], || Ok("another")).unwrap().engine, Some("quick"));
        assert_eq!(idle.0.lock().len(), 1);
    }
}
