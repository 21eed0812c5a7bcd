//! Mail that leaves: the queue of outgoing mail as the configuration describes it.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use scrinium_catalog::Databases;
use scrinium_clock::milliseconds;
use scrinium_mail::{Mailboxes, OutgoingOptions, OutgoingQueue};
use scrinium_mail_queue::report::ReportOptions;
use scrinium_mail_queue::route::{
    AddressOrder, Login, OwnHosts, RELAY_PORT, RelayHost, TargetOptions, TlsRule, Transport,
};
use scrinium_mail_queue::{QueuePolicy, SchedulerOptions};
use scrinium_outbound::{
    Dns, KeyFolder, KeyKeeper, ManagerOptions, NetworkCourier, NetworkOptions, Outbound, OutboundHandle,
    POLICY_PORT, QueueManager, Secrets, StsPolicies, TlsClient, read_rewrites, read_transports,
};
use scrinium_sender_authentication::dkim::RotationPolicy;
use scrinium_smtp::client::ClientTimes;
use scrinium_smtp_wire::{Domain, Mailbox};

use crate::cli::Failure;
use crate::config::Settings;
use crate::ground::Ground;
use crate::log_database::LogDatabase;
use crate::running::resolve;

/// The name of the log-in that `outbound.relay_user` stands for.
const RELAY_SECRET: &str = "relay";

/// A longer file is not taken for a password.
const PASSWORD_FILE_MAX_BYTES: u64 = 64 << 10;

/// The queue of outgoing mail, if there is to be one.
///
/// # Errors
/// A file that cannot be read, or what the database reports.
pub(crate) fn queue(
    ground: &Ground,
    settings: &Settings,
    databases: &Databases,
) -> Result<Option<OutgoingQueue>, Failure> {
    let outbound = &settings.outbound;
    let tls = tls_rule(&outbound.tls);
    let otherwise = match outbound.route.as_str() {
        "mx" => Transport::Exchangers { tls },
        "relay" => Transport::Relay { relay: relay(settings)?, tls },
        _ => return Ok(None),
    };
    let transports = rules(settings, "outbound.transports", &outbound.transports)?;
    let transports = read_transports(&transports, otherwise)
        .map_err(|error| Failure::Use(format!("outbound.transports: {error}")))?;
    let rewrites = rules(settings, "outbound.rewrites", &outbound.rewrites)?;
    let rewrites =
        read_rewrites(&rewrites).map_err(|error| Failure::Use(format!("outbound.rewrites: {error}")))?;
    let options = OutgoingOptions {
        host: host_name(ground, settings),
        transports,
        rewrites,
        policy: policy(settings),
        verp_senders: settings.queue.verp_senders.iter().map(|sender| sender.to_lowercase()).collect(),
        hops_max: settings.queue.max_hops,
    };
    OutgoingQueue::open(databases, options).map(Some).map_err(Failure::work)
}

