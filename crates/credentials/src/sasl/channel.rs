//! What an exchange can be bound to (RFC 5056), so that nobody between client and server can pass it on.

use ring::digest;

use crate::der;
use crate::secret::same;

/// A way of binding to a connection with TLS. `tls-unique` is not there: TLS 1.3 has none, and that of TLS 1.2 was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BindingType {
    /// `tls-exporter` (RFC 9266): keying material that both ends of this connection have.
    Exporter,
    /// `tls-server-end-point` (RFC 5929, section 4): the server's certificate.
    ServerEndPoint,
}

impl BindingType {
    /// Its registered name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exporter => "tls-exporter",
            Self::ServerEndPoint => "tls-server-end-point",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        [Self::Exporter, Self::ServerEndPoint].into_iter().find(|binding| binding.name() == name)
    }
}

/// What one connection can be bound to; nothing where it has no TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelBindings {
    /// 32 bytes exported with the label `EXPORTER-Channel-Binding` and an empty context, of TLS 1.3 (RFC 9266, section 2).
    pub exporter: Option<[u8; 32]>,
    /// What [`server_end_point`] says of the server's certificate.
    pub server_end_point: Option<Vec<u8>>,
}

impl ChannelBindings {
    /// Whether there is nothing to bind to.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.exporter.is_none() && self.server_end_point.is_none()
    }

    pub(super) fn get(&self, binding: BindingType) -> Option<&[u8]> {
        match binding {
            BindingType::Exporter => self.exporter.as_ref().map(<[u8; 32]>::as_slice),
            BindingType::ServerEndPoint => self.server_end_point.as_deref(),
        }
    }

    /// The best that there is.
    pub(super) fn best(&self) -> Option<BindingType> {
        [BindingType::Exporter, BindingType::ServerEndPoint]
            .into_iter()
            .find(|binding| self.get(*binding).is_some())
    }

    pub(super) fn fits(&self, binding: BindingType, data: &[u8]) -> bool {
        self.get(binding).is_some_and(|known| same(known, data))
    }
}

/// Signature algorithms by their object identifiers: those whose hash is SHA-256, SHA-384 and SHA-512, of RSA (RFC 8017) and
/// ECDSA (RFC 5758), and those with MD5 or SHA-1, for which RFC 5929 says SHA-256.
const SHA256: [&[u8]; 5] = [
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b],
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02],
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05],
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x04],
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01],
];
const SHA384: [&[u8]; 2] = [
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0c],
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03],
];
const SHA512: [&[u8]; 2] = [
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0d],
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04],
];

/// Gives that of the certificate that a port has now.
pub type ServerEndPoint = std::sync::Arc<dyn Fn() -> Option<Vec<u8>> + Send + Sync>;

/// The data of `tls-server-end-point` (RFC 5929, section 4.1): the certificate's hash, by the hash function of its signature.
/// `None` where that has none, as with Ed25519 and RSASSA-PSS.
#[must_use]
pub fn server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    // Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm, signature } (RFC 5280, section 4.1).
    let contents = der::sequence(certificate)?;
    let (_, rest) = der::element(contents, der::SEQUENCE)?;
    let (algorithm, _) = der::element(rest, der::SEQUENCE)?;
    let (identifier, _) = der::element(algorithm, der::OBJECT_IDENTIFIER)?;
    let hash = if SHA256.contains(&identifier) {
        &digest::SHA256
    } else if SHA384.contains(&identifier) {
        &digest::SHA384
    } else if SHA512.contains(&identifier) {
        &digest::SHA512
    } else {
        return None;
    };
    Some(digest::digest(hash, certificate).as_ref().to_vec())
}
