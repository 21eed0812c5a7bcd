//! A message that goes out, and how far it is.

use scrinium_smtp_wire::{DotWriter, ForwardPath, Notify, OriginalRecipient, Return, ReversePath};

use crate::chunk_text::ChunkText;
use crate::client::outcome::{Outcome, Said};

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Whom it is from.
    pub sender: ReversePath,
    /// Whom it is for; at least one.
    pub recipients: Vec<OutgoingRecipient>,
    /// Its length in bytes, if that is known.
    pub text_bytes: Option<u64>,
    /// Whether its text has bytes beyond ASCII. It is sent as it is to a server that does not offer 8BITMIME too.
    pub has_eight_bit: bool,
    /// Whether its head is beyond ASCII (RFC 6532).
    pub needs_utf8: bool,
    /// RET
    pub return_content: Option<Return>,
    /// ENVID
    pub envelope_id: Option<String>,
    /// REQUIRETLS (RFC 8689)
    pub requires_tls: bool,
}

/// A recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingRecipient {
    /// The address.
    pub path: ForwardPath,
    /// NOTIFY
    pub notify: Option<Notify>,
    /// ORCPT
    pub original: Option<OriginalRecipient>,
}

impl Outgoing {
    /// A message without anything special.
    #[must_use]
    pub fn new(sender: ReversePath, recipients: Vec<ForwardPath>) -> Self {
        let recipient = |path| OutgoingRecipient { path, notify: None, original: None };
        Self {
            sender,
            recipients: recipients.into_iter().map(recipient).collect(),
            text_bytes: None,
            has_eight_bit: false,
            needs_utf8: false,
            return_content: None,
            envelope_id: None,
            requires_tls: false,
        }
    }
}

impl OutgoingRecipient {
    pub(super) fn is_ascii(&self) -> bool {
        match &self.path {
            ForwardPath::Postmaster => true,
            ForwardPath::Path(path) => path.mailbox.is_ascii(),
        }
    }
}

/// How far a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Envelope,
    /// Text is asked for.
    Text,
    /// The end was written.
    End,
    /// Everybody has an outcome; replies to what was sent are awaited.
    Drain,
}

pub(super) enum TextWriter {
    Dots(DotWriter),
    Chunks(ChunkText),
}

/// A message on its way.
pub(super) struct Sending {
    pub(super) message: Outgoing,
    pub(super) stage: Stage,
    pub(super) outcomes: Vec<Option<Outcome>>,
    pub(super) mail_is_sent: bool,
    pub(super) next_recipient: usize,
    pub(super) data_is_sent: bool,
    /// Recipients that the server has taken, in their order.
    pub(super) taken: Vec<usize>,
    /// LMTP: recipients that have their last reply.
    pub(super) answered: usize,
    pub(super) writer: TextWriter,
    /// The end was handed out to be sent.
    pub(super) end_is_out: bool,
    /// The server has a transaction that RSET must end.
    pub(super) needs_reset: bool,
    /// What the server last refused.
    pub(super) last_refusal: Option<Said>,
}

impl Sending {
    pub(super) fn settle(&mut self, recipient: usize, outcome: impl FnOnce() -> Outcome) {
        if let Some(place) = self.outcomes.get_mut(recipient) {
            place.get_or_insert_with(outcome);
        }
    }

    pub(super) fn settle_all(&mut self, outcome: &Outcome) {
        for place in &mut self.outcomes {
            place.get_or_insert_with(|| outcome.clone());
        }
    }

    /// The next recipient that has no outcome yet, from here on.
    pub(super) fn unsettled_from(&self, from: usize) -> Option<usize> {
        let rest = self.outcomes.iter().enumerate().skip(from);
        rest.into_iter().find(|(_, outcome)| outcome.is_none()).map(|(place, _)| place)
    }
}
