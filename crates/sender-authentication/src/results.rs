//! `Authentication-Results` (RFC 8601): what was verified, for those who read the message; and fields that claim to be ours.

use std::fmt::Write as _;

use crate::author::Authors;
use crate::dkim::DkimOutcome;
use crate::dmarc::DmarcOutcome;
use crate::head::fields;
use crate::spf::SpfOutcome;

/// The field.
const FIELD: &str = "Authentication-Results";

/// Comments in comments.
const COMMENT_DEPTH_MAX: usize = 32;

/// Letters of an address that is written.
const ADDRESS_LETTERS_MAX: usize = 254;

/// What was verified of a message.
#[derive(Clone, Copy, Debug)]
pub struct Verified<'a> {
    /// SPF's verdict, and the address and the greeting it was about.
    pub spf: Option<(&'a SpfOutcome, &'a str, &'a str)>,
    /// The verdicts on its signatures.
    pub dkim: &'a [DkimOutcome],
    /// DMARC's verdict.
    pub dmarc: Option<&'a DmarcOutcome>,
    /// Whom it claims to be from.
    pub authors: &'a Authors,
}

/// The field with its line end, under the name of this server (`authserv-id`, RFC 8601 §2.5).
///
/// Nothing of the message stands in it but domains and addresses that consist of harmless letters: nobody can add a field, a comment or a
/// result through it.
#[must_use]
pub fn authentication_results(server: &str, verified: &Verified<'_>) -> String {
    let mut out = format!("{FIELD}: {}", token(server));
    let start = out.len();
    if let Some((spf, mail_from, helo)) = verified.spf {
        _ = write!(out, ";\r\n\tspf={}", spf.result);
        if let Some(fault) = spf.fault {
            reason(&mut out, &fault.to_string());
        }
        let (property, value) =
            if spf.is_greeting { ("smtp.helo", helo) } else { ("smtp.mailfrom", mail_from) };
        if let Some(value) = address(value) {
            _ = write!(out, " {property}={value}");
        }
    }
    if verified.dkim.is_empty() {
        out.push_str(";\r\n\tdkim=none");
    }
    for dkim in verified.dkim {
        _ = write!(out, ";\r\n\tdkim={}", dkim.result);
        if let Some(fault) = dkim.fault {
            reason(&mut out, &fault.to_string());
        }
        if let Some(domain) = dkim.domain.as_ref().filter(|domain| domain.is_plain()) {
            _ = write!(out, " header.d={domain}");
        }
        if let Some(selector) = &dkim.selector {
            _ = write!(out, " header.s={selector}");
        }
        if let Some(algorithm) = dkim.algorithm {
            _ = write!(out, " header.a={algorithm}");
        }
        if let Some(start) = &dkim.signature_start {
            _ = write!(out, " header.b=\"{start}\"");
        }
    }
    if let Some(dmarc) = verified.dmarc {
        _ = write!(out, ";\r\n\tdmarc={}", dmarc.result);
        if let Some(fault) = dmarc.fault {
            reason(&mut out, &fault.to_string());
        }
        let author = dmarc.author.as_ref().or_else(|| verified.authors.domains.first());
        if let Some(author) = author.filter(|author| author.is_plain()) {
            _ = write!(out, " header.from={author}");
        }
        if let Some(policy) = dmarc.policy {
            _ = write!(out, " policy.dmarc={policy}");
        }
    }
    if out.len() == start {
        out.push_str("; none");
    }
    out.push_str("\r\n");
    out
}

fn reason(out: &mut String, text: &str) {
    let is_plain = |letter: &char| matches!(letter, ' '..='~') && !matches!(letter, '"' | '\\');
    let text: String = text.chars().filter(is_plain).collect();
    _ = write!(out, " reason=\"{text}\"");
}

/// A name as a token (RFC 2045 §5.1).
fn token(text: &str) -> String {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    text.chars().filter(is_plain).collect()
}

/// An address that can stand as it is (RFC 8601 §2.2, pvalue); of one with other letters in front the domain.
fn address(text: &str) -> Option<&str> {
    let is_plain = |text: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&byte);
        !text.is_empty() && text.len() <= ADDRESS_LETTERS_MAX && text.bytes().all(is_letter)
    };
    match text.rsplit_once('@') {
        Some((local, domain)) if is_plain(domain) => Some(if is_plain(local) { text } else { domain }),
        None if is_plain(text) => Some(text),
        _ => None,
    }
}

/// The head without fields that claim to be from one of these servers (RFC 8601 §5), or do not say from which in a way that can be
/// read. All other bytes stay.
///
/// It is done after signatures have been verified, as they may cover such fields.
#[must_use]
pub fn without_claims(head: &[u8], servers: &[&str]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(head.len());
    let mut length = 0;
    // All of them, whatever a message costs to verify: a claim must not be hidden behind thousands of fields.
    for field in fields(head) {
        length += field.raw.len();
        if !field.is_named(FIELD) || !claims(field.value, servers) {
            kept.extend_from_slice(field.raw);
        }
    }
    kept.extend_from_slice(head.get(length..).unwrap_or_default());
    kept
}

/// Whether a field claims to be from one of these servers.
#[must_use]
pub fn claims(value: &[u8], servers: &[&str]) -> bool {
    match server_of(value) {
        Some(server) => {
            let server = server.trim_end_matches('.');
            servers.iter().any(|own| own.trim_end_matches('.').eq_ignore_ascii_case(server))
        }
        None => true,
    }
}

/// `[CFWS] authserv-id`: a token or a quoted string.
fn server_of(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    let mut letters = text.chars().peekable();
    let mut depth = 0_usize;
    while let Some(letter) = letters.peek() {
        match letter {
            '(' if depth == COMMENT_DEPTH_MAX => return None,
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            '\\' if depth > 0 => _ = letters.next(),
            ' ' | '\t' | '\r' | '\n' => {}
            _ if depth > 0 => {}
            _ => break,
        }
        letters.next();
    }
    let mut server = String::new();
    if letters.next_if_eq(&'"').is_some() {
        loop {
            match letters.next()? {
                '"' => return Some(server),
                '\\' => server.push(letters.next()?),
                letter => server.push(letter),
            }
        }
    }
    let is_token =
        |letter: &char| !letter.is_whitespace() && !letter.is_control() && !"();,\"".contains(*letter);
    while let Some(letter) = letters.next_if(|letter| is_token(letter)) {
        server.push(letter);
    }
    (!server.is_empty()).then_some(server)
}
