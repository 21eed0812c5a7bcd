//! MTA-STS (RFC 8461): domains say that mail to them goes encrypted, to hosts with certificates.

use std::fmt;

use scrinium_sender_authentication::{Answer, DomainName, Tags};

/// Bytes of a policy (RFC 8461 §3.3 leaves it to us).
pub const POLICY_BYTES_MAX: usize = 64 << 10;

/// The longest that a policy may be kept (RFC 8461 §3.2).
const AGE_SECONDS_MAX: u64 = 31_557_600;

/// Hosts of a policy.
const HOSTS_MAX: usize = 200;

/// A policy is asked for again after this time, whatever DNS says.
const REFRESH_SECONDS: u64 = 24 * 60 * 60;

/// After a policy could not be fetched, it is not tried again for this time (RFC 8461 §3.3).
const RETRY_SECONDS: u64 = 5 * 60;

/// What a policy asks of those who send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StsMode {
    /// Do not deliver where it is not kept.
    Enforce,
    /// Deliver, and report.
    Testing,
    /// As if there were no policy.
    None,
}

/// A name of a host in a policy, which may begin with `*.` (RFC 8461 §4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    is_wildcard: bool,
    name: DomainName,
}

impl HostPattern {
    /// Reads a pattern.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (is_wildcard, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        let name = DomainName::parse(name).filter(|name| !name.as_str().contains('*'))?;
        Some(Self { is_wildcard, name })
    }

    /// Whether a host is meant: a wildcard stands for exactly one label.
    #[must_use]
    pub fn permits(&self, host: &DomainName) -> bool {
        match self.is_wildcard {
            true => host.parent().as_ref() == Some(&self.name),
            false => *host == self.name,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", if self.is_wildcard { "*." } else { "" }, self.name)
    }
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StsPolicy {
    /// What it asks.
    pub mode: StsMode,
    /// The hosts that mail may go to.
    pub hosts: Vec<HostPattern>,
    /// For how long it may be kept.
    pub max_age_seconds: u64,
}

/// What is wrong with a policy. Then there is no policy, or the one from before stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StsError {
    /// Too long, or no text.
    #[error("an MTA-STS policy is a text of at most {POLICY_BYTES_MAX} bytes")]
    Text,
    /// RFC 8461 §3.2: another version, or none.
    #[error("the MTA-STS policy is of another version")]
    Version,
    /// RFC 8461 §3.2: no mode, or one that is not known.
    #[error("the MTA-STS policy has no mode that is known")]
    Mode,
    /// RFC 8461 §3.2: no age, or more than a year.
    #[error("the MTA-STS policy does not say for how long it holds")]
    Age,
    /// RFC 8461 §3.2: no hosts, or what is no name of a host.
    #[error("the MTA-STS policy names no hosts, or what is none")]
    Hosts,
}

impl StsPolicy {
    /// Reads what a domain's web server has (RFC 8461 §3.2).
    ///
    /// # Errors
    /// [`StsError`]
    pub fn parse(bytes: &[u8]) -> Result<Self, StsError> {
        let text = std::str::from_utf8(bytes).map_err(|_| StsError::Text)?;
        if text.len() > POLICY_BYTES_MAX {
            return Err(StsError::Text);
        }
        let (mut version, mut mode, mut age, mut hosts) = (None, None, None, Vec::new());
        for line in text.split('\n') {
            // Extensions are passed over. Of fields that may be there once, the first counts.
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim_ascii();
            match key.trim_ascii() {
                "version" => _ = version.get_or_insert(value),
                "mode" => _ = mode.get_or_insert(value),
                "max_age" => _ = age.get_or_insert(value),
                "mx" if hosts.len() == HOSTS_MAX => return Err(StsError::Hosts),
                "mx" => hosts.push(HostPattern::parse(value).ok_or(StsError::Hosts)?),
                _ => {}
            }
        }
        if version != Some("STSv1") {
            return Err(StsError::Version);
        }
        let mode = match mode {
            Some("enforce") => StsMode::Enforce,
            Some("testing") => StsMode::Testing,
            Some("none") => StsMode::None,
            _ => return Err(StsError::Mode),
        };
        let is_number =
            |text: &&str| (1..=10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        let age: Option<u64> = age.filter(is_number).and_then(|age| age.parse().ok());
        let max_age_seconds = age.filter(|age| *age <= AGE_SECONDS_MAX).ok_or(StsError::Age)?;
        if hosts.is_empty() && mode != StsMode::None {
            return Err(StsError::Hosts);
        }
        Ok(Self { mode, hosts, max_age_seconds })
    }

    /// The policy as a domain's web server has it.
    #[must_use]
    pub fn text(&self) -> String {
        let mode = match self.mode {
            StsMode::Enforce => "enforce",
            StsMode::Testing => "testing",
            StsMode::None => "none",
        };
        let mut text = format!("version: STSv1\r\nmode: {mode}\r\n");
        for host in &self.hosts {
            text.push_str(&format!("mx: {host}\r\n"));
        }
        text.push_str(&format!("max_age: {}\r\n", self.max_age_seconds));
        text
    }

    /// The record that goes with it, at `_mta-sts.DOMAIN`: its id changes with the policy.
    #[must_use]
    pub fn record(&self) -> String {
        let digest = blake3::hash(self.text().as_bytes()).to_hex();
        format!("v=STSv1; id={};", digest.get(..20).unwrap_or_default())
    }

    /// What becomes of a host of the domain (RFC 8461 §4.1, §4.2, §5).
    #[must_use]
    pub fn judge(&self, host: &DomainName, has_valid_certificate: bool) -> StsVerdict {
        let is_kept = has_valid_certificate && self.hosts.iter().any(|pattern| pattern.permits(host));
        match self.mode {
            StsMode::None => StsVerdict::Deliver,
            _ if is_kept => StsVerdict::Deliver,
            StsMode::Testing => StsVerdict::DeliverAndReport,
            StsMode::Enforce => StsVerdict::TryAnother,
        }
    }
}

/// Whether mail may go to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StsVerdict {
    /// It may.
    Deliver,
    /// It may, though the policy is not kept.
    DeliverAndReport,
    /// It may not. Without another host the message waits (RFC 8461 §5.1).
    TryAnother,
}

