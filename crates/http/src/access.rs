//! Who may do what: server administrators everything, others what the database gives them.

use std::ops::Deref;
use std::sync::Arc;

use scrinium_database::{Access, Database, Databases, Level};
use serde_json::Value;

use crate::authority::Identity;
use crate::error::{HttpError, Result};

/// A database, as opened by somebody who may.
pub(crate) struct Opened {
    pub(crate) database: Arc<Database>,
    pub(crate) access: Access,
}

impl Deref for Opened {
    type Target = Arc<Database>;

    fn deref(&self) -> &Self::Target {
        &self.database
    }
}

/// What somebody may do in a database.
pub(crate) fn of(database: &Database, identity: &Identity) -> scrinium_database::Result<Access> {
    database.access(identity)
}

/// Opens a database for somebody who has at least this level there.
pub(crate) fn open(databases: &Databases, name: &str, identity: &Identity, need: Level) -> Result<Opened> {
    let database = databases.get(name)?;
    let access = of(&database, identity)?;
    // A depositor may write, and does not read.
    if access.level() < need {
        return Err(refused(identity, access.level(), need));
    }
    Ok(Opened { database, access })
}

/// In CouchDB's words where CouchDB has some.
fn refused(identity: &Identity, level: Level, need: Level) -> HttpError {
    if need >= Level::Designer {
        return not_designer();
    }
    if identity.is_anonymous() {
        return HttpError::unauthorized("You are not authorized to access this db.");
    }
    if level == Level::NoAccess {
        return HttpError::forbidden("You are not allowed to access this db.");
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
