//! SMTP as a protocol of ports.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use scrinium_clock::Clock;
use scrinium_credentials::sasl::ServerEndPoint;
use scrinium_port::{Arrival, Ending, Protocol};
use scrinium_smtp::ServerOptions;

use crate::connection::Connection;
use crate::guest::Surroundings;

/// How connections of a port are kept from others' eyes.
#[derive(Clone, Default)]
pub struct PortSecurity {
    /// What STARTTLS encrypts with.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// What log-ins can be bound to of the certificate ([`scrinium_credentials::sasl::server_end_point`]).
    pub server_end_point: Option<ServerEndPoint>,
    /// Who comes from a loopback address may log in without TLS: nobody else hears it.
    pub trusts_loopback: bool,
}

/// SMTP, submission or LMTP at one port.
pub struct SmtpProtocol {
    shared: Arc<SharedProtocol>,
}

/// What the connections of a port share.
pub(crate) struct SharedProtocol {
    pub(crate) options: Arc<ServerOptions>,
    pub(crate) security: PortSecurity,
    pub(crate) surroundings: Arc<dyn Surroundings>,
    pub(crate) clock: Clock,
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
        Self {
            shared: Arc::new(SharedProtocol { options: Arc::new(options), security, surroundings, clock }),
        }
    }
}

impl Protocol for SmtpProtocol {
    fn serve(&self, arrival: Arrival, ending: Ending) -> BoxFuture<'static, ()> {
        Connection::new(arrival, Arc::clone(&self.shared)).serve(ending).boxed()
    }
}
