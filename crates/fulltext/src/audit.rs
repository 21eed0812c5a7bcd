//! What an index, or a segment, says of its documents, in no order that means anything: to hold one against the other.

use std::collections::HashMap;
use std::ops::ControlFlow;

use scrinium_store::{Direction, KeyRange};
use xxhash_rust::xxh3::xxh3_64;

use crate::format::{ADDRESS_BYTES, Address, POINTS, POSTINGS, TermKind, addresses_from, kind_code};
use crate::postings::Block;
use crate::segment::SegmentParts;
use crate::{FullTextError, Reader, Segment};

/// That a document has a term, how often and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting<'p> {
    /// A digest of the document's id.
    pub document: u64,
    /// Field, kind and content of the term.
    pub term: &'p [u8],
    /// How often, and where; empty for whole values.
    pub places: &'p [u8],
}

/// Takes postings one by one, until it breaks.
pub type EachPosting<'e> = &'e mut dyn FnMut(Posting<'_>) -> ControlFlow<()>;

/// Documents by their addresses.
type Documents = HashMap<Address, u64>;

impl Reader {
    /// Calls `each` with what the index says of documents whose ids are wanted. It takes some bytes of memory for each document.
    ///
    /// # Errors
    /// [`FullTextError::Damaged`], [`FullTextError::Store`].
    pub fn each_posting(
        &self,
        is_wanted: &dyn Fn(&str) -> bool,
        each: EachPosting<'_>,
    ) -> Result<(), FullTextError> {
        let documents = self.living(is_wanted)?;
        let damaged = || self.keys.damaged("a block of postings cannot be read");
        let mut block = Block::default();
        for segment in &self.tail {
            let view = segment.view();
            for at in 0..view.terms() {
                let entry =
                    view.entry(at).ok_or_else(|| self.keys.damaged("a term of its tail cannot be read"))?;
                for (last, value) in entry.blocks() {
                    block.read(value, segment.first.saturating_add(last)).ok_or_else(damaged)?;
                    let told = tell(&mut block, entry.term, &documents, each).ok_or_else(damaged)?;
                    if told.is_break() {
                        return Ok(());
                    }
                }
            }
        }
        let (from, to) = self.keys.tagged(b'p');
        let mut cursor = self.snapshot.cursor(POSTINGS, KeyRange::new(&from, &to), Direction::Forward);
        while let Some((key, value)) = cursor.next()? {
            let (term, last) = self.keys.read_block(key).ok_or_else(damaged)?;
            block.read(value, last).ok_or_else(damaged)?;
            if tell(&mut block, term, &documents, each).ok_or_else(damaged)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The documents that can be found.
    fn living(&self, is_wanted: &dyn Fn(&str) -> bool) -> Result<Documents, FullTextError> {
        let damaged = || self.keys.damaged("the address of a document cannot be read");
        let (from, to) = self.keys.tagged(b'i');
        let mut cursor = self.snapshot.cursor(POINTS, KeyRange::new(&from, &to), Direction::Forward);
        let mut documents = Documents::new();
        while let Some((key, value)) = cursor.next()? {
            let id = key.get(from.len()..).and_then(|id| std::str::from_utf8(id).ok()).ok_or_else(damaged)?;
            let address: [u8; ADDRESS_BYTES] = value.try_into().map_err(|_| damaged())?;
            if is_wanted(id) {
                documents.insert(Address::from_be_bytes(address), xxh3_64(id.as_bytes()));
            }
        }
        Ok(documents)
    }
}

impl Segment {
    /// Calls `each` with what the segment says of its documents. `None`: it is damaged.
    pub fn each_posting(&self, each: EachPosting<'_>) -> Option<()> {
        let parts = SegmentParts::read(&self.bytes)?;
        let view = parts.view(&self.bytes);
        let documents = view.documents().map(|document| xxh3_64(document.id.as_bytes()));
        let documents: Documents = addresses_from(0).zip(documents).collect();
        let mut block = Block::default();
        for at in 0..view.terms() {
            let entry = view.entry(at)?;
            for (last, value) in entry.blocks() {
                block.read(value, last)?;
                if tell(&mut block, entry.term, &documents, each)?.is_break() {
                    return Some(());
                }
            }
        }
        Some(())
    }
}

/// Tells what a block says of these documents. `None`: it is damaged.
fn tell(
    block: &mut Block,
    term: &[u8],
    documents: &Documents,
    each: EachPosting<'_>,
) -> Option<ControlFlow<()>> {
    let (has_frequencies, has_places) = TermKind::details(kind_code(term));
    for at in 0..block.addresses.len() {
        let Some(document) = documents.get(block.addresses.get(at)?).copied() else { continue };
        let frequency = if has_frequencies { block.frequency(at)? } else { 0 };
        let frequency = frequency.to_le_bytes();
        let places: &[u8] = match (has_frequencies, has_places) {
            (_, true) => block.places_as_stored(at)?,
            (true, false) => &frequency,
            (false, false) => &[],
        };
        if each(Posting { document, term, places }).is_break() {
            return Some(ControlFlow::Break(()));
        }
    }
    Some(ControlFlow::Continue(()))
}
