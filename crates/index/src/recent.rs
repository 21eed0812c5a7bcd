//! Chunk records of late.
//!
//! An update changes about two chunks for each entry that moves. To write the record of each would be most of its cost,
//! so the chunks that one update changes are written as one *pack*. Packs are kept in order; when there are many, the
//! oldest go, and what the chunks in them are now is written as records of their own, unless a later pack has it: so a
//! chunk that is changed often has a record written seldom. Opening reads the records, and over them the packs.
//!
//! ```text
//! pack    DerivedPoint  id, number (8)      → per chunk: varint length and lower bound, varint length and chunk
//!                                             record (0: it is gone)
//! ```

use std::collections::{BTreeMap, VecDeque};

use scrinium_assertion::never;
use scrinium_store::{Batch, Direction, Snapshot};

use crate::IndexError;
use crate::format::{CHUNKS, Layout, STATE, key_range, read_varint, write_varint};
use crate::node::Row;
use crate::tree::Tree;

/// Packs that are kept, at most: what opening an index reads besides its records is bounded by it. With few, a chunk of a
/// large index that is changed here and there would seldom be in a later one.
const PACKS_MAX: u64 = 65_536;
/// Packs go when they hold more chunks than this, and more than [`CHANGES_OF_CHUNK`] times as many as there are.
const CHANGES_MIN: u64 = 1024;
/// How often a chunk is changed, on average, before its record is written; one in fifty is written earlier.
const CHANGES_OF_CHUNK: u64 = 4;

/// A chunk that an update changed: its lower bound, and its record or that it is gone.
type Changed = (Vec<u8>, Option<Vec<u8>>);

/// Which packs there are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Recent {
    /// The number of the oldest pack.
    first: u64,
    /// How many chunks are in each pack from that one on.
    sizes: VecDeque<u32>,
    /// How many are in all of them.
    changes: u64,
}

/// What an update does to the packs.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    /// How many of the oldest go.
    gone: usize,
    /// How many chunks are in the one that comes.
    added: Option<usize>,
}

impl Recent {
    fn next(&self) -> u64 {
        self.first + self.sizes.len() as u64
    }

    /// The numbers of the oldest pack and of the next one, once `packed` is done.
    pub(crate) fn numbers_after(&self, packed: &Packed) -> (u64, u64) {
        (self.first + packed.gone as u64, self.next() + u64::from(packed.added.is_some()))
    }

    /// Notes what [`write`](Self::write) has put into a batch, once that is written.
    pub(crate) fn take(&mut self, packed: &Packed) {
        (0..packed.gone).for_each(|_| self.pop());
        packed.added.into_iter().for_each(|changes| self.push(changes));
    }

    fn push(&mut self, changes: usize) {
        self.sizes.push_back(u32::try_from(changes).unwrap_or(u32::MAX));
        self.changes += changes as u64;
    }

    /// Lets the oldest pack go.
    fn pop(&mut self) {
        let Some(size) = self.sizes.pop_front() else {
            never!("a pack that goes was there");
            return;
        };
        self.first += 1;
        self.changes = self.changes.checked_sub(u64::from(size)).unwrap_or_else(|| {
            never!("the changes of a pack were counted when it came", "{size} more than there are");
            0
        });
    }

    /// Adds the chunks that an update makes what they are in `tree` to the batch, which old packs leave.
    pub(crate) fn write(
        &self,
        layout: &Layout,
        snapshot: &Snapshot,
        tree: &Tree,
        fences: impl Iterator<Item = Vec<u8>>,
        batch: &mut Batch,
    ) -> Result<Packed, IndexError> {
        let changed: Vec<Changed> = fences
            .map(|fence| {
                let record = present(layout, tree, &fence);
                (fence, record)
            })
            .collect();
        if changed.is_empty() {
            return Ok(Packed::default());
        }
        let allowed = CHANGES_MIN.max(CHANGES_OF_CHUNK * tree.chunk_count() as u64);
        let (mut gone, mut changes) = (0, self.changes + changed.len() as u64);
        while let Some(size) = self.sizes.get(gone)
            && ((self.sizes.len() - gone) as u64 >= PACKS_MAX || changes > allowed)
        {
            let key = pack_key(layout, self.first + gone as u64);
            let pack = snapshot.get(STATE, &key)?.ok_or_else(|| missing(layout))?;
            batch.delete(STATE, &key);
            for (fence, record) in decode(layout, &pack)? {
                let now = present(layout, tree, &fence);
                // Of another record, a later pack has what it is now.
                if now == record {
                    let key = layout.chunk_key(&fence);
                    match now {
                        Some(value) => batch.put(CHUNKS, &key, &value),
                        None => batch.delete(CHUNKS, &key),
                    }
                }
            }
            changes = changes.saturating_sub(u64::from(*size));
            gone += 1;
        }
        batch.put(STATE, &pack_key(layout, self.next()), &encode(&changed));
        Ok(Packed { gone, added: Some(changed.len()) })
    }

