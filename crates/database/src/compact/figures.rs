//! The statistics of compactions, under names in Domino's manner.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use scrinium_statistics::Registry;

use super::{Compactions, Counts};
use crate::databases::{Common, Databases};

impl Databases {
    pub(crate) fn compactions(&self) -> &Compactions {
        &self.common().wide.compactions
    }

    /// Registers the statistics of compactions (`Database.Compact.*`), of objects (`Attachment.Store.*`) and of views
    /// (`View.*`).
    pub fn register_statistics(&self, statistics: &Registry) {
        self.objects().register_statistics(statistics);
        self.object_figure(statistics, "Attachment.Store.Objects", |(objects, _)| objects);
        self.object_figure(statistics, "Attachment.Store.Bytes", |(_, bytes)| bytes);
        let count = |name: &str, read: fn(&Counts) -> &AtomicU64| {
            self.figure(statistics, name, move |common| {
                float(read(&common.wide.compactions.counts).load(Ordering::Relaxed))
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
        self.figure(statistics, "Database.Compact.Garbage.PerCent", |common| {
            let counts = &common.wide.compactions.counts;
            let bytes = |count: &AtomicU64| float(count.load(Ordering::Relaxed));
            let (garbage, all) = (bytes(&counts.garbage_bytes), bytes(&counts.file_bytes));
            if all > 0.0 { 100.0 * garbage / all } else { 0.0 }
        });
        self.figure(statistics, "Database.Compact.UnderWay", |common| {
            float(common.wide.compactions.under_way.lock().len() as u64)
        });
        self.figure(statistics, "Database.Compact.Contents.Bytes", |common| {
            float(common.store.admin().blob_figures().file_bytes)
        });
        self.figure(statistics, "Database.Compact.Contents.GarbageBytes", |common| {
            float(common.store.admin().blob_figures().garbage_bytes)
        });
        self.register_view_statistics(statistics);
        self.register_passed_over(statistics);
        self.io_limits().register(statistics);
    }

    /// A gauge of the objects of all volumes.
    fn object_figure(&self, statistics: &Registry, name: &str, read: fn((u64, u64)) -> u64) {
        let databases = self.downgrade();
        statistics.gauge(name, move || {
            let commons = databases().map(|databases| databases.commons()).unwrap_or_default();
            float(commons.iter().map(|common| read(common.contents.object_totals())).sum())
        });
    }

    /// A gauge that reads 0 once the databases are closed.
    pub(crate) fn figure(
        &self,
        statistics: &Registry,
        name: &str,
        read: impl Fn(&Common) -> f64 + Send + Sync + 'static,
    ) {
        let common = Arc::downgrade(self.common());
        statistics.gauge(name, move || common.upgrade().map_or(0.0, |common| read(&common)));
    }
}

#[allow(clippy::cast_precision_loss, reason = "a statistic needs no more than 53 bits")]
pub(crate) fn float(value: u64) -> f64 {
    value as f64
}
