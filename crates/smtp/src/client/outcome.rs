//! What became of a message for a recipient.

use scrinium_smtp_wire::{EnhancedCode, Reply};

/// How much of what a server says is kept.
pub const SAID_MAX_BYTES: usize = 1000;

/// What became of a message for one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server has taken it.
    Delivered {
        /// What it said.
        said: Said,
        /// Whether it was told which notices the sender wants (RFC 3461). If not, who sends it must see to the notice of success.
        dsn_passed_on: bool,
    },
    /// Not yet: it may be tried again.
    Deferred(Said),
    /// Never: it would fail again.
    Failed(Said),
    /// The end of the text was sent, and no answer came: the server may have taken it or not. To be sure that it arrives, it
    /// must be sent again, and may then arrive twice (RFC 1047).
    Unknown(Said),
}

impl Outcome {
    /// Why.
    #[must_use]
    pub const fn said(&self) -> &Said {
        match self {
            Self::Delivered { said, .. }
            | Self::Deferred(said)
            | Self::Failed(said)
            | Self::Unknown(said) => said,
        }
    }
}

/// Where a reason comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The server said so.
    Replied,
    /// The connection was lost.
    Lost,
    /// The server took too long.
    TimedOut,
    /// The server does not speak SMTP.
    Protocol,
    /// The connection cannot be encrypted, and must be.
    NoTls,
    /// The handshake failed.
    TlsFailed,
    /// The log-in failed, or the server offers none that can be used.
    LogIn,
    /// The message or an address is beyond ASCII, and the server does not take that (RFC 6531). It is not rewritten: that would break
    /// signatures and addresses.
    NeedsUtf8,
    /// The message is longer than the server takes.
    TooLarge,
    /// The sender has asked for TLS all the way (RFC 8689), and the server does not promise it.
    NeedsRequireTls,
    /// The server takes fewer recipients at a time (RFC 9422); it may be sent again at once.
    TooManyRecipients,
    /// The text has a CR or LF by itself, which must not be sent.
    BareLineEnd,
    /// Who sends the message gave it up.
    GivenUp,
}

/// Which step of a session a reply was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum SessionStep {
    Greeting,
    Hello,
    StartTls,
    LogIn,
    Sender,
    Recipient,
    /// DATA, or a chunk before the last.
    Text,
    /// The end of the text.
    End,
    /// None of these: RSET, or nothing that was asked.
    Other,
}

/// What was said of a recipient or a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Where it comes from.
    pub reason: Reason,
    /// Which step the server's reply was for; `None` where it did not reply.
    pub step: Option<SessionStep>,
    /// The code of the reply, if one came.
    pub code: Option<u16>,
    /// The enhanced status code: the server's, or one that fits.
    pub enhanced: EnhancedCode,
    /// The text, of at most [`SAID_MAX_BYTES`]; without control characters.
    pub text: String,
}

impl Said {
    pub(super) fn by(step: SessionStep, reply: &Reply) -> Self {
        let class = u8::try_from(reply.code() / 100).unwrap_or(5);
        let enhanced = reply.enhanced().unwrap_or_else(|| EnhancedCode::new(class, 0, 0));
        Self {
            reason: Reason::Replied,
            step: Some(step),
            code: Some(reply.code()),
            enhanced,
            text: bounded(&reply.text()),
        }
    }

    pub(super) fn own(reason: Reason, enhanced: (u8, u16, u16), text: &str) -> Self {
        let enhanced = EnhancedCode::new(enhanced.0, enhanced.1, enhanced.2);
        Self { reason, step: None, code: None, enhanced, text: bounded(text) }
    }

    /// Whether it would fail again.
    #[must_use]
    pub const fn is_permanent(&self) -> bool {
        match self.code {
            Some(code) => code >= 500,
            None => self.enhanced.class() == 5,
        }
    }

    pub(super) fn outcome(self) -> Outcome {
        if self.is_permanent() { Outcome::Failed(self) } else { Outcome::Deferred(self) }
    }
}

fn bounded(text: &str) -> String {
    let mut kept = String::new();
    for character in text.chars() {
        if kept.len() + character.len_utf8() > SAID_MAX_BYTES {
            break;
        }
        kept.push(if character.is_control() { ' ' } else { character });
    }
    kept
}
