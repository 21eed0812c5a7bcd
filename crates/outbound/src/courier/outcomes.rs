//! What a session said, in the queue's words.

use scrinium_mail_queue::route::Protection;
use scrinium_mail_queue::{Cause, Effect, Ending, Outcome};
use scrinium_smtp::client::{Outcome as Sent, Reason, Said, SessionStep};

/// How a session went, as far as the destination is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SessionResult {
    /// It took messages, or refused them one by one.
    Reached,
    /// It took at least one.
    Delivered,
    /// It asks for patience, or broke off.
    Throttled,
    /// It was not reached, or takes no mail.
    Unreachable,
}

impl From<&SessionResult> for Effect {
    fn from(result: &SessionResult) -> Self {
        match result {
            SessionResult::Reached => Self::Reached,
            SessionResult::Delivered => Self::Delivered,
            SessionResult::Throttled => Self::Throttled,
            SessionResult::Unreachable => Self::Unreachable,
        }
    }
}

/// What became of one recipient. `is_final` is whether the server keeps mailboxes itself (LMTP).
pub(super) fn outcome_of(sent: &Sent, host: &str, is_final: bool) -> Outcome {
    let (ending, said) = match sent {
        Sent::Delivered { said, dsn_passed_on } => {
            let ending = match (is_final, dsn_passed_on) {
                (true, _) => Ending::Delivered,
                (false, true) => Ending::Relayed,
                (false, false) => Ending::RelayedSilently,
            };
            (ending, said)
        }
        Sent::Deferred(said) => (Ending::Deferred, said),
        Sent::Failed(said) => (Ending::Failed, said),
        Sent::Unknown(said) => (Ending::Unknown, said),
    };
    let cause = if ending.is_success() { Cause::Accepted } else { cause_of(ending, said) };
    // A person mends a log-in or TLS that fails, within the message's lifetime.
    let ending = match cause {
        Cause::LoginFailed | Cause::TlsFailed | Cause::TlsUnavailable if ending == Ending::Failed => {
            Ending::Deferred
        }
        _ => ending,
    };
    let mut outcome = Outcome::new(ending, cause);
    outcome.host = Some(clean(host));
    if let Some(code) = said.code {
        let class = u16::from(said.enhanced.class());
        let has_enhanced = (said.enhanced.subject(), said.enhanced.detail()) != (0, 0);
        if has_enhanced && u16::from(outcome.status.class()) == class {
            outcome.status = said.enhanced;
        }
        let enhanced = if has_enhanced { format!("{} ", said.enhanced) } else { String::new() };
        outcome.reply = Some(clean(&format!("{code} {enhanced}{}", said.text)));
    } else if said.reason != Reason::Replied {
        outcome.reply = Some(clean(&said.text));
    }
    outcome
}

/// What a connection that never came to a message means for all recipients.
pub(super) fn failed_connection(said: &Said, host: &str) -> Outcome {
    // RFC 5321 §3.1: a server that refuses all of us refuses no message; others of its domain may take it.
    let ending =
        if said.reason == Reason::Replied && said.is_permanent() { Ending::Failed } else { Ending::Deferred };
    let sent =
        if ending == Ending::Failed { Sent::Failed(said.clone()) } else { Sent::Deferred(said.clone()) };
    outcome_of(&sent, host, false)
}

fn cause_of(ending: Ending, said: &Said) -> Cause {
    if ending == Ending::Unknown {
        return Cause::AnswerLost;
    }
    match said.reason {
        Reason::Replied => cause_of_reply(said),
        Reason::Lost => Cause::ClosedInSession,
        Reason::TimedOut => Cause::TimedOutInSession,
        Reason::Protocol => Cause::ProtocolBroken,
        Reason::NoTls | Reason::NeedsRequireTls => Cause::TlsUnavailable,
        Reason::TlsFailed => Cause::TlsFailed,
        Reason::LogIn => Cause::LoginFailed,
        Reason::NeedsUtf8 => Cause::Utf8Unsupported,
        Reason::TooLarge | Reason::BareLineEnd => Cause::MessageRefused,
        Reason::TooManyRecipients => Cause::Throttled,
        Reason::GivenUp => Cause::ClosedInSession,
    }
}

