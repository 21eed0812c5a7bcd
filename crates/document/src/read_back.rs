//! What is read back from keys of the collation, as one number.

use serde_json::{Value, json};

use crate::collation::write_sort_key;

/// FNV-1a, 64 bits: short, and kept in indexes, so it may not change with a library.
const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Tells whether keys that were written earlier can be read back now: it is another as soon as the layout of keys, or
/// the key of a character or number that [`value_of_key`](crate::collation::value_of_key) reads, is another.
///
/// Two versions of the collation with the same number differ in the order of other texts only.
#[must_use]
pub fn read_back_digest() -> u64 {
    let characters = (0u8..128).map(|byte| Value::from(char::from(byte).to_string()));
    let others = json!([null, false, true, -1.5, 0, 9_007_199_254_740_993_u64, "aB c", [1], {"a": 1}]);
    let mut key = Vec::new();
    characters.chain([others]).for_each(|value| write_sort_key(&mut key, &value));
    key.iter().fold(OFFSET_BASIS, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(PRIME))
}
