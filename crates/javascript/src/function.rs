//! Filters and update functions of design documents: one document and one request a call.

use std::sync::Arc;

use serde_json::Value;

use crate::error::ScriptError;
use crate::modules;
use crate::pool::{Owner, Pool};
use crate::runner::{Asked, Runner};
use crate::wire::{Program, Request, Requested};

/// What an update function gives, as JSON, is at most so long.
pub const ANSWER_BYTES_MAX: usize = 16 << 20;

/// What an update function came to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum UpdateAnswer {
    /// The document to store, or `null`, and the answer: a JSON array. It comes from a process that is not believed.
    Given {
        /// The array.
        json: String,
    },
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
}

/// A filter or an update function of a design document.
///
/// As in CouchDB it finds the design document as `this`, and may require any text in it as a module.
pub struct DesignFunction {
    runner: Runner,
}

impl DesignFunction {
    /// The function of a design document, given as JSON.
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
        let digest = program.digest();
        Self { runner: Runner::new(pool, owner, Arc::new(program), digest) }
    }

    /// Whether a filter lets a document pass; both are JSON.
    ///
    /// # Errors
    /// What the function threw, or why it was stopped; [`ScriptError::Unavailable`] if it cannot be asked now.
    pub fn lets_pass(&mut self, document_json: &str, request_json: &str) -> Result<bool, ScriptError> {
        let requested = Requested { document: document_json, request: request_json };
        self.call(requested, Request::Filter).map(|passes| !passes.is_empty())
    }

    /// What an update function makes of a document, or of `null`.
    ///
    /// # Errors
    /// As [`lets_pass`](Self::lets_pass), and an answer that is too long.
    pub fn update(&mut self, document_json: &str, request_json: &str) -> Result<UpdateAnswer, ScriptError> {
        let requested = Requested { document: document_json, request: request_json };
        let answered = self.call(requested, Request::Update)?;
        if answered.len() > ANSWER_BYTES_MAX {
            return Err(ScriptError::Memory { limit_bytes: ANSWER_BYTES_MAX });
        }
        let senseless = || ScriptError::Thrown { message: "an answer that makes no sense".to_owned() };
        let (kind, text) = answered.split_at_checked(1).ok_or_else(senseless)?;
        let text = text.to_owned();
        match kind {
            "A" => Ok(UpdateAnswer::Given { json: text }),
            "F" => Ok(UpdateAnswer::Forbidden { reason: text }),
            "U" => Ok(UpdateAnswer::Unauthorized { reason: text }),
            _ => Err(senseless()),
        }
    }

    /// What the function logged since the last time, the first lines of it.
    pub fn take_log(&mut self) -> Vec<String> {
        self.runner.take_log().into_iter().map(|(_, line)| line).collect()
    }

    fn call<'a>(
        &mut self,
        requested: Requested<'a>,
        request: impl Fn(Requested<'a>) -> Request<'a>,
    ) -> Result<String, ScriptError> {
        if let Some(Some(error)) = self.runner.refusals().into_iter().next() {
            return Err(error);
        }
        let limit_bytes = self.runner.program().limits.memory_bytes;
        if requested.document.len().saturating_add(requested.request.len()) >= limit_bytes {
            return Err(ScriptError::Memory { limit_bytes });
        }
        let outcome = match self.runner.ask(&request(requested), 1)? {
            Asked::Done(outcomes) => outcomes.into_iter().next(),
            Asked::Lost => None,
        };
        self.runner.judged(0, outcome, Ok)
    }
}
