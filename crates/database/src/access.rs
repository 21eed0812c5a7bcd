//! Who may do what in a database: levels, roles, and the names that documents give in `Readers` and `Authors`.
//!
//! A database with an access control list ([`AccessList`]) gives everybody one of Domino's seven levels. In one
//! without, `_security` does, as in CouchDB: its administrators are managers, its members editors, and `Readers` and
//! `Authors` are fields like others.

pub mod digest;
pub mod domain;
pub mod identity;
pub mod initial;
pub mod list;
pub mod readable;
pub mod readers;
pub mod restriction;

use std::sync::Arc;

use scrinium_document::json::stored_value_of_bytes;
use scrinium_store::{Batch, Family};
use serde_json::{Value, json};

use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::keys;
use crate::leaf::Leaf;
use digest::{NameDigest, digest_of, folded};
use identity::Identity;
use initial::InitialAccess;
use list::{AccessList, Grant};
use readable::ReadableLeaf;
use readers::{digests_of, names_in};

/// What somebody may do in a database; each level includes those before it but for reading, which depositors may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    NoAccess,
    /// Create documents, and read none.
    Depositor,
    /// Read.
    Reader,
    /// Create documents, and edit those that name the person in `Authors`.
    Author,
    /// Edit all documents.
    Editor,
    /// Edit design documents.
    Designer,
    /// Change who may do what.
    Manager,
}

impl Level {
    /// All levels, from the lowest.
    pub const ALL: [Self; 7] = [
        Self::NoAccess,
        Self::Depositor,
        Self::Reader,
        Self::Author,
        Self::Editor,
        Self::Designer,
        Self::Manager,
    ];

    /// As it is written in an access control list.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::NoAccess => "no_access",
            Self::Depositor => "depositor",
            Self::Reader => "reader",
            Self::Author => "author",
            Self::Editor => "editor",
            Self::Designer => "designer",
            Self::Manager => "manager",
        }
    }

    /// The level that is written so.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.text() == text)
    }
}

/// Who acts in one database, and what they may do there, as it was when they asked. Clones are cheap.
///
/// Whatever reads, counts or writes documents takes one, so that nobody forgets to ask. There is none by default: it
/// comes from [`Database::access`], or says that the server itself acts, and for what.
#[derive(Clone, Debug)]
pub struct Access(Actor);

#[derive(Clone, Debug)]
enum Actor {
    /// The server itself, for this work.
    Server(&'static str),
    Person(Arc<Bearer>),
}

/// Somebody other than the server itself.
#[derive(Debug)]
struct Bearer {
    identity: Identity,
    /// `None`: everything.
    limits: Option<Limited>,
}

/// The access of somebody who may not do everything.
#[derive(Debug)]
struct Limited {
    level: Level,
    may_create: bool,
    may_delete: bool,
    /// `None`: `Readers` and `Authors` say nothing in this database.
    names: Option<Names>,
}

/// What somebody goes by in `Readers` and `Authors`.
#[derive(Debug)]
struct Names {
    texts: Vec<String>,
    digests: Vec<NameDigest>,
}

/// That of a test.
#[cfg(test)]
pub static SERVER: Access = Access::of_the_server("a test");

impl Access {
    /// That of the server itself, which may do everything. `work` says what for, as in "routing mail". It is never what
    /// somebody has asked for over a port.
    #[must_use]
    pub const fn of_the_server(work: &'static str) -> Self {
        Self(Actor::Server(work))
    }

    /// That of a server administrator.
    fn of_administrator(identity: &Identity) -> Self {
        Self(Actor::Person(Arc::new(Bearer { identity: identity.clone(), limits: None })))
    }

    fn limited(identity: &Identity, limits: Limited) -> Self {
        Self(Actor::Person(Arc::new(Bearer { identity: identity.clone(), limits: Some(limits) })))
    }

    /// Somebody at a level, whatever documents say: as `_security` gives it, or for what is theirs.
    pub fn of_level(identity: &Identity, level: Level) -> Self {
        Self::limited(identity, Limited { level, may_create: true, may_delete: true, names: None })
    }

    /// Who acts; `None`: the server itself.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.bearer().map(|bearer| &bearer.identity)
    }

