//! The map functions of one design document.

use std::sync::Arc;

use serde_json::Value;

use crate::error::ScriptError;
use crate::limits::Limits;
use crate::sandbox::Sandbox;
use crate::text::well_formed;
use crate::worker::{Lost, Reporter, Worker};

/// Lines of `log` that are kept between two calls of [`MapEngine::take_log`].
const LOG_LINES_MAX: usize = 1_000;

/// Documents that go to the engine's thread at once.
const BATCH_MAX: usize = 64;

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

/// Whether a source can be used as a map function. It is evaluated, since only that tells whether it gives a
/// function, but not called.
///
/// # Errors
/// [`ScriptError::Syntax`] with line and column, [`ScriptError::NotAFunction`], or what evaluating it threw.
pub fn check_map(source: &str, limits: &Limits) -> Result<(), ScriptError> {
    MapEngine::new(&[source], None, limits.clone()).map(drop)
}

/// The map functions of a design document in an engine on a thread of its own, which ends with this.
///
/// Whatever a function does costs the document its entries in that view and nothing else. If the engine may
/// have been damaged by it (memory, time), it is made anew; if memory ran out that earlier documents left used,
/// the function is called again in the new one.
pub struct MapEngine {
    design: Arc<Design>,
    worker: Option<Worker<Question, Answer>>,
    /// Functions that could not be ended once.
    off: Vec<bool>,
    log: Vec<String>,
}

/// What the functions are made of.
struct Design {
    sources: Vec<String>,
    library: Option<Value>,
    limits: Limits,
}

struct Question {
    documents: Vec<String>,
    off: Vec<bool>,
}

struct Answer {
    /// By document and function; an error if there is no engine with these functions.
    mapped: Result<Vec<Vec<Mapped>>, ScriptError>,
    log: Vec<String>,
}

impl MapEngine {
    /// Makes an engine with these functions, in about two milliseconds. `library` is the content of
    /// `views.lib`: texts of CommonJS modules, or objects of them as folders.
    ///
    /// # Errors
    /// As [`check_map`] for the first source that cannot be used, or [`ScriptError::Unavailable`].
    pub fn new(sources: &[&str], library: Option<&Value>, limits: Limits) -> Result<Self, ScriptError> {
        let sources: Vec<String> = sources.iter().map(|source| (*source).to_owned()).collect();
        let off = vec![false; sources.len()];
        let design = Arc::new(Design { sources, library: library.cloned(), limits });
        let mut engine = Self { design, worker: None, off, log: Vec::new() };
        match engine.ask(&[]) {
            Ok(answer) => answer.mapped.map(|_| engine),
            Err(Lost::In(_)) => Err(ScriptError::Runaway),
            Err(Lost::Failed(error)) => Err(error),
        }
    }

    /// What each function gives for a document, given as JSON with `_id` and `_rev`, in the order of the
    /// functions. They cannot change the document: it is frozen, as in CouchDB.
    pub fn map(&mut self, document_json: &str) -> Vec<Mapped> {
        self.map_many(&[document_json]).pop().unwrap_or_default()
    }

    /// [`MapEngine::map`] for several documents, which saves changing between threads for each.
    pub fn map_many(&mut self, documents_json: &[&str]) -> Vec<Vec<Mapped>> {
        documents_json.chunks(BATCH_MAX).flat_map(|documents| self.map_batch(documents)).collect()
    }

    /// What the functions logged since the last time, the first 1,000 lines of it.
    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    fn map_batch(&mut self, documents: &[&str]) -> Vec<Vec<Mapped>> {
        let functions = self.off.len();
        let (mut mapped, mut rest) = (Vec::with_capacity(documents.len()), documents);
        // Each time round either answers or switches off a function.
        for _ in 0..=functions {
            let error = match self.ask(rest) {
                Ok(answer) => {
                    let kept = LOG_LINES_MAX.saturating_sub(self.log.len());
                    self.log.extend(answer.log.into_iter().take(kept));
                    match answer.mapped {
                        Ok(answered) => {
                            mapped.extend(answered);
                            return mapped;
                        }
                        Err(error) => error,
                    }
                }
                Err(Lost::In(call)) => {
                    let call = usize::try_from(call).unwrap_or_default();
                    // What the documents before gave went with the thread.
                    let (before, from) = rest.split_at_checked(call / functions.max(1)).unwrap_or_default();
                    if !before.is_empty() {
                        mapped.extend(self.map_batch(before));
                    }
                    rest = from;
                    if let Some(off) = self.off.get_mut(call % functions.max(1)) {
                        *off = true;
                    }
                    continue;
                }
                Err(Lost::Failed(error)) => error,
            };
            mapped.resize(documents.len(), vec![Err(error); functions]);
            return mapped;
        }
        mapped.resize(documents.len(), vec![Err(ScriptError::Runaway); functions]);
        mapped
    }

