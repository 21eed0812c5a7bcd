//! Records that a mail domain has to publish in DNS.

use std::net::IpAddr;

use scrinium_sender_authentication::DomainName;

use crate::service::{MailProtocol, MailService, Security};
use crate::sts::StsPolicy;

/// A record of DNS, as a zone file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedRecord {
    /// The whole name.
    pub name: String,
    /// `MX`, `TXT`, `SRV` or `CNAME`.
    pub kind: &'static str,
    /// Its value; strings of a TXT record are put together.
    pub value: String,
    /// What does not work without it.
    pub reason: &'static str,
}

/// Who sends for the domain, in its SPF record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpfSource {
    /// The hosts of its MX records.
    MailHosts,
    /// An address.
    Address(IpAddr),
    /// Those whom another domain names.
    Include(DomainName),
}

/// The records of a domain: `keys` are selectors and records of DKIM's keys.
#[must_use]
pub fn records(
    service: &MailService,
    mail_host: &DomainName,
    sources: &[SpfSource],
    keys: &[(String, String)],
    sts: Option<&StsPolicy>,
) -> Vec<PublishedRecord> {
    let domain = &service.domain;
    let mut records = vec![
        record(domain.to_string(), "MX", format!("10 {mail_host}."), "others cannot send mail to the domain"),
        record(domain.to_string(), "TXT", spf(sources), "others may take the domain's mail for forged"),
    ];
    for (selector, key) in keys {
        let name = format!("{selector}._domainkey.{domain}");
        records.push(record(name, "TXT", key.clone(), "nobody can verify the domain's signatures"));
    }
    // RFC 9989 §5.1.4: a domain begins with a policy of none and reads reports before it asks for more.
    let dmarc = format!("v=DMARC1; p=none; rua=mailto:postmaster@{domain}");
    records.push(record(
        format!("_dmarc.{domain}"),
        "TXT",
        dmarc,
        "others do not say who sends in the domain's name",
    ));
    if let Some(policy) = sts {
        let reason = "others may send mail to the domain unencrypted";
        records.push(record(format!("_mta-sts.{domain}"), "TXT", policy.record(), reason));
        records.push(record(format!("mta-sts.{domain}"), "CNAME", format!("{}.", service.web_host), reason));
    }
    for host in ["autoconfig", "autodiscover"] {
        let name = format!("{host}.{domain}");
        let value = format!("{}.", service.web_host);
        records.push(record(name, "CNAME", value, "mail programs do not find the ports by themselves"));
    }
    records.extend(services(service));
    records
}

fn record(name: String, kind: &'static str, value: String, reason: &'static str) -> PublishedRecord {
    PublishedRecord { name, kind, value, reason }
}

fn spf(sources: &[SpfSource]) -> String {
    let mut record = "v=spf1".to_owned();
    for source in sources {
        record.push_str(&match source {
            SpfSource::MailHosts => " mx".to_owned(),
            SpfSource::Address(IpAddr::V4(address)) => format!(" ip4:{address}"),
            SpfSource::Address(IpAddr::V6(address)) => format!(" ip6:{address}"),
            SpfSource::Include(domain) => format!(" include:{domain}"),
        });
    }
    record.push_str(" -all");
    record
}

/// SRV records (RFC 6186, RFC 8314 §5.1): what is not offered has the target `.`, so that nobody tries.
fn services(service: &MailService) -> Vec<PublishedRecord> {
    let names = [
        ("_imaps", MailProtocol::Imap, Security::Tls),
        ("_imap", MailProtocol::Imap, Security::StartTls),
        ("_pop3s", MailProtocol::Pop3, Security::Tls),
        ("_pop3", MailProtocol::Pop3, Security::StartTls),
        ("_submissions", MailProtocol::Submission, Security::Tls),
        ("_submission", MailProtocol::Submission, Security::StartTls),
    ];
    let of = |(name, protocol, security): (&str, MailProtocol, Security)| {
        let found = service.of(protocol);
        let endpoint = found.iter().find(|endpoint| endpoint.security == security);
        let value = match endpoint {
            // RFC 8314 §5.1: those that are encrypted from the first byte come first.
            Some(endpoint) => {
                let priority = if security == Security::Tls { 0 } else { 10 };
                format!("{priority} 1 {} {}.", endpoint.port, endpoint.host)
            }
            None => "0 0 0 .".to_owned(),
        };
        let name = format!("{name}._tcp.{}", service.domain);
        record(name, "SRV", value, "mail programs do not find the ports by themselves")
    };
    names.into_iter().map(of).collect()
}
