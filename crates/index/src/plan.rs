//! Changes of entries turned into changes of chunks, and both into one batch.

use std::collections::BTreeSet;

use scrinium_store::{Batch, Direction, Snapshot};

use crate::format::{CHUNKS, ENTRIES, Layout, key_range, read_sums};
use crate::node::{FULL, ROOMY, Row, SPARSE, parts};
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
    key: Vec<u8>,
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

type KeyAndSums = (Vec<u8>, Vec<Sum>);

/// Works out how the chunks of a tree change.
pub(crate) struct Plan<'a> {
    layout: Layout,
    snapshot: &'a Snapshot,
    tree: Tree,
    /// Lower bounds of the chunks that change, come or go.
    touched: BTreeSet<Vec<u8>>,
}

impl<'a> Plan<'a> {
    /// `snapshot` must be the one that `tree` describes.
    pub(crate) fn new(layout: Layout, snapshot: &'a Snapshot, tree: Tree) -> Self {
        Self { layout, snapshot, tree, touched: BTreeSet::new() }
    }

    /// Adds the changes to the batch and returns the tree as it will be.
    pub(crate) fn carry_out(mut self, nets: &[Net], batch: &mut Batch) -> Result<Tree, IndexError> {
        let mut rest = nets;
        while let Some(first) = rest.first() {
            let chunk = self.tree.chunk_of(&first.key);
            let next = chunk.as_ref().and_then(|chunk| chunk.next).map(<[u8]>::to_vec);
            let row = chunk.map_or_else(|| self.first_chunk(), |chunk| chunk.to_row());
            let length = next.as_ref().map_or(rest.len(), |next| rest.partition_point(|net| net.key < *next));
            let (group, others) = rest.split_at_checked(length.max(1)).unwrap_or((rest, &[]));
            self.change_chunk(row, next.as_deref(), group)?;
            rest = others;
        }
        self.join_sparse_chunks();
        self.write(nets, batch);
        Ok(self.tree)
    }

    fn first_chunk(&self) -> Row {
        Row { fence: Vec::new(), count: 0, sums: vec![Sum::default(); self.layout.columns] }
    }

    fn change_chunk(&mut self, mut row: Row, next: Option<&[u8]>, group: &[Net]) -> Result<(), IndexError> {
        let fence = row.fence.clone();
        let mut doubtful = false;
        for net in group {
            row.count = row.count.saturating_add_signed(net.count);
            let before = row.sums.clone();
            add_all(&mut row.sums, &net.added);
            let mut sums = row.sums.iter().chain(&before).zip(net.added.iter().chain(&net.added));
            doubtful |= sums.any(|(sum, added)| sum.is_doubtful_after(*added));
        }
        let rows = if row.count > FULL as u64 || doubtful {
            let entries = self.entries_after(&fence, next, group)?;
            cut(&fence, &entries, self.layout.columns)
        } else {
            vec![row]
        };
        self.tree.replace(&fence, &rows);
        self.touched.extend(rows.into_iter().map(|row| row.fence));
        self.touched.insert(fence);
        Ok(())
    }

    /// The keys and sums of a chunk's entries as they will be.
    fn entries_after(
        &self,
        fence: &[u8],
        next: Option<&[u8]>,
        group: &[Net],
    ) -> Result<Vec<KeyAndSums>, IndexError> {
        let columns = self.layout.columns;
        let mut entries = Vec::with_capacity(group.len() + FULL);
        let mut changed = group.iter().peekable();
        let put = |entries: &mut Vec<_>, net: &Net| {
            if let Some((_, sums)) = &net.entry {
                entries.push((net.key.clone(), columns_of(sums, columns).collect()));
            }
        };
        let range = self.layout.range(fence, next);
        let mut cursor = self.snapshot.cursor(ENTRIES, key_range(&range), Direction::Forward);
        while let Some((full_key, value)) = cursor.next()? {
            let key = self.layout.strip(full_key);
            while let Some(net) = changed.next_if(|net| net.key.as_slice() < key) {
                put(&mut entries, net);
            }
            if let Some(net) = changed.next_if(|net| net.key == key) {
                put(&mut entries, net);
            } else {
                let (sums, _) = self.layout.split_entry(value)?;
                entries.push((key.to_vec(), read_sums(sums).map(Sum::of).collect()));
            }
        }
        changed.for_each(|net| put(&mut entries, net));
        Ok(entries)
    }

