//! Reductions of ranges by a function that the index knows nothing of.
//!
//! A reduction of a chunk is made when it is first asked for and kept until the chunk changes; so is that of a node of
//! the tree, made from those below it. A range is then reduced from O(log n) of them and the entries at its ends.
//! They are kept in memory only, for one function: an index belongs to the one who always reduces in the same way.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use scrinium_store::Direction;

use crate::format::{ENTRIES, key_range};
use crate::node::{ChunkPlace, Node};
use crate::tree::{Chunk, Part};
use crate::{IndexError, Reader};

/// Reduces entries, and reductions of entries, to one.
pub trait Reduce {
    /// What may go wrong.
    type Error: From<IndexError>;

    /// The reduction of some entries, keys with values, at least one and some hundred at most.
    ///
    /// # Errors
    /// What the function reports; nothing is kept then.
    fn reduce(&mut self, entries: &[(Vec<u8>, Vec<u8>)]) -> Result<Vec<u8>, Self::Error>;

    /// The reduction of reductions, in the order of their entries; at least two, and some hundred at most.
    ///
    /// # Errors
    /// What the function reports; nothing is kept then.
    fn rereduce(&mut self, reductions: &[Arc<[u8]>]) -> Result<Vec<u8>, Self::Error>;
}

/// With fewer it is not worth looking for places that chunks have left.
const KEPT_ANYWAY: usize = 1000;

/// Reductions of chunks by the number of their place. A change of a chunk makes its count or its debris higher while
/// it is in its place, so that these two tell whether a reduction is still that of the chunk.
#[derive(Debug, Default)]
pub(crate) struct Reductions {
    of_chunks: Mutex<HashMap<u32, Kept>>,
}

/// The reduction of a chunk, with what the chunk's debris and count were.
#[derive(Debug)]
struct Kept {
    debris: u32,
    count: u64,
    reduction: Arc<[u8]>,
}

impl Reductions {
    /// Places are about to be given a second time.
    pub(crate) fn clear(&self) {
        self.of_chunks.lock().clear();
    }

    fn get(&self, place: ChunkPlace, count: u64) -> Option<Arc<[u8]>> {
        let all = self.of_chunks.lock();
        let kept = all.get(&place.number)?;
        (kept.debris == place.debris && kept.count == count).then(|| Arc::clone(&kept.reduction))
    }

    /// `chunks` tells how many there are. When there are as many places that chunks have left, all are forgotten.
    fn put(&self, place: ChunkPlace, count: u64, reduction: &Arc<[u8]>, chunks: impl FnOnce() -> usize) {
        let mut all = self.of_chunks.lock();
        if all.len() > KEPT_ANYWAY && all.len() > chunks().saturating_mul(2) {
            all.clear();
        }
        all.insert(place.number, Kept { debris: place.debris, count, reduction: Arc::clone(reduction) });
    }
}

impl Reader {
    /// The reduction of the entries from `from` up to, not including, `to` (`None`: the end); `None` if there are none.
    /// O(log n) reductions of about a hundred, once those that did not change are there.
    ///
    /// # Errors
    /// [`IndexError::Store`], [`IndexError::Damaged`], and what `reducer` reports.
    pub fn reduce_range<R: Reduce>(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        reducer: &mut R,
    ) -> Result<Option<Arc<[u8]>>, R::Error> {
        let mut parts = Vec::new();
        for part in self.contents().tree.cover(from, to) {
            let reduction = match part {
                Part::Node(node) => self.of_node(node, reducer)?,
                Part::Chunk(chunk) => self.of_chunk(chunk.place, chunk.count, reducer)?,
                Part::Edge(chunk) => self.of_edge(&chunk, from, to, reducer)?,
            };
            parts.extend(reduction);
        }
        joined(parts, reducer)
    }

    fn of_node<R: Reduce>(&self, node: &Node, reducer: &mut R) -> Result<Option<Arc<[u8]>>, R::Error> {
        if let Some(reduction) = node.reduction.get() {
            return Ok(Some(Arc::clone(reduction)));
        }
        let mut parts = Vec::with_capacity(node.rows.len());
        for child in &node.children {
            parts.extend(self.of_node(child, reducer)?);
        }
        if node.children.is_empty() {
            for row in 0..node.rows.len() {
                parts.extend(self.of_chunk(node.rows.place(row), node.rows.count(row), reducer)?);
            }
        }
        let reduction = joined(parts, reducer)?;
        Ok(reduction.map(|reduction| Arc::clone(node.reduction.get_or_init(|| reduction))))
    }

    fn of_chunk<R: Reduce>(
        &self,
        place: ChunkPlace,
        count: u64,
        reducer: &mut R,
    ) -> Result<Option<Arc<[u8]>>, R::Error> {
        let reductions = &self.contents().reductions;
        if let Some(reduction) = reductions.get(place, count) {
            return Ok(Some(reduction));
        }
        let range = self.contents().layout.entry_range(place.number, &[], None);
        let reduction = self.of_entries(&range, reducer)?;
        if let Some(reduction) = &reduction {
            reductions.put(place, count, reduction, || self.contents().tree.chunk_count());
        }
        Ok(reduction)
    }

    fn of_edge<R: Reduce>(
        &self,
        chunk: &Chunk<'_>,
        from: &[u8],
        to: Option<&[u8]>,
        reducer: &mut R,
    ) -> Result<Option<Arc<[u8]>>, R::Error> {
        let range = self.contents().layout.entry_range(chunk.place.number, from, to);
        if range.0 >= range.1 { Ok(None) } else { self.of_entries(&range, reducer) }
    }

    /// Of the entries between two of the store's keys, which lie in one chunk.
    fn of_entries<R: Reduce>(
        &self,
        range: &(Vec<u8>, Vec<u8>),
        reducer: &mut R,
    ) -> Result<Option<Arc<[u8]>>, R::Error> {
        let contents = self.contents();
        let mut cursor = contents.snapshot.cursor(ENTRIES, key_range(range), Direction::Forward);
        let mut entries = Vec::new();
        while let Some((key, value)) = cursor.next().map_err(IndexError::from)? {
            let value = contents.layout.split_entry(value)?.1;
            entries.push((contents.layout.strip(key).to_vec(), value.to_vec()));
        }
        if entries.is_empty() { Ok(None) } else { Ok(Some(reducer.reduce(&entries)?.into())) }
    }
}

fn joined<R: Reduce>(mut parts: Vec<Arc<[u8]>>, reducer: &mut R) -> Result<Option<Arc<[u8]>>, R::Error> {
    if parts.len() > 1 { Ok(Some(reducer.rereduce(&parts)?.into())) } else { Ok(parts.pop()) }
}