fn cause_of_reply(said: &Said) -> Cause {
    let status = (said.enhanced.subject(), said.enhanced.detail());
    let code = said.code.unwrap_or(0);
    match (said.step, code, status) {
        (_, 421, _) => Cause::Throttled,
        (_, 422, _) | (_, _, (2, 2)) => Cause::MailboxFull,
        (_, _, (6, 7)) => Cause::Utf8Unsupported,
        (_, _, (4, 6)) => Cause::MailLoop,
        (Some(SessionStep::StartTls), ..) => Cause::TlsUnavailable,
        (Some(SessionStep::LogIn), ..) => Cause::LoginFailed,
        (Some(SessionStep::Sender), 530 | 535, _) => Cause::LoginFailed,
        (Some(SessionStep::Greeting | SessionStep::Hello), ..) => Cause::GreetingRefused,
        (_, 400..=499, (3 | 7, _)) => Cause::Throttled,
        (Some(SessionStep::Sender), ..) => Cause::SenderRefused,
        (Some(SessionStep::Recipient), 556, _) => Cause::NullMx,
        (Some(SessionStep::Recipient), 450..=452, (0, 0) | (5, 3)) => Cause::Throttled,
        (Some(SessionStep::Recipient), ..) => Cause::RecipientRefused,
        _ => Cause::MessageRefused,
    }
}

/// What a failed connection says of the destination.
pub(super) fn result_of_failure(said: &Said) -> SessionResult {
    if said.code == Some(421) || said.reason == Reason::Protocol {
        SessionResult::Throttled
    } else {
        SessionResult::Unreachable
    }
}

/// What the outcomes of a message say of the destination.
pub(super) fn result_of_message(outcomes: &[Sent], was_lost: bool) -> SessionResult {
    let is_throttled = |outcome: &Sent| outcome.said().code == Some(421);
    if outcomes.iter().any(|outcome| matches!(outcome, Sent::Delivered { .. })) {
        SessionResult::Delivered
    } else if was_lost || outcomes.iter().any(is_throttled) {
        SessionResult::Throttled
    } else {
        SessionResult::Reached
    }
}

/// Whether another host of the destination may do better for a recipient.
pub(super) fn tries_next_host(sent: &Sent) -> bool {
    let said = sent.said();
    match sent {
        Sent::Delivered { .. } | Sent::Unknown(_) => false,
        Sent::Failed(_) => said.reason == Reason::NeedsUtf8,
        Sent::Deferred(_) => match said.reason {
            Reason::Replied => {
                said.code == Some(421)
                    || (said.step == Some(SessionStep::Sender) && matches!(said.enhanced.subject(), 3 | 7))
            }
            Reason::TooManyRecipients => false,
            _ => true,
        },
    }
}

/// The outcome of a connection that was not made.
pub(super) fn unconnected(error: &std::io::Error, host: &str) -> Outcome {
    let cause = match error.kind() {
        std::io::ErrorKind::TimedOut => Cause::ConnectionTimedOut,
        std::io::ErrorKind::HostUnreachable
        | std::io::ErrorKind::NetworkUnreachable
        | std::io::ErrorKind::AddrNotAvailable => Cause::NetworkUnreachable,
        _ => Cause::ConnectionRefused,
    };
    let mut outcome = Outcome::new(Ending::Deferred, cause);
    outcome.host = Some(clean(host));
    outcome
}

/// Whether a message that could not be sent over TLS goes without.
pub(super) fn goes_plain(protection: Protection, said: &Said) -> bool {
    protection == Protection::Opportunistic && said.reason == Reason::TlsFailed
}

/// Whether a connection came to nothing because it could not be encrypted as it had to be.
pub(super) fn is_about_tls(said: &Said) -> bool {
    matches!(said.reason, Reason::TlsFailed | Reason::NoTls)
}

/// A text of a stranger: one line, of at most 600 bytes.
pub(super) fn clean(text: &str) -> String {
    let mut clean = String::new();
    for character in text.chars() {
        if clean.len() + character.len_utf8() > 600 {
            break;
        }
        clean.push(if character.is_control() { ' ' } else { character });
    }
    clean.trim_end().to_owned()
}
