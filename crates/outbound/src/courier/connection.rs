//! One connection to another server: bytes between a stream and a session, and time.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::ServerName;
use scrinium_clock::Clock;
use scrinium_credentials::sasl::ChannelBindings;
use scrinium_smtp::client::{ClientOptions, ClientRequest, ClientSession, Outcome, Outgoing, Said};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::text::TextSource;

/// Read at a time.
const READ_BYTES: usize = 4 << 10;

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a goodbye may take.
const QUIT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection in the clear or encrypted.
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// What encrypts a connection, and for whom.
#[derive(Clone)]
pub(super) struct Encryption {
    pub(super) config: Arc<rustls::ClientConfig>,
    /// The host, for its certificate.
    pub(super) host: String,
}

impl Encryption {
    async fn encrypt(&self, stream: TcpStream) -> io::Result<Box<TlsStream<TcpStream>>> {
        let name = ServerName::try_from(self.host.clone())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the host's name is no name for TLS"))?;
        let connected = TlsConnector::from(Arc::clone(&self.config)).connect(name, stream);
        let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, connected)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        Ok(Box::new(stream))
    }
}

/// RFC 9266 §4.2: only TLS 1.3 binds.
fn bindings_of(stream: &TlsStream<TcpStream>) -> ChannelBindings {
    let (_, session) = stream.get_ref();
    let is_13 = session.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3);
    let exporter = session.export_keying_material([0; 32], b"EXPORTER-Channel-Binding", Some(b""));
    ChannelBindings { exporter: exporter.ok().filter(|_| is_13), ..ChannelBindings::default() }
}

/// A connection and its session.
pub(super) struct Connection {
    /// `None` only while hands are shaken, and when that failed.
    stream: Option<Stream>,
    session: ClientSession,
    encryption: Encryption,
    clock: Clock,
    read: Vec<u8>,
    pub(super) host: String,
}

impl Connection {
    /// A session over a connection that was made; encrypted from its first byte if `implicit_tls`.
    ///
    /// # Errors
    /// Why hands could not be shaken.
    pub(super) async fn begin(
        stream: TcpStream,
        options: ClientOptions,
        (encryption, implicit_tls): (Encryption, bool),
        clock: &Clock,
    ) -> io::Result<Self> {
        let (stream, bindings) = if implicit_tls {
            let stream = encryption.encrypt(stream).await?;
            let bindings = bindings_of(&stream);
            (Stream::Tls(stream), Some(bindings))
        } else {
            (Stream::Plain(stream), None)
        };
        Ok(Self {
            stream: Some(stream),
            session: ClientSession::new(options, bindings, clock.now_ms()),
            host: encryption.host.clone(),
            encryption,
            clock: clock.clone(),
            read: Vec::with_capacity(READ_BYTES),
        })
    }

    fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// How many recipients the server takes at once, if it says so (RFC 9422).
    pub(super) fn recipients_max(&self) -> Option<usize> {
        let limit = self.session.capabilities().list.iter().find_map(|capability| match capability {
            scrinium_smtp_wire::Capability::Limits(limits) => limits.recipients,
            _ => None,
        });
        limit.and_then(|limit| usize::try_from(limit).ok())
    }

    /// Waits until the server takes a message.
    ///
    /// # Errors
    /// Why it does not.
    pub(super) async fn ready(&mut self) -> Result<(), Said> {
        loop {
            match self.next_request().await {
                Some(ClientRequest::Ready) => return Ok(()),
                Some(ClientRequest::StartTls) => self.start_tls().await,
                Some(ClientRequest::Failed(said)) => return Err(said),
                Some(ClientRequest::Text | ClientRequest::Done(_)) => {}
                // It is closed, and has said why before.
                None => {
                    self.session.disconnected();
                    if let Some(ClientRequest::Failed(said)) = self.session.next(self.now_ms()) {
                        return Err(said);
                    }
                    return Err(lost());
                }
            }
        }
    }

    /// Sends a message to a server that is ready. Gives what became of it for each recipient, and whether the connection can be
    /// used on.
    pub(super) async fn send(&mut self, message: Outgoing, text: &TextSource) -> (Vec<Outcome>, bool) {
        let count = message.recipients.len();
        if !self.session.send(message, self.now_ms()) {
            return (vec![Outcome::Deferred(lost()); count], false);
        }
        let mut offset = 0_u64;
        loop {
            match self.next_request().await {
                Some(ClientRequest::Text) => match text.piece(offset).await {
                    Ok(piece) if piece.is_empty() => self.session.end_text(),
                    Ok(piece) => {
                        offset += piece.len() as u64;
                        self.session.give_text(&piece);
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a queued message cannot be read");
                        self.session.abort_text("The message cannot be read at this moment");
                    }
                },
                Some(ClientRequest::Done(outcomes)) => {
                    return (outcomes, !self.session.is_closed());
                }
                Some(ClientRequest::StartTls | ClientRequest::Ready) => {}
                Some(ClientRequest::Failed(said)) => return (vec![Outcome::Deferred(said); count], false),
                None => return (vec![Outcome::Deferred(lost()); count], false),
            }
        }
    }

    /// Gives up what is under way.
    pub(super) fn give_up(&mut self) -> Option<Vec<Outcome>> {
        self.session.quit(self.now_ms());
        match self.session.next(self.now_ms()) {
            Some(ClientRequest::Done(outcomes)) => Some(outcomes),
            _ => None,
        }
    }

