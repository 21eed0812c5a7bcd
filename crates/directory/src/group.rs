//! The document of a group.

use serde_json::Value;

use crate::DirectoryError;
use crate::fields::{Fields, check_identity, text, texts};
use crate::person::{MOST_NAMES, OTHER_NAMES};

/// The field `Form` of a group.
pub const GROUP_FORM: &str = "Group";

/// What every group's id starts with.
pub const GROUP_PREFIX: &str = "group:";

/// More than any company's list of everybody; the bound is on memory.
const MOST_MEMBERS: usize = 200_000;

/// A group, as read from a document of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Id of the document, `group:engines`.
    pub id: String,
    /// The group's name.
    pub list_name: String,
    /// Further names that are this group's alone, such as former ones.
    pub other_names: Vec<String>,
    /// Members: names or addresses of people, names of groups.
    pub members: Vec<String>,
    /// The address at which mail from outside arrives, if it may.
    pub internet_address: Option<String>,
}

impl Group {
    /// Reads a group's document.
    ///
    /// # Errors
    /// What is wrong with the document.
    pub fn read(document: &Fields) -> Result<Self, DirectoryError> {
        let internet_address = text(document, "InternetAddress")?;
        if let Some(address) = &internet_address {
            crate::fields::check_address("InternetAddress", address)?;
        }
        Ok(Self {
            id: document.get("_id").and_then(Value::as_str).unwrap_or_default().to_owned(),
            list_name: text(document, "ListName")?.ok_or(DirectoryError::Missing { field: "ListName" })?,
            other_names: texts(document, OTHER_NAMES, MOST_NAMES)?,
            members: texts(document, "Members", MOST_MEMBERS)?,
            internet_address,
        })
    }
}

/// Checks a group's document on its way into the directory; `Members` becomes a list. A member need not
/// exist yet: whether it does shows when mail is sent.
///
/// # Errors
/// What is wrong with the document, in words for the one who wrote it.
pub fn prepare_group(mut document: Fields) -> Result<Fields, DirectoryError> {
    check_identity(&mut document, GROUP_PREFIX, GROUP_FORM)?;
    let group = Group::read(&document)?;
    document.insert("Members".to_owned(), Value::from(group.members));
    Ok(document)
}
