//! An engine's thread, and leaving it behind if it does not come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::error::ScriptError;
use crate::limits::Limits;

/// Threads of this process that may be left behind; after so many no engine is started any more. Each holds
/// the memory of its engine.
const LEFT_BEHIND_MAX: usize = 16;
static LEFT_BEHIND: AtomicUsize = AtomicUsize::new(0);

/// Stack of a thread beside what scripts may use of it.
const STACK_EXTRA_BYTES: usize = 1 << 20;

/// So long a thread may show no progress beyond the time of one call. Some steps of a script are long, and the
/// machine may have other things to do.
const PATIENCE_S: u64 = 30;

const RUNNING: u8 = 0;
const LEFT: u8 = 1;
const ENDED: u8 = 2;

/// What both sides see of a thread.
#[derive(Default)]
struct Shared {
    state: AtomicU8,
    /// The call that is under way, as the worker numbers them.
    progress: AtomicU64,
}

/// Told by the worker to whoever asked it.
enum Answer<A> {
    Done(A),
    /// The call under way cannot be ended.
    Stuck,
}

/// For the worker to say where it is.
pub(crate) struct Reporter<A> {
    shared: Arc<Shared>,
    answers: SyncSender<Answer<A>>,
}

impl<A> Clone for Reporter<A> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), answers: self.answers.clone() }
    }
}

impl<A: Send + 'static> Reporter<A> {
    /// This call begins.
    pub(crate) fn begin(&self, call: u64) {
        self.shared.progress.store(call, Ordering::Relaxed);
    }

    /// What the engine calls when a script cannot be ended.
    pub(crate) fn given_up(&self) -> Box<dyn Fn()> {
        let answers = self.answers.clone();
        // Whoever asked is waiting, or gone.
        Box::new(move || drop(answers.try_send(Answer::Stuck)))
    }
}

/// Why there is no answer.
pub(crate) enum Lost {
    /// This call did not end; its thread was left behind.
    In(u64),
    /// There is no thread, or it ended by a fault.
    Failed(ScriptError),
}

/// A thread that answers one question after the other.
pub(crate) struct Worker<Q, A> {
    questions: SyncSender<Q>,
    answers: Receiver<Answer<A>>,
    shared: Arc<Shared>,
    patience_s: u64,
}

impl<Q: Send + 'static, A: Send + 'static> Worker<Q, A> {
    /// Starts a thread that answers by what `make` makes there.
    pub(crate) fn start<F>(
        limits: &Limits,
        make: impl FnOnce(Reporter<A>) -> F + Send + 'static,
    ) -> Result<Self, ScriptError>
    where
        F: FnMut(Q) -> A,
    {
        if LEFT_BEHIND.load(Ordering::Relaxed) >= LEFT_BEHIND_MAX {
            let reason = format!("{LEFT_BEHIND_MAX} functions could not be stopped; restart the server");
            return Err(ScriptError::Unavailable { reason });
        }
        let (questions, asked) = sync_channel::<Q>(1);
        let (answering, answers) = sync_channel(1);
        let shared = Arc::new(Shared::default());
        let reporter = Reporter { shared: Arc::clone(&shared), answers: answering };
        let work = move || {
            let _ending = Ending(Arc::clone(&reporter.shared));
            let mut answer = make(reporter.clone());
            for question in asked {
                if reporter.answers.send(Answer::Done(answer(question))).is_err() {
                    break;
                }
            }
        };
        let named = thread::Builder::new().name("javascript".to_owned());
        let stack_bytes = limits.stack_bytes.saturating_add(STACK_EXTRA_BYTES);
        named.stack_size(stack_bytes).spawn(work).map_err(|error| ScriptError::Unavailable {
            reason: format!("no thread can be started: {error}"),
        })?;
        let patience_s = limits.call_time_ms.div_ceil(1000).saturating_mul(2).saturating_add(PATIENCE_S);
        Ok(Self { questions, answers, shared, patience_s })
    }

    /// Asks and waits for the answer. After [`Lost`] there is none to any further question.
    pub(crate) fn ask(&self, question: Q) -> Result<A, Lost> {
        let failed = || Lost::Failed(ScriptError::Unavailable { reason: "the engine failed".to_owned() });
        self.questions.send(question).map_err(|_| failed())?;
        let (mut seen, mut waited_s) = (u64::MAX, 0);
        // Seconds are counted one by one, so that a machine that stood still for long counts as one.
        loop {
            match self.answers.recv_timeout(Duration::from_secs(1)) {
                Ok(Answer::Done(answer)) => return Ok(answer),
                Ok(Answer::Stuck) => return Err(self.leave()),
                Err(RecvTimeoutError::Disconnected) => return Err(failed()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let progress = self.shared.progress.load(Ordering::Relaxed);
            waited_s = if progress == seen { waited_s + 1 } else { 0 };
            seen = progress;
            if waited_s > self.patience_s {
                return Err(self.leave());
            }
        }
    }

    fn leave(&self) -> Lost {
        let state = &self.shared.state;
        if state.compare_exchange(RUNNING, LEFT, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            LEFT_BEHIND.fetch_add(1, Ordering::Relaxed);
        }
        Lost::In(self.shared.progress.load(Ordering::Relaxed))
    }
}

/// Ends with its thread, also by a panic.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        if self.0.state.swap(ENDED, Ordering::AcqRel) == LEFT {
            LEFT_BEHIND.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
