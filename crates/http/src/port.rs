//! Ports: where the server listens, with which switches, and how it stops.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use scrinium_accounting::{ConnectionRefusal, Holder};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc, watch};

use crate::client::Peer;
use crate::connection::{self, Link};
use crate::ending::{Ending, raised};
use crate::port_options::PortOptions;
use crate::standing;
use crate::state::HttpState;

/// Connections that the system may hold for us before we accept them.
const BACKLOG: u32 = 4096;

/// How long to rest when the system cannot give another connection (out of file handles).
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// Ports that are bound, and take connections once [`Server::run`] is called.
pub struct Server {
    state: HttpState,
    ports: Vec<(TcpListener, Arc<PortOptions>)>,
    addresses: Vec<SocketAddr>,
}

impl Server {
    /// Binds all ports, or none.
    ///
    /// # Errors
    /// The system's, with the address that could not be bound.
    pub fn bind(ports: Vec<PortOptions>, state: HttpState) -> io::Result<Self> {
        let mut bound = Vec::with_capacity(ports.len());
        let mut addresses = Vec::with_capacity(ports.len());
        for mut options in ports {
            let listener = listen(options.listen).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot listen on {}: {error}", options.listen))
            })?;
            addresses.push(listener.local_addr()?);
            options.tls = options.tls.map(offer_protocols);
            bound.push((listener, Arc::new(options)));
        }
        Ok(Self { state, ports: bound, addresses })
    }

    /// Where the ports listen, in the order they were given.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Answers requests until `shutdown` completes, then lets requests under way finish for at most
    /// `grace`; feeds end at once.
    pub async fn run(self, shutdown: impl Future<Output = ()>, grace: Duration) {
        let aborting = watch::Sender::new(false);
        let (alive, mut last_gone) = mpsc::channel(1);
        let ending = Ending::new(self.state.stopping(), aborting.subscribe(), alive);
        for (listener, options) in self.ports {
            tokio::spawn(accept(listener, options, self.state.clone(), ending.clone()));
        }
        drop(ending);
        tokio::spawn(standing::follow(self.state.clone()));
        shutdown.await;
        self.state.stop();
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

fn offer_protocols(tls: Arc<rustls::ServerConfig>) -> Arc<rustls::ServerConfig> {
    if !tls.alpn_protocols.is_empty() {
        return tls;
    }
    let mut tls = rustls::ServerConfig::clone(&tls);
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Arc::new(tls)
}

/// Takes connections of one port until the server stops.
async fn accept(listener: TcpListener, options: Arc<PortOptions>, state: HttpState, mut ending: Ending) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = raised(&mut ending.stopping) => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Some(link) = admit(peer, &options, &state, &mut ending).await else { continue };
                tokio::spawn(serve(stream, link, Arc::clone(&options), state.clone(), ending.clone()));
            }
            Err(error) => {
                tracing::warn!(listen = %options.listen, %error, "a connection could not be accepted");
                state.counters.unaccepted.add(1);
                // The files of one that is idle are what the next one needs.
                state.options.accounts.shed_oldest();
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
}

/// Takes a connection into the accounts. Where the server is full and nobody idle, it waits for the first that goes, so
/// that further ones wait in the system's queue. `None`: its network has as many as it may, all busy.
async fn admit(
    peer: SocketAddr,
    options: &PortOptions,
    state: &HttpState,
    ending: &mut Ending,
) -> Option<Arc<Link>> {
    let peer = Peer::new(peer.ip(), options.tls.is_some(), &options.trusted_proxies);
    let accounts = &state.options.accounts;
    // A trusted proxy's connections are those of its clients.
    let holder = (!peer.trusted).then(|| Holder::Network(accounts.network(peer.address)));
    let shed = Arc::new(Notify::new());
    loop {
        let told = Arc::clone(&shed);
        match accounts.connect(holder.clone(), Arc::new(move || told.notify_one())) {
            Ok(connection) => return Some(Arc::new(Link::new(peer, connection, shed))),
            Err(error @ ConnectionRefusal::HolderFull { .. }) => {
                tracing::debug!(address = %peer.address, %error, "a connection is refused");
                state.counters.refused.add(1);
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

async fn serve(
    stream: TcpStream,
    link: Arc<Link>,
    options: Arc<PortOptions>,
    state: HttpState,
    ending: Ending,
) {
    // Answers are written whole, so that waiting for more to send only delays them.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    state.counters.accepted.add(1);
    state.connections.fetch_add(1, Ordering::Relaxed);
    connection::serve(stream, link, options, &state, ending).await;
    state.connections.fetch_sub(1, Ordering::Relaxed);
}
