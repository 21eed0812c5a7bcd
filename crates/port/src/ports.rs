//! Where the server listens, how connections come in, and how it stops.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use scrinium_accounting::{Accounts, AddressRange, ConnectionRefusal, Holder};
use tokio::sync::{Notify, mpsc, watch};

use crate::counters::PortCounters;
use crate::ending::{Ending, raised};
use crate::link::Link;
use crate::listener::Listener;
use crate::peer::Peer;
use crate::proxy_header::{self, Beginning, Rewound};
use crate::socket::Socket;
use crate::stream::{PlainStream, PortStream};

/// How long to rest when the system cannot give another connection (out of file handles).
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// What speaks with those who come in by a port.
pub trait Protocol: Send + Sync + 'static {
    /// Serves one connection until the client leaves, it is shed ([`Link::shed`]) or the server ends.
    fn serve(&self, arrival: Arrival, ending: Ending) -> BoxFuture<'static, ()>;
}

/// A connection from outside.
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

/// A socket of the file system to be bound: programs of this machine come in there, without TLS, and count for nobody. They have the
/// loopback address.
pub struct SocketPort {
    /// The file; its owner and group may connect.
    pub path: PathBuf,
    /// Who speaks there.
    pub protocol: Arc<dyn Protocol>,
    /// What it counts.
    pub counters: PortCounters,
}

/// Ports that are bound, and take connections once [`Ports::run`] is called.
pub struct Ports {
    accounts: Accounts,
    bound: Vec<(Listener, Arc<Port>)>,
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
            let cannot = |error: io::Error| {
                io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
            };
            let listener = Listener::of_address(address).map_err(cannot)?;
            addresses.push(listener.local_address().unwrap_or(address));
            bound.push((listener, Arc::new(port)));
        }
        Ok(Self { accounts, bound, addresses })
    }

    /// Binds a socket of the file system as well.
    ///
    /// # Errors
    /// The system's, with the file's path; somebody else listens there, for one.
    pub fn bind_socket(&mut self, socket: SocketPort) -> io::Result<()> {
        let SocketPort { path, protocol, counters } = socket;
        let listener = Listener::of_file(&path).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot listen on {}: {error}", path.display()))
        })?;
        let settings = PortSettings {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            tls: None,
            trusted_proxies: Vec::new(),
            proxy_header_required: false,
            greeting_timeout_ms: 0,
        };
        self.bound.push((listener, Arc::new(Port { settings, protocol, counters })));
        Ok(())
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

/// Takes connections of one port until the server stops.
async fn accept(listener: Listener, port: Arc<Port>, accounts: Accounts, mut ending: Ending) {
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
async fn admit(
    from: Option<SocketAddr>,
    port: &Port,
    accounts: &Accounts,
    ending: &mut Ending,
) -> Option<Arc<Link>> {
    let settings = &port.settings;
    let address = from.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |from| from.ip());
    let peer = Peer::new(address, settings.tls.is_some(), &settings.trusted_proxies);
    // A trusted proxy's connections are those of its clients, and those of a socket nobody's.
    let is_of_network = from.is_some() && !peer.trusted;
    let holder = is_of_network.then(|| Holder::Network(accounts.network(peer.address)));
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

async fn serve(stream: Socket, link: Arc<Link>, port: Arc<Port>, accounts: Accounts, ending: Ending) {
    if stream.hurry().is_err() {
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
async fn begin(stream: Socket, link: Arc<Link>, port: &Port, accounts: &Accounts) -> Option<Arrival> {
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
    stream: Socket,
    link: Arc<Link>,
    port: &Port,
    accounts: &Accounts,
    patience: Duration,
) -> Option<(PlainStream, Arc<Link>)> {
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
