//! How connections are kept from others' eyes.

use std::sync::Arc;

use crate::link::Link;
use crate::stream::PortStream;

/// Gives what log-ins can be bound to of the certificate that a port has now (RFC 5929, `tls-server-end-point`).
pub type ServerEndPoint = Arc<dyn Fn() -> Option<Vec<u8>> + Send + Sync>;

/// How connections of a port are kept from others' eyes.
#[derive(Clone, Default)]
pub struct PortSecurity {
    /// What a connection that began in the clear is encrypted with later, as by STARTTLS.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// What log-ins can be bound to of the certificate.
    pub server_end_point: Option<ServerEndPoint>,
    /// Who comes from a loopback address may log in without TLS: nobody else hears it.
    pub trusts_loopback: bool,
}

/// What is known of a connection at this moment.
#[derive(Clone, Debug, Default)]
pub struct Secrecy {
    /// Whether it goes over TLS, here or as far as a proxy that is believed.
    pub is_encrypted: bool,
    /// Whether it comes from this machine, and nobody else can listen.
    pub is_private: bool,
    /// The name of the cipher suite, where the encryption is ours.
    pub cipher: Option<String>,
    /// What a log-in can be bound to ([`PortStream::exporter`]).
    pub exporter: Option<[u8; 32]>,
    /// The same of the certificate, where the encryption is ours.
    pub server_end_point: Option<Vec<u8>>,
}

impl Secrecy {
    /// Whether nobody else can listen.
    #[must_use]
    pub const fn is_protected(&self) -> bool {
        self.is_encrypted || self.is_private
    }
}

impl PortSecurity {
    /// What is known of a connection.
    #[must_use]
    pub fn secrecy(&self, stream: &PortStream, link: &Link) -> Secrecy {
        let is_private = self.trusts_loopback && link.peer.address.is_loopback();
        let Some(session) = stream.session() else {
            // A proxy that is believed may say that it has encrypted.
            return Secrecy { is_encrypted: link.peer.secure, is_private, ..Secrecy::default() };
        };
        let suite = session.negotiated_cipher_suite();
        Secrecy {
            is_encrypted: true,
            is_private,
            cipher: suite.and_then(|suite| suite.suite().as_str().map(str::to_owned)),
            exporter: stream.exporter(),
            server_end_point: self.server_end_point.as_ref().and_then(|end_point| end_point()),
        }
    }
}
