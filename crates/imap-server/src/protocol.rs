//! IMAP as a protocol of ports.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use scrinium_accounting::Accounts;
use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_credentials::sasl::ServerEndPoint;
use scrinium_directory::{Directory, Logins, TokenVerifier};
use scrinium_imap::{Capability, ServerOptions};
use scrinium_mail::{MessageComposer, Resolver};
use scrinium_port::{Arrival, Ending, Protocol};
use scrinium_worker::WorkerPool;

use crate::connection::Connection;
use crate::desk::Surroundings;
use crate::message::Messages;
use crate::tracker::Trackers;

/// What is not there yet: what it would ask cannot be answered.
const HIDDEN: [Capability; 4] =
    [Capability::Notify, Capability::Acl, Capability::Metadata, Capability::ListMetadata];

/// What ports of IMAP need.
pub struct ImapOptions {
    /// Limits, times, who we are.
    pub session: ServerOptions,
    /// What STARTTLS encrypts with.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// What log-ins can be bound to of the certificate ([`scrinium_credentials::sasl::server_end_point`]).
    pub server_end_point: Option<ServerEndPoint>,
    /// Who comes from a loopback address may log in without TLS: nobody else hears it.
    pub trusts_loopback: bool,
    /// All databases.
    pub databases: Databases,
    /// The directory.
    pub directory: Arc<Directory>,
    /// Knows people by their addresses.
    pub resolver: Resolver,
    /// Lets people in.
    pub logins: Arc<Logins>,
    /// Knows the providers whose tokens let people in, if there are any.
    pub tokens: Option<Arc<dyn TokenVerifier>>,
    /// What networks and people hold.
    pub accounts: Accounts,
    /// Where questions are answered.
    pub workers: WorkerPool,
    /// The time.
    pub clock: Clock,
}

/// IMAP at ports.
pub struct ImapProtocol {
    shared: Arc<SharedProtocol>,
}

/// What the connections of a port share.
pub(crate) struct SharedProtocol {
    pub(crate) session: Arc<ServerOptions>,
    /// For those of this machine, who may log in without TLS.
    pub(crate) local_session: Arc<ServerOptions>,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) server_end_point: Option<ServerEndPoint>,
    pub(crate) trusts_loopback: bool,
    pub(crate) clock: Clock,
    pub(crate) surroundings: Arc<Surroundings>,
}

impl ImapProtocol {
    /// Without a certificate the session does not offer STARTTLS.
    #[must_use]
    pub fn new(options: ImapOptions) -> Self {
        let mut session = options.session;
        session.has_certificate = options.tls.is_some();
        session.has_tokens = options.tokens.is_some();
        session.hidden = HIDDEN.into_iter().fold(session.hidden, scrinium_imap::CapabilitySet::with);
        let local_session = ServerOptions { requires_tls: false, is_local: true, ..session.clone() };
        let composer = MessageComposer { host: session.host.clone(), resolver: options.resolver.clone() };
        let surroundings = Surroundings {
            databases: options.databases,
            directory: options.directory,
            resolver: options.resolver,
            logins: options.logins,
            tokens: options.tokens,
            accounts: options.accounts,
            workers: options.workers,
            clock: options.clock.clone(),
            messages: Messages::new(composer),
            trackers: Trackers::default(),
            append_bytes: session.limits.message_bytes,
        };
        let shared = SharedProtocol {
            session: Arc::new(session),
            local_session: Arc::new(local_session),
            tls: options.tls,
            server_end_point: options.server_end_point,
            trusts_loopback: options.trusts_loopback,
            clock: options.clock,
            surroundings: Arc::new(surroundings),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Protocol for ImapProtocol {
    fn serve(&self, arrival: Arrival, ending: Ending) -> BoxFuture<'static, ()> {
        Connection::new(arrival, Arc::clone(&self.shared)).serve(ending).boxed()
    }
}
