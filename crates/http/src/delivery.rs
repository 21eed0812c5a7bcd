//! Answers over HTTP/2 that their client does not take.
//!
//! A client opens a window for each stream, and the server sends no more than fits (RFC 9113 §5.2). Who opens none would keep
//! its streams, and what was made for them, for as long as its connection answers pings. So a stream hands over one
//! piece at a time and waits until the library has written it to the socket; the end of an answer waits for its last piece
//! too, because a stream that has ended cannot be reset. A piece that is not taken in time resets its stream, and no other.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::alarm::Alarm;

/// The way of one stream's answer to its client.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    /// When the piece that is on its way was handed over.
    since: Mutex<Option<Instant>>,
    taken: AtomicWaker,
}

/// A piece on its way; the library drops it once it is written, or its stream has ended.
struct Parcel {
    bytes: Bytes,
    delivery: Arc<Delivery>,
}

impl AsRef<[u8]> for Parcel {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        *self.delivery.since.lock() = None;
        self.delivery.taken.wake();
    }
}

impl Delivery {
    /// The same bytes, which are on their way until they are dropped.
    pub(crate) fn hand_over(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        *self.since.lock() = Some(Instant::now());
        Bytes::from_owner(Parcel { bytes, delivery: Arc::clone(self) })
    }

    /// Whether a piece is on its way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.since.lock().is_some()
    }

    /// Ready when no piece is on its way.
    pub(crate) fn poll_taken(&self, context: &Context<'_>) -> Poll<()> {
        if self.is_under_way() {
            self.taken.register(context.waker());
            // It may have been taken just before.
            if self.is_under_way() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}

/// Runs `stream`, and drops it when its client does not take a piece within `patience`: that resets it (RFC 9113 §6.4) and
/// frees all that it holds. While no piece is on its way, the stream waits for the server, and that is never its client's fault.
async fn watched(stream: impl Future, delivery: Arc<Delivery>, patience: Duration) {
    let mut stream = pin!(stream);
    let mut alarm = Alarm::default();
    poll_fn(|context| {
        if stream.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let since = *delivery.since.lock();
        let Some(since) = since else { return Poll::Pending };
        alarm
            .poll::<()>(since + patience, context)
            .map(|_| tracing::debug!("a client takes nothing of a stream"))
    })
    .await;
}

/// Runs the streams of one connection.
#[derive(Clone)]
pub(crate) struct StreamExecutor {
    /// That of a request whose stream runs next: Hyper asks for the answer, then runs what it got.
    next: Arc<Mutex<Option<Arc<Delivery>>>>,
    patience: Duration,
}

impl StreamExecutor {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { next: Arc::default(), patience }
    }

    /// The way of the answer to a request that has just come.
    pub(crate) fn begin(&self) -> Arc<Delivery> {
        let delivery = Arc::<Delivery>::default();
        *self.next.lock() = Some(Arc::clone(&delivery));
        delivery
    }
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, stream: F) {
        let delivery = self.next.lock().take();
        match delivery {
            Some(delivery) => drop(tokio::spawn(watched(stream, delivery, self.patience))),
            None => drop(tokio::spawn(stream)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{pause, sleep};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A stream that hands over a piece after each of these pauses, and whose client takes each after `taken_after`.
    async fn answered(pauses: &[u64], taken_after: Duration) -> bool {
        let delivery = Arc::<Delivery>::default();
        let handed_over = Arc::clone(&delivery);
        let (ended, has_ended) = tokio::sync::oneshot::channel();
        let pauses = pauses.to_vec();
        let stream = async move {
            for pause in pauses {
                sleep(Duration::from_secs(pause)).await;
                let piece = handed_over.hand_over(Bytes::from_static(b"piece"));
                tokio::spawn(async move {
                    sleep(taken_after).await;
                    drop(piece);
                });
                poll_fn(|context| handed_over.poll_taken(context)).await;
            }
            assert!(ended.send(()).is_ok());
        };
        watched(stream, delivery, PATIENCE).await;
        has_ended.await.is_ok()
    }

    #[tokio::test]
    async fn only_a_client_that_takes_nothing_is_given_up() {
        pause();
        assert!(answered(&[], PATIENCE).await);
        assert!(answered(&[0, 0, 0], Duration::ZERO).await);
        // Neither long answers nor long waits for the server count.
        assert!(answered(&[0, 300, 1, 600, 0, 0], PATIENCE / 2).await);
        assert!(!answered(&[0], PATIENCE * 2).await);
        assert!(!answered(&[0, 300, 0], PATIENCE + Duration::from_secs(1)).await);
    }
}
