//! One node of the tree over the chunks: rows of lower bound, count and sums, side by side in memory.

use std::sync::{Arc, OnceLock};

use scrinium_assertion::never;

use crate::sum::{Sum, add_all};

/// How many rows a node has, or a chunk entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// With more it is cut.
    pub(crate) full: usize,
    /// What a cut leaves in each part, at most.
    pub(crate) cut: usize,
    /// With fewer it is joined to a neighbour, if both together stay below `joined`.
    pub(crate) sparse: usize,
    /// More than this is not joined, so that what was joined has room before it is cut again.
    pub(crate) joined: usize,
}

impl Bounds {
    /// Equal parts of at most `cut` of `length` rows or entries.
    pub(crate) fn parts(self, length: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
        let number = length.div_ceil(self.cut).max(1);
        (0..number).map(move |part| part * length / number..(part + 1) * length / number)
    }
}

pub(crate) const CHUNK: Bounds = Bounds { full: 128, cut: 64, sparse: 16, joined: 96 };
/// A change copies the nodes on its way, of each level one, so that these are smaller.
pub(crate) const NODE: Bounds = Bounds { full: 64, cut: 32, sparse: 8, joined: 48 };

/// A chunk, or the whole of a node: where it begins, how many entries it holds, and their sums.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) fence: Vec<u8>,
    pub(crate) place: ChunkPlace,
    pub(crate) count: u64,
    pub(crate) sums: Vec<Sum>,
}

/// Where the entries of a chunk lie in the store, and what else lies there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChunkPlace {
    /// Its number, never used twice in an index.
    pub(crate) number: u32,
    /// How many entries were removed from it, whose remains a cursor has to pass.
    pub(crate) debris: u32,
}

/// Rows of one node. Flat vectors, so that copying a node is a few copies of memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    fences: Vec<u8>,
    ends: Vec<usize>,
    places: Vec<ChunkPlace>,
    counts: Vec<u64>,
    sums: Vec<Sum>,
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }

    pub(crate) fn fence(&self, index: usize) -> Option<&[u8]> {
        let from = index.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before))?;
        self.fences.get(*from..*self.ends.get(index)?)
    }

    pub(crate) fn place(&self, index: usize) -> ChunkPlace {
        self.places.get(index).copied().unwrap_or_else(|| {
            never!("a row that is asked for is in its node", "row {index} of {}", self.len());
            ChunkPlace::default()
        })
    }

    pub(crate) fn count(&self, index: usize) -> u64 {
        self.counts.get(index).copied().unwrap_or_else(|| {
            never!("a row that is asked for is in its node", "row {index} of {}", self.len());
            0
        })
    }

    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    pub(crate) fn sums(&self, index: usize, columns: usize) -> &[Sum] {
        self.sums.get(index * columns..(index + 1) * columns).unwrap_or_else(|| {
            never!("a row has a sum for each column", "row {index} of {}", self.len());
            &[]
        })
    }

    fn push(&mut self, fence: &[u8], place: ChunkPlace, count: u64, sums: &[Sum]) {
        self.fences.extend_from_slice(fence);
        self.ends.push(self.fences.len());
        self.places.push(place);
        self.counts.push(count);
        self.sums.extend_from_slice(sums);
    }

    /// Takes over a row of another node.
    fn copy(&mut self, other: &Self, index: usize, columns: usize) {
        let Some(fence) = other.fence(index) else {
            never!("a row that is copied is in its node", "row {index} of {}", other.len());
            return;
        };
        self.push(fence, other.place(index), other.count(index), other.sums(index, columns));
    }

    /// Replaces the rows from `from` to `to` by others.
    pub(crate) fn splice(&mut self, from: usize, to: usize, rows: &[Row], columns: usize) {
        if let ([row], true) = (rows, to == from + 1)
            && self.fence(from) == Some(&row.fence)
        {
            let sums = self.sums.get_mut(from * columns..to * columns);
            let sums = sums.filter(|sums| sums.len() == row.sums.len());
            match (self.counts.get_mut(from), self.places.get_mut(from), sums) {
                (Some(count), Some(place), Some(sums)) => {
                    *count = row.count;
                    *place = row.place;
                    sums.copy_from_slice(&row.sums);
                }
                _ => {
                    never!("a row that is replaced has a count, a place and its sums", "row {from}");
                }
            }
            return;
        }
        let mut new = Self::default();
        (0..from).for_each(|index| new.copy(self, index, columns));
        rows.iter().for_each(|row| new.push(&row.fence, row.place, row.count, &row.sums));
        (to..self.len()).for_each(|index| new.copy(self, index, columns));
        *self = new;
    }

    fn debris(&self) -> u64 {
        self.places.iter().map(|place| u64::from(place.debris)).sum()
    }

    fn bytes(&self) -> usize {
        self.fences.capacity()
            + (self.ends.capacity() + self.places.capacity() + self.counts.capacity()) * 8
            + self.sums.capacity() * size_of::<Sum>()
    }
}

