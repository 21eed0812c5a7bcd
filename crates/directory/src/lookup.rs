//! Everybody in the directory, by every name they answer to, in memory.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use scrinium_assertion::never;
use scrinium_credentials::StoredCredentials;
use scrinium_database::access::readers::READERS;
use serde_json::{Map, Value};

use crate::domain::{
    DOMAIN_ADMINISTRATORS, DOMAIN_PREFIX, DirectoryDomain, Domains, OutsidersSee, administrators_of,
    domain_of,
};
use crate::membership::Memberships;
use crate::names::{abbreviate, common_name, fold_name};
use crate::words::{NameWords, has_all, words_in};
use crate::{
    ADMINISTRATOR_ROLE, CredentialChange, CredentialError, CredentialRecords, DirectoryError, GROUP_FORM,
    Group, MAIL_IN_FORM, MailIn, PERSON_FORM, Person,
};

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nobody has this name.
    Nobody,
    /// One person.
    Person(Arc<Person>),
    /// One group.
    Group(Arc<Group>),
    /// One mail-in database.
    MailIn(Arc<MailIn>),
    /// More than one of these answer to it.
    Several,
}

impl Found {
    fn of(entry: Option<&Entry>) -> Self {
        match entry {
            None => Self::Nobody,
            Some(Entry::Person(person)) => Self::Person(Arc::clone(person)),
            Some(Entry::Group(group)) => Self::Group(Arc::clone(group)),
            Some(Entry::MailIn(mail_in)) => Self::MailIn(Arc::clone(mail_in)),
        }
    }
}

/// Finds people and groups by name.
pub trait NameLookup: Send + Sync {
    /// Whom `name` stands for: a short name, full name (whole or its first component), group name or Internet
    /// address, in any case.
    fn find(&self, name: &str) -> Found;

    /// The names of the groups that a person is in, directly or through groups.
    fn groups_of(&self, person: &Person) -> Arc<[String]>;

    /// What the directory says of a domain of the Internet, in any case.
    fn domain(&self, name: &str) -> Option<Arc<DirectoryDomain>>;
}

/// People and groups by name, kept by applying the directory's changes.
///
/// Some 1.4 KB a person: 100,000 people take about 140 MB.
#[derive(Default)]
pub struct NameIndex {
    entries: RwLock<Entries>,
    /// Ids of people and groups that cannot be read, or whose credentials cannot be.
    unreadable: Mutex<HashSet<String>>,
    domains: RwLock<Domains>,
    /// Domains some of whose documents may have other `Readers` than the domain asks for.
    unsettled: Mutex<BTreeSet<String>>,
}

#[derive(Default)]
struct Entries {
    by_id: HashMap<Arc<str>, Entry>,
    by_name: HashMap<Box<str>, Holders>,
    by_word: NameWords,
    /// Ids of the people who are rooms and other resources.
    resources: BTreeSet<Arc<str>>,
    /// People by the accounts at providers that are linked to them; of several, the last.
    by_link: HashMap<(String, String), Arc<str>>,
    /// People by what their passkeys know them as.
    by_handle: HashMap<Vec<u8>, Arc<str>>,
    administrators: usize,
    memberships: Memberships,
}

#[derive(Clone)]
enum Entry {
    Person(Arc<Person>),
    Group(Arc<Group>),
    MailIn(Arc<MailIn>),
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

    /// Takes over the document `id` as it now is, or its removal. A person or group that cannot be read is left out, logged,
    /// and counted.
    ///
    /// Returns what the document was before, and what it is now.
    pub fn apply(&self, id: &str, document: Option<&Map<String, Value>>) -> (Found, Found) {
        self.apply_with(id, document, None)
    }

    /// The same with the credentials of a person, which lie apart from the document.
    pub fn apply_with(
        &self,
        id: &str,
        document: Option<&Map<String, Value>>,
        credentials: Option<StoredCredentials>,
    ) -> (Found, Found) {
        self.apply_read(id, document, credentials.map(Ok))
    }

