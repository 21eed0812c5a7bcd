//! `validate_doc_update`: whether an edit may be stored.

use std::sync::Arc;

use serde_json::Value;

use crate::error::ScriptError;
use crate::modules;
use crate::pool::{Owner, Pool};
use crate::runner::{Asked, Runner};
use crate::wire::{Edited, Program, Request};

/// Edits that go to a process at once, and their bytes.
const BATCH_MAX: usize = 64;
const BATCH_BYTES: usize = 1 << 20;

/// An edit, as JSON.
#[derive(Clone, Copy, Debug)]
pub struct EditToValidate<'a> {
    /// The document as it is to be stored.
    pub new_json: &'a str,
    /// The document that it replaces; `null` if there is none.
    pub old_json: &'a str,
    /// Who edits: `db`, `name` and `roles`.
    pub user_json: &'a str,
    /// The database's `_security`.
    pub security_json: &'a str,
}

/// What a function says to an edit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It may be stored.
    Allowed,
    /// It threw `{forbidden: ...}`.
    Forbidden {
        /// Its words.
        reason: String,
    },
    /// It threw `{unauthorized: ...}`.
    Unauthorized {
        /// Its words.
        reason: String,
    },
    /// It threw something else, or did not end: the edit is refused for that too.
    Failed(ScriptError),
}

/// The function of one design document.
pub struct Validator {
    pool: Pool,
    owner: Owner,
    program: Arc<Program>,
    digest: u128,
}

impl Validator {
    /// The function of a design document, given as JSON: what it finds as `this` and can require.
    #[must_use]
    pub fn new(pool: &Pool, owner: Owner, source: &str, design_json: &str) -> Self {
        // Of one that is nested too deeply nothing can be required.
        let design: Option<Value> = serde_json::from_str(design_json).ok();
        let program = Program {
            sources: vec![source.to_owned()],
            modules: design.as_ref().map(modules::of_design),
            this: Some(design_json.to_owned()),
            limits: pool.options().limits,
        };
        let (digest, program) = (program.digest(), Arc::new(program));
        Self { pool: pool.clone(), owner, program, digest }
    }

    fn runner(&self) -> Runner {
        Runner::new(&self.pool, self.owner, Arc::clone(&self.program), self.digest)
    }

    /// Whether the source is a function.
    ///
    /// # Errors
    /// As [`MapEngine::check`](crate::MapEngine::check).
    pub fn check(&self) -> Result<(), ScriptError> {
        self.runner().sources()?.into_iter().collect()
    }

    /// What the function says to each of the edits. After three in a row that had to be stopped the rest is refused.
    ///
    /// # Errors
    /// [`ScriptError::Unavailable`] if it cannot be asked now.
    pub fn validate(&self, edits: &[EditToValidate<'_>]) -> Result<Vec<Verdict>, ScriptError> {
        let (mut runner, mut verdicts) = (self.runner(), Vec::with_capacity(edits.len()));
        let memory_bytes = self.program.limits.memory_bytes;
        let mut alone_until = 0;
        while verdicts.len() < edits.len() {
            let at = verdicts.len();
            let rest = edits.get(at..).unwrap_or_default();
            if let Some(Some(error)) = runner.refusals().into_iter().next() {
                verdicts.push(Verdict::Failed(error));
                continue;
            }
            if rest.first().is_some_and(|edit| edit.bytes() >= memory_bytes) {
                verdicts.push(Verdict::Failed(ScriptError::Memory { limit_bytes: memory_bytes }));
                continue;
            }
            let mut bytes: usize = 0;
            let fit = rest.iter().take(BATCH_MAX).take_while(|edit| {
                bytes = bytes.saturating_add(edit.bytes());
                bytes <= BATCH_BYTES
            });
            let count = if at < alone_until { 1 } else { fit.count().max(1) };
            let batch = rest.iter().take(count).map(|edit| Edited {
                new: edit.new_json,
                old: edit.old_json,
                user: edit.user_json,
                security: edit.security_json,
            });
            match runner.ask(&Request::Validate(batch.collect()), count)? {
                Asked::Done(outcomes) => {
                    let verdict = |outcome| Verdict::of(runner.judged(0, Some(outcome), Ok));
                    verdicts.extend(outcomes.into_iter().map(verdict));
                }
                Asked::Lost if count == 1 => verdicts.push(Verdict::of(runner.judged(0, None, Ok))),
                Asked::Lost => alone_until = at + count,
            }
        }
        Ok(verdicts)
    }
}

impl EditToValidate<'_> {
    const fn bytes(&self) -> usize {
        self.new_json.len() + self.old_json.len() + self.user_json.len() + self.security_json.len()
    }
}

impl Verdict {
    fn of(result: Result<String, ScriptError>) -> Self {
        let refusal = match result {
            Ok(refusal) => refusal,
            Err(error) => return Self::Failed(error),
        };
        match refusal.split_at_checked(1) {
            None => Self::Allowed,
            Some(("F", text)) => Self::Forbidden { reason: text.to_owned() },
            Some(("U", text)) => Self::Unauthorized { reason: text.to_owned() },
            Some(_) => {
                Self::Failed(ScriptError::Thrown { message: "an answer that makes no sense".to_owned() })
            }
        }
    }
}
