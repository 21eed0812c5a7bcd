//! Records that there should be, and those that there are.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::join_all;
use scrinium_mail_discovery::PublishedRecord;
use scrinium_mail_queue::route::AddressAnswer;
use scrinium_outbound::{Dns, ServiceAnswer};
use scrinium_sender_authentication::dmarc::DmarcRecord;
use scrinium_sender_authentication::spf::{SpfRequest, SpfResult, check_sender};
use scrinium_sender_authentication::{Answer, Answers, Dns as Ask, DomainName, Question, settle};

/// What an SRV record says that names no host (RFC 2782): nothing is offered.
const NOT_OFFERED: &str = "0 0 0 .";

/// Values of a name that are shown, and bytes of each.
const FOUND_MAX: usize = 10;
const FOUND_BYTES_MAX: usize = 600;

/// How a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is there, or something that does the same.
    Fine,
    /// There is none.
    Missing,
    /// There is another one.
    Different,
    /// DNS did not answer.
    Unknown,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Missing => "missing",
            Self::Different => "differs",
            Self::Unknown => "unknown",
        }
    }
}

/// A record that there should be, and what was found.
pub(super) struct Finding {
    pub(super) record: PublishedRecord,
    pub(super) state: State,
    /// What stands there instead.
    pub(super) found: Vec<String>,
}

/// A domain and its mail hosts.
type Domain<'d> = (&'d DomainName, &'d [DomainName]);

/// Looks all of them up at once. What is not known after `limit` is unknown.
pub(super) async fn look_up(
    dns: &Dns,
    domain: Domain<'_>,
    records: Vec<PublishedRecord>,
    limit: Duration,
) -> Vec<Finding> {
    let looked = records.into_iter().map(async |record| {
        let asked = tokio::time::timeout(limit, state_of(dns, domain, &record)).await;
        let (state, found) = asked.unwrap_or((State::Unknown, Vec::new()));
        let found = found.into_iter().take(FOUND_MAX).map(|text| shown(&text));
        Finding { record, state, found: found.collect() }
    });
    let findings = join_all(looked).await;
    // Who offers nothing need not say so.
    let is_needless =
        |finding: &Finding| finding.record.value == NOT_OFFERED && finding.state == State::Missing;
    findings.into_iter().filter(|finding| !is_needless(finding)).collect()
}

async fn state_of(dns: &Dns, domain: Domain<'_>, record: &PublishedRecord) -> (State, Vec<String>) {
    match record.kind {
        "MX" => mail_hosts(dns, domain).await,
        "SRV" => services(dns, record).await,
        "CNAME" => same_addresses(dns, record).await,
        _ => texts(dns, domain, record).await,
    }
}

async fn mail_hosts(dns: &Dns, (domain, hosts): Domain<'_>) -> (State, Vec<String>) {
    match dns.answer(&Question::MailHosts(domain.clone())).await {
        Answer::MailHosts(found) => {
            let is_ours =
                |(_, name): &(u16, String)| DomainName::parse(name).is_some_and(|name| hosts.contains(&name));
            let state = if found.iter().any(is_ours) { State::Fine } else { State::Different };
            (state, found.iter().map(|(preference, name)| format!("{preference} {name}")).collect())
        }
        answer => (absent(&answer), Vec::new()),
    }
}

async fn services(dns: &Dns, record: &PublishedRecord) -> (State, Vec<String>) {
    match dns.services(&record.name).await {
        ServiceAnswer::Records(found) => {
            let texts: Vec<String> = found
                .iter()
                .map(|(priority, weight, port, host)| format!("{priority} {weight} {port} {host}"))
                .collect();
            // Priority and weight are their owner's choice.
            let place = |text: &str| text.split(' ').skip(2).collect::<Vec<_>>().join(" ").to_lowercase();
            let is_there = texts.iter().any(|text| place(text) == place(&record.value));
            (if is_there { State::Fine } else { State::Different }, texts)
        }
        ServiceAnswer::Absent => (State::Missing, Vec::new()),
        ServiceAnswer::Failed => (State::Unknown, Vec::new()),
    }
}