    /// The same with what reading the credentials has given. Where they cannot be read, the person comes in by nothing.
    pub(crate) fn apply_read(
        &self,
        id: &str,
        document: Option<&Map<String, Value>>,
        credentials: Option<Result<StoredCredentials, CredentialError>>,
    ) -> (Found, Found) {
        let (credentials, mut is_readable) = match credentials {
            Some(Err(error)) => {
                tracing::error!(id, %error, "the credentials of a person cannot be read: the person cannot log in");
                (Some(StoredCredentials::default()), false)
            }
            Some(Ok(credentials)) => (Some(credentials), true),
            None => (None, true),
        };
        is_readable &= self.apply_domain(id, document);
        let entry = match document.map(|document| read_entry(id, document, credentials)) {
            Some(Ok(entry)) => entry,
            Some(Err(error)) => {
                tracing::error!(id, %error, "a person or group of the directory cannot be read: nobody is known by it");
                is_readable = false;
                None
            }
            None => None,
        };
        if is_readable {
            self.unreadable.lock().remove(id);
        } else {
            self.unreadable.lock().insert(id.to_owned());
        }
        if let (Some(document), Some(domain)) = (document, entry.as_ref().and_then(Entry::domain)) {
            let domains = self.domains.read();
            if domains.readers_instead(Some(&domain), document.get(READERS)).is_some() {
                self.unsettled.lock().insert(domain);
            }
        }
        let after = Found::of(entry.as_ref());
        let mut entries = self.entries.write();
        let before = Found::of(entries.replace(id, entry).as_ref());
        // Anyone who was in a group may be in others now.
        entries.memberships.forget();
        (before, after)
    }

    /// Takes over what a document says of a domain; whether it can be read.
    fn apply_domain(&self, id: &str, document: Option<&Map<String, Value>>) -> bool {
        if !id.starts_with(DOMAIN_PREFIX) {
            return true;
        }
        let domain = document.map(|document| DirectoryDomain::read(id, document)).transpose();
        let is_readable = domain.is_ok();
        if let Err(error) = &domain {
            tracing::error!(id, %error, "a domain of the directory cannot be read: nothing is known of it");
        }
        let name = id.strip_prefix(DOMAIN_PREFIX).unwrap_or_default();
        let mut domains = self.domains.write();
        let seen =
            |domains: &Domains| domains.find(name).map_or(OutsidersSee::All, |domain| domain.outsiders_see());
        let before = seen(&domains);
        domains.replace(id, domain.ok().flatten());
        if seen(&domains) != before {
            self.unsettled.lock().insert(name.to_owned());
        }
        is_readable
    }

    /// A domain whose documents have to be looked at for the sake of their `Readers`, once.
    pub(crate) fn take_unsettled(&self) -> Option<String> {
        self.unsettled.lock().pop_first()
    }

    /// Says that a domain has to be looked at again.
    pub(crate) fn unsettle(&self, domain: String) {
        self.unsettled.lock().insert(domain);
    }

    /// The ids of what has its main address in a domain.
    pub(crate) fn ids_of_domain(&self, domain: &str) -> Vec<Arc<str>> {
        let entries = self.entries.read();
        let is_there = |entry: &Entry| entry.domain().as_deref() == Some(domain);
        entries.by_id.iter().filter(|(_, entry)| is_there(entry)).map(|(id, _)| Arc::clone(id)).collect()
    }

    /// The domain of the main address of the one with this id.
    pub(crate) fn domain_of(&self, id: &str) -> Option<String> {
        self.entries.read().by_id.get(id)?.domain()
    }

    /// As [`Domains::readers_instead`].
    pub(crate) fn readers_instead(
        &self,
        domain: Option<&str>,
        present: Option<&Value>,
    ) -> Option<Option<Value>> {
        self.domains.read().readers_instead(domain, present)
    }

    /// Whether another document than `id` answers to a folded name, or, with `whole`, has it as a whole name and not only
    /// as the first part of one.
    pub(crate) fn is_another_s(&self, name: &str, id: &str, whole: bool) -> bool {
        let entries = self.entries.read();
        let holders: Vec<&Arc<str>> = match entries.by_name.get(name) {
            None => Vec::new(),
            Some(Holders::One(holder)) => vec![holder],
            Some(Holders::Several(holders)) => holders.iter().collect(),
        };
        let is_whole =
            |holder: &Arc<str>| entries.by_id.get(holder).is_some_and(|entry| entry.is_called(name));
        holders.into_iter().any(|holder| **holder != *id && (!whole || is_whole(holder)))
    }

    /// Everybody who answers to a name, by the order of their documents' ids: those whom [`NameLookup::find`] calls several.
    #[must_use]
    pub fn all_called(&self, name: &str) -> Vec<Found> {
        let entries = self.entries.read();
        let mut holders: Vec<&Arc<str>> = match entries.by_name.get(fold_name(name).as_str()) {
            None => Vec::new(),
            Some(Holders::One(holder)) => vec![holder],
            Some(Holders::Several(holders)) => holders.iter().collect(),
        };
        holders.sort_unstable();
        holders.into_iter().map(|holder| Found::of(entries.by_id.get(holder))).collect()
    }

