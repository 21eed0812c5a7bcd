//! Which notice a sender is to get, and its id.

use serde::{Deserialize, Serialize};

use crate::entry::{QueueEntry, Recipient, RecipientState};
use crate::outcome::Ending;
use crate::policy::QueuePolicy;

/// What a notice says (RFC 3464, section 2.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum NoticeKind {
    Failure,
    Delay,
    Success,
    /// Given to a server that writes no reports.
    Relayed,
}

impl NoticeKind {
    pub(crate) const ALL: [Self; 4] = [Self::Failure, Self::Success, Self::Relayed, Self::Delay];

    /// Its name in records and ids.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::Delay => "delay",
            Self::Success => "success",
            Self::Relayed => "relayed",
        }
    }

    /// Whether a recipient is to be in such a notice now.
    fn concerns(self, recipient: &Recipient) -> bool {
        // RFC 3461, section 4.1: without NOTIFY, failures are told, and delays may be.
        let (success, failure, delay) = match recipient.notify {
            None => (false, true, true),
            Some(notify) => (notify.success, notify.failure, notify.delay),
        };
        let ending = recipient.outcome.as_ref().map(|outcome| outcome.ending);
        let has_arrived = recipient.state == RecipientState::Delivered;
        match self {
            Self::Failure => failure && !recipient.end_noticed && recipient.state == RecipientState::Failed,
            Self::Success => {
                success && !recipient.end_noticed && has_arrived && ending == Some(Ending::Delivered)
            }
            Self::Relayed => {
                success && !recipient.end_noticed && has_arrived && ending == Some(Ending::RelayedSilently)
            }
            Self::Delay => delay && !recipient.delay_noticed && recipient.state == RecipientState::Waiting,
        }
    }
}

/// A notice that is to be put into the queue under its id. If it is there already, or was, it is only recorded as
/// sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticePlan {
    /// Made of the message, the recipients and the kind: the same notice has the same id, however often it is planned.
    pub id: String,
    /// What it says.
    pub kind: NoticeKind,
    /// Places of the recipients in their entry, rising.
    pub recipients: Vec<u32>,
}

impl QueueEntry {
    /// The notice that is to be sent next, if there is one. Nobody hears of a message from the null sender, nor of a
    /// report (RFC 3464, section 2; RFC 5321, section 6.1).
    #[must_use]
    pub fn notice(&self, now_ms: u64, policy: &QueuePolicy) -> Option<NoticePlan> {
        if self.envelope.is_silent() || self.removed {
            return None;
        }
        NoticeKind::ALL.into_iter().find_map(|kind| {
            if kind == NoticeKind::Delay && !self.is_delayed(now_ms, policy) {
                return None;
            }
            let concerned = (0..).zip(&self.recipients).filter(|(_, recipient)| kind.concerns(recipient));
            let recipients: Vec<u32> = concerned.map(|(place, _)| place).collect();
            let id = notice_id(&self.id, kind, &recipients);
            (!recipients.is_empty()).then_some(NoticePlan { id, kind, recipients })
        })
    }

    /// A message that was tried, and that nobody keeps back on purpose, is delayed after a while.
    fn is_delayed(&self, now_ms: u64, policy: &QueuePolicy) -> bool {
        let is_waiting = self.hold.is_none() && self.attempt.is_none() && self.attempts > 0;
        is_waiting && now_ms >= self.delayed_ms(policy) && now_ms < self.expires_ms
    }

    /// When the sender hears of a delay.
    pub(crate) fn delayed_ms(&self, policy: &QueuePolicy) -> u64 {
        self.first_ms().saturating_add(policy.delay_notice_ms)
    }

    pub(crate) fn awaits_delay_notice(&self) -> bool {
        !self.envelope.is_silent()
            && self.recipients.iter().any(|recipient| NoticeKind::Delay.concerns(recipient))
    }
}

fn notice_id(entry: &str, kind: NoticeKind, recipients: &[u32]) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update(b"scrinium notice 1\0").update(entry.as_bytes()).update(b"\0").update(kind.word().as_bytes());
    for place in recipients {
        hash.update(&place.to_be_bytes());
    }
    let hex = hash.finalize().to_hex();
    format!("notice-{}-{}", kind.word(), hex.get(..32).unwrap_or(&hex))
}
