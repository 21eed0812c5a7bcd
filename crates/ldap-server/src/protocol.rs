//! LDAP as a protocol of ports.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use scrinium_accounting::Accounts;
use scrinium_credentials::sasl::ServerEndPoint;
use scrinium_directory::{Directory, Logins};
use scrinium_ldap::SessionOptions;
use scrinium_mail::Resolver;
use scrinium_port::{Arrival, Ending, Protocol};
use scrinium_statistics::{Counter, Registry};
use scrinium_worker::WorkerPool;

use crate::connection::Connection;
use crate::entries::Names;
use crate::search::Searcher;

/// What ports of LDAP need.
pub struct LdapOptions {
    /// The name of the entry below which people and groups are: `dc=example,dc=org`.
    pub base: String,
    /// Entries of one answer at most.
    pub entries_max: usize,
    /// What StartTLS encrypts with.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// What log-ins can be bound to of the certificate ([`scrinium_credentials::sasl::server_end_point`]).
    pub server_end_point: Option<ServerEndPoint>,
    /// Who comes from a loopback address may log in without TLS: nobody else hears it.
    pub trusts_loopback: bool,
    /// Lets people in.
    pub logins: Arc<Logins>,
    /// What networks and people hold.
    pub accounts: Accounts,
    /// The directory.
    pub directory: Arc<Directory>,
    /// Knows people by their addresses.
    pub resolver: Resolver,
    /// Where searches work.
    pub workers: WorkerPool,
}

/// LDAP at ports.
pub struct LdapProtocol {
    shared: Arc<SharedProtocol>,
}

/// What the connections of a port share.
pub(crate) struct SharedProtocol {
    pub(crate) session: SessionOptions,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) server_end_point: Option<ServerEndPoint>,
    pub(crate) trusts_loopback: bool,
    pub(crate) logins: Arc<Logins>,
    pub(crate) accounts: Accounts,
    pub(crate) searcher: Arc<Searcher>,
    pub(crate) workers: WorkerPool,
    pub(crate) searches: Counter,
    pub(crate) limited: Counter,
}

impl LdapProtocol {
    /// `None` where the base is no distinguished name, or the empty one. Registers `LDAP.Searches` and `LDAP.Limited`, searches that
    /// a limit has ended or refused.
    #[must_use]
    pub fn new(options: LdapOptions, statistics: &Registry) -> Option<Self> {
        let names = Names::new(&options.base)?;
        let session = SessionOptions {
            base: options.base,
            entries_max: options.entries_max,
            has_certificate: options.tls.is_some(),
        };
        let searcher = Searcher { directory: options.directory, resolver: options.resolver, names };
        let shared = SharedProtocol {
            session,
            tls: options.tls,
            server_end_point: options.server_end_point,
            trusts_loopback: options.trusts_loopback,
            logins: options.logins,
            accounts: options.accounts,
            searcher: Arc::new(searcher),
            workers: options.workers,
            searches: statistics.counter("LDAP.Searches"),
            limited: statistics.counter("LDAP.Limited"),
        };
        Some(Self { shared: Arc::new(shared) })
    }
}

impl Protocol for LdapProtocol {
    fn serve(&self, arrival: Arrival, ending: Ending) -> BoxFuture<'static, ()> {
        Connection::new(arrival, Arc::clone(&self.shared)).serve(ending).boxed()
    }
}
