//! A certificate of the test's own, for 127.0.0.1 alone.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;

pub struct Identity {
    certificate: rcgen::Certificate,
    key: rcgen::KeyPair,
}

impl Identity {
    pub fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        Self { certificate: made.cert, key: made.signing_key }
    }

    /// Writes the certificate, and next to it the key, as files that programs read.
    pub fn write(&self, certificate: &Path, key: &Path) {
        std::fs::write(certificate, self.certificate.pem()).unwrap();
        std::fs::write(key, self.key.serialize_pem()).unwrap();
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(self.key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}
