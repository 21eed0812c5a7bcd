//! A database as a session sees it: where mailboxes lead, and what the person may do there.

use std::sync::Arc;

use scrinium_catalog::{Databases, NameRange};
use scrinium_database::folder::name::SEPARATOR;
use scrinium_database::{
    Access, Database, DatabaseError, FolderInfo, FolderKind, FolderUse, Identity, Level, Oversized, Result,
    SpecialUse,
};
use scrinium_directory::{Directory, Found, NameLookup as _, Person, mail_editors_group, mail_readers_group};
use scrinium_imap::Refusal;
use scrinium_mail::{INBOX, JUNK, mail_columns, open_mail_file};
use scrinium_views::OpenDatabase;

use crate::surroundings::Surroundings;

/// Between the levels of a mailbox's name.
pub(crate) const LEVEL: char = '/';

/// What stands for a slash in the name of a folder or database.
const SHOWN_SLASH: char = '\u{2215}';

/// The mailbox that everybody has (RFC 9051, section 5.1).
const INBOX_NAME: &str = "INBOX";

/// Below it are other people's mail databases (RFC 2342).
pub(crate) const USERS: &str = "Users/";

/// Below it are other databases.
pub(crate) const DATABASES: &str = "Databases/";

/// What the names of mail databases begin with, and the first name behind them.
const MAIL_FILES: &str = "mail/";
const BEHIND_MAIL_FILES: &str = "mail0";

/// As many databases are looked at for one list of mailboxes; of a server with more, those that are subscribed to are listed.
const DATABASES_LISTED: usize = 500;

/// The folders that a mail database gets when its person first comes with a mail client (RFC 6154).
const USUAL: [(&str, SpecialUse); 5] = [
    ("Drafts", SpecialUse::Drafts),
    ("Sent", SpecialUse::Sent),
    ("Trash", SpecialUse::Trash),
    (JUNK, SpecialUse::Junk),
    ("Archive", SpecialUse::Archive),
];

/// In which database a mailbox is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// One's own mail database.
    Own,
    /// That of the person with this short name.
    User(String),
    /// The database of this name.
    Database(String),
}

impl Place {
    /// Where a mailbox's name leads, and its name there: none of the place itself.
    pub(crate) fn of(mailbox: &str) -> (Self, &str) {
        let in_user = mailbox.strip_prefix(USERS).map(|rest| (rest, true));
        let found = in_user.or_else(|| mailbox.strip_prefix(DATABASES).map(|rest| (rest, false)));
        let Some((rest, is_user)) = found else { return (Self::Own, mailbox) };
        let (name, inner) = rest.split_once(LEVEL).unwrap_or((rest, ""));
        match is_user {
            true => (Self::User(name.to_owned()), inner),
            false => (Self::Database(name.replace(SHOWN_SLASH, "/")), inner),
        }
    }

    /// What the names of its mailboxes begin with.
    pub(crate) fn prefix(&self) -> String {
        match self {
            Self::Own => String::new(),
            Self::User(name) => format!("{USERS}{name}{LEVEL}"),
            Self::Database(name) => {
                format!("{DATABASES}{}{LEVEL}", name.replace('/', &SHOWN_SLASH.to_string()))
            }
        }
    }
}

/// A database, opened for a person with what they may do there at this moment.
pub(crate) struct MailFile {
    pub(crate) database: Arc<Database>,
    /// The same with what is derived from it.
    pub(crate) opened: OpenDatabase,
    pub(crate) access: Access,
    /// The name that marks are kept under.
    pub(crate) person: Arc<str>,
    pub(crate) place: Place,
}

impl MailFile {
    /// Blocks.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if there is nothing of this kind, or the person may not read there, which are the same to them;
    /// [`DatabaseError::Forbidden`] if it is their own; and what the store reports.
    pub(crate) fn open(shared: &Surroundings, person: &Person, place: &Place) -> Result<Self> {
        let (databases, directory) = (&shared.databases, &*shared.directory);
        let opened = match place {
            Place::Own => open_mail_file(databases, person)?,
            Place::User(name) => match directory.find(name) {
                Found::Person(owner) if owner.short_name == *name && owner.id != person.id => {
                    databases.get(&owner.mail_file)?
                }
                _ => return Err(missing()),
            },
            Place::Database(name) => databases.get(name)?,
        };
        let database = Arc::clone(opened.database());
        let groups = directory.groups_of(person);
        let identity = Identity::with_groups(&person.short_name, &person.roles, &groups);
        let access = database.access(&identity)?;
        if access.level() < Level::Reader {
            return Err(match place {
                Place::Own => {
                    DatabaseError::Forbidden { reason: "You may not read this mail database.".to_owned() }
                }
                Place::User(_) | Place::Database(_) => missing(),
            });
        }
        let person = person.short_name.as_str().into();
        Ok(Self { database, opened, access, person, place: place.clone() })
    }

