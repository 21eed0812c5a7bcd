//! Closing what an earlier version left open: databases that were made without saying who may read them.
//!
//! Until databases were made with an access list, one without a list and without `_security` was open to everybody who
//! could log in. Mail databases and mail.boxes are closed at the first start of this version; what the server needs for
//! itself, too. Others stay as they are, as in CouchDB, since their applications may rely on it, and are named in the log.

use std::collections::HashMap;

use scrinium_catalog::{Databases, NameRange, is_mail_file, is_mailbox};
use scrinium_database::{DatabaseError, InitialAccess, Result};
use scrinium_directory::{DIRECTORY_DATABASE, Directory};
use scrinium_mail::mail_file_access;
use scrinium_views::OpenDatabase;

/// Names read from the catalogue at a time.
const NAMES_AT_ONCE: usize = 1000;

/// More open databases than these are counted, not named.
const MOST_NAMED: usize = 20;

/// Under which the store remembers that it was done.
const STEP: &str = "open databases closed";

/// Closes, at the first start of this version, mail databases, mail.boxes and the directory where nobody has said who may read them, with a line in the log
/// for each, and names others that are open.
pub(crate) fn close_open_databases(databases: &Databases, directory: &Directory) -> Result<()> {
    databases.once(STEP, || close_all(databases, &directory.mail_file_owners()))
}

fn close_all(databases: &Databases, owners: &HashMap<String, String>) -> Result<()> {
    let mut range = NameRange { limit: NAMES_AT_ONCE, ..NameRange::default() };
    let mut left_open = 0;
    loop {
        let names = databases.names(&range)?;
        for name in &names {
            match databases.get(name) {
                Ok(database) if is_open(&database)? => left_open += usize::from(!close(&database, owners)?),
                // One that is damaged is nobody's until it is mended.
                Ok(_) | Err(DatabaseError::NotFound { .. } | DatabaseError::Unavailable { .. }) => {}
                Err(error) => {
                    tracing::warn!(database = %name, %error, "it is not known who may read the database");
                }
            }
            if left_open == MOST_NAMED {
                tracing::warn!(
                    "more databases may be open to everybody who can log in; see `show databases`"
                );
                left_open += 1;
            }
        }
        let Some(last) = names.last().filter(|_| names.len() == NAMES_AT_ONCE) else { return Ok(()) };
        (range.start, range.skip) = (Some(last.clone()), 1);
    }
}

/// Whether nobody has said who may read a database.
fn is_open(database: &OpenDatabase) -> Result<bool> {
    let unsaid = database.security()?.as_object().is_none_or(serde_json::Map::is_empty);
    Ok(unsaid && database.access_list()?.is_none())
}

/// Whether the database is one that is closed.
fn close(database: &OpenDatabase, owners: &HashMap<String, String>) -> Result<bool> {
    let name = database.name();
    let (access, whose) = if is_mailbox(name) {
        (
            InitialAccess::depositors(),
            "a mail.box: everybody may put memos into it, nobody may read them".to_owned(),
        )
    } else if name == DIRECTORY_DATABASE {
        (InitialAccess::Closed, "the directory: for administrators".to_owned())
    } else if is_mail_file(name) {
        let owner = owners.get(name).map(String::as_str);
        let whose = owner.map_or_else(
            || "a mail database of nobody in the directory: for administrators".to_owned(),
            |owner| format!("a mail database: for its owner, {owner}"),
        );
        (mail_file_access(owner), whose)
    } else {
        tracing::warn!(
            database = %name,
            "the database is open to everybody who can log in: it has neither `_security` nor an access control list"
        );
        return Ok(false);
    };
    database.restrict(&access)?;
    tracing::warn!(database = %name, "the database was open to everybody who could log in; it was closed as {whose}");
    Ok(true)
}
