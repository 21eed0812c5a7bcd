//! Who keeps something by name.

use scrinium_database::Result;
use scrinium_views::OpenDatabase;

use crate::change::NameChange;

/// What is to be changed.
#[derive(Clone, Copy, Debug)]
pub struct NameOrder<'a> {
    /// The names.
    pub names: &'a NameChange,
    /// The short name of the person, or the name of the group, as identities have it.
    pub name: &'a str,
    /// What that becomes; `None`: it goes.
    pub new_name: Option<&'a str>,
    /// Whether it is a person.
    pub is_of_person: bool,
    /// Fields of names besides `Readers` and `Authors`.
    pub fields: &'a [String],
}

/// A piece of the work in one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// What was changed.
    pub changed: u64,
    /// What could not be changed.
    pub left: u64,
    /// Where the next piece begins; `None`: this was the last one.
    pub next: Option<String>,
    /// About how many bytes were read and written.
    pub bytes: u64,
}

/// Somebody who keeps something by the names of people or groups, in databases.
pub trait NameKeeper: Send + Sync {
    /// What is kept, in the plural: `documents`.
    fn title(&self) -> &'static str;

    /// Changes a piece of what is kept in a database, from `place` on, where an earlier piece ended. It takes some ten milliseconds, and
    /// a piece that is done again changes nothing.
    ///
    /// # Errors
    /// What the database reports.
    fn change(&self, database: &OpenDatabase, order: &NameOrder<'_>, place: Option<&str>) -> Result<Piece>;
}

/// Somebody who knows what must be kept for the law's sake.
pub trait LegalHolds: Send + Sync {
    /// What keeps a person's mail database from being deleted, in words; `None`: nothing does.
    ///
    /// # Errors
    /// What the database reports; then nothing is deleted.
    fn hold_on(&self, person_id: &str, mail_file: &str) -> Result<Option<String>>;
}
