//! Changes of entries turned into changes of chunks, and both into one batch.

use std::collections::BTreeSet;

use scrinium_assertion::never;
use scrinium_store::{Batch, Snapshot};

use crate::format::{Layout, read_sums};
use crate::node::{CHUNK, ChunkPlace, Row};
use crate::overlay::{OverlaidEntry, Overlay};
use crate::recent::{Packed, Recent};
use crate::sum::{Sum, add_all};
use crate::tree::Tree;
use crate::{IndexError, KEY_BYTES_MAX};

/// What an entry adds to each summed column. Missing columns count as 0, as does what is not finite.
pub type Sums = Vec<f64>;

/// One change of the entries of an index.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Adds an entry that is not there.
    Insert {
        /// Its place; unique.
        key: Vec<u8>,
        /// What is kept with it.
        value: Vec<u8>,
        /// What it adds to the sums.
        sums: Sums,
    },
    /// Takes an entry away that is there.
    Remove {
        /// Its place.
        key: Vec<u8>,
        /// What it had added to the sums.
        sums: Sums,
    },
}

impl Change {
    fn key(&self) -> &[u8] {
        match self {
            Self::Insert { key, .. } | Self::Remove { key, .. } => key,
        }
    }
}

/// All changes of one key together.
pub(crate) struct Net {
    pub(crate) key: Vec<u8>,
    /// -1, 0 or 1.
    count: i64,
    added: Vec<Sum>,
    /// The entry as it will be.
    entry: Option<(Vec<u8>, Sums)>,
}

/// Joins the changes of each key, in ascending order of keys; several of one key take effect in their order.
pub(crate) fn net(mut changes: Vec<Change>, columns: usize) -> Result<Vec<Net>, IndexError> {
    let too_long = |change: &&Change| change.key().len() > KEY_BYTES_MAX;
    if let Some(change) = changes.iter().find(too_long) {
        return Err(IndexError::KeyTooLong { bytes: change.key().len() });
    }
    changes.sort_by(|left, right| left.key().cmp(right.key()));
    let mut nets: Vec<Net> = Vec::with_capacity(changes.len());
    for change in changes {
        let same = nets.pop_if(|net| net.key == change.key());
        nets.push(match (same, change) {
            (None, Change::Insert { key, value, sums }) => {
                let added = columns_of(&sums, columns).collect();
                Net { key, count: 1, added, entry: Some((value, sums)) }
            }
            (None, Change::Remove { key, sums }) => {
                let added = columns_of(&sums, columns).map(|sum| Sum::default().minus(sum)).collect();
                Net { key, count: -1, added, entry: None }
            }
            (Some(net), Change::Insert { value, sums, .. }) => net.put(value, sums, columns),
            (Some(net), Change::Remove { .. }) => net.removed(columns),
        });
    }
    Ok(nets)
}

impl Net {
    fn put(self, value: Vec<u8>, sums: Sums, columns: usize) -> Self {
        let mut net = self.removed(columns);
        net.count += 1;
        add_all(&mut net.added, &columns_of(&sums, columns).collect::<Vec<_>>());
        net.entry = Some((value, sums));
        net
    }

    /// Takes back the entry that an earlier change of the same batch put.
    fn removed(mut self, columns: usize) -> Self {
        if let Some((_, sums)) = self.entry.take() {
            self.count -= 1;
            for (added, sum) in self.added.iter_mut().zip(columns_of(&sums, columns)) {
                *added = added.minus(sum);
            }
        }
        self
    }
}

fn columns_of(sums: &[f64], columns: usize) -> impl Iterator<Item = Sum> + '_ {
    (0..columns).map(|column| Sum::of(sums.get(column).copied().unwrap_or_default()))
}

/// Works out how the chunks of a tree change, and with them the entries' places.
pub(crate) struct Plan<'a> {
    layout: Layout,
    entries: Overlay<'a>,
    tree: Tree,
    next_place: u32,
    /// Lower bounds of the chunks that change, come or go.
    touched: BTreeSet<Vec<u8>>,
}

impl<'a> Plan<'a> {
    /// `snapshot` must be the one that `tree` describes.
    pub(crate) fn new(layout: Layout, snapshot: &'a Snapshot, tree: Tree, next_place: u32) -> Self {
        let entries = Overlay::new(layout, snapshot);
        Self { layout, entries, tree, next_place, touched: BTreeSet::new() }
    }

    /// Adds the changes to the batch; the tree, the next place and the packs as they will be.
    pub(crate) fn carry_out(
        mut self,
        nets: &[Net],
        recent: &Recent,
        batch: &mut Batch,
    ) -> Result<(Tree, u32, Packed), IndexError> {
        let mut nets = nets.iter().peekable();
        while let Some(first) = nets.next() {
            let chunk = self.tree.chunk_of(&first.key);
            let next = chunk.as_ref().and_then(|chunk| chunk.next).map(<[u8]>::to_vec);
            let mut row = match chunk {
                Some(chunk) => chunk.to_row(),
                None => self.first_chunk()?,
            };
            let mut doubtful = self.apply(&mut row, first);
            while let Some(net) = nets.next_if(|net| next.as_ref().is_none_or(|next| net.key < *next)) {
                doubtful |= self.apply(&mut row, net);
            }
            if row.count > CHUNK.full as u64 || is_littered(&row) || doubtful {
                self.recut(&row)?;
            } else {
                self.replace(&row.fence.clone(), &[row]);
            }
        }
        self.join_sparse_chunks()?;
        self.entries.write(batch);
        let touched = std::mem::take(&mut self.touched).into_iter();
        let packed = recent.write(&self.layout, self.entries.snapshot(), &self.tree, touched, batch)?;
        Ok((self.tree, self.next_place, packed))
    }

