//! The directory of a server: its database, and everybody in it by name.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use scrinium_assertion::never;
use scrinium_catalog::Databases;
use scrinium_credentials::{SecretBytes, StoredCredentials};
use scrinium_database::{
    Access, ChangesQuery, DatabaseError, Edit, EditMode, InitialAccess, OpenRevision, OpenRevisions,
    ReadOptions, Result, Secret, Since, Updated,
};
use scrinium_document::json::stored_value;
use scrinium_views::OpenDatabase;
use serde_json::{Map, Value};

use crate::journal::{DirectoryChange, Journal, Writers, WrittenChange};
use crate::lookup::{Found, NameIndex, NameLookup};
use crate::record::{self, PASSWORD_HASH};
use crate::writing::{Claims, SecretEdit};
use crate::{
    ADMINISTRATOR_ID, CredentialChange, CredentialError, CredentialRecords, DIRECTORY_DATABASE,
    DirectoryDomain, DirectoryError, NewAdministrator, Person, first_administrator,
};

/// Who knows people by their documents.
pub(crate) static DIRECTORY: Access = Access::of_the_server("keeping the directory");

/// Changes taken over at a time, so that memory holds few documents next to the index.
const CHANGES_AT_ONCE: usize = 500;

/// The directory's database, and its people and groups by name.
///
/// Anyone who asks gets an answer that holds every change that could be read when asking: the database's last
/// change number is compared first, and what is new is taken over.
pub struct Directory {
    databases: Databases,
    index: NameIndex,
    /// The database that the index holds, and up to which change.
    followed: Mutex<Followed>,
    claims: Claims,
    /// The change number of `followed`, to be compared without waiting.
    reached: AtomicU64,
    journal: Mutex<Journal>,
    writers: Writers,
}

struct Followed {
    database: OpenDatabase,
    change_number: u64,
}

impl Directory {
    /// Opens the directory of a server, making its database if there is none, and reads everybody in it.
    ///
    /// # Errors
    /// What the database reports.
    pub fn open(databases: &Databases) -> Result<Self> {
        let database = match databases.get(DIRECTORY_DATABASE) {
            Err(DatabaseError::NotFound { .. }) => {
                databases.create(DIRECTORY_DATABASE, &InitialAccess::Closed)?
            }
            found => found?,
        };
        let directory = Self {
            databases: databases.clone(),
            index: NameIndex::new(),
            followed: Mutex::new(Followed { database, change_number: 0 }),
            claims: Claims::default(),
            reached: AtomicU64::new(0),
            journal: Mutex::default(),
            writers: Writers::default(),
        };
        directory.move_hashes()?;
        directory.catch_up()?;
        directory.journal.lock().clear();
        Ok(directory)
    }

    /// Takes hashes of passwords out of documents, where an earlier version kept them.
    fn move_hashes(&self) -> Result<()> {
        let database = self.followed.lock().database.clone();
        let query = ChangesQuery { include_documents: true, all_leaves: true, ..ChangesQuery::default() };
        let mut changes = database.changes(query, &DIRECTORY)?;
        let mut moved = 0_u64;
        while !changes.is_at_end() {
            for change in changes.next_changes(CHANGES_AT_ONCE)? {
                if change.revisions.len() > 1 || change.document.as_deref().is_some_and(holds_hash) {
                    moved += move_hashes_of(&database, &change.id)?;
                }
            }
        }
        if moved > 0 {
            tracing::info!(moved, "hashes of passwords were taken out of the directory's documents");
        }
        Ok(())
    }

    /// The server's databases, of which the directory is one.
    #[must_use]
    pub const fn databases(&self) -> &Databases {
        &self.databases
    }

    pub(crate) const fn index(&self) -> &NameIndex {
        &self.index
    }

    pub(crate) const fn claims(&self) -> &Claims {
        &self.claims
    }

    /// Whether another document than `id` answers to a folded name, or, with `whole`, has it as a whole name.
    pub(crate) fn is_another_s(&self, name: &str, id: &str, whole: bool) -> bool {
        self.refresh();
        self.index.is_another_s(name, id, whole)
    }

    /// Takes over what changed in the database since the last time.
    ///
    /// # Errors
    /// What the database reports; then what was known stays known.
    pub fn catch_up(&self) -> Result<()> {
        let mut followed = self.followed.lock();
        let database = self.databases.get(DIRECTORY_DATABASE)?;
        if database.number() != followed.database.number() {
            self.index.clear();
            *followed = Followed { database, change_number: 0 };
        }
        // Changes of credentials are in no feed, and the one who makes one takes it over.
        let visible = followed.database.visible_change_number();
        let since = followed.database.sequence_text(followed.change_number);
        let query =
            ChangesQuery { since: Since::At(since), include_documents: true, ..ChangesQuery::default() };
        let mut changes = followed.database.changes(query, &DIRECTORY)?;
        loop {
            let some = changes.next_changes(CHANGES_AT_ONCE)?;
            let Some(last) = some.last() else { break };
            followed.change_number = last.change_number;
            for change in &some {
                let document = change.document.as_deref().filter(|_| !change.deleted).and_then(parse);
                let credentials = credentials_of(&followed.database, &change.id)?;
                let (before, after) = self.index.apply_read(&change.id, document.as_ref(), credentials);
                if before != after {
                    let change = DirectoryChange { id: change.id.clone(), before, after };
                    self.journal.lock().add(change);
                }
            }
        }
        followed.change_number = followed.change_number.max(visible);
        self.reached.store(followed.change_number, Ordering::Release);
        Ok(())
    }

