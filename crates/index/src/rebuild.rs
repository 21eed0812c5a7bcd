//! Building an index from all its entries at once.

use std::error::Error;

use scrinium_store::Batch;

use crate::format::{CHUNKS, ENTRIES, Layout, State, remove_all};
use crate::node::{CUT, Place, Row};
use crate::plan::separator;
use crate::sum::{Sum, add_all};
use crate::tree::Tree;
use crate::{Index, IndexError, KEY_BYTES_MAX, Sums};

/// Up to so many bytes of entries are written as one batch, which is quicker than sorted files; of a small budget,
/// up to this part.
const BATCH_BYTES_MAX: usize = 4 << 20;
const BATCH_PART: u64 = 64;

type SourceError = Box<dyn Error + Send + Sync>;
type SourceEntry<E> = Result<(Vec<u8>, Vec<u8>, Sums), E>;

impl Index {
    /// Replaces the whole index by `sorted`, entries in strictly ascending order of keys, standing at change number
    /// `reached`. Readers see the old index until the new one is complete; a crash before that leaves an empty one
    /// at change number 0.
    ///
    /// # Errors
    /// [`IndexError::Source`] with the first error of `sorted`, [`IndexError::Unsorted`], [`IndexError::KeyTooLong`],
    /// [`IndexError::Store`]. The index is then empty and at change number 0.
    pub fn rebuild<E: Into<SourceError>>(
        &self,
        sorted: impl Iterator<Item = SourceEntry<E>>,
        reached: u64,
    ) -> Result<(), IndexError> {
        let _writer = self.writer.lock();
        let (_snapshot, published) = self.freeze();
        let begun = published.state != State::default();
        let chunks = Chunks::from_place(published.state.next_place);
        let built = self.build(sorted, reached, begun, chunks);
        match built {
            Ok(built) => self.publish(Ok(built)),
            Err(error) => {
                self.reductions.clear();
                let cleared = Self::drop_index(&self.store, self.layout.id);
                let empty = Tree::build(&[], self.layout.columns);
                self.publish(Ok((empty, State::default())))?;
                cleared.and(Err(error))
            }
        }
    }

    fn build<E: Into<SourceError>>(
        &self,
        sorted: impl Iterator<Item = SourceEntry<E>>,
        reached: u64,
        begun: bool,
        chunks: Chunks,
    ) -> Result<(Tree, State), IndexError> {
        let mut source = Source { layout: self.layout, sorted, chunks, failed: None };
        let (mut first, mut bytes, mut ended) = (Vec::new(), 0, false);
        let batch_bytes_max = usize::try_from(self.store.budget() / BATCH_PART).unwrap_or(BATCH_BYTES_MAX);
        while bytes < batch_bytes_max.min(BATCH_BYTES_MAX) && !ended {
            match source.next() {
                Some((key, value)) => {
                    bytes += key.len() + value.len();
                    first.push((key, value));
                }
                None => ended = true,
            }
        }
        source.check()?;
        let mut batch = Batch::with_capacity(if ended { bytes * 5 / 4 } else { 0 });
        if begun || !ended {
            remove_all(&mut batch, self.layout.id);
        }
        if ended {
            first.iter().for_each(|(key, value)| batch.put(ENTRIES, key, value));
            for row in &source.chunks.rows {
                let (key, value) = self.chunk_record(row);
                batch.put(CHUNKS, &key, &value);
            }
        } else {
            self.store.write_derived(std::mem::take(&mut batch))?;
            let ingested = self.store.ingest_derived(ENTRIES, first.into_iter().chain(source.by_ref()));
            source.check()?;
            ingested?;
            self.write_chunks(&source.chunks.rows)?;
        }
        let tree = Tree::build(&source.chunks.rows, self.layout.columns);
        let state = State { next_place: source.chunks.next_place, reached, entries: tree.count() };
        // Comes last: until then there is no index, whatever its families hold.
        self.layout.put_state(&mut batch, state);
        self.store.write_derived(batch)?;
        Ok((tree, state))
    }

    /// In batches, since bringing sorted files in costs a flush of everything.
    fn write_chunks(&self, rows: &[Row]) -> Result<(), IndexError> {
        let mut batch = Batch::new();
        for row in rows {
            let (key, value) = self.chunk_record(row);
            batch.put(CHUNKS, &key, &value);
            if batch.len_bytes() > BATCH_BYTES_MAX {
                self.store.write_derived(std::mem::take(&mut batch))?;
            }
        }
        Ok(self.store.write_derived(batch)?)
    }

    fn chunk_record(&self, row: &Row) -> (Vec<u8>, Vec<u8>) {
        (self.layout.chunk_key(&row.fence), self.layout.chunk_value(row.place, row.count, &row.sums))
    }
}

/// The entries as records of the store; counts them into chunks as they pass.
struct Source<I> {
    layout: Layout,
    sorted: I,
    chunks: Chunks,
    failed: Option<IndexError>,
}

impl<I> Source<I> {
    /// Fails with what broke the entries off.
    fn check(&mut self) -> Result<(), IndexError> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

impl<I, E> Iterator for Source<I>
where
    I: Iterator<Item = SourceEntry<E>>,
    E: Into<SourceError>,
{
    type Item = (Vec<u8>, Vec<u8>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed.is_some() {
            return None;
        }
        let failed = match self.sorted.next()? {
            Err(error) => IndexError::Source(error.into()),
            Ok((key, _, _)) if key.len() > KEY_BYTES_MAX => IndexError::KeyTooLong { bytes: key.len() },
            Ok((key, _, _)) if self.chunks.last.as_ref().is_some_and(|last| *last >= key) => {
                IndexError::Unsorted { entry: self.chunks.rows.iter().map(|row| row.count).sum() }
            }
            Ok((key, value, sums)) => {
                let value = self.layout.entry_value(&sums, &value);
                let sums = (0..self.layout.columns).map(|at| sums.get(at).copied().unwrap_or_default());
                match self.chunks.push(&key, sums) {
                    Some(place) => return Some((self.layout.entry_key(place, &key), value)),
                    None => self.layout.damaged("it has used up its places"),
                }
            }
        };
        self.failed = Some(failed);
        // The store keeps nothing of a run of entries that is out of order.
        let last = self.chunks.last.as_ref();
        last.map(|last| (self.layout.entry_key(self.chunks.next_place.saturating_sub(1), last), Vec::new()))
    }
}

/// Chunks over entries that come in order.
struct Chunks {
    rows: Vec<Row>,
    last: Option<Vec<u8>>,
    next_place: u32,
}

impl Chunks {
    /// Places begin at one that was never used, so that nothing of an earlier index lies there.
    fn from_place(next_place: u32) -> Self {
        Self { rows: Vec::new(), last: None, next_place }
    }

    /// Counts one more entry and returns its place; `None` if there is no place left.
    fn push(&mut self, key: &[u8], sums: impl Iterator<Item = f64>) -> Option<u32> {
        let sums: Vec<Sum> = sums.map(Sum::of).collect();
        let number = match self.rows.last_mut().filter(|row| row.count < CUT as u64) {
            Some(row) => {
                row.count += 1;
                add_all(&mut row.sums, &sums);
                row.place.number
            }
            None => {
                let number = self.next_place;
                self.next_place = number.checked_add(1)?;
                let fence = self.last.as_ref().map(|last| separator(last, key)).unwrap_or_default();
                self.rows.push(Row { fence, place: Place { number, debris: 0 }, count: 1, sums });
                number
            }
        };
        self.last = Some(key.to_vec());
        Some(number)
    }
}