    fn first_chunk(&mut self) -> Result<Row, IndexError> {
        let place = ChunkPlace { number: self.take_place()?, debris: 0 };
        Ok(Row { fence: Vec::new(), place, count: 0, sums: vec![Sum::default(); self.layout.columns] })
    }

    fn take_place(&mut self) -> Result<u32, IndexError> {
        let place = self.next_place;
        self.next_place =
            place.checked_add(1).ok_or_else(|| self.layout.damaged("it has used up its places"))?;
        Ok(place)
    }

    fn replace(&mut self, fence: &[u8], rows: &[Row]) {
        self.tree.replace(fence, rows);
        self.touched.extend(rows.iter().map(|row| row.fence.clone()));
        self.touched.insert(fence.to_vec());
    }

    /// Makes one change within a chunk; `true` if its sums must be added up afresh.
    fn apply(&mut self, row: &mut Row, net: &Net) -> bool {
        let (mut doubtful, place) = (false, row.place.number);
        row.count = row.count.saturating_add_signed(net.count);
        for (sum, added) in row.sums.iter_mut().zip(&net.added) {
            doubtful |= sum.is_doubtful_after(*added);
            *sum = sum.plus(*added);
            doubtful |= sum.is_doubtful_after(*added);
        }
        row.place.debris = row.place.debris.saturating_add(u32::from(net.count < 1));
        match &net.entry {
            Some((value, sums)) => self.entries.put(place, &net.key, self.layout.entry_value(sums, value)),
            None => self.entries.delete(place, &net.key),
        }
        doubtful
    }

    /// Divides the entries of a chunk evenly among as many chunks as they fill, which is often one. The first stays
    /// in its place unless that is littered.
    fn recut(&mut self, row: &Row) -> Result<(), IndexError> {
        let entries = self.entries.of_place(row.place.number)?;
        let columns = self.layout.columns;
        let mut place = row.place;
        let staying = CHUNK.parts(entries.len()).next().map_or(0, |part| part.len());
        let leaving = u32::try_from(entries.len() - staying).unwrap_or(u32::MAX);
        place.debris = place.debris.saturating_add(leaving);
        let stay = !is_littered(&Row { count: staying as u64, place, ..row.clone() });
        let mut rows: Vec<Row> = Vec::new();
        let mut last: Option<&OverlaidEntry> = None;
        for range in CHUNK.parts(entries.len()) {
            let part = entries.get(range);
            let part = part.ok_or_else(|| never!("the parts of the entries lie within them"))?;
            let fence = match (last, part.first()) {
                (Some(last), Some(first)) => separator(&last.key, &first.key),
                _ => row.fence.clone(),
            };
            let mut new = Row { fence, place, count: part.len() as u64, sums: vec![Sum::default(); columns] };
            if !rows.is_empty() || !stay {
                new.place = ChunkPlace { number: self.take_place()?, debris: 0 };
                part.iter().for_each(|found| self.entries.move_to(place.number, new.place.number, found));
            }
            for found in part {
                let (sums, _) = self.layout.split_entry(&found.value)?;
                add_all(&mut new.sums, &read_sums(sums).map(Sum::of).collect::<Vec<_>>());
            }
            rows.push(new);
            last = part.last();
        }
        self.replace(&row.fence, &rows);
        Ok(())
    }

    /// Joins chunks that have become small with a neighbour, and drops the chunk of an empty index.
    fn join_sparse_chunks(&mut self) -> Result<(), IndexError> {
        for fence in self.touched.clone() {
            let mut at = Some(fence);
            while let Some(fence) = at.take() {
                let Some(chunk) = self.tree.chunk_of(&fence).filter(|chunk| chunk.fence == fence) else {
                    break;
                };
                if chunk.count >= CHUNK.sparse as u64 {
                    break;
                }
                let right = chunk.next.and_then(|next| self.tree.chunk_of(next)).map(|right| right.to_row());
                let left = self.tree.chunk_before(&fence).map(|left| left.to_row());
                let chunk = chunk.to_row();
                at = match (left, right) {
                    (_, Some(right)) if fit(&chunk, &right) => Some(self.join(chunk, &right)?),
                    (Some(left), _) if fit(&left, &chunk) => Some(self.join(left, &chunk)?),
                    (None, None) if chunk.count == 0 => {
                        self.replace(&fence, &[]);
                        None
                    }
                    _ => None,
                };
            }
        }
        Ok(())
    }

    /// Moves the entries of the smaller chunk to the place of the larger one.
    fn join(&mut self, mut left: Row, right: &Row) -> Result<Vec<u8>, IndexError> {
        let (from, to) = if left.count < right.count { (&left, right) } else { (right, &left) };
        if from.count > 0 {
            for found in self.entries.of_place(from.place.number)? {
                self.entries.move_to(from.place.number, to.place.number, &found);
            }
        }
        left.place = to.place;
        left.count += right.count;
        add_all(&mut left.sums, &right.sums);
        self.replace(&right.fence, &[]);
        self.replace(&left.fence, std::slice::from_ref(&left));
        Ok(left.fence)
    }
}

fn fit(left: &Row, right: &Row) -> bool {
    left.count + right.count < CHUNK.joined as u64 || left.count == 0 || right.count == 0
}

/// Whether reads of the chunk pass so much debris that it should move to a new place.
fn is_littered(row: &Row) -> bool {
    u64::from(row.place.debris) > row.count + 64
}

/// The shortest key that is above `left` and not above `right`.
pub(crate) fn separator(left: &[u8], right: &[u8]) -> Vec<u8> {
    let same = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    right.get(..=same).unwrap_or(right).to_vec()
}