    /// What the server itself does; `None`: somebody else acts.
    #[must_use]
    pub const fn work(&self) -> Option<&'static str> {
        match self.0 {
            Actor::Server(work) => Some(work),
            Actor::Person(_) => None,
        }
    }

    fn bearer(&self) -> Option<&Bearer> {
        match &self.0 {
            Actor::Server(_) => None,
            Actor::Person(bearer) => Some(bearer),
        }
    }

    fn limits(&self) -> Option<&Limited> {
        self.bearer()?.limits.as_ref()
    }

    /// What an access control list gives somebody.
    fn of_list(list: &AccessList, identity: &Identity) -> Self {
        let (name, groups) = (identity.name(), identity.roles());
        let granted = list.granted(name, groups);
        // What has brackets is a role, and nobody has one by being called so.
        let own = name.iter().copied().chain(groups.iter().map(String::as_str));
        let own = own.map(folded).filter(|name| !name.starts_with('['));
        let roles = granted.roles.iter().map(|role| folded(&format!("[{role}]")));
        let texts: Vec<String> = own.chain(roles).collect();
        let digests = texts.iter().map(|name| digest_of(name)).collect();
        let names = Some(Names { texts, digests });
        let Grant { mut level, may_create, may_delete, .. } = granted;
        if identity.may_have_more_groups() && !name.is_some_and(|name| list.names_person(name)) {
            // A group that is not known of may be one that is kept out.
            level = level.min(list.lowest_of_groups().unwrap_or(level));
        }
        Self::limited(identity, Limited { level, may_create, may_delete, names })
    }

    /// The level.
    #[must_use]
    pub fn level(&self) -> Level {
        self.limits().map_or(Level::Manager, |limited| limited.level)
    }

    /// Whether documents that the person may edit may also be deleted by them.
    #[must_use]
    pub fn may_delete(&self) -> bool {
        self.limits().is_none_or(|limited| limited.may_delete)
    }

    /// Whether this is the access of the server itself or of a server administrator.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.limits().is_none()
    }

    /// What the person goes by, where not all documents may be read by all readers.
    pub fn reader_names(&self) -> Option<&[NameDigest]> {
        Some(&self.limits()?.names.as_ref()?.digests)
    }

    /// Whether the person may read all documents, so that none need be looked at for that.
    pub fn reads_everything(&self) -> bool {
        self.limits().is_none_or(|limited| limited.level >= Level::Reader && limited.names.is_none())
    }

    /// # Errors
    /// [`DatabaseError::Forbidden`] if the person may read nothing here.
    pub fn check_reader(&self) -> Result<()> {
        if self.level() >= Level::Reader {
            return Ok(());
        }
        Err(forbidden("You may not read documents in this database.".to_owned()))
    }

    /// Whether a leaf's `Readers` let the person read it.
    fn may_read(&self, database: &Database, id: &str, leaf: &Leaf<'_>) -> Result<bool> {
        if self.level() < Level::Reader {
            return Ok(false);
        }
        let Some(names) = self.reader_names() else { return Ok(true) };
        #[cfg(test)]
        readable::tests::LOOKS.set(readable::tests::LOOKS.get() + 1);
        let digests = digests_of(database, id, leaf)?;
        Ok(digests.is_none_or(|digests| digests.iter().any(|digest| names.contains(digest))))
    }

    /// # Errors
    /// [`DatabaseError::Forbidden`] if the person may write nothing of this id, whatever is there: said before anything
    /// is looked at, so that it tells nothing. `builds` says whether the edit builds on a revision; `None`: it may.
    pub fn check_write(&self, id: &str, builds: Option<bool>) -> Result<()> {
        let Some(limited) = self.limits() else { return Ok(()) };
        check_design(limited, id)?;
        let may_build = builds != Some(false) && limited.level >= Level::Author;
        if may_build || builds != Some(true) && self.check_create(id).is_ok() {
            return Ok(());
        }
        let what = if builds == Some(false) { "create" } else { "edit" };
        Err(forbidden(format!("You may not {what} documents in this database.")))
    }

    /// # Errors
    /// [`DatabaseError::Forbidden`] if the person may not make a document of this id.
    pub fn check_create(&self, id: &str) -> Result<()> {
        let Some(limited) = self.limits() else { return Ok(()) };
        check_design(limited, id)?;
        let may_create = match limited.level {
            Level::NoAccess | Level::Reader => false,
            Level::Depositor => true,
            Level::Author | Level::Editor | Level::Designer | Level::Manager => limited.may_create,
        };
        if may_create {
            Ok(())
        } else {
            Err(forbidden("You may not create documents in this database.".to_owned()))
        }
    }

    /// # Errors
    /// [`DatabaseError::Forbidden`] if the person may not put something in the place of this leaf, or delete it. What was
    /// deleted is nobody's: anyone who may make a document may make it again, unless its `Authors` say whose it is.
    pub fn check_edit(&self, database: &Database, leaf: &ReadableLeaf<'_>, deletes: bool) -> Result<()> {
        let Some(limited) = self.limits() else { return Ok(()) };
        let id = leaf.id();
        check_design(limited, id)?;
        let authors = || names_in(database, id, leaf, readers::AUTHORS);
        if leaf.deleted && (limited.level >= Level::Editor || authors()?.is_empty()) {
            return self.check_create(id);
        }
        let may_edit = match limited.level {
            Level::NoAccess | Level::Depositor | Level::Reader => false,
            Level::Author => {
                let own = limited.names.as_ref().map_or(&[][..], |names| &names.texts);
                authors()?.names().iter().any(|author| own.contains(author))
            }
            Level::Editor | Level::Designer | Level::Manager => true,
        };
        if !may_edit {
            return Err(forbidden(format!("You may not edit document {id}: its `Authors` do not name you.")));
        }
        if deletes && !limited.may_delete {
            return Err(forbidden("You may not delete documents in this database.".to_owned()));
        }
        Ok(())
    }
}

