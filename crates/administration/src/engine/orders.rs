//! What is taken as a request.

use std::sync::Arc;

use scrinium_database::DatabaseError;
use scrinium_directory::{
    ADMINISTRATOR_ROLE, Found, Group, NameLookup, Person, USERS_PREFIX, abbreviate, common_name, prepare,
};

use super::{Requests, WAITING_MAX};
use crate::change::NameChange;
use crate::entry::Entry;
use crate::error::RequestError;
use crate::records::Records;
use crate::request::{NewRequest, Progress, REQUEST_FORM, Request, RequestKind, RequestState};

/// The longest name of a field of names, and how many there may be.
const FIELD_BYTES_MAX: usize = 100;
const FIELDS_MAX: usize = 20;

/// Whom a request is about.
pub(super) enum Subject {
    Person(Arc<Person>),
    Group(Arc<Group>),
}

impl Subject {
    fn id(&self) -> &str {
        match self {
            Self::Person(person) => &person.id,
            Self::Group(group) => &group.id,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Person(person) => &person.short_name,
            Self::Group(group) => &group.list_name,
        }
    }
}

impl Requests {
    /// Takes a request: it is stored when this returns, and carried out when those before it are.
    ///
    /// # Errors
    /// [`RequestError`]; then nothing was changed.
    pub fn order(&self, new: &NewRequest) -> Result<Request, RequestError> {
        let _alone = self.taking.lock();
        let subject = self.subject(&new.name, new.kind)?;
        self.check(new, &subject)?;
        let open: Vec<Request> = self.list()?.into_iter().filter(|request| !request.is_over()).collect();
        if let Some(other) = open.iter().find(|request| request.entry == subject.id()) {
            return Err(RequestError::UnderWay(other.id.clone()));
        }
        if open.len() >= WAITING_MAX {
            return Err(RequestError::TooMany(WAITING_MAX));
        }
        let mut request = self.stored(new, &subject);
        // What the directory would refuse is said before anything changes.
        if let Some(document) = Entry::new(self.databases(), &request.entry).renamed(&request)? {
            prepare(document)?;
        }
        self.records.put(&mut request)?;
        self.wake();
        Ok(request)
    }

    fn stored(&self, new: &NewRequest, subject: &Subject) -> Request {
        let renames = !new.kind.removes();
        let records: &Records = &self.records;
        Request {
            id: records.new_id(),
            revision: None,
            form: REQUEST_FORM.to_owned(),
            kind: new.kind,
            entry: subject.id().to_owned(),
            name: subject.name().to_owned(),
            new_name: new.new_name.clone().filter(|_| renames),
            new_full_names: if renames { new.new_full_names.clone() } else { Vec::new() },
            new_address: new.new_address.clone().filter(|_| renames),
            mail_file: match subject {
                Subject::Person(person) if new.kind == RequestKind::ErasePerson => {
                    Some(person.mail_file.clone())
                }
                _ => None,
            },
            fields: new.fields.clone(),
            requested_by: new.requested_by.clone(),
            requested: self.databases().clock().timestamp().to_string(),
            ended: None,
            state: RequestState::Waiting,
            reason: None,
            names: NameChange::default(),
            progress: Progress::default(),
        }
    }

    fn subject(&self, name: &str, kind: RequestKind) -> Result<Subject, RequestError> {
        let other = |found, expected| Err(RequestError::OtherKind { name: name.to_owned(), found, expected });
        match (self.directory.find(name), kind.is_of_person()) {
            (Found::Person(person), true) => Ok(Subject::Person(person)),
            (Found::Group(group), false) => Ok(Subject::Group(group)),
            (Found::Person(_), false) => other("a person", "a group"),
            (Found::Group(_), true) => other("a group", "a person"),
            (Found::MailIn(_), true) => other("a mail-in database", "a person"),
            (Found::MailIn(_), false) => other("a mail-in database", "a group"),
            (Found::Several, _) => Err(RequestError::Several(name.to_owned())),
            (Found::Nobody, _) => Err(RequestError::Nobody(name.to_owned())),
        }
    }

