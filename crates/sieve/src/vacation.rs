//! Replies of `vacation` (RFC 5230): who never gets one (RFC 3834), and what one says.

use thiserror::Error;

use crate::action::{Target, one_line};
use crate::address::{self, Address};
use crate::fields::{self, Fields};
use crate::message::Message;

/// Why a message is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoReply {
    /// The envelope's sender is empty, so that the message is a report or a reply itself (RFC 3834, section 2).
    #[error("the message has no sender to reply to")]
    NullSender,
    /// The envelope's sender is no address.
    #[error("the sender's address is not valid")]
    InvalidSender,
    /// The owner wrote it (RFC 5230, section 4.6).
    #[error("the message comes from the owner of the script")]
    OwnAddress,
    /// The address is a program's, by its name (RFC 3834, section 2).
    #[error("the sender is a program")]
    AutomaticSender,
    /// A program sent it (RFC 3834, section 2; RFC 5230, section 4.6).
    #[error("a program sent the message")]
    AutoSubmitted,
    /// A mailing list sent it (RFC 2369, RFC 2919).
    #[error("a mailing list sent the message")]
    MailingList,
    /// `Precedence` is bulk, list or junk (RFC 3834, section 2).
    #[error("the message was sent in bulk")]
    Bulk,
    /// The sender's program wants no such replies (`X-Auto-Response-Suppress`).
    #[error("the sender asks for no automatic replies")]
    Suppressed,
    /// A report (RFC 6522) or notification of a reader (RFC 8098).
    #[error("the message is a report")]
    Report,
    /// None of the owner's addresses stands in the header (RFC 5230, section 4.5).
    #[error("the message does not name the owner among its recipients")]
    NotAddressed,
}

/// Fields that name recipients (RFC 5230, section 4.5).
const RECIPIENT_FIELDS: [&str; 6] = ["to", "cc", "bcc", "resent-to", "resent-cc", "resent-bcc"];

/// Fields of mailing lists (RFC 2369, RFC 2919, and what some have instead).
const LIST_FIELDS: [&str; 11] = [
    "list-id",
    "list-help",
    "list-subscribe",
    "list-unsubscribe",
    "list-post",
    "list-owner",
    "list-archive",
    "list-unsubscribe-post",
    "mailing-list",
    "x-mailing-list",
    "x-list",
];

/// Addresses of the header that are looked at.
const ADDRESSES_MAX: usize = 1_000;

/// Why an automatic reply to a message must not be sent, if it must not: RFC 3834, section 2, and RFC 5230, sections
/// 4.5 and 4.6. `sender` is the envelope's, `own_addresses` are all of the recipient's.
#[must_use]
pub fn no_reply(message: &dyn Message, sender: &str, own_addresses: &[&str]) -> Option<NoReply> {
    no_reply_of(&Fields::of(message), sender, own_addresses)
}

pub(crate) fn no_reply_of(fields: &Fields<'_>, sender: &str, own_addresses: &[&str]) -> Option<NoReply> {
    if sender.is_empty() {
        return Some(NoReply::NullSender);
    }
    let Some(sender) = address::single(sender) else { return Some(NoReply::InvalidSender) };
    let is_own = |address: &str| own_addresses.iter().any(|own| own.eq_ignore_ascii_case(address));
    if is_own(&sender) {
        return Some(NoReply::OwnAddress);
    }
    if is_automatic(&sender) {
        return Some(NoReply::AutomaticSender);
    }
    let first_word = |value: &str| {
        let word = value.split([';', ' ', '\t', '(']).find(|word| !word.is_empty()).unwrap_or_default();
        word.to_ascii_lowercase()
    };
    if fields.values("auto-submitted").iter().any(|value| first_word(value) != "no") {
        return Some(NoReply::AutoSubmitted);
    }
    if LIST_FIELDS.iter().any(|name| fields.has(name)) {
        return Some(NoReply::MailingList);
    }
    let is_bulk = |value: &String| matches!(first_word(value).as_str(), "bulk" | "list" | "junk");
    if fields.values("precedence").iter().any(is_bulk) {
        return Some(NoReply::Bulk);
    }
    let suppressed = fields.values("x-auto-response-suppress");
    let mut words = suppressed.iter().flat_map(|value| value.split([',', ';'])).map(str::trim);
    if words.any(|word| ["all", "oof", "autoreply"].iter().any(|no| word.eq_ignore_ascii_case(no))) {
        return Some(NoReply::Suppressed);
    }
    let is_report = |value: &String| first_word(value) == "multipart/report";
    if fields.values("content-type").iter().any(is_report) {
        return Some(NoReply::Report);
    }
    let named = RECIPIENT_FIELDS.iter().any(|name| {
        fields
            .raw_values(name)
            .iter()
            .flat_map(|value| address::list(value, ADDRESSES_MAX))
            .any(|address| matches!(&address, Address::Valid { .. }) && is_own(&address.whole()))
    });
    (!named).then_some(NoReply::NotAddressed)
}