/// Begins to send what is in the queue.
///
/// # Errors
/// Certificates or name servers that cannot be used, and what the store reports.
pub(crate) fn start(
    ground: &Ground,
    (queue, mailboxes, log): (OutgoingQueue, Mailboxes, LogDatabase),
) -> Result<OutboundHandle, Failure> {
    let settings = &*ground.settings();
    let (clock, seed) = (ground.clock().clone(), rand::random());
    let host = host_name(ground, settings);
    let domain = settings.mail.domains.first().map_or(host.as_str(), String::as_str);
    let from = Domain::parse(domain.as_bytes())
        .and_then(|domain| Mailbox::new("postmaster", domain))
        .map_err(|error| Failure::Use(format!("mail.domains: {error}")))?;
    let dns = dns(settings)?;
    let keys = settings.outbound.sign.then(|| {
        let folder = KeyFolder::new(settings.in_data_dir(&settings.outbound.keys_dir));
        let policy = RotationPolicy::default();
        KeyKeeper::new(folder, dns.clone(), &settings.mail.domains, (policy, clock.clone()))
    });
    let tls = TlsClient::new(authorities(settings)?).map_err(Failure::work)?;
    let channel = Outbound::channel();
    let options = network_options(ground, settings);
    let policies = settings.outbound.mta_sts.then(|| {
        let parts = (dns.clone(), &tls, clock.clone());
        StsPolicies::new(queue.database(), parts, options.targets.clone(), POLICY_PORT)
    });
    let counted = policies.clone();
    #[allow(clippy::cast_precision_loss, reason = "nobody makes 2^53 attempts")]
    ground
        .statistics()
        .gauge("Mail.STS.Breaches", move || counted.as_ref().map_or(0, StsPolicies::breaches) as f64);
    let courier = NetworkCourier::new(
        options,
        (dns, tls, Box::new(secrets(settings))),
        (keys.as_ref().map(KeyKeeper::signing), policies),
        channel.0.clone(),
        (clock.clone(), seed),
    );
    let options = ManagerOptions {
        policy: policy(settings),
        scheduler: scheduler(settings),
        report: ReportOptions { host, from },
        seed,
    };
    let parts = (clock.clone(), ground.statistics());
    let manager =
        QueueManager::open(queue, mailboxes, Arc::new(courier), options, parts).map_err(Failure::work)?;
    let manager = manager.on_record(move |told| log.queued_mail(told));
    Ok(Outbound::new(manager, channel, clock).with_keys(keys).start())
}

/// Asks the name servers of the configuration.
///
/// # Errors
/// Name servers that cannot be used.
pub(crate) fn dns(settings: &Settings) -> Result<Dns, Failure> {
    let servers = settings.outbound.resolvers.iter();
    let servers: Result<Vec<SocketAddr>, Failure> =
        servers.map(|address| resolve("outbound.resolvers", address)).collect();
    Dns::new(&servers?).map_err(Failure::work)
}

/// The name of this server towards others.
pub(crate) fn host_name(ground: &Ground, settings: &Settings) -> String {
    let named = Some(settings.smtp.host_name.as_str()).filter(|name| !name.is_empty());
    named.unwrap_or_else(|| ground.name()).to_owned()
}

fn tls_rule(name: &str) -> TlsRule {
    match name {
        "off" => TlsRule::Off,
        "required" => TlsRule::Required,
        "verified" => TlsRule::Verified,
        _ => TlsRule::Opportunistic,
    }
}

fn relay(settings: &Settings) -> Result<RelayHost, Failure> {
    let outbound = &settings.outbound;
    let Some(address) = outbound.relay.first() else {
        return Err(Failure::Use("outbound.route is relay, and outbound.relay names none".to_owned()));
    };
    let login = (!outbound.relay_user.is_empty())
        .then(|| Login { name: outbound.relay_user.clone(), secret: RELAY_SECRET.to_owned() });
    Ok(RelayHost {
        host: address.host.clone(),
        port: if address.port == 0 { RELAY_PORT } else { address.port },
        by_mx: false,
        implicit_tls: outbound.relay_implicit_tls,
        login,
        allow_plain_login: false,
    })
}

/// The text of a file of rules; nothing where none is named.
fn rules(settings: &Settings, key: &str, file: &str) -> Result<String, Failure> {
    if file.is_empty() {
        return Ok(String::new());
    }
    let path = settings.in_data_dir(Path::new(file));
    fs::read_to_string(&path)
        .map_err(|error| Failure::Use(format!("{key}: {} cannot be read: {error}", path.display())))
}

fn authorities(settings: &Settings) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let file = &settings.outbound.ca_file;
    if file.is_empty() {
        return Ok(Vec::new());
    }
    let path = settings.in_data_dir(Path::new(file));
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::Use(format!("outbound.ca_file: {} cannot be read: {error}", path.display()))
    };
    let certificates = CertificateDer::pem_file_iter(&path).map_err(|error| unreadable(&error))?;
    certificates.collect::<Result<Vec<_>, _>>().map_err(|error| unreadable(&error))
}

