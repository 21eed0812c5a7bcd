//! An open index: the writer's side, and where readers come from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use scrinium_store::{Batch, Direction, Purpose, Reservation, Snapshot, Store};

use crate::format::{
    CHUNKS, COLUMNS_MAX, ENTRIES, IndexState, Layout, STATE, key_range, reached_in, remove_all,
};
use crate::reader::Contents;
use crate::recent::Recent;
use crate::reduce::Reductions;
use crate::together::Update;
use crate::tree::Tree;
use crate::{Change, IndexError, Reader};

/// One ordered collection of entries, open.
///
/// There must be one `Index` for a number at a time. Dropping it frees the memory of its tree and nothing else;
/// opening it again reads the chunk records, about one for a hundred entries.
#[derive(Debug)]
pub struct Index {
    pub(crate) store: Store,
    pub(crate) layout: Layout,
    /// Held by the one who changes the index.
    pub(crate) writer: Mutex<Recent>,
    published: Mutex<Published>,
    pub(crate) reductions: Arc<Reductions>,
    memory: Reservation,
    /// Entries when the memory was counted.
    counted: AtomicU64,
}

/// What readers see.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    pub(crate) tree: Tree,
    pub(crate) state: IndexState,
    /// While a change is being written: the snapshot that `tree` still describes. Otherwise a fresh one will do, so
    /// that an index at rest holds no snapshot.
    frozen: Option<Snapshot>,
}

impl Index {
    /// Opens index number `id` with `sums` summed columns (at most 16), or begins it, empty and at change number 0. The
    /// index notes `collation`, the version of the order that its keys are made for.
    ///
    /// # Errors
    /// [`IndexError::Outdated`] (it was begun with another number of sums or another collation) and
    /// [`IndexError::Damaged`]: [`drop_index`](Self::drop_index), open, and build again.
    /// [`IndexError::NewerFormat`], [`IndexError::Unsupported`], [`IndexError::Store`].
    pub fn open(store: &Store, id: u64, sums: usize, collation: u32) -> Result<Self, IndexError> {
        if sums > COLUMNS_MAX {
            return Err(IndexError::Unsupported { what: "this many sums" });
        }
        if id == u64::MAX {
            return Err(IndexError::Unsupported { what: "the highest number" });
        }
        let layout = Layout { id, columns: sums, collation };
        let snapshot = store.snapshot();
        let (tree, state, recent) = match snapshot.get(STATE, &id.to_be_bytes())? {
            Some(state) => load(layout, &snapshot, layout.read_state(&state)?)?,
            None => {
                clear_away(layout, store, &snapshot)?;
                (Tree::build(&[], sums), IndexState::default(), Recent::default())
            }
        };
        Ok(Self {
            memory: store.admin().reserve(Purpose::ViewTrees, tree.bytes() as u64),
            counted: AtomicU64::new(state.entries),
            store: store.clone(),
            layout,
            writer: Mutex::new(recent),
            published: Mutex::new(Published { tree, state, frozen: None }),
            reductions: Arc::default(),
        })
    }

    /// The change number that index number `id` has reached as it is stored, whether it is open or not; `None` if there
    /// is no such index, or it cannot be read, and will be started over.
    ///
    /// # Errors
    /// [`IndexError::Store`].
    pub fn stored_reached(store: &Store, id: u64) -> Result<Option<u64>, IndexError> {
        let stored = store.get(STATE, &id.to_be_bytes())?;
        Ok(stored.and_then(|state| reached_in(&state)))
    }

    /// Removes index number `id`, which must not be open any more. Readers keep what they have.
    ///
    /// # Errors
    /// [`IndexError::Store`].
    pub fn drop_index(store: &Store, id: u64) -> Result<(), IndexError> {
        let mut batch = Batch::new();
        remove_all(&mut batch, id);
        Ok(store.derived().write(batch)?)
    }

