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
    waiting: Vec<(u32, Waker)>,
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
        for (_, waker) in waiting {
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
    index: u32,
}

impl Commit {
    pub(crate) fn new(outcome: Arc<Outcome>, index: u32) -> Self {
        Self { outcome, index }
    }

    /// Blocks until the record is durable and applied, or has failed.
    ///
    /// # Errors
    /// See [`LogError`]. After [`LogError::Failed`] or [`LogError::Io`] the record may or may not be in the log.
    pub fn wait(self) -> Result<Sequence, LogError> {
        self.number(self.outcome.first.wait())
    }

    fn number(&self, first: &Result<Sequence, LogError>) -> Result<Sequence, LogError> {
        first.clone().map(|first| Sequence(first.0 + u64::from(self.index)))
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
