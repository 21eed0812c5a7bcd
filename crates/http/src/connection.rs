//! One connection: a proxy's header, TLS where it is on, HTTP/1.1 or 2, limits, and a graceful end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use parking_lot::Mutex;
use scrinium_accounting::{Account, Accounts, Connection, ConnectionRefusal, Holder};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use crate::client::Peer;
use crate::delivery::StreamExecutor;
use crate::ending::{Ending, raised};
use crate::head::MOST_HEADERS;
use crate::patience::{Clock, InFlight, Patient, Times};
use crate::port_options::PortOptions;
use crate::proxy_header::{self, Rewound};
use crate::service;
use crate::state::HttpState;

/// Hyper's least buffer for a head.
const LEAST_BUFFER_BYTES: usize = 8192;

/// What HTTP/2 may buffer of one stream's answer.
const STREAM_SEND_BUFFER_BYTES: usize = 64 << 10;

/// How often a silent HTTP/2 client is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(45);

/// A connection as its requests see it: who is at the other end, and whose account it is.
pub(crate) struct Link {
    pub(crate) peer: Peer,
    pub(crate) connection: Arc<Connection>,
    /// Told when the connection is shed.
    shed: Arc<Notify>,
    /// The account of the last request; the next one is nearly always of the same holder.
    account: Mutex<Option<Account>>,
}

impl Link {
    pub(crate) fn new(peer: Peer, connection: Arc<Connection>, shed: Arc<Notify>) -> Self {
        Self { peer, connection, shed, account: Mutex::new(None) }
    }

    /// The account of one who sends a request over this connection. From then on the connection counts for a person who
    /// has logged in; one of a trusted proxy is everybody's.
    pub(crate) fn account(&self, holder: &Holder, accounts: &Accounts) -> Account {
        let mut last = self.account.lock();
        if let Some(account) = last.as_ref().filter(|account| account.holder() == holder) {
            return account.clone();
        }
        let account = accounts.account(holder);
        *last = Some(account.clone());
        drop(last);
        if !self.peer.trusted
            && !matches!(holder, Holder::Network(_))
            && let Err(error) = self.connection.belongs_to(holder)
        {
            tracing::debug!(?holder, %error, "a connection stays its network's");
        }
        account
    }

    /// The same connection, of the client that a PROXY header names.
    fn of(&self, claim: proxy_header::Claim, port: &PortOptions) -> Self {
        let secure = claim.secure.unwrap_or(self.peer.secure);
        let peer = Peer::new(claim.address, secure, &port.trusted_proxies);
        Self::new(peer, Arc::clone(&self.connection), Arc::clone(&self.shed))
    }
}

/// Serves `stream` until the client leaves, the connection is shed or the server stops.
pub(crate) async fn serve(
    stream: TcpStream,
    link: Arc<Link>,
    port: Arc<PortOptions>,
    state: &HttpState,
    ending: Ending,
) {
    let shed = Arc::clone(&link.shed);
    let mut stopping = ending.stopping.clone();
    let begun = tokio::select! {
        begun = begin(stream, link, &port, state) => begun,
        () = shed.notified() => return,
        () = raised(&mut stopping) => return,
    };
    match begun {
        Some(Begun::Plain(stream, link)) => serve_plain(stream, link, port, state, ending).await,
        Some(Begun::Encrypted(stream, link)) => {
            state.counters.greetings.add(1);
            Box::pin(serve_plain(*stream, link, port, state, ending)).await;
        }
        None => {}
    }
}

/// A connection behind its proxy's header and the TLS greeting.
enum Begun {
    Plain(Rewound<TcpStream>, Arc<Link>),
    Encrypted(Box<tokio_rustls::server::TlsStream<Rewound<TcpStream>>>, Arc<Link>),
}

