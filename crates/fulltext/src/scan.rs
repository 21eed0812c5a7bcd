//! The documents of all terms of a range that fit a condition: prefixes, patterns, ranges, similar words.

use std::collections::BTreeSet;

use scrinium_store::{Direction, KeyRange};

use crate::FullTextError;
use crate::address_set::AddressSet;
use crate::format::{FieldId, POSTINGS, TermKind, content};
use crate::postings::Block;
use crate::reader::{Budget, Reader};

impl Reader {
    /// The whole values that documents have in a field, in the order of their bytes. Values that no document has any more may
    /// be among them.
    ///
    /// # Errors
    /// [`FullTextError::TooBroad`] if there are more than `values_max`, [`FullTextError::Damaged`], [`FullTextError::Store`].
    pub fn values(&self, field: &str, values_max: usize) -> Result<Vec<String>, FullTextError> {
        let from = TermKind::Exact.key(FieldId::of(field), &[]);
        let to = TermKind::Any.key(FieldId::of(field), &[]);
        let mut terms: BTreeSet<Vec<u8>> = BTreeSet::new();
        let too_broad = || FullTextError::TooBroad { what: "values of a field", limit: values_max as u64 };
        for segment in &self.tail {
            let view = segment.view();
            for at in view.first_from(&from)..view.terms() {
                let entry =
                    view.entry(at).ok_or_else(|| self.keys.damaged("a term of its tail cannot be read"))?;
                if entry.term >= to.as_slice() {
                    break;
                }
                terms.insert(entry.term.to_vec());
                if terms.len() > values_max {
                    return Err(too_broad());
                }
            }
        }
        let (from, to) = (self.keys.term_beginning(&from), self.keys.term_beginning(&to));
        let mut cursor = self.snapshot.cursor(POSTINGS, KeyRange::new(&from, &to), Direction::Forward);
        loop {
            let Some((key, _)) = cursor.next()? else { break };
            let (term, _) = self
                .keys
                .read_block(key)
                .ok_or_else(|| self.keys.damaged("the key of a block cannot be read"))?;
            let past = self.keys.term_end(term);
            terms.insert(term.to_vec());
            if terms.len() > values_max {
                return Err(too_broad());
            }
            cursor.seek(&past);
        }
        Ok(terms.iter().map(|term| String::from_utf8_lossy(&unescaped(content(term))).into_owned()).collect())
    }
}

/// The content of a term as it was before it was made a key.
fn unescaped(content: &[u8]) -> Vec<u8> {
    let (mut plain, mut rest) = (Vec::with_capacity(content.len()), content.iter());
    while let Some(byte) = rest.next() {
        match byte {
            1 => plain.push(u8::from(rest.next() == Some(&2))),
            byte => plain.push(*byte),
        }
    }
    plain
}

/// Terms from `from` up to, not including, `to`.
pub(crate) struct TermScan<'a> {
    pub(crate) from: &'a [u8],
    pub(crate) to: &'a [u8],
}

impl TermScan<'_> {
    /// Adds the documents of those whose content `accept` takes to `set`.
    pub(crate) fn collect(
        &self,
        reader: &Reader,
        budget: &Budget,
        accept: &dyn Fn(&[u8]) -> bool,
        set: &mut AddressSet,
    ) -> Result<(), FullTextError> {
        let keys = reader.keys;
        let damaged = || keys.damaged("a block of postings cannot be read");
        let mut block = Block::default();
        for segment in &reader.tail {
            let view = segment.view();
            for at in view.first_from(self.from)..view.terms() {
                let entry =
                    view.entry(at).ok_or_else(|| keys.damaged("a term of its tail cannot be read"))?;
                if entry.term >= self.to {
                    break;
                }
                budget.take_term()?;
                if !accept(content(entry.term)) {
                    continue;
                }
                for (last, value) in entry.blocks() {
                    block.read(value, segment.first.saturating_add(last)).ok_or_else(damaged)?;
                    budget.take_postings(block.addresses.len())?;
                    set.extend(&block.addresses);
                }
            }
        }
        let (from, to) = (keys.term_beginning(self.from), keys.term_beginning(self.to));
        let mut cursor = reader.snapshot.cursor(POSTINGS, KeyRange::new(&from, &to), Direction::Forward);
        let (mut current, mut is_accepted): (Vec<u8>, bool) = (Vec::new(), false);
        let mut past: Option<Vec<u8>> = None;
        loop {
            if let Some(past) = past.take() {
                cursor.seek(&past);
            }
            let Some((key, value)) = cursor.next()? else { return Ok(()) };
            let (term, last) =
                keys.read_block(key).ok_or_else(|| keys.damaged("the key of a block cannot be read"))?;
            if term != current.as_slice() {
                budget.take_term()?;
                current.clear();
                current.extend_from_slice(term);
                is_accepted = accept(content(term));
            } else if !is_accepted {
                // A term of several blocks is passed as a whole.
                past = Some(keys.term_end(term));
            }
            if is_accepted {
                block.read(value, last).ok_or_else(damaged)?;
                budget.take_postings(block.addresses.len())?;
                set.extend(&block.addresses);
            }
        }
    }
}
