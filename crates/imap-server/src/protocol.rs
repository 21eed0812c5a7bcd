//! IMAP as a protocol of ports.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use scrinium_imap::ServerOptions;
use scrinium_port::{Arrival, ConversationSettings, Ending, PortSecurity, Protocol, converse};

use crate::connection::Connection;
use crate::hiding::{HiddenCapability, Hiding};
use crate::surroundings::MailAccess;

/// How long a client may take for 16 KB of what is ready.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// IMAP at ports.
pub struct ImapProtocol {
    shared: Arc<SharedProtocol>,
}

/// What the connections of a port share.
pub(crate) struct SharedProtocol {
    pub(crate) session: Arc<ServerOptions>,
    /// For those of this machine, who may log in without TLS.
    pub(crate) local_session: Arc<ServerOptions>,
    pub(crate) settings: Arc<ConversationSettings>,
    pub(crate) access: MailAccess,
    pub(crate) hiding: Arc<Hiding>,
}

impl ImapProtocol {
    /// With limits, times, who we are, and what is hidden from whom. Without a certificate the session does not offer STARTTLS.
    #[must_use]
    pub fn new(
        access: MailAccess,
        mut session: ServerOptions,
        hidden: Vec<HiddenCapability>,
        security: PortSecurity,
    ) -> Self {
        let hiding = Hiding::new(hidden);
        session.hidden = session.hidden.and(hiding.hidden_from_everybody());
        session.has_certificate = security.tls.is_some();
        session.has_tokens = access.0.tokens.is_some();
        let local_session = ServerOptions { requires_tls: false, is_local: true, ..session.clone() };
        let settings = ConversationSettings {
            security,
            clock: access.0.clock.clone(),
            tls_timeout: Duration::from_millis(session.times.tls_ms),
            write_timeout: WRITE_TIMEOUT,
        };
        let shared = SharedProtocol {
            session: Arc::new(session),
            local_session: Arc::new(local_session),
            settings: Arc::new(settings),
            access,
            hiding: Arc::new(hiding),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Protocol for ImapProtocol {
    fn serve(&self, arrival: Arrival, ending: Ending) -> BoxFuture<'static, ()> {
        let settings = Arc::clone(&self.shared.settings);
        let secrecy = settings.security.secrecy(&arrival.stream, &arrival.link);
        let connection = Connection::new(Arc::clone(&arrival.link), secrecy, &self.shared);
        converse(arrival, connection, settings, ending).boxed()
    }
}
