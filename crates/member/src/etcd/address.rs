//! Where an etcd server is, and by what it and its clients know each other.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// Where a server of etcd takes its clients: `https://HOST:PORT`, or `http://` on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdAddress {
    pub(super) is_secure: bool,
    pub(super) host: String,
    pub(super) port: u16,
}

/// An address that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdAddressError {
    /// It has another form.
    #[error("{0:?} is no address of an etcd server: write https://HOST:PORT")]
    Form(String),
    /// What is sent there could be read and changed by others.
    #[error("{0} is not on this machine, so it must be https: the cluster's log goes over this connection")]
    InTheClear(String),
}

impl FromStr for EtcdAddress {
    type Err = EtcdAddressError;

    fn from_str(text: &str) -> Result<Self, EtcdAddressError> {
        let wrong = || EtcdAddressError::Form(text.chars().take(200).collect());
        let (is_secure, rest) = match text.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            _ => return Err(wrong()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = rest.rsplit_once(':').ok_or_else(wrong)?;
        let port: u16 = port.parse().map_err(|_| wrong())?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let legal = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-');
        let is_legal = match bare {
            Some(bare) => bare.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()),
            None => !host.is_empty() && host.len() <= 253 && host.chars().all(legal),
        };
        if !is_legal || port == 0 {
            return Err(wrong());
        }
        let address = Self { is_secure, host: bare.unwrap_or(host).to_owned(), port };
        if !is_secure && !address.is_local() {
            return Err(EtcdAddressError::InTheClear(text.to_owned()));
        }
        Ok(address)
    }
}

impl EtcdAddress {
    fn is_local(&self) -> bool {
        self.host == "localhost" || self.host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    }

    /// Host and port as a URL has them.
    pub(super) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl std::fmt::Display for EtcdAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(formatter, "{scheme}://{}", self.authority())
    }
}

/// Files (PEM) by which a member and etcd know each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdFiles {
    /// Who has signed the servers' certificates (etcd's `--trusted-ca-file` has signed the member's).
    pub authorities: PathBuf,
    /// The member's certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Files that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EtcdTlsError {
    /// One cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// They do not fit each other.
    #[error("the certificate and key for etcd cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
    /// An address asks for encryption, and there are no files.
    #[error("{0} needs a certificate: name the files of the authority, the member's certificate and its key")]
    Missing(EtcdAddress),
}

/// What a connection is encrypted with, for one protocol above.
pub(super) fn tls(files: &EtcdFiles, protocol: &[u8]) -> Result<Arc<ClientConfig>, EtcdTlsError> {
    let unreadable = |path: &PathBuf, cause: String| EtcdTlsError::Unreadable { path: path.clone(), cause };
    let certificates = |path: &PathBuf| -> Result<Vec<CertificateDer<'static>>, EtcdTlsError> {
        let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
        let found: Vec<_> = found.map_err(|error| unreadable(path, error.to_string()))?;
        if found.is_empty() {
            return Err(unreadable(path, "there is no certificate in it".to_owned()));
        }
        Ok(found)
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&files.authorities)? {
        roots.add(certificate)?;
    }
    let key = PrivateKeyDer::from_pem_file(&files.key);
    let key = key.map_err(|error| unreadable(&files.key, error.to_string()))?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_auth_cert(certificates(&files.certificate)?, key)?;
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config))
}
