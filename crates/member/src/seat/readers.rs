//! Readers who wait for the member's word.

use std::collections::BTreeMap;
use std::sync::Arc;

use scrinium_cluster::{ReadId, Refusal};
use tokio::sync::oneshot;

use super::inbox::{Inbox, Order, Verdict};

/// A reader who is to take a snapshot now, and then to ask whether it may be answered from.
#[must_use]
pub struct PendingReader {
    read: ReadId,
    inbox: Arc<Inbox>,
}

impl PendingReader {
    pub(super) const fn new(read: ReadId, inbox: Arc<Inbox>) -> Self {
        Self { read, inbox }
    }

    /// Waits until the snapshot, which was taken meanwhile, is known to be as new as was asked for.
    ///
    /// # Errors
    /// [`Refusal`]: nothing of the snapshot may be shown.
    pub async fn confirmed(self) -> Result<(), Refusal> {
        let (confirmed, verdict) = oneshot::channel();
        self.inbox.order(Order::SnapshotTaken { read: self.read, confirmed })?;
        verdict.await.unwrap_or(Err(Refusal::NotConfirmed))
    }
}

impl std::fmt::Debug for PendingReader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PendingReader({})", self.read.0)
    }
}

/// Who waits for what.
#[derive(Default)]
pub(super) struct Readers {
    begun: u64,
    before_snapshot: BTreeMap<ReadId, Verdict<ReadId>>,
    after_snapshot: BTreeMap<ReadId, Verdict<()>>,
    /// Those who take their snapshots. The group ends their time.
    between: std::collections::BTreeSet<ReadId>,
}

impl Readers {
    pub(super) fn begin(&mut self, begun: Verdict<ReadId>) -> ReadId {
        self.begun += 1;
        let read = ReadId(self.begun);
        self.before_snapshot.insert(read, begun);
        read
    }

    pub(super) fn take_snapshot(&mut self, read: ReadId) {
        if let Some(begun) = self.before_snapshot.remove(&read) {
            self.between.insert(read);
            // One who does not wait any more is refused when its time is over.
            drop(begun.send(Ok(read)));
        }
    }

    /// Whether the group still knows the reader.
    pub(super) fn snapshot_taken(&mut self, read: ReadId, confirmed: Verdict<()>) -> bool {
        if self.between.remove(&read) {
            self.after_snapshot.insert(read, confirmed);
            return true;
        }
        drop(confirmed.send(Err(Refusal::NotConfirmed)));
        false
    }

    pub(super) fn answer(&mut self, read: ReadId) {
        if let Some(confirmed) = self.after_snapshot.remove(&read) {
            drop(confirmed.send(Ok(())));
        }
    }

    pub(super) fn refuse(&mut self, read: ReadId, refusal: Refusal) {
        self.between.remove(&read);
        if let Some(begun) = self.before_snapshot.remove(&read) {
            drop(begun.send(Err(refusal)));
        } else if let Some(confirmed) = self.after_snapshot.remove(&read) {
            drop(confirmed.send(Err(refusal)));
        }
    }
}
