//! What a script wants to be done.

use crate::error::RunError;
use crate::program::RejectKind;
use crate::vacation::{NoReply, VacationReply};

/// A change of the header (RFC 5293). Changes are made one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderEdit {
    /// A field is added.
    Add {
        /// The name.
        name: String,
        /// The value: one line of UTF-8, still without encoded words.
        value: String,
        /// At the end of the header; at its top otherwise.
        last: bool,
    },
    /// A field is removed.
    Delete {
        /// Its place in the header as the changes before this one left it, from 0 at the top.
        index: usize,
    },
}

/// A mailbox that a message goes into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name. `INBOX` is in capitals, as the first level of a path too.
    pub mailbox: String,
    /// Flags and keywords, each once.
    pub flags: Vec<String>,
    /// The mailbox may be made (RFC 5490, section 3.2).
    pub create: bool,
    /// The mailbox with this use is taken first, if there is one (RFC 8579, section 4).
    pub special_use: Option<String>,
    /// The mailbox with this identifier is taken first, if there is one (RFC 9042, section 4).
    pub mailbox_id: Option<String>,
}

/// A notification by mail (RFC 5435, RFC 5436). It carries `Auto-Submitted: auto-notified`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Addresses.
    pub to: Vec<String>,
    /// Further addresses.
    pub cc: Vec<String>,
    /// Who notifies; the owner's address if a script says nothing.
    pub from: Option<String>,
    /// 1 is the most urgent, 3 the least.
    pub importance: u8,
    /// One line.
    pub subject: String,
    /// The text.
    pub body: String,
    /// Where a copy is filed (RFC 8580).
    pub fcc: Option<Target>,
}

/// What is to be done with the message. All actions of a run belong together: either all are done or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The message goes into the inbox.
    Keep {
        /// Flags and keywords.
        flags: Vec<String>,
        /// How many of the run's [changes of the header](ScriptOutcome::header_edits) the copy has.
        edits: usize,
        /// No command asked for it: the script said nothing of where the message goes (RFC 5228, section 2.10.2).
        is_implicit: bool,
    },
    /// The message goes into a mailbox.
    FileInto {
        /// The mailbox.
        target: Target,
        /// As in [`Action::Keep`].
        edits: usize,
    },
    /// The message goes to another address.
    Redirect {
        /// The address.
        address: String,
        /// As in [`Action::Keep`].
        edits: usize,
    },
    /// The message is refused.
    Reject {
        /// How.
        kind: RejectKind,
        /// The reason, for the sender; it may have several lines.
        reason: String,
    },
    /// The sender gets a reply, unless one was sent within the period.
    Vacation(Box<VacationReply>),
    /// Somebody is notified.
    Notify(Box<Notification>),
}

/// A message that is remembered once everything else is done (RFC 7352).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenMark {
    /// 64 characters. [`Host::was_seen`](crate::Host::was_seen) asks by it.
    pub key: String,
    /// How long it is remembered.
    pub period_seconds: u64,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptOutcome {
    /// In the order of the script. Empty: the message is discarded.
    pub actions: Vec<Action>,
    /// All changes of the header; each action says how many it has.
    pub header_edits: Vec<HeaderEdit>,
    /// What is to be remembered.
    pub seen: Vec<SeenMark>,
    /// Why a reply of `vacation` is not sent.
    pub no_reply: Option<NoReply>,
    /// Why the run ended early. The only action is then to keep the message.
    pub error: Option<RunError>,
}

/// Longest name of a mailbox.
const MAILBOX_MAX_BYTES: usize = 1_024;

pub(crate) fn is_mailbox_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAILBOX_MAX_BYTES && !name.chars().any(char::is_control)
}

/// RFC 5322, section 2.2.
pub(crate) fn is_field_name(name: &str) -> bool {
    let is_printable = |byte: u8| (33..=126).contains(&byte) && byte != b':';
    !name.is_empty() && name.len() <= 256 && name.bytes().all(is_printable)
}

/// The name with `INBOX` in capitals (RFC 9051, section 5.1).
pub(crate) fn canonical_mailbox(name: &str) -> String {
    let first = name.split('/').next().unwrap_or_default();
    if first.eq_ignore_ascii_case("INBOX") {
        return format!("INBOX{}", name.get(first.len()..).unwrap_or_default());
    }
    name.to_owned()
}

/// A text as one line of a header: no control characters, blanks around it gone, cut at 998 characters.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_control() || c == ' ').filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line.chars().take(998).collect()
}

/// Cuts a text so that no character is split.
pub(crate) fn cut(mut text: String, limit_bytes: usize) -> String {
    if text.len() > limit_bytes {
        let end = (0..=limit_bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}
