//! A person's mail database as a session sees it, and the names of its folders as mailboxes.

use std::sync::Arc;

use scrinium_catalog::Databases;
use scrinium_database::folder::name::SEPARATOR;
use scrinium_database::{
    Access, Database, DatabaseError, FolderInfo, FolderUse, Identity, Level, Oversized, Result, SpecialUse,
};
use scrinium_directory::{Directory, NameLookup as _, Person};
use scrinium_imap::Refusal;
use scrinium_mail::{INBOX, JUNK, mail_columns, open_mail_file};

/// Between the levels of a mailbox's name.
pub(crate) const LEVEL: char = '/';

/// What stands for a slash in the name of a folder.
const SHOWN_SLASH: char = '\u{2215}';

/// The mailbox that everybody has (RFC 9051, section 5.1).
const INBOX_NAME: &str = "INBOX";

/// The folders that a mail database gets when its person first comes with a mail client (RFC 6154).
const USUAL: [(&str, SpecialUse); 5] = [
    ("Drafts", SpecialUse::Drafts),
    ("Sent", SpecialUse::Sent),
    ("Trash", SpecialUse::Trash),
    (JUNK, SpecialUse::Junk),
    ("Archive", SpecialUse::Archive),
];

/// A mail database, opened for a person with what they may do there at this moment.
pub(crate) struct MailFile {
    pub(crate) database: Arc<Database>,
    pub(crate) access: Access,
    /// The name that marks are kept under.
    pub(crate) person: Arc<str>,
}

impl MailFile {
    /// Blocks.
    ///
    /// # Errors
    /// [`DatabaseError::Forbidden`] if the person may not read there, and what the store reports.
    pub(crate) fn open(databases: &Databases, directory: &Directory, person: &Person) -> Result<Self> {
        let opened = open_mail_file(databases, person)?;
        let database = Arc::clone(opened.database());
        let groups = directory.groups_of(person);
        let identity = Identity::with_groups(&person.short_name, &person.roles, &groups);
        let access = database.access(&identity)?;
        if access.level() < Level::Reader {
            return Err(DatabaseError::Forbidden {
                reason: "You may not read this mail database.".to_owned(),
            });
        }
        Ok(Self { database, access, person: person.short_name.as_str().into() })
    }

    /// # Errors
    /// [`DatabaseError::Forbidden`] if the person may not change what is in the database.
    pub(crate) fn check_editor(&self) -> Result<()> {
        if self.is_editor() {
            return Ok(());
        }
        Err(DatabaseError::Forbidden { reason: "You may only read in this mail database.".to_owned() })
    }

    /// Whether the person may change what is in the database, and not their marks alone.
    pub(crate) fn is_editor(&self) -> bool {
        self.access.level() >= Level::Editor
    }

    /// The folders, in the order of their names in lower case.
    ///
    /// # Errors
    /// What the store reports.
    pub(crate) fn folders(&self) -> Result<Vec<FolderInfo>> {
        self.database.folders(Some(&self.person))
    }