    /// People and groups who may be meant by what somebody types: those of whose names a word begins with each word of it, the
    /// one who is called so before others; as many as this at most.
    #[must_use]
    pub fn called_like(&self, typed: &str, most: usize) -> Vec<Found> {
        let prefixes: Vec<String> = words_in(typed.split('@').next().unwrap_or_default()).collect();
        // The longest one names the fewest.
        let Some(longest) = prefixes.iter().max_by_key(|prefix| prefix.len()) else { return Vec::new() };
        let entries = self.entries.read();
        let first = entries.by_name_alone(&fold_name(typed));
        let others = entries.by_word.beginning(longest).into_iter().filter(|id| Some(*id) != first);
        let fits = |id: &&Arc<str>| {
            let entry = entries.by_id.get(*id);
            Some(*id) == first || entry.is_some_and(|entry| has_all(&entry.names(), &prefixes))
        };
        let found = first.into_iter().chain(others).filter(fits).map(|id| Found::of(entries.by_id.get(id)));
        found.filter(|found| matches!(found, Found::Person(_) | Found::Group(_))).take(most).collect()
    }

    /// The rooms and other resources, by the order of their documents' ids; as many as this at most.
    #[must_use]
    pub fn resources(&self, most: usize) -> Vec<Arc<Person>> {
        let entries = self.entries.read();
        let people = entries.resources.iter().filter_map(|id| match entries.by_id.get(id) {
            Some(Entry::Person(person)) => Some(Arc::clone(person)),
            _ => None,
        });
        people.take(most).collect()
    }

    /// The person whom a passkey knows by this handle.
    pub(crate) fn person_of_handle(&self, handle: &[u8]) -> Option<Arc<Person>> {
        let entries = self.entries.read();
        match entries.by_id.get(entries.by_handle.get(handle)?) {
            Some(Entry::Person(person)) => Some(Arc::clone(person)),
            _ => None,
        }
    }

    /// Takes over the credentials of a person as they are now.
    pub(crate) fn set_credentials(&self, id: &str, credentials: StoredCredentials) {
        let mut entries = self.entries.write();
        // A person who is gone meanwhile has none.
        let Some(Entry::Person(person)) = entries.by_id.get(id) else { return };
        let person = Person { credentials: Arc::new(credentials), ..Person::clone(person) };
        entries.replace(id, Some(Entry::Person(Arc::new(person))));
    }

    /// How many people and groups cannot be read, or have credentials that cannot be.
    #[must_use]
    pub fn unreadable(&self) -> usize {
        self.unreadable.lock().len()
    }

    /// Forgets everybody.
    pub fn clear(&self) {
        *self.entries.write() = Entries::default();
        *self.domains.write() = Domains::default();
        self.unreadable.lock().clear();
        self.unsettled.lock().clear();
    }

    /// The person whose document has this id.
    #[must_use]
    pub fn person(&self, id: &str) -> Option<Arc<Person>> {
        match self.entries.read().by_id.get(id) {
            Some(Entry::Person(person)) => Some(Arc::clone(person)),
            _ => None,
        }
    }

    /// The short names of those whose mail databases there are, by the databases.
    pub(crate) fn mail_file_owners(&self) -> HashMap<String, String> {
        let entries = self.entries.read();
        let mut people: Vec<&Arc<Person>> = entries
            .by_id
            .values()
            .filter_map(|entry| match entry {
                Entry::Person(person) => Some(person),
                Entry::Group(_) | Entry::MailIn(_) => None,
            })
            .collect();
        // The first of those who share one comes last, and stays.
        people.sort_unstable_by(|one, other| other.id.cmp(&one.id));
        let owners = people.into_iter().map(|person| (person.mail_file.clone(), person.short_name.clone()));
        owners.collect()
    }

    /// How many people have this mail database.
    pub(crate) fn people_of_mail_file(&self, mail_file: &str) -> usize {
        let entries = self.entries.read();
        let has = |entry: &&Entry| matches!(entry, Entry::Person(person) if person.mail_file == mail_file);
        entries.by_id.values().filter(has).count()
    }

    /// The domains that a person administers.
    pub(crate) fn administered_by(&self, person: &Person) -> BTreeSet<String> {
        self.administered_among(&self.entries.read(), person)
    }

