//! What every source says of people and groups, in one form.

use std::collections::BTreeMap;
use std::fmt;

/// The longest value of a field, in bytes, as the directory has it.
pub const VALUE_MAX_BYTES: usize = 512;

/// Addresses of one person, the first one apart.
pub const ALIASES_MAX: usize = 256;

/// A field of a person that a source may say something of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PersonField {
    /// The name that is shown.
    FullName,
    /// The given name.
    FirstName,
    /// The family name.
    LastName,
    /// The address at which mail arrives, and from which it is sent.
    Address,
    /// Further addresses at which mail arrives.
    Aliases,
    /// The telephone at work.
    Telephone,
    /// The telephone that goes along.
    Mobile,
    /// What the person does.
    JobTitle,
    /// Where in the organisation.
    Department,
    /// The organisation.
    Organization,
    /// The room, the building or the town.
    Office,
    /// The number that the organisation gave.
    EmployeeNumber,
    /// The language to write in, such as `en-GB`.
    Language,
    /// The time zone, such as `Europe/London`.
    TimeZone,
    /// The name of the entry at the source, by which groups there know the person.
    EntryName,
}

impl PersonField {
    /// The field of a person's document.
    #[must_use]
    pub fn document_field(self) -> &'static str {
        match self {
            Self::FullName => "FullName",
            Self::FirstName => "FirstName",
            Self::LastName => "LastName",
            Self::Address => "InternetAddress",
            Self::Aliases => "Addresses",
            Self::Telephone => "OfficePhoneNumber",
            Self::Mobile => "CellPhoneNumber",
            Self::JobTitle => "JobTitle",
            Self::Department => "Department",
            Self::Organization => "CompanyName",
            Self::Office => "Location",
            Self::EmployeeNumber => "EmployeeID",
            Self::Language => "Language",
            Self::TimeZone => "TimeZone",
            Self::EntryName => "SourceEntry",
        }
    }

    /// Whether values are addresses, which are the same in any case.
    #[must_use]
    pub fn is_address(self) -> bool {
        matches!(self, Self::Address | Self::Aliases)
    }
}

/// A field of a group that a source may say something of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupField {
    /// The address at which mail for all members arrives.
    Address,
    /// What it is for.
    Description,
    /// The name of the entry at the source, by which other groups there know it.
    EntryName,
}

/// Fields with their values. A field that is there without values is empty at the source; the source says nothing of one
/// that is not there, and the directory keeps what it has.
pub type Fields<F> = BTreeMap<F, Vec<String>>;

/// A password that a source gives to a new person. No log shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct InitialPassword(pub String);

impl fmt::Debug for InitialPassword {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("InitialPassword(..)")
    }
}

/// A person, as a source says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonRecord {
    /// What stays the same at the source whatever else changes: an `entryUUID`, an `objectGUID`, an id of a table.
    pub identity: String,
    /// Where it stands in the source, for messages.
    pub place: RecordPlace,
    /// The name to log in with.
    pub short_name: String,
    /// What the source says.
    pub fields: Fields<PersonField>,
    /// Whether the person may not log in; `None` if the source says nothing of it.
    pub is_disabled: Option<bool>,
    /// Whether the source says which of the addresses is the first one. If not, the directory's stays the first.
    pub has_primary_address: bool,
    /// For a person who is new.
    pub password: Option<InitialPassword>,
}

/// A group, as a source says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRecord {
    /// What stays the same at the source.
    pub identity: String,
    /// Where it stands in the source, for messages.
    pub place: RecordPlace,
    /// Its name.
    pub name: String,
    /// Who is in it.
    pub members: Vec<Member>,
    /// What the source says.
    pub fields: Fields<GroupField>,
}

/// A member of a group, as a source says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    /// By a short name, an address, or the name of a group.
    Name(String),
    /// By the name of an entry.
    Entry(String),
}

/// Where a record stands in its source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordPlace {
    /// A line of a file, from 1.
    Line(u64),
    /// The name of an entry.
    Entry(String),
}

impl fmt::Display for RecordPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(formatter, "line {line}"),
            Self::Entry(name) => write!(formatter, "entry {name:?}"),
        }
    }
}

