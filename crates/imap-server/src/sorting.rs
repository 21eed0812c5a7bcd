//! SORT, in steps: no step takes long, whatever the folder holds, and the order that was found stays what it is while it goes out.
//!
//! What is sorted by numbers (RFC 5256: ARRIVAL, DATE, SIZE) is kept in memory for each folder once it was read, in rows of 32 bytes
//! that sessions share, so that a message is not read for each SORT. Both, rows and orders, have a budget for the whole server.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use roaring::RoaringBitmap;
use scrinium_database::{DatabaseError, Oversized, Result};
use scrinium_imap::{FolderOutcome, Refusal, SearchQuestion, SortFields, SortNumbers};
use scrinium_imap_wire::SortKey;
use scrinium_mailbox::{FolderIndex as _, FolderView, Picked};

use crate::folder::FolderDesk;
use crate::search::Walk;
use crate::tracker::{FolderTracker, Tracked, number_of};

/// After this, a step gives the thread back.
const STEP: Duration = Duration::from_millis(40);

/// Rows that are read at once.
const ROWS_AT_ONCE: usize = 200;

/// Memory of all sorts that are on their way, and of one.
const SORTS_BYTES: usize = 96 << 20;
const SORT_BYTES: usize = 48 << 20;

/// Memory of all rows that are kept.
const ROWS_BYTES: usize = 64 << 20;

/// Changes of a folder that are looked through for rows; behind more of them, the rows are read once more.
const CHANGES_MAX: usize = 10_000;

/// Sorts that are on their way, between two of their steps.
#[derive(Default)]
pub(crate) struct Sorts {
    /// The one that was touched last stands at the end.
    waiting: Mutex<(u32, VecDeque<(u32, Sort)>)>,
    rows: Mutex<VecDeque<(RowsKey, Arc<Rows>)>>,
}

/// Of which folder rows are: the database's identity, the folder's number and its UIDVALIDITY.
type RowsKey = ([u8; 16], u32, u32);

/// What the messages of a folder are sorted by, ascending by UID. Some may be missing.
#[derive(Clone, Default)]
struct Rows {
    numbers: Vec<SortNumbers>,
    /// Changes up to it are in them.
    change: u64,
}

/// A sort.
struct Sort {
    /// Whose it is.
    folder: Arc<FolderTracker>,
    stage: Stage,
    mod_seq: u64,
}

enum Stage {
    /// Messages are looked for, and read where they are sorted by texts.
    Looking { walk: Walk, found: RoaringBitmap, fields: Vec<SortFields>, held_bytes: usize },
    /// What they are sorted by is read.
    Reading { found: RoaringBitmap },
    /// They go out in this order.
    Sorted(Arc<[u32]>),
}

impl Sort {
    fn held_bytes(&self) -> usize {
        match &self.stage {
            Stage::Looking { found, held_bytes, .. } => found.serialized_size() + held_bytes,
            Stage::Reading { found } => found.serialized_size(),
            Stage::Sorted(order) => size_of_val(&**order),
        }
    }
}

impl Sorts {
    /// The sort of a token, which is the session's alone.
    fn take(&self, token: u32, folder: &Arc<FolderTracker>) -> Option<Sort> {
        let mut waiting = self.waiting.lock();
        let place = waiting.1.iter().position(|(known, _)| *known == token)?;
        let (_, sort) = waiting.1.remove(place)?;
        Arc::ptr_eq(&sort.folder, folder).then_some(sort)
    }

    /// Keeps a sort for its next step; those that nobody has touched for longest make room.
    fn put(&self, sort: Sort) -> u32 {
        let mut waiting = self.waiting.lock();
        let (last, all) = &mut *waiting;
        *last = last.wrapping_add(1);
        all.push_back((*last, sort));
        let mut held: usize = all.iter().map(|(_, sort)| sort.held_bytes()).sum();
        while held > SORTS_BYTES
            && all.len() > 1
            && let Some((_, oldest)) = all.pop_front()
        {
            held = held.saturating_sub(oldest.held_bytes());
        }
        *last
    }

    fn rows(&self, key: &RowsKey) -> Arc<Rows> {
        let rows = self.rows.lock();
        rows.iter().find(|(known, _)| known == key).map(|(_, rows)| Arc::clone(rows)).unwrap_or_default()
    }

    fn keep_rows(&self, key: RowsKey, kept: Arc<Rows>) {
        let bytes = |rows: &Rows| rows.numbers.len() * size_of::<SortNumbers>();
        let mut rows = self.rows.lock();
        rows.retain(|(known, _)| *known != key);
        rows.push_back((key, kept));
        let mut held: usize = rows.iter().map(|(_, rows)| bytes(rows)).sum();
        while held > ROWS_BYTES
            && rows.len() > 1
            && let Some((_, oldest)) = rows.pop_front()
        {
            held = held.saturating_sub(bytes(&oldest));
        }
    }
}

