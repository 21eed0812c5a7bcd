//! Everybody in the directory, by every name they answer to, in memory.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::{Map, Value};

use crate::names::{abbreviate, common_name, fold_name};
use crate::{ADMINISTRATOR_ROLE, GROUP_FORM, Group, PERSON_FORM, Person};

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nobody has this name.
    Nobody,
    /// One person.
    Person(Arc<Person>),
    /// One group.
    Group(Arc<Group>),
    /// More than one person or group answers to it.
    Several,
}

impl Found {
    fn of(entry: Option<&Entry>) -> Self {
        match entry {
            None => Self::Nobody,
            Some(Entry::Person(person)) => Self::Person(Arc::clone(person)),
            Some(Entry::Group(group)) => Self::Group(Arc::clone(group)),
        }
    }
}

/// Finds people and groups by name.
pub trait NameLookup: Send + Sync {
    /// Whom `name` stands for: a short name, full name (whole or its first component), group name or Internet
    /// address, in any case.
    fn find(&self, name: &str) -> Found;
}

/// People and groups by name, kept by applying the directory's changes.
///
/// Some 1 KB a person: 100,000 people take about 100 MB.
#[derive(Default)]
pub struct NameIndex {
    entries: RwLock<Entries>,
}

#[derive(Default)]
struct Entries {
    by_id: HashMap<Arc<str>, Entry>,
    by_name: HashMap<Box<str>, Holders>,
    administrators: usize,
}

#[derive(Clone)]
enum Entry {
    Person(Arc<Person>),
    Group(Arc<Group>),
}

/// Ids of the documents that answer to one name; nearly always one.
enum Holders {
    One(Arc<str>),
    Several(Vec<Arc<str>>),
}

impl NameIndex {
    /// An index of nobody.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes over the document `id` as it now is, or its removal. A document that is no valid person or group
    /// is left out.
    ///
    /// Returns what the document was before, and what it is now.
    pub fn apply(&self, id: &str, document: Option<&Map<String, Value>>) -> (Found, Found) {
        let entry = document.and_then(|document| read_entry(id, document));
        let after = Found::of(entry.as_ref());
        let before = Found::of(self.entries.write().replace(id, entry).as_ref());
        (before, after)
    }

    /// Forgets everybody.
    pub fn clear(&self) {
        *self.entries.write() = Entries::default();
    }

    /// The person whose document has this id.
    #[must_use]
    pub fn person(&self, id: &str) -> Option<Arc<Person>> {
        match self.entries.read().by_id.get(id) {
            Some(Entry::Person(person)) => Some(Arc::clone(person)),
            _ => None,
        }
    }

    /// How many people and groups there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.read().by_id.len()
    }

    /// Whether there is nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether anybody administers the server.
    #[must_use]
    pub fn has_administrator(&self) -> bool {
        self.entries.read().administrators > 0
    }
}

impl NameLookup for NameIndex {
    fn find(&self, name: &str) -> Found {
        let entries = self.entries.read();
        match entries.by_name.get(fold_name(name).as_str()) {
            None => Found::Nobody,
            Some(Holders::Several(_)) => Found::Several,
            Some(Holders::One(id)) => match entries.by_id.get(id) {
                Some(Entry::Person(person)) => Found::Person(Arc::clone(person)),
                Some(Entry::Group(group)) => Found::Group(Arc::clone(group)),
                None => Found::Nobody,
            },
        }
    }
}

fn read_entry(id: &str, document: &Map<String, Value>) -> Option<Entry> {
    // The feed gives the id beside the document, which need not repeat it.
    match document.get("Form").and_then(Value::as_str) {
        Some(PERSON_FORM) => {
            let mut person = Person::read(document).ok()?;
            id.clone_into(&mut person.id);
            Some(Entry::Person(Arc::new(person)))
        }
        Some(GROUP_FORM) => {
            let mut group = Group::read(document).ok()?;
            id.clone_into(&mut group.id);
            Some(Entry::Group(Arc::new(group)))
        }
        _ => None,
    }
}

impl Entry {
    /// Every folded name, each once.
    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        match self {
            Self::Person(person) => {
                names.push(fold_name(&person.short_name));
                for full_name in &person.full_names {
                    names.push(fold_name(full_name));
                    names.push(fold_name(common_name(&abbreviate(full_name))));
                }
                names.extend(person.internet_address.as_deref().map(fold_name));
            }
            Self::Group(group) => {
                names.push(fold_name(&group.list_name));
                names.extend(group.internet_address.as_deref().map(fold_name));
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    fn is_administrator(&self) -> bool {
        matches!(self, Self::Person(person) if person.has_role(ADMINISTRATOR_ROLE))
    }
}

impl Entries {
    /// Returns what the document was before.
    fn replace(&mut self, id: &str, entry: Option<Entry>) -> Option<Entry> {
        let mut former = None;
        if let Some((id, old)) = self.by_id.remove_entry(id) {
            self.administrators -= usize::from(old.is_administrator());
            for name in old.names() {
                self.release(&name, &id);
            }
            former = Some(old);
        }
        let Some(entry) = entry else { return former };
        let id: Arc<str> = Arc::from(id);
        self.administrators += usize::from(entry.is_administrator());
        for name in entry.names() {
            self.hold(name, &id);
        }
        self.by_id.insert(id, entry);
        former
    }

    fn hold(&mut self, name: String, id: &Arc<str>) {
        let holders = match self.by_name.remove(name.as_str()) {
            None => Holders::One(Arc::clone(id)),
            Some(Holders::One(other)) => Holders::Several(vec![other, Arc::clone(id)]),
            Some(Holders::Several(mut others)) => {
                others.push(Arc::clone(id));
                Holders::Several(others)
            }
        };
        self.by_name.insert(name.into_boxed_str(), holders);
    }

    fn release(&mut self, name: &str, id: &Arc<str>) {
        let Some(Holders::Several(mut others)) = self.by_name.remove(name) else { return };
        others.retain(|other| other != id);
        let left = match (others.len(), others.pop()) {
            (1, Some(other)) => Holders::One(other),
            (_, Some(other)) => {
                others.push(other);
                Holders::Several(others)
            }
            (_, None) => return,
        };
        self.by_name.insert(Box::from(name), left);
    }
}
