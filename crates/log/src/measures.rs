//! What the log counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use scrinium_statistics::{Counter, Operation, Registry, Timer};

use crate::{Log, frame};

/// `Log.Bytes` (frames, without the padding of blocks), `Log.Records`, `Log.Syncs`, `Log.Extents` (that hold
/// records), `Log.GroupSize.Average` and `Log.GroupSize.Max` (records), and the operation `LOG_SYNC`
/// (write and sync of one group); `Log.Size` (bytes on disk), `Log.Waits` (groups that had to wait until a log of
/// the largest size was emptied), `Log.Unlogged.Records`, `Log.Unlogged.Groups` (each durable by itself) and the
/// operation `UNLOGGED_FLUSH` (applying such a group and making it durable).
pub(crate) struct Measures {
    bytes: Counter,
    records: Counter,
    syncs: Counter,
    largest_group: Arc<AtomicU64>,
    sync: Operation,
    waits: Counter,
    unlogged_records: Counter,
    unlogged_groups: Counter,
    unlogged: Operation,
}

impl Measures {
    #[allow(clippy::cast_precision_loss, reason = "gauges are for people")]
    pub(crate) fn register(statistics: &Registry, log: &Log) -> Self {
        let (extents, files, extent_bytes) = (log.extents(), log.files(), log.options().extent_bytes);
        let measures = Self {
            bytes: statistics.counter("Log.Bytes"),
            records: statistics.counter("Log.Records"),
            syncs: statistics.counter("Log.Syncs"),
            largest_group: Arc::default(),
            sync: statistics.operation("LOG_SYNC"),
            waits: statistics.counter("Log.Waits"),
            unlogged_records: statistics.counter("Log.Unlogged.Records"),
            unlogged_groups: statistics.counter("Log.Unlogged.Groups"),
            unlogged: statistics.operation("UNLOGGED_FLUSH"),
        };
        statistics.gauge("Log.Size", move || (files.load(Ordering::Relaxed) * extent_bytes) as f64);
        statistics.gauge("Log.Extents", move || extents.load(Ordering::Relaxed) as f64);
        let largest = measures.largest_group.clone();
        statistics.gauge("Log.GroupSize.Max", move || largest.load(Ordering::Relaxed) as f64);
        let (records, syncs) = (measures.records.clone(), measures.syncs.clone());
        statistics
            .gauge("Log.GroupSize.Average", move || records.value() as f64 / syncs.value().max(1) as f64);
        measures
    }

    pub(crate) fn start_sync(&self) -> Timer {
        self.sync.start()
    }

    pub(crate) fn start_unlogged(&self) -> Timer {
        self.unlogged.start()
    }

    pub(crate) fn unlogged(&self, records: usize) {
        self.unlogged_records.add(records as u64);
        self.unlogged_groups.add(1);
    }

    pub(crate) fn waited(&self) {
        self.waits.add(1);
    }

    pub(crate) fn group(&self, records: &[Bytes]) {
        self.bytes.add(frame::frame_bytes(frame::payload_bytes(records) as u64));
        self.records.add(records.len() as u64);
        self.syncs.add(1);
        self.largest_group.fetch_max(records.len() as u64, Ordering::Relaxed);
    }
}
