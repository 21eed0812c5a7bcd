//! The member as others see it.

use std::sync::Arc;
use std::thread::JoinHandle;

use scrinium_cluster::{
    Freshness, Group, Incarnation, Leadership, MemberId, Refusal, Role, Rules, StopReason,
};
use scrinium_log::{Chain, Sequence};
use tokio::sync::{oneshot, watch};

use super::inbox::{Inbox, Order};
use super::readers::PendingReader;
use crate::boot_clock::boot_ms;

/// What a member is, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// What it is to its group.
    pub role: Role,
    /// Who leads, as far as it knows.
    pub leader: Option<Leadership>,
    /// The engine that it belongs to, to be kept with its store.
    pub incarnation: Option<Incarnation>,
    /// All records that it has read from the engine.
    pub position: Chain,
    /// The last record that is in its log and store.
    pub applied: Sequence,
    /// Until when it may answer from its own store, in milliseconds since the machine was started.
    pub lease_until_ms: Option<u64>,
    /// Which records it needs next, and which are the first that the engine still has: it has to take those between from
    /// another member.
    pub behind: Option<(Sequence, Sequence)>,
    /// Another member whose records are not those that were agreed on, and up to where.
    pub differing: Option<(MemberId, Sequence)>,
    /// Why it takes no part any more.
    pub stop_reason: Option<StopReason>,
    /// Why its own log takes nothing, for now or for good.
    pub trouble: Option<String>,
    /// Its threads have ended.
    pub has_ended: bool,
}

impl MemberStatus {
    /// Whether changes are taken here: it leads, and has applied all that came before.
    #[must_use]
    pub fn takes_changes(&self) -> bool {
        matches!(self.role, Role::Leader(_)) && self.applied == self.position.last() && !self.has_ended
    }

    /// Whether no other member can lead yet: it leads, and the engine has taken a sign of life of it not long ago.
    #[must_use]
    pub fn holds_lease(&self) -> bool {
        self.lease_until_ms.is_some_and(|until_ms| boot_ms() < until_ms) && !self.has_ended
    }

    /// What it does, or why it does not, in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        if let Some(reason) = &self.stop_reason {
            return format!("stopped: {reason}");
        }
        if let Some(trouble) = &self.trouble {
            return trouble.clone();
        }
        if let Some((next, oldest)) = self.behind {
            return format!(
                "it needs record {} and the engine begins at {}: bring a copy of another member",
                next.0, oldest.0
            );
        }
        match (self.role, self.leader) {
            _ if self.has_ended => "ended".to_owned(),
            (Role::Leader(epoch), _) => format!("leads since epoch {}", epoch.0),
            (Role::Removed, _) => "is not a member of the group".to_owned(),
            (_, Some(leadership)) => format!("follows member {}", leadership.leader.0),
            (_, None) => "waits for the engine".to_owned(),
        }
    }
}

pub(super) fn status_of<R: Rules>(
    group: &Group<R>,
) -> (watch::Sender<MemberStatus>, watch::Receiver<MemberStatus>) {
    watch::channel(MemberStatus {
        role: group.role(),
        leader: group.leader(),
        incarnation: group.incarnation(),
        position: group.position(),
        applied: group.applied(),
        lease_until_ms: group.lease_until_ms(),
        behind: None,
        differing: None,
        stop_reason: None,
        trouble: None,
        has_ended: false,
    })
}

/// A member that runs. Dropping it stops it.
pub struct Member {
    inbox: Arc<Inbox>,
    status: watch::Receiver<MemberStatus>,
    threads: Vec<JoinHandle<()>>,
}

impl Member {
    pub(super) fn new(
        inbox: Arc<Inbox>,
        status: watch::Receiver<MemberStatus>,
        threads: [JoinHandle<()>; 2],
    ) -> Self {
        Self { inbox, status, threads: threads.into() }
    }

    /// What it is now.
    #[must_use]
    pub fn status(&self) -> MemberStatus {
        let mut status = self.status.borrow().clone();
        status.trouble = self.inbox.trouble();
        status
    }

    /// Follows its status. What is written about its own log's trouble is in [`Member::status`] alone.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<MemberStatus> {
        self.status.clone()
    }

    /// Waits until a reader may take its snapshot; [`PendingReader::confirmed`] then says whether it may be shown.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn begin_read(&self, freshness: Freshness) -> Result<PendingReader, Refusal> {
        let (begun, verdict) = oneshot::channel();
        self.inbox.order(Order::Read { freshness, begun })?;
        let read = verdict.await.unwrap_or(Err(Refusal::NotConfirmed))?;
        Ok(PendingReader::new(read, Arc::clone(&self.inbox)))
    }

    /// Gives up the lead for another member, which need not wait. Of a member that does not lead it changes nothing.
    ///
    /// # Errors
    /// [`Refusal::Busy`].
    pub fn hand_over(&self, to: MemberId) -> Result<(), Refusal> {
        self.inbox.order(Order::HandOver(to))
    }

    /// Writes that nothing comes after this in this engine, if it leads.
    ///
    /// # Errors
    /// [`Refusal::Busy`].
    pub fn seal(&self) -> Result<(), Refusal> {
        self.inbox.order(Order::Seal)
    }

    /// Whether it may claim to lead: not while its clock is far from the others'.
    ///
    /// # Errors
    /// [`Refusal::Busy`].
    pub fn allow_claims(&self, allowed: bool) -> Result<(), Refusal> {
        self.inbox.order(Order::AllowClaims(allowed))
    }

    /// Records that the engine no longer had were taken from another member, and applied.
    ///
    /// # Errors
    /// [`Refusal::Busy`].
    pub fn restored(&self, applied: Chain) -> Result<(), Refusal> {
        self.inbox.order(Order::Restored(applied))
    }

    /// Ends its threads. What waits for the engine hears that nobody knows its outcome.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.inbox.end();
        for thread in self.threads.drain(..) {
            // A panic has been printed.
            drop(thread.join());
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Member").field("status", &self.status()).finish_non_exhaustive()
    }
}