    /// The same; a name that several answer to makes nobody an administrator.
    fn administered_among(&self, entries: &Entries, person: &Person) -> BTreeSet<String> {
        let domains = self.domains.read();
        if !domains.have_administrators() {
            return BTreeSet::new();
        }
        let is_own = |name: &&str| entries.by_name_alone(name).is_some_and(|holder| **holder == *person.id);
        let names = names_of(person);
        domains.administered_by(names.iter().map(String::as_str).filter(is_own))
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
            Some(Holders::One(id)) => Found::of(entries.by_id.get(id)),
        }
    }

    fn groups_of(&self, person: &Person) -> Arc<[String]> {
        let entries = self.entries.read();
        let of_domains = || {
            let domain = person.domain();
            let mut groups = domain.map_or_else(Vec::new, |domain| self.domains.read().groups_of(&domain));
            let administered = self.administered_among(&entries, person);
            if !administered.is_empty() {
                groups.push(DOMAIN_ADMINISTRATORS.to_owned());
            }
            groups.extend(administered.iter().map(|domain| administrators_of(domain)));
            groups
        };
        entries.memberships.of(person, of_domains, |name| entries.by_name_alone(name))
    }

    fn domain(&self, name: &str) -> Option<Arc<DirectoryDomain>> {
        self.domains.read().find(name)
    }
}

impl CredentialRecords for NameIndex {
    fn unreadable(&self) -> usize {
        Self::unreadable(self)
    }

    fn person(&self, id: &str) -> Option<Arc<Person>> {
        Self::person(self, id)
    }

    fn linked_person(&self, issuer: &str, subject: &str) -> Option<Arc<Person>> {
        let entries = self.entries.read();
        let id = entries.by_link.get(&(issuer.to_owned(), subject.to_owned()))?;
        match entries.by_id.get(id) {
            Some(Entry::Person(person)) => Some(Arc::clone(person)),
            _ => None,
        }
    }

    fn change(&self, id: &str, change: CredentialChange) -> Result<(), CredentialError> {
        let mut entries = self.entries.write();
        let Some(Entry::Person(person)) = entries.by_id.get(id) else { return Err(CredentialError::Nobody) };
        let mut credentials = StoredCredentials::clone(&person.credentials);
        change(&mut credentials)?;
        let person = Person { credentials: Arc::new(credentials), ..Person::clone(person) };
        entries.replace(id, Some(Entry::Person(Arc::new(person))));
        Ok(())
    }
}

/// The person or group that a document is; `None` where it is something else.
fn read_entry(
    id: &str,
    document: &Map<String, Value>,
    credentials: Option<StoredCredentials>,
) -> Result<Option<Entry>, DirectoryError> {
    // The feed gives the id next to the document, which need not repeat it.
    match document.get("Form").and_then(Value::as_str) {
        Some(PERSON_FORM) => {
            let mut person = Person::read(document)?;
            id.clone_into(&mut person.id);
            if let Some(credentials) = credentials {
                person.credentials = Arc::new(credentials);
            }
            Ok(Some(Entry::Person(Arc::new(person))))
        }
        Some(GROUP_FORM) => {
            let mut group = Group::read(document)?;
            id.clone_into(&mut group.id);
            Ok(Some(Entry::Group(Arc::new(group))))
        }
        Some(MAIL_IN_FORM) => {
            let mut mail_in = MailIn::read(document)?;
            id.clone_into(&mut mail_in.id);
            Ok(Some(Entry::MailIn(Arc::new(mail_in))))
        }
        _ => Ok(None),
    }
}

/// Whether a list of names of the directory has a person, or a group that they are in.
pub fn is_listed(lookup: &(impl NameLookup + ?Sized), person: &Person, list: &[String]) -> bool {
    // Looked up once, and only where the list names a group.
    let groups = OnceCell::new();
    list.iter().any(|name| match lookup.find(name) {
        Found::Person(listed) => listed.id == person.id,
        Found::Group(group) => groups.get_or_init(|| lookup.groups_of(person)).contains(&group.list_name),
        Found::Nobody | Found::MailIn(_) | Found::Several => false,
    })
}

/// Every folded name that a person answers to.
pub(crate) fn names_of(person: &Person) -> Vec<String> {
    let mut names = vec![fold_name(&person.short_name)];
    for full_name in &person.full_names {
        names.push(fold_name(full_name));
        names.push(fold_name(common_name(&abbreviate(full_name))));
    }
    for name in &person.other_names {
        names.push(fold_name(name));
        names.push(fold_name(common_name(&abbreviate(name))));
    }
    let addresses = person.internet_address.iter().chain(&person.addresses);
    names.extend(addresses.map(|address| fold_name(address)));
    names
}