/// What a source says of one record that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordFault {
    /// There is no name to log in with, and no address to make one of.
    #[error("it has neither a name to log in with nor an address to make one of")]
    NoName,
    /// A name to log in with that the directory would refuse.
    #[error(
        "{0:?} is no name to log in with: it has at most 64 bytes, no spaces, and none of < > , ; : \" @ /"
    )]
    ShortName(String),
    /// Something that is no address.
    #[error("{0:?} is no address of the form name@domain")]
    Address(String),
    /// More than [`ALIASES_MAX`].
    #[error("it has more than 256 addresses")]
    TooManyAliases,
    /// A value that is too long, or has control characters.
    #[error("{field} is longer than 512 bytes or holds control characters")]
    Value {
        /// The field or column.
        field: String,
    },
    /// A status that is not known.
    #[error("{0:?} says neither that the person may log in nor that they may not")]
    Status(String),
    /// More columns or fewer than the first line has.
    #[error("it has {found} columns, and the first line has {expected}")]
    Columns {
        /// Columns of the line.
        found: usize,
        /// Columns of the first line.
        expected: usize,
    },
}

/// A record that was left out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Where it stands.
    pub place: RecordPlace,
    /// Its identity, if it can be read: who it is about is at the source nonetheless.
    pub identity: Option<String>,
    /// What is wrong with it.
    pub fault: RecordFault,
}

/// Everything that a source says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceRecords {
    /// The people.
    pub people: Vec<PersonRecord>,
    /// The groups.
    pub groups: Vec<GroupRecord>,
    /// Records that cannot be taken: the first [`LEFT_OUT_MAX`] of them.
    pub left_out: Vec<LeftOut>,
    /// How many were left out.
    pub left_out_count: usize,
    /// Columns that nothing was made of.
    pub ignored: Vec<String>,
}

/// Records with faults that are listed; more are counted only.
pub const LEFT_OUT_MAX: usize = 1000;

impl SourceRecords {
    /// Whether it is known of everybody at the source that they are there.
    pub(crate) fn names_everybody(&self) -> bool {
        self.left_out_count == self.left_out.len() && self.left_out.iter().all(|one| one.identity.is_some())
    }

    pub(crate) fn leave_out(&mut self, place: RecordPlace, identity: Option<String>, fault: RecordFault) {
        self.left_out_count += 1;
        if self.left_out.len() < LEFT_OUT_MAX {
            self.left_out.push(LeftOut { place, identity, fault });
        }
    }
}

/// A value without spaces at its ends; nothing if nothing is left.
pub(crate) fn cleaned(field: &str, value: &str) -> Result<Option<String>, RecordFault> {
    let value = value.trim();
    if value.len() > VALUE_MAX_BYTES || value.chars().any(char::is_control) {
        return Err(RecordFault::Value { field: quoted(field) });
    }
    Ok((!value.is_empty()).then(|| value.to_owned()))
}

/// An address, as the directory checks it.
pub(crate) fn checked_address(address: &str) -> Result<&str, RecordFault> {
    let is_address = address.rsplit_once('@').is_some_and(|(local, domain)| {
        !local.is_empty()
            && !domain.is_empty()
            && !address
                .contains(|sign: char| sign.is_whitespace() || sign.is_control() || "<>,;\"".contains(sign))
    });
    if is_address { Ok(address) } else { Err(RecordFault::Address(quoted(address))) }
}

/// A name to log in with, as the directory checks it.
pub(crate) fn checked_short_name(name: &str) -> Result<&str, RecordFault> {
    let is_forbidden = |sign: char| sign.is_whitespace() || sign.is_control() || "<>,;:\"@/".contains(sign);
    if name.is_empty() || name.len() > 64 || name.contains(is_forbidden) {
        return Err(RecordFault::ShortName(quoted(name)));
    }
    Ok(name)
}

/// As much of a value as helps in a message.
pub(crate) fn quoted(value: &str) -> String {
    value.chars().take(60).collect()
}

/// How names and addresses are compared.
pub(crate) fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
