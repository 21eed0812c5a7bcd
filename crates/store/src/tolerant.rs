//! Walking a range of which parts cannot be read, and saying which.
//!
//! A damaged block, or a file that is missing, makes a cursor fail for all keys that lie in it, and nothing says how
//! far that goes. So what lies behind is looked for in growing steps, closed in on from there, and approached from
//! behind, key by key: what is left out is what really cannot be read.

use crate::{Cursor, Direction, Family, KeyRange, ScanOptions, Snapshot, StoreError};

/// Bytes of a key that steps are taken in, behind those of the key that they start from.
const STEP_BYTES: usize = 8;

/// Steps of closing in on the end of a gap; what they leave open is read key by key.
const CLOSING_STEPS: usize = 48;

/// At most this many keys are read from behind.
const BEHIND_MAX: usize = 10_000;

/// With more gaps than this the rest of the range counts as one.
const GAPS_MAX: usize = 10_000;

/// Keys that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where they lie.
    pub family: Family,
    /// The first key that may be among them.
    pub from: Vec<u8>,
    /// The next key that can be read; `None`: none up to the end of the range.
    pub to: Option<Vec<u8>>,
    /// What reading them came to.
    pub error: String,
}

/// One step of a [`TolerantScan`].
#[derive(Debug)]
pub enum ScanStep<'a> {
    /// A key and its value.
    Entry(&'a [u8], &'a [u8]),
    /// Keys that cannot be read; the next step is what comes behind them.
    Gap(Gap),
}

/// Walks the keys of a range in ascending order, past those that cannot be read. Blocks that it reads do not stay in
/// memory.
pub struct TolerantScan<'snapshot> {
    snapshot: &'snapshot Snapshot,
    cursor: Cursor<'snapshot>,
    family: Family,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    /// The last key that was given out.
    last: Option<Vec<u8>>,
    gaps: usize,
    ended: bool,
}

impl Snapshot {
    /// A scan of `range` that says what it cannot read and continues behind it.
    #[must_use]
    pub fn tolerant(&self, family: Family, range: KeyRange<'_>) -> TolerantScan<'_> {
        TolerantScan {
            snapshot: self,
            cursor: self.cursor_with(family, range, ScanOptions::long(Direction::Forward)),
            family,
            from: range.from.to_vec(),
            to: range.to.map(<[u8]>::to_vec),
            last: None,
            gaps: 0,
            ended: range.is_empty(),
        }
    }
}

impl TolerantScan<'_> {
    /// The next key and its value, or what cannot be read; `None` at the end of the range.
    #[allow(clippy::should_implement_trait, reason = "what it lends lives only until the next call")]
    pub fn next(&mut self) -> Option<ScanStep<'_>> {
        if self.ended {
            return None;
        }
        let stepped = self.cursor.next().map(|entry| entry.is_some());
        match stepped {
            Ok(true) => {}
            Ok(false) => {
                self.ended = true;
                return None;
            }
            Err(error) => return Some(ScanStep::Gap(self.pass(&error))),
        }
        let (key, value) = self.cursor.current()?;
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        Some(ScanStep::Entry(key, value))
    }

    /// Jumps forward, so that the next key given out is `key` or the first one behind it.
    pub fn seek(&mut self, key: &[u8]) {
        if !self.ended {
            self.cursor.seek(key);
            self.last = Some(key.to_vec());
        }
    }

    /// Finds the end of what cannot be read and jumps there.
    fn pass(&mut self, error: &StoreError) -> Gap {
        let from = match &self.last {
            Some(last) => [last.as_slice(), &[0]].concat(),
            None => self.from.clone(),
        };
        self.gaps += 1;
        let to = if self.gaps > GAPS_MAX { None } else { self.readable_after(&from) };
        match &to {
            Some(to) => self.cursor.seek(to),
            None => self.ended = true,
        }
        Gap { family: self.family, from, to, error: error.to_string() }
    }

    fn range<'a>(&'a self, from: &'a [u8]) -> KeyRange<'a> {
        KeyRange { from, to: self.to.as_deref() }
    }

    /// The first key behind `from` from which on a cursor can read; `None` if there is none in the range.
    fn readable_after(&self, from: &[u8]) -> Option<Vec<u8>> {
        let options = ScanOptions { fill_cache: false, ..ScanOptions::default() };
        let mut probe = self.snapshot.cursor_with(self.family, self.range(from), options);
        let start = [from, &[0; STEP_BYTES]].concat();
        let mut bad = start.clone();
        let mut good = None;
        for bit in 0..start.len() * 8 {
            let Some(next) = plus_bit(&start, bit) else { break };
            if self.to.as_ref().is_some_and(|to| next >= *to) {
                break;
            }
            probe.seek(&next);
            match probe.next() {
                Ok(found) => {
                    good = Some((next, found.map(|(key, _)| key.to_vec())));
                    break;
                }
                Err(_) => bad = next,
            }
        }
        let (mut place, mut found) = good?;
        for _ in 0..CLOSING_STEPS {
            let between = middle(&bad, &place);
            if between <= bad || between >= place {
                break;
            }
            probe.seek(&between);
            match probe.next() {
                Ok(next) => (place, found) = (between, next.map(|(key, _)| key.to_vec())),
                Err(_) => bad = between,
            }
        }
        drop(probe);
        self.nearest(from, &place).or(found)
    }

    /// The first key of those before `place` that can be reached from there, backwards.
    fn nearest(&self, from: &[u8], place: &[u8]) -> Option<Vec<u8>> {
        let options = ScanOptions { direction: Direction::Backward, fill_cache: false, read_ahead_bytes: 0 };
        let range = KeyRange { from, to: Some(place) };
        let mut cursor = self.snapshot.cursor_with(self.family, range, options);
        let mut nearest = None;
        for _ in 0..BEHIND_MAX {
            match cursor.next() {
                Ok(Some((key, _))) => nearest = Some(key.to_vec()),
                Ok(None) | Err(_) => break,
            }
        }
        nearest
    }
}

