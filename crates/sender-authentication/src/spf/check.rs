//! `check_host()` (RFC 7208 §4): records, mechanisms, and what they may cost.

use std::fmt;
use std::net::IpAddr;

use crate::dns::{Answer, Answers, Missing, Question};
use crate::name::DomainName;

use super::macros::{Letter, MacroText};
use super::record::{Mechanism, Prefixes, Qualifier, SpfRecord, SpfRecordError, is_spf};

/// Terms that ask DNS, of one check (RFC 7208 §4.6.4).
const TERMS_MAX: usize = 10;

/// Questions without an answer, of one check (RFC 7208 §4.6.4).
const VOID_MAX: usize = 2;

/// Hosts of one MX answer (RFC 7208 §4.6.4).
const MAIL_HOSTS_MAX: usize = 10;

/// Names of one PTR answer that are looked at (RFC 7208 §4.6.4).
const NAMES_MAX: usize = 10;

/// Letters of an explanation that are given on.
const EXPLANATION_LETTERS_MAX: usize = 400;

/// What came of a check (RFC 7208 §2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpfResult {
    /// There is no record, or no domain to ask for one.
    None,
    /// The domain does not say.
    Neutral,
    /// The server may send for the domain.
    Pass,
    /// It may not.
    Fail,
    /// It probably may not.
    SoftFail,
    /// DNS did not answer.
    TempError,
    /// The domain's records are wrong, or cost too much.
    PermError,
}

impl fmt::Display for SpfResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "none",
            Self::Neutral => "neutral",
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::SoftFail => "softfail",
            Self::TempError => "temperror",
            Self::PermError => "permerror",
        })
    }
}

/// Why there is no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpfFault {
    /// DNS did not answer (RFC 7208 §2.6.6).
    #[error("DNS did not answer")]
    Dns,
    /// A record cannot be read (RFC 7208 §4.6).
    #[error(transparent)]
    Record(#[from] SpfRecordError),
    /// RFC 7208 §4.5: a domain has several records.
    #[error("the domain has several SPF records")]
    SeveralRecords,
    /// RFC 7208 §4.6.4: more than ten terms that ask DNS.
    #[error("the SPF record needs more than {TERMS_MAX} questions")]
    Terms,
    /// RFC 7208 §4.6.4: more than two questions without an answer.
    #[error("the SPF record asks for more than {VOID_MAX} names that have nothing")]
    Voids,
    /// RFC 7208 §4.6.4: more than ten hosts of an MX answer.
    #[error("the SPF record names a domain with more than {MAIL_HOSTS_MAX} mail hosts")]
    MailHosts,
    /// RFC 7208 §5.2, §6.1: `include` or `redirect` of a domain without a record.
    #[error("the SPF record includes a domain that has none")]
    NoRecord,
}

/// Who is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpfRequest<'a> {
    /// The address of the server that sends.
    pub address: IpAddr,
    /// The address of MAIL FROM; empty for the null sender, of which the greeting is checked (RFC 7208 §2.4).
    pub mail_from: &'a str,
    /// What the server called itself in HELO or EHLO.
    pub helo: &'a str,
    /// What this server calls itself, for explanations.
    pub receiver: &'a str,
    /// The time, in seconds since 1970, for explanations.
    pub now_seconds: u64,
}

/// What came of a check, and for which domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpfOutcome {
    /// What came of it.
    pub result: SpfResult,
    /// The domain that was checked; `None` if there is none.
    pub domain: Option<DomainName>,
    /// Whether the domain is that of the greeting, because there is no sender.
    pub is_greeting: bool,
    /// Why there is no verdict.
    pub fault: Option<SpfFault>,
    /// What the domain says to those who may not send for it (RFC 7208 §6.2): one line of printable ASCII.
    pub explanation: Option<String>,
}

