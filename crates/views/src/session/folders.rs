//! A person's folders and what they have read, through a session.

use scrinium_database::{
    FlagsChange, FlagsChanged, FolderChange, FolderChanges, FolderMembers, FolderUse, Level, Marked,
    MarkedChanges, Placed, Result, Unread, Update,
};
use serde_json::Value;

use super::{DatabaseSession, FolderDescription};

/// Folders and marks.
impl DatabaseSession {
    /// All folders, with what a person has not read there.
    ///
    /// # Errors
    /// As [`Database::folders`](scrinium_database::Database::folders).
    pub fn folders(&self, person: Option<&str>) -> Result<Vec<FolderDescription>> {
        let folders = self.require(Level::Reader)?.folders(person)?;
        let shows_all = self.database.shows_all(&self.access)?;
        let described = folders.into_iter().map(|folder| FolderDescription {
            name: folder.name,
            uid_validity: folder.uid_validity,
            next_uid: folder.next_uid,
            update_sequence: self.sequence_text(folder.change_number),
            total: shows_all.then_some(folder.total),
            unread: folder.unread.filter(|_| shows_all),
            kind: folder.kind,
            special_use: folder.special_use,
            keep_days: folder.keep_days,
            columns: folder.columns,
        });
        Ok(described.collect())
    }

    /// # Errors
    /// [`DatabaseError::NotFound`](super::DatabaseError::NotFound) if there is no folder of this name, and what the store reports.
    pub fn check_folder(&self, name: &str) -> Result<()> {
        self.database.folder(name, None).map(drop)
    }

    /// As [`Database::define_folder`](scrinium_database::Database::define_folder), for editors.
    ///
    /// # Errors
    /// As there.
    pub fn define_folder(&self, name: &str, columns: Option<&Value>) -> Result<bool> {
        self.require(Level::Editor)?.define_folder(name, columns)
    }

    /// As [`Database::set_folder_use`](scrinium_database::Database::set_folder_use), for editors.
    ///
    /// # Errors
    /// As there.
    pub fn set_folder_use(&self, name: &str, folder_use: FolderUse) -> Result<()> {
        self.require(Level::Editor)?.set_folder_use(name, folder_use)
    }

    /// As [`Database::change_flags`](scrinium_database::Database::change_flags), for authors.
    ///
    /// # Errors
    /// As there.
    pub fn change_flags(&self, changes: &[(String, FlagsChange)]) -> Result<Vec<Result<FlagsChanged>>> {
        self.require(Level::Author)?.change_flags(changes, &self.access)
    }

    /// As [`Database::rename_folder`](scrinium_database::Database::rename_folder), for editors.
    ///
    /// # Errors
    /// As there.
    pub fn rename_folder(&self, from: &str, to: &str) -> Result<()> {
        self.require(Level::Editor)?.rename_folder(from, to)
    }

    /// As [`Database::drop_folder`](scrinium_database::Database::drop_folder), for editors.
    ///
    /// # Errors
    /// As there.
    pub fn drop_folder(&self, name: &str) -> Result<()> {
        self.require(Level::Editor)?.drop_folder(name)
    }

    /// As [`Database::change_folders`](scrinium_database::Database::change_folders), for authors.
    ///
    /// # Errors
    /// As there.
    pub fn change_folders(&self, changes: Vec<(String, FolderChange)>) -> Result<Update<Placed>> {
        self.require(Level::Author)?.change_folders(changes, &self.access)
    }

    /// As [`Database::folder_members`](scrinium_database::Database::folder_members).
    ///
    /// # Errors
    /// As there.
    pub fn folder_members(
        &self,
        name: &str,
        since_uid: u64,
        limit: usize,
        person: Option<&str>,
    ) -> Result<FolderMembers> {
        self.require(Level::Reader)?.folder_members(name, since_uid, limit, (person, &self.access))
    }

    /// As [`Database::folder_changes`](scrinium_database::Database::folder_changes).
    ///
    /// # Errors
    /// As there.
    pub fn folder_changes(&self, name: &str, since: u64, limit: usize) -> Result<FolderChanges> {
        self.require(Level::Reader)?.folder_changes(name, since, limit, &self.access)
    }

    /// As [`Database::unread`](scrinium_database::Database::unread); `None` for those who do not see all documents.
    ///
    /// # Errors
    /// As there.
    pub fn unread(&self, person: &str) -> Result<Option<Unread>> {
        let unread = self.require(Level::Reader)?.unread(person)?;
        Ok(self.database.shows_all(&self.access)?.then_some(unread))
    }

    /// As [`Database::mark_each`](scrinium_database::Database::mark_each).
    ///
    /// # Errors
    /// As there.
    pub fn mark_each(&self, person: &str, marks: Vec<(String, bool)>) -> Result<Update<Marked>> {
        self.require(Level::Reader)?.mark_each(person, marks, &self.access)
    }

    /// As [`Database::mark_folder`](scrinium_database::Database::mark_folder).
    ///
    /// # Errors
    /// As there.
    pub fn mark_folder(&self, person: &str, name: &str, read: bool) -> Result<u64> {
        self.require(Level::Reader)?.mark_folder(person, name, read, &self.access)
    }

    /// As [`Database::mark_changes`](scrinium_database::Database::mark_changes).
    ///
    /// # Errors
    /// As there.
    pub fn mark_changes(&self, person: &str, since: u64, limit: usize) -> Result<MarkedChanges> {
        self.require(Level::Reader)?.mark_changes(person, since, limit, &self.access)
    }
}
