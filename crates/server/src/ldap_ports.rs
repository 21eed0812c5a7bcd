//! Ports at which address books and other programs ask the directory, by LDAP.

use std::sync::Arc;

use scrinium_accounting::AddressRange;
use scrinium_clock::milliseconds;
use scrinium_directory::Directory;
use scrinium_ldap_server::{LdapOptions, LdapProtocol};
use scrinium_port::{Port, PortCounters, PortSettings, Protocol};

use crate::cli::Failure;
use crate::config::{Address, Settings};
use crate::ground::Ground;
use crate::limits;
use crate::mail_ports::MailParts;
use crate::running::resolve;
use crate::tls;

/// Where LDAP listens, in the order of the ports.
pub(crate) fn listening(settings: &Settings) -> [(&'static str, &[Address]); 2] {
    [("ldap", &settings.ldap.listen), ("ldaps", &settings.ldap.tls_listen)]
}

/// The ports of `ldap.listen` and `ldap.tls_listen`.
///
/// # Errors
/// An address that this machine does not know, a certificate that cannot be read, or a base that is no name.
pub(crate) fn ldap_ports(
    ground: &Ground,
    settings: &Settings,
    (directory, parts): (&Arc<Directory>, &MailParts),
) -> Result<Vec<Port>, Failure> {
    let set = &settings.ldap;
    if set.listen.is_empty() && set.tls_listen.is_empty() {
        return Ok(Vec::new());
    }
    let shared = ground.encryption().map_err(Failure::work)?;
    let encryption = tls::for_mail(&shared).map_err(Failure::work)?;
    let options = LdapOptions {
        base: base(settings),
        entries_max: set.max_entries,
        tls: Some(Arc::clone(&encryption)),
        server_end_point: Some(ground.certificate_binding().map_err(Failure::work)?),
        trusts_loopback: set.loopback_without_tls,
        logins: Arc::clone(&parts.logins),
        accounts: parts.accounts.clone(),
        directory: Arc::clone(directory),
        resolver: parts.resolver.clone(),
        workers: ground.workers().clone(),
    };
    let protocol = LdapProtocol::new(options, ground.statistics());
    let no_base = || Failure::Use(format!("ldap.base: {:?} is no distinguished name", set.base));
    let protocol = Arc::new(protocol.ok_or_else(no_base)?);
    let counters = PortCounters::register(ground.statistics(), "LDAP", Arc::clone(&parts.open));
    let places = [("ldap.listen", set.listen.as_slice()), ("ldap.tls_listen", &set.tls_listen)];
    let proxies = Proxies { trusted: limits::trusted_proxies(settings), header_required: false };
    ports_with_and_without_tls(settings, places, (&encryption, &proxies), (protocol, counters))
}

/// The proxies that are believed when they say who comes, and whether they have to say it.
pub(crate) struct Proxies {
    pub(crate) trusted: Vec<AddressRange>,
    pub(crate) header_required: bool,
}

/// The ports of a protocol at which clients encrypt when they like, and those that are encrypted from the beginning.
///
/// # Errors
/// An address that this machine does not know.
pub(crate) fn ports_with_and_without_tls(
    settings: &Settings,
    [(open_key, open), (encrypted_key, encrypted)]: [(&str, &[Address]); 2],
    (encryption, proxies): (&Arc<rustls::ServerConfig>, &Proxies),
    (protocol, counters): (Arc<dyn Protocol>, PortCounters),
) -> Result<Vec<Port>, Failure> {
    let open = open.iter().map(|address| (open_key, address, None));
    let encrypted = encrypted.iter().map(|address| (encrypted_key, address, Some(encryption)));
    let port = |(key, address, tls): (&str, &Address, Option<&Arc<rustls::ServerConfig>>)| {
        Ok(Port {
            settings: PortSettings {
                listen: resolve(key, address)?,
                tls: tls.cloned(),
                trusted_proxies: proxies.trusted.clone(),
                proxy_header_required: proxies.header_required,
                greeting_timeout_ms: milliseconds(settings.http.read_timeout),
            },
            protocol: Arc::clone(&protocol),
            counters: counters.clone(),
        })
    };
    open.chain(encrypted).map(port).collect()
}

/// The base that is set, or one of the first domain: `dc=example,dc=org`.
fn base(settings: &Settings) -> String {
    if !settings.ldap.base.is_empty() {
        return settings.ldap.base.clone();
    }
    let domain = settings.mail.domains.first().map_or("localhost", String::as_str);
    domain.split('.').map(|label| format!("dc={label}")).collect::<Vec<_>>().join(",")
}
