//! Entries of documents that not everybody may read.
//!
//! An index begins with the entries of documents that are everybody's. The entries of a document with `Readers` are
//! not among them: they are once in a *stream* for those to whom all documents are open, and once in that of each
//! name that may read it. A stream's entries have `FF 01` and the name's digest before their key, so that each is as
//! well ordered and counted as the index itself, and a page for somebody who may read little passes over nothing.

use std::collections::BTreeSet;

use scrinium_database::access::digest::{EVERYTHING, NameDigest};

use crate::entries::Entry;

/// All entries that are everybody's lie before it: no sort key begins with it, inverted or not.
pub(crate) const END: u8 = u8::MAX;

/// Before the name's digest.
const STREAM: [u8; 2] = [END, 1];

const PREFIX_BYTES: usize = STREAM.len() + size_of::<NameDigest>();

/// A document has at most this many entries in all streams of an index; names that come after them do not see it.
const ENTRIES_MAX: usize = 20_000;

/// What the keys of a stream begin with.
pub(crate) fn prefix(name: &NameDigest) -> Vec<u8> {
    [&STREAM[..], name].concat()
}

/// The key of an entry without that of its stream; nothing of one that is damaged, which is no entry then.
pub(crate) fn plain(key: &[u8]) -> &[u8] {
    if key.starts_with(&STREAM) { key.get(PREFIX_BYTES..).unwrap_or_default() } else { key }
}

/// What comes before the plain key: nothing for what is everybody's.
pub(crate) fn stream_of(key: &[u8]) -> &[u8] {
    key.get(..key.len() - plain(key).len()).unwrap_or_default()
}

/// In this many streams is a document with this many entries.
pub(crate) fn streams_max(entries: usize) -> usize {
    (ENTRIES_MAX / entries.max(1)).max(1)
}

/// The entries of a document that only these may read.
pub(crate) fn for_readers(entries: Vec<Entry>, readers: &BTreeSet<NameDigest>) -> Vec<Entry> {
    if entries.is_empty() {
        return entries;
    }
    let names = std::iter::once(&EVERYTHING).chain(readers).take(streams_max(entries.len()));
    let in_stream = |name: &NameDigest| {
        let prefix = prefix(name);
        let entry = move |entry: &Entry| Entry { key: [&prefix[..], &entry.key].concat(), ..entry.clone() };
        entries.iter().map(entry).collect::<Vec<Entry>>()
    };
    names.flat_map(in_stream).collect()
}
