//! Building an index from all its entries at once.

use std::error::Error;

use scrinium_store::Batch;

use crate::format::{CHUNKS, ENTRIES, Layout, State, remove_all};
use crate::node::{ROOMY, Row};
use crate::plan::separator;
use crate::sum::{Sum, add_all};
use crate::tree::Tree;
use crate::{Index, IndexError, KEY_BYTES_MAX, Sums};

/// Up to so many bytes of entries are written as one batch, which is quicker than sorted files.
const BATCH_BYTES_MAX: usize = 4 << 20;

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
        let begun = published.state != State { reached: 0, entries: 0 };
        let built = self.build(sorted, reached, begun);
        match built {
            Ok(built) => self.publish(Ok(built)),
            Err(error) => {
                let cleared = Self::drop_index(&self.store, self.layout.id);
                let empty = Tree::build(&[], self.layout.columns);
                self.publish(Ok((empty, State { reached: 0, entries: 0 })))?;
                cleared.and(Err(error))
            }
        }
    }

    fn build<E: Into<SourceError>>(
        &self,
        sorted: impl Iterator<Item = SourceEntry<E>>,
        reached: u64,
        begun: bool,
    ) -> Result<(Tree, State), IndexError> {
        let mut source = Source { layout: self.layout, sorted, chunks: Chunks::default(), failed: None };
        let (mut first, mut bytes, mut ended) = (Vec::new(), 0, false);
        while bytes < BATCH_BYTES_MAX && !ended {
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
                batch.put(
                    CHUNKS,
                    &self.layout.key(&row.fence),
                    &self.layout.chunk_value(row.count, &row.sums),
                );
            }
        } else {
            self.store.write_derived(std::mem::take(&mut batch))?;
            let ingested = self.store.ingest_derived(ENTRIES, first.into_iter().chain(source.by_ref()));
            source.check()?;
            ingested?;
            let layout = self.layout;
            let records = source.chunks.rows.iter();
            let records =
                records.map(|row| (layout.key(&row.fence), layout.chunk_value(row.count, &row.sums)));
            self.store.ingest_derived(CHUNKS, records)?;
        }
        let tree = Tree::build(&source.chunks.rows, self.layout.columns);
        let state = State { reached, entries: tree.count() };
        // Comes last: until then there is no index, whatever its families hold.
        self.layout.put_state(&mut batch, state);
        self.store.write_derived(batch)?;
        Ok((tree, state))
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
                let record = (self.layout.key(&key), self.layout.entry_value(&sums, &value));
                let sums =
                    (0..self.layout.columns).map(|column| sums.get(column).copied().unwrap_or_default());
                self.chunks.push(key, sums);
                return Some(record);
            }
        };
        self.failed = Some(failed);
        // The store keeps nothing of a run of entries that is out of order.
        self.chunks.last.as_ref().map(|last| (self.layout.key(last), Vec::new()))
    }
}

/// Chunks over entries that come in order.
#[derive(Default)]
struct Chunks {
    rows: Vec<Row>,
    last: Option<Vec<u8>>,
}

impl Chunks {
    fn push(&mut self, key: Vec<u8>, sums: impl Iterator<Item = f64>) {
        let sums: Vec<Sum> = sums.map(Sum::of).collect();
        match self.rows.last_mut().filter(|row| row.count < ROOMY as u64) {
            Some(row) => {
                row.count += 1;
                add_all(&mut row.sums, &sums);
            }
            None => {
                let fence = self.last.as_ref().map(|last| separator(last, &key)).unwrap_or_default();
                self.rows.push(Row { fence, count: 1, sums });
            }
        }
        self.last = Some(key);
    }
}
