//! Reduce functions in JavaScript.

use std::sync::Arc;

use super::overflows;
use crate::error::ScriptError;
use crate::pool::{Owner, Pool};
use crate::runner::{Asked, Runner};
use crate::wire::{Program, Request};

/// Characters of a reduction that does not shrink that are shown.
const SHOWN_MAX: usize = 100;

/// A reduce function, in processes of one database.
pub(super) struct Script {
    runner: Runner,
}

impl Script {
    pub(super) fn new(pool: &Pool, owner: Owner, source: String) -> Self {
        let program =
            Program { sources: vec![source], modules: None, this: None, limits: pool.options().limits };
        let digest = program.digest();
        let mut runner = Runner::new(pool, owner, Arc::new(program), digest);
        runner.share_conduct();
        Self { runner }
    }

    /// Whether the source is a function.
    pub(super) fn check(&mut self) -> Result<(), ScriptError> {
        self.runner.sources()?.into_iter().collect()
    }

    /// Without keys it reduces reductions.
    pub(super) fn reduce(
        &mut self,
        keys: Option<&str>,
        values: &str,
        must_shrink: bool,
    ) -> Result<String, ScriptError> {
        let given = keys.map_or(0, str::len) + values.len();
        let memory_bytes = self.runner.program().limits.memory_bytes;
        if given >= memory_bytes {
            return Err(ScriptError::Memory { limit_bytes: memory_bytes });
        }
        // What CouchDB compares with is the line that asks for the reduction, which begins by the source.
        let source_bytes = self.runner.program().sources.iter().map(String::len).sum();
        let input_bytes = given.saturating_add(source_bytes);
        let reduced = self.call(keys, values)?;
        if must_shrink && overflows(input_bytes, reduced.len()) {
            let shown: String = reduced.chars().take(SHOWN_MAX).collect();
            let reason = format!(
                "Reduce output must shrink more rapidly: Current output: '{shown}'... (first {SHOWN_MAX} of {} \
                 bytes)",
                reduced.len()
            );
            return Err(ScriptError::ReduceOverflow { reason });
        }
        Ok(reduced)
    }

    pub(super) fn take_log(&mut self) -> Vec<String> {
        self.runner.take_log().into_iter().map(|(_, line)| line).collect()
    }

    fn call(&mut self, keys: Option<&str>, values: &str) -> Result<String, ScriptError> {
        if let Some(Some(error)) = self.runner.refusals().into_iter().next() {
            return Err(error);
        }
        let outcome = match self.runner.ask(&Request::Reduce { keys, values }, 1)? {
            Asked::Done(outcomes) => outcomes.into_iter().next(),
            Asked::Lost => None,
        };
        let reduced = self.runner.judged(0, outcome, Ok)?;
        // It is kept and given out as it is, and comes from a process that is not believed.
        serde_json::from_str::<&serde_json::value::RawValue>(&reduced)
            .map_err(|error| ScriptError::Json { message: error.to_string() })?;
        Ok(reduced)
    }
}