fn check_design(limited: &Limited, id: &str) -> Result<()> {
    if scrinium_document::is_design(id) && limited.level < Level::Designer {
        return Err(forbidden("Only a designer may change design documents.".to_owned()));
    }
    Ok(())
}

fn forbidden(reason: String) -> DatabaseError {
    DatabaseError::Forbidden { reason }
}

impl Database {
    /// What somebody may do here; a server administrator may do everything.
    ///
    /// # Errors
    /// What the store reports.
    pub fn access(&self, identity: &Identity) -> Result<Access> {
        if identity.is_administrator() {
            return Ok(Access::of_administrator(identity));
        }
        Ok(match self.access_list()? {
            Some(list) => Access::of_list(&list, identity),
            None => {
                let security = self.security()?;
                let level = list::level_by_security(&security, identity.name(), identity.roles());
                Access::of_level(identity, level)
            }
        })
    }

    /// The access control list; `None` if there is none, so that `_security` decides who may do what.
    ///
    /// # Errors
    /// What the store reports.
    pub fn access_list(&self) -> Result<Option<Arc<AccessList>>> {
        if let Some(list) = self.access_list.read().as_ref() {
            return Ok(list.clone());
        }
        let mut kept = self.access_list.write();
        let stored = self.store().get(Family::Meta, &keys::access_list(self.number()))?;
        let damaged = || DatabaseError::damaged("access control list", self.name());
        let list = match stored {
            None => None,
            Some(bytes) => {
                let json = stored_value_of_bytes(&bytes).ok_or_else(damaged)?;
                Some(Arc::new(AccessList::parse(&json).map_err(|_| damaged())?))
            }
        };
        *kept = Some(list.clone());
        Ok(list)
    }

    /// Sets the access control list, or with `None` removes it; durable and in force when this returns.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn set_access_list(&self, list: Option<AccessList>) -> Result<()> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.set_access_list(list),
        };
        self.check_there()?;
        let mut kept = self.access_list.write();
        let key = keys::access_list(self.number());
        let mut batch = Batch::new();
        match &list {
            Some(list) => batch.put(Family::Meta, &key, list.to_json().to_string().as_bytes()),
            None => batch.delete(Family::Meta, &key),
        }
        self.store().commit(batch)?;
        *kept = Some(list.map(Arc::new));
        Ok(())
    }

    /// Makes another list of the access control list, if there is one, while nobody else sets it; durable and in force when this
    /// returns. Gives whether there is one.
    ///
    /// # Errors
    /// As [`Database::set_access_list`].
    pub fn change_access_list(&self, change: impl Fn(AccessList) -> AccessList) -> Result<bool> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.change_access_list(change),
        };
        self.check_there()?;
        // Read before the lock is taken, which reading takes too; it is looked at again under it.
        self.access_list()?;
        let mut kept = self.access_list.write();
        let Some(Some(present)) = kept.as_ref() else { return Ok(false) };
        let list = change(AccessList::clone(present));
        if list != **present {
            let mut batch = Batch::new();
            let key = keys::access_list(self.number());
            batch.put(Family::Meta, &key, list.to_json().to_string().as_bytes());
            self.store().commit(batch)?;
            *kept = Some(Some(Arc::new(list)));
        }
        Ok(true)
    }

    /// Says who may do what in a database of which nobody has said it.
    ///
    /// # Errors
    /// As [`Database::set_access_list`] and [`Database::set_security`].
    pub fn restrict(&self, access: &InitialAccess) -> Result<()> {
        if let Some(list) = access.list() {
            self.set_access_list(Some(list))?;
        }
        access.security().map_or(Ok(()), |security| self.set_security(&security))
    }

    /// `_security` as CouchDB's clients know it: what was set, or what the access control list comes to.
    ///
    /// # Errors
    /// What the store reports.
    pub fn shown_security(&self) -> Result<Arc<Value>> {
        let Some(list) = self.access_list()? else { return self.security() };
        let listed = |from: Level, to: Level| {
            let within = |level: Level| from <= level && level <= to;
            let (people, mut groups) = list.listed(within);
            // To CouchDB's clients a list of nobody is one of everybody.
            if from == Level::Reader && people.is_empty() && groups.is_empty() && list.is_closed() {
                groups.push("_admin");
            }
            json!({"names": people, "roles": groups})
        };
        Ok(Arc::new(json!({
            "admins": listed(Level::Manager, Level::Manager),
            "members": listed(Level::Reader, Level::Designer),
        })))
    }
}
