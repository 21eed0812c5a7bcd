//! An index as it stood at one moment.

use std::sync::Arc;

use scrinium_store::{Direction, ScanOptions, Snapshot};

use crate::format::{ENTRIES, Layout, STATE, key_range, read_sums};
use crate::node::Row;
use crate::recent::Recent;
use crate::reduce::Reductions;
use crate::sum::{Sum, add_all};
use crate::tree::{Chunk, Tree};
use crate::{Cursor, IndexError};

/// An index as it stood at one moment: the entries in a snapshot of the store, and the counted tree over them. Clones
/// share it. It should not be kept for hours, for the snapshot's sake.
#[derive(Clone, Debug)]
pub struct Reader {
    contents: Arc<Contents>,
    reached: u64,
}

/// A snapshot and the tree that describes it.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) layout: Layout,
    pub(crate) snapshot: Snapshot,
    pub(crate) tree: Tree,
    pub(crate) reductions: Arc<Reductions>,
}

/// What [`Reader::check`] found in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Number of entries.
    pub entries: u64,
    /// Number of chunk records.
    pub chunks: u64,
    /// Number of removed entries whose marks reads have to pass; at most as many as there are entries, and 64 a chunk.
    pub debris: u64,
}

impl Reader {
    pub(crate) fn new(contents: Contents, reached: u64) -> Self {
        Self { contents: Arc::new(contents), reached }
    }

    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The change number that the index had reached.
    #[must_use]
    pub fn reached(&self) -> u64 {
        self.reached
    }

