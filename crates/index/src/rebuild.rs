//! Building indexes from all their entries at once.

use std::error::Error;

use scrinium_assertion::{Fault, always, never};
use scrinium_store::{Batch, SortedFiles, Store};

use crate::format::{CHUNKS, ENTRIES, IndexState, Layout, remove_all};
use crate::index::Published;
use crate::node::{CHUNK, ChunkPlace, Row};
use crate::plan::separator;
use crate::recent::Recent;
use crate::sum::{Sum, add_all};
use crate::tree::Tree;
use crate::{Index, IndexError, KEY_BYTES_MAX, Sums};

/// Up to this many bytes of entries are written as one batch, which costs no flush; but anyone who writes meanwhile waits for
/// it.
const BATCH_BYTES_MAX: usize = 512 << 10;

type SourceError = Box<dyn Error + Send + Sync>;
type SourceEntry<E> = Result<(Vec<u8>, Vec<u8>, Sums), E>;
type Record = (Vec<u8>, Vec<u8>);

/// All entries of an index, sorted, that wait to take the place of what is there.
#[derive(Debug)]
pub struct Rebuild<'a> {
    index: &'a Index,
    records: Records,
    rows: Vec<Row>,
    /// The first place that its entries use, and the first behind these.
    places: (u32, u32),
}

/// The records of entries and chunks.
#[derive(Debug)]
enum Records {
    Few(Vec<Record>),
    Files { entries: SortedFiles, chunks: SortedFiles },
}

impl Index {
    /// Replaces the whole index by `sorted`, entries in strictly ascending order of keys, standing at change number
    /// `reached`. Readers see the old index until the new one is complete; a crash before that leaves an empty one
    /// at change number 0.
    ///
    /// # Errors
    /// As [`prepare_rebuild`](Self::prepare_rebuild) and [`Rebuild::all`].
    pub fn rebuild<E: Into<SourceError>>(
        &self,
        sorted: impl Iterator<Item = SourceEntry<E>>,
        reached: u64,
    ) -> Result<(), IndexError> {
        Rebuild::all(&self.store, vec![self.prepare_rebuild(sorted)?], Vec::new(), reached)
    }

    /// Sorts entries, in strictly ascending order of keys, into files that wait to become the index, which must not
    /// change meanwhile.
    ///
    /// # Errors
    /// [`IndexError::Source`] with the first error of `sorted`, [`IndexError::Unsorted`], [`IndexError::KeyTooLong`],
    /// [`IndexError::Store`]; nothing was changed then.
    pub fn prepare_rebuild<E: Into<SourceError>>(
        &self,
        sorted: impl Iterator<Item = SourceEntry<E>>,
    ) -> Result<Rebuild<'_>, IndexError> {
        let first_place = self.next_place();
        let mut source =
            Source { layout: self.layout, sorted, chunks: Chunks::from_place(first_place), failed: None };
        let (mut first, mut bytes) = (Vec::new(), 0);
        while bytes < BATCH_BYTES_MAX
            && let Some((key, value)) = source.next()
        {
            bytes += key.len() + value.len();
            first.push((key, value));
        }
        source.check()?;
        let records = if bytes < BATCH_BYTES_MAX {
            first.extend(source.chunks.rows.iter().map(|row| self.chunk_record(row)));
            Records::Few(first)
        } else {
            let entries = self.store.derived().sort(ENTRIES, first.into_iter().chain(source.by_ref()));
            source.check()?;
            let chunks = source.chunks.rows.iter().map(|row| self.chunk_record(row));
            Records::Files { entries: entries?, chunks: self.store.derived().sort(CHUNKS, chunks)? }
        };
        let Chunks { rows, next_place, .. } = source.chunks;
        Ok(Rebuild { index: self, records, rows, places: (first_place, next_place) })
    }

    fn chunk_record(&self, row: &Row) -> Record {
        (self.layout.chunk_key(&row.fence), self.layout.chunk_value(row.place, row.count, &row.sums))
    }
}

