//! Where a server is, as `--target` names it: `imap://host:port`, `smtp+starttls://host`, `pop3s://host`.

use std::sync::Arc;

use super::failure::{Failure, FailureKind};
use super::tls::Tls;
use super::wire::Wire;

/// When a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Security {
    Never,
    /// The protocol's own command asks for it.
    StartTls,
    FromTheBeginning,
}

/// A host, a port, and how to talk to it.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) security: Security,
    tls: Option<Arc<Tls>>,
}

impl Endpoint {
    /// Reads an address whose scheme is `protocol`, with an `s` or `+starttls` behind it for encryption.
    pub(super) fn parse(
        target: &str,
        protocol: &str,
        ports: (u16, u16),
        tls: impl FnOnce() -> Result<Arc<Tls>, String>,
    ) -> Result<Self, String> {
        let wrong = |why: String| format!("{target} is no address of a server: {why}");
        let uri: http::Uri = target.parse().map_err(|error| wrong(format!("{error}")))?;
        let scheme = uri.scheme_str().unwrap_or_default();
        let security = match scheme.strip_prefix(protocol) {
            Some("") => Security::Never,
            Some("s") => Security::FromTheBeginning,
            Some("+starttls") => Security::StartTls,
            _ => {
                return Err(wrong(format!(
                    "it begins with {protocol}://, {protocol}s:// or {protocol}+starttls://"
                )));
            }
        };
        let host =
            uri.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("it has no host".to_owned()))?;
        if !matches!(uri.path(), "" | "/") {
            return Err(wrong("nothing stands after the port".to_owned()));
        }
        let usual = if security == Security::FromTheBeginning { ports.1 } else { ports.0 };
        Ok(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(usual),
            security,
            tls: (security != Security::Never).then(tls).transpose()?,
        })
    }

    /// Connects; encrypts at once if that is how this server is spoken to.
    pub(super) async fn connect(&self) -> Result<Wire, Failure> {
        let wire = Wire::connect(&self.host, self.port).await?;
        if self.security == Security::FromTheBeginning { self.encrypt(wire).await } else { Ok(wire) }
    }

    /// Encrypts a connection that was plain so far.
    pub(super) async fn encrypt(&self, wire: Wire) -> Result<Wire, Failure> {
        match &self.tls {
            Some(tls) => wire.encrypt(tls, &self.host).await,
            None => Err(Failure::new(FailureKind::Connection, "no encryption was asked for")),
        }
    }
}
