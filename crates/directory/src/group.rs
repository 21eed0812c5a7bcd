//! The document of a group.

use serde_json::Value;

use crate::DirectoryError;
use crate::delegates::Delegates;
use crate::fields::{Fields, addresses, check_identity, refuse, text, texts};
use crate::person::{MOST_NAMES, OTHER_NAMES};

/// The field `Form` of a group.
pub const GROUP_FORM: &str = "Group";

/// What every group's id starts with.
pub const GROUP_PREFIX: &str = "group:";

/// More than any company's list of everybody; the bound is on memory.
const MOST_MEMBERS: usize = 200_000;

const MOST_OWNERS: usize = 100;

const MOST_WRITERS: usize = 1_000;

/// Who may send mail to a group, next to its owners and those whom it names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GroupSenders {
    /// Nobody else.
    Listed,
    /// Its members.
    Members,
    /// People of this server.
    #[default]
    People,
    /// Everybody, strangers too.
    Everybody,
}

impl GroupSenders {
    const ALL: [Self; 4] = [Self::Listed, Self::Members, Self::People, Self::Everybody];

    /// As the field `MayWrite` has it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Listed => "listed",
            Self::Members => "members",
            Self::People => "people",
            Self::Everybody => "everybody",
        }
    }

    /// The one that is written so.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|senders| senders.word() == word)
    }
}

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
    /// Its address.
    pub internet_address: Option<String>,
    /// Its other addresses.
    pub addresses: Vec<String>,
    /// Who keeps its members: names of people and groups.
    pub owners: Vec<String>,
    /// Who may send to it.
    pub senders: GroupSenders,
    /// Who else may: names of people and groups, and addresses of strangers, who are believed to be whom they say they are.
    pub writers: Vec<String>,
    /// Who may send as the group, or for it. Its members may send for it, too.
    pub delegates: Delegates,
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
            addresses: addresses(document, "Addresses")?,
            owners: texts(document, "Owners", MOST_OWNERS)?,
            senders: senders(document)?,
            writers: texts(document, "Writers", MOST_WRITERS)?,
            delegates: Delegates::read(document)?,
        })
    }
}

fn senders(document: &Fields) -> Result<GroupSenders, DirectoryError> {
    const FIELD: &str = "MayWrite";
    let Some(word) = text(document, FIELD)? else { return Ok(GroupSenders::default()) };
    let rule = "who may send to a group is one of listed, members, people, everybody";
    GroupSenders::parse(&word).ok_or_else(|| refuse(FIELD, &word, rule))
}

/// Checks a group's document on its way into the directory; `Members` becomes a list, and `Authors` the owners, where there are
/// any, so that they may edit it. A member need not exist yet: whether it does shows when mail is sent.
///
/// # Errors
/// What is wrong with the document, in words for the one who wrote it.
pub fn prepare_group(mut document: Fields) -> Result<Fields, DirectoryError> {
    check_identity(&mut document, GROUP_PREFIX, GROUP_FORM)?;
    let group = Group::read(&document)?;
    document.insert("Members".to_owned(), Value::from(group.members));
    if document.contains_key("Owners") {
        document.insert("Authors".to_owned(), Value::from(group.owners));
    }
    Ok(document)
}