impl std::fmt::Debug for TolerantScan<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TolerantScan").field("family", &self.family).finish_non_exhaustive()
    }
}

/// `key`, taken as a number, and two to the power of `bit`; `None` if that has more bytes.
fn plus_bit(key: &[u8], bit: usize) -> Option<Vec<u8>> {
    let mut sum = key.to_vec();
    let mut carry = 1_u8 << (bit % 8);
    for byte in sum.iter_mut().rev().skip(bit / 8) {
        let (added, overflowed) = byte.overflowing_add(carry);
        *byte = added;
        if !overflowed {
            return Some(sum);
        }
        carry = 1;
    }
    None
}

/// A key about half-way between two of the same length.
fn middle(low: &[u8], high: &[u8]) -> Vec<u8> {
    let mut carry = 0_u16;
    let mut sum: Vec<u16> = Vec::with_capacity(low.len() + 1);
    for (low, high) in low.iter().zip(high).rev() {
        let added = u16::from(*low) + u16::from(*high) + carry;
        sum.push(added & 0xff);
        carry = added >> 8;
    }
    sum.push(carry);
    let mut rest = 0_u16;
    let halves = sum.iter().rev().map(|digit| {
        let all = (rest << 8) | digit;
        rest = all & 1;
        u8::try_from(all >> 1).unwrap_or(u8::MAX)
    });
    halves.skip(1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_counted_as_numbers() {
        assert_eq!(plus_bit(&[0, 255], 0), Some(vec![1, 0]));
        assert_eq!(plus_bit(&[0, 1], 9), Some(vec![2, 1]));
        assert_eq!(plus_bit(&[255, 255], 3), None);
        assert_eq!(middle(&[0, 0], &[2, 0]), [1, 0]);
        assert_eq!(middle(&[1, 255], &[3, 1]), [2, 128]);
        assert_eq!(middle(&[255, 0], &[255, 2]), [255, 1]);
        assert_eq!(middle(&[254, 255], &[255, 255]), [255, 127]);
    }
}