    /// All chunks as they are stored, in order: the records, and over them the packs.
    pub(crate) fn read(
        layout: &Layout,
        snapshot: &Snapshot,
        (first, next): (u64, u64),
    ) -> Result<(Self, Vec<Row>), IndexError> {
        let chunks = read_records(layout, snapshot)?;
        if next.checked_sub(first).is_none_or(|packs| packs > PACKS_MAX) {
            return Err(layout.damaged("its state names packs that cannot exist"));
        }
        let mut recent = Self { first, ..Self::default() };
        let mut changed: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
        let range = (pack_key(layout, first), pack_key(layout, next));
        let mut cursor = snapshot.cursor(STATE, key_range(&range), Direction::Forward);
        while let Some((key, pack)) = cursor.next()? {
            if key != pack_key(layout, recent.next()) {
                return Err(missing(layout));
            }
            let pack = decode(layout, pack)?;
            recent.push(pack.len());
            changed.extend(pack);
        }
        if recent.next() != next {
            return Err(missing(layout));
        }
        if changed.is_empty() {
            return Ok((recent, chunks));
        }
        let mut all: BTreeMap<Vec<u8>, Row> =
            chunks.into_iter().map(|row| (row.fence.clone(), row)).collect();
        for (fence, record) in changed {
            match record {
                None => drop(all.remove(&fence)),
                Some(record) => {
                    let row = layout.read_chunk(&layout.chunk_key(&fence), &record)?;
                    all.insert(fence, row);
                }
            }
        }
        Ok((recent, all.into_values().collect()))
    }
}

fn read_records(layout: &Layout, snapshot: &Snapshot) -> Result<Vec<Row>, IndexError> {
    let range = layout.whole_range();
    let mut cursor = snapshot.cursor(CHUNKS, key_range(&range), Direction::Forward);
    let mut chunks = Vec::new();
    while let Some((key, value)) = cursor.next()? {
        chunks.push(layout.read_chunk(key, value)?);
    }
    Ok(chunks)
}

/// The record of the chunk that begins at `fence`, if there is one.
fn present(layout: &Layout, tree: &Tree, fence: &[u8]) -> Option<Vec<u8>> {
    let chunk = tree.chunk_of(fence).filter(|chunk| chunk.fence == fence)?;
    Some(layout.chunk_value(chunk.place, chunk.count, chunk.sums))
}

fn pack_key(layout: &Layout, number: u64) -> Vec<u8> {
    [layout.id.to_be_bytes(), number.to_be_bytes()].concat()
}

fn missing(layout: &Layout) -> IndexError {
    layout.damaged("a pack of chunk records is missing")
}

fn encode(changed: &[Changed]) -> Vec<u8> {
    let bytes = changed.iter().map(|(fence, record)| fence.len() + record.as_ref().map_or(0, Vec::len) + 4);
    let mut pack = Vec::with_capacity(bytes.sum());
    for (fence, record) in changed {
        for part in [fence.as_slice(), record.as_deref().unwrap_or_default()] {
            write_varint(&mut pack, part.len() as u64);
            pack.extend_from_slice(part);
        }
    }
    pack
}

fn decode(layout: &Layout, mut pack: &[u8]) -> Result<Vec<Changed>, IndexError> {
    let mut changed = Vec::new();
    while !pack.is_empty() {
        let mut part = || {
            let length = usize::try_from(read_varint(&mut pack)?).ok()?;
            let (part, behind) = pack.split_at_checked(length)?;
            pack = behind;
            Some(part.to_vec())
        };
        let damaged = || layout.damaged("a pack of chunk records cannot be read");
        let (fence, record) = part().zip(part()).ok_or_else(damaged)?;
        changed.push((fence, Some(record).filter(|record| !record.is_empty())));
    }
    Ok(changed)
}
