//! Connections to other servers, shared by all replications.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::{Client, Proxy, Url, redirect};
use rustls::{ClientConfig, RootCertStore};

use super::address::{AddressRules, CheckedNames};
use super::login::SharedSession;
use crate::error::{ErrorKind, ReplicationError, Result};

/// An end that says nothing for so long is taken for gone. Feeds that wait send a line more often than that.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(90);

/// An end that cannot be connected to within this time is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Connections to one host that are kept while nothing is asked.
const IDLE_CONNECTIONS: usize = 8;

/// Different proxies, at most; more are not kept.
const PROXIES_MAX: usize = 64;

/// Connections to other servers. Clones share them.
#[derive(Clone)]
pub struct Transport(Arc<Shared>);

struct Shared {
    rules: Arc<AddressRules>,
    clients: Mutex<HashMap<(Option<String>, bool), Client>>,
    sessions: Mutex<HashMap<String, SharedSession>>,
    roots: OnceLock<RootCertStore>,
    further_roots: Vec<Vec<u8>>,
}

impl Transport {
    /// Connections that these rules allow.
    #[must_use]
    pub fn new(rules: AddressRules) -> Self {
        Self::trusting(rules, Vec::new())
    }

    /// The same, which believes certificates of these authorities (DER), next to those that the system does.
    #[must_use]
    pub fn trusting(rules: AddressRules, further_roots: Vec<Vec<u8>>) -> Self {
        Self(Arc::new(Shared {
            rules: Arc::new(rules),
            clients: Mutex::default(),
            sessions: Mutex::default(),
            roots: OnceLock::new(),
            further_roots,
        }))
    }

    /// Refuses what need not be looked up: another scheme, and addresses that are not allowed.
    pub(crate) fn check(&self, url: &Url) -> Result<()> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ReplicationError::order(
                "A database is named by its name, or by a URL of http or https.",
            ));
        }
        let host = url.host_str().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse();
        let Ok(address) = literal else { return Ok(()) };
        let refused = |reason| ReplicationError::new(ErrorKind::Forbidden, reason);
        self.0.rules.check(address, self.is_own_port(url)).map_err(refused)
    }

    fn is_own_port(&self, url: &Url) -> bool {
        url.port_or_known_default().is_some_and(|port| self.0.rules.is_own_port(port))
    }

    /// The session of a login at a server: one for all replications with it.
    pub(crate) fn session(&self, key: String) -> SharedSession {
        let mut sessions = self.0.sessions.lock();
        if !sessions.contains_key(&key) {
            // Those that no replication uses any more.
            sessions.retain(|_, session| Arc::strong_count(session) > 1);
        }
        Arc::clone(sessions.entry(key).or_default())
    }

    /// The client for an address, through a proxy if there is one.
    pub(crate) fn client(&self, url: &Url, proxy: Option<&Url>) -> Result<Client> {
        self.check(url)?;
        if let Some(proxy) = proxy {
            self.check(proxy)?;
        }
        // A proxy looks the host's name up by itself.
        let at_own_port = proxy.map_or_else(|| self.is_own_port(url), |_| false);
        let key = (proxy.map(ToString::to_string), at_own_port);
        if let Some(client) = self.0.clients.lock().get(&key) {
            return Ok(client.clone());
        }
        let client = self.0.build(proxy, at_own_port)?;
        let mut clients = self.0.clients.lock();
        if clients.len() < PROXIES_MAX {
            clients.insert(key, client.clone());
        }
        Ok(client)
    }
}

impl Shared {
    fn build(&self, proxy: Option<&Url>, at_own_port: bool) -> Result<Client> {
        let wrong = |error: &dyn std::fmt::Display| {
            ReplicationError::new(ErrorKind::Unavailable, format!("Connections cannot be made: {error}"))
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&error))?
            .with_root_certificates(self.roots().clone())
            .with_no_client_auth();
        let names = CheckedNames { rules: Arc::clone(&self.rules), at_own_port };
        let mut builder = Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(Arc::new(names))
            // Followed by hand, so that each step is looked at.
            .redirect(redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .tcp_keepalive(READ_TIMEOUT)
            .tcp_nodelay(true)
            .http1_only()
            .user_agent(concat!("Scrinium-Replication/", env!("CARGO_PKG_VERSION")));
        if let Some(proxy) = proxy {
            builder = builder.proxy(proxy_of(proxy)?);
        }
        builder.build().map_err(|error| wrong(&error))
    }

    /// Read once: the system's certificates are some hundred files.
    fn roots(&self) -> &RootCertStore {
        self.roots.get_or_init(|| {
            let mut roots = RootCertStore::empty();
            let found = rustls_native_certs::load_native_certs();
            for error in &found.errors {
                tracing::warn!(%error, "a certificate of the system cannot be read");
            }
            roots.add_parsable_certificates(found.certs);
            roots.add_parsable_certificates(self.further_roots.iter().map(|der| der.clone().into()));
            roots
        })
    }
}

fn proxy_of(url: &Url) -> Result<Proxy> {
    let wrong = |_| ReplicationError::order("The proxy is no URL of http or https.");
    let mut plain = url.clone();
    // Neither fails for URLs that have a host.
    let cleared = plain.set_username("").and_then(|()| plain.set_password(None));
    cleared.map_err(|()| ReplicationError::order("The proxy is no URL of http or https."))?;
    let proxy = Proxy::all(plain).map_err(wrong)?;
    if url.username().is_empty() {
        return Ok(proxy);
    }
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    Ok(proxy.basic_auth(&decoded(url.username()), &decoded(url.password().unwrap_or_default())))
}
