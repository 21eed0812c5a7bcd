//! The work of one compaction: its steps in their order, and what happens between two slices.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use scrinium_database::{DatabaseError, keys};
use scrinium_statistics::Task;
use scrinium_store::{CompactSlice, Family, IoClass, Store, StoreError};
use scrinium_views::OpenDatabase;

use super::{CompactOrder, CompactStyle, Compacted, Compactor};

/// Bytes of files merged by one step, between two looks at whether to pause or stop.
const SLICE_BYTES: u64 = 64 << 20;

/// With a limit on the rate, a slice is about what it allows in this many seconds.
const SLICE_SECONDS: u64 = 2;
const SMALLEST_SLICE_BYTES: u64 = 8 << 20;

/// Smaller databases lie in files with others, so their files are not rewritten for their own sake.
const COPIED_FROM_BYTES: u64 = 4 << 20;

/// A look at whether to go on, while nothing is done.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Files of contents are rewritten a quarter of them at a time, the oldest first.
const CONTENT_PASSES: usize = 5;
/// Until no more than so much of them is garbage.
const CONTENT_GARBAGE_PERCENT: u64 = 5;

/// Why a compaction ended before it was done.
#[derive(Debug)]
pub(super) enum Halt {
    Stopped,
    Failed(DatabaseError),
}

