//! Who may do what: server administrators everything, others what the database gives them.

use scrinium_catalog::{Databases, is_own_database};
use scrinium_database::{DatabaseError, Level};
use serde_json::Value;

use crate::authority::Identity;
use crate::error::{HttpError, Result};

pub(crate) use scrinium_views::DatabaseSession as Opened;

/// Said of a database that is not there, and of one that is closed to the one who asks.
const NO_DATABASE: &str = "Database does not exist.";

/// Opens a database for somebody who has at least this level there. Who has none does not learn whether there is one, since
/// the names of databases say who is here.
pub(crate) fn open(databases: &Databases, name: &str, identity: &Identity, need: Level) -> Result<Opened> {
    let opened = match databases.open_for(name, identity) {
        Err(DatabaseError::NotFound { .. }) if !identity.is_administrator() => return Err(absent(identity)),
        // CouchDB's own are there as soon as an administrator asks for them.
        Err(DatabaseError::NotFound { .. }) if is_own_database(name) => {
            Opened::open(databases.get_own(name)?, identity)?
        }
        opened => opened?,
    };
    if opened.level() == Level::NoAccess {
        return Err(absent(identity));
    }
    // A depositor may write, and does not read.
    if opened.level() < need {
        return Err(refused(opened.level(), need));
    }
    Ok(opened)
}

/// Who has not logged in may have access once they have.
fn absent(identity: &Identity) -> HttpError {
    if identity.is_anonymous() {
        HttpError::unauthorized("You are not authorized to access this db.")
    } else {
        HttpError::not_found(NO_DATABASE)
    }
}

/// In CouchDB's words where CouchDB has some.
fn refused(level: Level, need: Level) -> HttpError {
    if need >= Level::Designer {
        return not_designer();
    }
    HttpError::forbidden(format!(
        "This takes the level `{}` in the database's access control list, and yours is `{}`.",
        need.text(),
        level.text()
    ))
}

/// What CouchDB says to one who writes a design document and may not.
pub(crate) fn not_designer() -> HttpError {
    HttpError::unauthorized("You are not a db or server admin.")
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
