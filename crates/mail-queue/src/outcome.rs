//! What an attempt meant for each recipient, and for the destination.
//!
//! A session hands in what it saw as a [`SessionReport`]; [`SessionReport::outcomes`] says what becomes of each recipient,
//! [`SessionReport::effect`] what the destination's concurrency learns from it, [`SessionReport::tries_next_host`] whether the
//! round goes on with the next host.

use scrinium_smtp_wire::{EnhancedCode, Reply};
use serde::{Deserialize, Serialize};

use crate::encoded;
use crate::scheduler::Effect;

/// A longer text of a reply is cut.
pub(crate) const REPLY_MAX_BYTES: usize = 600;

/// How an attempt ended for a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It lies in the recipient's mailbox.
    Delivered,
    /// A server that writes delivery reports has it.
    Relayed,
    /// A server has it that writes none: if somebody asked to hear of success, this is the last that is heard.
    RelayedSilently,
    /// It is tried again.
    Deferred,
    /// It is not tried again.
    Failed,
    /// The message was sent with its last dot, and the answer was lost. It is tried again, and may arrive twice.
    Unknown,
}

impl Ending {
    /// Whether the recipient's server has it.
    #[must_use]
    pub fn is_success(self) -> bool {
        matches!(self, Self::Delivered | Self::Relayed | Self::RelayedSilently)
    }

    /// Whether it is tried again.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Deferred | Self::Unknown)
    }
}

/// What decided an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Cause {
    Accepted,
    RecipientRefused,
    SenderRefused,
    MessageRefused,
    MailboxFull,
    /// The server asks for patience: greylisting, too much at once, no resources.
    Throttled,
    GreetingRefused,
    ConnectionRefused,
    ConnectionTimedOut,
    NetworkUnreachable,
    ClosedInSession,
    TimedOutInSession,
    ProtocolBroken,
    AnswerLost,
    TlsUnavailable,
    TlsFailed,
    LoginFailed,
    NoSuchDomain,
    NullMx,
    NoHosts,
    LookupFailed,
    PolicyMismatch,
    MailLoop,
    Utf8Unsupported,
    RuleRefused,
    Expired,
    ServerStopped,
    Deleted,
}

/// What became of one recipient in one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// What decided it.
    pub cause: Cause,
    /// The status code (RFC 3463): the server's, or ours where it gave none.
    #[serde(with = "encoded::status")]
    pub status: EnhancedCode,
    /// The server's reply as it came, without line ends: `550 5.1.1 No such user`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// The server's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

impl Outcome {
    /// An outcome that no server's reply decided.
    #[must_use]
    pub fn new(ending: Ending, cause: Cause) -> Self {
        Self { ending, cause, status: cause.status(ending), reply: None, host: None }
    }

    /// An outcome that a reply decided.
    fn of_reply(ending: Ending, cause: Cause, reply: &Reply, host: Option<&str>) -> Self {
        let status = match reply.enhanced() {
            Some(status) if status.class() == class_of(ending) => status,
            _ => cause.status(ending),
        };
        Self { ending, cause, status, reply: Some(reply_text(reply)), host: host.map(str::to_owned) }
    }

    pub(crate) fn is_valid(&self) -> bool {
        let is_short = |text: &Option<String>| text.as_ref().is_none_or(|text| is_clean(text));
        is_short(&self.reply) && is_short(&self.host)
    }
}

fn is_clean(text: &str) -> bool {
    text.len() <= REPLY_MAX_BYTES && !text.chars().any(char::is_control)
}

/// A reply in one line.
pub(crate) fn reply_text(reply: &Reply) -> String {
    clean_text(&format!("{} {}", reply.code(), reply.lines().join(" ")))
}

/// A text without control characters, cut to [`REPLY_MAX_BYTES`].
pub(crate) fn clean_text(text: &str) -> String {
    let mut clean = String::new();
    for character in text.chars() {
        if clean.len() + character.len_utf8() > REPLY_MAX_BYTES {
            break;
        }
        clean.push(if character.is_control() { ' ' } else { character });
    }
    clean.trim_end().to_owned()
}