    fn ask(&mut self, documents: &[&str]) -> Result<Answer, Lost> {
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => {
                let design = Arc::clone(&self.design);
                Worker::start(&self.design.limits, move |reporter| {
                    let mut mapper = Mapper { design, reporter, sandbox: None, opened: false, used: false };
                    move |question: Question| mapper.answer(&question)
                })
                .map_err(Lost::Failed)?
            }
        };
        let documents = documents.iter().map(|document| (*document).to_owned()).collect();
        let answer = worker.ask(Question { documents, off: self.off.clone() })?;
        self.worker = Some(worker);
        Ok(answer)
    }
}

/// The engine's side, on its thread.
struct Mapper {
    design: Arc<Design>,
    reporter: Reporter<Answer>,
    sandbox: Option<Sandbox>,
    /// Whether the engine has the document under way.
    opened: bool,
    /// Whether a function was called in the engine.
    used: bool,
}

impl Mapper {
    fn answer(&mut self, question: &Question) -> Answer {
        let mut log = Vec::new();
        if let Err(error) = self.sandbox() {
            return Answer { mapped: Err(error), log };
        }
        let mut mapped = Vec::with_capacity(question.documents.len());
        let mut call = 0;
        for document in &question.documents {
            self.opened = false;
            let mut by_function = Vec::with_capacity(question.off.len());
            for (index, off) in question.off.iter().enumerate() {
                self.reporter.begin(call);
                call += 1;
                let entries = if *off { Err(ScriptError::Runaway) } else { self.call(index, document) };
                by_function.push(entries);
                let lines = self.sandbox.as_ref().map(Sandbox::take_log).unwrap_or_default();
                log.extend(lines.into_iter().take(LOG_LINES_MAX.saturating_sub(log.len())));
            }
            mapped.push(by_function);
        }
        Answer { mapped: Ok(mapped), log }
    }

    /// What a function gives for a document. Memory may have run out by what earlier calls left, so it is
    /// called again in a new engine then.
    fn call(&mut self, index: usize, document: &str) -> Mapped {
        self.sandbox()?;
        let used = std::mem::replace(&mut self.used, true);
        let mapped = self.call_once(index, document);
        let damaged = self.sandbox.as_ref().is_some_and(Sandbox::is_damaged);
        if used && damaged && !matches!(mapped, Ok(_) | Err(ScriptError::Time { .. })) {
            return self.call_once(index, document);
        }
        mapped
    }

    fn call_once(&mut self, index: usize, document: &str) -> Mapped {
        self.sandbox()?;
        let Some(sandbox) = &mut self.sandbox else { return Ok(Vec::new()) };
        if !self.opened {
            sandbox.open(document)?;
            self.opened = true;
        }
        sandbox.map(index).map(|lines| entries(&lines))
    }

    /// Sees to it that there is an engine with all functions.
    fn sandbox(&mut self) -> Result<(), ScriptError> {
        if self.sandbox.as_ref().is_some_and(|sandbox| !sandbox.is_damaged()) {
            return Ok(());
        }
        self.sandbox = None;
        (self.opened, self.used) = (false, false);
        let Design { sources, library, limits } = &*self.design;
        let mut sandbox = Sandbox::new(limits, library.as_ref(), self.reporter.given_up())?;
        for source in sources {
            sandbox.add(source)?;
        }
        self.sandbox = Some(sandbox);
        Ok(())
    }
}

/// The entries in a text that has a line for each key and each value.
fn entries(lines: &str) -> Vec<Emitted> {
    let lines = well_formed(lines);
    let mut lines = lines.split_terminator('\n');
    let mut entries = Vec::new();
    while let (Some(key), Some(value)) = (lines.next(), lines.next()) {
        entries.push(Emitted { key_json: key.to_owned(), value_json: value.to_owned() });
    }
    entries
}
