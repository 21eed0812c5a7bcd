//! CouchDB's interface as a protocol of ports, and servers that speak it alone.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use scrinium_port::{Arrival, Ending, Port, PortSettings, Ports, Protocol};

use crate::connection;
use crate::database_updates;
use crate::port_options::PortOptions;
use crate::standing;
use crate::state::HttpState;

/// CouchDB's interface at one port.
struct HttpProtocol {
    options: Arc<PortOptions>,
    state: HttpState,
}

impl Protocol for HttpProtocol {
    fn serve(&self, arrival: Arrival, ending: Ending) -> BoxFuture<'static, ()> {
        let (options, state) = (Arc::clone(&self.options), self.state.clone());
        async move { connection::serve(arrival, options, &state, ending).await }.boxed()
    }
}

/// A port at which `state` is served, to be bound together with those of other protocols; [`follow`] runs alongside them.
#[must_use]
pub fn http_port(mut options: PortOptions, state: &HttpState) -> Port {
    options.tls = options.tls.map(offer_protocols);
    let settings = PortSettings {
        listen: options.listen,
        tls: options.tls.clone(),
        trusted_proxies: options.trusted_proxies.clone(),
        proxy_header_required: false,
        greeting_timeout_ms: options.read_timeout_ms,
    };
    let protocol = HttpProtocol { options: Arc::new(options), state: state.clone() };
    Port { settings, protocol: Arc::new(protocol), counters: state.port_counters.clone() }
}

/// What runs for as long as ports of `state` do: answers and feeds under way end when somebody may not be served any more,
/// and all feeds when `shutdown` completes.
pub async fn follow(state: HttpState, shutdown: impl Future<Output = ()>) {
    tokio::spawn(standing::follow(state.clone()));
    tokio::spawn(database_updates::follow(state.clone()));
    shutdown.await;
    state.stop();
}

/// Ports that are bound, and take connections once [`Server::run`] is called.
pub struct Server {
    state: HttpState,
    ports: Ports,
}

impl Server {
    /// Binds all ports, or none.
    ///
    /// # Errors
    /// The system's, with the address that could not be bound.
    pub fn bind(ports: Vec<PortOptions>, state: HttpState) -> io::Result<Self> {
        let ports = ports.into_iter().map(|options| http_port(options, &state)).collect();
        Ok(Self { ports: Ports::bind(ports, state.options.accounts.clone())?, state })
    }

    /// Where the ports listen, in the order they were given.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.ports.addresses()
    }

    /// Answers requests until `shutdown` completes, then lets requests under way finish for at most
    /// `grace`; feeds end at once.
    pub async fn run(self, shutdown: impl Future<Output = ()>, grace: Duration) {
        self.ports.run(follow(self.state, shutdown), grace).await;
    }
}

fn offer_protocols(tls: Arc<rustls::ServerConfig>) -> Arc<rustls::ServerConfig> {
    if !tls.alpn_protocols.is_empty() {
        return tls;
    }
    let mut tls = rustls::ServerConfig::clone(&tls);
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Arc::new(tls)
}
