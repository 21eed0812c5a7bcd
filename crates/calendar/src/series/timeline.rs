//! Spans in the order of their starts, of which those that overlap another span are found without looking at the others.

/// Spans, and of each part of a tree over them the last end: the tree's root is the middle one, its branches are the halves.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    /// Start, end and what is there, by start.
    spans: Vec<(i64, i64, usize)>,
    /// Of each span the last end in the part whose root it is.
    last_ends: Vec<i64>,
}

impl Timeline {
    /// From start, end and what is there.
    pub(super) fn new(mut spans: Vec<(i64, i64, usize)>) -> Self {
        spans.sort_unstable();
        let mut last_ends = vec![i64::MIN; spans.len()];
        measure(&spans, &mut last_ends);
        Self { spans, last_ends }
    }

    /// What begins before `to`, and does not end before `from`, by start.
    pub(super) fn overlapping(&self, from: i64, to: i64) -> impl Iterator<Item = usize> {
        let count = self.spans.partition_point(|(start, ..)| *start < to);
        Overlapping { timeline: self, from, count, parts: vec![Part::Whole(0, self.spans.len())] }
    }

    /// What begins at or after a time, by start.
    pub(super) fn from(&self, from: i64) -> impl Iterator<Item = usize> {
        let first = self.spans.partition_point(|(start, ..)| *start < from);
        self.spans.get(first..).unwrap_or_default().iter().map(|(_, _, what)| *what)
    }
}

fn measure(spans: &[(i64, i64, usize)], last_ends: &mut [i64]) -> i64 {
    let middle = spans.len() / 2;
    let Some((_, end, _)) = spans.get(middle) else { return i64::MIN };
    let (before, rest) = last_ends.split_at_mut(middle);
    let Some((own, after)) = rest.split_first_mut() else { return i64::MIN };
    let first = measure(spans.get(..middle).unwrap_or_default(), before);
    let second = measure(spans.get(middle + 1..).unwrap_or_default(), after);
    *own = first.max(second).max(*end);
    *own
}

enum Part {
    Whole(usize, usize),
    One(usize),
}

struct Overlapping<'a> {
    timeline: &'a Timeline,
    from: i64,
    /// Spans that begin early enough.
    count: usize,
    /// What is still to be looked at, the next one last: as many as the tree is high.
    parts: Vec<Part>,
}

impl Iterator for Overlapping<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            match self.parts.pop()? {
                Part::One(place) => {
                    let (_, end, what) = self.timeline.spans.get(place)?;
                    if place < self.count && *end >= self.from {
                        return Some(*what);
                    }
                }
                Part::Whole(first, behind) => {
                    let middle = first + (behind - first) / 2;
                    let last_end = self.timeline.last_ends.get(middle).filter(|_| first < behind);
                    if first < self.count && last_end.is_some_and(|end| *end >= self.from) {
                        let parts =
                            [Part::Whole(middle + 1, behind), Part::One(middle), Part::Whole(first, middle)];
                        self.parts.extend(parts);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_finds_what_looking_at_all_finds(
            spans in prop::collection::vec((0_i64..50, 0_i64..20), 0..40), from in 0_i64..60, length in 0_i64..10,
        ) {
            let spans: Vec<_> =
                spans.iter().enumerate().map(|(place, (start, length))| (*start, start + length, place)).collect();
            let mut sorted = spans.clone();
            sorted.sort_unstable();
            let timeline = Timeline::new(spans);
            let to = from + length;
            let expected: Vec<usize> =
                sorted.iter().filter(|span| span.0 < to && span.1 >= from).map(|span| span.2).collect();
            prop_assert_eq!(timeline.overlapping(from, to).collect::<Vec<_>>(), expected);
            let expected: Vec<usize> = sorted.iter().filter(|span| span.0 >= from).map(|span| span.2).collect();
            prop_assert_eq!(timeline.from(from).collect::<Vec<_>>(), expected);
        }
    }
}
