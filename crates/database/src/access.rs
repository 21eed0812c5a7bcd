//! Who may do what in a database: levels, roles, and the names that documents give in `Readers` and `Authors`.
//!
//! A database with an access control list ([`AccessList`]) gives everybody one of Domino's seven levels. In one
//! without, `_security` does, as in CouchDB: its administrators are managers, its members editors, and `Readers` and
//! `Authors` are fields like others.

pub(crate) mod list;
pub(crate) mod readers;

use std::sync::Arc;

use scrinium_document::json::stored_value_of_bytes;
use scrinium_store::{Batch, Family, Snapshot};
use serde_json::{Value, json};

use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::keys;
use crate::leaf::Leaf;
use list::AccessList;
use readers::{NameDigest, digest_of, digests_of, names_in};

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

/// What one person may do in one database, as it was when they asked. Clones are cheap.
#[derive(Clone, Debug, Default)]
pub struct Access(Option<Arc<Limited>>);

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
    texts: Vec<Arc<str>>,
    digests: Vec<NameDigest>,
}

impl Access {
    /// That of server administrators, and of the server itself.
    #[must_use]
    pub const fn everything() -> Self {
        Self(None)
    }

    /// What `_security` gives: a level, whatever documents say.
    fn of_level(level: Level) -> Self {
        Self(Some(Arc::new(Limited { level, may_create: true, may_delete: true, names: None })))
    }

    /// What an access control list gives somebody of this name, in these groups.
    fn of_list(list: &AccessList, name: Option<&str>, groups: &[String]) -> Self {
        let granted = list.granted(name, groups);
        // What has brackets is a role, and nobody has one by being called so.
        let own = name.filter(|name| !name.starts_with('[')).map(Arc::from);
        let groups = groups.iter().filter(|group| !group.starts_with('['));
        let groups = groups.map(|group| Arc::from(group.as_str()));
        let roles = granted.roles.iter().map(|role| Arc::from(format!("[{role}]")));
        let texts: Vec<Arc<str>> = own.into_iter().chain(groups).chain(roles).collect();
        let digests = texts.iter().map(|name| digest_of(name)).collect();
        Self(Some(Arc::new(Limited {
            level: granted.level,
            may_create: granted.may_create,
            may_delete: granted.may_delete,
            names: Some(Names { texts, digests }),
        })))
    }

    /// The level.
    #[must_use]
    pub fn level(&self) -> Level {
        self.0.as_ref().map_or(Level::Manager, |limited| limited.level)
    }

    /// Whether this is the access of a server administrator.
    #[must_use]
    pub const fn is_everything(&self) -> bool {
        self.0.is_none()
    }

    /// What the person goes by, where not all documents may be read by all readers.
    pub(crate) fn reader_names(&self) -> Option<&[NameDigest]> {
        Some(&self.0.as_ref()?.names.as_ref()?.digests)
    }

    /// Whether a document's `Readers` let the person read it.
    pub(crate) fn may_read(&self, database: &Database, id: &str, leaf: &Leaf<'_>) -> Result<bool> {
        let Some(names) = self.reader_names() else { return Ok(true) };
        let digests = digests_of(database, id, leaf)?;
        Ok(digests.is_none_or(|digests| digests.iter().any(|digest| names.contains(digest))))
    }

    /// # Errors
    /// [`DatabaseError::Forbidden`] if the person may not read the document.
    pub(crate) fn check_read(&self, database: &Database, id: &str, leaf: &Leaf<'_>) -> Result<()> {
        if self.may_read(database, id, leaf)? {
            return Ok(());
        }
        Err(forbidden(format!("You may not read document {id}: its `Readers` do not name you.")))
    }

    /// As [`may_read`](Self::may_read) of a document's winner in a snapshot; there is nothing to hide of a tombstone.
    pub(crate) fn may_read_winner(&self, database: &Database, snapshot: &Snapshot, id: &str) -> Result<bool> {
        if self.reader_names().is_none() {
            return Ok(true);
        }
        let stored = snapshot.get(Family::Scan, &keys::winner(database.number(), id))?;
        stored.map_or(Ok(true), |stored| self.may_read(database, id, &Leaf::decode(id, &stored)?))
    }

    /// # Errors
    /// [`DatabaseError::Forbidden`] if the person may not make a document of this id.
    pub(crate) fn check_create(&self, id: &str) -> Result<()> {
        let Some(limited) = &self.0 else { return Ok(()) };
        check_design(limited, id)?;
        let may_create = match limited.level {
            Level::NoAccess | Level::Reader => false,
            Level::Depositor => true,
            _ => limited.may_create,
        };
        if may_create {
            Ok(())
        } else {
            Err(forbidden("You may not create documents in this database.".to_owned()))
        }
    }

    /// # Errors
    /// [`DatabaseError::Forbidden`] if the person may not write local documents.
    pub(crate) fn check_local(&self) -> Result<()> {
        if self.level() >= Level::Reader {
            return Ok(());
        }
        Err(forbidden("It takes a reader to write local documents.".to_owned()))
    }

    /// # Errors
    /// [`DatabaseError::Forbidden`] if the person may not replace this revision of the document, or delete it.
    pub(crate) fn check_edit(
        &self,
        database: &Database,
        id: &str,
        leaf: &Leaf<'_>,
        deletes: bool,
    ) -> Result<()> {
        let Some(limited) = &self.0 else { return Ok(()) };
        check_design(limited, id)?;
        self.check_read(database, id, leaf)?;
        let may_edit = match limited.level {
            Level::NoAccess | Level::Depositor | Level::Reader => false,
            Level::Author => {
                let authors = names_in(database, id, leaf, readers::AUTHORS)?;
                let own = limited.names.as_ref().map_or(&[][..], |names| &names.texts);
                authors.iter().any(|author| own.iter().any(|own| **own == **author))
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
        return Err(forbidden("It takes a designer to change design documents.".to_owned()));
    }
    Ok(())
}

fn forbidden(reason: String) -> DatabaseError {
    DatabaseError::Forbidden { reason }
}

impl Database {
    /// What somebody may do here: `name` is `None` for one who has not said who they are; `groups` are those that
    /// the directory has them in (CouchDB's roles).
    ///
    /// # Errors
    /// What the store reports.
    pub fn access(&self, name: Option<&str>, groups: &[String]) -> Result<Access> {
        Ok(match self.access_list()? {
            Some(list) => Access::of_list(&list, name, groups),
            None => Access::of_level(list::level_by_security(&*self.security()?, name, groups)),
        })
    }

    /// The access control list; `None` if there is none, so that `_security` says who may do what.
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
        let _stays = match self.stay() {
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

    /// `_security` as CouchDB's clients know it: what was set, or what the access control list comes to.
    ///
    /// # Errors
    /// What the store reports.
    pub fn shown_security(&self) -> Result<Arc<Value>> {
        let Some(list) = self.access_list()? else { return self.security() };
        let listed = |from: Level, to: Level| {
            let within = |level: Level| from <= level && level <= to;
            let (people, groups) = list.listed(within);
            json!({"names": people, "roles": groups})
        };
        Ok(Arc::new(json!({
            "admins": listed(Level::Manager, Level::Manager),
            "members": listed(Level::Reader, Level::Designer),
        })))
    }
}
