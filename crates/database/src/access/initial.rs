//! Who may do what in a database from the moment that it is made: nobody forgets to close one.

use scrinium_store::{Batch, Family};
use serde_json::{Value, json};

use super::Level;
use super::list::{AccessList, check_owner};
use super::restriction::Restriction;
use crate::error::Result;
use crate::keys;

/// Who may do what in a database that is being made.
#[derive(Clone, Debug, PartialEq)]
pub enum InitialAccess {
    /// Server administrators alone, as in CouchDB 3 (`admin_only`): by `_security`, which says so to CouchDB's clients.
    Closed,
    /// One person, as its manager, and nobody else.
    Owner(String),
    /// Those whom the list names.
    List(AccessList),
    /// Everybody, anonymous clients too, edits all documents: `_security` names nobody.
    Everybody,
}

impl InitialAccess {
    /// That of a database into which everybody who has logged in puts documents, and which nobody reads.
    #[must_use]
    pub fn depositors() -> Self {
        Self::List(AccessList::with_default(Level::Depositor))
    }

    /// # Errors
    /// [`DatabaseError::Invalid`](crate::DatabaseError::Invalid) if the owner cannot be anybody's name.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Owner(owner) => check_owner(owner),
            Self::Closed | Self::List(_) | Self::Everybody => Ok(()),
        }
    }

    /// The access control list, where there is one; else `_security` decides who may do what.
    #[must_use]
    pub fn list(&self) -> Option<AccessList> {
        match self {
            Self::Owner(owner) => Some(AccessList::of_owner(owner)),
            Self::List(list) => Some(list.clone()),
            Self::Closed | Self::Everybody => None,
        }
    }

    /// `_security`, where there is no list.
    #[must_use]
    pub fn security(&self) -> Option<Value> {
        match self {
            // Without `names`, as CouchDB has it: clients take an empty list for one that somebody wrote.
            Self::Closed => Some(json!({"admins": {"roles": ["_admin"]}, "members": {"roles": ["_admin"]}})),
            Self::Owner(_) | Self::List(_) | Self::Everybody => None,
        }
    }

    /// Adds to the batch that makes a database what is kept of this.
    pub fn write(&self, batch: &mut Batch, number: u32) {
        Restriction::write_open(batch, number);
        if let Some(list) = self.list() {
            batch.put(Family::Meta, &keys::access_list(number), list.to_json().to_string().as_bytes());
        }
        if let Some(security) = self.security() {
            batch.put(Family::Meta, &keys::security(number), security.to_string().as_bytes());
        }
    }
}