impl Rebuild<'_> {
    /// Makes several indexes of one store what was prepared, standing at change number `reached`, and brings `beside`
    /// in with them. Readers see the old indexes until all are complete.
    ///
    /// # Errors
    /// [`IndexError::Unsupported`] if an index comes twice or was changed since; nothing was changed then.
    /// [`IndexError::Store`]: the indexes are empty and at change number 0, and `beside` may be in.
    pub fn all(
        store: &Store,
        mut rebuilds: Vec<Rebuild<'_>>,
        beside: Vec<SortedFiles>,
        reached: u64,
    ) -> Result<(), IndexError> {
        // In one order for all, so that nobody waits for somebody who waits for him.
        rebuilds.sort_by_key(|rebuild| rebuild.index.layout.id);
        let same =
            |pair: &[Rebuild<'_>]| matches!(pair, [one, next] if one.index.layout.id == next.index.layout.id);
        if rebuilds.windows(2).any(same) {
            return Err(IndexError::Unsupported { what: "two rebuilds of one index at once" });
        }
        let mut held: Vec<_> = rebuilds.iter().map(|rebuild| rebuild.index.writer.lock()).collect();
        if rebuilds.iter().any(|rebuild| rebuild.index.next_place() != rebuild.places.0) {
            return Err(IndexError::Unsupported { what: "a change between the two parts of a rebuild" });
        }
        let snapshot = store.snapshot();
        let indexes: Vec<&Index> = rebuilds.iter().map(|rebuild| rebuild.index).collect();
        let published: Vec<Published> = indexes.iter().map(|index| index.freeze_at(&snapshot)).collect();
        let built = write(store, rebuilds, &published, beside, reached);
        held.iter_mut().for_each(|recent| **recent = Recent::default());
        match built {
            Ok(built) => {
                indexes.iter().zip(built).for_each(|(index, (tree, state))| index.publish(tree, state));
                Ok(())
            }
            Err(error) => {
                for index in indexes {
                    index.reductions.clear();
                    let cleared = Index::drop_index(store, index.layout.id);
                    index.publish(Tree::build(&[], index.layout.columns), IndexState::default());
                    cleared?;
                }
                Err(error)
            }
        }
    }
}

fn write(
    store: &Store,
    rebuilds: Vec<Rebuild<'_>>,
    published: &[Published],
    beside: Vec<SortedFiles>,
    reached: u64,
) -> Result<Vec<(Tree, IndexState)>, IndexError> {
    let (mut before, mut batch, mut files, mut built) = (Batch::new(), Batch::new(), beside, Vec::new());
    for (Rebuild { index, records, rows, places }, published) in rebuilds.into_iter().zip(published) {
        let layout = index.layout;
        match records {
            Records::Few(records) => {
                if published.state != IndexState::default() {
                    remove_all(&mut batch, layout.id);
                }
                let entries = records.len().checked_sub(rows.len());
                let entries = entries.ok_or_else(|| never!("each chunk of a rebuild has its record"))?;
                let (entries, chunks) = records.split_at(entries);
                check_count(entries.len() as u64, &rows)?;
                entries.iter().for_each(|(key, value)| batch.put(ENTRIES, key, value));
                chunks.iter().for_each(|(key, value)| batch.put(CHUNKS, key, value));
            }
            Records::Files { entries, chunks } => {
                check_count(entries.entries(), &rows)?;
                remove_all(&mut before, layout.id);
                files.extend([entries, chunks]);
            }
        }
        let tree = Tree::build(&rows, layout.columns);
        let state = IndexState { next_place: places.1, reached, entries: tree.count(), packs: (0, 0) };
        layout.put_state(&mut batch, state);
        built.push((tree, state));
    }
    store.derived().write(before)?;
    store.derived().bring_in(files)?;
    // Comes last: until then there is no index, whatever its families hold.
    store.derived().write(batch)?;
    Ok(built)
}

/// The chunks hold the entries that are written, and no others.
fn check_count(entries: u64, rows: &[Row]) -> Result<(), Fault> {
    let counted: u64 = rows.iter().map(|row| row.count).sum();
    always!(entries == counted, "the chunks of a rebuild count its entries", "{entries}, {counted} counted")
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
        let number = match self.rows.last_mut().filter(|row| row.count < CHUNK.cut as u64) {
            Some(row) => {
                row.count += 1;
                add_all(&mut row.sums, &sums);
                row.place.number
            }
            None => {
                let number = self.next_place;
                self.next_place = number.checked_add(1)?;
                let fence = self.last.as_ref().map(|last| separator(last, key)).unwrap_or_default();
                self.rows.push(Row { fence, place: ChunkPlace { number, debris: 0 }, count: 1, sums });
                number
            }
        };
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        Some(number)
    }
}