/// The class of status codes (RFC 3463, section 3.1).
fn class_of(ending: Ending) -> u8 {
    match ending {
        Ending::Delivered | Ending::Relayed | Ending::RelayedSilently => 2,
        Ending::Deferred | Ending::Unknown => 4,
        Ending::Failed => 5,
    }
}

impl Cause {
    /// The status code where the server gave none (RFC 3463, section 3).
    #[must_use]
    pub fn status(self, ending: Ending) -> EnhancedCode {
        let (subject, detail) = match self {
            Self::Accepted | Self::Deleted | Self::ServerStopped => (0, 0),
            Self::RecipientRefused => (1, 0),
            Self::SenderRefused => (1, 8),
            Self::MessageRefused => (6, 0),
            Self::MailboxFull => (2, 2),
            Self::Throttled => (3, 2),
            Self::GreetingRefused => (3, 2),
            Self::ConnectionRefused | Self::ConnectionTimedOut | Self::NetworkUnreachable => (4, 1),
            Self::ClosedInSession | Self::TimedOutInSession | Self::AnswerLost => (4, 2),
            Self::ProtocolBroken => (5, 0),
            Self::TlsUnavailable | Self::TlsFailed => (7, 10),
            Self::LoginFailed => (7, 8),
            Self::NoSuchDomain => (1, 2),
            Self::NullMx => (1, 10),
            Self::NoHosts => (4, 4),
            Self::LookupFailed => (4, 3),
            Self::PolicyMismatch => (7, 5),
            Self::MailLoop => (4, 6),
            Self::Utf8Unsupported => (6, 7),
            Self::RuleRefused => (7, 1),
            Self::Expired => (4, 7),
        };
        EnhancedCode::new(class_of(ending), subject, detail)
    }
}

/// Where a session was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Stage {
    Connect,
    Greeting,
    Hello,
    StartTls,
    Login,
    Sender,
    Recipient,
    /// The DATA command, or the message before its last dot.
    Data,
    /// Behind the last dot.
    FinalDot,
}

/// What went wrong without a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Trouble {
    Refused,
    TimedOut,
    Unreachable,
    Closed,
    /// The handshake, or the certificate.
    Tls,
    /// The server does not offer STARTTLS, and the policy asks for it.
    NoTls,
    /// The message needs SMTPUTF8, and the server has it not.
    NoUtf8,
    /// What came is no reply.
    Protocol,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// The answer to the last dot.
    Answered(Reply),
    /// LMTP: an answer for each recipient that RCPT accepted, in their order (RFC 2033, section 4.2).
    AnsweredEach(Vec<Reply>),
    /// A command before it was refused. Nothing was sent.
    Refused {
        /// Where.
        stage: Stage,
        /// The answer.
        reply: Reply,
    },
    /// No answer came.
    Broken {
        /// Where.
        stage: Stage,
        /// Why.
        trouble: Trouble,
    },
    /// RCPT refused everybody, so there was nothing to send.
    NobodyAccepted,
}

/// What a session saw of one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionReport {
    /// The server's name.
    pub host: Option<String>,
    /// The server knows DSN (RFC 3461), and so writes the reports of success itself.
    pub has_dsn: bool,
    /// It is the last server: LMTP, for one.
    pub is_final: bool,
    /// The answers to RCPT in the order of the recipients; fewer if the session ended before.
    pub recipients: Vec<Reply>,
    /// How it ended.
    pub end: SessionEnd,
}

impl SessionReport {
    /// What becomes of each of `count` recipients.
    #[must_use]
    pub fn outcomes(&self, count: usize) -> Vec<Outcome> {
        let mut accepted = 0;
        let mut outcomes = Vec::with_capacity(count);
        for place in 0..count {
            let outcome = match self.recipients.get(place) {
                Some(reply) if !reply.is_success() => self.refused(Stage::Recipient, reply),
                // Who has no answer to RCPT was never offered to the server, even if it answered a later command.
                None if self.is_answered() => self.broken(Stage::Recipient, Trouble::Protocol),
                _ => {
                    accepted += 1;
                    self.ended(accepted - 1)
                }
            };
            outcomes.push(outcome);
        }
        outcomes
    }

    fn is_answered(&self) -> bool {
        matches!(self.end, SessionEnd::Answered(_) | SessionEnd::AnsweredEach(_) | SessionEnd::NobodyAccepted)
    }

