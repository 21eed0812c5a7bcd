//! Ports at which mail comes in: of other servers by SMTP, of a server in front of this one by LMTP, and of people.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use scrinium_accounting::Accounts;
use scrinium_clock::milliseconds;
use scrinium_directory::{Logins, TokenVerifier};
use scrinium_mail::{IncomingMail, Resolver};
use scrinium_outbound::Dns;
use scrinium_port::{Port, PortCounters, PortSecurity, PortSettings, SocketPort};
use scrinium_sender_authentication::{Answer, Question};
use scrinium_smtp::{ServerOptions, Service};
use scrinium_smtp_server::{
    AllowanceLimits, Allowances, GateOptions, Reception, ReceptionOptions, SenderCheckOptions, SenderDns,
    SmtpProtocol, SpoolBudget, Submission, SubmissionOptions, Surroundings,
};
use scrinium_store::Store;

use crate::cli::Failure;
use crate::config::{Address, Settings};
use crate::grey_records::GreyRecords;
use crate::ground::Ground;
use crate::running::resolve;
use crate::tls;
use crate::{limits, mail_filters, mail_out};

/// Of `mail.incoming_bytes`, one message takes this share at most.
const SHARE_OF_ONE: u64 = 64;

/// What mail that comes in needs of the server.
pub(crate) struct MailParts {
    pub(crate) resolver: Resolver,
    pub(crate) mail: IncomingMail,
    /// Where it is written down who is known to greylisting: the number of a database.
    pub(crate) grey_place: (Store, u32),
    pub(crate) accounts: Accounts,
    /// Lets people in who hand messages in.
    pub(crate) logins: Arc<Logins>,
    /// Verifies tokens of the provider, if they let people in.
    pub(crate) tokens: Option<Arc<dyn TokenVerifier>>,
    /// Counts the connections of all protocols.
    pub(crate) open: Arc<AtomicU64>,
}

/// Protocols of mail with where they listen, in the order of their ports.
pub(crate) fn listening(settings: &Settings) -> [(&'static str, &[Address]); 4] {
    [
        ("smtp", &settings.smtp.listen),
        ("lmtp", &settings.lmtp.listen),
        ("submission", &settings.submission.listen),
        ("submissions", &settings.submission.tls_listen),
    ]
}

/// The ports of `smtp.listen`, of `lmtp.listen`, and those of `submission`; and the socket of `lmtp.socket`.
///
/// # Errors
/// An address that this machine does not know, or a certificate that cannot be read.
pub(crate) fn mail_ports(
    ground: &Ground,
    settings: &Settings,
    parts: &MailParts,
) -> Result<(Vec<Port>, Option<SocketPort>), Failure> {
    let maker = Maker { ground, settings, parts, budget: budget(settings) };
    let (mut ports, _) = maker.reception(Service::Relay)?;
    let (lmtp, socket) = maker.reception(Service::Lmtp)?;
    ports.extend(lmtp);
    ports.extend(maker.submission()?);
    Ok((ports, socket))
}

fn budget(settings: &Settings) -> SpoolBudget {
    SpoolBudget::new(
        bounded(settings.mail.incoming_bytes),
        bounded(settings.mail.incoming_file_bytes),
        bounded(settings.mail.incoming_bytes / SHARE_OF_ONE),
    )
}

struct Maker<'m> {
    ground: &'m Ground,
    settings: &'m Settings,
    parts: &'m MailParts,
    budget: SpoolBudget,
}

/// DNS for the checks of senders.
struct CheckDns(Dns);

impl SenderDns for CheckDns {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        self.0.answer(question).boxed()
    }
}

/// Ports of one protocol that listen alike.
struct Group<'g> {
    key: &'static str,
    addresses: &'g [Address],
    protocol: Arc<SmtpProtocol>,
    counters: PortCounters,
    tls: Option<Arc<rustls::ServerConfig>>,
}

