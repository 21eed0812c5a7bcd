//! What is kept next to the index of a view with responses: a record for each document that is in the view or would be
//! beneath its parent, under the key of its list, and the links from parents to responses.
//!
//! | family | key | value |
//! |---|---|---|
//! | DerivedPoint | as of a list | bits (1 response, 2 selected for itself, 4 readers), of a response its parent and tail; level; readers; entries |
//! | DerivedChurn | number `FFFFFFFD` index `c` parent id | |
//! | DerivedChurn | number `FFFFFFFD` index `m` id | responses to this document are not all placed where they belong |
//!
//! In the parent's id a zero byte is followed by `FF`, and `00 00` ends it. An entry: its key, of a response without the tail; head; totals. Readers
//! are digests of names, with their number before them.
//!
//! Who does not see a document sees nothing beneath it either: a response is in the streams of those names only that
//! its parent is in the streams of. (Nor could its key be shown to others, which is the main document's.)

use std::collections::BTreeSet;

use scrinium_contents::wire::{Input, put_bytes, put_number};
use scrinium_database::access::digest::{EVERYTHING, NameDigest};
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_index::Index;
use scrinium_store::{Batch, Direction, Family, KeyRange, Snapshot, Store};

use crate::entries::{put_total, take_total};
use crate::error::OrDatabaseError as _;
use crate::registry::numbers_of;
use crate::streams::{prefix, streams_max};

/// In the place of an index's number.
const TREES: u32 = u32::MAX - 2;

const LINKS: u8 = b'c';
const MARKS: u8 = b'm';

/// Where links and marks are.
pub(crate) const FAMILY: Family = Family::DerivedChurn;

/// An entry as its document's record knows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placed {
    /// Of a response: the key of the entry that it is beneath.
    pub(crate) key: Vec<u8>,
    pub(crate) head: Vec<u8>,
    pub(crate) totals: Vec<f64>,
}

/// What an index knows of a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    /// The document that this one responds to.
    pub(crate) parent: Option<String>,
    /// The selection selects it for itself.
    pub(crate) is_selected: bool,
    /// What the key of a response has behind that of the entry it is beneath.
    pub(crate) tail: Vec<u8>,
    pub(crate) level: u32,
    /// Who may read it and all above it, if that is not everybody.
    pub(crate) readers: Option<BTreeSet<NameDigest>>,
    /// None: it is not shown, since its parent is not.
    pub(crate) entries: Vec<Placed>,
}

impl Record {
    /// Those who may read this document, of whom `above` may read the one that it is beneath.
    pub(crate) fn limit(&mut self, own: Option<BTreeSet<NameDigest>>, above: Option<&BTreeSet<NameDigest>>) {
        let names = match (own, above) {
            (Some(own), Some(above)) => Some(own.intersection(above).copied().collect()),
            (Some(own), None) => Some(own),
            (None, above) => above.cloned(),
        };
        // One of the streams is for those who see everything.
        let most = streams_max(self.entries.len()) - 1;
        self.readers = names.map(|names: BTreeSet<NameDigest>| names.into_iter().take(most).collect());
    }

    /// What the keys of its entries have before them, once for each stream that they are in.
    pub(crate) fn streams(&self) -> Vec<Vec<u8>> {
        match &self.readers {
            None => vec![Vec::new()],
            Some(names) => std::iter::once(&EVERYTHING).chain(names).map(prefix).collect(),
        }
    }

    /// The whole key of an entry, without that of its stream.
    pub(crate) fn key_of(&self, entry: &Placed) -> Vec<u8> {
        [entry.key.as_slice(), self.tail.as_slice()].concat()
    }

