//! `scrinium domain check`: what a mail domain should have in DNS, what is there, and whether its mail hosts answer.

mod reach;
mod records;
mod show;

use std::sync::Arc;
use std::time::Duration;

use scrinium_http::{DomainCheck, DomainCheckRefusal, DomainFindings};
use scrinium_mail_discovery::{PublishedRecord, SpfSource, records as records_of};
use scrinium_outbound::{Dns, KeyFolder};
use scrinium_sender_authentication::DomainName;
use scrinium_sender_authentication::dkim::{KeyState, KeyStore, SigningKey};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;

use crate::cli::{Failure, Terminal};
use crate::config::{RunningConfiguration, Settings, missing_for_mail};
use crate::ground::server_name;
use crate::mail_out;
use crate::mail_setup::{MailFacts, is_public};

use reach::MailHost;
use records::{Finding, State};

/// All questions, and all connections, together.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Domains that are looked at for browsers at a time.
const AT_ONCE: usize = 2;

/// What was found of a domain.
struct Report {
    domain: DomainName,
    findings: Vec<Finding>,
    hosts: Vec<MailHost>,
    remarks: Vec<String>,
}

impl Report {
    fn to_do(&self) -> usize {
        let records = self.findings.iter().filter(|finding| finding.state != State::Fine).count();
        records + self.hosts.iter().filter(|host| !host.is_fine()).count()
    }
}

/// What is to be looked up of a domain.
struct Search {
    domain: DomainName,
    facts: MailFacts,
    wanted: Vec<PublishedRecord>,
    dns: Dns,
    port: u16,
    remarks: Vec<String>,
}

impl Search {
    /// Reads the keys that sign, which takes a disk.
    fn prepare(settings: &Settings, name: &str) -> Result<Self, Failure> {
        let domain = DomainName::parse(name).filter(is_public);
        let domain =
            domain.ok_or_else(|| Failure::Use(format!("{name:?} is no domain that DNS could know")))?;
        let facts = MailFacts::of(settings, &server_name(settings));
        let nameless = || {
            Failure::Use(
                "this server has no name that others could know: say it in smtp.host_name".to_owned(),
            )
        };
        let host = facts.mail_hosts.first().filter(|host| is_public(host)).ok_or_else(nameless)?;
        let service = facts.service(&domain).ok_or_else(nameless)?;
        let (keys, mut remarks) = keys(settings, &domain)?;
        let sts = facts.sts_policy();
        let mut wanted = records_of(&service, host, &[SpfSource::MailHosts], &keys, sts.as_ref());
        wanted.push(reports_of_tls(&domain));
        if !settings.mail.domains.iter().any(|own| own.eq_ignore_ascii_case(domain.as_str())) {
            remarks.push(format!(
                "mail.domains does not name {domain}: its mail is taken only if the directory has it"
            ));
        }
        remarks.extend(missing_for_mail(settings));
        let port = u16::try_from(settings.outbound.port).unwrap_or(25);
        Ok(Self { domain, facts, wanted, dns: mail_out::dns(settings)?, port, remarks })
    }

    async fn look(self) -> Report {
        let Self { domain, facts, wanted, dns, port, remarks } = self;
        let (findings, hosts) = futures_util::future::join(
            records::look_up(&dns, (&domain, &facts.mail_hosts), wanted, TIMEOUT),
            reach::mail_hosts(&dns, &facts.mail_hosts, port, TIMEOUT),
        )
        .await;
        Report { domain, findings, hosts, remarks }
    }
}

/// Looks at domains for the console in the browser.
pub(crate) struct OwnDomainCheck {
    configuration: RunningConfiguration,
    /// Those that are looked at now.
    places: Arc<Semaphore>,
}

impl OwnDomainCheck {
    pub(crate) fn new(configuration: RunningConfiguration) -> Self {
        Self { configuration, places: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl DomainCheck for OwnDomainCheck {
    fn check(&self, domain: &str) -> DomainFindings {
        let (settings, name) = (self.configuration.settings(), domain.to_owned());
        let place = Arc::clone(&self.places).try_acquire_owned();
        Box::pin(async move {
            let failed = DomainCheckRefusal::Failed;
            let _place =
                place.map_err(|_| failed("Other domains are looked at; try again soon.".to_owned()))?;
            let prepared = tokio::task::spawn_blocking(move || Search::prepare(&settings, &name)).await;
            let search =
                prepared.map_err(|error| failed(error.to_string()))?.map_err(|error| match error {
                    Failure::Use(reason) => DomainCheckRefusal::Invalid(reason),
                    error => failed(error.reason().to_owned()),
                })?;
            let report = tokio::time::timeout(TIMEOUT * 2, search.look()).await;
            let report =
                report.map_err(|_| failed("Name servers and mail hosts do not answer.".to_owned()))?;
            Ok(show::data(&report))
        })
    }
}

/// Carries out `scrinium domain check`.
pub(crate) fn check(settings: &Settings, name: &str, terminal: &Terminal) -> Result<(), Failure> {
    let search = Search::prepare(settings, name)?;
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Work(format!("the network cannot be used: {error}")))?;
    let report = runtime.block_on(search.look());
    // Name servers that do not answer are waited for no longer than they may take.
    runtime.shutdown_background();
    terminal.data(&show::text(&report), &show::data(&report))?;
    match report.to_do() {
        0 => Ok(()),
        1 => Err(Failure::Work("one thing is missing, or differs".to_owned())),
        count => Err(Failure::Work(format!("{count} things are missing, or differ"))),
    }
}

/// Selectors and records of keys.
type SigningRecords = Vec<(String, String)>;

/// The keys that sign, or are to sign; and what is to be said of them.
fn keys(settings: &Settings, domain: &DomainName) -> Result<(SigningRecords, Vec<String>), Failure> {
    if !settings.outbound.sign || settings.outbound.route == "off" {
        return Ok((
            Vec::new(),
            vec!["outgoing mail is not signed: outbound.route is off, or outbound.sign".to_owned()],
        ));
    }
    let folder = KeyFolder::new(settings.in_data_dir(&settings.outbound.keys_dir));
    let kept = folder.keys(domain).map_err(|error| Failure::Work(error.to_string()))?;
    let published = kept.iter().filter(|key| key.state != KeyState::Retired).filter_map(|key| {
        let signing = SigningKey::from_pkcs8(key.kind, &key.pkcs8).ok()?;
        Some((key.selector.clone(), signing.record()))
    });
    let published: SigningRecords = published.collect();
    let remark =
        "there are no keys yet that sign mail: the server makes them within ten minutes of its start";
    let remarks = if published.is_empty() { vec![remark.to_owned()] } else { Vec::new() };
    Ok((published, remarks))
}

/// Where others say how mail to the domain was encrypted (RFC 8460 §3).
fn reports_of_tls(domain: &DomainName) -> PublishedRecord {
    PublishedRecord {
        name: format!("_smtp._tls.{domain}"),
        kind: "TXT",
        value: format!("v=TLSRPTv1; rua=mailto:postmaster@{domain}"),
        reason: "others do not say when mail to the domain could not be encrypted",
    }
}
