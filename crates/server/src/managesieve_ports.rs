//! Ports at which people's programs set their Sieve scripts.

use std::sync::Arc;

use scrinium_mail::ScriptBook;
use scrinium_managesieve_server::{ManageSieveOptions, ManageSieveProtocol};
use scrinium_port::{Port, PortCounters};

use crate::cli::Failure;
use crate::config::{Address, Settings};
use crate::ground::Ground;
use crate::ldap_ports::{Proxies, ports_with_and_without_tls};
use crate::mail_ports::MailParts;
use crate::tls;

/// Where ManageSieve listens.
pub(crate) fn listening(settings: &Settings) -> [(&'static str, &[Address]); 1] {
    [("sieve", &settings.managesieve.listen)]
}

/// The ports of `managesieve.listen`.
///
/// # Errors
/// An address that this machine does not know, or a certificate that cannot be read.
pub(crate) fn managesieve_ports(
    ground: &Ground,
    settings: &Settings,
    (scripts, parts): (&ScriptBook, &MailParts),
) -> Result<Vec<Port>, Failure> {
    let listen = settings.managesieve.listen.as_slice();
    if listen.is_empty() {
        return Ok(Vec::new());
    }
    let shared = ground.encryption().map_err(Failure::work)?;
    let encryption = tls::for_mail(&shared).map_err(Failure::work)?;
    let protocol = ManageSieveProtocol::new(ManageSieveOptions {
        tls: Arc::clone(&encryption),
        server_end_point: Some(ground.certificate_binding().map_err(Failure::work)?),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        logins: Arc::clone(&parts.logins),
        tokens: parts.tokens.clone(),
        accounts: parts.accounts.clone(),
        scripts: scripts.clone(),
        workers: ground.workers().clone(),
    });
    let counters = PortCounters::register(ground.statistics(), "ManageSieve", Arc::clone(&parts.open));
    let places = [("managesieve.listen", listen), ("managesieve.listen", &[])];
    // The server speaks first, so nobody's header can be waited for who may not send one.
    let proxies = Proxies { trusted: Vec::new(), header_required: true };
    ports_with_and_without_tls(settings, places, (&encryption, &proxies), (Arc::new(protocol), counters))
}