    /// Carries out the changes, those of `extra`, and the step to change number `reached`, as one: readers see all or
    /// nothing, and so does what is found after a crash.
    ///
    /// Inserted keys must not be there and removed ones must be, with the sums they were inserted with (within one
    /// call, a key may be removed and inserted again): the caller knows its entries, and the index does not look.
    /// Cost: O(log n) for each chunk touched, plus a read of about a hundred entries for each chunk that overflows or has
    /// gathered debris; memory in proportion to the changes, so a first build is better a
    /// [`rebuild`](Self::rebuild).
    ///
    /// # Errors
    /// [`IndexError::KeyTooLong`], [`IndexError::Store`]; nothing was changed then.
    pub fn update(&self, changes: Vec<Change>, extra: Batch, reached: u64) -> Result<(), IndexError> {
        Update { index: self, changes, reached }.carry_out(extra)
    }

    /// The first place that was never used.
    pub(crate) fn next_place(&self) -> u32 {
        self.published.lock().state.next_place
    }

    /// Lets readers continue the present state while the next one is written; the snapshot was taken while nobody else
    /// changed the index.
    pub(crate) fn freeze_at(&self, snapshot: &Snapshot) -> Published {
        let mut published = self.published.lock();
        published.frozen = Some(snapshot.clone());
        published.clone()
    }

    /// Shows readers the next state.
    pub(crate) fn publish(&self, tree: Tree, state: IndexState) {
        self.note_memory(&tree, state.entries);
        *self.published.lock() = Published { tree, state, frozen: None };
    }

    /// Goes on with the present state, after an error.
    pub(crate) fn unfreeze(&self) {
        self.published.lock().frozen = None;
    }

    /// The memory of a tree goes with its entries; it is counted again when they are an eighth more or less.
    fn note_memory(&self, tree: &Tree, entries: u64) {
        let counted = self.counted.load(Ordering::Relaxed);
        if entries.abs_diff(counted) > counted / 8 {
            self.counted.store(entries, Ordering::Relaxed);
            self.memory.set(tree.bytes() as u64);
        }
    }

    /// The index as it stands. Never waits for an update under way.
    #[must_use]
    pub fn reader(&self) -> Reader {
        let published = self.published.lock();
        let snapshot = published.frozen.clone().unwrap_or_else(|| self.store.snapshot());
        let contents = Contents {
            layout: self.layout,
            snapshot,
            tree: published.tree.clone(),
            reductions: Arc::clone(&self.reductions),
        };
        Reader::new(contents, published.state.reached)
    }

    /// The change number that the last update carried; 0 for an index just begun.
    #[must_use]
    pub fn reached(&self) -> u64 {
        self.published.lock().state.reached
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.published.lock().state.entries
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of removed entries that may still take room in the store, at most; counted chunk by chunk, so not for every
    /// request.
    #[must_use]
    pub fn debris(&self) -> u64 {
        let tree = self.published.lock().tree.clone();
        tree.debris()
    }

    /// Memory of the tree in bytes, as it is taken from the store's budget: about an eighth more or less.
    #[must_use]
    pub fn reserved_bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// Memory of the tree in bytes; counted node by node, so not for every request.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let tree = self.published.lock().tree.clone();
        tree.bytes()
    }
}

/// Reads the chunk records, and the packs of those of late, into a tree.
fn load(
    layout: Layout,
    snapshot: &Snapshot,
    state: IndexState,
) -> Result<(Tree, IndexState, Recent), IndexError> {
    let (recent, chunks) = Recent::read(&layout, snapshot, state.packs)?;
    if chunks.first().is_some_and(|first| !first.fence.is_empty()) {
        return Err(layout.damaged("its first chunk is missing"));
    }
    let tree = Tree::build(&chunks, layout.columns);
    if tree.count() != state.entries {
        return Err(layout.damaged("its chunks do not add up"));
    }
    Ok((tree, state, recent))
}

/// Removes what a rebuild left that did not come to its end.
fn clear_away(layout: Layout, store: &Store, snapshot: &Snapshot) -> Result<(), IndexError> {
    let range = layout.whole_range();
    for family in [ENTRIES, CHUNKS] {
        if snapshot.cursor(family, key_range(&range), Direction::Forward).next()?.is_some() {
            return Index::drop_index(store, layout.id);
        }
    }
    Ok(())
}
