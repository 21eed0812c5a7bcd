//! DNS: hosts of a domain, and their addresses.

use std::net::SocketAddr;
use std::time::Duration;

use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::{Resolver, TokioResolver};
use scrinium_mail_queue::Random;
use scrinium_mail_queue::route::{
    AddressAnswer, Exchanger, LookupStep, MxAnswer, MxLookup, MxRecord, OwnHosts, RouteError,
};

/// How long one question may take, with its repetitions.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(5);

/// Times that a question is asked.
const ATTEMPTS: usize = 2;

/// Records of one answer that are looked at.
pub(crate) const RECORDS_MAX: usize = 100;

/// Answers that are kept as long as their zones allow.
const CACHE_ENTRIES: u64 = 4_096;

/// Asks DNS. Clones share what is kept of answers.
#[derive(Clone)]
pub struct Dns {
    pub(crate) resolver: TokioResolver,
}

/// Why there is no DNS.
#[derive(Debug, thiserror::Error)]
#[error("DNS cannot be asked: {0}; name servers that can be, in outbound.resolvers")]
pub struct DnsSetupError(String);

impl Dns {
    /// Asks these servers; those of `/etc/resolv.conf` if there are none.
    ///
    /// # Errors
    /// [`DnsSetupError`]
    pub fn new(servers: &[SocketAddr]) -> Result<Self, DnsSetupError> {
        let failed = |error: NetError| DnsSetupError(error.to_string());
        let mut builder = if servers.is_empty() {
            Resolver::builder_tokio().map_err(failed)?
        } else {
            let servers = servers.iter().map(name_server).collect();
            let config = ResolverConfig::from_parts(None, Vec::new(), servers);
            Resolver::builder_with_config(config, TokioRuntimeProvider::default())
        };
        set_options(builder.options_mut());
        Ok(Self { resolver: builder.build().map_err(failed)? })
    }

    /// The mail hosts of a domain, in the order in which they are tried.
    ///
    /// # Errors
    /// [`RouteError`]
    pub async fn exchangers(
        &self,
        domain: &str,
        own: &OwnHosts,
        random: &mut Random,
    ) -> Result<Vec<Exchanger>, RouteError> {
        let (mut lookup, mut step) = MxLookup::new(domain);
        loop {
            match step {
                LookupStep::Ask(name) => {
                    let answer = self.mail_exchangers(&name).await;
                    step = lookup.answer(answer, own, random);
                }
                LookupStep::Hosts(hosts) => return Ok(hosts),
                LookupStep::Failed(error) => return Err(error),
            }
        }
    }

    async fn mail_exchangers(&self, name: &str) -> MxAnswer {
        let Some(name) = whole_name(name) else { return MxAnswer::NoSuchName };
        match self.resolver.lookup(name, RecordType::MX).await {
            Ok(lookup) => {
                let record = |data: &RData| match data {
                    RData::MX(mx) => {
                        Some(MxRecord { preference: mx.preference, exchange: mx.exchange.to_ascii() })
                    }
                    _ => None,
                };
                let answers = lookup.answers().iter().take(RECORDS_MAX);
                let records: Vec<MxRecord> = answers.filter_map(|answer| record(&answer.data)).collect();
                if records.is_empty() { MxAnswer::NoRecords } else { MxAnswer::Records(records) }
            }
            Err(error) => match nothing_there(&error) {
                Some(Nothing::Name) => MxAnswer::NoSuchName,
                Some(Nothing::Records) => MxAnswer::NoRecords,
                None => MxAnswer::Failed(error.to_string()),
            },
        }
    }

    /// The addresses of a host, of both kinds.
    pub async fn addresses(&self, host: &str) -> AddressAnswer {
        if let Ok(address) = host.parse() {
            return AddressAnswer::Addresses(vec![address]);
        }
        let Some(name) = whole_name(host) else { return AddressAnswer::NoSuchName };
        let (four, six) = futures_util::future::join(
            self.resolver.lookup(name.clone(), RecordType::A),
            self.resolver.lookup(name, RecordType::AAAA),
        )
        .await;
        let (mut addresses, mut failed, mut is_there) = (Vec::new(), None, false);
        for answer in [four, six] {
            match answer {
                Ok(lookup) => {
                    is_there = true;
                    let address = |data: &RData| data.ip_addr();
                    let answers = lookup.answers().iter().take(RECORDS_MAX);
                    addresses.extend(answers.filter_map(|answer| address(&answer.data)));
                }
                Err(error) => match nothing_there(&error) {
                    Some(Nothing::Name) => {}
                    Some(Nothing::Records) => is_there = true,
                    None => failed = Some(error.to_string()),
                },
            }
        }
        match (addresses.is_empty(), failed, is_there) {
            (false, ..) => AddressAnswer::Addresses(addresses),
            (true, Some(reason), _) => AddressAnswer::Failed(reason),
            (true, None, true) => AddressAnswer::Addresses(Vec::new()),
            (true, None, false) => AddressAnswer::NoSuchName,
        }
    }
}

fn name_server(server: &SocketAddr) -> NameServerConfig {
    let with_port = |mut connection: ConnectionConfig| {
        connection.port = server.port();
        connection
    };
    let connections = vec![with_port(ConnectionConfig::udp()), with_port(ConnectionConfig::tcp())];
    NameServerConfig::new(server.ip(), true, connections)
}

fn set_options(options: &mut ResolverOpts) {
    options.timeout = QUESTION_TIMEOUT;
    options.attempts = ATTEMPTS;
    options.cache_size = CACHE_ENTRIES;
    // Names of the outside are DNS's to know: what stands in /etc/hosts is for this machine's programs.
    options.use_hosts_file = ResolveHosts::Never;
}

/// A name to which no domain of this machine is added.
pub(crate) fn whole_name(name: &str) -> Option<Name> {
    let mut name = Name::from_utf8(name).ok()?;
    name.set_fqdn(true);
    Some(name)
}

pub(crate) enum Nothing {
    Name,
    Records,
}

/// What an answer that has nothing says is not there; `None` if it is no answer.
pub(crate) fn nothing_there(error: &NetError) -> Option<Nothing> {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(nothing)) => match nothing.response_code {
            ResponseCode::NXDomain => Some(Nothing::Name),
            ResponseCode::NoError => Some(Nothing::Records),
            _ => None,
        },
        _ => None,
    }
}
