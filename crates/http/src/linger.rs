//! The end of a connection whose client is still sending what was refused.
//!
//! A socket that is closed while something unread lies in it resets its connection, and a reset throws away what the other
//! end has not read yet: the client would be told of a broken connection instead of the reason. So the server ends its own
//! side, throws away what comes for a while, and closes then (RFC 9112 §9.6). That costs no thread, and no memory
//! beyond the socket's; the connection counts as idle meanwhile, so that one that is needed elsewhere is shed.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

use crate::alarm::Alarm;

/// How much is thrown away. Who sends more than that without ever looking for an answer is waited for, and not read any more.
const MOST_BYTES: usize = 16 << 20;

/// How long it takes at most.
const MOST_TIME: Duration = Duration::from_secs(5);

/// And how long at most while nothing comes.
const SILENCE: Duration = Duration::from_secs(1);

/// What is read at once.
const PIECE_BYTES: usize = 16 << 10;

/// What is still taken from a client before its connection is closed.
pub(crate) struct Linger {
    left_bytes: usize,
    until: Instant,
    silent_until: Instant,
    alarm: Alarm,
}

impl Linger {
    pub(crate) fn begin() -> Self {
        let now = Instant::now();
        Self {
            left_bytes: MOST_BYTES,
            until: now + MOST_TIME,
            silent_until: now + SILENCE,
            alarm: Alarm::default(),
        }
    }

    /// Ready when the client has closed its side, or had its time.
    pub(crate) fn poll<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let mut piece = [0; PIECE_BYTES];
        while self.left_bytes > 0 {
            let mut buffer = ReadBuf::new(&mut piece);
            match Pin::new(&mut *stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    self.left_bytes = self.left_bytes.saturating_sub(buffer.filled().len());
                    self.silent_until = Instant::now() + SILENCE;
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => break,
            }
            if Instant::now() >= self.until {
                return Poll::Ready(());
            }
        }
        self.alarm.poll::<()>(self.until.min(self.silent_until), context).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::AsyncWriteExt;
    use tokio::time::{pause, timeout};

    use super::*;

    async fn lingered(stream: &mut (impl AsyncRead + Unpin)) -> Duration {
        let began = Instant::now();
        let mut linger = Linger::begin();
        poll_fn(|context| linger.poll(stream, context)).await;
        began.elapsed()
    }

    #[tokio::test]
    async fn a_client_that_closes_is_not_waited_for() {
        pause();
        let (mut client, mut server) = tokio::io::duplex(1 << 10);
        let sending = tokio::spawn(async move {
            drop(client.write_all(&vec![0; 1 << 20]).await);
        });
        assert!(lingered(&mut server).await < SILENCE);
        assert!(sending.await.is_ok());
    }

    #[tokio::test]
    async fn neither_silence_nor_drops_nor_floods_hold_a_connection_for_long() {
        pause();
        let (client, mut server) = tokio::io::duplex(1 << 10);
        assert!((SILENCE..MOST_TIME).contains(&lingered(&mut server).await));
        drop(client);
        let (mut client, mut server) = tokio::io::duplex(1 << 10);
        let dropping = tokio::spawn(async move {
            while client.write_all(b"x").await.is_ok() {
                tokio::time::sleep(SILENCE / 2).await;
            }
        });
        assert!((MOST_TIME..MOST_TIME + SILENCE).contains(&lingered(&mut server).await));
        dropping.abort();
        let (mut client, mut server) = tokio::io::duplex(PIECE_BYTES);
        let flooding = tokio::spawn(async move {
            let mut taken = 0;
            while let Ok(Ok(())) = timeout(SILENCE * 2, client.write_all(&[0; PIECE_BYTES])).await {
                taken += PIECE_BYTES;
            }
            taken
        });
        assert!(lingered(&mut server).await < MOST_TIME + SILENCE);
        assert!(flooding.await.is_ok_and(|taken| taken <= MOST_BYTES + 2 * PIECE_BYTES));
    }
}
