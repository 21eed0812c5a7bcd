//! Wing and Gong's search for an order, with Lowe's memory of what was tried in vain.
//!
//! An order puts each operation at one moment between its beginning and its end. Those whose outcome is unknown may have taken
//! effect at any moment after they began, or never.

use std::collections::HashSet;
use std::hash::Hash;

/// What an object does, one operation after the other.
pub trait Model {
    /// What it holds.
    type State: Clone + Eq + Hash;
    /// What is asked of it.
    type Operation;
    /// What it answers.
    type Answer;

    /// What it holds at first.
    fn initial() -> Self::State;

    /// What it holds after an operation; `None` if it would not have answered so. Without an answer the operation may have
    /// had any.
    fn step(
        state: &Self::State,
        operation: &Self::Operation,
        answer: Option<&Self::Answer>,
    ) -> Option<Self::State>;
}

/// One operation as a client saw it. Times are of one clock, in any unit.
#[derive(Clone, Debug)]
pub struct Recorded<M: Model> {
    /// When it was asked for.
    pub begun: u64,
    /// What was asked.
    pub operation: M::Operation,
    /// When it was answered, and what; `None` if nobody knows.
    pub answer: Option<(u64, M::Answer)>,
}

/// What the search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is an order.
    Linearizable,
    /// There is none. However operations are ordered, at most this many find their answers.
    Violated {
        /// How many operations the longest order explains.
        explained: usize,
    },
    /// The search was given up.
    TooLong,
}

/// A part of an order: all operations before `frontier` but the open ones are in it, in the order in which they begin.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Part<S> {
    frontier: usize,
    open: Vec<usize>,
    state: S,
}

/// Looks for an order of one object's operations, in at most `most_steps` steps.
pub fn check_linearizable<M: Model>(history: &[Recorded<M>], most_steps: usize) -> Verdict {
    let mut operations: Vec<&Recorded<M>> = history.iter().collect();
    operations.sort_by_key(|recorded| recorded.begun);
    let first_ends = first_ends(&operations);
    let mut tried = HashSet::new();
    let mut to_try = vec![Part { frontier: 0, open: Vec::new(), state: M::initial() }];
    let mut explained = 0;
    let mut steps = 0_usize;
    while let Some(part) = to_try.pop() {
        explained = explained.max(part.frontier.saturating_sub(part.open.len()));
        if part.is_whole(&operations) {
            return Verdict::Linearizable;
        }
        if !tried.insert(part.clone()) {
            continue;
        }
        let before = to_try.len();
        for place in part.candidates(&operations, &first_ends) {
            steps = steps.saturating_add(1);
            if steps > most_steps {
                return Verdict::TooLong;
            }
            let next = operations.get(place).and_then(|recorded| part.with(place, recorded));
            to_try.extend(next);
        }
        // What began first is tried first.
        if let Some(added) = to_try.get_mut(before..) {
            added.reverse();
        }
    }
    Verdict::Violated { explained }
}

/// For each place the first end of the operations from there on.
fn first_ends<M: Model>(operations: &[&Recorded<M>]) -> Vec<u64> {
    let mut first = u64::MAX;
    let mut ends: Vec<u64> = operations
        .iter()
        .rev()
        .map(|recorded| {
            first = first.min(recorded.end());
            first
        })
        .collect();
    ends.reverse();
    ends
}

impl<M: Model> Recorded<M> {
    fn end(&self) -> u64 {
        self.answer.as_ref().map_or(u64::MAX, |(ended, _)| *ended)
    }
}

impl<S: Clone> Part<S> {
    /// Whether what is left may never have taken effect.
    fn is_whole<M: Model>(&self, operations: &[&Recorded<M>]) -> bool {
        let unknown = |recorded: &&Recorded<M>| recorded.answer.is_none();
        self.open.iter().filter_map(|place| operations.get(*place)).all(unknown)
            && operations.get(self.frontier..).is_none_or(|rest| rest.iter().all(unknown))
    }

    /// The operations that may come next: they began before any of those that are left has ended.
    fn candidates<M: Model>(&self, operations: &[&Recorded<M>], first_ends: &[u64]) -> Vec<usize> {
        let end = |place: &usize| operations.get(*place).map(|recorded| recorded.end());
        let rest = first_ends.get(self.frontier).copied().unwrap_or(u64::MAX);
        let end = self.open.iter().filter_map(end).min().unwrap_or(u64::MAX).min(rest);
        let has_begun = |place: &usize| operations.get(*place).is_some_and(|recorded| recorded.begun <= end);
        let open = self.open.iter().copied().filter(has_begun);
        open.chain((self.frontier..operations.len()).take_while(has_begun)).collect()
    }

    fn with<M: Model<State = S>>(&self, place: usize, recorded: &Recorded<M>) -> Option<Self> {
        let answer = recorded.answer.as_ref().map(|(_, answer)| answer);
        let state = M::step(&self.state, &recorded.operation, answer)?;
        let mut open = self.open.clone();
        let mut frontier = self.frontier;
        if place < frontier {
            open.retain(|other| *other != place);
        } else {
            open.extend(frontier..place);
            frontier = place.saturating_add(1);
        }
        Some(Self { frontier, open, state })
    }
}
