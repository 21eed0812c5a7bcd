//! The certificate of all ports, which can become another one while they serve.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::{PROTOCOLS, TlsError, certificates, pem_cause};

/// What an authority asks for that wants to see who has a name (RFC 8737 §4).
pub(crate) const ACME_TLS: &[u8] = b"acme-tls/1";

/// The certificate that connections get which begin from now on.
pub(crate) struct CertificateKeeper {
    current: RwLock<Arc<CertifiedKey>>,
    /// Shown to an authority that asks for a name.
    challenges: RwLock<HashMap<String, Arc<CertifiedKey>>>,
}

impl fmt::Debug for CertificateKeeper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CertificateKeeper").finish_non_exhaustive()
    }
}

impl CertificateKeeper {
    /// The certificate and the key in these files.
    ///
    /// # Errors
    /// [`TlsError`] names the file.
    pub(crate) fn read(certificate: &Path, key: &Path) -> Result<Arc<Self>, TlsError> {
        let current = RwLock::new(certified(certificate, key)?);
        Ok(Arc::new(Self { current, challenges: RwLock::default() }))
    }

    /// Takes over what the files have now.
    ///
    /// # Errors
    /// [`TlsError`] names the file; then the one before stays.
    pub(crate) fn read_again(&self, certificate: &Path, key: &Path) -> Result<(), TlsError> {
        let read = certified(certificate, key)?;
        *self.current.write() = read;
        Ok(())
    }

    /// The certificate itself.
    pub(crate) fn certificate(&self) -> Option<CertificateDer<'static>> {
        self.current.read().cert.first().cloned()
    }

    /// Shows this to an authority that asks for `name`.
    pub(crate) fn answer(
        &self,
        name: &str,
        certificate: CertificateDer<'static>,
        key: &PrivateKeyDer<'static>,
    ) -> Result<(), TlsError> {
        let signing = ring::sign::any_supported_type(key).map_err(TlsError::Protocol)?;
        let shown = CertifiedKey::new(vec![certificate], signing);
        self.challenges.write().insert(name.to_lowercase(), Arc::new(shown));
        Ok(())
    }

    /// The authority has seen what it wanted, or not.
    pub(crate) fn forget_answers(&self) {
        self.challenges.write().clear();
    }

    /// A port's configuration with this certificate, for HTTP/2, HTTP/1.1, and an authority that asks.
    ///
    /// # Errors
    /// [`TlsError::Protocol`]
    pub(crate) fn configuration(self: &Arc<Self>) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(TlsError::Protocol)?.with_no_client_auth();
        let mut config = builder.with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = PROTOCOLS.iter().copied().chain([ACME_TLS]).map(<[u8]>::to_vec).collect();
        // Tickets let a client that comes back skip most of the work, and cost the server no memory.
        config.ticketer = ring::Ticketer::new().map_err(TlsError::Protocol)?;
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for CertificateKeeper {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // RFC 8737 §3: who offers this protocol wants nothing else.
        if hello.alpn().is_some_and(|mut offered| offered.any(|name| name == ACME_TLS)) {
            return self.challenges.read().get(&hello.server_name()?.to_lowercase()).cloned();
        }
        Some(Arc::clone(&self.current.read()))
    }
}

fn certified(certificate: &Path, key: &Path) -> Result<Arc<CertifiedKey>, TlsError> {
    let chain = certificates(certificate)?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| TlsError::Unreadable {
        what: "the private key",
        path: key.to_owned(),
        cause: pem_cause(error),
    })?;
    let unusable = |error: rustls::Error| TlsError::Unusable {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        cause: error.to_string(),
    };
    let certified = CertifiedKey::from_der(chain, private, &ring::default_provider()).map_err(unusable)?;
    Ok(Arc::new(certified))
}
