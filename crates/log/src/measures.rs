//! What the log counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use scrinium_statistics::{Counter, Operation, Registry, Timer};

use crate::frame;

/// `Log.Bytes` (frames, without the padding of blocks), `Log.Records`, `Log.Syncs`, `Log.Extents` (that hold
/// records), `Log.GroupSize.Average` and `Log.GroupSize.Max` (records), and the operation `LOG_SYNC`
/// (write and sync of one group).
pub(crate) struct Measures {
    bytes: Counter,
    records: Counter,
    syncs: Counter,
    largest_group: Arc<AtomicU64>,
    sync: Operation,
}

impl Measures {
    #[allow(clippy::cast_precision_loss, reason = "gauges are for people")]
    pub(crate) fn register(statistics: &Registry, extents: Arc<AtomicU64>) -> Self {
        let measures = Self {
            bytes: statistics.counter("Log.Bytes"),
            records: statistics.counter("Log.Records"),
            syncs: statistics.counter("Log.Syncs"),
            largest_group: Arc::default(),
            sync: statistics.operation("LOG_SYNC"),
        };
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

    pub(crate) fn group(&self, records: &[Bytes]) {
        self.bytes.add(frame::frame_bytes(frame::payload_bytes(records) as u64));
        self.records.add(records.len() as u64);
        self.syncs.add(1);
        self.largest_group.fetch_max(records.len() as u64, Ordering::Relaxed);
    }
}