    /// The keys of all entries in all streams.
    pub(crate) fn keys(&self) -> Vec<Vec<u8>> {
        let streams = self.streams();
        let in_streams = |key: Vec<u8>| streams.iter().map(move |stream| [&stream[..], &key].concat());
        self.entries.iter().flat_map(|entry| in_streams(self.key_of(entry))).collect()
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let entries = self.entries.iter().map(|entry| entry.key.len() + entry.head.len() + 80);
        let readers = self.readers.as_ref().map_or(0, BTreeSet::len) * size_of::<NameDigest>();
        entries.sum::<usize>() + self.tail.len() + readers + 200
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes());
        let bits = [self.parent.is_some(), self.is_selected, self.readers.is_some()];
        out.push(bits.iter().rev().fold(0, |bits, bit| bits << 1 | u8::from(*bit)));
        if let Some(parent) = &self.parent {
            put_bytes(&mut out, parent.as_bytes());
            put_bytes(&mut out, &self.tail);
        }
        put_number(&mut out, self.level.into());
        if let Some(readers) = &self.readers {
            put_number(&mut out, readers.len() as u64);
            readers.iter().for_each(|name| out.extend_from_slice(name));
        }
        for entry in &self.entries {
            put_bytes(&mut out, &entry.key);
            put_bytes(&mut out, &entry.head);
            entry.totals.iter().for_each(|total| put_total(&mut out, *total));
        }
        out
    }

    /// The record in an index with this many totals. `None`: damaged.
    pub(crate) fn decode(totals: usize, bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        let bits = input.byte()?;
        let mut record = Self { is_selected: bits & 2 != 0, ..Self::default() };
        if bits & 1 != 0 {
            record.parent = Some(input.text()?.to_owned());
            record.tail = input.bytes()?.to_vec();
        }
        record.level = u32::try_from(input.number()?).ok()?;
        if bits & 4 != 0 {
            let count = input.number()?;
            record.readers = Some((0..count).map(|_| input.array()).collect::<Option<_>>()?);
        }
        while !input.rest().is_empty() {
            let (key, head) = (input.bytes()?.to_vec(), input.bytes()?.to_vec());
            let totals = (0..totals).map(|_| take_total(&mut input)).collect::<Option<Vec<f64>>>()?;
            record.entries.push(Placed { key, head, totals });
        }
        Some(record)
    }
}

fn tree_key(index: u64, kind: u8) -> Vec<u8> {
    let (database, index) = numbers_of(index);
    [&database.to_be_bytes()[..], &TREES.to_be_bytes(), &index.to_be_bytes(), &[kind]].concat()
}

/// What all links of a document to its responses begin with; the response's id follows.
pub(crate) fn links_of(index: u64, parent: &str) -> Vec<u8> {
    let mut key = tree_key(index, LINKS);
    // So that the end of the id can be told.
    for byte in parent.bytes() {
        key.push(byte);
        if byte == 0 {
            key.push(u8::MAX);
        }
    }
    key.extend_from_slice(&[0, 0]);
    key
}

pub(crate) fn link(index: u64, parent: &str, id: &str) -> Vec<u8> {
    let mut key = links_of(index, parent);
    key.extend_from_slice(id.as_bytes());
    key
}

pub(crate) fn mark(index: u64, id: &str) -> Vec<u8> {
    let mut key = tree_key(index, MARKS);
    key.extend_from_slice(id.as_bytes());
    key
}

/// The documents whose responses are not all placed.
pub(crate) fn marked(snapshot: &Snapshot, index: u64) -> Result<Vec<String>> {
    let from = tree_key(index, MARKS);
    let to = keys::successor(&from);
    let mut cursor = snapshot.cursor(FAMILY, KeyRange { from: &from, to: Some(&to) }, Direction::Forward);
    let mut ids = Vec::new();
    while let Some((key, _)) = cursor.next()? {
        let id = key.get(from.len()..).and_then(|id| std::str::from_utf8(id).ok());
        ids.push(id.ok_or_else(|| DatabaseError::damaged("mark of a view with responses", ""))?.to_owned());
    }
    Ok(ids)
}

/// The index that entries are gathered in while that number `index` is built.
pub(crate) const fn aside(index: u64) -> u64 {
    index | 1 << 31
}

/// Removes links and marks of an index, and what a build of it gathered; a look at two keys if there are none.
pub(crate) fn remove_links(store: &Store, index: u64) -> Result<()> {
    let snapshot = store.snapshot();
    let has_any = |from: &[u8], to: &[u8]| {
        let range = KeyRange { from, to: Some(to) };
        snapshot.cursor(FAMILY, range, Direction::Forward).next().map(|found| found.is_some())
    };
    let (from, to) = (tree_key(index, 0), tree_key(index, u8::MAX));
    if has_any(&from, &to)? {
        let mut batch = Batch::new();
        batch.delete_range(FAMILY, &from, &to);
        store.derived().write(batch)?;
    }
    // The records of its chunks are in the same family.
    let id = aside(index);
    if has_any(&id.to_be_bytes(), &(id + 1).to_be_bytes())? {
        Index::drop_index(store, id).or_database_error()?;
    }
    Ok(())
}
