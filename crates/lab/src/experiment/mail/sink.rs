//! A mail server that keeps nothing: it looks at each message, and notes that it came.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::driver::{Failure, FoundMessage, Ledger, Scan, Wire};

/// What becomes of mail for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::experiment) enum Manner {
    #[default]
    Takes,
    /// Each recipient is to be tried again later.
    Defers,
    /// The whole server has no time.
    Away,
}

impl std::str::FromStr for Manner {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "takes" => Ok(Self::Takes),
            "defers" => Ok(Self::Defers),
            "away" => Ok(Self::Away),
            _ => Err(format!("a sink takes, defers or is away; it is not {word}")),
        }
    }
}

#[derive(Debug, Default)]
struct SinkState {
    manner: Mutex<Manner>,
    ledger: Mutex<Option<Arc<Ledger>>>,
}

/// It ends when this is dropped.
#[derive(Debug)]
pub(in crate::experiment) struct Sink {
    pub(in crate::experiment) address: SocketAddr,
    state: Arc<SinkState>,
    task: JoinHandle<()>,
}

impl Sink {
    /// Listens on a port of this machine.
    pub(in crate::experiment) async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(SinkState::default());
        let served = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&served);
                // A server that is killed cuts its connections off.
                tokio::spawn(async move { drop(serve(stream, &state).await) });
            }
        });
        Ok(Self { address, state, task })
    }

    /// From now on it is so.
    pub(in crate::experiment) fn behave(&self, manner: Manner) {
        *self.state.manner.lock() = manner;
    }

    /// Whose messages it notes from now on.
    pub(in crate::experiment) fn note(&self, ledger: Arc<Ledger>) {
        *self.state.ledger.lock() = Some(ledger);
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: TcpStream, state: &SinkState) -> Result<(), Failure> {
    let mut wire = Wire::of(stream);
    if *state.manner.lock() == Manner::Away {
        return wire.write(b"421 4.3.2 come back later\r\n").await;
    }
    wire.write(b"220 sink.invalid ESMTP\r\n").await?;
    let mut recipients: Vec<String> = Vec::new();
    loop {
        let line = wire.line_with_end().await?;
        let line = String::from_utf8_lossy(&line);
        let reply: &[u8] = match line.get(..4).unwrap_or_default().to_ascii_uppercase().as_str() {
            "EHLO" => b"250-sink.invalid\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES\r\n",
            "MAIL" => {
                recipients.clear();
                b"250 2.1.0 ok\r\n"
            }
            "RCPT" if *state.manner.lock() != Manner::Takes => b"451 4.7.1 try again later\r\n",
            "RCPT" => {
                let address = line.split(['<', '>']).nth(1).unwrap_or_default();
                recipients.push(address.split('@').next().unwrap_or_default().to_owned());
                b"250 2.1.5 ok\r\n"
            }
            "DATA" if recipients.is_empty() => b"554 5.5.1 for nobody\r\n",
            "DATA" => {
                wire.write(b"354 go on\r\n").await?;
                let scan = text(&mut wire).await?;
                state.take(&scan, &recipients);
                b"250 2.0.0 taken\r\n"
            }
            "QUIT" => return wire.write(b"221 2.0.0 bye\r\n").await,
            _ => b"250 2.0.0 ok\r\n",
        };
        wire.write(reply).await?;
    }
}

/// Reads a message to the line that ends it (RFC 5321, section 4.5.2).
async fn text(wire: &mut Wire) -> Result<Scan, Failure> {
    let mut scan = Scan::new();
    loop {
        let line = wire.line_with_end().await?;
        if line == b".\r\n" {
            scan.finish();
            return Ok(scan);
        }
        scan.feed(line.strip_prefix(b".").unwrap_or(&line));
    }
}

impl SinkState {
    fn take(&self, scan: &Scan, recipients: &[String]) {
        let Some(ledger) = self.ledger.lock().clone() else { return };
        for recipient in recipients {
            if let Some(found) = FoundMessage::of(scan, recipient) {
                ledger.found(&found, recipient);
            }
        }
    }
}
