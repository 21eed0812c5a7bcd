//! Walking the ranges of a plan, bit by bit.

use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use scrinium_database::{DatabaseError, Result, keys};
use scrinium_mango::{Direction, IdRange, KeyRange};
use scrinium_store::{Direction as StoreDirection, Family, KeyRange as StoreRange, Snapshot};
use serde_json::Value;

use crate::collection::Collection;
use crate::definition::Definition;
use crate::entries::{StoredEntry, entry_key};
use crate::open::OpenDatabase;
use crate::text::TextWalk;

/// What a range holds: an entry of an index, or the record of a winner.
pub(crate) enum Candidate<'a> {
    Entry {
        id: &'a str,
        entry: &'a StoredEntry<'a>,
    },
    Record {
        id: &'a str,
        record: &'a [u8],
    },
    /// The record of one that words found, on the page that begins there.
    Hit {
        id: &'a str,
        record: &'a [u8],
        page: Option<&'a str>,
    },
}

/// Looks at a candidate; a break ends the walk behind it, and the next one continues from there.
pub(super) type Visit<'a> = &'a mut dyn FnMut(&Candidate<'_>) -> Result<ControlFlow<()>>;

/// What is walked.
pub(super) enum Walk {
    Index(Box<IndexWalk>),
    Documents(DocumentWalk),
    Text(Box<TextWalk>),
}

impl Walk {
    /// Visits one after the other until a break, or until nothing is left.
    pub(super) fn go_on(&mut self, visit: Visit<'_>) -> Result<ControlFlow<()>> {
        match self {
            Self::Index(walk) => walk.go_on(visit),
            Self::Documents(walk) => walk.go_on(visit),
            Self::Text(walk) => walk.go_on(visit),
        }
    }
}

/// From the first key up to, not including, the second.
struct Range {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Range {
    /// What lies behind `key` in the direction of reading.
    fn behind(self, key: &[u8], direction: StoreDirection) -> Self {
        match direction {
            StoreDirection::Forward => Self { from: [key, &[0]].concat().max(self.from), to: self.to },
            StoreDirection::Backward => Self { from: self.from, to: key.to_vec().min(self.to) },
        }
    }
}

/// The ranges in the order in which they are read.
struct Ranges {
    left: VecDeque<Range>,
    direction: StoreDirection,
}

impl Ranges {
    fn new(ascending: impl DoubleEndedIterator<Item = Range>, direction: Direction) -> Self {
        match direction {
            Direction::Ascending => Self { left: ascending.collect(), direction: StoreDirection::Forward },
            Direction::Descending => {
                Self { left: ascending.rev().collect(), direction: StoreDirection::Backward }
            }
        }
    }

    fn go_behind(&mut self, key: &[u8]) {
        let direction = self.direction;
        let ranges = std::mem::take(&mut self.left).into_iter();
        self.left = ranges.map(|range| range.behind(key, direction)).collect();
    }

    fn next(&mut self) -> Option<Range> {
        while let Some(range) = self.left.pop_front() {
            if range.from < range.to {
                return Some(range);
            }
        }
        None
    }
}

/// Entries of an index.
pub(super) struct IndexWalk {
    database: OpenDatabase,
    definition: Arc<Definition>,
    collection: Collection,
    ranges: Ranges,
    /// This many are left out by counting.
    skip: u64,
}

impl IndexWalk {
    pub(super) fn new(
        database: &OpenDatabase,
        definition: &Arc<Definition>,
        collection: Collection,
        ranges: &[KeyRange],
        direction: Direction,
    ) -> Self {
        let range = |range: &KeyRange| Range { from: range.start.to_bytes(), to: range.end.to_bytes() };
        Self {
            database: database.clone(),
            definition: Arc::clone(definition),
            collection,
            ranges: Ranges::new(ranges.iter().map(range), direction),
            skip: 0,
        }
    }

    /// Goes on behind the entry that a document has under a key, whether it is there or not.
    pub(super) fn go_behind(&mut self, key: &[Value], id: &str) {
        self.ranges.go_behind(&entry_key(key, id));
    }

    /// Leaves out this many entries. O(log n) for each range.
    pub(super) fn skip(&mut self, entries: u64) {
        self.skip = entries;
    }

    fn go_on(&mut self, visit: Visit<'_>) -> Result<ControlFlow<()>> {
        let damaged = || DatabaseError::damaged("entry of an index", self.database.name());
        let direction = self.ranges.direction;
        while let Some(range) = self.ranges.next() {
            if self.skip > 0 {
                let entries = self.collection.count_range(&range.from, &range.to)?;
                if self.skip >= entries {
                    self.skip -= entries;
                    continue;
                }
            }
            let skip = std::mem::take(&mut self.skip);
            let mut cursor = self.collection.cursor(&range.from, &range.to, direction, skip)?;
            while let Some(stored) = cursor.next()? {
                let entry = StoredEntry::of(&self.definition, &stored).ok_or_else(damaged)?;
                let id = entry.id().ok_or_else(damaged)?;
                if visit(&Candidate::Entry { id, entry: &entry })?.is_break() {
                    self.ranges.left.push_front(range.behind(stored.key, direction));
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Winners in the order of their ids.
pub(super) struct DocumentWalk {
    database: OpenDatabase,
    snapshot: Snapshot,
    ranges: Ranges,
}

impl DocumentWalk {
    pub(super) fn new(
        database: &OpenDatabase,
        snapshot: Snapshot,
        ranges: &[IdRange],
        direction: Direction,
    ) -> Self {
        let number = database.number();
        let ranges = Ranges::new(ranges.iter().map(|range| key_range(number, range)), direction);
        Self { database: database.clone(), snapshot, ranges }
    }

    /// Goes on behind the document, whether it is there or not.
    pub(super) fn go_behind(&mut self, id: &str) {
        self.ranges.go_behind(&keys::winner(self.database.number(), id));
    }

    fn go_on(&mut self, visit: Visit<'_>) -> Result<ControlFlow<()>> {
        let damaged = || DatabaseError::damaged("id", self.database.name());
        while let Some(range) = self.ranges.next() {
            // One document alone is looked up, which costs less than a cursor.
            if range.to.strip_prefix(range.from.as_slice()) == Some(&[0]) {
                let id = keys::id_of(&range.from).ok_or_else(damaged)?;
                let Some(record) = self.snapshot.get(Family::Scan, &range.from)? else { continue };
                if visit(&Candidate::Record { id, record: &record })?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                continue;
            }
            let between = StoreRange { from: &range.from, to: Some(&range.to) };
            let mut cursor = self.snapshot.cursor(Family::Scan, between, self.ranges.direction);
            let mut reached = None;
            while let Some((key, record)) = cursor.next()? {
                let id = keys::id_of(key).ok_or_else(damaged)?;
                if visit(&Candidate::Record { id, record })?.is_break() {
                    reached = Some(key.to_vec());
                    break;
                }
            }
            drop(cursor);
            if let Some(key) = reached {
                self.ranges.left.push_front(range.behind(&key, self.ranges.direction));
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn key_range(number: u32, range: &IdRange) -> Range {
    let (first, last) = keys::winner_range(number);
    let behind = |id: &str| [keys::winner(number, id).as_slice(), &[0]].concat();
    Range {
        from: match &range.start {
            Bound::Included(id) => keys::winner(number, id),
            Bound::Excluded(id) => behind(id),
            Bound::Unbounded => first,
        },
        to: match &range.end {
            Bound::Included(id) => behind(id),
            Bound::Excluded(id) => keys::winner(number, id),
            Bound::Unbounded => last,
        },
    }
}
