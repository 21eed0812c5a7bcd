//! How RocksDB is set up: once for the tree as a whole, and for each family by how it is used.

use std::thread;

use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, DBCompressionType, Env, LogLevel, Options, statistics::StatsLevel,
};

use crate::Family;
use crate::budget::Budget;
use crate::scheduling;
use crate::tree::Direct;

const KILOBYTE: usize = 1 << 10;
const MEGABYTE: u64 = 1 << 20;

/// A flush takes the memtables of all families together, so that a small one anywhere would cut all of
/// them into small files. The budget bounds their sum.
const MEMTABLE_BYTES: usize = 64 << 20;

/// Memtables grow in such steps. By default it is a megabyte, which nine families that hold hardly anything
/// would take each, and in a small budget they would then be flushed without end.
const MEMTABLE_STEP_BYTES: usize = 64 << 10;

/// A window of this many entries, half of them deletions, marks a file for compaction.
const DELETION_WINDOW: usize = 4096;
const DELETIONS_IN_WINDOW: usize = 2048;
const DELETION_RATIO: f64 = 0.5;

/// A file of the last level whose merge had to keep something for a reader is merged again when that reader is done. Somebody
/// always reads, so that nearly every file would be written twice; half an hour later most have been merged for other reasons.
const LET_FILES_AGE: &str = "bottommost_file_compaction_delay=1800";

/// A compaction takes about so much at once, and a file between two levels is cut where it would touch more beneath it:
/// what a compaction needs of the disk until its old files go is bounded by it, and so is how long it takes.
pub(crate) const COMPACTION_BYTES: u64 = 192 << 20;

/// Smaller values cost less within the sorted files than as a file offset and a second read.
const MIN_BLOB_BYTES: u64 = 4096;

/// The options of the tree as a whole.
pub(crate) fn tree_options(budget: &Budget, direct: Direct) -> Result<Options, rocksdb::Error> {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    // Who wants what is in memory to be in files makes a checkpoint before. Otherwise it is in the log, and on a full disk
    // RocksDB would wait for space before it closes, however long.
    let mut options = Options::default().get_options_from_string("avoid_flush_during_shutdown=true")?;
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    // Every family is flushed up to the same batch, which is what the recorded log position means.
    options.set_atomic_flush(true);
    options.set_use_direct_io_for_flush_and_compaction(direct.writes);
    options.set_use_direct_reads(direct.reads);
    options.set_compaction_readahead_size(budget.read_ahead_bytes());
    write_in_pieces(&mut options);
    options.set_max_background_jobs(background_jobs(cores, budget));
    // Compactions let those pass who read and write; where they come too late, writes are slowed until they have.
    if let Ok(environment) = Env::new() {
        begin_compactors(environment.clone(), i32::try_from(cores.saturating_add(1)).unwrap_or(64));
        options.set_env(&environment);
    }
    let open_files = budget.open_files().and_then(|files| i32::try_from(files).ok());
    options.set_max_open_files(open_files.unwrap_or_else(open_file_limit));
    options.set_skip_stats_update_on_db_open(true);
    options.set_advise_random_on_open(true);
    options.set_avoid_unnecessary_blocking_io(true);
    options.set_max_manifest_file_size(16 << 20);
    options.set_manifest_preallocation_size(64 * KILOBYTE);
    options.set_log_level(LogLevel::Warn);
    options.set_max_log_file_size(1 << 20);
    options.set_keep_log_file_num(2);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options.enable_statistics();
    options.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
    options.set_write_buffer_manager(budget.memtables());
    Ok(options)
}

/// Files reach the device bit by bit, as they are written. Anyone who syncs meanwhile waits for a piece or two, where a file
/// that is synced as a whole at its end takes the device for a while.
pub(crate) fn write_in_pieces(options: &mut Options) {
    const PIECE_BYTES: u64 = 256 << 10;
    options.set_bytes_per_sync(PIECE_BYTES);
    options.set_writable_file_max_buffer_size(PIECE_BYTES);
}

/// RocksDB's threads for compactions inherit from the thread that begins them that they come after all others.
/// All stores of the process share them; each uses as many as its options allow.
fn begin_compactors(mut environment: Env, threads: i32) {
    let begin = move || {
        scheduling::come_after(scheduling::LAST);
        environment.lower_thread_pool_cpu_priority();
        environment.set_low_priority_background_threads(threads);
    };
    // Without a thread for it, RocksDB begins its own when the tree is opened.
    let _ = thread::Builder::new().spawn(begin).map(thread::JoinHandle::join);
}

