//! A set of addresses: pages of bits.

use std::collections::BTreeMap;

use crate::format::Address;

const PAGE_BITS: u32 = 10;
const WORDS: usize = 1 << (PAGE_BITS - 6);

/// Addresses that many terms have together. It takes an eighth of a byte for each of the index at most, and less where they
/// are few.
#[derive(Debug, Default)]
pub(crate) struct AddressSet {
    pages: BTreeMap<u32, Box<[u64; WORDS]>>,
}

impl AddressSet {
    pub(crate) fn extend(&mut self, addresses: &[Address]) {
        let mut rest = addresses;
        while let Some(first) = rest.first() {
            let number = first >> PAGE_BITS;
            let count = rest.partition_point(|address| address >> PAGE_BITS == number);
            let (of_page, after) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            rest = after;
            let page = self.pages.entry(number).or_default();
            for address in of_page {
                let bit = address & ((1 << PAGE_BITS) - 1);
                if let Some(word) = page.get_mut((bit >> 6) as usize) {
                    *word |= 1 << (bit & 63);
                }
            }
        }
    }

    /// The first address from `target` on.
    pub(crate) fn from(&self, target: Address) -> Option<Address> {
        let target_page = target >> PAGE_BITS;
        for (number, page) in self.pages.range(target_page..) {
            let bit = if *number == target_page { target & ((1 << PAGE_BITS) - 1) } else { 0 };
            for (at, word) in (0_u32..).zip(page.iter()).skip((bit >> 6) as usize) {
                let word = if at == bit >> 6 { word & (u64::MAX << (bit & 63)) } else { *word };
                if word != 0 {
                    return Some((number << PAGE_BITS) + (at << 6) + word.trailing_zeros());
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::AddressSet;

    proptest::proptest! {
        #[test]
        fn it_is_a_set(addresses: BTreeSet<u32>, near in proptest::collection::btree_set(0_u32..5000, 0..200), target in 0_u32..5000) {
            let all: BTreeSet<u32> = addresses.union(&near).copied().collect();
            let mut set = AddressSet::default();
            set.extend(&near.iter().copied().collect::<Vec<_>>());
            set.extend(&addresses.iter().copied().collect::<Vec<_>>());
            proptest::prop_assert_eq!(set.from(target), all.range(target..).next().copied());
            proptest::prop_assert_eq!(set.from(0), all.first().copied());
            proptest::prop_assert_eq!(set.from(u32::MAX), all.range(u32::MAX..).next().copied());
        }
    }
}
