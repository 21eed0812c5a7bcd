//! What a server offers: the lines of its reply to EHLO (RFC 5321, section 4.1.1.1).

use scrinium_line_wire::Mechanism;

use crate::parse::number;
use crate::reply::Reply;

/// Lines that are looked at.
const CAPABILITIES_MAX: usize = 128;

/// How much of each a server takes in one session (LIMITS, RFC 9422).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapabilityLimits {
    /// MAILMAX: messages.
    pub messages: Option<u64>,
    /// RCPTMAX: recipients of a message.
    pub recipients: Option<u64>,
    /// RCPTDOMAINMAX: domains of the recipients of a message.
    pub recipient_domains: Option<u64>,
}

/// Something that a server can do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Capability {
    Pipelining,
    EightBitMime,
    SmtpUtf8,
    /// With the longest message in bytes, if the server tells it; 0 is no limit (RFC 1870).
    Size(Option<u64>),
    EnhancedStatusCodes,
    StartTls,
    Auth(Vec<Mechanism>),
    Dsn,
    Chunking,
    BinaryMime,
    RequireTls,
    Limits(CapabilityLimits),
    /// FUTURERELEASE: the longest time in seconds, and the last time as the server writes it (RFC 4865).
    FutureRelease(u64, Option<String>),
    /// The keyword in capitals, and what follows it.
    Other(String, String),
}

/// Who a server is, and what it offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The first line.
    pub greeting: String,
    /// What it offers, in its order.
    pub list: Vec<Capability>,
}

impl Capabilities {
    /// What a reply to EHLO or LHLO says. A line that is not valid is left out.
    #[must_use]
    pub fn of(reply: &Reply) -> Self {
        let mut lines = reply.lines().iter();
        let greeting = lines.next().cloned().unwrap_or_default();
        Self {
            greeting,
            list: lines.take(CAPABILITIES_MAX).filter_map(|line| Capability::parse(line)).collect(),
        }
    }

    /// The reply that says this.
    #[must_use]
    pub fn reply(&self) -> Reply {
        let lines: Vec<String> = self.list.iter().map(Capability::line).collect();
        let all = std::iter::once(self.greeting.as_str()).chain(lines.iter().map(String::as_str));
        Reply::from_lines(250, all)
    }

    /// Whether this is offered.
    #[must_use]
    pub fn has(&self, capability: &Capability) -> bool {
        self.list.contains(capability)
    }

    /// Whether people can log in so.
    #[must_use]
    pub fn can_authenticate(&self, mechanism: &str) -> bool {
        self.list.iter().any(|capability| match capability {
            Capability::Auth(known) => {
                known.iter().any(|known| known.as_str().eq_ignore_ascii_case(mechanism))
            }
            _ => false,
        })
    }

    /// The longest message in bytes, if there is a limit and it is announced.
    #[must_use]
    pub fn size_limit(&self) -> Option<u64> {
        self.list.iter().find_map(|capability| match capability {
            Capability::Size(limit) => limit.filter(|limit| *limit > 0),
            _ => None,
        })
    }
}

impl Capability {
    /// Reads a line; `None` if it has no keyword, or its parameters are wrong.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        // `AUTH=LOGIN`, as servers wrote it before RFC 2554.
        let legacy = line.get(..5).filter(|start| start.eq_ignore_ascii_case("AUTH="));
        let (keyword, rest) = match legacy {
            Some(_) => ("AUTH", line.get(5..).unwrap_or_default()),
            None => line.split_once(' ').unwrap_or((line, "")),
        };
        let keyword = keyword.to_ascii_uppercase();
        let rest = rest.trim();
        Some(match (keyword.as_str(), rest) {
            ("", _) => return None,
            ("PIPELINING", "") => Self::Pipelining,
            ("8BITMIME", "") => Self::EightBitMime,
            ("SMTPUTF8", "") => Self::SmtpUtf8,
            ("SIZE", "") => Self::Size(None),
            ("SIZE", rest) => Self::Size(Some(number(rest.as_bytes())?)),
            ("ENHANCEDSTATUSCODES", "") => Self::EnhancedStatusCodes,
            ("STARTTLS", "") => Self::StartTls,
            ("AUTH", rest) => Self::Auth(mechanisms(rest)),
            ("DSN", "") => Self::Dsn,
            ("CHUNKING", "") => Self::Chunking,
            ("BINARYMIME", "") => Self::BinaryMime,
            ("REQUIRETLS", "") => Self::RequireTls,
            ("LIMITS", rest) => Self::Limits(limits(rest)),
            ("FUTURERELEASE", rest) => future_release(rest)?,
            (keyword, rest) => Self::Other(keyword.to_owned(), rest.to_owned()),
        })
    }

    /// The line that says it.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Pipelining => "PIPELINING".to_owned(),
            Self::EightBitMime => "8BITMIME".to_owned(),
            Self::SmtpUtf8 => "SMTPUTF8".to_owned(),
            Self::Size(None) => "SIZE".to_owned(),
            Self::Size(Some(limit)) => format!("SIZE {limit}"),
            Self::EnhancedStatusCodes => "ENHANCEDSTATUSCODES".to_owned(),
            Self::StartTls => "STARTTLS".to_owned(),
            Self::Auth(mechanisms) => {
                let names = mechanisms.iter().map(|mechanism| format!(" {mechanism}"));
                format!("AUTH{}", names.collect::<String>())
            }
            Self::Dsn => "DSN".to_owned(),
            Self::Chunking => "CHUNKING".to_owned(),
            Self::BinaryMime => "BINARYMIME".to_owned(),
            Self::RequireTls => "REQUIRETLS".to_owned(),
            Self::Limits(limits) => limits_line(limits),
            Self::FutureRelease(seconds, None) => format!("FUTURERELEASE {seconds}"),
            Self::FutureRelease(seconds, Some(time)) => format!("FUTURERELEASE {seconds} {time}"),
            Self::Other(keyword, rest) if rest.is_empty() => keyword.clone(),
            Self::Other(keyword, rest) => format!("{keyword} {rest}"),
        }
    }
}

fn mechanisms(text: &str) -> Vec<Mechanism> {
    text.split_ascii_whitespace().filter_map(|name| Mechanism::parse(name.as_bytes()).ok()).collect()
}

fn limits(text: &str) -> CapabilityLimits {
    let mut limits = CapabilityLimits::default();
    for item in text.split_ascii_whitespace() {
        let Some((name, value)) = item.split_once('=') else { continue };
        let value = number(value.as_bytes());
        match name.to_ascii_uppercase().as_str() {
            "MAILMAX" => limits.messages = value,
            "RCPTMAX" => limits.recipients = value,
            "RCPTDOMAINMAX" => limits.recipient_domains = value,
            _ => {}
        }
    }
    limits
}

fn limits_line(limits: &CapabilityLimits) -> String {
    let mut line = "LIMITS".to_owned();
    let all = [
        ("MAILMAX", limits.messages),
        ("RCPTMAX", limits.recipients),
        ("RCPTDOMAINMAX", limits.recipient_domains),
    ];
    for (name, value) in all {
        if let Some(value) = value {
            line.push_str(&format!(" {name}={value}"));
        }
    }
    line
}

fn future_release(text: &str) -> Option<Capability> {
    let mut words = text.split_ascii_whitespace();
    let seconds = number(words.next()?.as_bytes())?;
    Some(Capability::FutureRelease(seconds, words.next().map(str::to_owned)))
}
