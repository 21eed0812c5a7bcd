//! What may be written into the directory, and by whom.
//!
//! Who somebody is follows from the directory's documents, so that names, addresses, mail databases, roles and hashes
//! brought from elsewhere are for server administrators; people may change the rest of their own document, and their
//! password, where the directory's access list lets them. Administrators of a domain may more, within it
//! ([`DomainAdministrator`](crate::domain_rules::DomainAdministrator)). A name belongs to one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use scrinium_clock::Clock;
use scrinium_credentials::sasl::ScramSalt;
use scrinium_credentials::{GateOptions, HashedPassword};
use scrinium_database::access::readers::READERS;
use scrinium_database::{DatabaseError, EditMode, Guarded, Identity, Level, Result, Secret, Submission};
use serde_json::{Map, Value};

use crate::delegates::MAIL_GROUP_PREFIX;
use crate::directory::Directory;
use crate::domain::domain_of;
use crate::lookup::is_listed;
use crate::names::{abbreviate, common_name, fold_name};
use crate::record::{self, PASSWORD_HASH};
use crate::{
    ADMINISTRATOR_ID, ADMINISTRATOR_NAME, ADMINISTRATOR_ROLE, DOMAIN_PREFIX, Found, GROUP_FORM, GROUP_PREFIX,
    Group, MAIL_IN_FORM, MAIL_IN_PREFIX, MailIn, NameLookup, PERSON_FORM, PERSON_PREFIX, PasswordEdit,
    Person, Prepared, USERS_PREFIX, prepare, users_form,
};

/// What is on its way into the database holds its names for so long, until it is seen there.
const CLAIMED_FOR: Duration = Duration::from_secs(30);

/// More names are not on their way at once.
const CLAIMS_MAX: usize = 100_000;

/// What a document that is written does to the person's credentials.
pub(crate) struct SecretEdit {
    pub(crate) password: PasswordEdit,
    /// The account is disabled by it.
    pub(crate) ends_sessions: bool,
}

impl SecretEdit {
    /// As the database makes it. A password that is in clear still is hashed here, which takes some 50 ms.
    pub(crate) fn into_secret(self, salt: Option<ScramSalt>, now_ms: u64) -> Result<Secret> {
        let hashed = match self.password {
            PasswordEdit::Keep if !self.ends_sessions => return Ok(Secret::Keep),
            PasswordEdit::Clear(password) => {
                let hashed = HashedPassword::make(&password, salt, GateOptions::default().scram_iterations);
                Some(Some(hashed.map_err(|error| forbidden(error.to_string()))?))
            }
            PasswordEdit::Hashed(hashed) => Some(Some(hashed)),
            PasswordEdit::Remove => Some(None),
            PasswordEdit::Keep => None,
        };
        let ends_sessions = self.ends_sessions;
        let (change, _) = record::change_of(move |credentials| {
            match &hashed {
                Some(Some(hashed)) => credentials.put_password(hashed.clone(), now_ms),
                Some(None) => credentials.remove_password(),
                None => {}
            }
            if ends_sessions {
                credentials.end_sessions();
            }
            Ok(())
        });
        Ok(Secret::Change(change))
    }
}

/// Names of documents that were let through and may not be in the database yet.
#[derive(Default)]
pub(crate) struct Claims(Mutex<HashMap<String, (Arc<str>, Instant)>>);

impl Claims {
    /// Holds a name for a document, unless another holds it.
    fn claim(&self, name: String, id: &Arc<str>, clock: &Clock) -> bool {
        let mut claims = self.0.lock();
        if claims.len() >= CLAIMS_MAX {
            claims.retain(|_, (_, since)| clock.elapsed(*since) < CLAIMED_FOR);
        }
        let now = clock.instant();
        let (holder, since) = claims.entry(name).or_insert_with(|| (Arc::clone(id), now));
        if holder == id || clock.elapsed(*since) >= CLAIMED_FOR {
            (*holder, *since) = (Arc::clone(id), now);
        }
        holder == id
    }
}

/// Who and what a document of the directory stands for.
pub(crate) enum Entry {
    Person(Person),
    Group(Group),
    MailIn(MailIn),
    Other,
}