/// Flushes and compactions at once: as many as there are cores, and as the budget has memory for.
fn background_jobs(cores: usize, budget: &Budget) -> i32 {
    const BYTES_OF_ONE: u64 = 32 << 20;
    let by_memory = usize::try_from(budget.bytes() / BYTES_OF_ONE).unwrap_or(usize::MAX).max(2);
    i32::try_from(cores.saturating_add(1).min(by_memory)).unwrap_or(64)
}

/// Half of the files that the process may open, since sockets need the rest.
fn open_file_limit() -> i32 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    i32::try_from((limit / 2).clamp(64, 4096)).unwrap_or(64)
}

/// The options of one family; `None` is the store's own, which holds a handful of keys.
pub(crate) fn family_options(family: Option<Family>, budget: &Budget) -> Options {
    // Without it files are only merged again sooner.
    let mut options = Options::default().get_options_from_string(LET_FILES_AGE).unwrap_or_default();
    options.set_write_buffer_size(MEMTABLE_BYTES);
    options.set_arena_block_size(MEMTABLE_STEP_BYTES);
    options.set_max_write_buffer_number(4);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_max_bytes_for_level_base(256 * MEGABYTE);
    options.set_target_file_size_base(64 * MEGABYTE);
    options.set_max_compaction_bytes(COMPACTION_BYTES);
    options.set_compression_type(DBCompressionType::Lz4);
    let mut table = table_options(budget);
    match family {
        None | Some(Family::Meta) => point_table(&mut table),
        Some(Family::Point) => {
            point_table(&mut table);
            options.set_target_file_size_base(32 * MEGABYTE);
        }
        Some(Family::DerivedPoint) => {
            point_table(&mut table);
            table.set_block_size(16 * KILOBYTE);
            options.set_target_file_size_base(32 * MEGABYTE);
            options.set_bottommost_compression_type(DBCompressionType::Zstd);
        }
        Some(Family::Scan) => scan_table(&mut table, &mut options),
        Some(Family::DerivedScan) => {
            // Only cursors read it, which filters are of no use to.
            table.set_block_size(16 * KILOBYTE);
            options.set_bottommost_compression_type(DBCompressionType::Zstd);
        }
        Some(Family::Churn | Family::DerivedChurn) => {
            table.set_block_size(8 * KILOBYTE);
            options.set_target_file_size_base(8 * MEGABYTE);
            options.set_max_bytes_for_level_base(64 * MEGABYTE);
            clear_deletions(&mut options);
        }
        Some(Family::Blob) => {
            point_table(&mut table);
            blob_files(&mut options);
            // A deleted value counts as garbage only after a compaction of its key.
            clear_deletions(&mut options);
        }
    }
    options.set_block_based_table_factory(&table);
    options
}

fn clear_deletions(options: &mut Options) {
    options.add_compact_on_deletion_collector_factory(DELETION_WINDOW, DELETIONS_IN_WINDOW, DELETION_RATIO);
}

fn table_options(budget: &Budget) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_format_version(6);
    table.set_block_cache(budget.cache());
    // Indexes and filters are counted in the budget like any other block, and those of large files are
    // cut into pieces of which only the used ones stay.
    table.set_cache_index_and_filter_blocks(true);
    table.set_cache_index_and_filter_blocks_with_high_priority(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    table.set_partition_filters(true);
    table.set_metadata_block_size(4 * KILOBYTE);
    table.set_optimize_filters_for_memory(true);
    table
}

fn scan_table(table: &mut BlockBasedOptions, options: &mut Options) {
    table.set_block_size(16 * KILOBYTE);
    table.set_bloom_filter(10.0, false);
    options.set_bottommost_compression_type(DBCompressionType::Zstd);
}

fn point_table(table: &mut BlockBasedOptions) {
    table.set_block_size(4 * KILOBYTE);
    table.set_bloom_filter(10.0, false);
    table.set_whole_key_filtering(true);
}

/// Large values go to files of their own, so that compaction moves references only. They come
/// compressed, and are not kept in the block cache, where one of them would push out hundreds of blocks.
fn blob_files(options: &mut Options) {
    options.set_enable_blob_files(true);
    options.set_min_blob_size(MIN_BLOB_BYTES);
    options.set_blob_file_size(256 * MEGABYTE);
    options.set_blob_compression_type(DBCompressionType::None);
    options.set_enable_blob_gc(true);
    options.set_blob_gc_age_cutoff(0.25);
    options.set_blob_gc_force_threshold(0.5);
}
