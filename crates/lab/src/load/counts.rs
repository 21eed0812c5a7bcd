//! What the server counts of itself, read during the run.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::driver::{Driver, ServerCounts};

/// Reads the counts each second in a task of its own, so that a slow answer delays nothing else.
pub(super) struct CountsMeter {
    latest: Option<Arc<Mutex<ServerCounts>>>,
    before: ServerCounts,
    task: Option<JoinHandle<()>>,
}

impl CountsMeter {
    pub(super) async fn start<D: Driver>(driver: Arc<D>) -> Self {
        let Some(first) = driver.counts().await else {
            return Self { latest: None, before: ServerCounts::default(), task: None };
        };
        let latest = Arc::new(Mutex::new(first));
        let shared = Arc::clone(&latest);
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if let Some(counts) = driver.counts().await {
                    *shared.lock() = counts;
                }
            }
        });
        Self { latest: Some(latest), before: first, task: Some(task) }
    }

    /// What has been counted since the last call, if the server counts.
    pub(super) fn since_last(&mut self) -> Option<ServerCounts> {
        let now = *self.latest.as_ref()?.lock();
        let since = now.since(&self.before);
        self.before = now;
        Some(since)
    }
}

impl Drop for CountsMeter {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