    /// Changes the credentials of a person, under the lock of the directory's database; gives what `change` gives once that is
    /// stored. `change` may be called more than once, and must not wait.
    ///
    /// # Errors
    /// [`CredentialError`]; then nothing is changed.
    pub fn change_credentials<T: Send + 'static>(
        &self,
        id: &str,
        change: impl Fn(&mut StoredCredentials) -> std::result::Result<T, CredentialError> + Send + Sync + 'static,
    ) -> std::result::Result<T, CredentialError> {
        let database = self.databases.get(DIRECTORY_DATABASE)?;
        if self.person(id).is_none() {
            return Err(CredentialError::Nobody);
        }
        let (made, outcome) = record::change_of(change);
        let stored = database.change_secret(id, made)?.wait()?.pop();
        let outcome = outcome.lock().take();
        match (stored, outcome) {
            (Some(Ok(())), Some(Ok(given))) => {
                let followed = self.followed.lock();
                // Read again, as another change may have been stored meanwhile. Who has nothing any more has no record.
                if followed.database.number() == database.number() {
                    let credentials = credentials_of(&database, id)?.transpose()?;
                    self.index.set_credentials(id, credentials.unwrap_or_default());
                }
                Ok(given)
            }
            (_, Some(Err(error))) => Err(error),
            (Some(Err(DatabaseError::NotFound { .. })), _) | (_, None) => Err(CredentialError::Nobody),
            (Some(Err(error)), Some(Ok(_))) => Err(error.into()),
            (None, Some(Ok(_))) => Err(CredentialError::Nobody),
        }
    }

    /// Takes what somebody has changed of one document, or of all, for the record: each change is given once.
    #[must_use]
    pub fn take_changes(&self, id: Option<&str>, person: &str) -> Vec<WrittenChange> {
        self.refresh();
        self.journal.lock().take(id, person, &self.writers)
    }

    pub(crate) const fn writers(&self) -> &Writers {
        &self.writers
    }

    /// Takes what changed so long ago that anyone who changed it would have taken it.
    #[must_use]
    pub fn take_old_changes(&self, age: Duration) -> Vec<DirectoryChange> {
        self.refresh();
        self.journal.lock().take_old(age)
    }

    /// The person whose document has this id, as the database is at the moment.
    #[must_use]
    pub fn person(&self, id: &str) -> Option<Arc<Person>> {
        self.refresh();
        self.index.person(id)
    }

    /// The person whom a passkey knows by this handle.
    #[must_use]
    pub fn person_of_handle(&self, handle: &SecretBytes) -> Option<Arc<Person>> {
        self.refresh();
        self.index.person_of_handle(handle.expose())
    }

    /// As [`NameIndex::called_like`], as the database is at the moment. What somebody may see of it is for the caller to ask.
    #[must_use]
    pub fn called_like(&self, typed: &str, most: usize) -> Vec<Found> {
        self.refresh();
        self.index.called_like(typed, most)
    }

    /// As [`NameIndex::resources`], as the database is at the moment.
    #[must_use]
    pub fn resources(&self, most: usize) -> Vec<Arc<Person>> {
        self.refresh();
        self.index.resources(most)
    }

    /// A number that changes with every change of the directory.
    #[must_use]
    pub fn changes(&self) -> u64 {
        let database = self.databases.get(DIRECTORY_DATABASE);
        // A database that was dropped, and one that was made instead of it, have other numbers.
        database.map_or(0, |database| {
            database
                .visible_change_number()
                .wrapping_mul(1 << 16)
                .wrapping_add(u64::from(database.number()) + 1)
        })
    }

    /// Writes the first administrator if nobody administers the server, with the `given` password (the
    /// environment's) or a made one, which the caller shows once.
    ///
    /// # Errors
    /// What is wrong with the given password, or what the database reports.
    pub fn ensure_administrator(
        &self,
        given: Option<&str>,
    ) -> std::result::Result<Option<NewAdministrator>, EnsureError> {
        self.catch_up()?;
        if self.index.has_administrator() {
            return Ok(None);
        }
        let mut administrator = first_administrator(given)?;
        let database = self.followed.lock().database.clone();
        // A person of this id who lost the role gets a new revision, not a second document.
        if let Ok(present) = database.read(ADMINISTRATOR_ID, &ReadOptions::default(), &DIRECTORY) {
            administrator.document.insert("_rev".to_owned(), Value::from(present.revision));
        }
        let password = std::mem::take(&mut administrator.password);
        let secret = SecretEdit { password, ends_sessions: false };
        let now_ms = self.databases.clock().now_ms();
        let secret = secret.into_secret(None, now_ms)?;
        write(&database, &administrator.document, secret)?;
        self.catch_up()?;
        Ok(Some(administrator))
    }

    /// The short names of those whose mail databases there are, by the databases; of several who share one, the first by
    /// the order of their documents' ids.
    #[must_use]
    pub fn mail_file_owners(&self) -> HashMap<String, String> {
        self.refresh();
        self.index.mail_file_owners()
    }

    /// How many people have this mail database.
    #[must_use]
    pub fn people_of_mail_file(&self, mail_file: &str) -> usize {
        self.refresh();
        self.index.people_of_mail_file(mail_file)
    }

    /// The domains that a person administers.
    pub(crate) fn administered_by(&self, person: &Person) -> BTreeSet<String> {
        self.refresh();
        self.index.administered_by(person)
    }

    /// How many people and groups there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    pub(crate) fn refresh(&self) {
        // A look without the lock first: nearly always nothing changed.
        let is_behind = match self.databases.get(DIRECTORY_DATABASE) {
            Ok(database) => database.visible_change_number() != self.reached.load(Ordering::Acquire),
            Err(_) => true,
        };
        if is_behind && let Err(error) = self.catch_up() {
            tracing::warn!(%error, "the directory cannot be read; people are known as they were");
        }
    }
}