    /// What the end means for a recipient whom RCPT accepted, or who was not reached.
    fn ended(&self, accepted: usize) -> Outcome {
        match &self.end {
            SessionEnd::Answered(reply) => self.answered(reply),
            SessionEnd::AnsweredEach(replies) => match replies.get(accepted) {
                Some(reply) => self.answered(reply),
                None => self.broken(Stage::FinalDot, Trouble::Closed),
            },
            SessionEnd::Refused { stage, reply } => self.refused(*stage, reply),
            SessionEnd::Broken { stage, trouble } => self.broken(*stage, *trouble),
            SessionEnd::NobodyAccepted => self.broken(Stage::Recipient, Trouble::Protocol),
        }
    }

    fn answered(&self, reply: &Reply) -> Outcome {
        if !reply.is_success() {
            return self.refused(Stage::FinalDot, reply);
        }
        let ending = match (self.is_final, self.has_dsn) {
            (true, _) => Ending::Delivered,
            (false, true) => Ending::Relayed,
            (false, false) => Ending::RelayedSilently,
        };
        Outcome::of_reply(ending, Cause::Accepted, reply, self.host.as_deref())
    }

    fn refused(&self, stage: Stage, reply: &Reply) -> Outcome {
        let (ending, cause) = classify(stage, reply);
        Outcome::of_reply(ending, cause, reply, self.host.as_deref())
    }

    fn broken(&self, stage: Stage, trouble: Trouble) -> Outcome {
        let (ending, cause) = match (stage, trouble) {
            (_, Trouble::NoUtf8) => (Ending::Failed, Cause::Utf8Unsupported),
            (Stage::FinalDot, _) => (Ending::Unknown, Cause::AnswerLost),
            (_, Trouble::Tls) => (Ending::Deferred, Cause::TlsFailed),
            (_, Trouble::NoTls) => (Ending::Deferred, Cause::TlsUnavailable),
            (_, Trouble::Protocol) => (Ending::Deferred, Cause::ProtocolBroken),
            (Stage::Connect, Trouble::Refused | Trouble::Closed) => {
                (Ending::Deferred, Cause::ConnectionRefused)
            }
            (Stage::Connect, Trouble::TimedOut) => (Ending::Deferred, Cause::ConnectionTimedOut),
            (_, Trouble::Unreachable) => (Ending::Deferred, Cause::NetworkUnreachable),
            (_, Trouble::TimedOut) => (Ending::Deferred, Cause::TimedOutInSession),
            (_, Trouble::Refused | Trouble::Closed) => (Ending::Deferred, Cause::ClosedInSession),
        };
        let mut outcome = Outcome::new(ending, cause);
        outcome.host.clone_from(&self.host);
        // Some close without a word after they refused RCPT: the last answer says why.
        if stage != Stage::FinalDot && matches!(trouble, Trouble::Closed) {
            let last = self.recipients.last().filter(|reply| !reply.is_success());
            outcome.reply = last.map(reply_text);
        }
        outcome
    }

    /// What the destination's concurrency learns from it. What concerns one recipient or message teaches nothing.
    #[must_use]
    pub fn effect(&self) -> Effect {
        let is_throttle = |reply: &Reply| classify(Stage::Recipient, reply).1 == Cause::Throttled;
        match &self.end {
            SessionEnd::Broken { trouble: Trouble::NoUtf8, .. } => Effect::Reached,
            SessionEnd::Broken { stage, trouble } if *stage <= Stage::Greeting => match trouble {
                Trouble::Protocol => Effect::Throttled,
                _ => Effect::Unreachable,
            },
            SessionEnd::Broken { stage, .. } if *stage <= Stage::Login => Effect::Unreachable,
            SessionEnd::Broken { .. } => Effect::Throttled,
            SessionEnd::Refused { stage, .. } if *stage <= Stage::Login => Effect::Unreachable,
            SessionEnd::Refused { reply, .. } | SessionEnd::Answered(reply) if reply.code() == 421 => {
                Effect::Throttled
            }
            _ if self.recipients.iter().any(|reply| is_throttle(reply) && reply.code() == 421) => {
                Effect::Throttled
            }
            SessionEnd::Answered(reply) if reply.is_success() => Effect::Delivered,
            SessionEnd::AnsweredEach(replies) if replies.iter().any(Reply::is_success) => Effect::Delivered,
            SessionEnd::Refused { stage: Stage::Sender, reply } if throttles(reply) => Effect::Throttled,
            _ => Effect::Reached,
        }
    }

