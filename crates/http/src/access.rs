//! Who may do what: server administrators everything, others what a database's `_security` gives them.

use std::sync::Arc;

use scrinium_database::{Database, Databases};
use serde_json::Value;

use crate::authority::Identity;
use crate::error::{HttpError, Result};

/// What a request needs to be in the database it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// To read, and to write what is not a design document.
    Member,
    /// To change `_security`, limits and design documents.
    Administrator,
}

/// Refuses one who is not a server administrator.
pub(crate) fn require_administrator(identity: &Identity) -> Result<()> {
    if identity.is_administrator() {
        Ok(())
    } else {
        Err(HttpError::unauthorized("You are not a server admin."))
    }
}

/// Opens a database for somebody who is allowed to.
pub(crate) fn open(
    databases: &Databases,
    name: &str,
    identity: &Identity,
    need: Need,
) -> Result<Arc<Database>> {
    let database = databases.get(name)?;
    if !identity.is_administrator() {
        check(&database, identity, need)?;
    }
    Ok(database)
}

/// Whether `identity` may change design documents of `database`.
pub(crate) fn may_design(database: &Database, identity: &Identity) -> Result<bool> {
    if identity.is_administrator() {
        return Ok(true);
    }
    let security = database.security()?;
    Ok(is_administrator_of(&security, identity))
}

/// What CouchDB says to one who writes a design document and may not.
pub(crate) fn not_designer() -> HttpError {
    HttpError::unauthorized("You are not a db or server admin.")
}

fn check(database: &Database, identity: &Identity, need: Need) -> Result<()> {
    let security = database.security()?;
    if is_administrator_of(&security, identity) {
        return Ok(());
    }
    match need {
        Need::Administrator => Err(not_designer()),
        Need::Member if is_member_of(&security, identity) => Ok(()),
        Need::Member if identity.is_anonymous() => {
            Err(HttpError::unauthorized("You are not authorized to access this db."))
        }
        Need::Member => Err(HttpError::forbidden("You are not allowed to access this db.")),
    }
}

fn is_administrator_of(security: &Value, identity: &Identity) -> bool {
    security.get("admins").is_some_and(|group| is_listed(group, identity))
}

/// No member named at all: everybody who has shown who they are is one. `readers` is the old name.
fn is_member_of(security: &Value, identity: &Identity) -> bool {
    let group = security.get("members").or_else(|| security.get("readers"));
    let Some(group) = group else { return true };
    let empty = listed(group, "names").next().is_none() && listed(group, "roles").next().is_none();
    empty || is_listed(group, identity)
}

fn is_listed(group: &Value, identity: &Identity) -> bool {
    let by_name = identity.name().is_some_and(|name| listed(group, "names").any(|listed| listed == name));
    by_name || listed(group, "roles").any(|role| identity.roles().iter().any(|own| own == role))
}

fn listed<'a>(group: &'a Value, kind: &str) -> impl Iterator<Item = &'a str> {
    group.get(kind).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Refuses what is not a security object, with CouchDB's words.
pub(crate) fn validate_security(security: &Value) -> Result<()> {
    let Some(members) = security.as_object() else { return Err(HttpError::not_object()) };
    for kind in ["admins", "members", "readers"] {
        let Some(group) = members.get(kind) else { continue };
        let Some(group) = group.as_object() else {
            return Err(HttpError::bad_request(format!("{kind} must be a JSON object")));
        };
        for list in ["names", "roles"] {
            let texts = group
                .get(list)
                .is_none_or(|value| value.as_array().is_some_and(|items| items.iter().all(Value::is_string)));
            if !texts {
                return Err(HttpError::bad_request(format!("{list} must be a JSON list of strings")));
            }
        }
    }
    Ok(())
}