/// Where the record of a domain's policy is (RFC 8461 §3.1).
#[must_use]
pub fn record_name(domain: &DomainName) -> Option<DomainName> {
    domain.below("_mta-sts")
}

/// Where the policy is (RFC 8461 §3.3). No redirection is followed, and the certificate is that of the host in it.
#[must_use]
pub fn policy_url(domain: &DomainName) -> String {
    format!("https://mta-sts.{domain}/.well-known/mta-sts.txt")
}

/// What DNS says of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StsRecord {
    /// There is one, with this id.
    Id(String),
    /// There is none.
    Absent,
    /// It is not known.
    Unknown,
}

impl StsRecord {
    /// Reads the TXT records at [`record_name`] (RFC 8461 §3.1).
    #[must_use]
    pub fn of(answer: &Answer) -> Self {
        let texts = match answer {
            Answer::Texts(texts) => texts,
            Answer::NoSuchName | Answer::NoRecords => return Self::Absent,
            _ => return Self::Unknown,
        };
        let mut records = texts.iter().filter(|text| text.starts_with(b"v=STSv1;"));
        match (records.next(), records.next()) {
            (Some(record), None) => {
                std::str::from_utf8(record).ok().and_then(id).map_or(Self::Absent, Self::Id)
            }
            _ => Self::Absent,
        }
    }
}

fn id(record: &str) -> Option<String> {
    let id = Tags::lenient(record).get("id")?;
    let is_id = (1..=32).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_id.then(|| id.to_owned())
}

/// A policy that is kept. It outlives the server's restarts: otherwise who controls the network need only wait for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPolicy {
    /// The id that DNS had.
    pub id: String,
    /// The policy.
    pub policy: StsPolicy,
    /// When it was fetched, in seconds since 1970.
    pub fetched_seconds: u64,
}

impl KeptPolicy {
    /// Whether it still holds.
    #[must_use]
    pub fn holds(&self, now_seconds: u64) -> bool {
        now_seconds <= self.fetched_seconds.saturating_add(self.policy.max_age_seconds)
    }
}

/// What is done before mail goes to a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StsPlan {
    /// There is no policy.
    None,
    /// The one that is kept is used.
    Use,
    /// The policy is fetched first, and kept with this id. If that fails, the one that is kept is used if it still holds, else none.
    Fetch(String),
}

/// Says what to do (RFC 8461 §3.3, §5.1). `failed_seconds` is when it could last not be fetched.
#[must_use]
pub fn plan(
    kept: Option<&KeptPolicy>,
    record: &StsRecord,
    failed_seconds: Option<u64>,
    now_seconds: u64,
) -> StsPlan {
    let kept = kept.filter(|kept| kept.holds(now_seconds));
    let otherwise = if kept.is_some() { StsPlan::Use } else { StsPlan::None };
    let StsRecord::Id(id) = record else {
        // A record that is gone, or cannot be seen, does not end a policy: that is what its age is for.
        return otherwise;
    };
    let is_fresh = |kept: &KeptPolicy| {
        kept.id == *id && now_seconds.saturating_sub(kept.fetched_seconds) < REFRESH_SECONDS
    };
    let is_early = failed_seconds.is_some_and(|failed| now_seconds.saturating_sub(failed) < RETRY_SECONDS);
    if kept.is_some_and(is_fresh) || is_early { otherwise } else { StsPlan::Fetch(id.clone()) }
}
