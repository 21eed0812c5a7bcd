//! The document of a mail-in database: an address whose mail goes into a database that is nobody's mail file.

use scrinium_catalog::is_mailbox;
use serde_json::Value;

use crate::fields::{Fields, addresses, check_address, check_identity, refuse, text, texts};
use crate::person::{MOST_NAMES, OTHER_NAMES};
use crate::{DIRECTORY_DATABASE, DirectoryError};

/// The field `Form` of a mail-in database.
pub const MAIL_IN_FORM: &str = "MailInDatabase";

/// What the id of every mail-in database starts with.
pub const MAIL_IN_PREFIX: &str = "mail-in:";

/// A mail-in database, as read from a document of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailIn {
    /// Id of the document, `mail-in:tickets`.
    pub id: String,
    /// The name that stands for it.
    pub name: String,
    /// Further names that are its alone.
    pub other_names: Vec<String>,
    /// Its address.
    pub internet_address: Option<String>,
    /// Its other addresses.
    pub addresses: Vec<String>,
    /// The database that gets what is for it. Mail makes none.
    pub database: String,
}

impl MailIn {
    /// Reads the document of a mail-in database.
    ///
    /// # Errors
    /// What is wrong with the document.
    pub fn read(document: &Fields) -> Result<Self, DirectoryError> {
        let internet_address = text(document, "InternetAddress")?;
        if let Some(address) = &internet_address {
            check_address("InternetAddress", address)?;
        }
        Ok(Self {
            id: document.get("_id").and_then(Value::as_str).unwrap_or_default().to_owned(),
            name: text(document, "Name")?.ok_or(DirectoryError::Missing { field: "Name" })?,
            other_names: texts(document, OTHER_NAMES, MOST_NAMES)?,
            internet_address,
            addresses: addresses(document, "Addresses")?,
            database: database(document)?,
        })
    }
}

/// The router writes where this says, past what guards the server's own databases: none of them may stand here.
fn database(document: &Fields) -> Result<String, DirectoryError> {
    const FIELD: &str = "Database";
    const OF_THE_SERVER: [&str; 3] = [DIRECTORY_DATABASE, "administration", "log"];
    let name = text(document, FIELD)?.ok_or(DirectoryError::Missing { field: FIELD })?;
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= 238
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_$()+/-.".contains(c));
    let last = name.rsplit('/').next().unwrap_or_default();
    let is_servers = OF_THE_SERVER.contains(&name.as_str()) || is_mailbox(&name) || last.starts_with('_');
    if is_name && !is_servers && last != "smtp.box" {
        return Ok(name);
    }
    Err(refuse(
        FIELD,
        &name,
        "mail goes into a database of yours, named as it is, and into none of the server's",
    ))
}

/// Checks the document of a mail-in database on its way into the directory.
///
/// # Errors
/// What is wrong with the document, in words for the one who wrote it.
pub fn prepare_mail_in(mut document: Fields) -> Result<Fields, DirectoryError> {
    check_identity(&mut document, MAIL_IN_PREFIX, MAIL_IN_FORM)?;
    MailIn::read(&document)?;
    Ok(document)
}
