//! What others hear of the ports of mail: to mail programs, to other servers, and to who publishes it in DNS.

use scrinium_http::MailSetup;
use scrinium_mail::Resolver;
use scrinium_mail_discovery::sts::{HostPattern, StsMode, StsPolicy};
use scrinium_mail_discovery::{Endpoint, MailProtocol, MailService, Security};
use scrinium_sender_authentication::DomainName;

use crate::config::{Address, Settings};

/// Answers for the domains whose mail is for this server.
pub(crate) struct OwnMailSetup {
    resolver: Resolver,
    facts: MailFacts,
}

impl OwnMailSetup {
    pub(crate) fn new(resolver: Resolver, settings: &Settings, server_name: &str) -> Self {
        Self { resolver, facts: MailFacts::of(settings, server_name) }
    }

    fn is_here(&self, domain: &DomainName) -> bool {
        is_public(domain) && self.resolver.is_local(domain.as_str())
    }
}

impl MailSetup for OwnMailSetup {
    fn service(&self, domain: &DomainName) -> Option<MailService> {
        let service = self.facts.service(domain).filter(|_| self.is_here(domain))?;
        self.facts.is_whole().then_some(service)
    }

    fn sts_policy(&self, domain: &DomainName) -> Option<StsPolicy> {
        self.facts.sts_policy().filter(|_| self.is_here(domain))
    }
}

/// Whether DNS can know a domain.
pub(crate) fn is_public(domain: &DomainName) -> bool {
    domain.is_plain() && domain.labels() > 1
}

/// What the configuration says of the ports of mail, whatever the domain.
#[derive(Debug)]
pub(crate) struct MailFacts {
    endpoints: Vec<Endpoint>,
    web_host: Option<DomainName>,
    /// The hosts of MX records.
    pub(crate) mail_hosts: Vec<DomainName>,
    mode: StsMode,
    max_age_seconds: u64,
}

impl MailFacts {
    pub(crate) fn of(settings: &Settings, server_name: &str) -> Self {
        let set = &settings.discovery;
        let smtp_host = or_else(&settings.smtp.host_name, server_name);
        let host = or_else(&set.host_name, smtp_host);
        let names = if set.mail_hosts.is_empty() { vec![smtp_host] } else { texts(&set.mail_hosts) };
        // Who does not take mail, or not encrypted, asks nobody to encrypt it.
        let takes_encrypted = !settings.smtp.listen.is_empty() && settings.smtp.starttls;
        Self {
            endpoints: endpoints(settings, host),
            web_host: DomainName::parse(or_else(&set.web_host, host)),
            mail_hosts: names.into_iter().filter_map(DomainName::parse).collect(),
            mode: match set.mta_sts.as_str() {
                "enforce" if takes_encrypted => StsMode::Enforce,
                "testing" if takes_encrypted => StsMode::Testing,
                _ => StsMode::None,
            },
            max_age_seconds: set.mta_sts_max_age.as_secs(),
        }
    }

    /// The ports of a domain; `None` where this server has no name.
    pub(crate) fn service(&self, domain: &DomainName) -> Option<MailService> {
        Some(MailService {
            domain: domain.clone(),
            display_name: domain.to_string(),
            endpoints: self.endpoints.clone(),
            web_host: self.web_host.clone()?,
        })
    }

    /// Whether mail can be both read and sent.
    fn is_whole(&self) -> bool {
        let has = |wanted: MailProtocol| self.endpoints.iter().any(|endpoint| endpoint.protocol == wanted);
        (has(MailProtocol::Imap) || has(MailProtocol::Pop3)) && has(MailProtocol::Submission)
    }

    /// How mail is to be encrypted, if that is said.
    pub(crate) fn sts_policy(&self) -> Option<StsPolicy> {
        let hosts: Vec<HostPattern> =
            self.mail_hosts.iter().filter_map(|host| HostPattern::parse(host.as_str())).collect();
        let (mode, max_age_seconds) = (self.mode, self.max_age_seconds);
        (mode != StsMode::None && !hosts.is_empty()).then_some(StsPolicy { mode, hosts, max_age_seconds })
    }
}

fn endpoints(settings: &Settings, host: &str) -> Vec<Endpoint> {
    let (set, submission) = (&settings.discovery, &settings.submission);
    let named = [
        (MailProtocol::Imap, &set.imap, 143),
        (MailProtocol::Pop3, &set.pop3, 110),
        (MailProtocol::Submission, &set.submission, 587),
    ];
    let told = named.into_iter().flat_map(|(protocol, addresses, upgraded)| {
        addresses.iter().filter_map(move |Address { host, port }| {
            let security = if *port == upgraded { Security::StartTls } else { Security::Tls };
            Some(Endpoint { protocol, host: DomainName::parse(host)?, port: *port, security })
        })
    });
    let mut endpoints: Vec<Endpoint> = told.collect();
    if set.imap.is_empty() {
        let imap = &settings.imap;
        endpoints.extend(own_endpoints(MailProtocol::Imap, (&imap.tls_listen, &imap.listen), host));
    }
    if set.pop3.is_empty() {
        let pop3 = &settings.pop3;
        endpoints.extend(own_endpoints(MailProtocol::Pop3, (&pop3.tls_listen, &pop3.listen), host));
    }
    if set.submission.is_empty() {
        let listen = (submission.tls_listen.as_slice(), submission.listen.as_slice());
        endpoints.extend(own_endpoints(MailProtocol::Submission, listen, host));
    }
    endpoints
}

/// The ports at which this server itself listens, those that are encrypted from the beginning first.
fn own_endpoints(
    protocol: MailProtocol,
    (encrypted, open): (&[Address], &[Address]),
    host: &str,
) -> Vec<Endpoint> {
    let mut endpoints = Vec::new();
    let Some(host) = DomainName::parse(host) else { return endpoints };
    for (addresses, security) in [(encrypted, Security::Tls), (open, Security::StartTls)] {
        // However many addresses it listens at, it is one name.
        let mut ports: Vec<u16> = addresses.iter().map(|address| address.port).collect();
        ports.dedup();
        let own = |port| Endpoint { protocol, host: host.clone(), port, security };
        endpoints.extend(ports.into_iter().map(own));
    }
    endpoints
}

fn or_else<'t>(text: &'t str, otherwise: &'t str) -> &'t str {
    if text.is_empty() { otherwise } else { text }
}

fn texts(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}
