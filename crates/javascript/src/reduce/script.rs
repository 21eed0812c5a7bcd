//! Reduce functions in JavaScript.

use super::overflows;
use crate::error::ScriptError;
use crate::limits::Limits;
use crate::sandbox::Sandbox;
use crate::text::well_formed;
use crate::worker::{Lost, Reporter, Worker};

/// Lines of `log` that are kept until they are taken.
const LOG_LINES_MAX: usize = 1_000;

/// Characters of a reduction that is too large which its error shows, as many as CouchDB's.
const SHOWN_MAX: usize = 100;

/// A reduce function in an engine on a thread of its own.
pub(super) struct Script {
    source: String,
    limits: Limits,
    worker: Option<Worker<Question, Answer>>,
    /// Whether it could not be ended once.
    off: bool,
    log: Vec<String>,
}

enum Question {
    /// Only whether the source can be used.
    Prepare,
    Reduce {
        /// None to reduce reductions.
        keys: Option<String>,
        values: String,
    },
}

struct Answer {
    reduced: Result<String, ScriptError>,
    log: Vec<String>,
}

impl Script {
    pub(super) fn new(source: String, limits: Limits) -> Result<Self, ScriptError> {
        let mut script = Self { source, limits, worker: None, off: false, log: Vec::new() };
        script.ask(Question::Prepare)?;
        Ok(script)
    }

    pub(super) fn reduce(
        &mut self,
        keys: Option<String>,
        values: String,
        must_shrink: bool,
    ) -> Result<String, ScriptError> {
        let given = keys.as_ref().map_or(0, String::len) + values.len();
        // What CouchDB compares with is the line that asks for the reduction, which begins by the source.
        let input_bytes = given.saturating_add(self.source.len());
        let reduced = self.ask(Question::Reduce { keys, values })?;
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
        std::mem::take(&mut self.log)
    }

    fn ask(&mut self, question: Question) -> Result<String, ScriptError> {
        if self.off {
            return Err(ScriptError::Runaway);
        }
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => {
                let (source, limits) = (self.source.clone(), self.limits.clone());
                Worker::start(&self.limits, move |reporter| {
                    let mut host = Host { source, limits, reporter, sandbox: None };
                    move |question| host.answer(&question)
                })?
            }
        };
        match worker.ask(question) {
            Ok(Answer { reduced, log }) => {
                self.worker = Some(worker);
                self.log.extend(log.into_iter().take(LOG_LINES_MAX.saturating_sub(self.log.len())));
                reduced
            }
            Err(Lost::In(_)) => {
                self.off = true;
                Err(ScriptError::Runaway)
            }
            Err(Lost::Failed(error)) => Err(error),
        }
    }
}

/// The engine's side, on its thread.
struct Host {
    source: String,
    limits: Limits,
    reporter: Reporter<Answer>,
    sandbox: Option<Sandbox>,
}

impl Host {
    fn answer(&mut self, question: &Question) -> Answer {
        let used = self.sandbox.is_some();
        let mut reduced = self.reduce(question);
        let mut log = self.sandbox.as_ref().map(Sandbox::take_log).unwrap_or_default();
        // Memory may have run out by what earlier calls left.
        if used && self.is_damaged() && !matches!(reduced, Ok(_) | Err(ScriptError::Time { .. })) {
            reduced = self.reduce(question);
            log.extend(self.sandbox.as_ref().map(Sandbox::take_log).unwrap_or_default());
        }
        Answer { reduced, log }
    }

    fn reduce(&mut self, question: &Question) -> Result<String, ScriptError> {
        if self.is_damaged() {
            self.sandbox = None;
        }
        let sandbox = match &mut self.sandbox {
            Some(sandbox) => sandbox,
            none => {
                let mut sandbox = Sandbox::new(&self.limits, None, self.reporter.given_up())?;
                sandbox.add(&self.source)?;
                none.insert(sandbox)
            }
        };
        match question {
            Question::Prepare => Ok(String::new()),
            Question::Reduce { keys, values } => {
                sandbox.reduce(keys.as_deref(), values).map(|json| well_formed(&json).into_owned())
            }
        }
    }

    fn is_damaged(&self) -> bool {
        self.sandbox.as_ref().is_some_and(Sandbox::is_damaged)
    }
}
