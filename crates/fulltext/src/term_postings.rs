//! The documents of one term, in the order of their addresses.

use scrinium_store::{Cursor, Direction, KeyRange};

use crate::FullTextError;
use crate::format::{ADDRESS_BYTES, Address, POSTINGS, TermKind, kind_code};
use crate::postings::Block;
use crate::reader::{Budget, Reader};

/// Walks over the documents of a term: those of the tail, then the blocks in the store.
pub(crate) struct TermPostings<'r> {
    reader: &'r Reader,
    budget: &'r Budget,
    /// The blocks of the tail.
    early: std::vec::IntoIter<(Address, &'r [u8])>,
    term: Vec<u8>,
    cursor: Option<Cursor<'r>>,
    key: Vec<u8>,
    block: Block,
    at: usize,
    is_at_end: bool,
    /// What a document's score gets of it.
    pub(crate) weight: f32,
}

impl<'r> TermPostings<'r> {
    pub(crate) fn new(reader: &'r Reader, budget: &'r Budget, term: Vec<u8>) -> Self {
        let mut early = Vec::new();
        for segment in &reader.tail {
            if let Some(entry) = segment.view().find(&term) {
                early.extend(entry.blocks().map(|(last, block)| (segment.first.saturating_add(last), block)));
            }
        }
        Self {
            reader,
            budget,
            early: early.into_iter(),
            term,
            cursor: None,
            key: Vec::new(),
            block: Block::default(),
            at: 0,
            is_at_end: false,
            weight: 0.0,
        }
    }

    /// The same term from the start.
    pub(crate) fn again(&self) -> Self {
        Self::new(self.reader, self.budget, self.term.clone())
    }

    /// The first document from `target` on. Targets ascend.
    pub(crate) fn advance(&mut self, target: Address) -> Result<Option<Address>, FullTextError> {
        loop {
            if let Some(last) = self.block.addresses.last()
                && *last >= target
            {
                let rest = self.block.addresses.get(self.at..).unwrap_or_default();
                // Most often it is the next one.
                let steps = match rest {
                    [first, ..] if *first >= target => 0,
                    [_, second, ..] if *second >= target => 1,
                    _ => rest.partition_point(|address| *address < target),
                };
                self.at += steps;
                return Ok(self.block.addresses.get(self.at).copied());
            }
            if self.is_at_end || !self.next_block(target)? {
                self.is_at_end = true;
                self.block.addresses.clear();
                return Ok(None);
            }
        }
    }

    /// Reads the block that `target` may be in.
    fn next_block(&mut self, target: Address) -> Result<bool, FullTextError> {
        self.at = 0;
        let keys = self.reader.keys;
        let damaged = || keys.damaged("a block of postings cannot be read");
        for (last, value) in self.early.by_ref() {
            if last >= target {
                self.block.read(value, last).ok_or_else(damaged)?;
                self.budget.take_postings(self.block.addresses.len())?;
                return Ok(true);
            }
        }
        let is_first = self.cursor.is_none();
        if is_first {
            self.key = keys.term(&self.term);
            let to = keys.term_end(&self.term);
            let range = KeyRange::new(&self.key, &to);
            self.cursor = Some(self.reader.snapshot.cursor(POSTINGS, range, Direction::Forward));
        }
        let Some(cursor) = self.cursor.as_mut() else { return Ok(false) };
        let prefix_bytes = self.key.len();
        let mut may_seek = true;
        if is_first && target > 0 {
            seek(cursor, &mut self.key, target, prefix_bytes);
            may_seek = false;
        }
        loop {
            let Some((key, value)) = cursor.next()? else { return Ok(false) };
            let last = key.last_chunk::<ADDRESS_BYTES>().map(|last| Address::from_be_bytes(*last));
            let last = last.ok_or_else(damaged)?;
            if last >= target {
                self.block.read(value, last).ok_or_else(damaged)?;
                self.budget.take_postings(self.block.addresses.len())?;
                return Ok(true);
            }
            if may_seek {
                seek(cursor, &mut self.key, target, prefix_bytes);
                may_seek = false;
            }
        }
    }

    /// The document that was given out last.
    pub(crate) fn current(&self) -> Option<Address> {
        self.block.addresses.get(self.at).copied()
    }

    /// How often that document has the term.
    pub(crate) fn frequency(&mut self) -> Result<u32, FullTextError> {
        if !TermKind::details(kind_code(&self.term)).0 {
            // A whole value is there once.
            return Ok(1);
        }
        let keys = self.reader.keys;
        self.block.frequency(self.at).ok_or_else(|| keys.damaged("frequencies cannot be read"))
    }

    /// Where that document has the word.
    pub(crate) fn places(&mut self, places: &mut Vec<u32>) -> Result<(), FullTextError> {
        let keys = self.reader.keys;
        self.block.places(self.at, places).ok_or_else(|| keys.damaged("places cannot be read"))
    }

    /// How many documents have the term, dead ones among them. A block that is looked at for it costs as much as a document.
    pub(crate) fn count(&self) -> Result<u64, FullTextError> {
        let keys = self.reader.keys;
        let damaged = || keys.damaged("a block of postings cannot be read");
        let mut sum = 0;
        for segment in &self.reader.tail {
            for (_, block) in segment.view().find(&self.term).into_iter().flat_map(|entry| entry.blocks()) {
                sum += u64::from(Block::count(block).ok_or_else(damaged)?);
            }
        }
        let (from, to) = (keys.term(&self.term), keys.term_end(&self.term));
        let mut cursor = self.reader.snapshot.cursor(POSTINGS, KeyRange::new(&from, &to), Direction::Forward);
        while let Some((_, block)) = cursor.next()? {
            self.budget.take_postings(1)?;
            sum += u64::from(Block::count(block).ok_or_else(damaged)?);
        }
        Ok(sum)
    }
}

fn seek(cursor: &mut Cursor<'_>, key: &mut Vec<u8>, target: Address, prefix_bytes: usize) {
    key.truncate(prefix_bytes);
    key.extend_from_slice(&target.to_be_bytes());
    cursor.seek(key);
    key.truncate(prefix_bytes);
}
