//! The hosts of a domain (RFC 5321, section 5.1).

use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;

use scrinium_smtp_wire::EnhancedCode;
use thiserror::Error;

use crate::outcome::{Cause, Ending, Outcome, clean_text};
use crate::random::Random;

/// More names in a chain of aliases are a mistake, or a circle.
pub const ALIASES_MAX: usize = 8;

/// More hosts of a domain are not tried in one round.
const HOSTS_MAX: usize = 50;

/// An MX record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MxRecord {
    /// Lower is tried first.
    pub preference: u16,
    /// The host; empty or `.` is the null MX (RFC 7505).
    pub exchange: String,
}

/// What DNS says of the MX records of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MxAnswer {
    /// Some.
    Records(Vec<MxRecord>),
    /// The name exists, and has no such records.
    NoRecords,
    /// There is no such name.
    NoSuchName,
    /// The name is another name for this one (CNAME), whose records the answer did not bring along.
    Alias(String),
    /// No answer, or SERVFAIL, or one that does not validate; with the reason.
    Failed(String),
}

/// A host that takes a domain's mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchanger {
    /// Its name, in lower case, without a dot at the end.
    pub name: String,
    /// Its preference.
    pub preference: u16,
}

/// Names and addresses that are this server's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnHosts {
    /// In lower case.
    pub names: BTreeSet<String>,
    /// Addresses that it listens on.
    pub addresses: BTreeSet<IpAddr>,
}

/// Why there is no way to a domain.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RouteError {
    /// NXDOMAIN.
    #[error("the domain {0} does not exist")]
    NoSuchDomain(String),
    /// RFC 7505.
    #[error("the domain {0} takes no mail")]
    NullMx(String),
    /// No host of the domain has an address.
    #[error("no mail host of {0} has an address")]
    NoAddresses(String),
    /// The best host is this server, which does not know the domain.
    #[error("the mail hosts of {0} lead back to this server")]
    Loop(String),
    /// Aliases lead around or too far.
    #[error("the aliases of {0} in DNS lead around in a circle, or too far")]
    Aliases(String),
    /// All addresses are this server's, or loopback.
    #[error("all addresses of {0} are this server's own, or are not to be connected to")]
    OwnAddresses(String),
    /// No answer.
    #[error("DNS gave no answer for {name}: {reason}")]
    LookupFailed {
        /// The name.
        name: String,
        /// Why.
        reason: String,
    },
    /// Its policy (MTA-STS) names none of its hosts.
    #[error("the policy of {0} (MTA-STS) allows none of its mail hosts")]
    PolicyMismatch(String),
    /// An address in brackets of a kind that is not known.
    #[error("{0} is no address of a host that is known here")]
    Literal(String),
}

impl RouteError {
    /// What it means for the recipients.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let (ending, cause) = match self {
            Self::NoSuchDomain(_) | Self::Literal(_) => (Ending::Failed, Cause::NoSuchDomain),
            Self::NullMx(_) => (Ending::Failed, Cause::NullMx),
            // Somebody may just be changing DNS; and what was registered yesterday has no address yet.
            Self::NoAddresses(_) => (Ending::Deferred, Cause::NoHosts),
            Self::Loop(_) | Self::OwnAddresses(_) => (Ending::Failed, Cause::MailLoop),
            Self::Aliases(_) => (Ending::Failed, Cause::NoHosts),
            Self::LookupFailed { .. } => (Ending::Deferred, Cause::LookupFailed),
            // RFC 8461, section 5: until the policy or the hosts change, but not past the message's lifetime.
            Self::PolicyMismatch(_) => (Ending::Deferred, Cause::PolicyMismatch),
        };
        let mut outcome = Outcome::new(ending, cause);
        outcome.reply = Some(clean_text(&self.to_string()));
        if let Self::Loop(_) | Self::OwnAddresses(_) = self {
            outcome.status = EnhancedCode::new(5, 4, 6);
        }
        outcome
    }
}

/// What a look-up needs next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupStep {
    /// Ask DNS for the MX records of this name.
    Ask(String),
    /// The hosts in the order in which they are tried.
    Hosts(Vec<Exchanger>),
    /// There is no way.
    Failed(RouteError),
}

/// Finds the hosts of a domain, an answer at a time.
#[derive(Clone, Debug)]
pub struct MxLookup {
    domain: String,
    name: String,
    seen: HashSet<String>,
}

impl MxLookup {
    /// A look-up of a domain, and the name that DNS is to be asked for.
    #[must_use]
    pub fn new(domain: &str) -> (Self, LookupStep) {
        let name = host_name(domain);
        let lookup =
            Self { domain: domain.to_owned(), name: name.clone(), seen: HashSet::from([name.clone()]) };
        (lookup, LookupStep::Ask(name))
    }

    /// Goes on with the answer for the name that was asked for.
    pub fn answer(&mut self, answer: MxAnswer, own: &OwnHosts, random: &mut Random) -> LookupStep {
        match answer {
            MxAnswer::Alias(name) => {
                let name = host_name(&name);
                if self.seen.len() > ALIASES_MAX || !self.seen.insert(name.clone()) {
                    return LookupStep::Failed(RouteError::Aliases(self.domain.clone()));
                }
                self.name.clone_from(&name);
                LookupStep::Ask(name)
            }
            MxAnswer::NoSuchName => LookupStep::Failed(RouteError::NoSuchDomain(self.domain.clone())),
            MxAnswer::Failed(reason) => LookupStep::Failed(RouteError::LookupFailed {
                name: self.name.clone(),
                reason: clean_text(&reason),
            }),
            MxAnswer::NoRecords => self.records(Vec::new(), own, random),
            MxAnswer::Records(records) => self.records(records, own, random),
        }
    }

    fn records(&self, records: Vec<MxRecord>, own: &OwnHosts, random: &mut Random) -> LookupStep {
        let hosts =
            |record: MxRecord| Exchanger { name: host_name(&record.exchange), preference: record.preference };
        let all: Vec<Exchanger> = records.into_iter().map(hosts).collect();
        // The implicit MX: only where there is no record at all.
        if all.is_empty() {
            return self.sort(vec![Exchanger { name: self.name.clone(), preference: 0 }], own, random);
        }
        let named: Vec<Exchanger> = all.into_iter().filter(|host| !host.name.is_empty()).collect();
        // RFC 7505, section 3: the null MX stands alone. Next to others it is a mistake, and the others are meant.
        if named.is_empty() {
            return LookupStep::Failed(RouteError::NullMx(self.domain.clone()));
        }
        self.sort(named, own, random)
    }

    fn sort(&self, mut hosts: Vec<Exchanger>, own: &OwnHosts, random: &mut Random) -> LookupStep {
        // By chance among equals: a stable sort keeps the order that chance gave.
        random.shuffle(&mut hosts);
        hosts.sort_by_key(|host| host.preference);
        let mut named = HashSet::new();
        hosts.retain(|host| named.insert(host.name.clone()));
        // RFC 5321, section 5.1: this server among them drops itself, its equals and all that are worse.
        let ours =
            hosts.iter().filter(|host| own.names.contains(&host.name)).map(|host| host.preference).min();
        if let Some(ours) = ours {
            hosts.retain(|host| host.preference < ours);
        }
        hosts.truncate(HOSTS_MAX);
        if hosts.is_empty() {
            return LookupStep::Failed(RouteError::Loop(self.domain.clone()));
        }
        LookupStep::Hosts(hosts)
    }
}

/// A name in lower case, without the dot at its end.
fn host_name(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_lowercase()
}
