//! What changed of people and groups, for the record: whoever writes into the directory takes what is theirs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::lookup::Found;
use crate::{Group, Person};

/// Changes that wait to be taken; the oldest go when there are more.
const WAITING_MOST: usize = 10_000;

/// A change of one document of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryChange {
    /// The document's id.
    pub id: String,
    /// What it was.
    pub before: Found,
    /// What it is.
    pub after: Found,
}

/// What something was before a change and is now; `None` where it was or is something else.
pub type BeforeAndAfter<'a, T> = (Option<&'a Arc<T>>, Option<&'a Arc<T>>);

impl DirectoryChange {
    /// The person before and now, where it is one.
    #[must_use]
    pub fn people(&self) -> Option<BeforeAndAfter<'_, Person>> {
        fn of(found: &Found) -> Option<&Arc<Person>> {
            match found {
                Found::Person(person) => Some(person),
                _ => None,
            }
        }
        let people = (of(&self.before), of(&self.after));
        (people != (None, None)).then_some(people)
    }

    /// The group before and now, where it is one.
    #[must_use]
    pub fn groups(&self) -> Option<BeforeAndAfter<'_, Group>> {
        fn of(found: &Found) -> Option<&Arc<Group>> {
            match found {
                Found::Group(group) => Some(group),
                _ => None,
            }
        }
        let groups = (of(&self.before), of(&self.after));
        (groups != (None, None)).then_some(groups)
    }
}

/// Changes that nobody has taken yet.
#[derive(Default)]
pub(crate) struct Journal(VecDeque<(Instant, DirectoryChange)>);

impl Journal {
    pub(crate) fn add(&mut self, change: DirectoryChange) {
        if self.0.len() >= WAITING_MOST {
            self.0.pop_front();
        }
        self.0.push_back((Instant::now(), change));
    }

    /// Takes those of one document, or all.
    pub(crate) fn take(&mut self, id: Option<&str>) -> Vec<DirectoryChange> {
        let all = std::mem::take(&mut self.0);
        let (taken, left): (VecDeque<_>, VecDeque<_>) =
            all.into_iter().partition(|(_, change)| id.is_none_or(|id| id == change.id));
        self.0 = left;
        taken.into_iter().map(|(_, change)| change).collect()
    }

    /// Takes those that have waited for so long.
    pub(crate) fn take_old(&mut self, age: Duration) -> Vec<DirectoryChange> {
        let mut taken = Vec::new();
        while self.0.front().is_some_and(|(since, _)| since.elapsed() >= age) {
            taken.extend(self.0.pop_front().map(|(_, change)| change));
        }
        taken
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