impl Maker<'_> {
    fn reception(&self, service: Service) -> Result<(Vec<Port>, Option<SocketPort>), Failure> {
        let Self { ground, settings, parts, budget } = self;
        let (key, name, addresses) = match service {
            Service::Lmtp => ("lmtp.listen", "LMTP", &settings.lmtp.listen),
            Service::Relay | Service::Submission => ("smtp.listen", "SMTP", &settings.smtp.listen),
        };
        let file = settings.lmtp.socket.as_str();
        let file = Some(file).filter(|file| service == Service::Lmtp && !file.is_empty());
        if addresses.is_empty() && file.is_none() {
            return Ok((Vec::new(), None));
        }
        let is_encrypted = service == Service::Relay && settings.smtp.starttls;
        let security = if is_encrypted { self.security()? } else { PortSecurity::default() };
        let is_relay = service == Service::Relay;
        let reception = Reception::new(
            ReceptionOptions {
                service,
                postmasters: vec![settings.mail.postmaster.clone()],
                budget: budget.clone(),
                accounts: parts.accounts.clone(),
                check: if is_relay { self.sender_check()? } else { None },
                filters: if is_relay { mail_filters::filters(ground, settings) } else { None },
                gate: if is_relay { self.gate()? } else { None },
            },
            parts.resolver.clone(),
            parts.mail.clone(),
            ground.workers().clone(),
            ground.statistics(),
        );
        let protocol = self.protocol(service, security, reception);
        let counters = self.counters(name);
        let socket = file.map(|file| SocketPort {
            path: settings.in_data_dir(file.as_ref()),
            protocol: Arc::clone(&protocol) as _,
            counters: counters.clone(),
        });
        Ok((self.ports(&Group { key, addresses, protocol, counters, tls: None })?, socket))
    }

    /// What strangers have to pass, if anything.
    fn gate(&self) -> Result<Option<GateOptions>, Failure> {
        let Self { ground, settings, parts, .. } = self;
        let records = || {
            let (store, number) = parts.grey_place.clone();
            GreyRecords::open(store, number, ground.clock().clone()).map(Arc::new).map_err(Failure::work)
        };
        let dns = Arc::new(CheckDns(mail_out::dns(settings)?));
        mail_filters::gate(ground, settings, (dns, records))
    }

    /// How messages of other servers are checked, if they are.
    fn sender_check(&self) -> Result<Option<SenderCheckOptions>, Failure> {
        let Self { ground, settings, .. } = self;
        if settings.smtp.sender_checks == "off" {
            return Ok(None);
        }
        let networks = &settings.smtp.trusted_networks;
        Ok(Some(SenderCheckOptions {
            dns: Arc::new(CheckDns(mail_out::dns(settings)?)),
            server: mail_out::host_name(ground, settings),
            applies_dmarc: settings.smtp.sender_checks == "apply",
            trusted: networks.iter().filter_map(|range| range.parse().ok()).collect(),
            clock: ground.clock().clone(),
        }))
    }

    fn submission(&self) -> Result<Vec<Port>, Failure> {
        let Self { ground, settings, parts, budget } = self;
        let set = &settings.submission;
        if set.listen.is_empty() && set.tls_listen.is_empty() {
            return Ok(Vec::new());
        }
        let limits = AllowanceLimits {
            messages: set.max_messages_per_day as u64,
            recipients: set.max_recipients_per_day as u64,
        };
        let submission = Submission::new(
            SubmissionOptions {
                postmasters: vec![settings.mail.postmaster.clone()],
                budget: budget.clone(),
                accounts: parts.accounts.clone(),
                logins: Arc::clone(&parts.logins),
                tokens: parts.tokens.clone(),
                rights: Arc::new(parts.resolver.clone()),
                allowances: Allowances::new(limits, ground.clock().clone()),
                reaches_others: settings.outbound.route != "off",
                filters: if settings.filters.submission {
                    mail_filters::filters(ground, settings)
                } else {
                    None
                },
            },
            parts.resolver.clone(),
            parts.mail.clone(),
            ground.workers().clone(),
            ground.statistics(),
        );
        let security = PortSecurity { trusts_loopback: set.loopback_without_tls, ..self.security()? };
        let tls = security.tls.clone();
        let protocol = self.protocol(Service::Submission, security, submission);
        let counters = self.counters("Submission");
        let open = Group { key: "submission.listen", addresses: &set.listen, protocol, counters, tls: None };
        let mut ports = self.ports(&open)?;
        let encrypted = Group { key: "submission.tls_listen", addresses: &set.tls_listen, tls, ..open };
        ports.extend(self.ports(&encrypted)?);
        Ok(ports)
    }

    fn protocol(
        &self,
        service: Service,
        security: PortSecurity,
        surroundings: impl Surroundings,
    ) -> Arc<SmtpProtocol> {
        let mut options = server_options(self.ground, self.settings, service);
        options.has_tokens = service == Service::Submission && self.parts.tokens.is_some();
        let clock = self.ground.clock().clone();
        Arc::new(SmtpProtocol::new(options, security, Arc::new(surroundings), clock))
    }

    fn counters(&self, name: &str) -> PortCounters {
        PortCounters::register(self.ground.statistics(), name, Arc::clone(&self.parts.open))
    }

    /// The server's certificate, for a protocol that is not HTTP.
    fn security(&self) -> Result<PortSecurity, Failure> {
        let shared = self.ground.encryption().map_err(Failure::work)?;
        let tls = tls::for_mail(&shared).map_err(Failure::work)?;
        let server_end_point = Some(self.ground.certificate_binding().map_err(Failure::work)?);
        Ok(PortSecurity { tls: Some(tls), server_end_point, trusts_loopback: false })
    }

    fn ports(&self, group: &Group<'_>) -> Result<Vec<Port>, Failure> {
        let settings = self.settings;
        // The server speaks first: only who has to begin with a header is waited for.
        let trusted_proxies =
            if settings.smtp.proxy_header { limits::trusted_proxies(settings) } else { Vec::new() };
        let port = |address: &Address| {
            Ok(Port {
                settings: PortSettings {
                    listen: resolve(group.key, address)?,
                    tls: group.tls.clone(),
                    trusted_proxies: trusted_proxies.clone(),
                    proxy_header_required: true,
                    greeting_timeout_ms: milliseconds(settings.http.read_timeout),
                },
                protocol: Arc::clone(&group.protocol) as _,
                counters: group.counters.clone(),
            })
        };
        group.addresses.iter().map(port).collect()
    }
}

fn server_options(ground: &Ground, settings: &Settings, service: Service) -> ServerOptions {
    let named = Some(settings.smtp.host_name.as_str()).filter(|name| !name.is_empty());
    let mut options = ServerOptions::new(service, named.unwrap_or_else(|| ground.name()));
    options.limits.message_bytes = settings.smtp.max_message_bytes;
    options.limits.recipients = settings.smtp.max_recipients;
    options.times.command_ms = milliseconds(settings.smtp.command_timeout);
    options.future_release_s = Some(settings.submission.max_hold.as_secs()).filter(|seconds| *seconds > 0);
    options.hides_clients = service == Service::Submission && settings.submission.hide_clients;
    options
}

fn bounded(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
