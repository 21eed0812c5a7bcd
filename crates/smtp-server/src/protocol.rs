//! SMTP as a protocol of ports.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use scrinium_clock::Clock;
use scrinium_port::{Arrival, Ending, Protocol};
use scrinium_smtp::ServerOptions;

use crate::connection::Connection;
use crate::guest::Surroundings;

/// SMTP, submission or LMTP at one port.
pub struct SmtpProtocol {
    shared: Arc<SharedProtocol>,
}

/// What the connections of a port share.
pub(crate) struct SharedProtocol {
    pub(crate) options: Arc<ServerOptions>,
    /// For STARTTLS.
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) surroundings: Arc<dyn Surroundings>,
    pub(crate) clock: Clock,
}

impl SmtpProtocol {
    /// `tls` is what STARTTLS encrypts with; without it the session does not offer the command.
    #[must_use]
    pub fn new(
        mut options: ServerOptions,
        tls: Option<Arc<rustls::ServerConfig>>,
        surroundings: Arc<dyn Surroundings>,
        clock: Clock,
    ) -> Self {
        options.has_certificate = tls.is_some();
        Self { shared: Arc::new(SharedProtocol { options: Arc::new(options), tls, surroundings, clock }) }
    }
}

impl Protocol for SmtpProtocol {
    fn serve(&self, arrival: Arrival, ending: Ending) -> BoxFuture<'static, ()> {
        Connection::new(arrival, Arc::clone(&self.shared)).serve(ending).boxed()
    }
}
