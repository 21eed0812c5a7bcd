//! Sets of values as intervals of the collation.

use serde_json::Value;

use crate::bounds::{Edge, KeyBound, KeyRange};

/// A place in the order of values: on one side of a value.
#[derive(Clone, Debug)]
pub(super) struct OrderPlace {
    key: Vec<u8>,
    edge: Edge,
    value: Value,
}

/// The values between two places; without a place, from the lowest or to the highest.
#[derive(Clone, Debug)]
struct Interval {
    start: Option<OrderPlace>,
    end: Option<OrderPlace>,
}

/// Intervals in order, none of which overlap.
#[derive(Clone, Debug)]
pub(super) struct Intervals(Vec<Interval>);

impl OrderPlace {
    pub(super) fn before(value: Value, key: Vec<u8>) -> Self {
        Self { key, edge: Edge::Before, value }
    }

    pub(super) fn after(value: Value, key: Vec<u8>) -> Self {
        Self { key, edge: Edge::After, value }
    }

    fn position(&self) -> (&[u8], Edge) {
        (&self.key, self.edge)
    }
}

impl Interval {
    fn is_empty(&self) -> bool {
        match (&self.start, &self.end) {
            (Some(start), Some(end)) => start.position() >= end.position(),
            _ => false,
        }
    }

    fn intersect(&self, other: &Self) -> Self {
        let start = match (&self.start, &other.start) {
            (Some(left), Some(right)) => Some(if left.position() >= right.position() { left } else { right }),
            (left, right) => left.as_ref().or(right.as_ref()),
        };
        let end = match (&self.end, &other.end) {
            (Some(left), Some(right)) => Some(if left.position() <= right.position() { left } else { right }),
            (left, right) => left.as_ref().or(right.as_ref()),
        };
        Self { start: start.cloned(), end: end.cloned() }
    }

    /// The only value that lies in it, as far as the collation tells values apart.
    fn only_value(&self) -> Option<&Value> {
        match (&self.start, &self.end) {
            (Some(start), Some(end)) if start.key == end.key => Some(&start.value),
            _ => None,
        }
    }
}

impl Intervals {
    pub(super) fn everything() -> Self {
        Self::between(None, None)
    }

    pub(super) fn between(start: Option<OrderPlace>, end: Option<OrderPlace>) -> Self {
        let interval = Interval { start, end };
        Self(if interval.is_empty() { Vec::new() } else { vec![interval] })
    }

    /// Each of these values with its sort key.
    pub(super) fn of_values(mut values: Vec<(Value, Vec<u8>)>) -> Self {
        values.sort_unstable_by(|(_, left), (_, right)| left.cmp(right));
        values.dedup_by(|(_, left), (_, right)| left == right);
        let interval = |(value, key): (Value, Vec<u8>)| Interval {
            start: Some(OrderPlace::before(value.clone(), key.clone())),
            end: Some(OrderPlace::after(value, key)),
        };
        Self(values.into_iter().map(interval).collect())
    }

    /// These and the others, which lie next to them.
    pub(super) fn union(self, others: Self) -> Self {
        let mut all = self.0;
        all.extend(others.0);
        // An interval without a start is the first; `None` sorts so.
        all.sort_by(|left, right| {
            let left = left.start.as_ref().map(OrderPlace::position);
            left.cmp(&right.start.as_ref().map(OrderPlace::position))
        });
        Self(all)
    }

    pub(super) fn intersect(&self, others: &Self) -> Self {
        let (mut left, mut right) = (self.0.iter().peekable(), others.0.iter().peekable());
        let mut common = Vec::new();
        while let (Some(one), Some(other)) = (left.peek(), right.peek()) {
            let both = one.intersect(other);
            if !both.is_empty() {
                common.push(both);
            }
            // Whichever ends first has nothing in common with what comes later.
            let one_ends_first = match (&one.end, &other.end) {
                (Some(one), Some(other)) => one.position() <= other.position(),
                (one, _) => one.is_some(),
            };
            if one_ends_first {
                left.next();
            } else {
                right.next();
            }
        }
        Self(common)
    }

    pub(super) fn is_everything(&self) -> bool {
        matches!(self.0.as_slice(), [Interval { start: None, end: None }])
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// One interval from the first to the last.
    pub(super) fn hull(&self) -> Self {
        match (self.0.first(), self.0.last()) {
            (Some(first), Some(last)) => Self::between(first.start.clone(), last.end.clone()),
            _ => Self(Vec::new()),
        }
    }

    /// The values, if these are single values; none if an interval has more.
    pub(super) fn values(&self) -> Option<Vec<Value>> {
        self.0.iter().map(|interval| interval.only_value().cloned()).collect()
    }

    /// The keys that begin with these values and continue one of the intervals.
    pub(super) fn key_ranges(&self, beginning: &[Value]) -> Vec<KeyRange> {
        let bound = |place: &Option<OrderPlace>, otherwise: Edge| {
            let mut values = beginning.to_vec();
            values.extend(place.as_ref().map(|place| place.value.clone()));
            KeyBound { values, edge: place.as_ref().map_or(otherwise, |place| place.edge) }
        };
        let range = |interval: &Interval| KeyRange {
            start: bound(&interval.start, Edge::Before),
            end: bound(&interval.end, Edge::After),
        };
        self.0.iter().map(range).collect()
    }
}
