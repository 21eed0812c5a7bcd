//! SMTP as a protocol of ports.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use scrinium_clock::Clock;
use scrinium_port::{Arrival, ConversationSettings, Ending, PortSecurity, Protocol, converse};
use scrinium_smtp::ServerOptions;

use crate::connection::Connection;
use crate::guest::Surroundings;

/// How long a client may take nothing of replies that are ready.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// SMTP, submission or LMTP at one port.
pub struct SmtpProtocol {
    shared: Arc<SharedProtocol>,
}

/// What the connections of a port share.
pub(crate) struct SharedProtocol {
    pub(crate) options: Arc<ServerOptions>,
    pub(crate) surroundings: Arc<dyn Surroundings>,
    pub(crate) settings: Arc<ConversationSettings>,
}

impl SmtpProtocol {
    /// Without a certificate the session does not offer STARTTLS.
    #[must_use]
    pub fn new(
        mut options: ServerOptions,
        security: PortSecurity,
        surroundings: Arc<dyn Surroundings>,
        clock: Clock,
    ) -> Self {
        options.has_certificate = security.tls.is_some();
        let settings = ConversationSettings {
            security,
            clock,
            tls_timeout: Duration::from_millis(options.times.tls_ms),
            write_timeout: WRITE_TIMEOUT,
        };
        let shared =
            SharedProtocol { options: Arc::new(options), surroundings, settings: Arc::new(settings) };
        Self { shared: Arc::new(shared) }
    }
}

impl Protocol for SmtpProtocol {
    fn serve(&self, arrival: Arrival, ending: Ending) -> BoxFuture<'static, ()> {
        let settings = Arc::clone(&self.shared.settings);
        let secrecy = settings.security.secrecy(&arrival.stream, &arrival.link);
        let connection = Connection::new(Arc::clone(&arrival.link), secrecy, &self.shared);
        converse(arrival, connection, settings, ending).boxed()
    }
}
