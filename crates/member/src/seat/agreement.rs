//! What the member is to its committer.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use bytes::Bytes;
use scrinium_cluster::{LARGEST_RECORDS_BYTES, SubmissionOutcome};
use scrinium_log::{Agree, Apply, NotAgreed, Sequence};

use super::inbox::{Inbox, Submission};

/// How much longer than the member itself is waited for an outcome.
const PATIENCE: Duration = Duration::from_secs(30);

/// Has the committer's groups agreed on by the member's thread.
pub struct Agreement {
    inbox: Arc<Inbox>,
    within: Duration,
}

/// Why a group was not agreed on, beyond what the group itself says.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error(
        "this member of the cluster has stopped, and takes no changes; see `show cluster` and the server's log"
    )]
    Before,
    #[error(
        "this member of the cluster has stopped while it waited for the engine; the change may be stored or not"
    )]
    Meanwhile,
    #[error(
        "the engine did not answer in time; the change may be stored or not, and this is known once it answers again"
    )]
    Unknown,
}

impl Agreement {
    pub(super) fn new(inbox: Arc<Inbox>, unknown_after_ms: u64) -> Self {
        Self { inbox, within: Duration::from_millis(unknown_after_ms).saturating_add(PATIENCE) }
    }
}

impl Agree for Agreement {
    fn agree(&mut self, first: Sequence, records: &[Bytes]) -> Result<(), NotAgreed> {
        if self.inbox.has_ended() {
            return Err(NotAgreed::Refused(Arc::new(Ended::Before)));
        }
        // Whatever comes before is in log and store, or this would not be asked for.
        self.inbox.note_applied(Sequence(first.0.saturating_sub(1)));
        let (answer, outcome) = sync_channel(1);
        self.inbox.submit(Submission { first, records: records.to_vec(), answer });
        // The member may have ended before it could see this.
        if self.inbox.has_ended() && self.inbox.take_submission().is_some() {
            return Err(NotAgreed::Refused(Arc::new(Ended::Before)));
        }
        match outcome.recv_timeout(self.within) {
            Ok(SubmissionOutcome::Agreed { .. }) => Ok(()),
            Ok(SubmissionOutcome::Refused(refusal)) => Err(NotAgreed::Refused(Arc::new(refusal))),
            Err(RecvTimeoutError::Disconnected) => Err(NotAgreed::Unknown(Arc::new(Ended::Meanwhile))),
            // The member says so by itself; where its place was never taken, nobody does.
            Ok(SubmissionOutcome::Unknown) | Err(RecvTimeoutError::Timeout) => {
                Err(NotAgreed::Unknown(Arc::new(Ended::Unknown)))
            }
        }
    }

    fn group_bytes(&self) -> usize {
        LARGEST_RECORDS_BYTES
    }
}

/// Applies records as another does, and tells the member.
pub struct Announcing<A> {
    apply: A,
    inbox: Arc<Inbox>,
}

impl<A> Announcing<A> {
    pub(super) fn new(apply: A, inbox: Arc<Inbox>) -> Self {
        Self { apply, inbox }
    }
}

impl<A: Apply> Apply for Announcing<A> {
    type Error = A::Error;

    fn apply(&mut self, first: Sequence, records: &[Bytes]) -> Result<(), A::Error> {
        self.apply.apply(first, records)?;
        let count = u64::try_from(records.len()).unwrap_or(u64::MAX);
        self.inbox.note_applied(Sequence(first.0.saturating_add(count).saturating_sub(1)));
        Ok(())
    }

    fn make_durable(&mut self) -> Result<Sequence, A::Error> {
        self.apply.make_durable()
    }

    fn apply_unlogged(&mut self, records: &mut dyn Iterator<Item = &Bytes>) -> Result<(), A::Error> {
        self.apply.apply_unlogged(records)
    }
}

impl std::fmt::Debug for Agreement {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Agreement").field("within", &self.within).finish_non_exhaustive()
    }
}

impl<A> std::fmt::Debug for Announcing<A> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Announcing").finish_non_exhaustive()
    }
}