    /// Joins chunks that have become small with a neighbour, and drops the chunk of an empty index.
    fn join_sparse_chunks(&mut self) {
        for fence in self.touched.clone() {
            let mut at = Some(fence);
            while let Some(fence) = at.take() {
                let Some(chunk) = self.tree.chunk_of(&fence).filter(|chunk| chunk.fence == fence) else {
                    break;
                };
                if chunk.count >= SPARSE as u64 {
                    break;
                }
                let right = chunk.next.and_then(|next| self.tree.chunk_of(next)).map(|right| right.to_row());
                let chunk = chunk.to_row();
                let left = self.tree.chunk_before(&fence);
                at = match (left, right) {
                    (_, Some(right)) if fit(&chunk, &right) => Some(self.join(chunk, &right)),
                    (Some(left), _) if fit(&left, &chunk) => Some(self.join(left, &chunk)),
                    (None, None) if chunk.count == 0 => {
                        self.tree.replace(&fence, &[]);
                        None
                    }
                    _ => None,
                };
            }
        }
    }

    fn join(&mut self, mut left: Row, right: &Row) -> Vec<u8> {
        left.count += right.count;
        add_all(&mut left.sums, &right.sums);
        self.tree.replace(&right.fence, &[]);
        self.tree.replace(&left.fence, std::slice::from_ref(&left));
        self.touched.insert(right.fence.clone());
        self.touched.insert(left.fence.clone());
        left.fence
    }

    fn write(&self, nets: &[Net], batch: &mut Batch) {
        for net in nets {
            let key = self.layout.key(&net.key);
            match &net.entry {
                Some((value, sums)) => batch.put(ENTRIES, &key, &self.layout.entry_value(sums, value)),
                None => batch.delete(ENTRIES, &key),
            }
        }
        for fence in &self.touched {
            let key = self.layout.key(fence);
            match self.tree.chunk_of(fence).filter(|chunk| chunk.fence == fence) {
                Some(chunk) => batch.put(CHUNKS, &key, &self.layout.chunk_value(chunk.count, chunk.sums)),
                None => batch.delete(CHUNKS, &key),
            }
        }
    }
}

fn fit(left: &Row, right: &Row) -> bool {
    left.count + right.count < ROOMY as u64 || left.count == 0 || right.count == 0
}

/// Chunks of about equal size over the entries, the first of which begins at `fence`.
fn cut(fence: &[u8], entries: &[KeyAndSums], columns: usize) -> Vec<Row> {
    let mut last: Option<&[u8]> = None;
    let mut rows = Vec::new();
    for range in parts(entries.len()) {
        let part = entries.get(range).unwrap_or_default();
        let first = part.first().map(|(key, _)| key.as_slice());
        let fence = match (last, first) {
            (Some(last), Some(first)) => separator(last, first),
            _ => fence.to_vec(),
        };
        let mut row = Row { fence, count: part.len() as u64, sums: vec![Sum::default(); columns] };
        part.iter().for_each(|(_, sums)| add_all(&mut row.sums, sums));
        rows.push(row);
        last = part.last().map(|(key, _)| key.as_slice());
    }
    rows
}

/// The shortest key that is above `left` and not above `right`.
pub(crate) fn separator(left: &[u8], right: &[u8]) -> Vec<u8> {
    let same = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    right.get(..=same).unwrap_or(right).to_vec()
}
