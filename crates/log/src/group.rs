//! The answer that all commits of one group share.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::{LogError, Sequence};

/// Set once, when the group is durable and applied, or has failed; one system call wakes all who block.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The sequence of the group's first record, or why there is none.
    first: OnceLock<Result<Sequence, LogError>>,
    wakers: Mutex<Wakers>,
}

#[derive(Default)]
struct Wakers {
    answered: bool,
    waiting: Vec<(u64, Waker)>,
    calls: Vec<Call>,
}

type Call = Box<dyn FnOnce(bool) + Send>;

impl Outcome {
    pub(crate) fn answer(&self, first: Result<Sequence, LogError>) {
        let durable = first.is_ok();
        if self.first.set(first).is_err() {
            return;
        }
        let Wakers { waiting, calls, .. } =
            std::mem::replace(&mut *self.wakers.lock(), Wakers { answered: true, ..Wakers::default() });
        for call in calls {
            call(durable);
        }
        for (_, waker) in waiting {
            waker.wake();
        }
    }
}

/// The answer to one submitted record: its number once it is durable and applied.
///
/// It can be blocked on with [`Commit::wait`] or awaited. Dropping it does not take the record back.
#[must_use = "the record is durable only when the answer says so"]
pub struct Commit {
    outcome: Arc<Outcome>,
    index: u64,
}

impl Commit {
    pub(crate) fn new(outcome: Arc<Outcome>, index: u64) -> Self {
        Self { outcome, index }
    }

    /// Blocks until the record is durable and applied, or has failed.
    ///
    /// # Errors
    /// See [`LogError`]. After [`LogError::Failed`] or [`LogError::Io`] the record may or may not be in the log.
    pub fn wait(self) -> Result<Sequence, LogError> {
        self.number(self.outcome.first.wait())
    }

    /// Calls `call` once the answer is known, whether or not anybody waits for it: with `true` if the record is
    /// durable and applied. It runs on the committer's thread, or here if the answer is known already, so it
    /// must be quick and must not wait.
    pub fn then(&self, call: impl FnOnce(bool) + Send + 'static) {
        let mut wakers = self.outcome.wakers.lock();
        if !wakers.answered {
            wakers.calls.push(Box::new(call));
            return;
        }
        drop(wakers);
        call(matches!(self.outcome.first.get(), Some(Ok(_))));
    }

    fn number(&self, first: &Result<Sequence, LogError>) -> Result<Sequence, LogError> {
        first.clone().map(|first| Sequence(first.0 + self.index))
    }
}

impl std::fmt::Debug for Commit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Commit({:?})", self.outcome.first.get())
    }
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Outcome({:?})", self.first.get())
    }
}

impl Future for Commit {
    type Output = Result<Sequence, LogError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(first) = self.outcome.first.get() {
            return Poll::Ready(self.number(first));
        }
        let mut wakers = self.outcome.wakers.lock();
        if !wakers.answered {
            match wakers.waiting.iter_mut().find(|(index, _)| *index == self.index) {
                Some((_, waker)) => waker.clone_from(context.waker()),
                None => wakers.waiting.push((self.index, context.waker().clone())),
            }
            return Poll::Pending;
        }
        drop(wakers);
        match self.outcome.first.get() {
            Some(first) => Poll::Ready(self.number(first)),
            None => Poll::Pending,
        }
    }
}