impl From<DatabaseError> for Halt {
    fn from(error: DatabaseError) -> Self {
        Self::Failed(error)
    }
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

type Worked<T = ()> = std::result::Result<T, Halt>;

/// One compaction.
pub(super) struct Work<'a> {
    compactor: &'a Compactor,
    store: &'a Store,
    task: &'a Task,
    order: &'a CompactOrder,
    written_bytes: Cell<u64>,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        compactor: &'a Compactor,
        store: &'a Store,
        task: &'a Task,
        order: &'a CompactOrder,
    ) -> Self {
        Self { compactor, store, task, order, written_bytes: Cell::new(0) }
    }

    /// Compacts a database and what is derived from it.
    pub(super) fn compact(&mut self, database: &OpenDatabase, compacted: &mut Compacted) -> Worked {
        self.go_on()?;
        self.task.detail("phase", "views");
        compacted.indexes = database.clean_up_views()?;
        if self.order.discard_views {
            compacted.indexes += database.discard_views()?;
        }
        let (store, task, until) = (self.store, self.task, self.order.until);
        database.free_lists(&mut || go_on(task, until))?;
        self.task.detail("phase", "tombstones");
        let purge_after = self.compactor.compactions.options.read().purge_after;
        compacted.purged =
            self.compactor.subject(database).purge_tombstones(purge_after, &mut || go_on(task, until))?;
        self.compactor.subject(database).stem_histories(&mut || go_on(task, until))?;
        self.compactor.subject(database).thin_out_earlier(&mut || go_on(task, until))?;
        self.task.detail("phase", "contents");
        while self.compactor.databases.collect_contents()?.removed > 0 {
            self.go_on()?;
        }
        // Written to files once, and not again and again by each slice.
        store.admin().checkpoint()?;
        let (from, to) = keys::database_range(database.number());
        let ranges = keys::FAMILIES
            .into_iter()
            .chain(keys::DERIVED_FAMILIES)
            .map(|family| (family, from.to_vec(), to.to_vec()));
        let slices = self.slices(ranges)?;
        let contents = match self.order.style {
            CompactStyle::Reclaim => Vec::new(),
            CompactStyle::Shrink | CompactStyle::Copy => self.content_slices()?,
        };
        self.task.set_total(slices.iter().chain(&contents).map(|slice| slice.bytes).sum());
        self.check_room(slices.iter().chain(&contents))?;
        let is_copied = self.order.style == CompactStyle::Copy
            && slices.iter().map(|slice| slice.bytes).sum::<u64>() >= COPIED_FROM_BYTES;
        self.task.detail("phase", "files");
        slices.iter().try_for_each(|slice| self.compact_slice(slice, is_copied))?;
        let written_bytes = self.written_bytes.get();
        self.compact_contents(&contents)?;
        Ok(self.compactor.subject(database).note_compacted(written_bytes)?)
    }

    /// Compacts the indexes of a design document.
    pub(super) fn compact_indexes(&mut self, database: &OpenDatabase, design: &str) -> Worked {
        self.store.admin().checkpoint()?;
        let ranges = database.index_ranges(design)?;
        let families = [Family::DerivedScan, Family::DerivedChurn];
        let ranges = families
            .iter()
            .flat_map(|family| ranges.iter().map(|(from, to)| (*family, from.clone(), to.clone())));
        let slices = self.slices(ranges)?;
        self.task.set_total(slices.iter().map(|slice| slice.bytes).sum());
        self.check_room(slices.iter())?;
        slices.iter().try_for_each(|slice| self.compact_slice(slice, false))
    }

    fn slices(&self, ranges: impl Iterator<Item = (Family, Vec<u8>, Vec<u8>)>) -> Worked<Vec<CompactSlice>> {
        let slice_bytes = match self.rate_bytes() {
            0 => SLICE_BYTES,
            rate => rate.saturating_mul(SLICE_SECONDS).clamp(SMALLEST_SLICE_BYTES, SLICE_BYTES),
        };
        let mut slices = Vec::new();
        for (family, from, to) in ranges {
            slices.extend(self.store.admin().slices(family, &from, &to, slice_bytes)?);
        }
        Ok(slices)
    }

    /// Compacts the contents of all databases.
    pub(super) fn compact_all_contents(&mut self) -> Worked {
        while self.compactor.databases.collect_contents()?.removed > 0 {
            self.go_on()?;
        }
        self.store.admin().checkpoint()?;
        let slices = self.content_slices()?;
        self.task.set_total(slices.iter().map(|slice| slice.bytes).sum());
        self.check_room(slices.iter())?;
        self.compact_contents(&slices)
    }

    /// The references to contents of all databases.
    fn content_slices(&self) -> Worked<Vec<CompactSlice>> {
        Ok(self.store.admin().slices(Family::Blob, &[], &[u8::MAX], SLICE_BYTES)?)
    }

    /// Contents belong to all databases. With each pass those in the oldest quarter of their files move to new ones.
    fn compact_contents(&self, slices: &[CompactSlice]) -> Worked {
        // What was removed counts as garbage only once the references to it are merged.
        slices.iter().try_for_each(|slice| self.compact_slice(slice, false))?;
        for _ in 0..CONTENT_PASSES {
            let contents = self.store.admin().blob_figures();
            if contents.garbage_bytes * 100 <= contents.file_bytes * CONTENT_GARBAGE_PERCENT {
                break;
            }
            for slice in slices {
                self.check_room_for(slice.needed_bytes + contents.file_bytes / 4)?;
                self.compact_slice(slice, true)?;
            }
        }
        Ok(())
    }

    fn compact_slice(&self, slice: &CompactSlice, rewrite: bool) -> Worked {
        self.go_on()?;
        self.check_room_for(slice.needed_bytes)?;
        let begun = Instant::now();
        let written_bytes = self.store.admin().compact(slice, rewrite)?;
        self.written_bytes.set(self.written_bytes.get() + written_bytes);
        if self.order.bypass_file_cache {
            self.store.admin().drop_from_file_cache(slice.family, &slice.from, &slice.to)?;
        }
        self.compactor.compactions.counts.slices.fetch_add(1, Ordering::Relaxed);
        self.task.advance(slice.bytes);
        let took = begun.elapsed();
        // Those who answer interrupt a merge; what waits nevertheless is waited for.
        let pace = self.compactor.databases.io_limits();
        let paced = pace.pace(IoClass::Compact, slice.bytes, took, || self.go_on().is_ok());
        if paced { Ok(()) } else { self.go_on() }
    }

    fn rate_bytes(&self) -> u64 {
        self.compactor.databases.io_limits().rate(IoClass::Compact)
    }

    fn go_on(&self) -> Worked {
        go_on(self.task, self.order.until)
    }

    /// Refuses a compaction that the disk has no room for, before it has begun.
    fn check_room<'b>(&self, slices: impl Iterator<Item = &'b CompactSlice>) -> Worked {
        self.check_room_for(slices.map(|slice| slice.needed_bytes).max().unwrap_or(0))
    }

    fn check_room_for(&self, needed_bytes: u64) -> Worked {
        let room = self.store.admin().room()?;
        if room.takes(needed_bytes) {
            return Ok(());
        }
        let left_bytes = room.free_bytes.saturating_sub(room.reserve_bytes);
        let reason = format!(
            "Compacting needs {} of free space for a while, and the disk has {} in addition to its reserve of {}: make {} free, or \
             discard indexes (load compact DATABASE -D).",
            megabytes(needed_bytes),
            megabytes(left_bytes),
            megabytes(room.reserve_bytes),
            megabytes(needed_bytes - left_bytes),
        );
        Err(Halt::Failed(DatabaseError::Full { reason }))
    }
}

/// Waits as long as the task is paused; whether it may go on then.
fn go_on(task: &Task, until: Option<Instant>) -> Worked {
    loop {
        if task.is_cancelled() || until.is_some_and(|until| Instant::now() >= until) {
            return Err(Halt::Stopped);
        }
        if !task.is_paused() {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1 << 20))
}
