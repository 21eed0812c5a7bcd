//! The statistics of the memory budget: `Database.BufferPool.*`.

use rocksdb::statistics::Ticker;

use crate::Purpose;
use crate::figures::{Gauges, float, ticker};
use crate::tree::Tree;

const MEGABYTE: f64 = 1_048_576.0;

/// RocksDB looks through the cache for this, at most every ten seconds, and for less than a tenth of the time.
const ENTRIES: &str = "rocksdb.block-cache-entry-stats";

pub(crate) fn register(gauges: &Gauges<'_>) {
    gauges.add("Maximum.Megabytes", |tree| float(tree.budget.bytes()) / MEGABYTE);
    gauges.add("Used", |tree| float(tree.budget.used_bytes()));
    gauges.add("Peak", |tree| float(tree.budget.peak_bytes()));
    gauges.add("Memtables", |tree| float(tree.budget.memtable_bytes()));
    gauges.add("Pinned", |tree| float(tree.budget.cache().get_pinned_usage() as u64));
    gauges.add("Hits", |tree| ticker(tree, Ticker::BlockCacheHit));
    gauges.add("Misses", |tree| ticker(tree, Ticker::BlockCacheMiss));
    gauges.add("Reads", |tree| ticker(tree, Ticker::BlockCacheMiss));
    gauges.add("Writes", |tree| ticker(tree, Ticker::NumberKeysWritten));
    gauges.add("PerCentReadsInBuffer", |tree| {
        let (hits, misses) = (ticker(tree, Ticker::BlockCacheHit), ticker(tree, Ticker::BlockCacheMiss));
        if hits + misses > 0.0 { 100.0 * hits / (hits + misses) } else { 0.0 }
    });
    gauges.add("ByPurpose.Blocks", |tree| {
        let others = tree.budget.memtable_bytes() + file_indexes(tree);
        float(tree.budget.cache_bytes().saturating_sub(others))
    });
    gauges.add("ByPurpose.FileIndexes", |tree| float(file_indexes(tree)));
    gauges.add("ByPurpose.Memtables", |tree| float(tree.budget.memtable_bytes()));
    for purpose in Purpose::ALL {
        let name = format!("ByPurpose.{}", purpose.name());
        gauges.add(&name, move |tree| float(tree.budget.reserved_for(purpose)));
    }
}

/// What finds blocks in files: their indexes and filters.
fn file_indexes(tree: &Tree) -> u64 {
    charged(tree, &["IndexBlock", "FilterBlock", "FilterMetaBlock", "OtherBlock"])
}

fn charged(tree: &Tree, roles: &[&str]) -> u64 {
    let text = tree.db().property_value(ENTRIES).ok().flatten().unwrap_or_default();
    roles.iter().map(|role| charge_of(&text, role)).sum()
}

/// The bytes of a role in RocksDB's account of its cache, such as `4.12 KB` in ` IndexBlock(17,4.12 KB,0.0015%)`.
fn charge_of(text: &str, role: &str) -> u64 {
    let found =
        text.split(' ').position(|word| word.strip_prefix(role).is_some_and(|rest| rest.starts_with('(')));
    let mut words = text.split(' ').skip(found.unwrap_or(usize::MAX));
    let number = words.next().and_then(|word| word.split(',').nth(1)).and_then(|text| text.parse().ok());
    let unit = words.next().and_then(|word| word.split(',').next());
    let factor: f64 = match unit {
        Some("KB") => 1024.0,
        Some("MB") => MEGABYTE,
        Some("GB") => MEGABYTE * 1024.0,
        Some("TB") => MEGABYTE * MEGABYTE,
        _ => 1.0,
    };
    whole(number.unwrap_or(0.0) * factor)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes are no less than 0, and rounded"
)]
fn whole(bytes: f64) -> u64 {
    bytes as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_of_the_cache_is_understood() {
        let text = "Block cache LRUCache@0x1#2 capacity: 64.00 MB seed: 1 usage: 3.20 KB table_size: 256\n\
                    Block cache entry stats(count,size,portion): DataBlock(3,1.50 MB,2.3%) FilterBlock(1,0.50 KB,0.1%) \
                    IndexBlock(17,4.12 KB,0.0015%) Misc(1,0.00 KB,0%)\n";
        let bytes = ["DataBlock", "FilterBlock", "IndexBlock", "FilterMetaBlock", "Misc"];
        assert_eq!(bytes.map(|role| charge_of(text, role)), [1_572_864, 512, 4218, 0, 0]);
        assert_eq!(charge_of("", "DataBlock"), 0);
    }
}
