//! The answer that all commits of one group share.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::{LogError, Sequence};

/// Set once, when the group is durable and applied, or has failed; one system call wakes all who block.
#[derive(Default)]
pub(crate) struct GroupOutcome {
    /// The sequence of the group's first record, or why there is none.
    first: OnceLock<Result<Sequence, LogError>>,
    wakers: Mutex<Wakers>,
}

#[derive(Default)]
struct Wakers {
    /// The outcome is set.
    answered: bool,
    waiting: Vec<Waker>,
    /// The calls are being made or were made, with this answer.
    called: Option<bool>,
    calls: Vec<Call>,
}

type Call = Box<dyn FnOnce(bool) + Send>;

impl GroupOutcome {
    pub(crate) fn answer(&self, first: Result<Sequence, LogError>) {
        let calls = {
            let mut wakers = self.wakers.lock();
            if wakers.called.is_some() {
                return;
            }
            wakers.called = Some(first.is_ok());
            std::mem::take(&mut wakers.calls)
        };
        let durable = first.is_ok();
        for call in calls {
            call(durable);
        }
        // Anyone who waits finds that the calls have been made.
        if self.first.set(first).is_err() {
            return;
        }
        let waiting = {
            let mut wakers = self.wakers.lock();
            wakers.answered = true;
            std::mem::take(&mut wakers.waiting)
        };
        for waker in waiting {
            waker.wake();
        }
    }
}

/// The answer to one submitted record: its number once it is durable and applied.
///
/// It can be blocked on with [`Commit::wait`] or awaited. Dropping it does not take the record back.
#[must_use = "the record is durable only when the answer says so"]
pub struct Commit {
    outcome: Arc<GroupOutcome>,
    /// The record's place in its group.
    index: u64,
    /// Where its waker lies among those of the group, once it was polled.
    slot: Option<usize>,
}

impl Commit {
    pub(crate) fn new(outcome: Arc<GroupOutcome>, index: u64) -> Self {
        Self { outcome, index, slot: None }
    }

    /// Blocks until the record is durable and applied, or has failed.
    ///
    /// # Errors
    /// See [`LogError`]. After [`LogError::Failed`] or [`LogError::Io`] the record may or may not be in the log.
    pub fn wait(self) -> Result<Sequence, LogError> {
        self.number(self.outcome.first.wait())
    }

    /// Calls `call` once the answer is known, before anybody who waits learns of it and whether or not anybody
    /// does: with `true` if the record is durable and applied. It runs on the committer's thread, or here if the
    /// answer is known already, so it must be quick and must not wait.
    pub fn then(&self, call: impl FnOnce(bool) + Send + 'static) {
        let mut wakers = self.outcome.wakers.lock();
        match wakers.called {
            None => wakers.calls.push(Box::new(call)),
            Some(durable) => {
                drop(wakers);
                call(durable);
            }
        }
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

impl std::fmt::Debug for GroupOutcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Outcome({:?})", self.first.get())
    }
}

impl Future for Commit {
    type Output = Result<Sequence, LogError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.outcome.first.get().is_none() {
            let mut wakers = this.outcome.wakers.lock();
            if !wakers.answered {
                let slot = *this.slot.get_or_insert(wakers.waiting.len());
                match wakers.waiting.get_mut(slot) {
                    Some(waker) => waker.clone_from(context.waker()),
                    None => wakers.waiting.push(context.waker().clone()),
                }
                return Poll::Pending;
            }
        }
        // `answered` is set after the answer.
        this.outcome.first.get().map_or(Poll::Pending, |first| Poll::Ready(this.number(first)))
    }
}