impl Entry {
    /// The domain of its main address.
    fn domain(&self) -> Option<String> {
        let address = match self {
            Self::Person(person) => &person.internet_address,
            Self::Group(group) => &group.internet_address,
            Self::MailIn(mail_in) => &mail_in.internet_address,
        };
        domain_of(address.as_deref()?)
    }

    /// Every folded name, each once.
    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        match self {
            Self::Person(person) => names = names_of(person),
            Self::Group(group) => {
                names.push(fold_name(&group.list_name));
                names.extend(group.other_names.iter().map(|name| fold_name(name)));
                let addresses = group.internet_address.iter().chain(&group.addresses);
                names.extend(addresses.map(|address| fold_name(address)));
            }
            Self::MailIn(mail_in) => {
                let called = std::iter::once(&mail_in.name).chain(&mail_in.other_names);
                let addresses = mail_in.internet_address.iter().chain(&mail_in.addresses);
                names.extend(called.chain(addresses).map(|name| fold_name(name)));
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether a folded name is a whole name of this one.
    fn is_called(&self, name: &str) -> bool {
        match self {
            Self::Person(person) => {
                let names = std::iter::once(&person.short_name).chain(&person.full_names);
                let names = names.chain(&person.other_names);
                let mut names = names.chain(&person.internet_address).chain(&person.addresses);
                names.any(|own| fold_name(own) == name)
            }
            Self::Group(_) | Self::MailIn(_) => true,
        }
    }

    fn is_administrator(&self) -> bool {
        matches!(self, Self::Person(person) if person.has_role(ADMINISTRATOR_ROLE))
    }
}

impl Entries {
    /// The document that answers to a folded name, if it is the only one.
    fn by_name_alone(&self, name: &str) -> Option<&Arc<str>> {
        match self.by_name.get(name)? {
            Holders::One(id) => Some(id),
            Holders::Several(_) => None,
        }
    }

    /// Returns what the document was before.
    fn replace(&mut self, id: &str, entry: Option<Entry>) -> Option<Entry> {
        let mut former = None;
        if let Some((id, old)) = self.by_id.remove_entry(id) {
            let others = self.administrators.checked_sub(usize::from(old.is_administrator()));
            self.administrators = others.unwrap_or_else(|| {
                never!("an administrator who goes was counted", "{id}");
                0
            });
            let names = old.names();
            self.by_word.remove(&names, &id);
            for name in names {
                self.release(&name, &id);
            }
            match &old {
                Entry::Group(group) => self.memberships.remove(&id, group),
                Entry::MailIn(_) => {}
                Entry::Person(person) => {
                    self.resources.remove(&id);
                    self.memberships.remove_delegates(person);
                    for link in person.credentials.links() {
                        let key = (link.issuer.clone(), link.subject.clone());
                        if self.by_link.get(&key) == Some(&id) {
                            self.by_link.remove(&key);
                        }
                    }
                    if let Some(handle) = person.credentials.handle() {
                        self.by_handle.remove(handle.expose());
                    }
                }
            }
            former = Some(old);
        }
        let Some(entry) = entry else { return former };
        let id: Arc<str> = Arc::from(id);
        self.administrators += usize::from(entry.is_administrator());
        let names = entry.names();
        self.by_word.add(&names, &id);
        for name in names {
            self.hold(name, &id);
        }
        match &entry {
            Entry::Group(group) => self.memberships.add(&id, group),
            Entry::MailIn(_) => {}
            Entry::Person(person) => {
                if person.resource.is_some() {
                    self.resources.insert(Arc::clone(&id));
                }
                self.memberships.add_delegates(person);
                for link in person.credentials.links() {
                    self.by_link.insert((link.issuer.clone(), link.subject.clone()), Arc::clone(&id));
                }
                if let Some(handle) = person.credentials.handle() {
                    self.by_handle.insert(handle.expose().to_vec(), Arc::clone(&id));
                }
            }
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
        let mut others = match self.by_name.remove(name) {
            Some(Holders::Several(others)) => others,
            Some(Holders::One(other)) if other == *id => return,
            None | Some(Holders::One(_)) => {
                never!("a name that is given up was held", "{name:?} by {id}");
                return;
            }
        };
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
