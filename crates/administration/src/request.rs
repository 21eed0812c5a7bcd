//! A request, as its document says.

use serde::{Deserialize, Serialize};

use crate::change::NameChange;

/// The field `Form` of a request.
pub(crate) const REQUEST_FORM: &str = "Request";

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// A person gets another name.
    RenamePerson,
    /// A person goes.
    RemovePerson,
    /// A person goes, with the mail database.
    ErasePerson,
    /// A group gets another name.
    RenameGroup,
    /// A group goes.
    RemoveGroup,
}

impl RequestKind {
    /// Whether it is about a person.
    #[must_use]
    pub const fn is_of_person(self) -> bool {
        matches!(self, Self::RenamePerson | Self::RemovePerson | Self::ErasePerson)
    }

    /// Whether somebody goes.
    #[must_use]
    pub const fn removes(self) -> bool {
        matches!(self, Self::RemovePerson | Self::ErasePerson | Self::RemoveGroup)
    }

    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::RenamePerson => "rename person",
            Self::RemovePerson => "remove person",
            Self::ErasePerson => "erase person",
            Self::RenameGroup => "rename group",
            Self::RemoveGroup => "remove group",
        }
    }
}

/// How a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// It waits for those before it.
    Waiting,
    /// It is under way.
    Running,
    /// Everything is done.
    Done,
    /// It cannot be done, and has changed nothing.
    Failed,
}

impl RequestState {
    /// One word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    /// The new name is taken; who goes may not log in.
    #[default]
    Begin,
    /// Access lists name the new name, too.
    Lists,
    /// The directory says the new name.
    Entry,
    /// Everything in databases.
    Databases,
    /// Who goes is gone.
    End,
}

/// How far a request is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Progress {
    pub(crate) step: Step,
    /// The database that is under way, or the last one that is done.
    pub(crate) database: Option<String>,
    /// The keeper that is under way there, and its place; none where the database is done.
    pub(crate) keeper: Option<(usize, Option<String>)>,
    /// Databases that are done.
    pub databases_done: u64,
    /// Databases that there are.
    pub databases: u64,
    /// What was changed, by its kind (`documents`, `access lists`, `marks`). Of a piece after which the server was killed, it may not
    /// say.
    pub changed: std::collections::BTreeMap<String, u64>,
    /// What could not be changed: documents that their validation refuses, and conflicts that nobody has settled.
    pub left: u64,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    /// The id of its document.
    #[serde(rename = "_id")]
    pub id: String,
    #[serde(rename = "_rev", default, skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<String>,
    pub(crate) form: String,
    /// What is to be done.
    pub kind: RequestKind,
    /// The id of the person's or group's document.
    pub entry: String,
    /// The short name of the person, or the name of the group, as it was.
    pub name: String,
    /// The new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_name: Option<String>,
    /// New full names of a person; without any they stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_full_names: Vec<String>,
    /// A new address; the old one stays another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_address: Option<String>,
    /// The mail database that goes with the person who is erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail_file: Option<String>,
    /// Fields of names besides `Readers` and `Authors`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// Who asked for it.
    pub requested_by: String,
    /// When, as RFC 3339 has it.
    pub requested: String,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// How it stands.
    pub state: RequestState,
    /// Why it failed, or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The names that change.
    #[serde(default)]
    pub names: NameChange,
    /// How far it is.
    #[serde(default)]
    pub progress: Progress,
}

impl Request {
    /// Whether nothing more is to be done.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, RequestState::Done | RequestState::Failed)
    }
}

/// What an administrator asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRequest {
    /// What is to be done.
    pub kind: RequestKind,
    /// The person or group.
    pub name: String,
    /// The new short name, or the group's new name.
    pub new_name: Option<String>,
    /// New full names of a person.
    pub new_full_names: Vec<String>,
    /// A new address.
    pub new_address: Option<String>,
    /// Fields of names besides `Readers` and `Authors`.
    pub fields: Vec<String>,
    /// Who asks.
    pub requested_by: String,
}

impl NewRequest {
    /// A request for this person or group.
    #[must_use]
    pub fn new(kind: RequestKind, name: &str, requested_by: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            new_name: None,
            new_full_names: Vec::new(),
            new_address: None,
            fields: Vec::new(),
            requested_by: requested_by.to_owned(),
        }
    }
}
