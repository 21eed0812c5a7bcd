//! The server's count of log syncs, read beside the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::driver::Driver;

/// Reads the count each second in a task of its own, so that a slow answer delays nothing else.
pub(super) struct SyncMeter {
    latest: Option<Arc<AtomicU64>>,
    before: u64,
    task: Option<JoinHandle<()>>,
}

impl SyncMeter {
    pub(super) async fn start<D: Driver>(driver: Arc<D>) -> Self {
        let Some(first) = driver.log_syncs().await else {
            return Self { latest: None, before: 0, task: None };
        };
        let latest = Arc::new(AtomicU64::new(first));
        let shared = Arc::clone(&latest);
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if let Some(syncs) = driver.log_syncs().await {
                    shared.store(syncs, Ordering::Relaxed);
                }
            }
        });
        Self { latest: Some(latest), before: first, task: Some(task) }
    }

    /// Syncs since the last call, if the server counts them.
    pub(super) fn since_last(&mut self) -> Option<u64> {
        let now = self.latest.as_ref()?.load(Ordering::Relaxed);
        let syncs = now.saturating_sub(self.before);
        self.before = now;
        Some(syncs)
    }
}

impl Drop for SyncMeter {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
