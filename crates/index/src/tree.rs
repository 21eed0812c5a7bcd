//! The counted tree over the chunks of an index. Immutable once shared: a change copies the nodes on its way.

use std::sync::{Arc, OnceLock};

use scrinium_assertion::never;

use crate::node::{ChunkPlace, NODE, Node, Row};
use crate::sum::{Sum, add_all};

/// The tree; cloning it is cheap.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    root: Arc<Node>,
    columns: usize,
    chunks: usize,
}

/// A chunk as found in a tree.
#[derive(Clone, Debug)]
pub(crate) struct Chunk<'a> {
    /// Entries of the chunk are not below this.
    pub(crate) fence: &'a [u8],
    /// Entries of the chunk are below this; `None` for the last chunk.
    pub(crate) next: Option<&'a [u8]>,
    pub(crate) place: ChunkPlace,
    pub(crate) count: u64,
    pub(crate) sums: &'a [Sum],
    /// Number of entries in the chunks before it.
    pub(crate) before: u64,
}

impl Chunk<'_> {
    pub(crate) fn to_row(&self) -> Row {
        Row { fence: self.fence.to_vec(), place: self.place, count: self.count, sums: self.sums.to_vec() }
    }
}

impl Tree {
    /// The tree over chunks in ascending order. The first one's fence must be empty.
    pub(crate) fn build(chunks: &[Row], columns: usize) -> Self {
        let leaf = |range: std::ops::Range<usize>| {
            let rows = chunks.get(range).unwrap_or_else(|| {
                never!("the parts of the chunks lie within them");
                &[]
            });
            Arc::new(Node::leaf(rows, columns))
        };
        let leaves = NODE.parts(chunks.len()).map(leaf).collect();
        Self { root: grow(leaves, columns), columns, chunks: chunks.len() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.root.rows.len() == 0
    }

    /// Number of entries.
    pub(crate) fn count(&self) -> u64 {
        self.root.rows.counts().iter().sum()
    }

    /// Sums of all entries.
    pub(crate) fn sums(&self) -> Vec<Sum> {
        self.root.whole(self.columns).sums
    }

    /// Memory in bytes, counted node by node.
    pub(crate) fn bytes(&self) -> usize {
        self.root.bytes()
    }

    /// Removed entries, chunk by chunk.
    pub(crate) fn debris(&self) -> u64 {
        self.root.debris()
    }

    /// The chunk that a key belongs to; `None` if there are no chunks.
    pub(crate) fn chunk_of(&self, key: &[u8]) -> Option<Chunk<'_>> {
        self.descend(|node| node.find(key), |_, _| {})
    }

    /// As [`chunk_of`](Self::chunk_of), with the sums of all chunks before it.
    pub(crate) fn chunk_and_sums(&self, key: &[u8]) -> Option<(Chunk<'_>, Vec<Sum>)> {
        let mut sums = vec![Sum::default(); self.columns];
        let chunk = self.descend(
            |node| node.find(key),
            |node, index| {
                (0..index).for_each(|before| add_all(&mut sums, node.rows.sums(before, self.columns)));
            },
        )?;
        Some((chunk, sums))
    }

    /// The chunk with entry number `number`; `None` if there are not this many.
    pub(crate) fn chunk_with(&self, number: u64) -> Option<Chunk<'_>> {
        let mut left = number;
        let choose = |node: &Node| {
            let mut index = 0;
            for count in node.rows.counts() {
                if left < *count {
                    break;
                }
                left -= count;
                index += 1;
            }
            index
        };
        if number < self.count() { self.descend(choose, |_, _| {}) } else { None }
    }

    /// The chunk to the left of the one that begins at `fence`.
    pub(crate) fn chunk_before(&self, fence: &[u8]) -> Option<Chunk<'_>> {
        self.descend(|node| node.find_below(fence), |_, _| {}).filter(|chunk| chunk.fence < fence)
    }

    fn descend<'a>(
        &'a self,
        mut choose: impl FnMut(&Node) -> usize,
        mut pass: impl FnMut(&Node, usize),
    ) -> Option<Chunk<'a>> {
        let (mut node, mut before, mut next) = (&self.root, 0, None);
        loop {
            let index = choose(node);
            pass(node, index);
            before += node.rows.counts().get(..index)?.iter().sum::<u64>();
            next = node.rows.fence(index + 1).or(next);
            match node.children.get(index) {
                Some(child) => node = child,
                None => {
                    let (fence, count) = (node.rows.fence(index)?, node.rows.count(index));
                    return Some(Chunk {
                        fence,
                        next,
                        place: node.rows.place(index),
                        count,
                        sums: node.rows.sums(index, self.columns),
                        before,
                    });
                }
            }
        }
    }

    /// Number of chunks.
    pub(crate) fn chunk_count(&self) -> usize {
        self.chunks
    }

    /// The parts of the tree that hold the entries from `from` up to `to`, in order and as large as can be.
    pub(crate) fn cover<'a>(&'a self, from: &[u8], to: Option<&[u8]>) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        if !self.is_empty() && to.is_none_or(|to| from < to) {
            cover_in(&self.root, None, from, to, self.columns, &mut parts);
        }
        parts
    }

    /// Replaces the chunk that begins at `fence` by `rows`, the first of which (if any) begins there too. A first
    /// chunk is simply added.
    pub(crate) fn replace(&mut self, fence: &[u8], rows: &[Row]) {
        let columns = self.columns;
        let there = replace_in(&mut self.root, fence, rows, columns);
        self.chunks = self.chunks.saturating_sub(usize::from(there)) + rows.len();
        if self.root.rows.len() > NODE.full {
            self.root = grow(self.root.cut(columns), columns);
        }
        while let ([child], 1) = (self.root.children.as_slice(), self.root.rows.len()) {
            self.root = Arc::clone(child);
        }
        if self.root.rows.len() == 0 {
            self.root = Arc::default();
        }
    }

    /// All chunks in order.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Row> {
        let mut next = (!self.is_empty()).then(Vec::new);
        std::iter::from_fn(move || {
            let chunk = self.chunk_of(&next.take()?)?;
            next = chunk.next.map(<[u8]>::to_vec);
            Some(chunk.to_row())
        })
    }
}

