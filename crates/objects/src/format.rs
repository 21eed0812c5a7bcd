//! The bytes of an object.
//!
//! ```text
//! pieces    each: 1 byte (0 plain, 1 zstd), the bytes of PIECE_BYTES of the content, fewer of the last
//! table     for each piece: length of the above (u32), BLAKE3 chaining value of the piece (32 bytes)
//! footer    length of the content (u64), bytes of a piece (u32), "scrobj01"
//! ```
//!
//! Numbers are big endian. A piece is a subtree of the content's BLAKE3 tree, so that the chaining values of all pieces
//! give the content's digest, which names the object: the table is proven by the name, and a piece by the table.

use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use bytes::Bytes;
use scrinium_assertion::never;

use crate::compression::{compress, decompress};

/// Bytes of the content in one piece.
pub const PIECE_BYTES: u64 = 256 << 10;

/// The largest content that can be an object: S3 takes 10,000 parts of each, and memory holds its table.
pub const MAX_BYTES: u64 = 32 << 30;

const MARK: &[u8; 8] = b"scrobj01";
const FOOTER_BYTES: u64 = 20;
const ENTRY_BYTES: u64 = 36;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

/// What is known of the pieces of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// Where each piece begins, and where the last one ends.
    offsets: Vec<u64>,
    values: Vec<ChainingValue>,
}

/// How many pieces a content has.
pub(crate) const fn pieces(length: u64) -> u64 {
    length.div_ceil(PIECE_BYTES)
}

/// Bytes of the table and the footer of a content.
pub(crate) const fn table_bytes(length: u64) -> u64 {
    pieces(length) * ENTRY_BYTES + FOOTER_BYTES
}

/// The bytes of a piece of an object; compressed if that saves a tenth.
pub(crate) fn encode(piece: &[u8], compressible: bool) -> Vec<u8> {
    if compressible && let Some(compressed) = compress(piece) {
        return [&[ZSTD], compressed.as_slice()].concat();
    }
    [&[PLAIN], piece].concat()
}

fn value_of(number: u64, piece: &[u8]) -> ChainingValue {
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(number * PIECE_BYTES).update(piece);
    hasher.finalize_non_root()
}

/// The chaining value of some pieces that lie side by side.
fn merge(values: &[ChainingValue]) -> Option<ChainingValue> {
    match values {
        [] => None,
        [value] => Some(*value),
        values => {
            let (left, right) = values.split_at_checked(left_of(values.len()))?;
            Some(merge_subtrees_non_root(&merge(left)?, &merge(right)?, Mode::Hash))
        }
    }
}

/// The left subtree is the largest whole one that leaves something (BLAKE3 §2.1).
const fn left_of(pieces: usize) -> usize {
    pieces.div_ceil(2).next_power_of_two()
}

impl Table {
    /// Notes the next piece, of which `stored` is in the object.
    pub(crate) fn push(&mut self, piece: &[u8], stored: usize) {
        let number = self.values.len() as u64;
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        self.offsets.push(self.end() + stored as u64);
        self.values.push(value_of(number, piece));
    }

    /// Where the pieces end.
    pub(crate) fn end(&self) -> u64 {
        self.offsets.last().copied().unwrap_or_default()
    }

    /// BLAKE3 of the content; `None` for one of fewer than two pieces, which is no object.
    pub(crate) fn digest(&self) -> Option<[u8; 32]> {
        let (left, right) = self.values.split_at_checked(left_of(self.values.len()))?;
        Some(*merge_subtrees_root(&merge(left)?, &merge(right)?, Mode::Hash).as_bytes())
    }

    /// The table and the footer.
    pub(crate) fn encode(&self, length: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let ends = self.offsets.iter().skip(1);
        for ((start, end), value) in self.offsets.iter().zip(ends).zip(&self.values) {
            let stored = u32::try_from(end - start).unwrap_or_else(|_| {
                never!("a piece is stored in little more bytes than it has", "{start} to {end}");
                u32::MAX
            });
            bytes.extend_from_slice(&stored.to_be_bytes());
            bytes.extend_from_slice(value);
        }
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&u32::try_from(PIECE_BYTES).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend_from_slice(MARK);
        bytes
    }

    /// Reads the table and the footer of an object of `stored_bytes`; `None`: they are not those of this content.
    pub(crate) fn decode(bytes: &[u8], digest: &[u8; 32], length: u64, stored_bytes: u64) -> Option<Self> {
        if bytes.len() as u64 != table_bytes(length) {
            return None;
        }
        let mut table = Self { offsets: vec![0], values: Vec::new() };
        let (entries, footer) =
            bytes.split_at_checked(usize::try_from(pieces(length) * ENTRY_BYTES).ok()?)?;
        let expected = Self::default().encode(length);
        if footer != expected {
            return None;
        }
        for entry in entries.chunks_exact(usize::try_from(ENTRY_BYTES).ok()?) {
            let (stored, value) = entry.split_first_chunk::<4>()?;
            table.offsets.push(table.end() + u64::from(u32::from_be_bytes(*stored)));
            table.values.push(value.try_into().ok()?);
        }
        let ends_right = table.end() + bytes.len() as u64 == stored_bytes;
        (ends_right && table.digest()? == *digest).then_some(table)
    }

    /// Where the pieces from `first` to before `behind` lie.
    pub(crate) fn range(&self, first: u64, behind: u64) -> Option<(u64, u64)> {
        let at = |piece: u64| self.offsets.get(usize::try_from(piece).ok()?).copied();
        Some((at(first)?, at(behind)?))
    }

