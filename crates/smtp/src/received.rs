//! The `Received` field that a server puts before a message (RFC 5321, section 4.4), with the words of RFC 3848 and RFC 6531.

use std::fmt::Write;
use std::net::IpAddr;

use scrinium_smtp_wire::{AddressLiteral, ClientName, Domain, ForwardPath, Greeting};

use crate::time::message_date;

/// How much of a name that a client gives itself is written.
const NAME_MAX_BYTES: usize = 255;

/// What is known of a message's way to this server.
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    /// How the client greeted, and as whom.
    pub hello: Option<(Greeting, &'a ClientName)>,
    /// Where it came from; `None` where that is not to be seen.
    pub address: Option<IpAddr>,
    /// The name that the address has in the DNS.
    pub name: Option<&'a str>,
    /// The cipher suite, where the connection is encrypted.
    pub cipher: Option<&'a str>,
    /// Whether the connection is encrypted.
    pub is_encrypted: bool,
    /// Whether a person has logged in.
    pub is_authenticated: bool,
    /// Whether SMTPUTF8 was asked for.
    pub is_utf8: bool,
    /// Who we are.
    pub host: &'a str,
    /// What our log calls the message.
    pub id: &'a str,
    /// The recipient, where there is one only: of several, none may see the others.
    pub recipient: Option<&'a ForwardPath>,
    /// Now.
    pub now_ms: u64,
}

/// The word behind `with`: `ESMTPSA` for one that came from an authenticated client over TLS.
#[must_use]
pub fn protocol_word(
    greeting: Greeting,
    is_utf8: bool,
    is_encrypted: bool,
    is_authenticated: bool,
) -> String {
    let base = match (greeting, is_utf8) {
        // RFC 6531, section 4.3.
        (Greeting::Lhlo, true) => "UTF8LMTP",
        (Greeting::Lhlo, false) => "LMTP",
        (_, true) => "UTF8SMTP",
        // RFC 3848 has no words for HELO with more.
        (Greeting::Helo, false) if !is_encrypted && !is_authenticated => "SMTP",
        (_, false) => "ESMTP",
    };
    let encrypted = if is_encrypted { "S" } else { "" };
    let authenticated = if is_authenticated { "A" } else { "" };
    format!("{base}{encrypted}{authenticated}")
}

/// The field, with the end of its last line. No byte of it comes from a client unchecked: it holds no line end but its
/// own, and 8-bit characters only with SMTPUTF8.
#[must_use]
pub fn received_field(trace: &Trace<'_>) -> Vec<u8> {
    let mut field = "Received: from ".to_owned();
    let greeting = trace.hello.map_or(Greeting::Helo, |(greeting, _)| greeting);
    match trace.hello {
        Some((_, ClientName::Domain(domain))) if trace.is_utf8 || domain.is_ascii() => {
            // Writing to a text cannot fail.
            let _ = write!(field, "{domain}");
        }
        Some((_, name)) => {
            let _ = write!(field, "unknown (HELO {})", comment(&name.to_string()));
        }
        None => field.push_str("unknown"),
    }
    if let Some(address) = trace.address {
        let literal = match address {
            IpAddr::V4(address) => AddressLiteral::V4(address),
            IpAddr::V6(address) => AddressLiteral::V6(address),
        };
        let name = trace.name.map(|name| format!("{} ", comment(name))).unwrap_or_default();
        let _ = write!(field, "\r\n\t({name}{})", Domain::Literal(literal));
    }
    let word = protocol_word(greeting, trace.is_utf8, trace.is_encrypted, trace.is_authenticated);
    let _ = write!(field, "\r\n\tby {} with {word}", trace.host);
    if let Some(cipher) = trace.cipher.filter(|cipher| is_atom(cipher)) {
        // RFC 8314, section 4.3.
        let _ = write!(field, " tls {cipher}");
    }
    let _ = write!(field, " id {}", trace.id);
    match trace.recipient {
        Some(path @ ForwardPath::Path(inside)) if trace.is_utf8 || inside.mailbox.is_ascii() => {
            let _ = write!(field, "\r\n\tfor {path}");
        }
        _ => {}
    }
    let _ = write!(field, ";\r\n\t{}\r\n", message_date(trace.now_ms));
    field.into_bytes()
}

/// Text that can stand in a comment: what could end it is a question mark.
fn comment(text: &str) -> String {
    let plain = |character: char| match character {
        '(' | ')' | '\\' => '?',
        ' '..='~' => character,
        _ => '?',
    };
    text.chars().map(plain).take(NAME_MAX_BYTES).collect()
}

fn is_atom(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}
