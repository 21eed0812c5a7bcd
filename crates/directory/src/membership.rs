//! Who is in which groups, directly or through groups that are in others.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use scrinium_database::GROUPS_MAX;

use crate::delegates::{mail_editors_group, mail_readers_group};
use crate::lookup::names_of;
use crate::names::fold_name;
use crate::{Group, Person};

/// The answers of this many people are kept.
const KEPT_MAX: usize = 100_000;

/// A group's id and names.
type NamedGroup = (Arc<str>, Arc<[String]>);

/// The groups of those who may look into a person's mail file: an id of our own, the name, and the members.
fn mail_groups(person: &Person) -> impl Iterator<Item = (String, String, &[String])> {
    let delegates = &person.delegates;
    [
        (mail_readers_group(&person.mail_file), &delegates.mail_readers),
        (mail_editors_group(&person.mail_file), &delegates.mail_editors),
    ]
    .into_iter()
    .filter(|(_, members)| !members.is_empty())
    .map(|(name, members)| (format!("{} of {}", name, person.id), name, members.as_slice()))
}

/// The groups by their members, and what was found of people since the last change.
#[derive(Default)]
pub(crate) struct Memberships {
    /// Groups by the folded name of each of their members.
    by_member: HashMap<Box<str>, Vec<NamedGroup>>,
    kept: Mutex<HashMap<String, Arc<[String]>>>,
}

impl Memberships {
    pub(crate) fn add(&mut self, id: &Arc<str>, group: &Group) {
        let names: Vec<String> =
            std::iter::once(&group.list_name).chain(&group.other_names).cloned().collect();
        self.add_named(id, names, &group.members);
    }

    pub(crate) fn remove(&mut self, id: &str, group: &Group) {
        self.remove_named(id, &group.members);
    }

    /// Adds the groups of those who may look into a person's mail file.
    pub(crate) fn add_delegates(&mut self, person: &Person) {
        for (id, name, members) in mail_groups(person) {
            self.add_named(&Arc::from(id), vec![name], members);
        }
    }

    pub(crate) fn remove_delegates(&mut self, person: &Person) {
        for (id, _, members) in mail_groups(person) {
            self.remove_named(&id, members);
        }
    }

    fn add_named(&mut self, id: &Arc<str>, names: Vec<String>, members: &[String]) {
        let names: Arc<[String]> = Arc::from(names);
        let members: HashSet<String> = members.iter().map(|member| fold_name(member)).collect();
        for member in members {
            let groups = self.by_member.entry(member.into_boxed_str()).or_default();
            groups.push((Arc::clone(id), Arc::clone(&names)));
        }
    }

    fn remove_named(&mut self, id: &str, members: &[String]) {
        for member in members {
            let member = fold_name(member);
            if let Some(groups) = self.by_member.get_mut(member.as_str()) {
                groups.retain(|(other, _)| **other != *id);
                if groups.is_empty() {
                    self.by_member.remove(member.as_str());
                }
            }
        }
    }

    pub(crate) fn forget(&mut self) {
        self.kept.get_mut().clear();
    }

    /// The names of the groups that a person is in, `first` among them, and the other names of the person; `holder` says whose a name is, if it is one's alone: a name that
    /// several answer to makes nobody a member.
    pub(crate) fn of<'a>(
        &self,
        person: &Person,
        first: impl FnOnce() -> Vec<String>,
        holder: impl Fn(&str) -> Option<&'a Arc<str>>,
    ) -> Arc<[String]> {
        if let Some(groups) = self.kept.lock().get(&person.id) {
            return Arc::clone(groups);
        }
        let mut found: Vec<String> = first();
        // What reads like people of a domain is no group's, however it came into the directory.
        let is_group_s = |name: &&String| !name.trim_start().starts_with('*');
        let mut seen: HashSet<&str> = HashSet::new();
        let is_own = |name: &str| holder(name).is_some_and(|holder| **holder == *person.id);
        // What names somebody as they were called before means them.
        let other_names = person.other_names.iter().filter(is_group_s);
        found.extend(other_names.filter(|name| is_own(&fold_name(name))).cloned());
        let mut names: Vec<String> = names_of(person);
        names.retain(|name| is_own(name));
        // It ends: each group is taken once, and there is a bound.
        while !names.is_empty() {
            let mut next = Vec::new();
            for (id, called) in names.iter().filter_map(|name| self.by_member.get(name.as_str())).flatten() {
                if found.len() < GROUPS_MAX && seen.insert(id) {
                    found.extend(called.iter().filter(is_group_s).cloned());
                    // A group that shares its name with somebody is in no other by that name.
                    next.extend(called.iter().map(|name| fold_name(name)));
                }
            }
            next.retain(|name| holder(name).is_some());
            names = next;
        }
        let found: Arc<[String]> = found.into();
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(person.id.clone(), Arc::clone(&found));
        found
    }
}
