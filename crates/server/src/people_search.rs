//! Whom somebody may mean while they type a name, and which rooms there are: of the directory what they see of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use scrinium_database::{DatabaseError, ReadOptions, Result};
use scrinium_directory::{
    ADDRESS_READERS, DIRECTORY_DATABASE, Directory, Found, Group, Person, abbreviate, common_name,
};
use scrinium_http::{Identity, PeopleQuery, PeopleSearch};
use scrinium_mail::Resolver;
use scrinium_views::DatabaseSession;
use serde_json::{Value, json};

/// Documents that one question looks at: some milliseconds of a thread.
const LOOKED_AT_MAX: usize = 300;

/// Rooms that one question looks at.
const RESOURCES_MAX: usize = 1_000;

/// Looks into the directory.
pub(crate) struct DirectorySearch {
    directory: Arc<Directory>,
    resolver: Resolver,
}

impl DirectorySearch {
    pub(crate) fn new(directory: &Arc<Directory>, resolver: Resolver) -> Self {
        Self { directory: Arc::clone(directory), resolver }
    }

    /// The directory, for somebody who may read it: with those of whom they see names and addresses alone, as by LDAP.
    fn open(&self, by: &Identity) -> Result<DatabaseSession> {
        let databases = self.directory.databases();
        databases.open_for(DIRECTORY_DATABASE, by)?.access().check_reader()?;
        databases.open_for(DIRECTORY_DATABASE, &by.in_group(ADDRESS_READERS))
    }

    fn people(&self, sight: &DatabaseSession, query: &PeopleQuery) -> Result<Vec<Value>> {
        let mut shown = Vec::new();
        for found in self.directory.called_like(&query.typed, LOOKED_AT_MAX) {
            if shown.len() >= query.limit {
                break;
            }
            match found {
                Found::Person(person) if is_shown(sight, &person)? => shown.push(self.person(&person)),
                Found::Group(group) if sees(sight, &group.id)? => shown.push(shown_group(&group)),
                _ => {}
            }
        }
        Ok(shown)
    }

    fn person(&self, person: &Person) -> Value {
        let kind = person.resource.as_ref().map_or("person", |resource| resource.kind.word());
        let address = self.resolver.addresses_of(person).into_iter().next();
        json!({"kind": kind, "name": name(person), "short_name": person.short_name, "address": address})
    }

    fn resources(&self, sight: &DatabaseSession, query: &PeopleQuery) -> Result<Value> {
        let typed = query.typed.to_lowercase();
        let mut sites = BTreeSet::new();
        let mut fitting = Vec::new();
        for room in self.directory.resources(RESOURCES_MAX) {
            let Some(resource) = room.resource.clone() else { continue };
            if !is_shown(sight, &room)? {
                continue;
            }
            sites.extend(resource.site.clone());
            let is_there = query.site.as_ref().is_none_or(|site| resource.site.as_ref() == Some(site));
            let is_large = resource.capacity.is_none_or(|seats| seats >= query.capacity);
            if is_there && is_large && name(&room).to_lowercase().contains(&typed) {
                fitting.push((resource, room));
            }
        }
        // The smallest that is large enough comes first, last what does not say how large it is.
        fitting.sort_by_cached_key(|(resource, room)| (resource.capacity.unwrap_or(u32::MAX), name(room)));
        let shown = fitting.iter().take(query.limit).map(|(resource, room)| {
            let mut shown = self.person(room);
            if let Some(shown) = shown.as_object_mut() {
                shown.insert("site".to_owned(), json!(resource.site));
                shown.insert("capacity".to_owned(), json!(resource.capacity));
            }
            shown
        });
        Ok(json!({"people": shown.collect::<Vec<_>>(), "sites": sites}))
    }
}

impl PeopleSearch for DirectorySearch {
    fn find(&self, by: &Identity, query: &PeopleQuery) -> Result<Value> {
        let sight = self.open(by)?;
        if query.resources {
            return self.resources(&sight, query);
        }
        Ok(json!({"people": self.people(&sight, query)?}))
    }
}

/// The name that people know somebody by.
fn name(person: &Person) -> String {
    common_name(&abbreviate(person.shown_name())).to_owned()
}

fn shown_group(group: &Group) -> Value {
    json!({"kind": "group", "name": group.list_name, "short_name": null, "address": group.internet_address})
}

/// Whether somebody sees a person who is not disabled.
fn is_shown(sight: &DatabaseSession, person: &Person) -> Result<bool> {
    Ok(!person.account.is_disabled && sees(sight, &person.id)?)
}

fn sees(sight: &DatabaseSession, id: &str) -> Result<bool> {
    match sight.read(id, &ReadOptions::default()) {
        Ok(_) => Ok(true),
        Err(DatabaseError::NotFound { .. } | DatabaseError::Forbidden { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
