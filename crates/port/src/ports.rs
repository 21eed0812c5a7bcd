//! Where the server listens, how connections come in, and how it stops.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use scrinium_accounting::{Accounts, AddressRange, ConnectionRefusal, Holder};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc, watch};

use crate::counters::PortCounters;
use crate::ending::{Ending, raised};
use crate::link::Link;
use crate::peer::Peer;
use crate::proxy_header::{self, Beginning, Rewound};
use crate::stream::PortStream;

/// Connections that the system may hold for us before we accept them.
const BACKLOG: u32 = 4096;

/// How long to rest when the system cannot give another connection (out of file handles).
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// What speaks with those who come in by a port.
pub trait Protocol: Send + Sync + 'static {
    /// Serves one connection until the client leaves, it is shed ([`Link::shed`]) or the server ends.
    fn serve(&self, arrival: Arrival, ending: Ending) -> BoxFuture<'static, ()>;
}

/// A connection that has come in.
pub struct Arrival {
    /// Its bytes, behind a proxy's header and the greeting of TLS.
    pub stream: PortStream,
    /// Who is at the other end, and whose account it is.
    pub link: Arc<Link>,
}

/// How one port listens.
#[derive(Clone)]
pub struct PortSettings {
    /// Address and number; number 0 takes a free one.
    pub listen: SocketAddr,
    /// TLS from the first byte on; `None` for a port that is never encrypted, or later ([`PortStream::encrypt`]).
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Proxies that are believed when a PROXY header of theirs says who comes.
    pub trusted_proxies: Vec<AddressRange>,
    /// Whether a connection of these has to begin with that header. Where the server speaks first it has to, or such a
    /// connection would wait for a header that never comes.
    pub proxy_header_required: bool,
    /// How long a proxy's header and the greeting of TLS may take, each, in milliseconds.
    pub greeting_timeout_ms: u64,
}

/// A port to be bound.
pub struct Port {
    /// How it listens.
    pub settings: PortSettings,
    /// Who speaks there.
    pub protocol: Arc<dyn Protocol>,
    /// What it counts.
    pub counters: PortCounters,
}

/// Ports that are bound, and take connections once [`Ports::run`] is called.
pub struct Ports {
    accounts: Accounts,
    bound: Vec<(TcpListener, Arc<Port>)>,
    addresses: Vec<SocketAddr>,
}

