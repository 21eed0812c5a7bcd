//! What the envelope of a message says, as far as its memo keeps it for those who pass it on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::memo::field;

/// What an envelope says next to its addresses. A memo keeps it in `$Envelope` until it is routed; only the server writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnvelopeItems {
    /// What the message is recognised by when it comes once more, for any of its recipients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat_id: Option<String>,
    /// The id that it has in mail files, where somebody who has it forwards it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_id: Option<String>,
    /// People who have passed it on, by the ids of their documents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forwarders: Vec<String>,
    /// The person who submitted it, by short name; empty where it was somebody who had not logged in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitter: Option<String>,
    /// ENVID (RFC 3461 §4.4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope_id: Option<String>,
    /// RET (RFC 3461 §4.3): whether all of the message comes back with a notice of failure, or its head alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returns_all: Option<bool>,
    /// REQUIRETLS (RFC 8689).
    #[serde(skip_serializing_if = "is_false")]
    pub require_tls: bool,
    /// Not sent before this (RFC 4865), in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_ms: Option<u64>,
    /// Whether it lies in its mail.box until then, wherever it goes, so that its sender can take it back.
    #[serde(skip_serializing_if = "is_false")]
    pub can_be_taken_back: bool,
    /// Why a filter wants it to be kept back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<String>,
    /// What SPF, DKIM and DMARC say of its sender; nothing where nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<SenderVerdict>,
    /// Recipients of whom more was said, by their addresses as the envelope has them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub recipients: BTreeMap<String, RecipientItems>,
}

/// What SPF, DKIM and DMARC say of the sender of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SenderVerdict {
    /// The domain of the return path vouches for the message.
    pub is_vouched_for: bool,
    /// The domain of the author does, by DMARC.
    pub is_author_vouched_for: bool,
    /// The author's domain does not, and asks for such messages to be put aside (`p=quarantine`).
    pub is_suspect: bool,
}

/// What was said of one recipient.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecipientItems {
    /// NOTIFY (RFC 3461 §4.1), as it is written: `NEVER`, or of `SUCCESS`, `FAILURE` and `DELAY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notify: Option<String>,
    /// ORCPT (RFC 3461 §4.2), decoded: a type, a semicolon and an address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Fields of a memo that only the server writes: who hears of failures, what the envelope said, and whether rules were applied.
pub const SERVER_FIELDS: [&str; 3] = [field::RETURN_PATH, field::ENVELOPE, field::RULES_DONE];

/// Puts what the server has written into a memo in the place of what somebody else wrote there: `stored` is the memo as it
/// stands in its mail.box, if it does.
pub fn keep_server_fields(memo: &mut Map<String, Value>, stored: Option<&Map<String, Value>>) {
    for name in SERVER_FIELDS {
        match stored.and_then(|stored| stored.get(name)) {
            Some(value) => drop(memo.insert(name.to_owned(), value.clone())),
            None => drop(memo.shift_remove(name)),
        }
    }
}

/// Writes into a memo who puts it into a mail.box: a short name, or nothing for somebody who has not logged in; and when it goes, in
/// milliseconds since 1970, where that is later.
pub fn note_submitter(memo: &mut Map<String, Value>, name: &str, release_ms: Option<u64>) {
    let items = EnvelopeItems {
        submitter: Some(name.to_owned()),
        release_ms,
        can_be_taken_back: release_ms.is_some(),
        ..EnvelopeItems::default()
    };
    if let Some(items) = items.to_value() {
        memo.insert(field::ENVELOPE.to_owned(), items);
    }
}

impl EnvelopeItems {
    /// What a memo keeps; nothing where it keeps none, or what cannot be read.
    pub(crate) fn of_memo(memo: &Map<String, Value>) -> Self {
        let kept = memo.get(field::ENVELOPE).cloned();
        kept.and_then(|kept| serde_json::from_value(kept).ok()).unwrap_or_default()
    }

    /// Whether the message does not belong into the Inbox.
    pub(crate) fn is_suspect(&self) -> bool {
        self.sender.is_some_and(|sender| sender.is_suspect)
    }

    /// The return path where it may be believed: nobody looked, or its domain vouches for the message.
    pub(crate) fn believed<'a>(&self, return_path: &'a str) -> Option<&'a str> {
        let is_believed = self.sender.is_none_or(|sender| sender.is_vouched_for);
        Some(return_path).filter(|path| is_believed && !path.is_empty())
    }

    /// The field; `None` where there is nothing to keep.
    pub(crate) fn to_value(&self) -> Option<Value> {
        if *self == Self::default() { None } else { serde_json::to_value(self).ok() }
    }
}