impl NameLookup for Directory {
    fn find(&self, name: &str) -> Found {
        self.refresh();
        self.index.find(name)
    }

    fn groups_of(&self, person: &Person) -> Arc<[String]> {
        self.refresh();
        self.index.groups_of(person)
    }

    fn domain(&self, name: &str) -> Option<Arc<DirectoryDomain>> {
        self.refresh();
        self.index.domain(name)
    }
}

/// Why the first administrator could not be written.
#[derive(Debug, thiserror::Error)]
pub enum EnsureError {
    /// The given password cannot be one.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The database did not take the document.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl CredentialRecords for Directory {
    fn unreadable(&self) -> usize {
        self.index.unreadable()
    }

    fn person(&self, id: &str) -> Option<Arc<Person>> {
        Self::person(self, id)
    }

    fn linked_person(&self, issuer: &str, subject: &str) -> Option<Arc<Person>> {
        self.refresh();
        self.index.linked_person(issuer, subject)
    }

    fn change(&self, id: &str, change: CredentialChange) -> std::result::Result<(), CredentialError> {
        self.change_credentials(id, change)
    }
}

/// The credentials of a person, if something is kept of them.
fn credentials_of(
    database: &OpenDatabase,
    id: &str,
) -> Result<Option<std::result::Result<StoredCredentials, CredentialError>>> {
    let secret = database.secret(id)?;
    Ok(secret.map(|secret| record::read(Some(&secret))))
}

fn write(database: &OpenDatabase, document: &Map<String, Value>, secret: Secret) -> Result<Updated> {
    let edit = Edit { json: Value::Object(document.clone()).to_string().into(), secret, ..Edit::default() };
    database.update_one(edit, EditMode::Interactive, &DIRECTORY)
}

fn holds_hash(document: &str) -> bool {
    document.contains(PASSWORD_HASH)
        && parse(document).is_some_and(|document| document.contains_key(PASSWORD_HASH))
}

/// Takes the hash out of each leaf of a document; that of the winner is the person's.
fn move_hashes_of(database: &OpenDatabase, id: &str) -> Result<u64> {
    let options = ReadOptions::default();
    let mut moved = 0;
    // The winner comes first, and is written last, so that its hash is the one that stays.
    for revision in database.open_revisions(id, &OpenRevisions::All, &options, &DIRECTORY)?.into_iter().rev()
    {
        let OpenRevision::Found(found) = revision else {
            return Err(never!("all revisions that are open are there", "{id}").into());
        };
        if let Some(mut document) = parse(&found.json).filter(|document| document.contains_key(PASSWORD_HASH))
        {
            let secret = match document.shift_remove(PASSWORD_HASH) {
                Some(Value::String(hash)) => Secret::Set(hash.into()),
                _ => Secret::Keep,
            };
            write(database, &document, secret)?;
            moved += 1;
        }
    }
    Ok(moved)
}

fn parse(document: &str) -> Option<Map<String, Value>> {
    match stored_value(document)? {
        Value::Object(members) => Some(members),
        _ => None,
    }
}