impl Ports {
    /// Binds all ports, or none.
    ///
    /// # Errors
    /// The system's, with the address that could not be bound.
    pub fn bind(ports: Vec<Port>, accounts: Accounts) -> io::Result<Self> {
        let mut bound = Vec::with_capacity(ports.len());
        let mut addresses = Vec::with_capacity(ports.len());
        for port in ports {
            let address = port.settings.listen;
            let listener = listen(address).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
            })?;
            addresses.push(listener.local_addr()?);
            bound.push((listener, Arc::new(port)));
        }
        Ok(Self { accounts, bound, addresses })
    }

    /// Where the ports listen, in the order they were given.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Serves until `shutdown` completes, then lets what is under way finish for at most `grace`.
    pub async fn run(self, shutdown: impl Future<Output = ()>, grace: Duration) {
        let (stopping, aborting) = (watch::Sender::new(false), watch::Sender::new(false));
        let (alive, mut last_gone) = mpsc::channel(1);
        let ending = Ending::new(stopping.subscribe(), aborting.subscribe(), alive);
        for (listener, port) in self.bound {
            tokio::spawn(accept(listener, port, self.accounts.clone(), ending.clone()));
        }
        drop(ending);
        shutdown.await;
        stopping.send_replace(true);
        if tokio::time::timeout(grace, last_gone.recv()).await.is_err() {
            tracing::warn!(
                grace_ms = grace.as_millis(),
                "requests were still in progress and are interrupted"
            );
            aborting.send_replace(true);
            last_gone.recv().await;
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Takes connections of one port until the server stops.
async fn accept(listener: TcpListener, port: Arc<Port>, accounts: Accounts, mut ending: Ending) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = raised(&mut ending.stopping) => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Some(link) = admit(peer, &port, &accounts, &mut ending).await else { continue };
                tokio::spawn(serve(stream, link, Arc::clone(&port), accounts.clone(), ending.clone()));
            }
            Err(error) => {
                tracing::warn!(listen = %port.settings.listen, %error, "a connection could not be accepted");
                port.counters.unaccepted.add(1);
                // The files of one that is idle are what the next one needs.
                accounts.shed_oldest();
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
}

/// Takes a connection into the accounts. Where the server is full and nobody idle, it waits for the first that goes, so
/// that further ones wait in the system's queue. `None`: its network has as many as it may, all busy.
async fn admit(peer: SocketAddr, port: &Port, accounts: &Accounts, ending: &mut Ending) -> Option<Arc<Link>> {
    let settings = &port.settings;
    let peer = Peer::new(peer.ip(), settings.tls.is_some(), &settings.trusted_proxies);
    // A trusted proxy's connections are those of its clients.
    let holder = (!peer.trusted).then(|| Holder::Network(accounts.network(peer.address)));
    let shed = Arc::new(Notify::new());
    loop {
        let told = Arc::clone(&shed);
        match accounts.connect(holder.clone(), Arc::new(move || told.notify_one())) {
            Ok(connection) => return Some(Arc::new(Link::new(peer, connection, shed))),
            Err(error @ ConnectionRefusal::HolderFull { .. }) => {
                tracing::debug!(address = %peer.address, %error, "a connection is refused");
                port.counters.refused.add(1);
                return None;
            }
            Err(ConnectionRefusal::ServerFull { .. }) => {
                let freed = tokio::time::timeout(ACCEPT_REST, accounts.freed());
                tokio::select! {
                    biased;
                    () = raised(&mut ending.stopping) => return None,
                    _ = freed => {}
                }
            }
        }
    }
}

async fn serve(stream: TcpStream, link: Arc<Link>, port: Arc<Port>, accounts: Accounts, ending: Ending) {
    // Answers are written whole, so that waiting for more to send only delays them.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let open = port.counters.open();
    let mut stopping = ending.stopping.clone();
    let begun = tokio::select! {
        begun = begin(stream, Arc::clone(&link), &port, &accounts) => begun,
        () = link.shed() => None,
        () = raised(&mut stopping) => None,
    };
    drop(link);
    if let Some(arrival) = begun {
        port.protocol.serve(arrival, ending).await;
    }
    drop(open);
}

/// Reads a proxy's header and greets by TLS, where these are due.
async fn begin(stream: TcpStream, link: Arc<Link>, port: &Port, accounts: &Accounts) -> Option<Arrival> {
    let patience = Duration::from_millis(port.settings.greeting_timeout_ms);
    let (stream, link) = behind_proxy(stream, link, port, accounts, patience).await?;
    let stream = PortStream::Plain(stream);
    let Some(tls) = &port.settings.tls else { return Some(Arrival { stream, link }) };
    match stream.encrypt(tls, patience).await {
        Ok(stream) => {
            port.counters.greetings.add(1);
            Some(Arrival { stream, link })
        }
        Err(error) => {
            tracing::debug!(%error, "a TLS handshake failed");
            None
        }
    }
}

/// The stream behind a trusted proxy's header, and the client that it names. `None`: the header is broken or too slow, or
/// that client's network has too many connections.
async fn behind_proxy(
    stream: TcpStream,
    link: Arc<Link>,
    port: &Port,
    accounts: &Accounts,
    patience: Duration,
) -> Option<(Rewound<TcpStream>, Arc<Link>)> {
    if !link.peer.trusted {
        return Some((Rewound::whole(stream), link));
    }
    let (stream, beginning) = match tokio::time::timeout(patience, proxy_header::read(stream)).await {
        Ok(Ok(read)) => read,
        Ok(Err(error)) => {
            tracing::warn!(proxy = %link.peer.address, %error, "a trusted proxy sent a broken PROXY header");
            return None;
        }
        Err(_) => return None,
    };
    let claim = match beginning {
        Beginning::Client(claim) => claim,
        Beginning::Other if port.settings.proxy_header_required => {
            tracing::warn!(proxy = %link.peer.address, "a trusted proxy sent no PROXY header");
            return None;
        }
        Beginning::Own | Beginning::Other => return Some((stream, link)),
    };
    let Some(link) = link.of(claim, &port.settings, accounts) else {
        port.counters.refused.add(1);
        return None;
    };
    Some((stream, Arc::new(link)))
}