/// A part of a range of entries.
pub(crate) enum Part<'a> {
    /// All that lies below a node.
    Node(&'a Node),
    /// A chunk.
    Chunk(Chunk<'a>),
    /// A chunk of which some entries do not belong to the range.
    Edge(Chunk<'a>),
}

/// `next`: the fence behind the node. Recursion as deep as the tree.
fn cover_in<'a>(
    node: &'a Node,
    next: Option<&'a [u8]>,
    from: &[u8],
    to: Option<&[u8]>,
    columns: usize,
    parts: &mut Vec<Part<'a>>,
) {
    let ends_within = |next: Option<&[u8]>| to.is_none_or(|to| next.is_some_and(|next| next <= to));
    if node.rows.fence(0).is_some_and(|first| from <= first) && ends_within(next) {
        parts.push(Part::Node(node));
        return;
    }
    for row in 0..node.rows.len() {
        let Some(fence) = node.rows.fence(row) else {
            never!("each row of a node has a lower bound", "row {row} of {}", node.rows.len());
            return;
        };
        let behind = node.rows.fence(row + 1).or(next);
        if to.is_some_and(|to| fence >= to) {
            return;
        }
        if behind.is_some_and(|behind| behind <= from) {
            continue;
        }
        if let Some(child) = node.children.get(row) {
            cover_in(child, behind, from, to, columns, parts);
            continue;
        }
        let (place, count) = (node.rows.place(row), node.rows.count(row));
        let chunk =
            Chunk { fence, next: behind, place, count, sums: node.rows.sums(row, columns), before: 0 };
        let is_whole = from <= fence && ends_within(behind);
        parts.push(if is_whole { Part::Chunk(chunk) } else { Part::Edge(chunk) });
    }
}

/// Puts levels of inner nodes over the nodes until there is one.
fn grow(mut nodes: Vec<Arc<Node>>, columns: usize) -> Arc<Node> {
    while nodes.len() > 1 {
        let group = |range: std::ops::Range<usize>| {
            let children = nodes.get(range).unwrap_or_else(|| {
                never!("the parts of the nodes lie within them");
                &[]
            });
            Arc::new(Node::inner(children.to_vec(), columns))
        };
        nodes = NODE.parts(nodes.len()).map(group).collect();
    }
    nodes.pop().unwrap_or_else(|| {
        never!("a tree has a root, be it an empty one");
        Arc::default()
    })
}

/// Whether a chunk was there before. Recursion as deep as the tree, of which every level multiplies the entries by at
/// least sixteen or so.
fn replace_in(node: &mut Arc<Node>, fence: &[u8], rows: &[Row], columns: usize) -> bool {
    let node = Arc::make_mut(node);
    node.reduction = OnceLock::new();
    let index = node.find(fence);
    let Some(child) = node.children.get_mut(index) else {
        let there = node.rows.fence(index) == Some(fence);
        node.rows.splice(index, index + usize::from(there), rows, columns);
        return there;
    };
    let there = replace_in(child, fence, rows, columns);
    match child.rows.len() {
        0 => exchange(node, index, index + 1, Vec::new(), columns),
        length if length > NODE.full => {
            let parts = child.cut(columns);
            exchange(node, index, index + 1, parts, columns);
        }
        length if length < NODE.sparse && join_child(node, index, columns) => {}
        _ => refresh(node, index, columns),
    }
    there
}

/// Brings the row of a child up to date.
fn refresh(node: &mut Node, index: usize, columns: usize) {
    match node.children.get(index).map(|child| child.whole(columns)) {
        Some(whole) => node.rows.splice(index, index + 1, &[whole], columns),
        None => {
            never!("a child that was changed is there", "child {index}");
        }
    }
}

/// Joins a child with a neighbour if they are small enough together.
fn join_child(node: &mut Node, index: usize, columns: usize) -> bool {
    let length = |index: usize| node.children.get(index).map(|child| child.rows.len());
    let fits = |left: usize| Some(length(left)? + length(left + 1)? < NODE.joined);
    let left = match (fits(index), index.checked_sub(1).and_then(fits)) {
        (Some(true), _) => index,
        (_, Some(true)) => index - 1,
        _ => return false,
    };
    let (Some(first), Some(second)) = (node.children.get(left), node.children.get(left + 1)) else {
        never!("two children that fit together are there", "from child {left} on");
        return false;
    };
    let mut joined = Node::clone(first);
    joined.join(second, columns);
    exchange(node, left, left + 2, vec![Arc::new(joined)], columns);
    true
}

fn exchange(node: &mut Node, from: usize, to: usize, children: Vec<Arc<Node>>, columns: usize) {
    let rows: Vec<Row> = children.iter().map(|child| child.whole(columns)).collect();
    node.rows.splice(from, to, &rows, columns);
    node.children.splice(from..to, children);
}