async fn begin(stream: TcpStream, link: Arc<Link>, port: &PortOptions, state: &HttpState) -> Option<Begun> {
    let patience = Duration::from_millis(port.read_timeout_ms);
    let (stream, link) = behind_proxy(stream, link, port, state, patience).await?;
    let Some(tls) = &port.tls else { return Some(Begun::Plain(stream, link)) };
    let acceptor = TlsAcceptor::from(Arc::clone(tls));
    match tokio::time::timeout(patience, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => Some(Begun::Encrypted(Box::new(stream), link)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a TLS handshake failed");
            None
        }
        Err(_) => {
            tracing::debug!("a TLS handshake took too long");
            None
        }
    }
}

/// The stream behind a trusted proxy's header, and the client that it names. `None`: the header is broken or too slow, or
/// that client's network has too many connections.
async fn behind_proxy(
    stream: TcpStream,
    link: Arc<Link>,
    port: &PortOptions,
    state: &HttpState,
    patience: Duration,
) -> Option<(Rewound<TcpStream>, Arc<Link>)> {
    if !link.peer.trusted {
        return Some((Rewound::whole(stream), link));
    }
    let (stream, claim) = match tokio::time::timeout(patience, proxy_header::read(stream)).await {
        Ok(Ok(read)) => read,
        Ok(Err(error)) => {
            tracing::warn!(proxy = %link.peer.address, %error, "a trusted proxy sent a broken PROXY header");
            return None;
        }
        Err(_) => return None,
    };
    let Some(claim) = claim else { return Some((stream, link)) };
    let link = Arc::new(link.of(claim, port));
    if !link.peer.trusted {
        let holder = Holder::Network(state.options.accounts.network(link.peer.address));
        if let Err(ConnectionRefusal::HolderFull { .. } | ConnectionRefusal::ServerFull { .. }) =
            link.connection.belongs_to(&holder)
        {
            state.counters.refused.add(1);
            return None;
        }
    }
    Some((stream, link))
}

async fn serve_plain<S>(
    stream: S,
    link: Arc<Link>,
    port: Arc<PortOptions>,
    state: &HttpState,
    mut ending: Ending,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let clock = Arc::new(Clock::default());
    let times = Times {
        idle: Duration::from_millis(port.idle_timeout_ms),
        head: Duration::from_millis(port.read_timeout_ms),
        write: Duration::from_millis(port.write_timeout_ms),
    };
    let stream = TokioIo::new(Patient::new(stream, Arc::clone(&clock), times, head_bytes(&port)));
    let streams = StreamExecutor::new(times.write);
    let builder = builder(&port, streams.clone());
    let service = service_fn(|request: Request<Incoming>| {
        let delivery = (request.version() == Version::HTTP_2).then(|| streams.begin());
        let in_flight = InFlight::begin(&clock, &link.connection, delivery);
        service::answer(state.clone(), Arc::clone(&port), Arc::clone(&link), in_flight, request)
    });
    let mut connection = pin!(builder.serve_connection(stream, service));
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = raised(&mut ending.stopping) => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = raised(&mut ending.aborting) => return,
            }
        }
        () = link.shed.notified() => {
            // One that is idle has nothing to lose; a request that came in this moment is answered.
            if !clock.is_busy() {
                return;
            }
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = raised(&mut ending.aborting) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// What the head of a request may have.
fn head_bytes(port: &PortOptions) -> usize {
    port.max_header_bytes.max(LEAST_BUFFER_BYTES)
}

fn builder(port: &PortOptions, streams: StreamExecutor) -> Builder<StreamExecutor> {
    let mut builder = Builder::new(streams);
    builder
        .http1()
        // The stream keeps the time, see `patience`.
        .header_read_timeout(None)
        .max_headers(MOST_HEADERS)
        // A head is held back until it is whole, and must fit then.
        .max_buf_size(head_bytes(port));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(port.max_streams.max(1))
        .max_send_buf_size(STREAM_SEND_BUFFER_BYTES)
        .max_header_list_size(u32::try_from(port.max_header_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(Duration::from_millis(port.read_timeout_ms));
    builder
}
