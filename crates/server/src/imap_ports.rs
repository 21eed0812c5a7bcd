//! Ports at which mail programs read mail, by IMAP and POP3.

use std::sync::Arc;

use scrinium_catalog::Databases;
use scrinium_directory::Directory;
use scrinium_imap_server::{
    HiddenCapability, ImapProtocol, MailAccess, MailAccessOptions, Opening, OpeningWatch, Pop3Protocol,
};
use scrinium_port::{Port, PortCounters, PortSecurity};

use crate::cli::Failure;
use crate::config::{Address, Settings};
use crate::ground::Ground;
use crate::ldap_ports::{Proxies, ports_with_and_without_tls};
use crate::mail_ports::MailParts;
use crate::{limits, tls};

/// Where IMAP and POP3 listen, in the order of the ports.
pub(crate) fn listening(settings: &Settings) -> [(&'static str, &[Address]); 4] {
    [
        ("imap", &settings.imap.listen),
        ("imaps", &settings.imap.tls_listen),
        ("pop3", &settings.pop3.listen),
        ("pop3s", &settings.pop3.tls_listen),
    ]
}

/// The ports of `imap.listen`, `imap.tls_listen`, `pop3.listen` and `pop3.tls_listen`.
///
/// # Errors
/// An address that this machine does not know, or a certificate that cannot be read.
pub(crate) fn imap_ports(
    ground: &Ground,
    settings: &Settings,
    (databases, directory, parts): (&Databases, &Arc<Directory>, &MailParts),
) -> Result<Vec<Port>, Failure> {
    let (imap, pop3) = (&settings.imap, &settings.pop3);
    if listening(settings).iter().all(|(_, addresses)| addresses.is_empty()) {
        return Ok(Vec::new());
    }
    let shared = ground.encryption().map_err(Failure::work)?;
    let encryption = tls::for_mail(&shared).map_err(Failure::work)?;
    let end_point = ground.certificate_binding().map_err(Failure::work)?;
    let security = |trusts_loopback: bool| PortSecurity {
        tls: Some(Arc::clone(&encryption)),
        server_end_point: Some(Arc::clone(&end_point)),
        trusts_loopback,
    };
    let named = Some(settings.smtp.host_name.as_str()).filter(|name| !name.is_empty());
    let host = named.unwrap_or_else(|| ground.name());
    let access = MailAccess::new(MailAccessOptions {
        host: host.to_owned(),
        databases: databases.clone(),
        directory: Arc::clone(directory),
        resolver: parts.resolver.clone(),
        logins: Arc::clone(&parts.logins),
        tokens: parts.tokens.clone(),
        accounts: parts.accounts.clone(),
        workers: ground.workers().clone(),
        clock: ground.clock().clone(),
        opened_by_others: opening_watch(settings, ground),
    });
    let counters = |name: &str| PortCounters::register(ground.statistics(), name, Arc::clone(&parts.open));
    let mut session = scrinium_imap::ServerOptions::new(host);
    env!("CARGO_PKG_VERSION").clone_into(&mut session.version);
    session.limits.message_bytes = imap.max_message_bytes;
    let hidden = imap.hidden_capabilities.iter().filter_map(|line| HiddenCapability::parse(line)).collect();
    let protocol = ImapProtocol::new(access.clone(), session, hidden, security(imap.loopback_without_tls));
    let places = [("imap.listen", imap.listen.as_slice()), ("imap.tls_listen", &imap.tls_listen)];
    let behind = (&encryption, &proxies(settings, imap.proxy_header));
    let served = (Arc::new(protocol) as _, counters("IMAP"));
    let mut ports = ports_with_and_without_tls(settings, places, behind, served)?;
    let session = scrinium_pop3::ServerOptions::new(host);
    let protocol = Pop3Protocol::new(access, session, security(pop3.loopback_without_tls));
    let places = [("pop3.listen", pop3.listen.as_slice()), ("pop3.tls_listen", &pop3.tls_listen)];
    let behind = (&encryption, &proxies(settings, pop3.proxy_header));
    let served = (Arc::new(protocol) as _, counters("POP3"));
    ports.extend(ports_with_and_without_tls(settings, places, behind, served)?);
    Ok(ports)
}

/// Puts on record who opens whose mail. Without a record nobody does.
fn opening_watch(settings: &Settings, ground: &Ground) -> Option<OpeningWatch> {
    let is_on = settings.imap.open_as_others && !settings.log_database.name.is_empty();
    let log = ground.log_database().clone();
    is_on.then(|| Arc::new(move |opening: &Opening<'_>| log.mail_opened(opening)) as _)
}

/// The server speaks first: only who has to begin with a header is waited for.
fn proxies(settings: &Settings, is_believed: bool) -> Proxies {
    let trusted = if is_believed { limits::trusted_proxies(settings) } else { Vec::new() };
    Proxies { trusted, header_required: true }
}
