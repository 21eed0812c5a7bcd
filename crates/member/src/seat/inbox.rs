//! What the member's thread hears from others. Nobody who puts something in waits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;

use bytes::Bytes;
use parking_lot::Mutex;
use scrinium_cluster::{Freshness, MemberId, ReadId, Refusal, SubmissionOutcome};
use scrinium_log::{Chain, Sequence};
use tokio::sync::{Notify, mpsc, oneshot};

pub(super) type Verdict<T> = oneshot::Sender<Result<T, Refusal>>;

/// What is asked of a member that runs.
pub(super) enum Order {
    /// A reader begins; it learns when to take its snapshot.
    Read { freshness: Freshness, begun: Verdict<ReadId> },
    /// Its snapshot is taken; it learns whether it may answer.
    SnapshotTaken { read: ReadId, confirmed: Verdict<()> },
    /// Another member is to lead.
    HandOver(MemberId),
    /// Nothing comes after this in this engine.
    Seal,
    /// Whether it may claim.
    AllowClaims(bool),
    /// Records were taken from another member, and applied.
    Restored(Chain),
}

/// A group of the committer's, one at a time.
pub(super) struct Submission {
    pub(super) first: Sequence,
    pub(super) records: Vec<Bytes>,
    pub(super) answer: SyncSender<SubmissionOutcome>,
}

/// What is shared between the member's thread and all others.
pub(super) struct Inbox {
    submission: Mutex<Option<Submission>>,
    applied: AtomicU64,
    orders: mpsc::Sender<Order>,
    /// Rung for what is not an order.
    pub(super) bell: Notify,
    has_ended: AtomicBool,
    /// Why the member's own log takes nothing, for now or for good.
    trouble: Mutex<Option<String>>,
}

impl Inbox {
    pub(super) fn new(orders: mpsc::Sender<Order>, applied: Sequence) -> Self {
        Self {
            submission: Mutex::default(),
            applied: AtomicU64::new(applied.0),
            orders,
            bell: Notify::new(),
            has_ended: AtomicBool::new(false),
            trouble: Mutex::default(),
        }
    }

    pub(super) fn submit(&self, submission: Submission) {
        *self.submission.lock() = Some(submission);
        self.bell.notify_one();
    }

    pub(super) fn take_submission(&self) -> Option<Submission> {
        self.submission.lock().take()
    }

    /// All records up to this one are in the member's log and store.
    pub(super) fn note_applied(&self, through: Sequence) {
        if self.applied.fetch_max(through.0, Ordering::AcqRel) < through.0 {
            self.bell.notify_one();
        }
    }

    pub(super) fn applied(&self) -> Sequence {
        Sequence(self.applied.load(Ordering::Acquire))
    }

    /// Refused where too many wait, or the member has ended.
    pub(super) fn order(&self, order: Order) -> Result<(), Refusal> {
        self.orders.try_send(order).map_err(|_| Refusal::Busy)
    }

    /// The member's thread is to end, or has ended.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.bell.notify_one();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    pub(super) fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock() = trouble;
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }
}
