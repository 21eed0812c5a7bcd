//! Numbers as terms: each in full and with fewer and fewer of its bits, so that a range is few terms.

use crate::format::TermKind;

/// How many low bits of a number each of its terms leaves out.
pub(crate) const SHIFTS: [u8; 6] = [0, 24, 32, 40, 48, 56];

/// Bytes of a number in a term: seven bits each, and none of them NUL, which ends terms.
const TERM_BYTES: usize = 10;

/// A number whose order is that of the numbers; of all that are none, the last.
pub(crate) fn ordered(number: f64) -> u64 {
    // -0 is 0.
    let bits = (number + 0.0).to_bits();
    if number.is_nan() {
        u64::MAX
    } else if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

/// The number again.
pub(crate) fn number_of(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

/// The content of the term of `ordered` without its lowest `shift` bits.
pub(crate) fn term(ordered: u64, shift: u8) -> [u8; TERM_BYTES] {
    let mut rest = ordered >> shift;
    let mut bytes = [0x80; TERM_BYTES];
    for byte in bytes.iter_mut().rev() {
        *byte |= u8::try_from(rest & 0x7f).unwrap_or_default();
        rest >>= 7;
    }
    bytes
}

/// The kind of terms without their lowest `shift` bits.
pub(crate) fn kind(shift: u8) -> TermKind {
    TermKind::Number(shift)
}

/// Terms from `first` to `last`, both among them, of one shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TermRange {
    pub(crate) shift: u8,
    /// With the bits that are left out.
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// The terms of all numbers from `first` to `last`, both among them.
pub(crate) fn ranges(mut first: u64, mut last: u64) -> Vec<TermRange> {
    let mut ranges = Vec::new();
    let mut shifts = SHIFTS.into_iter().peekable();
    while let Some(shift) = shifts.next() {
        if first > last {
            return ranges;
        }
        let Some(next) = shifts.peek() else {
            ranges.push(TermRange { shift, first, last });
            return ranges;
        };
        let below = (1_u64 << next) - 1;
        let is_first_whole = first & below == 0;
        let is_last_whole = last & below == below;
        // The first number of the coarser terms between, and the last one.
        let begins = if is_first_whole { Some(first) } else { (first | below).checked_add(1) };
        let ends = if is_last_whole { Some(last) } else { (last & !below).checked_sub(1) };
        let (Some(begins), Some(ends)) = (begins, ends) else {
            ranges.push(TermRange { shift, first, last });
            return ranges;
        };
        if begins > ends {
            ranges.push(TermRange { shift, first, last });
            return ranges;
        }
        if !is_first_whole {
            ranges.push(TermRange { shift, first, last: begins - 1 });
        }
        if !is_last_whole {
            ranges.push(TermRange { shift, first: ends + 1, last });
        }
        (first, last) = (begins, ends);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_numbers_is_kept() {
        let numbers = [f64::NEG_INFINITY, -1e300, -1.5, -0.0, 1e-300, 1.0, 1.5, 1e17, f64::INFINITY];
        for pair in numbers.windows(2) {
            assert!(ordered(pair[0]) < ordered(pair[1]), "{pair:?}");
            assert!(term(ordered(pair[0]), 0) < term(ordered(pair[1]), 0), "{pair:?}");
        }
        assert_eq!(ordered(-0.0), ordered(0.0));
        for number in numbers {
            assert!((number_of(ordered(number)) - number).abs() < f64::EPSILON || number.is_infinite());
        }
    }

    proptest::proptest! {
        #[test]
        fn a_range_covers_each_of_its_numbers_once_and_no_other(a: u64, b: u64, within: u64, near in -3_i64..3) {
            let (first, last) = (a.min(b), a.max(b));
            let inside = first + within.checked_rem((last - first).saturating_add(1)).unwrap_or(within);
            for number in [inside, first, last, first.wrapping_add_signed(near), last.wrapping_add_signed(near)] {
                let holds = |range: &&TermRange| {
                    let at = number >> range.shift;
                    (range.first >> range.shift) <= at && at <= (range.last >> range.shift)
                };
                let times = ranges(first, last).iter().filter(holds).count();
                proptest::prop_assert_eq!(times, usize::from(first <= number && number <= last));
            }
        }
    }
}
