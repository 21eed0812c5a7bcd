//! Ports at which mail comes in: of other servers by SMTP, and of a server in front of this one by LMTP.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use scrinium_accounting::Accounts;
use scrinium_clock::milliseconds;
use scrinium_mail::{Mailboxes, Resolver};
use scrinium_port::{Port, PortCounters, PortSettings};
use scrinium_smtp::{ServerOptions, Service};
use scrinium_smtp_server::{Reception, ReceptionOptions, SmtpProtocol, SpoolBudget};

use crate::cli::Failure;
use crate::config::{Address, Settings};
use crate::ground::Ground;
use crate::limits;
use crate::running::resolve;

/// Of `mail.incoming_bytes`, one message takes this share at most.
const SHARE_OF_ONE: u64 = 64;

/// What mail that comes in needs of the server.
pub(crate) struct MailParts {
    pub(crate) resolver: Resolver,
    pub(crate) mailboxes: Mailboxes,
    pub(crate) accounts: Accounts,
    /// Counts the connections of all protocols.
    pub(crate) open: Arc<AtomicU64>,
}

/// The ports of `smtp.listen`, then those of `lmtp.listen`.
///
/// # Errors
/// An address that this machine does not know, or a certificate that cannot be read.
pub(crate) fn mail_ports(
    ground: &Ground,
    settings: &Settings,
    parts: &MailParts,
) -> Result<Vec<Port>, Failure> {
    let budget = SpoolBudget::new(
        bounded(settings.mail.incoming_bytes),
        bounded(settings.mail.incoming_file_bytes),
        bounded(settings.mail.incoming_bytes / SHARE_OF_ONE),
    );
    let smtp = ports(ground, settings, parts, (Service::Relay, "SMTP", &settings.smtp.listen, &budget))?;
    let lmtp = ports(ground, settings, parts, (Service::Lmtp, "LMTP", &settings.lmtp.listen, &budget))?;
    Ok(smtp.into_iter().chain(lmtp).collect())
}

fn ports(
    ground: &Ground,
    settings: &Settings,
    parts: &MailParts,
    (service, name, addresses, budget): (Service, &str, &[Address], &SpoolBudget),
) -> Result<Vec<Port>, Failure> {
    if addresses.is_empty() {
        return Ok(Vec::new());
    }
    let encryption = match service {
        Service::Relay if settings.smtp.starttls => Some(ground.encryption().map_err(Failure::work)?),
        Service::Relay | Service::Submission | Service::Lmtp => None,
    };
    let reception = Reception::new(
        ReceptionOptions {
            service,
            postmasters: vec![settings.mail.postmaster.clone()],
            budget: budget.clone(),
            accounts: parts.accounts.clone(),
        },
        parts.resolver.clone(),
        parts.mailboxes.clone(),
        ground.workers().clone(),
        ground.statistics(),
    );
    let protocol = SmtpProtocol::new(
        server_options(ground, settings, service),
        encryption,
        Arc::new(reception),
        ground.clock().clone(),
    );
    let protocol = Arc::new(protocol);
    let counters = PortCounters::register(ground.statistics(), name, Arc::clone(&parts.open));
    // The server speaks first: only who has to begin with a header is waited for.
    let trusted_proxies =
        if settings.smtp.proxy_header { limits::trusted_proxies(settings) } else { Vec::new() };
    let key = if service == Service::Lmtp { "lmtp.listen" } else { "smtp.listen" };
    let port = |address: &Address| {
        Ok(Port {
            settings: PortSettings {
                listen: resolve(key, address)?,
                tls: None,
                trusted_proxies: trusted_proxies.clone(),
                proxy_header_required: true,
                greeting_timeout_ms: milliseconds(settings.http.read_timeout),
            },
            protocol: Arc::clone(&protocol) as _,
            counters: counters.clone(),
        })
    };
    addresses.iter().map(port).collect()
}

fn server_options(ground: &Ground, settings: &Settings, service: Service) -> ServerOptions {
    let named = Some(settings.smtp.host_name.as_str()).filter(|name| !name.is_empty());
    let mut options = ServerOptions::new(service, named.unwrap_or_else(|| ground.name()));
    options.limits.message_bytes = settings.smtp.max_message_bytes;
    options.limits.recipients = settings.smtp.max_recipients;
    options.times.command_ms = milliseconds(settings.smtp.command_timeout);
    options
}

fn bounded(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