impl Entry {
    pub(crate) fn read(document: &Map<String, Value>) -> Self {
        let text = |member: &str| document.get(member).and_then(Value::as_str).unwrap_or_default();
        let (id, form) = (text("_id"), text("Form"));
        if form == PERSON_FORM || id.starts_with(PERSON_PREFIX) {
            return Person::read(document).map_or(Self::Other, Self::Person);
        }
        if form == GROUP_FORM || id.starts_with(GROUP_PREFIX) {
            return Group::read(document).map_or(Self::Other, Self::Group);
        }
        if form == MAIL_IN_FORM || id.starts_with(MAIL_IN_PREFIX) {
            return MailIn::read(document).map_or(Self::Other, Self::MailIn);
        }
        Self::Other
    }

    fn is_disabled(&self) -> bool {
        matches!(self, Self::Person(person) if person.account.is_disabled)
    }

    /// The domain of the main address.
    fn domain(&self) -> Option<String> {
        let address = match self {
            Self::Person(person) => &person.internet_address,
            Self::Group(group) => &group.internet_address,
            Self::MailIn(mail_in) => &mail_in.internet_address,
            Self::Other => return None,
        };
        domain_of(address.as_deref()?)
    }

    /// The names that are this one's alone.
    fn whole_names(&self) -> Vec<&str> {
        match self {
            Self::Person(person) => {
                let names = std::iter::once(&person.short_name).chain(&person.full_names);
                let addresses = person.internet_address.iter().chain(&person.addresses);
                names.chain(&person.other_names).chain(addresses).map(String::as_str).collect()
            }
            Self::Group(group) => {
                let addresses = group.internet_address.iter().chain(&group.addresses);
                let names = std::iter::once(&group.list_name).chain(&group.other_names);
                names.chain(addresses).map(String::as_str).collect()
            }
            Self::MailIn(mail_in) => {
                let addresses = mail_in.internet_address.iter().chain(&mail_in.addresses);
                let names = std::iter::once(&mail_in.name).chain(&mail_in.other_names);
                names.chain(addresses).map(String::as_str).collect()
            }
            Self::Other => Vec::new(),
        }
    }
}

impl Directory {
    /// A document on its way into the directory, as it may be stored: checked and completed, with its password's hash
    /// apart.
    ///
    /// # Errors
    /// [`DatabaseError::Forbidden`]: what is wrong with it, or who may write it.
    pub fn check(&self, submission: &Submission<'_>) -> Result<Guarded> {
        let mut document = submission.document.clone();
        users_form::complete(&mut document).map_err(|error| forbidden(error.to_string()))?;
        let is_deleted = document.get("_deleted").and_then(Value::as_bool) == Some(true);
        let id = document.get("_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        if id.starts_with("_design/") {
            return Ok(Guarded { document, secret: Secret::Keep });
        }
        if let Some(person) = submission.access.identity().and_then(Identity::shared_name) {
            self.writers().note(&id, person);
        }
        let present = submission.present()?;
        if !submission.access.is_everything() {
            self.check_rights(submission, (&id, &document), present.as_ref(), is_deleted)?;
        }
        if is_deleted {
            for secret in ["password", PASSWORD_HASH] {
                document.shift_remove(secret);
            }
            return Ok(Guarded { document, secret: Secret::Remove });
        }
        let Prepared { mut document, mut password } =
            prepare(document).map_err(|error| forbidden(error.to_string()))?;
        for secret in ["password", PASSWORD_HASH] {
            document.shift_remove(secret);
        }
        if let (PasswordEdit::Clear(_), Some(hash)) = (&password, &submission.hash) {
            let hashed = HashedPassword::from_bytes(hash).map_err(|error| forbidden(error.to_string()))?;
            password = PasswordEdit::Hashed(hashed);
        }
        let entry = Entry::read(&document);
        self.check_names(&id, &entry, present.as_ref())?;
        if let Some(readers) = self.readers_instead(entry.domain().as_deref(), document.get(READERS)) {
            match readers {
                Some(readers) => drop(document.insert(READERS.to_owned(), readers)),
                None => drop(document.shift_remove(READERS)),
            }
        }
        let was_disabled = present.as_ref().map(Entry::read).is_some_and(|before| before.is_disabled());
        let secret = SecretEdit { password, ends_sessions: entry.is_disabled() && !was_disabled };
        let now_ms = self.databases().clock().now_ms();
        Ok(Guarded { document, secret: secret.into_secret(self.scram_salt(&id), now_ms)? })
    }

    /// The salt under which SCRAM's keys of a new password of the person with this id must be, if there is one.
    #[must_use]
    pub fn scram_salt(&self, id: &str) -> Option<ScramSalt> {
        let person = self.person(id)?;
        person.credentials.salt_to_keep(self.databases().clock().now_ms())
    }