fn policy(settings: &Settings) -> QueuePolicy {
    let queue = &settings.queue;
    let mut retries = Vec::new();
    let mut wait = queue.first_retry.max(Duration::from_secs(1));
    while wait < queue.longest_retry {
        retries.push(milliseconds(wait));
        wait = wait.saturating_mul(2);
    }
    retries.push(milliseconds(queue.longest_retry));
    let notice = queue.delay_notice;
    QueuePolicy {
        retries_ms: retries,
        lifetime_ms: milliseconds(queue.lifetime),
        report_lifetime_ms: milliseconds(queue.report_lifetime),
        delay_notice_ms: if notice.is_zero() { u64::MAX } else { milliseconds(notice) },
        dead_ms: milliseconds(queue.keep_dead_for),
        ..QueuePolicy::default()
    }
}

fn scheduler(settings: &Settings) -> SchedulerOptions {
    let outbound = &settings.outbound;
    let most = u32::try_from(outbound.destination_connections).unwrap_or(u32::MAX);
    let usual = SchedulerOptions::default();
    SchedulerOptions {
        attempts: outbound.attempts,
        // Hosts that do not answer never take all places.
        probes: (outbound.attempts / 2).max(1),
        first_concurrency: usual.first_concurrency.min(most),
        destination_concurrency: most,
        ..usual
    }
}

fn network_options(ground: &Ground, settings: &Settings) -> NetworkOptions {
    let outbound = &settings.outbound;
    let host = host_name(ground, settings);
    let names: BTreeSet<String> = [host.as_str(), ground.name()].map(str::to_lowercase).into();
    let listening = settings.smtp.listen.iter().filter_map(|address| address.host.parse().ok());
    let listening = listening.filter(|address: &std::net::IpAddr| !address.is_unspecified());
    let order = match outbound.ip.as_str() {
        "v4_first" => AddressOrder::V4First,
        "v4" => AddressOrder::V4Only,
        "v6" => AddressOrder::V6Only,
        _ => AddressOrder::V6First,
    };
    let command_ms = milliseconds(outbound.command_timeout);
    let usual = ClientTimes::default();
    NetworkOptions {
        host,
        own: OwnHosts { names, addresses: listening.collect() },
        port: u16::try_from(outbound.port).unwrap_or(25),
        targets: TargetOptions {
            order,
            allow_loopback: outbound.private_networks,
            allow_private: outbound.private_networks,
            ..TargetOptions::default()
        },
        times: ClientTimes {
            command_ms,
            data_ms: usual.data_ms.min(command_ms),
            text_ms: usual.text_ms.min(command_ms),
            end_ms: command_ms.saturating_mul(2),
        },
        session: outbound.session_timeout,
    }
}

fn secrets(settings: &Settings) -> FileSecrets {
    FileSecrets {
        relay: settings.in_data_dir(&settings.outbound.relay_password),
        folder: settings.in_data_dir(&settings.outbound.secrets_dir),
    }
}

/// Passwords in files, which only the server's owner should be able to read. They are read when they are used, so that a new one
/// holds at once.
struct FileSecrets {
    relay: PathBuf,
    folder: PathBuf,
}

impl Secrets for FileSecrets {
    fn password(&self, name: &str) -> Result<String, String> {
        let is_name =
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
                && !name.starts_with('.');
        if !is_name {
            return Err("the name of a password has letters, digits, dots and dashes alone".to_owned());
        }
        let path = if name == RELAY_SECRET { self.relay.clone() } else { self.folder.join(name) };
        let unreadable = |error: &dyn std::fmt::Display| {
            format!("this server's password for the relay host cannot be read ({}): {error}", path.display())
        };
        password_in(&path).map_err(|error| unreadable(&error))
    }
}

/// The first line of a file.
///
/// # Errors
/// Why there is none.
pub(crate) fn password_in(path: &Path) -> Result<String, String> {
    let length = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > PASSWORD_FILE_MAX_BYTES {
        return Err("the file is too long".to_owned());
    }
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    match text.lines().next() {
        Some(password) if !password.is_empty() => Ok(password.to_owned()),
        _ => Err("its first line is empty".to_owned()),
    }
}
