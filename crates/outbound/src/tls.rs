//! TLS towards other servers: with a certificate that is examined, or with any.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use thiserror::Error;

/// Why there is no TLS.
#[derive(Debug, Error)]
#[error("TLS for outgoing mail cannot be set up: {0}")]
pub struct TlsSetupError(String);

/// What connections are encrypted with.
#[derive(Clone)]
pub struct TlsClient {
    /// Any certificate will do: somebody on the way can at least not just listen.
    pub(crate) any: Arc<ClientConfig>,
    /// The certificate is for the host, and a known authority has signed it.
    pub(crate) verified: Arc<ClientConfig>,
}

impl TlsClient {
    /// With the authorities that the system knows, and others.
    ///
    /// # Errors
    /// [`TlsSetupError`]
    pub fn new(further: Vec<CertificateDer<'static>>) -> Result<Self, TlsSetupError> {
        let failed = |error: &dyn std::fmt::Display| TlsSetupError(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        for certificate in further {
            roots.add(certificate).map_err(|error| failed(&error))?;
        }
        let builder = || {
            ClientConfig::builder_with_provider(Arc::clone(&provider))
                .with_safe_default_protocol_versions()
                .map_err(|error| failed(&error))
        };
        let any = builder()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(Arc::clone(&provider))))
            .with_no_client_auth();
        let verified = if roots.is_empty() {
            // Nobody is known, so nobody is trusted.
            builder()?
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(NoCertificate))
                .with_no_client_auth()
        } else {
            let verifier =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                    .build()
                    .map_err(|error| failed(&error))?;
            builder()?.with_webpki_verifier(verifier).with_no_client_auth()
        };
        Ok(Self { any: Arc::new(any), verified: Arc::new(verified) })
    }
}

/// Takes every certificate whose key the server has (RFC 7435: some protection for most of the time).
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Takes no certificate.
#[derive(Debug)]
struct NoCertificate;

impl ServerCertVerifier for NoCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Err(rustls::Error::General("this system knows no certificate authority".to_owned()))
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("no certificate is taken".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("no certificate is taken".to_owned()))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}