/// Checks the sender of a message; for the null sender the greeting.
///
/// # Errors
/// [`Missing`]: a question that has to be asked.
pub fn check_sender(request: &SpfRequest<'_>, answers: &Answers) -> Result<SpfOutcome, Missing> {
    let is_greeting = request.mail_from.is_empty();
    // RFC 7208 §4.3: a sender without a local part is the postmaster.
    let (local, domain) = match request.mail_from.rsplit_once('@') {
        Some(("", domain)) => ("postmaster", domain),
        Some((local, domain)) => (local, domain),
        None if is_greeting => ("postmaster", request.helo),
        None => ("postmaster", request.mail_from),
    };
    // RFC 7208 §4.3: a domain has several labels.
    let domain = DomainName::parse(domain).filter(|domain| domain.labels() > 1);
    let mut outcome =
        SpfOutcome { result: SpfResult::None, domain, is_greeting, fault: None, explanation: None };
    let Some(domain) = outcome.domain.clone() else { return Ok(outcome) };
    // RFC 7208 §5: an IPv4 address that is written as an IPv6 one is an IPv4 address.
    let request = &SpfRequest { address: request.address.to_canonical(), ..*request };
    let mut check = Check {
        request,
        answers,
        local,
        sender_domain: domain.clone(),
        terms: 0,
        voids: 0,
        name: None,
        explanation: None,
    };
    match check.host(&domain, true) {
        Ok(result) => {
            outcome.result = result;
            if result == SpfResult::Fail {
                outcome.explanation = check.explained()?;
            }
        }
        Err(Stop::Missing(missing)) => return Err(missing),
        Err(Stop::Fault(fault)) => {
            outcome.result = if fault == SpfFault::Dns { SpfResult::TempError } else { SpfResult::PermError };
            outcome.fault = Some(fault);
        }
    }
    Ok(outcome)
}

enum Stop {
    Missing(Missing),
    Fault(SpfFault),
}

impl From<Missing> for Stop {
    fn from(missing: Missing) -> Self {
        Self::Missing(missing)
    }
}

impl From<SpfFault> for Stop {
    fn from(fault: SpfFault) -> Self {
        Self::Fault(fault)
    }
}

struct Check<'a> {
    request: &'a SpfRequest<'a>,
    answers: &'a Answers,
    local: &'a str,
    sender_domain: DomainName,
    terms: usize,
    voids: usize,
    /// The validated name of the sender's address, once it has been asked for.
    name: Option<String>,
    /// Where the explanation is, if the domain's own record fails.
    explanation: Option<(MacroText, DomainName)>,
}