    /// Whether it can bear another message.
    pub(super) fn is_open(&self) -> bool {
        self.stream.is_some() && !self.session.is_closed() && self.session.is_idle()
    }

    /// Whether an idle connection is still there: the server has said nothing, and not closed it.
    pub(super) async fn is_fresh(&mut self) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        let mut byte = [0; 1];
        // Nothing may come while nothing is asked, so that what comes is the end.
        let read = tokio::time::timeout(Duration::ZERO, stream.read(&mut byte)).await;
        read.is_err() && !self.session.is_closed()
    }

    /// Says goodbye.
    pub(super) async fn close(mut self) {
        self.session.quit(self.now_ms());
        let goodbye = async {
            while !self.session.is_closed() {
                if self.next_request().await.is_none() {
                    break;
                }
            }
            if let Some(stream) = &mut self.stream {
                // The server may be gone; then there is nothing to close.
                drop(stream.shutdown().await);
            }
        };
        drop(tokio::time::timeout(QUIT_TIMEOUT, goodbye).await);
    }

    /// What the session wants next; `None` once it is closed.
    async fn next_request(&mut self) -> Option<ClientRequest> {
        loop {
            let request = self.session.next(self.now_ms());
            if self.session.wants_flush() && (!self.flush().await || request.is_none()) {
                // Where its output was full, it may want more now.
                continue;
            }
            if request.is_some() {
                return request;
            }
            if self.session.is_closed() {
                return None;
            }
            self.wait().await;
        }
    }

    async fn start_tls(&mut self) {
        let stream = match self.stream.take() {
            Some(Stream::Plain(stream)) => stream,
            other => {
                self.stream = other;
                return self.session.tls_failed("The connection cannot be encrypted once more");
            }
        };
        match self.encryption.encrypt(stream).await {
            Ok(stream) => {
                let bindings = bindings_of(&stream);
                self.stream = Some(Stream::Tls(stream));
                self.session.tls_started(bindings, self.now_ms());
            }
            Err(error) => self.session.tls_failed(&format!("The TLS handshake failed: {error}")),
        }
    }

    /// Sends all output, and takes what comes meanwhile. Whether it could.
    async fn flush(&mut self) -> bool {
        let output = self.session.take_output();
        let Some(stream) = &mut self.stream else {
            self.session.disconnected();
            return false;
        };
        let mut sent = 0;
        while let Some(rest) = output.get(sent..).filter(|rest| !rest.is_empty()) {
            let now_ms = self.clock.now_ms();
            let wait = Duration::from_millis(self.session.deadline_ms().saturating_sub(now_ms).max(1));
            let (mut reader, mut writer) = tokio::io::split(&mut *stream);
            self.read.clear();
            let mut bounded = (&mut reader).take(READ_BYTES as u64);
            let happened = tokio::select! {
                biased;
                written = writer.write(rest) => Happened::Wrote(written),
                read = bounded.read_buf(&mut self.read) => Happened::Read(read),
                () = tokio::time::sleep(wait) => Happened::Late,
            };
            let now_ms = self.clock.now_ms();
            match happened {
                Happened::Wrote(Ok(written)) if written > 0 => sent += written,
                Happened::Read(Ok(length)) if length > 0 => self.session.receive(&self.read, now_ms),
                Happened::Late => self.session.time_passed(now_ms),
                Happened::Wrote(_) | Happened::Read(_) => return self.hear_the_rest().await,
            }
            if self.session.is_closed() {
                return false;
            }
        }
        if stream.flush().await.is_err() {
            return self.hear_the_rest().await;
        }
        true
    }

    /// The server takes no more; what it has said before it left is heard.
    async fn hear_the_rest(&mut self) -> bool {
        if let Some(stream) = &mut self.stream {
            let mut rest = Vec::with_capacity(READ_BYTES);
            let mut bounded = stream.take(READ_BYTES as u64);
            let read = tokio::time::timeout(QUIT_TIMEOUT, bounded.read_to_end(&mut rest)).await;
            if matches!(read, Ok(Ok(_))) && !rest.is_empty() {
                self.session.receive(&rest, self.clock.now_ms());
            }
        }
        self.session.disconnected();
        false
    }

    /// Waits until something comes, or it is too late.
    async fn wait(&mut self) {
        let wait = Duration::from_millis(self.session.deadline_ms().saturating_sub(self.now_ms()));
        let Some(stream) = &mut self.stream else { return self.session.disconnected() };
        self.read.clear();
        let mut bounded = stream.take(READ_BYTES as u64);
        let read = tokio::time::timeout(wait, bounded.read_buf(&mut self.read)).await;
        let now_ms = self.clock.now_ms();
        match read {
            Ok(Ok(length)) if length > 0 => self.session.receive(&self.read, now_ms),
            Ok(_) => self.session.disconnected(),
            Err(_) => self.session.time_passed(now_ms),
        }
    }
}

enum Happened {
    Wrote(io::Result<usize>),
    Read(io::Result<usize>),
    Late,
}

fn lost() -> Said {
    Said {
        reason: scrinium_smtp::client::Reason::Lost,
        step: None,
        code: None,
        enhanced: scrinium_smtp_wire::EnhancedCode::new(4, 4, 2),
        text: "The connection was lost".to_owned(),
    }
}
