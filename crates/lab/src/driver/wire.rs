//! A connection that carries lines: bounded, and without a buffer while nothing is on its way.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::failure::{Failure, FailureKind};
use super::tls::Tls;

/// A longer line is a wrong answer.
const LONGEST_LINE_BYTES: usize = 1 << 20;

/// What is read at once. A user who waits holds no buffer.
const READ_BYTES: usize = 8 << 10;

/// How much of an answer is kept in an error's text.
const KEPT_CHARACTERS: usize = 300;

enum Stream {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

/// A stream of bytes, and what was read of it and not yet taken.
pub(crate) struct Wire {
    stream: Stream,
    buffer: Vec<u8>,
    /// Taken already.
    taken: usize,
}

impl Wire {
    pub(super) async fn connect(host: &str, port: u16) -> Result<Self, Failure> {
        let stream = TcpStream::connect((host, port)).await.map_err(|error| broken(&error))?;
        stream.set_nodelay(true).map_err(|error| broken(&error))?;
        Ok(Self { stream: Stream::Plain(stream), buffer: Vec::new(), taken: 0 })
    }

    /// The side of a server, in the clear.
    pub(crate) fn of(stream: TcpStream) -> Self {
        // Only pieces wait a little longer without it.
        drop(stream.set_nodelay(true));
        Self { stream: Stream::Plain(stream), buffer: Vec::new(), taken: 0 }
    }

    /// Goes on encrypted. What the server has sent before it may not count afterwards (RFC 3207, section 6).
    pub(super) async fn encrypt(self, tls: &Tls, host: &str) -> Result<Self, Failure> {
        if self.taken < self.buffer.len() {
            return Err(Failure::wrong("the server spoke on before the connection was encrypted"));
        }
        let Stream::Plain(stream) = self.stream else {
            return Err(Failure::wrong("the connection is encrypted already"));
        };
        let stream = tls
            .connect(host, stream)
            .await
            .map_err(|why| Failure::new(FailureKind::Connection, not_encrypted(host, &why)))?;
        Ok(Self { stream: Stream::Encrypted(Box::new(stream)), buffer: Vec::new(), taken: 0 })
    }

    /// Sends all of it.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = match &mut self.stream {
            Stream::Plain(stream) => stream.write_all(bytes).await,
            Stream::Encrypted(stream) => match stream.write_all(bytes).await {
                Ok(()) => stream.flush().await,
                failed => failed,
            },
        };
        written.map_err(|error| broken(&error))
    }

    /// The next line, without its end.
    pub(super) async fn line(&mut self) -> Result<Vec<u8>, Failure> {
        let mut line = self.line_with_end().await?;
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(line)
    }

    /// The next line, and the LF or CR LF that ends it.
    pub(crate) async fn line_with_end(&mut self) -> Result<Vec<u8>, Failure> {
        let mut searched = 0;
        loop {
            let waiting = self.buffer.get(self.taken..).unwrap_or_default();
            if let Some(end) = waiting.iter().skip(searched).position(|byte| *byte == b'\n') {
                let line = waiting.get(..=searched + end).unwrap_or_default().to_vec();
                self.take_away(searched + end + 1);
                return Ok(line);
            }
            searched = waiting.len();
            if searched > LONGEST_LINE_BYTES {
                return Err(Failure::wrong(format!("a line of more than {LONGEST_LINE_BYTES} bytes")));
            }
            self.read_on().await?;
        }
    }

    /// Hands the next `count` bytes to `sink`, piece by piece.
    pub(super) async fn take(&mut self, count: u64, mut sink: impl FnMut(&[u8])) -> Result<(), Failure> {
        let mut missing = count;
        while missing > 0 {
            let waiting = self.buffer.get(self.taken..).unwrap_or_default();
            let length = usize::try_from(missing).unwrap_or(usize::MAX).min(waiting.len());
            if length == 0 {
                self.read_on().await?;
                continue;
            }
            sink(waiting.get(..length).unwrap_or_default());
            missing -= length as u64;
            self.take_away(length);
        }
        Ok(())
    }

    /// Gives the buffer back.
    fn take_away(&mut self, count: usize) {
        self.taken += count;
        if self.taken >= self.buffer.len() {
            self.buffer = Vec::new();
            self.taken = 0;
        }
    }

    async fn read_on(&mut self) -> Result<(), Failure> {
        // Waiting costs no buffer: it is made when there is something to be put into it.
        if let Stream::Plain(stream) = &self.stream {
            stream.readable().await.map_err(|error| broken(&error))?;
        }
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        self.buffer.reserve(READ_BYTES);
        let read = match &mut self.stream {
            Stream::Plain(stream) => stream.read_buf(&mut self.buffer).await,
            Stream::Encrypted(stream) => stream.read_buf(&mut self.buffer).await,
        };
        match read {
            Ok(0) => Err(Failure::new(FailureKind::Connection, "the server closed the connection")),
            Ok(_) => Ok(()),
            Err(error) => Err(broken(&error)),
        }
    }
}

/// Why there is no encryption, and what to do about it where that can be told.
fn not_encrypted(host: &str, why: &str) -> String {
    // A signature of somebody else of the same name is as good as none.
    let hint = if why.contains("UnknownIssuer") || why.contains("BadSignature") {
        "; nobody whom this machine believes vouches for it: --ca FILE names certificates to believe"
    } else {
        ""
    };
    format!("TLS with {host}: {why}{hint}")
}

fn broken(error: &std::io::Error) -> Failure {
    Failure::new(FailureKind::Connection, error.to_string())
}

/// The beginning of an answer, for an error's text.
pub(super) fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().chars().take(KEPT_CHARACTERS).collect()
}
