//! The statistics of compactions, under names in Domino's manner.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use scrinium_database::figures::float;
use scrinium_statistics::Registry;
use scrinium_store::BlobFigures;

use super::{Compactions, Compactor, Counts};

impl Compactor {
    /// Registers the statistics of compactions (`Database.Compact.*`).
    pub fn register_statistics(&self, statistics: &Registry) {
        let count = |name: &str, read: fn(&Counts) -> &AtomicU64| {
            self.figure(statistics, name, move |compactions| {
                float(read(&compactions.counts).load(Ordering::Relaxed))
            });
        };
        count("Database.Compact.Completed", |counts| &counts.completed);
        count("Database.Compact.Stopped", |counts| &counts.stopped);
        count("Database.Compact.Failed", |counts| &counts.failed);
        count("Database.Compact.Slices", |counts| &counts.slices);
        count("Database.Compact.BytesReclaimed", |counts| &counts.reclaimed_bytes);
        count("Database.Compact.LastMilliseconds", |counts| &counts.last_ms);
        count("Database.Compact.Purged.Documents", |counts| &counts.purged_documents);
        count("Database.Compact.Purged.Memberships", |counts| &counts.purged_memberships);
        count("Database.Compact.Garbage.Bytes", |counts| &counts.garbage_bytes);
        self.figure(statistics, "Database.Compact.Garbage.PerCent", |compactions| {
            let counts = &compactions.counts;
            let bytes = |count: &AtomicU64| float(count.load(Ordering::Relaxed));
            let (garbage, all) = (bytes(&counts.garbage_bytes), bytes(&counts.file_bytes));
            if all > 0.0 { 100.0 * garbage / all } else { 0.0 }
        });
        self.figure(statistics, "Database.Compact.UnderWay", |compactions| {
            float(compactions.under_way.lock().len() as u64)
        });
        self.contents_figure(statistics, "Database.Compact.Contents.Bytes", |contents| contents.file_bytes);
        self.contents_figure(statistics, "Database.Compact.Contents.GarbageBytes", |contents| {
            contents.garbage_bytes
        });
    }

    /// A gauge that reads 0 once the databases are closed.
    fn figure(
        &self,
        statistics: &Registry,
        name: &str,
        read: impl Fn(&Compactions) -> f64 + Send + Sync + 'static,
    ) {
        let compactions = Arc::downgrade(&self.compactions);
        statistics.gauge(name, move || compactions.upgrade().map_or(0.0, |compactions| read(&compactions)));
    }

    /// A gauge of the files of contents of the first store.
    fn contents_figure(&self, statistics: &Registry, name: &str, read: fn(&BlobFigures) -> u64) {
        let databases = self.databases.downgrade();
        statistics.gauge(name, move || {
            databases().map_or(0.0, |databases| float(read(&databases.first().store.admin().blob_figures())))
        });
    }
}
