//! What went wrong in the functions of a view, and what they said.
//!
//! | family | key | value |
//! |---|---|---|
//! | DerivedPoint | number `FFFFFFFF` `e` identity | how many documents a function failed on, the last one, and why it is off, as JSON |
//!
//! A document that a function failed on has no entries until it changes or the view is rebuilt, so that what is known of it
//! is kept as long as the index.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use scrinium_database::Result;
use scrinium_javascript::{Conduct, ScriptError};
use scrinium_store::{Batch, Family};
use serde_json::{Value, json};

use crate::open::OpenDatabase;
use crate::registry::NO_INDEX;

/// Lines of `log` that are kept of a view, and how many are taken in a second.
const LINES_MAX: usize = 20;
const LINES_PER_SECOND: u32 = 10;

/// The failures of one view.
#[derive(Default)]
pub(super) struct Failures {
    state: Mutex<FailuresState>,
}

#[derive(Default)]
struct FailuresState {
    told: Told,
    /// Whether it is stored as it is announced.
    is_stored: bool,
    /// Of the build or update under way.
    conduct: Arc<Conduct>,
    lines: VecDeque<String>,
    /// When the second began in which this many lines were taken.
    second: Option<(Instant, u32)>,
}

/// What is shown of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) count: u64,
    pub(super) last: String,
    /// Why the function was switched off in the last build or update.
    pub(super) off: Option<String>,
}

impl Failures {
    /// Those that are known of an index.
    pub(super) fn open(database: &OpenDatabase, identity: &[u8; 16]) -> Result<Self> {
        let stored = database.store().get(Family::DerivedPoint, &key(database.number(), identity))?;
        let told = stored.and_then(|bytes| Told::decode(&bytes)).unwrap_or_default();
        Ok(Self { state: Mutex::new(FailuresState { told, is_stored: true, ..FailuresState::default() }) })
    }

    pub(super) fn told(&self) -> Told {
        self.state.lock().told.clone()
    }

    /// The last lines that the functions logged.
    pub(super) fn lines(&self) -> Vec<String> {
        self.state.lock().lines.iter().cloned().collect()
    }

    /// How the function behaves in the build or update under way.
    pub(super) fn conduct(&self) -> Arc<Conduct> {
        Arc::clone(&self.state.lock().conduct)
    }

    /// A build of all documents begins: what was before counts no more.
    pub(super) fn begin_build(&self) {
        let mut state = self.state.lock();
        state.is_stored &= state.told == Told::default();
        state.told = Told::default();
        state.conduct = Arc::default();
    }

    /// An update begins. A function that was switched off in the last one has one chance.
    pub(super) fn begin_update(&self) {
        let mut state = self.state.lock();
        let conduct = if state.told.off.is_some() { Conduct::on_probation() } else { Conduct::default() };
        state.conduct = Arc::new(conduct);
    }

    /// A function failed on a document, which costs what it would have emitted.
    pub(super) fn note(&self, id: &str, error: &ScriptError) {
        let mut state = self.state.lock();
        let told = &mut state.told;
        told.count += 1;
        told.last = format!("document {id}: {error}");
        // The first is worth a line, and then ever fewer, or one bad function would fill the log.
        if told.count.is_power_of_two() {
            tracing::warn!(count = told.count, last = told.last, "a view's function failed");
        }
        state.is_stored = false;
    }

    /// A function logged a line. Those that are too many in a second are left out.
    pub(super) fn log(&self, line: String) -> Option<String> {
        let mut state = self.state.lock();
        let (begun, count) = state.second.take().unwrap_or_else(|| (Instant::now(), 0));
        let (begun, count) =
            if begun.elapsed() < Duration::from_secs(1) { (begun, count) } else { (Instant::now(), 0) };
        state.second = Some((begun, count.saturating_add(1)));
        if count >= LINES_PER_SECOND {
            return None;
        }
        if state.lines.len() >= LINES_MAX {
            state.lines.pop_front();
        }
        state.lines.push_back(line.clone());
        Some(line)
    }

    /// The build or update has ended: what is known of it is kept.
    pub(super) fn end(&self, database: &OpenDatabase, identity: &[u8; 16]) -> Result<()> {
        let mut state = self.state.lock();
        let off = state.conduct.switched_off().map(ScriptError::to_string);
        let was_run = state.conduct.was_run();
        if was_run && off != state.told.off {
            if let Some(why) = &off {
                tracing::warn!(why, "a view's function was switched off");
            }
            state.told.off = off;
            state.is_stored = false;
        }
        if state.is_stored {
            return Ok(());
        }
        let mut batch = Batch::new();
        let key = key(database.number(), identity);
        if state.told == Told::default() {
            batch.delete(Family::DerivedPoint, &key);
        } else {
            batch.put(Family::DerivedPoint, &key, state.told.encode().as_bytes());
        }
        database.store().derived().write(batch)?;
        state.is_stored = true;
        Ok(())
    }
}

impl Told {
    fn encode(&self) -> String {
        json!({"count": self.count, "last": self.last, "off": self.off}).to_string()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let stored: Value = serde_json::from_slice(bytes).ok()?;
        let text = |member: &str| stored.get(member).and_then(Value::as_str).map(str::to_owned);
        let count = stored.get("count").and_then(Value::as_u64)?;
        Some(Self { count, last: text("last").unwrap_or_default(), off: text("off") })
    }
}

/// Takes away what is kept of an index that goes.
pub(super) fn forget(batch: &mut Batch, database: u32, identity: &[u8]) {
    batch.delete(Family::DerivedPoint, &key(database, identity));
}

fn key(database: u32, identity: &[u8]) -> Vec<u8> {
    [&database.to_be_bytes()[..], &NO_INDEX.to_be_bytes(), b"e", identity].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_flood_of_lines_some_are_told_and_the_last_of_those_are_kept() {
        let (failures, begun) = (Failures::default(), Instant::now());
        let told = (0..20_000).filter(|number| failures.log(format!("line {number}")).is_some()).count();
        // As many seconds as may have begun meanwhile.
        let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap_or(usize::MAX) + 2;
        let most = usize::try_from(LINES_PER_SECOND).unwrap_or(usize::MAX) * seconds;
        assert!((1..=most).contains(&told), "{told} lines in {seconds} s");
        assert!(failures.lines().len() <= LINES_MAX);
    }
}