    /// The piece that was stored as `stored`, of a content of `length`; `None` if it is another one.
    pub(crate) fn open(&self, number: u64, stored: &Bytes, length: u64) -> Option<Bytes> {
        let expected = length.checked_sub(number * PIECE_BYTES)?.min(PIECE_BYTES);
        let expected = usize::try_from(expected).ok()?;
        let piece = match *stored.first()? {
            PLAIN => stored.slice(1..),
            ZSTD => Bytes::from(decompress(stored.get(1..)?, expected)?),
            _ => return None,
        };
        let value = self.values.get(usize::try_from(number).ok()?)?;
        (piece.len() == expected && value_of(number, &piece) == *value).then_some(piece)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Some pieces, and the table of them.
    fn object(content: &[u8]) -> (Vec<Vec<u8>>, Table) {
        let mut table = Table::default();
        let pieces = content.chunks(usize::try_from(PIECE_BYTES).unwrap()).map(|piece| {
            let stored = encode(piece, true);
            table.push(piece, stored.len());
            stored
        });
        (pieces.collect(), table)
    }

    /// Bytes with some of them cut out, put in, or others.
    fn harmed(mut bytes: Vec<u8>, harm: &[(prop::sample::Index, u8, Vec<u8>)]) -> Vec<u8> {
        for (place, kind, put_in) in harm {
            let place = place.index(bytes.len() + 1);
            let behind = (place + usize::from(*kind)).min(bytes.len());
            bytes.splice(place..behind, put_in.iter().copied());
        }
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// Somebody with access to the store of objects may write anything into it: what is read is the content that the name says,
        /// or nothing.
        #[test]
        fn whatever_lies_in_the_store_no_other_content_is_read(
            extra in 1..300_000_usize,
            harm in prop::collection::vec(
                (any::<prop::sample::Index>(), 0..40_u8, prop::collection::vec(any::<u8>(), 0..40)), 1..4),
            number in 0..4_u64,
            claimed in any::<u64>(),
        ) {
            let length = usize::try_from(PIECE_BYTES).unwrap() + extra;
            let content: Vec<u8> = (0..length).map(|at| (at * 7 + at / 300).to_le_bytes()[0]).collect();
            let (pieces, table) = object(&content);
            let (digest, length) = (*blake3::hash(&content).as_bytes(), length as u64);
            let tail = table.encode(length);
            let stored = table.end() + tail.len() as u64;
            let other = harmed(tail.clone(), &harm);
            if other != tail {
                prop_assert_eq!(Table::decode(&other, &digest, length, table.end() + other.len() as u64), None);
            }
            prop_assert_eq!(Table::decode(&tail, &digest, length, stored.wrapping_add(claimed | 1)), None);
            for (at, piece) in pieces.iter().enumerate() {
                let other = Bytes::from(harmed(piece.clone(), &harm));
                let whole = &content[at * usize::try_from(PIECE_BYTES).unwrap()..];
                if let Some(read) = table.open(at as u64, &other, length) {
                    prop_assert!(whole.starts_with(&read));
                }
                if number != at as u64 {
                    prop_assert_eq!(table.open(number, &Bytes::from(piece.clone()), length), None);
                }
            }
        }

        #[test]
        fn any_bytes_are_no_table_and_no_piece(bytes in prop::collection::vec(any::<u8>(), 0..200), length in 0..1_u64 << 40) {
            prop_assert_eq!(Table::decode(&bytes, &[7; 32], length, bytes.len() as u64), None);
            let (_, table) = object(&[3; 300_000]);
            prop_assert_eq!(table.open(0, &Bytes::from(bytes), 300_000), None);
        }
    }

    #[test]
    fn the_chaining_values_of_the_pieces_give_the_digest() {
        for pieces in [2_usize, 3, 4, 5, 7, 8, 9, 17] {
            for missing in [0_usize, 1, 5000] {
                let length = pieces * usize::try_from(PIECE_BYTES).unwrap() - missing;
                let content: Vec<u8> = (0..length).map(|at| (at * 7 + at / 300).to_le_bytes()[0]).collect();
                let mut table = Table::default();
                let mut object = Vec::new();
                for piece in content.chunks(usize::try_from(PIECE_BYTES).unwrap()) {
                    let stored = encode(piece, true);
                    table.push(piece, stored.len());
                    object.extend_from_slice(&stored);
                }
                let digest = *blake3::hash(&content).as_bytes();
                assert_eq!(table.digest(), Some(digest), "{length}");
                let tail = table.encode(length as u64);
                let stored_bytes = (object.len() + tail.len()) as u64;
                assert_eq!(Table::decode(&tail, &digest, length as u64, stored_bytes), Some(table.clone()));
                // Whatever bit is another one, it is found out: in the table or in a piece.
                for at in (0..tail.len()).step_by(11) {
                    let mut harmed = tail.clone();
                    harmed[at] ^= 4;
                    assert_eq!(Table::decode(&harmed, &digest, length as u64, stored_bytes), None, "{at}");
                }
                let last = pieces as u64 - 1;
                let (from, to) = table.range(last, last + 1).unwrap();
                let stored = &object[usize::try_from(from).unwrap()..usize::try_from(to).unwrap()];
                let piece = table.open(last, &Bytes::copy_from_slice(stored), length as u64).unwrap();
                assert!(content.ends_with(&piece));
                let mut harmed = stored.to_vec();
                let middle = harmed.len() / 2;
                harmed[middle] ^= 1;
                assert_eq!(table.open(last, &harmed.into(), length as u64), None);
                assert_eq!(table.open(0, &Bytes::copy_from_slice(stored), length as u64), None);
            }
        }
    }
}
