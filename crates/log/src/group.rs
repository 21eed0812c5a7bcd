//! The answer that all commits of one group share.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::{LogError, Sequence};

/// Set once, when the group is durable and applied, or has failed; one system call wakes all who block.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The sequence of the group's first record, or why there is none.
    first: OnceLock<Result<Sequence, LogError>>,
    wakers: Mutex<Wakers>,
}

#[derive(Debug, Default)]
struct Wakers {
    answered: bool,
    waiting: Vec<Waker>,
}

impl Outcome {
    pub(crate) fn answer(&self, first: Result<Sequence, LogError>) {
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
#[derive(Debug)]
#[must_use = "the record is durable only when the answer says so"]
pub struct Commit {
    outcome: Arc<Outcome>,
    /// The record's place in its group.
    index: u64,
    /// Where its waker lies among those of the group, once it was polled.
    slot: Option<usize>,
}

impl Commit {
    pub(crate) fn new(outcome: Arc<Outcome>, index: u64) -> Self {
        Self { outcome, index, slot: None }
    }

    /// Blocks until the record is durable and applied, or has failed.
    ///
    /// # Errors
    /// See [`LogError`]. After [`LogError::Failed`] or [`LogError::Io`] the record may or may not be in the log.
    pub fn wait(self) -> Result<Sequence, LogError> {
        self.number(self.outcome.first.wait())
    }

    fn number(&self, first: &Result<Sequence, LogError>) -> Result<Sequence, LogError> {
        first.clone().map(|first| Sequence(first.0 + self.index))
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