/// A name that stands for a host may as well have that host's addresses.
async fn same_addresses(dns: &Dns, record: &PublishedRecord) -> (State, Vec<String>) {
    let of_host = dns.addresses(record.value.trim_end_matches('.')).await;
    match (dns.addresses(&record.name).await, of_host) {
        (AddressAnswer::Addresses(found), AddressAnswer::Addresses(wanted)) if !found.is_empty() => {
            let is_there = found.iter().any(|address| wanted.contains(address));
            let found = found.iter().map(IpAddr::to_string).collect();
            (if is_there { State::Fine } else { State::Different }, found)
        }
        (AddressAnswer::Failed(_), _) | (_, AddressAnswer::Failed(_)) => (State::Unknown, Vec::new()),
        _ => (State::Missing, Vec::new()),
    }
}

async fn texts(dns: &Dns, domain: Domain<'_>, record: &PublishedRecord) -> (State, Vec<String>) {
    let Some(name) = DomainName::parse(&record.name) else { return (State::Unknown, Vec::new()) };
    let found = match dns.answer(&Question::Texts(name)).await {
        Answer::Texts(texts) => texts,
        answer => return (absent(&answer), Vec::new()),
    };
    // Records for other purposes stand at the same name.
    let kind = record.value.split(';').next().unwrap_or_default();
    let kind = if kind.starts_with("v=spf1") { "v=spf1" } else { kind };
    let same: Vec<String> = found
        .iter()
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .filter(|text| text.trim_start().to_lowercase().starts_with(&kind.to_lowercase()))
        .collect();
    let state = match same.as_slice() {
        [] => State::Missing,
        [one] if does_the_same(dns, domain, record, one).await => State::Fine,
        _ => State::Different,
    };
    (state, same)
}

/// Whether a text does what the one that is proposed would do.
async fn does_the_same(dns: &Dns, domain: Domain<'_>, record: &PublishedRecord, found: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<String>();
    if plain(found) == plain(&record.value) {
        return true;
    }
    match record.value.get(..8) {
        Some("v=spf1 m") => lets_hosts_send(dns, domain).await,
        // Which policy it is, and where reports go, is for its owner to say.
        Some("v=DMARC1") => DmarcRecord::parse(found.as_bytes()).is_some(),
        Some("v=TLSRPT") => true,
        _ => false,
    }
}

struct Asks<'d>(&'d Dns);

impl Ask for Asks<'_> {
    async fn ask(&self, question: &Question) -> Answer {
        self.0.answer(question).await
    }
}

/// Whether the domain's SPF record lets its first mail host send.
async fn lets_hosts_send(dns: &Dns, (domain, hosts): Domain<'_>) -> bool {
    let Some(host) = hosts.first() else { return false };
    let AddressAnswer::Addresses(addresses) = dns.addresses(host.as_str()).await else { return false };
    let mail_from = format!("postmaster@{domain}");
    for address in addresses.into_iter().take(FOUND_MAX) {
        let (helo, receiver) = (host.as_str(), host.as_str());
        let request = SpfRequest { address, mail_from: &mail_from, helo, receiver, now_seconds: 0 };
        let (asks, mut answers) = (Asks(dns), Answers::default());
        let checked = settle(&asks, &mut answers, |answers| check_sender(&request, answers)).await;
        if checked.result != SpfResult::Pass {
            return false;
        }
    }
    true
}

fn absent(answer: &Answer) -> State {
    match answer {
        Answer::NoSuchName | Answer::NoRecords => State::Missing,
        _ => State::Unknown,
    }
}

/// What a stranger has written, for a terminal.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(FOUND_BYTES_MAX).collect();
    short.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}
