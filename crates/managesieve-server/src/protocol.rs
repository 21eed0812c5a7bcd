//! ManageSieve as a protocol of ports.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use scrinium_accounting::Accounts;
use scrinium_credentials::sasl::ServerEndPoint;
use scrinium_directory::{Logins, TokenVerifier};
use scrinium_mail::ScriptBook;
use scrinium_port::{Arrival, Ending, Protocol};
use scrinium_worker::WorkerPool;

use crate::connection::Connection;

/// What ports of ManageSieve need.
pub struct ManageSieveOptions {
    /// What STARTTLS encrypts with.
    pub tls: Arc<rustls::ServerConfig>,
    /// What log-ins can be bound to of the certificate ([`scrinium_credentials::sasl::server_end_point`]).
    pub server_end_point: Option<ServerEndPoint>,
    /// The program's version, which it says.
    pub version: String,
    /// Lets people in.
    pub logins: Arc<Logins>,
    /// Knows the providers whose tokens let people in, if there are any.
    pub tokens: Option<Arc<dyn TokenVerifier>>,
    /// What networks and people hold.
    pub accounts: Accounts,
    /// Their scripts.
    pub scripts: ScriptBook,
    /// Where scripts are read and written.
    pub workers: WorkerPool,
}

/// ManageSieve at ports.
pub struct ManageSieveProtocol {
    shared: Arc<ManageSieveOptions>,
}

impl ManageSieveProtocol {
    /// Serves the scripts of a server's people.
    #[must_use]
    pub fn new(options: ManageSieveOptions) -> Self {
        Self { shared: Arc::new(options) }
    }
}

impl Protocol for ManageSieveProtocol {
    fn serve(&self, arrival: Arrival, ending: Ending) -> BoxFuture<'static, ()> {
        Connection::new(arrival, Arc::clone(&self.shared), &ending).serve(ending).boxed()
    }
}