/// A node: a leaf has chunks as its rows, an inner node has a child for each row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) rows: Rows,
    pub(crate) children: Vec<Arc<Node>>,
    /// What the entries below come to, once somebody has asked. Anyone who changes a node empties it.
    pub(crate) reduction: OnceLock<Arc<[u8]>>,
}

impl Node {
    pub(crate) fn leaf(rows: &[Row], columns: usize) -> Self {
        let mut node = Self::default();
        node.rows.splice(0, 0, rows, columns);
        node
    }

    pub(crate) fn inner(children: Vec<Arc<Node>>, columns: usize) -> Self {
        let rows: Vec<Row> = children.iter().map(|child| child.whole(columns)).collect();
        let mut node = Self::leaf(&rows, columns);
        node.children = children;
        node
    }

    /// The row that stands for this node.
    pub(crate) fn whole(&self, columns: usize) -> Row {
        let mut sums = vec![Sum::default(); columns];
        (0..self.rows.len()).for_each(|index| add_all(&mut sums, self.rows.sums(index, columns)));
        let fence = self.rows.fence(0).unwrap_or_default().to_vec();
        Row { fence, place: ChunkPlace::default(), count: self.rows.counts().iter().sum(), sums }
    }

    /// The last row that begins at or before `key`.
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        self.last(|fence| fence <= key)
    }

    /// The last row that begins before `key`.
    pub(crate) fn find_below(&self, key: &[u8]) -> usize {
        self.last(|fence| fence < key)
    }

    fn last(&self, is_left: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.rows.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.rows.fence(middle).is_some_and(&is_left) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.saturating_sub(1)
    }

    /// Cuts the node into equal parts that have room.
    pub(crate) fn cut(&self, columns: usize) -> Vec<Arc<Self>> {
        let parts = NODE.parts(self.rows.len());
        parts.map(|range| Arc::new(self.part(range, columns))).collect()
    }

    fn part(&self, range: std::ops::Range<usize>, columns: usize) -> Self {
        let mut node = Self::default();
        range.clone().for_each(|index| node.rows.copy(&self.rows, index, columns));
        if !self.children.is_empty() {
            match self.children.get(range) {
                Some(children) => node.children = children.to_vec(),
                None => {
                    never!("an inner node has a child for each row");
                }
            }
        }
        node
    }

    /// Takes over the rows of the node to the right.
    pub(crate) fn join(&mut self, right: &Self, columns: usize) {
        self.reduction = OnceLock::new();
        (0..right.rows.len()).for_each(|index| self.rows.copy(&right.rows, index, columns));
        self.children.extend_from_slice(&right.children);
    }

    /// Memory of the node and all below it, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let own = size_of::<Self>() + self.rows.bytes() + self.children.capacity() * size_of::<Arc<Self>>();
        own + self.children.iter().map(|child| child.bytes()).sum::<usize>()
    }

    /// Removed entries of the chunks below it. Only chunks have a place that entries can be removed from.
    pub(crate) fn debris(&self) -> u64 {
        self.rows.debris() + self.children.iter().map(|child| child.debris()).sum::<u64>()
    }
}
