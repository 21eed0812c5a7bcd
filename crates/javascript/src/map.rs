//! The map functions of one design document.

use std::sync::Arc;

use serde_json::Value;

use crate::conduct::Conduct;
use crate::error::ScriptError;
use crate::modules;
use crate::pool::{Owner, Pool};
use crate::runner::{Asked, Runner};
use crate::wire::{Program, Request};

/// Documents that go to a process at once, and their bytes.
const BATCH_MAX: usize = 256;
const BATCH_BYTES: usize = 256 << 10;

/// What a map function emitted once.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Emitted {
    /// The key as JSON, as `JSON.stringify` writes it; `null` for a key that JSON does not have.
    pub key_json: String,
    /// The value, in the same way.
    pub value_json: String,
}

/// What one map function gives for one document.
pub type Mapped = Result<Vec<Emitted>, ScriptError>;

/// The map functions of a design document, in processes of one database.
///
/// Whatever a function does costs the document its entries in that view and nothing else.
pub struct MapEngine {
    runner: Runner,
}

impl MapEngine {
    /// Map functions. `library` is the content of `views.lib`: texts of CommonJS modules, or objects of them as folders.
    #[must_use]
    pub fn new(pool: &Pool, owner: Owner, sources: &[&str], library: Option<&Value>) -> Self {
        let program = Program {
            sources: sources.iter().map(|source| (*source).to_owned()).collect(),
            modules: library.map(modules::of_library),
            this: None,
            limits: pool.options().limits,
        };
        let digest = program.digest();
        Self { runner: Runner::new(pool, owner, Arc::new(program), digest) }
    }

    /// Whether each of the sources can be used as a map function. They are evaluated, since only that tells whether they give
    /// functions, but not called.
    ///
    /// # Errors
    /// [`ScriptError::Unavailable`] if that cannot be told now. Within: [`ScriptError::Syntax`] with line and column,
    /// [`ScriptError::NotAFunction`], or what evaluating it threw.
    pub fn check(&mut self) -> Result<Vec<Result<(), ScriptError>>, ScriptError> {
        self.runner.sources()
    }

    /// Shares how a function behaves with others who run it.
    pub fn share_conduct(&mut self, function: usize, conduct: &Arc<Conduct>) {
        if let Some(own) = self.runner.conducts.get_mut(function) {
            *own = Arc::clone(conduct);
        }
    }

    /// What each function gives for a document, given as JSON with `_id` and `_rev`, in the order of the functions. They
    /// cannot change the document: it is frozen, as in CouchDB.
    ///
    /// # Errors
    /// As [`MapEngine::map_many`].
    pub fn map(&mut self, document_json: &str) -> Result<Vec<Mapped>, ScriptError> {
        Ok(self.map_many(&[document_json])?.pop().unwrap_or_default())
    }

    /// [`MapEngine::map`] for several documents, which saves changing between processes for each.
    ///
    /// # Errors
    /// [`ScriptError::Unavailable`] if the functions cannot be run now; it says nothing of the documents.
    pub fn map_many(&mut self, documents_json: &[&str]) -> Result<Vec<Vec<Mapped>>, ScriptError> {
        let functions = self.runner.conducts.len();
        let calls_max = documents_json.len().saturating_mul(functions);
        let mut calls = Vec::with_capacity(calls_max);
        // Calls up to here are made one by one, since one of them has ended a process.
        let mut alone_until = 0;
        while calls.len() < calls_max {
            let at = calls.len();
            let (first, function) = (at / functions, at % functions);
            let rest = documents_json.get(first..).unwrap_or_default();
            let memory_bytes = self.runner.program().limits.memory_bytes;
            let (batch, is_too_large) = batch(rest, memory_bytes);
            if is_too_large {
                let error = ScriptError::Memory { limit_bytes: memory_bytes };
                calls.resize(at + functions - function, Err(error));
                continue;
            }
            let asked_max = if at < alone_until { 1 } else { batch.len() * functions - function };
            let refusals = self.runner.refusals();
            if let (1, Some(Some(error))) = (asked_max, refusals.get(function)) {
                calls.push(Err(error.clone()));
                continue;
            }
            let left_out = refusals.iter().map(Option::is_some).collect();
            let documents = batch.to_vec();
            let request = Request::Map { first: function, calls_max: asked_max, left_out, documents };
            match self.runner.ask(&request, asked_max)? {
                Asked::Done(outcomes) => {
                    for outcome in outcomes {
                        let function = calls.len() % functions;
                        calls.push(match refusals.get(function) {
                            Some(Some(error)) => Err(error.clone()),
                            _ => self.runner.judged(function, Some(outcome), |lines| entries(&lines)),
                        });
                    }
                }
                Asked::Lost if asked_max == 1 => {
                    calls.push(self.runner.judged(function, None, |lines| entries(&lines)));
                }
                Asked::Lost => alone_until = at + asked_max,
            }
        }
        Ok(by_document(calls, functions, documents_json.len()))
    }

    /// What the functions logged since the last time, the first lines of it: which function, and what.
    pub fn take_log(&mut self) -> Vec<(usize, String)> {
        self.runner.take_log()
    }
}

/// Documents that are asked for at once; or that the first of them is larger than the engine's memory.
fn batch<'a, 'b>(documents: &'a [&'b str], memory_bytes: usize) -> (&'a [&'b str], bool) {
    let mut bytes: usize = 0;
    let fit = documents.iter().take(BATCH_MAX).take_while(|document| {
        bytes = bytes.saturating_add(document.len());
        bytes <= BATCH_BYTES
    });
    let count = fit.count().max(1);
    let is_too_large = documents.first().is_some_and(|document| document.len() >= memory_bytes);
    (documents.get(..count).unwrap_or_default(), is_too_large)
}

fn by_document(calls: Vec<Mapped>, functions: usize, documents: usize) -> Vec<Vec<Mapped>> {
    let mut calls = calls.into_iter();
    (0..documents).map(|_| calls.by_ref().take(functions).collect()).collect()
}

/// The entries in a text that has a line for each key and each value. It comes from a process that is not believed: each
/// line has to be JSON when it is used.
fn entries(lines: &str) -> Mapped {
    let mut lines = lines.split_terminator('\n');
    let mut entries = Vec::new();
    while let Some(key) = lines.next() {
        let Some(value) = lines.next() else {
            return Err(ScriptError::Json { message: "a key without a value".to_owned() });
        };
        entries.push(Emitted { key_json: key.to_owned(), value_json: value.to_owned() });
    }
    Ok(entries)
}
