//! Policy records (RFC 9989 §4.7, §4.8).

use std::fmt;

use crate::tags::Tags;

/// Bytes of a record that are looked at.
const RECORD_BYTES_MAX: usize = 8 << 10;

/// Addresses of one list that are kept.
const ADDRESSES_MAX: usize = 20;

/// What a domain asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DmarcPolicy {
    /// Nothing.
    None,
    /// Messages that fail are suspicious.
    Quarantine,
    /// Messages that fail are to be refused.
    Reject,
}

impl DmarcPolicy {
    fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "none" => Some(Self::None),
            "quarantine" => Some(Self::Quarantine),
            "reject" => Some(Self::Reject),
            _ => None,
        }
    }
}

impl fmt::Display for DmarcPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "none",
            Self::Quarantine => "quarantine",
            Self::Reject => "reject",
        })
    }
}

/// How near two domains have to be (RFC 9989 §4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// Of one organization.
    Relaxed,
    /// The same.
    Strict,
}

/// Whether a domain is one below which others register theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublicSuffix {
    /// `psd=y`
    Yes,
    /// `psd=n`: it is an organization's.
    No,
    /// It does not say.
    Unknown,
}

/// A policy record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmarcRecord {
    /// `p=`
    pub policy: DmarcPolicy,
    /// `sp=`, for subdomains.
    pub subdomain_policy: Option<DmarcPolicy>,
    /// `np=`, for subdomains that are not there.
    pub absent_policy: Option<DmarcPolicy>,
    /// `adkim=`
    pub dkim_alignment: Alignment,
    /// `aspf=`
    pub spf_alignment: Alignment,
    /// `psd=`
    pub public_suffix: PublicSuffix,
    /// `t=y`: the policy is being tried out.
    pub is_testing: bool,
    /// `rua=`: addresses for reports, as URIs.
    pub report_addresses: Vec<String>,
    /// Whether DMARC applies with it: it has a policy that can be understood, or wants reports alone (RFC 9989 §4.10.1). Where it does
    /// not, the record still says where an organization ends.
    pub is_policy: bool,
}

impl DmarcRecord {
    /// Whether a TXT record is one of DMARC: `v=DMARC1` comes first, in this case (RFC 9989 §4.7).
    #[must_use]
    pub fn is_dmarc(bytes: &[u8]) -> bool {
        let Some(text) = std::str::from_utf8(bytes).ok() else { return false };
        let first = text.split(';').next().and_then(|tag| tag.split_once('='));
        first.is_some_and(|(name, value)| name.trim_ascii() == "v" && value.trim_ascii() == "DMARC1")
    }

    /// Reads a record; `None` if it is none of DMARC.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= RECORD_BYTES_MAX)?;
        if !Self::is_dmarc(bytes) {
            return None;
        }
        let tags = Tags::lenient(text);
        let policy = |name: &str| tags.get(name).map(DmarcPolicy::parse);
        let report_addresses = addresses(tags.get("rua").unwrap_or_default());
        let is_valid = matches!(policy("p"), Some(Some(_)))
            && !matches!(policy("sp"), Some(None))
            && !matches!(policy("np"), Some(None));
        // Who asks for reports alone has a policy of none.
        let is_policy = is_valid || !report_addresses.is_empty();
        let valid = |name: &str| policy(name).flatten().filter(|_| is_valid);
        let is =
            |name: &str, wanted: &str| tags.get(name).is_some_and(|value| value.eq_ignore_ascii_case(wanted));
        let alignment = |name: &str| if is(name, "s") { Alignment::Strict } else { Alignment::Relaxed };
        let public_suffix = match tags.get("psd") {
            Some("y" | "Y") => PublicSuffix::Yes,
            Some("n" | "N") => PublicSuffix::No,
            _ => PublicSuffix::Unknown,
        };
        Some(Self {
            policy: valid("p").unwrap_or(DmarcPolicy::None),
            subdomain_policy: valid("sp"),
            absent_policy: valid("np"),
            dkim_alignment: alignment("adkim"),
            spf_alignment: alignment("aspf"),
            public_suffix,
            is_testing: is("t", "y"),
            report_addresses,
            is_policy,
        })
    }
}

/// URIs of a list. A size behind an exclamation mark is of old records and ignored (RFC 9989 §4.6).
fn addresses(text: &str) -> Vec<String> {
    let uris = text.split(',').map(|uri| uri.split('!').next().unwrap_or_default().trim_ascii());
    let is_uri = |uri: &&str| {
        uri.split_once(':').is_some_and(|(scheme, rest)| {
            let is_mail = scheme.eq_ignore_ascii_case("mailto");
            !scheme.is_empty()
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
                && !rest.is_empty()
                && (!is_mail || rest.contains('@'))
        })
    };
    uris.filter(is_uri).take(ADDRESSES_MAX).map(ToOwned::to_owned).collect()
}
