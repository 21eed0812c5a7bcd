//! Segments that are kept whole: the newest documents, which a reader looks through one segment after the other.
//!
//! A document that is written alone costs one record of its own words. When sixteen of them have gathered they become one
//! segment, and when there are a few hundred documents these go into the blocks of their terms.

use std::collections::BTreeMap;

use scrinium_store::{Batch, Snapshot};

use crate::FullTextError;
use crate::chunks::{DeadMarks, add_documents};
use crate::format::{
    Address, Keys, POSTINGS, TAIL, TermKind, addresses_from, kind_code, push_number, push_part,
};
use crate::postings::{Block, BlockWriter};
use crate::segment::{DocumentView, SegmentParts, SegmentView};
use crate::state::TailEntry;

/// A segment of this number of documents goes into blocks at once, and with it all before it.
const DIRECT_DOCUMENTS: u32 = 128;
/// All segments go into blocks when they have this number of documents, or of bytes.
const TAIL_DOCUMENTS: u32 = 256;
const TAIL_BYTES: u64 = 2 << 20;
/// This number of the newest segments, each smaller than that, become one.
const SMALL_SEGMENTS: usize = 16;

/// A segment with its address.
pub(crate) struct TailSegment {
    pub(crate) first: Address,
    pub(crate) bytes: Vec<u8>,
    parts: SegmentParts,
}

impl TailSegment {
    /// Takes a segment. `None`: it is damaged.
    pub(crate) fn new(first: Address, bytes: Vec<u8>) -> Option<Self> {
        let parts = SegmentParts::read(&bytes)?;
        Some(Self { first, bytes, parts })
    }

    pub(crate) fn load(snapshot: &Snapshot, keys: Keys, entry: &TailEntry) -> Result<Self, FullTextError> {
        let damaged = || keys.damaged("a segment of its tail is missing or cannot be read");
        let bytes = snapshot.get(TAIL, &keys.tail(entry.first))?.ok_or_else(damaged)?;
        let this = Self::new(entry.first, bytes.to_vec()).ok_or_else(damaged)?;
        if this.parts.documents == entry.documents { Ok(this) } else { Err(damaged()) }
    }

    pub(crate) fn view(&self) -> SegmentView<'_> {
        self.parts.view(&self.bytes)
    }

    /// The document at an address. `None`: it is not in this segment, or is damaged.
    pub(crate) fn document(&self, address: Address) -> Option<DocumentView<'_>> {
        self.parts.document(&self.bytes, address.checked_sub(self.first)? as usize)
    }
}

/// What is to be done with the tail, newest first.
pub(crate) enum TailStep {
    Keep,
    /// The newest segments become one.
    Join(usize),
    /// All go into blocks.
    Fold,
}

pub(crate) fn next_step(tail: &[TailEntry]) -> TailStep {
    let documents: u32 = tail.iter().map(|entry| entry.documents).sum();
    let bytes: u64 = tail.iter().map(|entry| u64::from(entry.bytes)).sum();
    let is_large = tail.first().is_some_and(|entry| entry.documents >= DIRECT_DOCUMENTS);
    if is_large || documents >= TAIL_DOCUMENTS || bytes >= TAIL_BYTES || tail.len() >= 3 * SMALL_SEGMENTS {
        return TailStep::Fold;
    }
    let is_small = |entry: &TailEntry| entry.documents < u32::try_from(SMALL_SEGMENTS).unwrap_or(u32::MAX);
    // One segment has one row of addresses.
    let mut end = tail.first().map(|entry| entry.first);
    let mut follows = |entry: &TailEntry| {
        let is_next = end == Some(entry.first);
        end = entry.first.checked_add(entry.documents);
        is_next
    };
    let small = tail.iter().take_while(|entry| is_small(entry) && follows(entry)).count();
    if small >= SMALL_SEGMENTS { TailStep::Join(small) } else { TailStep::Keep }
}

/// The blocks of each term, of all segments, the newest first.
type TermBlocks<'b> = BTreeMap<&'b [u8], Vec<(Address, &'b [u8])>>;

fn blocks_of<'b>(segments: &'b [TailSegment], keys: Keys) -> Result<TermBlocks<'b>, FullTextError> {
    let mut terms: TermBlocks<'b> = BTreeMap::new();
    for segment in segments {
        let view = segment.view();
        for at in 0..view.terms() {
            let entry = view.entry(at).ok_or_else(|| keys.damaged("a term of its tail cannot be read"))?;
            let blocks = terms.entry(entry.term).or_default();
            blocks.extend(entry.blocks().map(|(last, block)| (segment.first.saturating_add(last), block)));
        }
    }
    Ok(terms)
}

