//! A timer for streams, which move theirs all the time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep};

/// A timer that is moved as seldom as possible: it may ring early, and is then set again.
#[derive(Default)]
pub(crate) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    pub(crate) fn poll<T>(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }
        while sleep.as_mut().poll(context).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            sleep.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}
