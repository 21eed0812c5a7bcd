//! What must be on record afterwards: who changed what may be done here, and who opened what is another's.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use scrinium_clock::Clock;
use scrinium_database::{Identity, Level, is_mail_file};
use serde_json::{Value, json};

use crate::access::Opened;
use crate::authority::PersonChange;
use crate::context::Context;
use crate::state::HttpState;

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
    /// A group was added, removed or has other members.
    GroupChanged,
    /// A configuration key was set on the console.
    ConfigurationSet,
    /// An administrator opened the mail file of somebody else.
    MailFileOpened,
    /// An administrator used a database in which documents are hidden from them but for the office.
    FullAccessUsed,
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
            Self::GroupChanged => "group changed",
            Self::ConfigurationSet => "configuration set",
            Self::MailFileOpened => "mail file opened",
            Self::FullAccessUsed => "full access used",
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

impl Context {
    /// Puts on record what the sender of this request has done to `target`.
    pub(crate) fn audit(&self, action: AuditAction, target: &str, details: Option<&Value>) {
        if let Some(audit) = self.state.audit() {
            let (person, address) = (self.identity.name(), Some(self.client.address));
            audit.record(&AuditEntry { action, target, person, address, details });
        }
    }
}

/// An administrator who continues in a database is on record again after this time.
const OPENING_AGAIN: Duration = Duration::from_mins(15);

/// At most this many openings are remembered; what is pushed out is on record once more.
const OPENINGS_MAX: usize = 10_000;

/// Who has opened which database by their office, and when that was put on record.
#[derive(Default)]
pub(crate) struct OfficialOpenings(Mutex<HashMap<(String, String), Instant>>);

impl OfficialOpenings {
    fn is_new(&self, person: &str, database: &str, clock: &Clock) -> bool {
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

/// Puts on record that an administrator has opened a database that shows them less for anything but their office: another's
/// mail, or documents that `Readers` may hide, which nobody else can mend or delete.
pub(crate) fn by_office(state: &HttpState, opened: &Opened, by: &Identity, address: IpAddr) {
    let (Some(audit), Some(person), target) = (state.audit(), by.name(), opened.name()) else { return };
    let has_list = !matches!(opened.access_list(), Ok(None));
    if !has_list && !is_mail_file(target) {
        return;
    }
    let own_roles: Vec<String> = by.roles().iter().filter(|role| !role.starts_with('_')).cloned().collect();
    let themselves = Identity::new(person, own_roles);
    // What they have without the office; where it cannot be read, that is nothing.
    let level = opened.access_of(&themselves).map_or(Level::NoAccess, |access| access.level());
    let action = if level < Level::Reader && is_mail_file(target) {
        AuditAction::MailFileOpened
    } else if has_list && !opened.shows_all_to(&themselves).unwrap_or(false) {
        AuditAction::FullAccessUsed
    } else {
        return;
    };
    if state.openings.is_new(person, target, state.databases.clock()) {
        let details = json!({"level": level.text()});
        let (person, address) = (Some(person), Some(address));
        audit.record(&AuditEntry { action, target, person, address, details: Some(&details) });
    }
}

/// Puts on record what a request has changed of people. Whatever it was answered, it may have written before it failed.
pub(crate) async fn people(context: &Context, database: &str, id: Option<String>) {
    let (authenticator, owned) = (Arc::clone(&context.state.authenticator), database.to_owned());
    let by = context.identity.clone();
    let changed = move || Ok(authenticator.changed_people(&owned, id.as_deref(), &by));
    let changes = context.state.run(changed).await;
    // Where the pool is busy or closed they are told later, as changed by nobody.
    for PersonChange { action, id, details } in changes.unwrap_or_default() {
        context.audit(action, &id, details.as_ref());
    }
}

/// Puts on record what was changed otherwise than by requests.
pub(crate) fn changed_otherwise(state: &HttpState) {
    let Some(audit) = state.audit() else { return };
    for PersonChange { action, id, details } in state.authenticator.changed_otherwise() {
        audit.record(&AuditEntry {
            action,
            target: &id,
            person: None,
            address: None,
            details: details.as_ref(),
        });
    }
}
