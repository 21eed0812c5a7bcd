//! The answer to a submitted batch.

use std::pin::Pin;
use std::task::{Context, Poll};

use crate::StoreError;

/// Answers when a submitted batch is durable and visible to reads.
///
/// It can be blocked on with [`Commit::wait`] or awaited. Dropping it does not take the batch back.
#[derive(Debug)]
#[must_use = "a batch is durable only when its commit says so"]
pub struct Commit {
    logged: Option<scrinium_log::Commit>,
}

impl Commit {
    pub(crate) fn of(logged: scrinium_log::Commit) -> Self {
        Self { logged: Some(logged) }
    }

    /// The commit of a batch without changes.
    pub(crate) fn of_nothing() -> Self {
        Self { logged: None }
    }

    /// Calls `call` once the answer is known, before anybody who waits learns of it: with `true` if the batch is
    /// durable and visible. It runs on the thread that all commits share, so it must be quick and not wait.
    pub fn then(&self, call: impl FnOnce(bool) + Send + 'static) {
        match &self.logged {
            Some(logged) => logged.then(call),
            None => call(true),
        }
    }

    /// Blocks until the batch is durable and visible.
    ///
    /// # Errors
    /// [`StoreError::Full`]: nothing was written. [`StoreError::Failed`]: it may or may not be there once
    /// the store is opened again.
    pub fn wait(self) -> Result<(), StoreError> {
        match self.logged {
            Some(logged) => logged.wait().map(|_| ()).map_err(StoreError::of_commit),
            None => Ok(()),
        }
    }
}

impl Future for Commit {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.logged {
            Some(logged) => {
                Pin::new(logged).poll(context).map(|answer| answer.map(|_| ()).map_err(StoreError::of_commit))
            }
            None => Poll::Ready(Ok(())),
        }
    }
}