    /// The store as it stood when the index did so.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.contents.snapshot
    }

    /// Number of entries. O(1).
    #[must_use]
    pub fn len(&self) -> u64 {
        self.contents.tree.count()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sums of all entries, column by column. O(1).
    #[must_use]
    pub fn sums(&self) -> Vec<f64> {
        self.contents.tree.sums().into_iter().map(Sum::value).collect()
    }

    /// A cursor whose first entry is number `n`, counted from 0; it continues to the end. Nothing if there are not so
    /// many. O(log n).
    ///
    /// # Errors
    /// [`IndexError::Store`], [`IndexError::Damaged`]; so everywhere below.
    pub fn nth(&self, n: u64) -> Result<Cursor<'_>, IndexError> {
        self.starting_at(n, &[], None)
    }

    /// Number of entries before `key`, whether or not there is an entry at `key`. O(log n).
    ///
    /// # Errors
    /// As [`nth`](Self::nth).
    pub fn position(&self, key: &[u8]) -> Result<u64, IndexError> {
        let Some(chunk) = self.contents.tree.chunk_of(key) else { return Ok(0) };
        let mut position = chunk.before;
        self.each_before(&chunk, key, |_| position += 1)?;
        Ok(position)
    }

    /// Number of entries from `from` up to, not including, `to`; `None` is the end. O(log n).
    ///
    /// # Errors
    /// As [`nth`](Self::nth).
    pub fn count_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<u64, IndexError> {
        let end = to.map_or_else(|| Ok(self.len()), |to| self.position(to))?;
        Ok(end.saturating_sub(self.position(from)?))
    }

    /// Sums of the entries from `from` up to, not including, `to`; `None` is the end. O(log n).
    ///
    /// # Errors
    /// As [`nth`](Self::nth).
    pub fn sums_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<Vec<f64>, IndexError> {
        if to.is_some_and(|to| to <= from) {
            return Ok(vec![0.0; self.contents.layout.columns]);
        }
        let end = to.map_or_else(|| Ok(self.contents.tree.sums()), |to| self.sums_before(to))?;
        let start = self.sums_before(from)?;
        Ok(end.into_iter().zip(start).map(|(end, start)| end.minus(start).value()).collect())
    }

    fn sums_before(&self, key: &[u8]) -> Result<Vec<Sum>, IndexError> {
        let Some((chunk, mut sums)) = self.contents.tree.chunk_and_sums(key) else {
            return Ok(vec![Sum::default(); self.contents.layout.columns]);
        };
        self.each_before(&chunk, key, |entry| {
            sums.iter_mut()
                .zip(read_sums(entry))
                .for_each(|(sum, of_entry)| *sum = sum.plus(Sum::of(of_entry)));
        })?;
        Ok(sums)
    }

    /// Calls `take` with the sums of each entry of the chunk that is before `key`.
    fn each_before(
        &self,
        chunk: &Chunk<'_>,
        key: &[u8],
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), IndexError> {
        let layout = self.contents.layout;
        let range = layout.entry_range(chunk.place.number, &[], Some(key));
        let mut cursor = self.contents.snapshot.cursor(ENTRIES, key_range(&range), Direction::Forward);
        while let Some((_, value)) = cursor.next()? {
            take(layout.split_entry(value)?.0);
        }
        Ok(())
    }

    /// A cursor over the entries from `from` up to, not including, `to` (`None`: the end), in either direction, that
    /// leaves out the first `skip` on its way. O(log n), however much is skipped.
    ///
    /// # Errors
    /// As [`nth`](Self::nth).
    pub fn cursor(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        direction: Direction,
        skip: u64,
    ) -> Result<Cursor<'_>, IndexError> {
        let contents = self.contents.as_ref();
        if skip == 0 {
            return Ok(Cursor::new(contents, from, to, direction));
        }
        if direction == Direction::Forward {
            return self.starting_at(self.position(from)?.saturating_add(skip), from, to);
        }
        let end = to.map_or_else(|| Ok(self.len()), |to| self.position(to))?;
        let number = end.checked_sub(skip).and_then(|end| end.checked_sub(1));
        let mut start = match number {
            Some(number) => self.starting_at(number, &[], None)?,
            None => Cursor::ended(contents, direction),
        };
        match start.next()? {
            Some(entry) if entry.key >= from => {
                let mut cursor = Cursor::new(contents, from, to, direction);
                cursor.seek(entry.key);
                Ok(cursor)
            }
            _ => Ok(Cursor::ended(contents, direction)),
        }
    }

    /// A cursor whose first entry is number `number` of the whole index, which is in the given range or behind it.
    fn starting_at(&self, number: u64, from: &[u8], to: Option<&[u8]>) -> Result<Cursor<'_>, IndexError> {
        let contents = self.contents.as_ref();
        let Some(chunk) = contents.tree.chunk_with(number) else {
            return Ok(Cursor::ended(contents, Direction::Forward));
        };
        let mut cursor = Cursor::new(contents, chunk.fence, to, Direction::Forward);
        for _ in chunk.before..number {
            cursor.step()?;
        }
        cursor.begin_at(from);
        Ok(cursor)
    }

    /// Reads everything and compares: chunk records with the tree in memory, and their counts and sums with the
    /// entries. O(n), for maintenance.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] for what does not fit, [`IndexError::Store`].
    pub fn check(&self) -> Result<Checked, IndexError> {
        self.check_each(|_, _, _| {})
    }

    /// As [`check`](Self::check); calls `each` with the key, the sums and the value of each entry on the way. Blocks that
    /// are read do not stay in memory.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_each(&self, mut each: impl FnMut(&[u8], &[f64], &[u8])) -> Result<Checked, IndexError> {
        let Contents { layout, snapshot, tree, .. } = self.contents.as_ref();
        let all = layout.whole_range();
        let state = snapshot.get(STATE, &layout.id.to_be_bytes())?;
        let packs = state.map_or(Ok((0, 0)), |state| layout.read_state(&state).map(|state| state.packs))?;
        let mut records = Recent::read(layout, snapshot, packs)?.1.into_iter();
        let mut checked = Checked { entries: 0, chunks: 0, debris: 0 };
        for chunk in tree.chunks() {
            let record = records.next().ok_or_else(|| layout.damaged("a chunk record is missing"))?;
            if record != chunk {
                return Err(layout.damaged("a chunk record differs from what is in memory"));
            }
            self.check_chunk(&chunk, &mut each)?;
            checked.entries += chunk.count;
            checked.chunks += 1;
            checked.debris += u64::from(chunk.place.debris);
        }
        let mut entries =
            snapshot.cursor_with(ENTRIES, key_range(&all), ScanOptions::long(Direction::Forward));
        let mut found = 0;
        while entries.next()?.is_some() {
            found += 1;
        }
        if tree.chunk_count() as u64 != checked.chunks {
            return Err(layout.damaged("its chunks in memory were miscounted"));
        }
        if records.next().is_some() || found != checked.entries {
            return Err(layout.damaged("there are records beyond its chunks"));
        }
        Ok(checked)
    }

    fn check_chunk(
        &self,
        chunk: &Row,
        each: &mut impl FnMut(&[u8], &[f64], &[u8]),
    ) -> Result<(), IndexError> {
        let layout = self.contents.layout;
        let range = layout.entry_range(chunk.place.number, &[], None);
        let next = self.contents.tree.chunk_of(&chunk.fence).and_then(|chunk| chunk.next);
        let options = ScanOptions { fill_cache: false, ..ScanOptions::default() };
        let mut entries = self.contents.snapshot.cursor_with(ENTRIES, key_range(&range), options);
        let mut sums = vec![Sum::default(); layout.columns];
        let mut sizes = vec![0.0; layout.columns];
        let mut count = 0;
        while let Some((key, value)) = entries.next()? {
            let key = layout.strip(key);
            if key < chunk.fence.as_slice() || next.is_some_and(|next| key >= next) {
                return Err(layout.damaged("an entry is in another chunk's place"));
            }
            count += 1;
            let (of_entry, value) = layout.split_entry(value)?;
            let of_entry: Vec<f64> = read_sums(of_entry).collect();
            each(key, &of_entry, value);
            let of_entry: Vec<Sum> = of_entry.into_iter().map(Sum::of).collect();
            add_all(&mut sums, &of_entry);
            sizes.iter_mut().zip(&of_entry).for_each(|(size, sum)| *size += sum.value().abs());
        }
        if count != chunk.count {
            return Err(layout.damaged("a chunk's count differs from its entries"));
        }
        let off = sums.iter().zip(&chunk.sums).map(|(sum, kept)| sum.minus(*kept).value().abs());
        if off.zip(sizes).any(|(off, size)| off > (size + 1.0) * 1e-12) {
            return Err(layout.damaged("a chunk's sums differ from its entries"));
        }
        Ok(())
    }
}