/// Where a sort stands, as the session brings it back: its token, and how many of its messages have gone out.
fn cursor_of(token: u32, at: usize) -> u64 {
    u64::from(token) << 32 | u64::from(u32::try_from(at).unwrap_or(u32::MAX))
}

impl FolderDesk<'_> {
    /// One step of a sort.
    pub(crate) fn sorted(
        &self,
        view: &FolderView,
        tracked: &Tracked,
        question: &SearchQuestion,
        keys: &[(SortKey, bool)],
    ) -> Result<FolderOutcome> {
        let began = Instant::now();
        let sorts = &self.ground.shared.sorts;
        let (mut sort, at) = match question.cursor {
            None => (self.begin_sort(tracked, question, keys), 0),
            Some(cursor) => {
                let token = u32::try_from(cursor >> 32).unwrap_or(0);
                let Some(sort) = sorts.take(token, &self.ground.open.tracker) else {
                    let text = "Too many messages are being sorted at this moment; try again";
                    return Ok(FolderOutcome::Refused(Refusal::new("INUSE", text)));
                };
                (sort, usize::try_from(cursor & u64::from(u32::MAX)).unwrap_or(usize::MAX))
            }
        };
        loop {
            if let Stage::Sorted(order) = &sort.stage {
                let (order, mod_seq) = (Arc::clone(order), sort.mod_seq);
                return Ok(self.page(view, tracked, (sort, &order), (at, question.limit, mod_seq)));
            }
            if began.elapsed() >= STEP {
                return Ok(waits(sorts, sort, tracked));
            }
            self.sort_more(&mut sort, (view, tracked), (question, keys), began)?;
            if sort.held_bytes() > SORT_BYTES {
                let reason = "So much cannot be sorted at once; search for fewer messages".to_owned();
                return Err(DatabaseError::TooLarge { what: Oversized::Folder, reason });
            }
        }
    }

    fn begin_sort(&self, tracked: &Tracked, question: &SearchQuestion, keys: &[(SortKey, bool)]) -> Sort {
        let stage = match self.by_sets(tracked, question) {
            Some(found) if SortNumbers::suffice(keys) => Stage::Reading { found },
            _ => Stage::Looking {
                walk: Walk::begin(tracked, false),
                found: RoaringBitmap::new(),
                fields: Vec::new(),
                held_bytes: 0,
            },
        };
        Sort { folder: Arc::clone(&self.ground.open.tracker), stage, mod_seq: 0 }
    }

    /// Brings a sort further, until its next stage or a step has lasted long enough.
    fn sort_more(
        &self,
        sort: &mut Sort,
        (view, tracked): (&FolderView, &Tracked),
        (question, keys): (&SearchQuestion, &[(SortKey, bool)]),
        began: Instant,
    ) -> Result<()> {
        let by_numbers = SortNumbers::suffice(keys);
        match &mut sort.stage {
            Stage::Looking { walk, found, fields, held_bytes } => {
                for matching in self.walk(view, tracked, question, walk)? {
                    sort.mod_seq = sort.mod_seq.max(matching.entry.mod_seq);
                    if by_numbers {
                        found.insert(matching.entry.uid);
                        continue;
                    }
                    let map = match self.header_map(&matching) {
                        Err(DatabaseError::NotFound { .. }) => continue,
                        map => map?,
                    };
                    let of_one = SortFields::new(&matching.entry, &map);
                    *held_bytes += of_one.held_bytes();
                    fields.push(of_one);
                }
                if walk.is_over() {
                    sort.stage = if by_numbers {
                        Stage::Reading { found: std::mem::take(found) }
                    } else {
                        fields.sort_unstable_by(|one, other| one.compare(other, keys));
                        Stage::Sorted(fields.iter().map(SortFields::uid).collect())
                    };
                }
            }
            Stage::Reading { found } => {
                if let Some(mut numbers) = self.numbers_of(tracked, found, began)? {
                    numbers.sort_unstable_by(|one, other| one.compare(other, keys));
                    sort.stage = Stage::Sorted(numbers.iter().map(|numbers| numbers.uid).collect());
                }
            }
            Stage::Sorted(_) => {}
        }
        Ok(())
    }

    /// What the messages are sorted by, of those that are still there. `None`: there is more to read, and the step has lasted long enough.
    fn numbers_of(
        &self,
        tracked: &Tracked,
        found: &RoaringBitmap,
        began: Instant,
    ) -> Result<Option<Vec<SortNumbers>>> {
        let sorts = &self.ground.shared.sorts;
        let key = (self.file.database.uuid(), self.tracker.folder(), self.info.uid_validity);
        let mut rows = self.rows_by_now(sorts.rows(&key))?;
        let mut missing = found.clone();
        missing -= &rows.numbers.iter().map(|numbers| numbers.uid).collect::<RoaringBitmap>();
        let missing: Vec<u32> = missing.into_iter().collect();
        let mut read = Vec::new();
        let mut is_whole = true;
        for some in missing.chunks(ROWS_AT_ONCE) {
            if began.elapsed() >= STEP && !read.is_empty() {
                is_whole = false;
                break;
            }
            self.read_rows(tracked, some, &mut read)?;
        }
        if !read.is_empty() {
            let mut numbers = std::mem::take(&mut Arc::make_mut(&mut rows).numbers);
            numbers.append(&mut read);
            // Two ascending runs, which this sort joins.
            numbers.sort_by_key(|numbers| numbers.uid);
            rows = Arc::new(Rows { numbers, change: rows.change });
        }
        let numbers = is_whole
            .then(|| rows.numbers.iter().filter(|numbers| found.contains(numbers.uid)).copied().collect());
        sorts.keep_rows(key, rows);
        Ok(numbers)
    }

    /// Without the rows of messages that have changed since: what they say may be of another content.
    fn rows_by_now(&self, mut rows: Arc<Rows>) -> Result<Arc<Rows>> {
        let database = &self.file.database;
        let (snapshot, folder) = (database.store().snapshot(), self.tracker.folder());
        let feed = database.folder_feed_at(&snapshot, folder)?;
        let last = feed.map_or(0, |feed| feed.last_change);
        if rows.numbers.is_empty() {
            return Ok(Arc::new(Rows { numbers: Vec::new(), change: last }));
        }
        if rows.change >= last {
            return Ok(rows);
        }
        if rows.change < database.compaction_record()?.purged_to {
            return Ok(Arc::new(Rows { numbers: Vec::new(), change: last }));
        }
        let changes = database.member_changes_at(&snapshot, folder, rows.change, CHANGES_MAX)?;
        if changes.len() >= CHANGES_MAX {
            return Ok(Arc::new(Rows { numbers: Vec::new(), change: last }));
        }
        let mut changed = RoaringBitmap::new();
        for change in &changes {
            changed.insert(number_of(change.uid, database)?);
        }
        let by_now = Arc::make_mut(&mut rows);
        by_now.numbers.retain(|numbers| !changed.contains(numbers.uid));
        by_now.change = last;
        Ok(rows)
    }

    fn read_rows(&self, tracked: &Tracked, uids: &[u32], read: &mut Vec<SortNumbers>) -> Result<()> {
        let picked: Vec<Picked> = uids.iter().map(|uid| Picked { uid: *uid, number: 0 }).collect();
        let found = self.found(&picked)?;
        self.freeze(&found)?;
        for found in found {
            match self.sort_numbers(found, tracked) {
                Ok(numbers) => read.push(numbers),
                Err(DatabaseError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Messages of a sorted folder from a place on.
    fn page(
        &self,
        view: &FolderView,
        tracked: &Tracked,
        (sort, order): (Sort, &[u32]),
        (at, limit, mod_seq): (usize, u32, u64),
    ) -> FolderOutcome {
        let end = at.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX).max(1)).min(order.len());
        let present = |uid: &&u32| tracked.present.contains(**uid);
        let found = order.get(at..end).unwrap_or_default().iter().filter(present).filter_map(|uid| {
            view.number_of(*uid, tracked.position(*uid)).map(|number| Picked { uid: *uid, number })
        });
        let found = found.collect();
        let cursor = (end < order.len()).then(|| cursor_of(self.ground.shared.sorts.put(sort), end));
        FolderOutcome::Found { found, mod_seq, cursor, progress: (tracked.state.count, tracked.state.count) }
    }
}

/// Nothing goes out yet.
fn waits(sorts: &Sorts, sort: Sort, tracked: &Tracked) -> FolderOutcome {
    let looked_at = match &sort.stage {
        Stage::Looking { walk, .. } => walk.looked_at(tracked),
        Stage::Reading { .. } | Stage::Sorted(_) => tracked.state.count,
    };
    let cursor = Some(cursor_of(sorts.put(sort), 0));
    FolderOutcome::Found { found: Vec::new(), mod_seq: 0, cursor, progress: (looked_at, tracked.state.count) }
}