/// Whether an address is a program's by its name (RFC 3834, section 2; RFC 2142; RFC 5230, section 4.6).
fn is_automatic(address: &str) -> bool {
    let local = address.rsplit_once('@').map_or(address, |(local, _)| local).to_ascii_lowercase();
    let names = [
        "mailer-daemon",
        "listserv",
        "majordomo",
        "mailman",
        "noreply",
        "no-reply",
        "donotreply",
        "do-not-reply",
        "bounce",
        "bounces",
    ];
    names.contains(&local.as_str())
        || local.starts_with("owner-")
        || local.ends_with("-request")
        || local.ends_with("-owner")
        || local.ends_with("-bounces")
        || local.contains("-bounces+")
        || local.starts_with("bounce+")
        || local.starts_with("bounces+")
        || local.starts_with("prvs=") && local.len() == 5
}

/// A reply of `vacation`. The server sends it with the null sender, and only if none with this key went to this
/// address within the period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VacationReply {
    /// What replies are told apart by: the same command with the same words has the same one (RFC 5230, section 4.2).
    /// At most 64 characters.
    pub key: String,
    /// How long the next reply to the same address waits; 0 is no time at all (RFC 6131).
    pub period_seconds: u64,
    /// The address that is replied to: the envelope's sender.
    pub to: String,
    /// The address that replies.
    pub from: String,
    /// One line.
    pub subject: String,
    /// The message that is answered, with angle brackets.
    pub in_reply_to: Option<String>,
    /// The messages before it, and itself, with angle brackets.
    pub references: Option<String>,
    /// The body begins with a MIME header of its own (`:mime`); else it is plain text.
    pub is_mime: bool,
    /// The text.
    pub body: String,
    /// Where a copy is filed (RFC 8580).
    pub fcc: Option<Target>,
}

impl VacationReply {
    /// The fields that such a reply must have (RFC 5230, section 5; RFC 3834, section 3), each one line of UTF-8 still
    /// without encoded words. The server adds `Date`, `Message-ID` and, unless [`is_mime`](Self::is_mime), those of
    /// MIME.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("From", self.from.clone()),
            ("To", self.to.clone()),
            ("Subject", self.subject.clone()),
            ("Auto-Submitted", "auto-replied (vacation)".to_owned()),
        ];
        if let Some(id) = &self.in_reply_to {
            fields.push(("In-Reply-To", id.clone()));
        }
        if let Some(ids) = &self.references {
            fields.push(("References", ids.clone()));
        }
        fields
    }
}

/// At most this number of identifiers are written into `References`: the first, and the last ones.
const REFERENCES_MAX: usize = 20;

/// `In-Reply-To` and `References` of a reply (RFC 5322, section 3.6.4).
pub(crate) fn threading(fields: &Fields<'_>) -> (Option<String>, Option<String>) {
    let last = |name: &str| fields.values(name).iter().flat_map(|value| identifiers(value)).next();
    let Some(id) = last("message-id") else { return (None, None) };
    let mut references: Vec<String> =
        fields.values("references").iter().flat_map(|value| identifiers(value)).collect();
    if references.is_empty() {
        references.extend(last("in-reply-to"));
    }
    references.push(id.clone());
    if references.len() > REFERENCES_MAX {
        let from = references.len() - (REFERENCES_MAX - 1);
        references = references.iter().take(1).chain(references.iter().skip(from)).cloned().collect();
    }
    (Some(id), Some(references.join(" ")))
}

/// Identifiers in angle brackets.
fn identifiers(value: &str) -> Vec<String> {
    let parts = value.split('<').skip(1).filter_map(|rest| rest.split_once('>'));
    let valid = parts.filter(|(id, _)| {
        (1..=250).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'<')
    });
    valid.map(|(id, _)| format!("<{id}>")).take(1_000).collect()
}

/// The subject of a reply: what the script says, or the message's own behind `Auto:` (RFC 5230, section 4.3).
pub(crate) fn subject(fields: &Fields<'_>, given: Option<&str>) -> String {
    if let Some(given) = given.map(one_line).filter(|given| !given.is_empty()) {
        return given;
    }
    match fields.values("subject").first().map(|subject| one_line(subject)) {
        Some(subject) if !subject.is_empty() => one_line(&format!("Auto: {subject}")),
        _ => "Automated reply".to_owned(),
    }
}

/// The key of a reply: of its handle, or of all that the command says.
pub(crate) fn key(parts: &[&str]) -> String {
    fields::digest(parts)
}
