//! The store's statistics, under names in Domino's manner.

use std::sync::{Arc, Weak};

use rocksdb::{properties, statistics::Ticker};
use scrinium_statistics::Registry;

use crate::family::Family;
use crate::keeper::Core;
use crate::pool;
use crate::tree::Tree;

/// RocksDB's names for the sizes of a family's files.
const FILES: [&str; 2] = ["rocksdb.live-sst-files-size", "rocksdb.live-blob-file-size"];

/// Statistics of a tree, whose names begin with the same words.
pub(crate) struct Gauges<'a> {
    statistics: &'a Registry,
    tree: &'a Weak<Tree>,
    prefix: &'a str,
}

impl Gauges<'_> {
    pub(crate) fn add(&self, name: &str, read: impl Fn(&Tree) -> f64 + Send + Sync + 'static) {
        let tree = Weak::clone(self.tree);
        let read = move || tree.upgrade().map_or(0.0, |tree| read(&tree));
        self.statistics.gauge(&format!("{}{name}", self.prefix), read);
    }
}

/// Registers everything that can be asked of an open store. Once it is closed, all of it reads 0.
pub(crate) fn register(core: &Arc<Core>, statistics: &Registry) {
    let tree = Arc::downgrade(&core.tree);
    pool::register(&Gauges { statistics, tree: &tree, prefix: "Database.BufferPool." });
    let all = Gauges { statistics, tree: &tree, prefix: "Database." };
    let gauge = |name: &str, read: fn(&Tree) -> f64| all.add(name, read);
    gauge("Files.Bytes", |tree| {
        let of = |family: Family, name| tree.db().property_int_value_cf(tree.family(family), name);
        let sizes = Family::ALL.into_iter().flat_map(|family| FILES.map(|name| of(family, name)));
        sizes.filter_map(|size| size.ok().flatten()).map(float).sum()
    });
    gauge("WriteStalls.Microseconds", |tree| ticker(tree, Ticker::StallMicros));
    gauge("WriteStalls.Stopped", |tree| property(tree, properties::IS_WRITE_STOPPED));
    gauge("Flush.Bytes", |tree| ticker(tree, Ticker::FlushWriteBytes));
    gauge("Compact.BytesRead", |tree| ticker(tree, Ticker::CompactReadBytes));
    gauge("Compact.BytesWritten", |tree| ticker(tree, Ticker::CompactWriteBytes));
    gauge("Compact.BytesPending", |tree| property(tree, properties::ESTIMATE_PENDING_COMPACTION_BYTES));
    let cache = Gauges { statistics, tree: &tree, prefix: "FileCache." };
    cache.add("Direct", |tree| f64::from(u8::from(tree.direct.reads)));
    gauge("BackgroundErrors", |tree| property(tree, properties::BACKGROUND_ERRORS));
    gauge("Snapshots", |tree| property(tree, properties::NUM_SNAPSHOTS));

    core.archiving.register(statistics);
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

pub(crate) fn ticker(tree: &Tree, ticker: Ticker) -> f64 {
    float(tree.statistics().get_ticker_count(ticker))
}

fn property(tree: &Tree, name: &rocksdb::properties::PropName) -> f64 {
    tree.db().property_int_value(name).ok().flatten().map_or(0.0, float)
}

#[allow(clippy::cast_precision_loss, reason = "a statistic needs no more than 53 bits")]
pub(crate) fn float(value: u64) -> f64 {
    value as f64
}
