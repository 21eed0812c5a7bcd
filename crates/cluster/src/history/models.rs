//! Objects of which histories are checked.

use std::collections::HashMap;

use super::{Model, Recorded};

/// A document: its revision is compared and set.
#[derive(Clone, Debug)]
pub struct Register;

/// What is asked of a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterOperation {
    /// What is its value?
    Read,
    /// Sets it.
    Write(u64),
    /// Sets it if it is `expected`.
    CompareAndSet {
        /// What it must be; `None`: it has never been set.
        expected: Option<u64>,
        /// What it becomes.
        new: u64,
    },
}

/// What a register answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterAnswer {
    /// The value.
    Value(Option<u64>),
    /// It was set.
    Done,
    /// It was another one.
    Conflict,
}

impl Model for Register {
    type State = Option<u64>;
    type Operation = RegisterOperation;
    type Answer = RegisterAnswer;

    fn initial() -> Self::State {
        None
    }

    fn step(
        state: &Self::State,
        operation: &Self::Operation,
        answer: Option<&Self::Answer>,
    ) -> Option<Self::State> {
        let (next, given) = match operation {
            RegisterOperation::Read => (*state, RegisterAnswer::Value(*state)),
            RegisterOperation::Write(value) => (Some(*value), RegisterAnswer::Done),
            RegisterOperation::CompareAndSet { expected, new } if expected == state => {
                (Some(*new), RegisterAnswer::Done)
            }
            RegisterOperation::CompareAndSet { .. } => (*state, RegisterAnswer::Conflict),
        };
        answer.is_none_or(|answer| *answer == given).then_some(next)
    }
}

/// A list that grows at its end: a read shows everything that was done, in its order.
#[derive(Clone, Debug)]
pub struct AppendList;

/// What is asked of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListOperation {
    /// What is in it?
    Read,
    /// Adds a value; each value once.
    Append {
        /// The value.
        value: u64,
        /// Its place, where some read has shown it.
        place: Option<usize>,
    },
}

/// What a list answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListAnswer {
    /// What is in it.
    Values(Vec<u64>),
    /// It was added.
    Done,
}

impl Model for AppendList {
    type State = Vec<u64>;
    type Operation = ListOperation;
    type Answer = ListAnswer;

    fn initial() -> Self::State {
        Vec::new()
    }

    fn step(
        state: &Self::State,
        operation: &Self::Operation,
        answer: Option<&Self::Answer>,
    ) -> Option<Self::State> {
        match (operation, answer) {
            (ListOperation::Read, Some(ListAnswer::Values(values))) if values != state => None,
            (ListOperation::Read, Some(ListAnswer::Done))
            | (ListOperation::Append { .. }, Some(ListAnswer::Values(_))) => None,
            (ListOperation::Read, _) => Some(state.clone()),
            (ListOperation::Append { place: Some(place), .. }, _) if *place != state.len() => None,
            (ListOperation::Append { value, .. }, _) => {
                let mut next = state.clone();
                next.push(*value);
                Some(next)
            }
        }
    }
}

impl AppendList {
    /// The same history with what reads show of the appends, which spares the search most orders: a value that was read somewhere
    /// was appended there. An append of unknown outcome that nobody has read needs no place: it may never have been done.
    #[must_use]
    pub fn with_places(history: Vec<Recorded<Self>>) -> Vec<Recorded<Self>> {
        let mut places = HashMap::new();
        for recorded in &history {
            if let Some((_, ListAnswer::Values(values))) = &recorded.answer {
                places.extend(values.iter().enumerate().map(|(place, value)| (*value, place)));
            }
        }
        let placed = history.into_iter().map(|mut recorded| {
            if let ListOperation::Append { value, place } = &mut recorded.operation {
                *place = places.get(value).copied();
            }
            recorded
        });
        let needed = |recorded: &Recorded<Self>| {
            recorded.answer.is_some()
                || matches!(recorded.operation, ListOperation::Append { place: Some(_), .. })
        };
        placed.filter(needed).collect()
    }
}