/// Gathers the postings of several blocks into new ones, without the dead.
pub(crate) struct Gatherer {
    pub(crate) details: (bool, bool),
    pub(crate) writer: BlockWriter,
    block: Block,
    gaps: Vec<u8>,
    value: Vec<u8>,
}

impl Gatherer {
    pub(crate) fn new() -> Self {
        Self {
            details: (false, false),
            writer: BlockWriter::default(),
            block: Block::default(),
            gaps: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Adds a block, and hands each that is full to `put`.
    pub(crate) fn add(
        &mut self,
        (last, value): (Address, &[u8]),
        keys: Keys,
        dead: &mut DeadMarks<'_>,
        put: &mut dyn FnMut(Address, &[u8]),
    ) -> Result<(), FullTextError> {
        let damaged = || keys.damaged("a block of postings cannot be read");
        self.block.read(value, last).ok_or_else(damaged)?;
        for at in 0..self.block.addresses.len() {
            let address = self.block.addresses.get(at).copied().unwrap_or_default();
            if dead.is_dead(address)? {
                continue;
            }
            let frequency = if self.details.0 { self.block.frequency(at).ok_or_else(damaged)? } else { 1 };
            let places =
                if self.details.1 { self.block.places_as_stored(at).ok_or_else(damaged)? } else { &[] };
            self.writer.push(address, frequency, places);
            if self.writer.is_full() {
                self.finish(put);
            }
        }
        Ok(())
    }

    /// Hands out what is left.
    pub(crate) fn finish(&mut self, put: &mut dyn FnMut(Address, &[u8])) {
        if let Some(last) = self.writer.last() {
            self.value.clear();
            self.writer.finish(self.details, &mut self.gaps, &mut self.value);
            put(last, &self.value);
        }
    }
}

/// Puts the segments, the newest first, into blocks and chunks. None stays behind: blocks are older than what is kept whole.
pub(crate) fn fold(
    snapshot: &Snapshot,
    keys: Keys,
    segments: &[TailSegment],
    dead: &mut DeadMarks<'_>,
    batch: &mut Batch,
) -> Result<(), FullTextError> {
    let (large, small) = match segments {
        [large, small @ ..] if large.parts.documents >= DIRECT_DOCUMENTS => (Some(large), small),
        small => (None, small),
    };
    if let Some(large) = large {
        put_directly(keys, large, batch)?;
    }
    let mut gatherer = Gatherer::new();
    for (term, blocks) in blocks_of(small, keys)? {
        gatherer.details = TermKind::details(kind_code(term));
        let mut put = |last, value: &[u8]| batch.put(POSTINGS, &keys.block(term, last), value);
        for block in blocks {
            gatherer.add(block, keys, dead, &mut put)?;
        }
        gatherer.finish(&mut put);
    }
    let documents =
        segments.iter().flat_map(|segment| addresses_from(segment.first).zip(segment.view().documents()));
    add_documents(snapshot, keys, documents, batch)
}

/// The blocks of a segment are what they are in the index.
fn put_directly(keys: Keys, segment: &TailSegment, batch: &mut Batch) -> Result<(), FullTextError> {
    let view = segment.view();
    for at in 0..view.terms() {
        let entry = view.entry(at).ok_or_else(|| keys.damaged("a term of its tail cannot be read"))?;
        for (last, block) in entry.blocks() {
            batch.put(POSTINGS, &keys.block(entry.term, segment.first.saturating_add(last)), block);
        }
    }
    Ok(())
}

/// The segments, the newest first, whose addresses have no gaps, as one.
pub(crate) fn join(keys: Keys, segments: &[TailSegment]) -> Result<Vec<u8>, FullTextError> {
    let mut bytes = Vec::new();
    let first = segments.first().map_or(0, |segment| segment.first);
    push_number(&mut bytes, segments.iter().map(|segment| u64::from(segment.view().documents)).sum());
    let languages = segments.iter().fold(0, |all, segment| all | segment.view().languages.0);
    bytes.extend_from_slice(&languages.to_le_bytes());
    for segment in segments {
        bytes.extend_from_slice(segment.view().of_documents);
    }
    let terms = blocks_of(segments, keys)?;
    let (mut offsets, mut entries): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
    for (term, blocks) in &terms {
        offsets.extend_from_slice(&u32::try_from(entries.len()).unwrap_or(u32::MAX).to_le_bytes());
        push_part(&mut entries, term);
        for (last, block) in blocks {
            push_number(&mut entries, u64::from(last.saturating_sub(first)) + 1);
            push_part(&mut entries, block);
        }
        push_number(&mut entries, 0);
    }
    push_number(&mut bytes, terms.len() as u64);
    bytes.extend_from_slice(&offsets);
    bytes.extend_from_slice(&entries);
    Ok(bytes)
}
