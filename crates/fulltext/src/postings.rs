//! A block of postings: which documents have a term, how often, and where.
//!
//! ```text
//! block       = count [span, bytes of gaps, gaps] frequencies places
//! gaps        = for each document but the first, its distance from the one before, less 1
//! frequencies = for each document, how often less 1           (words and stems)
//! places      = for each document, distances of its places     (words)
//! ```
//!
//! All are numbers in LEB128. The part in brackets is there if there are several documents; `span` is the distance of the last,
//! whose address stands in the key, from the first.

use crate::format::{Address, Bytes, push_number};

/// No block has more documents.
pub(crate) const BLOCK_DOCUMENTS_MAX: usize = 1024;
/// A block of this size takes no further document.
pub(crate) const BLOCK_BYTES: usize = 16 << 10;
/// No more places of a word in one document are kept.
pub(crate) const PLACES_MAX: usize = 4096;

/// Gathers postings of one term into a block.
#[derive(Debug, Default)]
pub(crate) struct BlockWriter {
    addresses: Vec<Address>,
    frequencies: Vec<u32>,
    places: Vec<u8>,
}

impl BlockWriter {
    pub(crate) fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.addresses.len() >= BLOCK_DOCUMENTS_MAX || self.places.len() >= BLOCK_BYTES
    }

    pub(crate) fn last(&self) -> Option<Address> {
        self.addresses.last().copied()
    }

    /// Adds a document, which comes after those before.
    pub(crate) fn push(&mut self, address: Address, frequency: u32, places: &[u8]) {
        self.addresses.push(address);
        self.frequencies.push(frequency);
        self.places.extend_from_slice(places);
    }

    /// Adds the block to `bytes`, and begins another.
    pub(crate) fn finish(&mut self, details: (bool, bool), gaps: &mut Vec<u8>, bytes: &mut Vec<u8>) {
        push_number(bytes, self.addresses.len() as u64);
        if let ([first, rest @ ..], Some(last)) = (self.addresses.as_slice(), self.addresses.last())
            && !rest.is_empty()
        {
            gaps.clear();
            let mut before = *first;
            for address in rest {
                push_number(gaps, u64::from(address.wrapping_sub(before).wrapping_sub(1)));
                before = *address;
            }
            push_number(bytes, u64::from(last.wrapping_sub(*first)));
            push_number(bytes, gaps.len() as u64);
            bytes.extend_from_slice(gaps);
        }
        if details.0 {
            for frequency in &self.frequencies {
                push_number(bytes, u64::from(frequency.saturating_sub(1)));
            }
        }
        if details.1 {
            bytes.extend_from_slice(&self.places);
        }
        self.addresses.clear();
        self.frequencies.clear();
        self.places.clear();
    }
}

/// Adds the places of a word in a document, ascending.
pub(crate) fn push_places(places: impl Iterator<Item = u32>, bytes: &mut Vec<u8>) {
    let mut before = 0;
    for place in places {
        push_number(bytes, u64::from(place.wrapping_sub(before)));
        before = place;
    }
}

/// A block as read.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) addresses: Vec<Address>,
    details: Vec<u8>,
    /// Read when they are asked for.
    frequencies: Vec<u32>,
    /// Where the places of each document begin within the details; one more than documents.
    starts: Vec<u32>,
}

impl Block {
    /// Reads a block whose last document has address `last` into `self`. `None`: it is damaged.
    pub(crate) fn read(&mut self, value: &[u8], last: Address) -> Option<()> {
        self.addresses.clear();
        self.frequencies.clear();
        self.starts.clear();
        let mut bytes = Bytes(value);
        let count = bytes.size()?;
        if count == 0 || count > BLOCK_DOCUMENTS_MAX {
            return None;
        }
        if count == 1 {
            self.addresses.push(last);
        } else {
            let mut address = last.checked_sub(bytes.number()?)?;
            let mut gaps = Bytes(bytes.part()?);
            self.addresses.push(address);
            for _ in 1..count {
                address = address.checked_add(gaps.number()?)?.checked_add(1)?;
                self.addresses.push(address);
            }
            if address != last || !gaps.0.is_empty() {
                return None;
            }
        }
        self.details.clear();
        self.details.extend_from_slice(bytes.0);
        Some(())
    }