    /// The password that a document brings, if the one who writes it may set it: [`Directory::check`] hashes it, unless it
    /// is given the hash.
    ///
    /// # Errors
    /// [`DatabaseError::Forbidden`]: who may write the document.
    pub fn password_to_hash(&self, submission: &Submission<'_>) -> Result<Option<String>> {
        let mut document = submission.document.clone();
        users_form::complete(&mut document).map_err(|error| forbidden(error.to_string()))?;
        let Some(password) = clear_password(&document) else { return Ok(None) };
        if !submission.access.is_everything() {
            let id = document.get("_id").and_then(Value::as_str).unwrap_or_default();
            self.check_rights(submission, (id, &document), submission.present()?.as_ref(), false)?;
        }
        Ok(Some(password.to_owned()))
    }

    /// Refuses what the one who writes may not. Somebody who administers domains may what is theirs as anybody may, and nothing
    /// outside the domains, whatever the directory's access list says of them.
    fn check_rights(
        &self,
        submission: &Submission<'_>,
        written: (&str, &Map<String, Value>),
        present: Option<&Map<String, Value>>,
        is_deleted: bool,
    ) -> Result<()> {
        let as_anybody = |is_editor| {
            check_writer(submission, written, present, is_deleted)?;
            if is_editor { Ok(()) } else { self.check_members(submission, written.1, present) }
        };
        let Some(administrator) = self.domain_administrator(submission) else {
            return as_anybody(submission.access.level() >= Level::Editor);
        };
        if administrator.owns(&present.map_or(Entry::Other, Entry::read)) && as_anybody(false).is_ok() {
            return Ok(());
        }
        administrator.check(submission, written, present, is_deleted)
    }

    /// Refuses a group that an owner puts into theirs, unless they own it too: mail to theirs would reach people to whom they may
    /// not write. Editors of the directory could change that other group as well.
    fn check_members(
        &self,
        submission: &Submission<'_>,
        document: &Map<String, Value>,
        present: Option<&Map<String, Value>>,
    ) -> Result<()> {
        let Entry::Group(after) = Entry::read(document) else { return Ok(()) };
        let known = match present.map(Entry::read) {
            Some(Entry::Group(before)) => before.members,
            _ => Vec::new(),
        };
        let known: HashSet<String> = known.into_iter().collect();
        let name = submission.access.identity().and_then(Identity::name).unwrap_or_default();
        for member in after.members.iter().filter(|member| !known.contains(*member)) {
            if let Found::Group(inner) = self.find(member)
                && !self.is_listed(name, &inner.owners)
            {
                return Err(forbidden(format!(
                    "the group {member:?} is not yours: who owns both groups, or an administrator, can put one into the other"
                )));
            }
        }
        Ok(())
    }

    /// Whether a list of names of the directory has the person of this name, or a group that they are in.
    pub(crate) fn is_listed(&self, name: &str, list: &[String]) -> bool {
        let Found::Person(person) = self.find(name) else { return false };
        is_listed(self, &person, list)
    }

    /// Whether the names that are new belong to nobody else.
    fn check_names(&self, id: &str, entry: &Entry, present: Option<&Map<String, Value>>) -> Result<()> {
        let present = present.map(Entry::read);
        let held: Vec<String> = present.iter().flat_map(Entry::whole_names).map(fold_name).collect();
        let shared: Arc<str> = Arc::from(id);
        for name in entry.whole_names() {
            let folded = fold_name(name);
            if held.contains(&folded) {
                continue;
            }
            // The first part of a name may be that of several; then it is nobody's, which the others must not suffer by.
            let part = fold_name(common_name(&abbreviate(name)));
            if part != folded && self.is_another_s(&part, id, true) {
                return Err(taken(&part));
            }
            let is_mail_group = matches!(entry, Entry::Group(_)) && folded.starts_with(MAIL_GROUP_PREFIX);
            if is_mail_group {
                return Err(forbidden(format!(
                    "{name:?} cannot be a name: it reads like those who share mail"
                )));
            }
            if folded.starts_with(['_', '[', '*']) {
                return Err(forbidden(format!(
                    "{name:?} cannot be a name: it reads like a role, or like all people of a domain"
                )));
            }
            let is_reserved = folded == ADMINISTRATOR_NAME && id != ADMINISTRATOR_ID;
            if is_reserved
                || self.is_another_s(&folded, id, false)
                || !self.claims().claim(folded, &shared, self.databases().clock())
            {
                return Err(taken(name));
            }
        }
        Ok(())
    }
}

