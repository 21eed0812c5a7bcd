//! Ports at which mail programs read mail, by IMAP.

use std::sync::Arc;

use scrinium_catalog::Databases;
use scrinium_directory::Directory;
use scrinium_imap::ServerOptions;
use scrinium_imap_server::{ImapOptions, ImapProtocol};
use scrinium_port::{Port, PortCounters};

use crate::cli::Failure;
use crate::config::{Address, Settings};
use crate::ground::Ground;
use crate::ldap_ports::ports_with_and_without_tls;
use crate::mail_ports::MailParts;
use crate::tls;

/// Where IMAP listens, in the order of the ports.
pub(crate) fn listening(settings: &Settings) -> [(&'static str, &[Address]); 2] {
    [("imap", &settings.imap.listen), ("imaps", &settings.imap.tls_listen)]
}

/// The ports of `imap.listen` and `imap.tls_listen`.
///
/// # Errors
/// An address that this machine does not know, or a certificate that cannot be read.
pub(crate) fn imap_ports(
    ground: &Ground,
    settings: &Settings,
    (databases, directory, parts): (&Databases, &Arc<Directory>, &MailParts),
) -> Result<Vec<Port>, Failure> {
    let set = &settings.imap;
    if set.listen.is_empty() && set.tls_listen.is_empty() {
        return Ok(Vec::new());
    }
    let shared = ground.encryption().map_err(Failure::work)?;
    let encryption = tls::for_mail(&shared).map_err(Failure::work)?;
    let named = Some(settings.smtp.host_name.as_str()).filter(|name| !name.is_empty());
    let mut session = ServerOptions::new(named.unwrap_or_else(|| ground.name()));
    env!("CARGO_PKG_VERSION").clone_into(&mut session.version);
    session.limits.message_bytes = set.max_message_bytes;
    let protocol = ImapProtocol::new(ImapOptions {
        session,
        tls: Some(Arc::clone(&encryption)),
        server_end_point: Some(ground.certificate_binding().map_err(Failure::work)?),
        trusts_loopback: set.loopback_without_tls,
        databases: databases.clone(),
        directory: Arc::clone(directory),
        resolver: parts.resolver.clone(),
        logins: Arc::clone(&parts.logins),
        tokens: parts.tokens.clone(),
        accounts: parts.accounts.clone(),
        workers: ground.workers().clone(),
        clock: ground.clock().clone(),
    });
    let counters = PortCounters::register(ground.statistics(), "IMAP", Arc::clone(&parts.open));
    let places = [("imap.listen", set.listen.as_slice()), ("imap.tls_listen", &set.tls_listen)];
    ports_with_and_without_tls(settings, places, &encryption, (Arc::new(protocol), counters))
}
