//! Sets of numbers as ranges, which is how UIDs lie in a folder.

use scrinium_imap_wire::{SequenceSet, SetNumber};
use thiserror::Error;

/// A set would need more ranges than its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("more than {0} separate ranges of messages")]
pub struct TooManyRanges(pub usize);

/// Numbers from 1, as ascending ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberSet {
    ranges: Vec<(u32, u32)>,
}

impl NumberSet {
    /// Ranges with both ends, in any order.
    #[must_use]
    pub fn of_ranges(ranges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut ranges: Vec<(u32, u32)> = ranges.into_iter().filter(|(from, to)| from <= to).collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (from, to) in ranges {
            match merged.last_mut() {
                Some((_, end)) if from <= end.saturating_add(1) => *end = (*end).max(to),
                _ => merged.push((from, to)),
            }
        }
        Self { ranges: merged }
    }

    /// The ranges, ascending.
    #[must_use]
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Whether there is no number.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many numbers there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|(from, to)| u64::from(to - from) + 1).sum()
    }

    /// The smallest and the greatest number.
    #[must_use]
    pub fn ends(&self) -> Option<(u32, u32)> {
        Some((self.ranges.first()?.0, self.ranges.last()?.1))
    }

    /// Whether a number is in it.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        let after = self.ranges.partition_point(|(from, _)| *from <= number);
        after.checked_sub(1).and_then(|at| self.ranges.get(at)).is_some_and(|(_, to)| number <= *to)
    }

    /// Adds a number; ascending ones cost nothing.
    ///
    /// # Errors
    /// [`TooManyRanges`]: the set stays as it was.
    pub fn insert(&mut self, number: u32, ranges_max: usize) -> Result<(), TooManyRanges> {
        self.insert_range(number, number, ranges_max)
    }

    /// Adds all numbers of a range.
    ///
    /// # Errors
    /// [`TooManyRanges`]: the set stays as it was.
    pub fn insert_range(&mut self, from: u32, to: u32, ranges_max: usize) -> Result<(), TooManyRanges> {
        if from > to {
            return Ok(());
        }
        // Ranges that touch or overlap the new one.
        let first = self.ranges.partition_point(|(_, end)| end.saturating_add(1) < from);
        let behind = self.ranges.partition_point(|(begin, _)| *begin <= to.saturating_add(1));
        let touched = self.ranges.get(first..behind).unwrap_or_default();
        let begin = touched.first().map_or(from, |(begin, _)| from.min(*begin));
        let end = touched.last().map_or(to, |(_, end)| to.max(*end));
        if touched.is_empty() && self.ranges.len() >= ranges_max {
            return Err(TooManyRanges(ranges_max));
        }
        self.ranges.splice(first..behind.max(first), [(begin, end)]);
        Ok(())
    }

    /// Numbers above this one.
    #[must_use]
    pub fn above(&self, number: u32) -> Self {
        let Some(from) = number.checked_add(1) else { return Self::default() };
        let first = self.ranges.partition_point(|(_, to)| *to < from);
        let mut ranges = self.ranges.get(first..).unwrap_or_default().to_vec();
        if let Some((begin, _)) = ranges.first_mut() {
            *begin = (*begin).max(from);
        }
        Self { ranges }
    }

    /// Numbers up to this one.
    #[must_use]
    pub fn up_to(&self, number: u32) -> Self {
        let behind = self.ranges.partition_point(|(from, _)| *from <= number);
        let mut ranges = self.ranges.get(..behind).unwrap_or_default().to_vec();
        if let Some((_, end)) = ranges.last_mut() {
            *end = (*end).min(number);
        }
        Self { ranges }
    }

    /// All numbers, ascending.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|(from, to)| *from..=*to)
    }

    /// As IMAP writes it; `None` if it is empty.
    #[must_use]
    pub fn sequence_set(&self) -> Option<SequenceSet> {
        let range = |(from, to): &(u32, u32)| (SetNumber::Number(*from), SetNumber::Number(*to));
        (!self.is_empty()).then(|| SequenceSet::Ranges(self.ranges.iter().map(range).collect()))
    }
}
