//! The store's statistics, under names in Domino's manner.

use std::sync::{Arc, Weak};

use rocksdb::{properties, statistics::Ticker};
use scrinium_statistics::Registry;

use crate::keeper::Core;
use crate::tree::Tree;

const MEGABYTE: f64 = 1_048_576.0;

/// Registers everything that can be asked of an open store. Once it is closed, all of it reads 0.
pub(crate) fn register(core: &Arc<Core>, statistics: &Registry) {
    let tree = Arc::downgrade(&core.tree);
    let gauge = |name: &str, read: fn(&Tree) -> f64| {
        let tree: Weak<Tree> = Weak::clone(&tree);
        statistics.gauge(name, move || tree.upgrade().map_or(0.0, |tree| read(&tree)));
    };
    gauge("Database.BufferPool.Maximum.Megabytes", |tree| float(tree.budget.bytes()) / MEGABYTE);
    gauge("Database.BufferPool.Used", |tree| float(tree.budget.used_bytes()));
    gauge("Database.BufferPool.Peak", |tree| float(tree.budget.peak_bytes()));
    gauge("Database.BufferPool.Memtables", |tree| float(tree.budget.memtable_bytes()));
    gauge("Database.BufferPool.Pinned", |tree| float(tree.budget.cache().get_pinned_usage() as u64));
    gauge("Database.BufferPool.Hits", |tree| ticker(tree, Ticker::BlockCacheHit));
    gauge("Database.BufferPool.Misses", |tree| ticker(tree, Ticker::BlockCacheMiss));
    gauge("Database.BufferPool.PerCentReadsInBuffer", |tree| {
        let (hits, misses) = (ticker(tree, Ticker::BlockCacheHit), ticker(tree, Ticker::BlockCacheMiss));
        if hits + misses > 0.0 { 100.0 * hits / (hits + misses) } else { 0.0 }
    });
    gauge("Database.WriteStalls.Microseconds", |tree| ticker(tree, Ticker::StallMicros));
    gauge("Database.WriteStalls.Stopped", |tree| property(tree, properties::IS_WRITE_STOPPED));
    gauge("Database.Flush.Bytes", |tree| ticker(tree, Ticker::FlushWriteBytes));
    gauge("Database.Compact.BytesRead", |tree| ticker(tree, Ticker::CompactReadBytes));
    gauge("Database.Compact.BytesWritten", |tree| ticker(tree, Ticker::CompactWriteBytes));
    gauge("Database.Compact.BytesPending", |tree| {
        property(tree, properties::ESTIMATE_PENDING_COMPACTION_BYTES)
    });
    gauge("Database.BackgroundErrors", |tree| property(tree, properties::BACKGROUND_ERRORS));
    gauge("Database.Snapshots", |tree| property(tree, properties::NUM_SNAPSHOTS));

    register_log(core, statistics);
}

/// The log: `Log.Redo.Bytes` and `Log.Redo.Seconds` are what a restart would have to do again now and about how
/// long that would take, `Log.Redo.Limit` how many bytes it may become; `Log.Restart.*` is what the last start did.
fn register_log(core: &Arc<Core>, statistics: &Registry) {
    let core = Arc::downgrade(core);
    let gauge = |name: &str, read: fn(&Core) -> f64| {
        let core: Weak<Core> = Weak::clone(&core);
        statistics.gauge(name, move || core.upgrade().map_or(0.0, |core| read(&core)));
    };
    gauge("Log.BytesSinceCheckpoint", |core| float(core.progress.unflushed_bytes()));
    gauge("Database.RM.Sys.Log.Type", |core| f64::from(core.style.code()));
    gauge("Log.Redo.Bytes", |core| float(core.progress.unflushed_bytes()));
    gauge("Log.Redo.Seconds", |core| {
        float(core.progress.unflushed_bytes()) / float(core.redo.speed()).max(1.0)
    });
    gauge("Log.Redo.Limit", |core| float(core.redo.limit_bytes()));
    gauge("Log.Redo.BytesPerSecond", |core| float(core.redo.speed()));
    gauge("Log.Restart.Bytes", |core| float(core.redo.restart.bytes));
    gauge("Log.Restart.Records", |core| float(core.redo.restart.records));
    gauge("Log.Restart.Seconds", |core| core.redo.restart.elapsed.as_secs_f64());
}

fn ticker(tree: &Tree, ticker: Ticker) -> f64 {
    float(tree.statistics().get_ticker_count(ticker))
}

fn property(tree: &Tree, name: &rocksdb::properties::PropName) -> f64 {
    tree.db().property_int_value(name).ok().flatten().map_or(0.0, float)
}

#[allow(clippy::cast_precision_loss, reason = "a statistic needs no more than 53 bits")]
fn float(value: u64) -> f64 {
    value as f64
}
