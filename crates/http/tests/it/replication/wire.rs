//! A wire to a server that cuts, delays, garbles, swallows, or answers by itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a wire does to some of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nothing.
    None,
    /// Ends after some bytes, in either direction.
    Cuts,
    /// Answers with this status.
    Refuses(u16),
    /// Makes other bytes of what comes back.
    Garbles,
    /// Lets everything wait.
    Delays,
    /// Passes the request on, and ends instead of answering.
    Swallows,
}

/// A wire to a server.
pub(crate) struct Wire {
    pub(crate) address: SocketAddr,
    trouble: Arc<Mutex<Trouble>>,
}

impl Wire {
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let trouble = Arc::new(Mutex::new(Trouble::None));
        let (shared, count) = (Arc::clone(&trouble), AtomicU64::new(0));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::Relaxed);
                // Two of three connections are in order, or nothing would ever end.
                let trouble = if number % 3 == 0 { *shared.lock() } else { Trouble::None };
                tokio::spawn(carry(stream, server, trouble, number));
            }
        });
        Self { address, trouble }
    }

    /// Makes trouble from now on.
    pub(crate) fn make(&self, trouble: Trouble) {
        *self.trouble.lock() = trouble;
    }
}

async fn carry(mut client: TcpStream, server: SocketAddr, trouble: Trouble, number: u64) {
    let mut buffer = vec![0; 16 << 10];
    if let Trouble::Refuses(status) = trouble {
        drop(client.read(&mut buffer).await);
        let answer = format!(
            "HTTP/1.1 {status} Trouble\r\nContent-Length: 2\r\nRetry-After: 0\r\nConnection: close\r\n\r\n{{}}"
        );
        drop(client.write_all(answer.as_bytes()).await);
        return;
    }
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    // Another place each time.
    let mut left = if trouble == Trouble::Cuts { 200 + number * 7919 % 60_000 } else { u64::MAX };
    let mut back = vec![0; 16 << 10];
    loop {
        let (bytes, is_answer) = tokio::select! {
            read = client.read(&mut buffer) => (read.map(|count| buffer[..count].to_vec()), false),
            read = server.read(&mut back) => (read.map(|count| back[..count].to_vec()), true),
        };
        let Ok(mut bytes) = bytes else { return };
        if bytes.is_empty() || trouble == Trouble::Swallows && is_answer {
            return;
        }
        if trouble == Trouble::Delays {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if trouble == Trouble::Garbles && is_answer {
            // What JSON and heads are made of; letters within texts would be other documents, which no protocol without TLS notices.
            bytes.iter_mut().filter(|byte| matches!(byte, b'{' | b':')).for_each(|byte| *byte = b'~');
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let to = if is_answer { &mut client } else { &mut server };
        if to.write_all(&bytes[..most]).await.is_err() {
            return;
        }
        left -= most as u64;
        if left == 0 {
            return;
        }
    }
}
