//! What must be on record afterwards: who changed what may be done here, and who opened what is another's.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use scrinium_clock::Clock;
use serde_json::Value;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditAction {
    /// A database was made.
    DatabaseCreated,
    /// A database was deleted by a request.
    DatabaseDeleted,
    /// An access list (`_acl`) was written or removed.
    AccessListChanged,
    /// `_security` was written.
    SecurityChanged,
    /// A person was added to the directory.
    PersonCreated,
    /// A person was removed from the directory.
    PersonDeleted,
    /// A person's roles are others than before.
    RolesChanged,
    /// A person's password is another one than before.
    PasswordChanged,
    /// An app password, an authenticator or a passkey of a person was added or taken away.
    CredentialsChanged,
    /// Where a person's mail goes, who acts for them, or what they are called is another than before.
    PersonChanged,
    /// A group was added, removed or has other members.
    GroupChanged,
    /// Somebody is to be renamed or removed in all databases.
    NameRequested,
    /// A configuration key was set on the console.
    ConfigurationSet,
    /// An administrator opened the mail file of somebody else.
    MailFileOpened,
    /// An administrator used a database in which documents are hidden from them but for the office.
    FullAccessUsed,
    /// A legal hold was set.
    HoldSet,
    /// A legal hold was lifted.
    HoldLifted,
    /// Deleted messages of somebody's were restored.
    MailRestored,
    /// Messages were looked for in all mail files.
    MailSearched,
    /// What was found in all mail files was moved.
    MailMoved,
    /// What was found in all mail files was deleted.
    MailPurged,
    /// Mail rules were set.
    MailRulesChanged,
    /// Somebody logged out.
    SessionEnded,
    /// The server ended a session by itself, such as one whose cookie was used by two.
    SessionRevoked,
}

impl AuditAction {
    /// The word that records hold.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::DatabaseCreated => "database created",
            Self::DatabaseDeleted => "database deleted",
            Self::AccessListChanged => "access list changed",
            Self::SecurityChanged => "security changed",
            Self::PersonCreated => "person created",
            Self::PersonDeleted => "person deleted",
            Self::RolesChanged => "roles changed",
            Self::PasswordChanged => "password changed",
            Self::CredentialsChanged => "credentials changed",
            Self::PersonChanged => "person changed",
            Self::GroupChanged => "group changed",
            Self::NameRequested => "name requested",
            Self::ConfigurationSet => "configuration set",
            Self::MailFileOpened => "mail file opened",
            Self::FullAccessUsed => "full access used",
            Self::HoldSet => "legal hold set",
            Self::HoldLifted => "legal hold lifted",
            Self::MailRestored => "mail restored",
            Self::MailSearched => "mail searched",
            Self::MailMoved => "mail moved",
            Self::MailPurged => "mail purged",
            Self::MailRulesChanged => "mail rules changed",
            Self::SessionEnded => "session ended",
            Self::SessionRevoked => "session revoked",
        }
    }
}

/// One line of the record.
#[derive(Clone, Copy, Debug)]
pub struct AuditEntry<'e> {
    /// What was done.
    pub action: AuditAction,
    /// To what: a database, a person's id, a key.
    pub target: &'e str,
    /// Who did it; `None`: the server itself.
    pub person: Option<&'e str>,
    /// From where; `None`: from this machine's console, or the server itself.
    pub address: Option<IpAddr>,
    /// What it was before and is now, where that says something and is no secret: an access list, roles, a value.
    pub details: Option<&'e Value>,
}

/// Keeps the record. It must not wait.
pub trait Audit: Send + Sync + 'static {
    /// Takes a line.
    fn record(&self, entry: &AuditEntry<'_>);
}

/// An administrator who continues in a database is on record again after this time.
const OPENING_AGAIN: Duration = Duration::from_mins(15);

/// At most this many openings are remembered; what is pushed out is on record once more.
const OPENINGS_MAX: usize = 10_000;

/// Who has opened which database by their office, and when that was put on record.
#[derive(Default)]
pub(crate) struct OfficialOpenings(Mutex<HashMap<(String, String), Instant>>);

impl OfficialOpenings {
    /// Whether it is to be put on record; from then on it is not, for a while.
    pub(crate) fn is_new(&self, person: &str, database: &str, clock: &Clock) -> bool {
        let mut opened = self.0.lock();
        let key = (person.to_owned(), database.to_owned());
        if opened.get(&key).is_some_and(|since| clock.elapsed(*since) < OPENING_AGAIN) {
            return false;
        }
        if opened.len() >= OPENINGS_MAX {
            opened.clear();
        }
        opened.insert(key, clock.instant());
        true
    }
}
