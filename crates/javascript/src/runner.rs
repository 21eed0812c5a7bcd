//! Running the functions of one program: asking processes, and going on where one is lost.

use std::sync::Arc;
use std::time::Duration;

use crate::conduct::Conduct;
use crate::error::ScriptError;
use crate::pool::{Lease, Owner, Pool};
use crate::process::Lost;
use crate::wire::{Answer, CallOutcome, Program, Request};

/// So often something is tried that cannot be done just now, and how long is waited in between.
const TRIES: usize = 3;
const PAUSE: Duration = Duration::from_millis(100);

/// Lines of `log` that are kept until they are taken.
const LOG_LINES_MAX: usize = 1_000;

/// What asking for some calls came to.
pub(crate) enum Asked {
    /// Outcomes of the first of them, one at least.
    Done(Vec<CallOutcome>),
    /// The process is gone, and one of the calls is the reason.
    Lost,
}

/// What runs the functions of a program.
pub(crate) struct Runner {
    pool: Pool,
    owner: Owner,
    program: Arc<Program>,
    digest: u128,
    /// Sources that ended the process in which they were evaluated.
    left_out: Vec<bool>,
    /// What is wrong with a source, by what a process last told.
    wrong: Vec<Option<ScriptError>>,
    pub(crate) conducts: Vec<Arc<Conduct>>,
    log: Vec<(usize, String)>,
}

impl Runner {
    pub(crate) fn new(pool: &Pool, owner: Owner, program: Arc<Program>, digest: u128) -> Self {
        let functions = program.sources.len();
        Self {
            pool: pool.clone(),
            owner,
            program,
            digest,
            left_out: vec![false; functions],
            wrong: vec![None; functions],
            conducts: (0..functions).map(|_| Arc::default()).collect(),
            log: Vec::new(),
        }
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// How reductions by this program behave, no matter who asks for them.
    pub(crate) fn share_conduct(&mut self) {
        self.conducts = vec![self.pool.conduct(self.owner, self.digest)];
    }

    /// Which sources can be used.
    ///
    /// # Errors
    /// [`ScriptError::Unavailable`] if that cannot be told now.
    pub(crate) fn sources(&mut self) -> Result<Vec<Result<(), ScriptError>>, ScriptError> {
        drop(self.lend()?);
        Ok(self.wrong.iter().map(|wrong| wrong.clone().map_or(Ok(()), Err)).collect())
    }

    /// What was logged since the last time, with the function that did it.
    pub(crate) fn take_log(&mut self) -> Vec<(usize, String)> {
        std::mem::take(&mut self.log)
    }

    /// Which functions are not called: those that cannot be used, and those that are switched off.
    pub(crate) fn refusals(&self) -> Vec<Option<ScriptError>> {
        let off = |(wrong, conduct): (&Option<ScriptError>, &Arc<Conduct>)| {
            wrong.as_ref().or_else(|| conduct.switched_off()).cloned()
        };
        self.wrong.iter().zip(&self.conducts).map(off).collect()
    }

    /// What a call came to, and what that says of its function; `None`: its process is gone, by what the call did.
    pub(crate) fn judged<T>(
        &self,
        function: usize,
        outcome: Option<CallOutcome>,
        read: impl FnOnce(String) -> Result<T, ScriptError>,
    ) -> Result<T, ScriptError> {
        let off = || self.conducts.get(function).and_then(|conduct| conduct.switched_off());
        if let Some(refused) = self.wrong.get(function).and_then(Option::as_ref).or_else(off) {
            return Err(refused.clone());
        }
        let (result, slow_us) = match outcome {
            Some(outcome) => (outcome.result.and_then(read), outcome.slow_us),
            None => {
                let slow_us = self.program.limits.call_time_ms.saturating_mul(2000);
                (Err(ScriptError::Ended), u32::try_from(slow_us).unwrap_or(u32::MAX))
            }
        };
        if let Some(conduct) = self.conducts.get(function) {
            conduct.note(&result, slow_us);
        }
        result
    }

    /// Asks for some calls.
    ///
    /// # Errors
    /// [`ScriptError::Unavailable`] if they cannot be made now, however often that was tried.
    pub(crate) fn ask(&mut self, request: &Request<'_>, calls: usize) -> Result<Asked, ScriptError> {
        let mut last = None;
        for turn in 0..TRIES {
            if turn > 0 {
                std::thread::sleep(PAUSE);
            }
            let mut lease = self.lend()?;
            let Some(mut ready) = lease.ready.take() else { continue };
            match ready.process.ask(request, calls) {
                Ok(Answer { is_stuck, mut outcomes, log }) => {
                    let kept = LOG_LINES_MAX.saturating_sub(self.log.len());
                    let functions = self.left_out.len();
                    let log = log.into_iter().filter_map(|(of, line)| {
                        usize::try_from(of).ok().filter(|of| *of < functions).map(|of| (of, line))
                    });
                    self.log.extend(log.take(kept));
                    if is_stuck {
                        let slow_us = u32::try_from(self.program.limits.call_time_ms.saturating_mul(1000));
                        let slow_us = slow_us.unwrap_or(u32::MAX);
                        outcomes.push(CallOutcome { slow_us, result: Err(ScriptError::Runaway) });
                        return Ok(Asked::Done(outcomes));
                    }
                    if outcomes.is_empty() {
                        return Ok(Asked::Lost);
                    }
                    lease.ready = Some(ready);
                    return Ok(Asked::Done(outcomes));
                }
                Err(Lost::Overrun | Lost::Ended { .. }) => return Ok(Asked::Lost),
                Err(Lost::Unavailable(error) | Lost::Busy(error)) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| ScriptError::Unavailable { reason: "no process can be had".to_owned() }))
    }

    /// A process with the program's engine.
    fn lend(&mut self) -> Result<Lease, ScriptError> {
        let mut last = None;
        let mut by_itself = false;
        for turn in 0..TRIES {
            if turn > 0 {
                std::thread::sleep(PAUSE);
            }
            match self.pool.lend(self.owner, &self.program, self.digest, &self.left_out) {
                Ok(lease) => {
                    let sources = lease.ready.iter().flat_map(|ready| &ready.sources);
                    self.wrong = sources.map(|source| source.clone().err()).collect();
                    return Ok(lease);
                }
                Err(Lost::Unavailable(error)) => last = Some(error),
                Err(Lost::Busy(error)) => return Err(error),
                Err(Lost::Overrun | Lost::Ended { .. }) if by_itself => break,
                Err(Lost::Overrun | Lost::Ended { .. }) => {
                    // One of the sources ended it. Which one shows if each is evaluated by itself.
                    by_itself = true;
                    self.find_left_out()?;
                }
            }
        }
        Err(last.unwrap_or_else(|| ScriptError::Unavailable {
            reason: "the functions end each process".to_owned(),
        }))
    }

    fn find_left_out(&mut self) -> Result<(), ScriptError> {
        for place in 0..self.left_out.len() {
            let others: Vec<bool> = (0..self.left_out.len()).map(|other| other != place).collect();
            match self.pool.lend(self.owner, &self.program, self.digest.wrapping_add(1), &others) {
                // It is not kept: it has one function only.
                Ok(mut lease) => drop(lease.ready.take()),
                Err(Lost::Overrun | Lost::Ended { .. }) => {
                    if let Some(flag) = self.left_out.get_mut(place) {
                        *flag = true;
                    }
                }
                Err(Lost::Unavailable(error) | Lost::Busy(error)) => return Err(error),
            }
        }
        Ok(())
    }
}
