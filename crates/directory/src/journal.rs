//! What changed of people and groups, for the record: anyone who writes into the directory takes what is theirs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::lookup::Found;
use crate::{Group, Person};

/// Changes that wait to be taken; the oldest go when there are more.
const WAITING_MOST: usize = 10_000;

/// Who has handed in a document has taken its change after this time, if there was one.
const NOTED_FOR: Duration = Duration::from_secs(30);

/// At most this many are known who hand in one document at once.
const WRITERS_MOST: usize = 16;

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

/// A change, and who besides the one who takes it has written the document in the same moment.
#[derive(Clone, Debug)]
pub struct WrittenChange {
    /// The change.
    pub change: DirectoryChange,
    /// The others, one of whom may have made it.
    pub others: Vec<Arc<str>>,
}

/// Who has handed in which document, until its change is taken: several may be at work at once.
#[derive(Default)]
pub(crate) struct Writers(Mutex<HashMap<String, Vec<Noted>>>);

/// Who has handed in a document, and when.
type Noted = (Arc<str>, Instant);

impl Writers {
    /// Somebody hands in a document; an empty id is one that will be made.
    pub(crate) fn note(&self, id: &str, person: Arc<str>) {
        let mut noted = self.0.lock();
        if noted.len() >= WAITING_MOST {
            noted.retain(|_, writers| writers.iter().any(|(_, since)| since.elapsed() < NOTED_FOR));
        }
        if noted.len() >= WAITING_MOST {
            noted.clear();
        }
        let writers = noted.entry(id.to_owned()).or_default();
        writers.retain(|(writer, since)| *writer != person && since.elapsed() < NOTED_FOR);
        if writers.len() < WRITERS_MOST {
            writers.push((person, Instant::now()));
        }
    }

    fn of(&self, id: &str) -> Vec<Arc<str>> {
        let noted = self.0.lock();
        let writers = noted.get(id).or_else(|| noted.get(""));
        let recent = writers.into_iter().flatten().filter(|(_, since)| since.elapsed() < NOTED_FOR);
        recent.map(|(writer, _)| Arc::clone(writer)).collect()
    }

    fn forget(&self, id: &str, person: &str) {
        let mut noted = self.0.lock();
        if let Some(writers) = noted.get_mut(id) {
            writers.retain(|(writer, _)| **writer != *person);
            if writers.is_empty() {
                noted.remove(id);
            }
        }
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

    /// Takes those of one document, or of all, that this person may have made, and says who else may.
    pub(crate) fn take(&mut self, id: Option<&str>, person: &str, writers: &Writers) -> Vec<WrittenChange> {
        let all = std::mem::take(&mut self.0);
        let mut taken = Vec::new();
        for (since, change) in all {
            let by = writers.of(&change.id);
            if id.is_none_or(|id| id == change.id) && by.iter().any(|writer| **writer == *person) {
                let others = by.into_iter().filter(|writer| **writer != *person).collect();
                writers.forget(&change.id, person);
                taken.push(WrittenChange { change, others });
            } else {
                self.0.push_back((since, change));
            }
        }
        taken
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

#[cfg(test)]
mod tests {
    use super::*;

    fn change(id: &str) -> DirectoryChange {
        DirectoryChange { id: id.to_owned(), before: Found::Nobody, after: Found::Nobody }
    }

    #[test]
    fn each_takes_what_is_theirs_of_updates_at_once() {
        let (mut journal, writers) = (Journal::default(), Writers::default());
        for (id, person) in [("a", "ada"), ("b", "bob"), ("both", "ada"), ("both", "bob")] {
            writers.note(id, person.into());
            writers.note(id, person.into());
        }
        ["a", "b", "both", "nobodys"].iter().for_each(|id| journal.add(change(id)));
        let mut take = |id, person| {
            let taken = journal.take(id, person, &writers).into_iter();
            let shown = taken.map(|taken| format!("{} {:?}", taken.change.id, taken.others));
            shown.collect::<Vec<String>>()
        };
        assert_eq!(take(Some("b"), "ada"), Vec::<String>::new());
        assert_eq!(take(None, "bob"), ["b []", "both [\"ada\"]"]);
        assert_eq!(take(None, "ada"), ["a []"]);
        assert_eq!(take(None, "eve"), Vec::<String>::new());
        let left = journal.take_old(Duration::ZERO);
        assert_eq!(left.iter().map(|change| change.id.as_str()).collect::<Vec<_>>(), ["nobodys"]);
    }
}