/// Refuses what is for administrators of the server alone.
fn check_writer(
    submission: &Submission<'_>,
    (id, document): (&str, &Map<String, Value>),
    present: Option<&Map<String, Value>>,
    is_deleted: bool,
) -> Result<()> {
    let administrators =
        |what: &str| Err(forbidden(format!("Only an administrator of the server may {what}.")));
    let after = Entry::read(document);
    let before = present.map_or(Entry::Other, Entry::read);
    let is_entry = |entry: &Entry| !matches!(entry, Entry::Other);
    let names_entry = [PERSON_PREFIX, GROUP_PREFIX, USERS_PREFIX, DOMAIN_PREFIX, MAIL_IN_PREFIX]
        .iter()
        .any(|prefix| id.starts_with(prefix));
    if !names_entry && !is_entry(&after) && !is_entry(&before) {
        return Ok(());
    }
    if submission.mode == EditMode::Replicated {
        return administrators("bring people and groups from another server");
    }
    match (&before, &after) {
        (Entry::Person(before), _) if before.has_role(ADMINISTRATOR_ROLE) => {
            return administrators("change an administrator's document");
        }
        _ if is_deleted => return administrators("remove people and groups"),
        (Entry::Person(before), Entry::Person(after)) => {
            let known = |person: &Person| {
                let Person { full_names, short_name, other_names, .. } = person.clone();
                let Person { internet_address, addresses, mail_file, roles, account, .. } = person.clone();
                (
                    (full_names, short_name, other_names),
                    (internet_address, addresses),
                    (mail_file, roles, account),
                )
            };
            if known(before) != known(after) {
                return administrators(
                    "change names, addresses, mail databases, roles or how an account stands",
                );
            }
        }
        (Entry::Group(before), Entry::Group(after)) => {
            let known = |group: &Group| {
                let names = (group.list_name.clone(), group.other_names.clone());
                (names, group.internet_address.clone(), group.addresses.clone())
            };
            if known(before) != known(after) {
                return administrators("change names and addresses");
            }
        }
        _ => return administrators("add people and groups, and write mail-in databases"),
    }
    if document.contains_key(PASSWORD_HASH) {
        return administrators("bring a password's hash");
    }
    let own = submission.access.identity().and_then(|identity| identity.name());
    let is_own = matches!(&before, Entry::Person(before) if Some(before.short_name.as_str()) == own);
    if let (Entry::Person(before), Entry::Person(after)) = (&before, &after) {
        let opens = (&before.forwarding, &before.delegates) != (&after.forwarding, &after.delegates);
        if opens && !is_own {
            return administrators("say where mail of somebody else goes, and who acts for them");
        }
    }
    if document.contains_key("password") && !is_own {
        return administrators("set somebody else's password");
    }
    check_revision(submission, document, present)
}

/// Refuses an edit of another leaf than the winner.
pub(crate) fn check_revision(
    submission: &Submission<'_>,
    document: &Map<String, Value>,
    present: Option<&Map<String, Value>>,
) -> Result<()> {
    // A leaf that lost may say other things of the person than the one that everybody finds.
    let revision =
        |document: &Map<String, Value>| document.get("_rev").and_then(Value::as_str).map(str::to_owned);
    let named = submission.revision.clone().or_else(|| revision(document));
    if named != present.and_then(revision) {
        return Err(DatabaseError::Conflict);
    }
    Ok(())
}

/// The password in a person's document that is not deleted.
fn clear_password(document: &Map<String, Value>) -> Option<&str> {
    let text = |member: &str| document.get(member).and_then(Value::as_str).unwrap_or_default();
    let (id, form) = (text("_id"), text("Form"));
    let is_person = form == PERSON_FORM || form != GROUP_FORM && id.starts_with(PERSON_PREFIX);
    let is_deleted = document.get("_deleted").and_then(Value::as_bool) == Some(true);
    let is_kept = is_person && !is_deleted && !id.starts_with('_');
    document.get("password").and_then(Value::as_str).filter(|_| is_kept)
}

fn taken(name: &str) -> DatabaseError {
    forbidden(format!(
        "the name {name:?} is somebody else's in the directory; names, short names and addresses are each of one person \
         or group"
    ))
}

pub(crate) fn forbidden(reason: String) -> DatabaseError {
    DatabaseError::Forbidden { reason }
}