    /// The database that a mailbox is in, and the mailbox's name there.
    ///
    /// # Errors
    /// As of [`Self::open`].
    pub(crate) fn of_mailbox<'m>(
        shared: &Surroundings,
        person: &Person,
        mailbox: &'m str,
    ) -> Result<(Self, &'m str)> {
        let (place, inner) = Place::of(mailbox);
        Ok((Self::open(shared, person, &place)?, inner))
    }

    /// The databases whose mailboxes are listed of those with this beginning. What cannot be opened is left out.
    ///
    /// # Errors
    /// What the store reports of one's own.
    pub(crate) fn listed(shared: &Surroundings, person: &Person, prefix: &str) -> Result<Vec<Self>> {
        let reaches = |root: &str| prefix.starts_with(root) || root.starts_with(prefix);
        let mut files = vec![Self::open(shared, person, &Place::Own)?];
        let mut places = Vec::new();
        if reaches(USERS) {
            places.extend(people_who_let_in(&shared.directory, person).into_iter().map(Place::User));
        }
        if reaches(DATABASES) {
            let names = database_names(&shared.databases, prefix.strip_prefix(DATABASES).unwrap_or(""))?;
            places.extend(names.into_iter().map(Place::Database));
        }
        files.extend(places.iter().filter_map(|place| Self::open(shared, person, place).ok()));
        Ok(files)
    }

    /// What the person may do, in the letters of RFC 4314.
    pub(crate) fn rights(&self) -> String {
        let (may_create, may_delete) = (self.access.check_create("m").is_ok(), self.access.may_delete());
        rights_of(self.access.level(), may_create, may_delete)
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

    /// # Errors
    /// [`DatabaseError::Forbidden`] if the person may not make documents, and change those that are theirs.
    pub(crate) fn check_author(&self) -> Result<()> {
        if self.access.level() >= Level::Author {
            return Ok(());
        }
        Err(DatabaseError::Forbidden { reason: "You may only read in this database.".to_owned() })
    }

    /// Whose the messages are that the person puts here, where they change none but their own.
    pub(crate) fn author(&self) -> Option<&str> {
        (self.access.level() == Level::Author).then_some(&*self.person)
    }

    /// The folders, in the order of their names in lower case. Those of calendars and address books are for other clients.
    ///
    /// # Errors
    /// What the store reports.
    pub(crate) fn folders(&self) -> Result<Vec<FolderInfo>> {
        let mut folders = self.database.folders(Some(&self.person))?;
        folders.retain(|folder| is_mailbox(folder.kind));
        Ok(folders)
    }

    /// One folder by its mailbox's name within the place.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub(crate) fn folder(&self, mailbox: &str) -> Result<FolderInfo> {
        if mailbox.is_empty() || mailbox.contains(SEPARATOR) {
            return Err(missing());
        }
        let folder = self.database.folder(&folder_of(mailbox), Some(&self.person))?;
        // Names that differ in case alone are one folder's, but other mailboxes.
        if mailbox_of(&folder.name) == canonical(mailbox) && is_mailbox(folder.kind) {
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

/// Whether mail clients are shown a folder of this kind.
const fn is_mailbox(kind: FolderKind) -> bool {
    match kind {
        FolderKind::Plain | FolderKind::Mail => true,
        FolderKind::Calendar | FolderKind::Contacts | FolderKind::Tasks => false,
    }
}

fn missing() -> DatabaseError {
    DatabaseError::NotFound { reason: "There is no such mailbox.".to_owned() }
}

/// The short names of those who have named the person, or a group of theirs, among those who read or edit their mail.
fn people_who_let_in(directory: &Directory, person: &Person) -> Vec<String> {
    let groups = directory.groups_of(person);
    let mut names: Vec<String> = groups
        .iter()
        .filter_map(|group| {
            let file = group.strip_suffix(&mail_readers_group(""));
            file.or_else(|| group.strip_suffix(&mail_editors_group("")))
        })
        .filter_map(|file| match directory.find(file.rsplit('/').next()?) {
            Found::Person(owner) if owner.mail_file == file => Some(owner.short_name.clone()),
            _ => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The first databases with this beginning. Mail databases are listed below their people.
fn database_names(databases: &Databases, shown: &str) -> Result<Vec<String>> {
    let beginning = shown.split(LEVEL).next().unwrap_or_default().replace(SHOWN_SLASH, "/");
    let behind_mail_files = beginning.clone().max(BEHIND_MAIL_FILES.to_owned());
    let mut names = Vec::new();
    for (start, end) in [(beginning.clone(), Some(MAIL_FILES.to_owned())), (behind_mail_files, None)] {
        let limit = DATABASES_LISTED.saturating_sub(names.len());
        let (start, inclusive_end) = (Some(start), false);
        let range = NameRange { start, end, inclusive_end, descending: false, skip: 0, limit };
        names.extend(databases.names(&range)?);
    }
    names.retain(|name| name.starts_with(&beginning));
    Ok(names)
}

/// The letters of RFC 4314, section 2.1. What one author has written is theirs to change; the letters say what holds for all messages.
pub(crate) fn rights_of(level: Level, may_create: bool, may_delete: bool) -> String {
    let all = match level {
        Level::NoAccess => "",
        Level::Depositor => "p",
        Level::Reader => "lrs",
        Level::Author => "lrsi",
        Level::Editor | Level::Designer => "lrswipkxte",
        Level::Manager => "lrswipkxtea",
    };
    let is_left = |letter: &char| match letter {
        'i' | 'k' | 'p' => may_create,
        'x' | 't' | 'e' => may_delete,
        _ => true,
    };
    all.chars().filter(is_left).collect()
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
        for (mailbox, place, inner) in [
            ("INBOX", Place::Own, "INBOX"),
            ("Users/bob/INBOX/2026", Place::User("bob".to_owned()), "INBOX/2026"),
            ("Databases/sales\u{2215}films/Reviews", Place::Database("sales/films".to_owned()), "Reviews"),
            ("Databases/films", Place::Database("films".to_owned()), ""),
            ("Users", Place::Own, "Users"),
        ] {
            assert_eq!(Place::of(mailbox), (place.clone(), inner));
            assert!(inner.is_empty() || format!("{}{inner}", place.prefix()) == mailbox);
        }
        assert_eq!(canonical("iNBOX/x"), "INBOX/x");
    }
}