    /// One folder by its mailbox's name.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub(crate) fn folder(&self, mailbox: &str) -> Result<FolderInfo> {
        let folder = self.database.folder(&folder_of(mailbox), Some(&self.person))?;
        // Names that differ in case alone are one folder's, but other mailboxes.
        if mailbox_of(&folder.name) == canonical(mailbox) {
            return Ok(folder);
        }
        Err(DatabaseError::NotFound { reason: format!("There is no mailbox {mailbox}.") })
    }

    /// The folder with a number, which was called `name` when it was opened: all are looked through only where it is so no more.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub(crate) fn folder_numbered(&self, number: u32, name: &str) -> Result<FolderInfo> {
        match self.database.folder(name, Some(&self.person)) {
            Ok(folder) if folder.number == number => return Ok(folder),
            Ok(_) | Err(DatabaseError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        let found = self.folders()?.into_iter().find(|folder| folder.number == number);
        found.ok_or_else(|| DatabaseError::NotFound { reason: "The folder is gone.".to_owned() })
    }

    /// Makes what is missing of the inbox and, for a database that no mail client has used, the usual folders. Blocks.
    ///
    /// # Errors
    /// What the store reports.
    pub(crate) fn make_usual(&self) -> Result<()> {
        if !self.is_editor() {
            return Ok(());
        }
        let folders = self.folders()?;
        let has = |name: &str| folders.iter().any(|folder| folder.name.eq_ignore_ascii_case(name));
        if !has(INBOX) {
            self.database.define_folder(INBOX, Some(&mail_columns()))?;
        }
        let is_sent = |folder: &FolderInfo| folder.special_use == Some(SpecialUse::Sent);
        if folders.iter().any(is_sent) {
            return Ok(());
        }
        for (name, special_use) in USUAL {
            self.database.define_folder(name, Some(&mail_columns()))?;
            let folder_use = FolderUse { special_use: Some(Some(special_use)), ..FolderUse::default() };
            self.database.set_folder_use(name, folder_use)?;
        }
        Ok(())
    }
}

/// A mailbox's name as LIST shows it.
fn canonical(mailbox: &str) -> String {
    mailbox_of(&folder_of(mailbox))
}

/// The folder that a mailbox's name means.
pub(crate) fn folder_of(mailbox: &str) -> String {
    let mut levels = mailbox.split(LEVEL);
    let first = levels.next().unwrap_or_default();
    let first = if first.eq_ignore_ascii_case(INBOX_NAME) { INBOX } else { first };
    let names = std::iter::once(first).chain(levels);
    names.collect::<Vec<_>>().join(&SEPARATOR.to_string()).replace(SHOWN_SLASH, "/")
}

/// The mailbox that a folder is.
pub(crate) fn mailbox_of(folder: &str) -> String {
    let shown = folder.replace(LEVEL, &SHOWN_SLASH.to_string());
    let mut levels = shown.split(SEPARATOR);
    let first = levels.next().unwrap_or_default();
    let first = if first.eq_ignore_ascii_case(INBOX) { INBOX_NAME } else { first };
    std::iter::once(first).chain(levels).collect::<Vec<_>>().join(&LEVEL.to_string())
}

/// What a client hears of an error of the database (RFC 5530).
pub(crate) fn refusal_of(error: &DatabaseError) -> Refusal {
    match error {
        DatabaseError::NotFound { .. } => Refusal::no_mailbox(),
        DatabaseError::Exists { .. } => {
            Refusal::new("ALREADYEXISTS", "There is a mailbox of this name already")
        }
        DatabaseError::Invalid { reason, .. } => Refusal::new("CANNOT", reason),
        DatabaseError::TooLarge { what: Oversized::Database, .. } | DatabaseError::Full { .. } => {
            Refusal::new("OVERQUOTA", "There is no room for more")
        }
        DatabaseError::TooLarge { reason, .. } => Refusal::new("LIMIT", reason),
        DatabaseError::Forbidden { .. } | DatabaseError::Unauthorized { .. } => {
            Refusal::new("NOPERM", "You may not do that here")
        }
        DatabaseError::Conflict | DatabaseError::Stale => {
            Refusal::new("INUSE", "Somebody else is changing this; try again")
        }
        error => {
            tracing::warn!(%error, "a mail client was not served");
            Refusal::trouble()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_mailboxes_have_each_others_names() {
        for (folder, mailbox) in [
            ("Inbox", "INBOX"),
            ("Inbox\\2026", "INBOX/2026"),
            ("Projects\\Größe", "Projects/Größe"),
            ("a/b", "a\u{2215}b"),
            ("Inboxes", "Inboxes"),
        ] {
            assert_eq!(mailbox_of(folder), mailbox);
            assert_eq!(folder_of(mailbox), folder);
        }
        assert_eq!(folder_of("inbox"), "Inbox");
        assert_eq!(canonical("iNBOX/x"), "INBOX/x");
    }
}
