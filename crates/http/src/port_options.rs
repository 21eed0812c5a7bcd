//! How one port listens, and what it takes.

use std::net::SocketAddr;
use std::sync::Arc;

use scrinium_accounting::AddressRange;

/// One port's switches.
#[derive(Clone, Debug)]
pub struct PortOptions {
    /// Address and number; number 0 takes a free one.
    pub listen: SocketAddr,
    /// TLS, where it is on. Protocols `h2` and `http/1.1` are offered unless the configuration names its own.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Compress answers for clients that take gzip or zstd.
    pub compression: bool,
    /// Origins whose pages may ask (`https://app.example`); `*` is everyone. Empty: CORS is off.
    pub cors_origins: Vec<String>,
    /// Whether pages of those origins may send cookies and passwords; never those of `*`.
    pub cors_credentials: bool,
    /// The longest body held in memory; attachments are streamed and have the database's limit.
    pub max_request_bytes: usize,
    /// The longest head of a request; at least 8,192.
    pub max_header_bytes: usize,
    /// Proxies that are believed when they say who asks, by a PROXY header or in the headers of a request.
    pub trusted_proxies: Vec<AddressRange>,
    /// Requests of one HTTP/2 connection at the same time.
    pub max_streams: u32,
    /// How long a request's head may take, and the pause between two pieces of its body.
    pub read_timeout_ms: u64,
    /// How long a client may take nothing of an answer that is ready, be it a connection's or a stream's of HTTP/2.
    pub write_timeout_ms: u64,
    /// How long a connection may stay without a request.
    pub idle_timeout_ms: u64,
}

impl Default for PortOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 5984)),
            tls: None,
            compression: false,
            cors_origins: Vec::new(),
            cors_credentials: false,
            max_request_bytes: 64 << 20,
            max_header_bytes: 64 << 10,
            trusted_proxies: Vec::new(),
            max_streams: 128,
            read_timeout_ms: 30_000,
            write_timeout_ms: 60_000,
            idle_timeout_ms: 300_000,
        }
    }
}