    /// How many documents a block has, without reading it.
    pub(crate) fn count(value: &[u8]) -> Option<u32> {
        Bytes(value).number().filter(|count| (1..=BLOCK_DOCUMENTS_MAX).contains(&(*count as usize)))
    }

    /// Reads the frequencies; `None`: they are damaged, or there are none.
    fn read_frequencies(&mut self) -> Option<()> {
        if self.frequencies.is_empty() {
            let mut bytes = Bytes(&self.details);
            for _ in &self.addresses {
                self.frequencies.push(bytes.number()?.saturating_add(1));
            }
            self.starts.clear();
            self.starts.push(u32::try_from(self.details.len() - bytes.0.len()).ok()?);
        }
        Some(())
    }

    /// How often the document at place `at` has the term.
    pub(crate) fn frequency(&mut self, at: usize) -> Option<u32> {
        self.read_frequencies()?;
        self.frequencies.get(at).copied()
    }

    /// The places of the document at place `at`, as they are stored.
    pub(crate) fn places_as_stored(&mut self, at: usize) -> Option<&[u8]> {
        self.read_frequencies()?;
        while self.starts.len() <= at + 1 {
            let start = usize::try_from(*self.starts.last()?).ok()?;
            let mut bytes = Bytes(self.details.get(start..)?);
            let frequency = *self.frequencies.get(self.starts.len() - 1)? as usize;
            for _ in 0..frequency.min(PLACES_MAX) {
                bytes.number()?;
            }
            self.starts.push(u32::try_from(self.details.len() - bytes.0.len()).ok()?);
        }
        let (start, end) = (*self.starts.get(at)? as usize, *self.starts.get(at + 1)? as usize);
        self.details.get(start..end)
    }

    /// Puts the places of the document at place `at` into `places`.
    pub(crate) fn places(&mut self, at: usize, places: &mut Vec<u32>) -> Option<()> {
        places.clear();
        let mut bytes = Bytes(self.places_as_stored(at)?);
        let mut place = 0_u32;
        while !bytes.0.is_empty() {
            place = place.checked_add(bytes.number()?)?;
            places.push(place);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_back(
            documents in proptest::collection::btree_map(0_u32..5000, proptest::collection::btree_set(0_u32..100_000, 1..9), 1..60),
        ) {
            let (mut writer, mut gaps, mut value) = (BlockWriter::default(), Vec::new(), Vec::new());
            for (address, places) in &documents {
                let mut stored = Vec::new();
                push_places(places.iter().copied(), &mut stored);
                writer.push(*address, u32::try_from(places.len()).unwrap(), &stored);
            }
            let last = writer.last().unwrap();
            writer.finish((true, true), &mut gaps, &mut value);
            let mut block = Block::default();
            block.read(&value, last).unwrap();
            proptest::prop_assert_eq!(Block::count(&value), Some(u32::try_from(documents.len()).unwrap()));
            proptest::prop_assert!(block.addresses.iter().eq(documents.keys()));
            let mut read = Vec::new();
            for (at, places) in documents.values().enumerate().rev() {
                block.places(at, &mut read).unwrap();
                proptest::prop_assert!(read.iter().eq(places));
                proptest::prop_assert_eq!(block.frequency(at), u32::try_from(places.len()).ok());
            }
        }

        #[test]
        fn no_bytes_do_harm(value: Vec<u8>, last: u32) {
            let mut block = Block::default();
            if block.read(&value, last).is_some() {
                let mut places = Vec::new();
                for at in 0..=block.addresses.len() {
                    let _ = block.places(at, &mut places);
                }
            }
        }
    }
}