    /// Whether the round goes on with the next host of the destination: this one was not reached, or does not take mail at
    /// all (RFC 5321, section 5.1). A refusal of the sender, a recipient or the message holds for all of them.
    #[must_use]
    pub fn tries_next_host(&self) -> bool {
        match &self.end {
            SessionEnd::Broken { trouble: Trouble::NoUtf8, .. } => true,
            SessionEnd::Broken { stage, .. } => *stage < Stage::FinalDot,
            SessionEnd::Refused { stage, reply } => {
                *stage <= Stage::Login || reply.code() == 421 || (*stage == Stage::Sender && throttles(reply))
            }
            _ => false,
        }
    }
}

/// A reply to MAIL that is about the client or the moment rather than the message (RFC 3463, X.3.2 and X.7).
fn throttles(reply: &Reply) -> bool {
    let about_us = reply.enhanced().is_some_and(|status| matches!(status.subject(), 3 | 7));
    reply.code() == 421 || (reply.is_transient() && about_us)
}

/// What a refusal means: 4xx is tried again, 5xx is not (RFC 5321, section 4.2.1).
#[must_use]
pub fn classify(stage: Stage, reply: &Reply) -> (Ending, Cause) {
    // A refusal with a success or a question where none belongs is a server that lost its place.
    if !reply.is_transient() && !reply.is_permanent() {
        return (Ending::Deferred, Cause::ProtocolBroken);
    }
    let is_permanent = reply.is_permanent();
    let ending = if is_permanent { Ending::Failed } else { Ending::Deferred };
    let status = reply.enhanced().map(|status| (status.subject(), status.detail()));
    let cause = match (stage, reply.code()) {
        (_, 421) => Cause::Throttled,
        (Stage::Connect | Stage::Greeting, _) => Cause::GreetingRefused,
        // What is wrong with our log-in or their TLS is mended by people, who have the message's lifetime for it.
        (Stage::Login, _) => return (Ending::Deferred, Cause::LoginFailed),
        (Stage::StartTls, _) => return (Ending::Deferred, Cause::TlsUnavailable),
        (Stage::Hello, _) => Cause::GreetingRefused,
        (_, 452 | 552) if status == Some((2, 2)) => Cause::MailboxFull,
        (_, 422) => Cause::MailboxFull,
        // RFC 5321, section 4.5.3.1.10: too many recipients is 452, and 552 from old servers. The rest follows later.
        (Stage::Recipient, 452 | 552) if matches!(status, None | Some((5, 3))) => {
            return (Ending::Deferred, Cause::Throttled);
        }
        _ if status == Some((2, 2)) => Cause::MailboxFull,
        _ if status == Some((6, 7)) => Cause::Utf8Unsupported,
        _ if status == Some((4, 6)) => Cause::MailLoop,
        _ if !is_permanent && matches!(status, Some((3 | 7, _))) => Cause::Throttled,
        (Stage::Sender, 530 | 535) => return (Ending::Deferred, Cause::LoginFailed),
        (Stage::Sender, _) => Cause::SenderRefused,
        (Stage::Recipient, 450 | 451) if status.is_none() => Cause::Throttled,
        (Stage::Recipient, 556) => Cause::NullMx,
        (Stage::Recipient, _) => Cause::RecipientRefused,
        (Stage::Data | Stage::FinalDot, _) => Cause::MessageRefused,
    };
    (ending, cause)
}

/// The outcome of a round over several hosts: a host that may yet answer otherwise outweighs one that refuses for ever, and
/// the answer that was lost outweighs both.
#[must_use]
pub fn merge(earlier: Outcome, later: Outcome) -> Outcome {
    let weight = |outcome: &Outcome| match outcome.ending {
        Ending::Delivered | Ending::Relayed | Ending::RelayedSilently => 3,
        Ending::Unknown => 2,
        Ending::Deferred => 1,
        Ending::Failed => 0,
    };
    if weight(&earlier) > weight(&later) { earlier } else { later }
}
