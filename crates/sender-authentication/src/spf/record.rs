//! SPF records (RFC 7208 §4.5, §4.6, §5, §6, §12).

use std::net::{Ipv4Addr, Ipv6Addr};

use super::macros::MacroText;

/// Bytes of a record that are looked at: DNS allows 65,535.
const RECORD_BYTES_MAX: usize = 16 << 10;

/// Terms of one record.
const TERMS_MAX: usize = 500;

/// Why a record is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpfRecordError {
    /// RFC 7208 §4.6: a term is no mechanism and no modifier.
    #[error("an SPF record has a term that is not understood")]
    Term,
    /// RFC 7208 §6: `redirect` or `exp` twice.
    #[error("an SPF record has a modifier twice")]
    Repeated,
    /// It is longer than any record.
    #[error("an SPF record is too long")]
    Long,
}

/// What it means that a mechanism matches (RFC 7208 §4.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Qualifier {
    Pass,
    Fail,
    SoftFail,
    Neutral,
}

/// Prefix lengths of both kinds of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefixes {
    pub(crate) four: u8,
    pub(crate) six: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mechanism {
    All,
    Include(MacroText),
    A(Option<MacroText>, Prefixes),
    Mx(Option<MacroText>, Prefixes),
    Ptr(Option<MacroText>),
    Ip4(Ipv4Addr, u8),
    Ip6(Ipv6Addr, u8),
    Exists(MacroText),
}

/// A record, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpfRecord {
    pub(crate) directives: Vec<(Qualifier, Mechanism)>,
    pub(crate) redirect: Option<MacroText>,
    pub(crate) explanation: Option<MacroText>,
}

/// Whether a TXT record is one of SPF (RFC 7208 §4.5).
pub(crate) fn is_spf(bytes: &[u8]) -> bool {
    let version = bytes.get(..6).is_some_and(|start| start.eq_ignore_ascii_case(b"v=spf1"));
    version && matches!(bytes.get(6), None | Some(b' '))
}

impl SpfRecord {
    /// Reads a record. Nothing in it may be wrong, even where it would not be reached (RFC 7208 §4.6).
    ///
    /// # Errors
    /// [`SpfRecordError`]
    pub fn parse(bytes: &[u8]) -> Result<Self, SpfRecordError> {
        if bytes.len() > RECORD_BYTES_MAX {
            return Err(SpfRecordError::Long);
        }
        let text = std::str::from_utf8(bytes).ok().filter(|text| text.is_ascii());
        let text = text.and_then(|text| text.get(6..)).ok_or(SpfRecordError::Term)?;
        let mut record = Self { directives: Vec::new(), redirect: None, explanation: None };
        for (number, term) in text.split(' ').filter(|term| !term.is_empty()).enumerate() {
            if number == TERMS_MAX {
                return Err(SpfRecordError::Long);
            }
            record.term(term)?;
        }
        Ok(record)
    }

    fn term(&mut self, term: &str) -> Result<(), SpfRecordError> {
        // A modifier has an equals sign behind its name; a mechanism's name ends with a colon, a slash, or the term.
        let name_end = term.find(|letter: char| !is_name_letter(letter)).unwrap_or(term.len());
        let (name, rest) = term.split_at_checked(name_end).ok_or(SpfRecordError::Term)?;
        if let Some(value) = rest.strip_prefix('=') {
            return self.modifier(name, value);
        }
        let qualifier = match term.as_bytes().first() {
            Some(b'-') => Some(Qualifier::Fail),
            Some(b'~') => Some(Qualifier::SoftFail),
            Some(b'?') => Some(Qualifier::Neutral),
            Some(b'+') => Some(Qualifier::Pass),
            _ => None,
        };
        let rest = if qualifier.is_some() { term.get(1..).unwrap_or_default() } else { term };
        let mechanism = mechanism(rest).ok_or(SpfRecordError::Term)?;
        self.directives.push((qualifier.unwrap_or(Qualifier::Pass), mechanism));
        Ok(())
    }

    fn modifier(&mut self, name: &str, value: &str) -> Result<(), SpfRecordError> {
        if !name.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            return Err(SpfRecordError::Term);
        }
        let slot = match name.to_ascii_lowercase().as_str() {
            "redirect" => &mut self.redirect,
            "exp" => &mut self.explanation,
            // RFC 7208 §6: others are ignored, if their values can be read.
            _ => return MacroText::parse(value).map(|_| ()).ok_or(SpfRecordError::Term),
        };
        if slot.is_some() {
            return Err(SpfRecordError::Repeated);
        }
        *slot = Some(MacroText::domain(value).ok_or(SpfRecordError::Term)?);
        Ok(())
    }
}

fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.')
}

fn mechanism(text: &str) -> Option<Mechanism> {
    let name_end = text.find([':', '/']).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(name_end)?;
    let name = name.to_ascii_lowercase();
    let argument = rest.strip_prefix(':');
    Some(match name.as_str() {
        "all" if rest.is_empty() => Mechanism::All,
        "include" => Mechanism::Include(MacroText::domain(argument?)?),
        "exists" => Mechanism::Exists(MacroText::domain(argument?)?),
        "ptr" if rest.is_empty() => Mechanism::Ptr(None),
        "ptr" => Mechanism::Ptr(Some(MacroText::domain(argument?)?)),
        "a" => {
            let (domain, prefixes) = domain_and_prefixes(rest)?;
            Mechanism::A(domain, prefixes)
        }
        "mx" => {
            let (domain, prefixes) = domain_and_prefixes(rest)?;
            Mechanism::Mx(domain, prefixes)
        }
        "ip4" => {
            let (address, prefix) = address_and_prefix(argument?, 32)?;
            Mechanism::Ip4(address.parse().ok()?, prefix)
        }
        "ip6" => {
            let (address, prefix) = address_and_prefix(argument?, 128)?;
            Mechanism::Ip6(address.parse().ok()?, prefix)
        }
        _ => return None,
    })
}

/// `[":" domain-spec] [dual-cidr-length]` (RFC 7208 §5.3).
fn domain_and_prefixes(rest: &str) -> Option<(Option<MacroText>, Prefixes)> {
    let (rest, six) = match rest.rsplit_once("//") {
        Some((rest, six)) => (rest, prefix(six, 128)?),
        None => (rest, 128),
    };
    // A slash may stand in a domain-spec, too, and within a macro's braces; what follows that of a prefix is digits.
    let is_length = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let slash = rest.rfind('/').filter(|slash| rest.get(slash + 1..).is_some_and(is_length));
    let (rest, four) = match slash.and_then(|slash| Some((rest.get(..slash)?, rest.get(slash + 1..)?))) {
        Some((rest, four)) => (rest, prefix(four, 32)?),
        None => (rest, 32),
    };
    let domain = match rest.strip_prefix(':') {
        Some(domain) => Some(MacroText::domain(domain)?),
        None if rest.is_empty() => None,
        None => return None,
    };
    Some((domain, Prefixes { four, six }))
}

fn address_and_prefix(text: &str, most: u8) -> Option<(&str, u8)> {
    match text.split_once('/') {
        Some((address, length)) => Some((address, prefix(length, most)?)),
        None => Some((text, most)),
    }
}

/// A prefix length: digits without a zero in front (RFC 7208 §12).
fn prefix(text: &str, most: u8) -> Option<u8> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|length| is_number && *length <= most)
}