impl Check<'_> {
    /// RFC 7208 §4. Its depth is bounded by the number of terms.
    fn host(&mut self, domain: &DomainName, is_top: bool) -> Result<SpfResult, Stop> {
        let Some(record) = self.record(domain)? else { return Ok(SpfResult::None) };
        for (qualifier, mechanism) in &record.directives {
            if self.matches(mechanism, domain)? {
                let result = match qualifier {
                    Qualifier::Pass => SpfResult::Pass,
                    Qualifier::Fail => SpfResult::Fail,
                    Qualifier::SoftFail => SpfResult::SoftFail,
                    Qualifier::Neutral => SpfResult::Neutral,
                };
                if is_top {
                    self.explanation = record.explanation.map(|text| (text, domain.clone()));
                }
                return Ok(result);
            }
        }
        // RFC 7208 §6.1: with `all` in a record there is no redirection, but that has matched.
        let Some(redirect) = &record.redirect else { return Ok(SpfResult::Neutral) };
        self.term()?;
        let target = self.target(Some(redirect), domain)?.ok_or(SpfFault::NoRecord)?;
        match self.host(&target, is_top)? {
            SpfResult::None => Err(SpfFault::NoRecord.into()),
            result => Ok(result),
        }
    }

    /// RFC 7208 §4.4, §4.5.
    fn record(&self, domain: &DomainName) -> Result<Option<SpfRecord>, Stop> {
        let texts = match self.answers.get(Question::Texts(domain.clone()))? {
            Answer::Texts(texts) => texts,
            Answer::NoSuchName | Answer::NoRecords => return Ok(None),
            _ => return Err(SpfFault::Dns.into()),
        };
        let mut records = texts.iter().filter(|text| is_spf(text));
        match (records.next(), records.next()) {
            (None, _) => Ok(None),
            (Some(record), None) => Ok(Some(SpfRecord::parse(record).map_err(SpfFault::from)?)),
            (Some(_), Some(_)) => Err(SpfFault::SeveralRecords.into()),
        }
    }

    fn matches(&mut self, mechanism: &Mechanism, domain: &DomainName) -> Result<bool, Stop> {
        match mechanism {
            Mechanism::All => Ok(true),
            Mechanism::Ip4(network, length) => {
                Ok(is_in(self.request.address, IpAddr::V4(*network), Prefixes { four: *length, six: 128 }))
            }
            Mechanism::Ip6(network, length) => {
                Ok(is_in(self.request.address, IpAddr::V6(*network), Prefixes { four: 32, six: *length }))
            }
            Mechanism::Include(text) => {
                self.term()?;
                let Some(target) = self.target(Some(text), domain)? else {
                    return Err(SpfFault::NoRecord.into());
                };
                match self.host(&target, false)? {
                    SpfResult::Pass => Ok(true),
                    // RFC 7208 §5.2
                    SpfResult::None => Err(SpfFault::NoRecord.into()),
                    _ => Ok(false),
                }
            }
            Mechanism::A(text, prefixes) => {
                self.term()?;
                let Some(target) = self.target(text.as_ref(), domain)? else { return Ok(false) };
                let addresses = self.addresses(&target)?;
                Ok(addresses.iter().any(|address| is_in(self.request.address, *address, *prefixes)))
            }
            Mechanism::Mx(text, prefixes) => self.is_mail_host(text.as_ref(), domain, *prefixes),
            Mechanism::Ptr(text) => {
                self.term()?;
                let Some(target) = self.target(text.as_ref(), domain)? else { return Ok(false) };
                Ok(self.validated_names()?.iter().any(|name| name.is_within(&target)))
            }
            Mechanism::Exists(text) => {
                self.term()?;
                let Some(target) = self.target(Some(text), domain)? else { return Ok(false) };
                // RFC 7208 §5.7: A records, whatever the kind of the sender's address.
                let answer = self.answers.get(Question::Addresses4(target))?;
                Ok(!self.addresses_in(answer)?.is_empty())
            }
        }
    }

    /// RFC 7208 §5.4
    fn is_mail_host(
        &mut self,
        text: Option<&MacroText>,
        domain: &DomainName,
        prefixes: Prefixes,
    ) -> Result<bool, Stop> {
        self.term()?;
        let Some(target) = self.target(text, domain)? else { return Ok(false) };
        let hosts = match self.answers.get(Question::MailHosts(target))? {
            Answer::MailHosts(hosts) => hosts,
            Answer::NoSuchName | Answer::NoRecords => {
                self.void()?;
                return Ok(false);
            }
            _ => return Err(SpfFault::Dns.into()),
        };
        if hosts.len() > MAIL_HOSTS_MAX {
            return Err(SpfFault::MailHosts.into());
        }
        for (_, host) in hosts {
            let Some(host) = DomainName::parse(host) else { continue };
            let addresses = self.addresses(&host)?;
            if addresses.iter().any(|address| is_in(self.request.address, *address, prefixes)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// One more term that asks DNS.
    fn term(&mut self) -> Result<(), Stop> {
        self.terms += 1;
        if self.terms > TERMS_MAX { Err(SpfFault::Terms.into()) } else { Ok(()) }
    }

    /// One more question that DNS has nothing for.
    fn void(&mut self) -> Result<(), Stop> {
        self.voids += 1;
        if self.voids > VOID_MAX { Err(SpfFault::Voids.into()) } else { Ok(()) }
    }

    /// Addresses of the sender's kind (RFC 7208 §5).
    fn addresses(&mut self, name: &DomainName) -> Result<Vec<IpAddr>, Stop> {
        let question = match self.request.address {
            IpAddr::V4(_) => Question::Addresses4(name.clone()),
            IpAddr::V6(_) => Question::Addresses6(name.clone()),
        };
        let answer = self.answers.get(question)?;
        self.addresses_in(answer)
    }

    fn addresses_in(&mut self, answer: &Answer) -> Result<Vec<IpAddr>, Stop> {
        match answer {
            Answer::Addresses(addresses) => Ok(addresses.clone()),
            Answer::NoSuchName | Answer::NoRecords => {
                self.void()?;
                Ok(Vec::new())
            }
            _ => Err(SpfFault::Dns.into()),
        }
    }

    /// The names of the sender's address that lead back to it (RFC 7208 §5.5). Failures of DNS are no names.
    fn validated_names(&mut self) -> Result<Vec<DomainName>, Stop> {
        let names = match self.answers.get(Question::Names(self.request.address))? {
            Answer::Names(names) => names,
            Answer::NoSuchName | Answer::NoRecords => {
                self.void()?;
                return Ok(Vec::new());
            }
            _ => return Ok(Vec::new()),
        };
        let mut validated = Vec::new();
        for name in names.iter().take(NAMES_MAX).filter_map(|name| DomainName::parse(name)) {
            match self.addresses(&name) {
                Ok(addresses) if addresses.contains(&self.request.address) => validated.push(name),
                Ok(_) | Err(Stop::Fault(SpfFault::Dns)) => {}
                Err(stop) => return Err(stop),
            }
        }
        Ok(validated)
    }

    /// The name that a term is about; the domain itself where it names none. `None` if it becomes no name.
    fn target(&mut self, text: Option<&MacroText>, domain: &DomainName) -> Result<Option<DomainName>, Stop> {
        let Some(text) = text else { return Ok(Some(domain.clone())) };
        self.find_name(text, domain)?;
        let name = text.expand_name(|letter| self.value(letter, domain));
        Ok(name.and_then(|name| DomainName::of_dns(&name)))
    }

    /// Asks for the name that the macro `p` stands for, if it is used (RFC 7208 §7.3).
    fn find_name(&mut self, text: &MacroText, domain: &DomainName) -> Result<(), Stop> {
        if !text.needs_name() || self.name.is_some() {
            return Ok(());
        }
        self.term()?;
        let names = self.validated_names()?;
        let best = names
            .iter()
            .find(|name| *name == domain)
            .or_else(|| names.iter().find(|name| name.is_within(domain)))
            .or_else(|| names.first());
        self.name = Some(best.map_or_else(|| "unknown".to_owned(), ToString::to_string));
        Ok(())
    }

    fn value(&self, letter: Letter, domain: &DomainName) -> String {
        let address = self.request.address;
        match letter {
            Letter::Sender => format!("{}@{}", self.local, self.sender_domain),
            Letter::LocalPart => self.local.to_owned(),
            Letter::SenderDomain => self.sender_domain.to_string(),
            Letter::Domain => domain.to_string(),
            Letter::Address => dotted(address),
            Letter::Name => self.name.clone().unwrap_or_else(|| "unknown".to_owned()),
            Letter::Version => if address.is_ipv4() { "in-addr" } else { "ip6" }.to_owned(),
            Letter::Helo => self.request.helo.to_owned(),
            Letter::ReadableAddress => address.to_string(),
            Letter::Receiver => self.request.receiver.to_owned(),
            Letter::Time => self.request.now_seconds.to_string(),
        }
    }

    /// RFC 7208 §6.2: whatever goes wrong with an explanation, there is none.
    fn explained(&mut self) -> Result<Option<String>, Missing> {
        let Some((text, domain)) = self.explanation.take() else { return Ok(None) };
        let target = match self.target(Some(&text), &domain) {
            Ok(Some(target)) => target,
            Err(Stop::Missing(missing)) => return Err(missing),
            _ => return Ok(None),
        };
        let Answer::Texts(texts) = self.answers.get(Question::Texts(target))? else { return Ok(None) };
        let [text] = texts.as_slice() else { return Ok(None) };
        let words: Option<Vec<MacroText>> =
            std::str::from_utf8(text).ok().and_then(|text| text.split(' ').map(MacroText::parse).collect());
        let mut out = Vec::new();
        for word in words.unwrap_or_default() {
            match self.find_name(&word, &domain) {
                Err(Stop::Missing(missing)) => return Err(missing),
                Err(Stop::Fault(_)) => return Ok(None),
                Ok(()) => {}
            }
            let Some(word) = word.expand(|letter| self.value(letter, &domain)) else { return Ok(None) };
            out.push(word);
        }
        let line: String = out.join(" ").chars().take(EXPLANATION_LETTERS_MAX).collect();
        let is_printable = line.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        Ok((is_printable && !line.is_empty()).then_some(line))
    }
}

/// An address as the macro `i` has it (RFC 7208 §7.3).
fn dotted(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let halves = address.octets().into_iter().flat_map(|octet| [octet >> 4, octet & 0xf]);
            halves.map(|half| format!("{half:x}")).collect::<Vec<_>>().join(".")
        }
    }
}

fn is_in(address: IpAddr, network: IpAddr, prefixes: Prefixes) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let shift = 32_u32.saturating_sub(u32::from(prefixes.four));
            (u32::from(address) ^ u32::from(network)).checked_shr(shift).unwrap_or(0) == 0
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let shift = 128_u32.saturating_sub(u32::from(prefixes.six));
            (u128::from(address) ^ u128::from(network)).checked_shr(shift).unwrap_or(0) == 0
        }
        _ => false,
    }
}