    fn check(&self, new: &NewRequest, subject: &Subject) -> Result<(), RequestError> {
        let is_field = |field: &&String| {
            (1..=FIELD_BYTES_MAX).contains(&field.len())
                && !field.starts_with('_')
                && !field.contains(char::is_control)
        };
        if let Some(field) = new.fields.iter().find(|field| !is_field(field)) {
            return Err(RequestError::Field(field.clone()));
        }
        if new.fields.len() > FIELDS_MAX {
            return Err(RequestError::Field(format!("number {}", FIELDS_MAX + 1)));
        }
        if new.kind.removes() {
            return match subject {
                Subject::Person(person) if person.has_role(ADMINISTRATOR_ROLE) => {
                    Err(RequestError::Administrator(person.short_name.clone()))
                }
                Subject::Person(person) if new.kind == RequestKind::ErasePerson => self.check_erasure(person),
                _ => Ok(()),
            };
        }
        if subject.id().starts_with(USERS_PREFIX) {
            return Err(RequestError::UsersForm(subject.name().to_owned()));
        }
        let new_name = new.new_name.as_deref().filter(|name| !name.trim().is_empty());
        let new_name = new_name.ok_or(RequestError::NoNewName)?;
        if new_name == subject.name() && new.new_full_names.is_empty() && new.new_address.is_none() {
            return Err(RequestError::Same(new_name.to_owned()));
        }
        let names = std::iter::once(new_name).chain(new.new_full_names.iter().map(String::as_str));
        for name in names.chain(new.new_address.as_deref()) {
            let is_free = match self.directory.find(name) {
                Found::Nobody => true,
                Found::Person(person) => person.id == subject.id(),
                Found::Group(group) => group.id == subject.id(),
                Found::MailIn(_) | Found::Several => false,
            };
            if !is_free {
                return Err(RequestError::Taken(name.to_owned()));
            }
        }
        Ok(())
    }

    /// Whether a person's mail database may be deleted.
    fn check_erasure(&self, person: &Person) -> Result<(), RequestError> {
        if self.directory.people_of_mail_file(&person.mail_file) > 1 {
            return Err(RequestError::SharedMailFile(person.mail_file.clone()));
        }
        self.check_holds(&person.short_name, (&person.id, &person.mail_file))
    }

    pub(super) fn check_holds(&self, name: &str, (id, mail_file): (&str, &str)) -> Result<(), RequestError> {
        let held = match self.databases().get(mail_file) {
            Ok(database) => database.legal_holds()?.into_iter().next(),
            Err(DatabaseError::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        if let Some(held) = held {
            let hold = format!("{mail_file} is under a legal hold for {:?}", held.matter);
            return Err(RequestError::Held { name: name.to_owned(), hold });
        }
        for holds in &self.holds {
            if let Some(hold) = holds.hold_on(id, mail_file)? {
                return Err(RequestError::Held { name: name.to_owned(), hold });
            }
        }
        Ok(())
    }

    /// The names that change, as the directory knows them now; `None` where the person or group is gone.
    pub(super) fn names_of(&self, request: &Request) -> Option<NameChange> {
        let of_kind = |name: &str| self.subject(name, request.kind).ok();
        let subject = of_kind(&request.name).filter(|subject| subject.id() == request.entry)?;
        let new_name = request.new_name.as_deref();
        let mut names: Vec<(String, Option<String>)> = Vec::new();
        let mut put = |old: &str, new: Option<&str>| names.push((old.to_owned(), new.map(str::to_owned)));
        match (&subject, request.kind.removes()) {
            (Subject::Person(person), removes) => {
                put(&person.short_name, new_name);
                let full_name = request.new_full_names.first().map(String::as_str);
                if removes || full_name.is_some() {
                    let part = full_name.map(|name| common_name(name).to_owned());
                    for name in &person.full_names {
                        put(name, full_name);
                        let own = common_name(&abbreviate(name)).to_owned();
                        // The first part of a name may be that of several.
                        if of_kind(&own).is_some_and(|other| other.id() == request.entry) {
                            put(&own, part.as_deref());
                        }
                    }
                }
                if removes {
                    person
                        .other_names
                        .iter()
                        .chain(&person.internet_address)
                        .for_each(|name| put(name, None));
                }
            }
            (Subject::Group(group), removes) => {
                put(&group.list_name, new_name);
                if removes {
                    group.other_names.iter().chain(&group.internet_address).for_each(|name| put(name, None));
                }
            }
        }
        Some(NameChange::new(names.iter().map(|(old, new)| (old.as_str(), new.as_deref()))))
    }
}
