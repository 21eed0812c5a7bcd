//! What must hold for the documents of the server's own databases, no matter who writes them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use scrinium_administration::{ADMINISTRATION_DATABASE, is_request};
use scrinium_catalog::is_mailbox;
use scrinium_database::{DatabaseError, Guard, Guarded, Identity, Secret, Submission};
use scrinium_directory::{
    DIRECTORY_DATABASE, Directory, Found, NameLookup, OPENING_FIELDS, PERSON_FORM, Person, check_password,
};
use scrinium_mail::{
    Resolver, RuleBook, RuleOwner, SendRight, check_mailable, field, format_address, is_rules_document,
    keep_server_fields, let_delegates_in, note_submitter, take_not_before,
};
use serde_json::{Map, Value};

use crate::config::{RunningConfiguration, Settings};
use crate::people::{may_open_mail, may_set_password};
use crate::replication::{check_order, orders_replications};

/// Keeps passwords and names of the directory, and out of a mail.box what cannot be delivered or is not its sender's.
pub(crate) struct OwnDatabases {
    /// Not kept alive from here: the databases have this guard.
    directory: Weak<Directory>,
    /// Domains whose addresses are a short name before the `@`.
    domains: Vec<String>,
    /// The least length of a password that is set, in bytes.
    password_bytes: Arc<AtomicUsize>,
}

/// What checks a memo, as long as the server runs.
struct Post {
    directory: Arc<Directory>,
    /// Finds people by what a memo names them.
    resolver: Resolver,
}

impl Guard for OwnDatabases {
    fn guards(&self, database: &str) -> bool {
        database == DIRECTORY_DATABASE
            || database == ADMINISTRATION_DATABASE
            || is_mailbox(database)
            || orders_replications(database)
    }

    fn check(&self, submission: Submission<'_>) -> Result<Guarded, DatabaseError> {
        if orders_replications(submission.database.name()) {
            return check_order(submission);
        }
        if submission.database.name() == ADMINISTRATION_DATABASE {
            return check_request(submission);
        }
        let directory = self.directory()?;
        if submission.database.name() == DIRECTORY_DATABASE {
            check_rules(&submission)?;
            if let Some(password) = submission.document.get("password").and_then(Value::as_str) {
                self.check_length(password)?;
            }
            check_proof(&submission, &directory)?;
            let guarded = directory.check(&submission)?;
            forget_rules(&submission, &directory, &guarded.document)?;
            open_to_delegates(&directory, &guarded.document)?;
            return Ok(guarded);
        }
        let stored = if submission.access.identity().is_some() { submission.present()? } else { None };
        let mut document = submission.document;
        let text = |member: &str| document.get(member).and_then(Value::as_str).unwrap_or_default();
        let is_design = text("_id").starts_with(['_']);
        let is_deleted = document.get("_deleted").and_then(Value::as_bool) == Some(true);
        if !is_design && !is_deleted {
            check_mailable(&document).map_err(|error| forbidden(error.to_string()))?;
            let now_ms = directory.databases().clock().now_ms();
            let release_ms = take_not_before(&mut document, now_ms).map_err(forbidden)?;
            if let Some(identity) = submission.access.identity() {
                keep_server_fields(&mut document, stored.as_ref());
                let lookup: Arc<dyn NameLookup> = directory.clone();
                let resolver = Resolver::new(lookup, &self.domains);
                let post = Post { directory, resolver };
                post.sign(&mut document, identity)?;
                // An administrator who changes a memo that waits there does not become its sender.
                if stored.is_none() {
                    post.note(&mut document, identity, release_ms);
                }
            }
        }
        Ok(Guarded { document, secret: Secret::Keep })
    }

    fn clear_secret(&self, submission: &Submission<'_>) -> Result<Option<String>, DatabaseError> {
        if submission.database.name() != DIRECTORY_DATABASE {
            return Ok(None);
        }
        let directory = self.directory()?;
        let password = directory.password_to_hash(submission)?;
        check_proof(submission, &directory)?;
        password.as_deref().map_or(Ok(()), |password| self.check_length(password))?;
        Ok(password)
    }
}

/// Refuses to write mail rules as documents: each person sets their own, and what they are is checked then.
fn check_rules(submission: &Submission<'_>) -> Result<(), DatabaseError> {
    let id = submission.document.get("_id").and_then(Value::as_str).unwrap_or_default();
    if submission.access.identity().is_some() && is_rules_document(id) {
        return Err(forbidden("Mail rules are set by `/_mail_rules`.".to_owned()));
    }
    Ok(())
}

/// Who is new gets no rules of somebody who had the same id before: their mail would go where that one wanted it.
fn forget_rules(
    submission: &Submission<'_>,
    directory: &Directory,
    document: &Map<String, Value>,
) -> Result<(), DatabaseError> {
    let text = |member: &str| document.get(member).and_then(Value::as_str).unwrap_or_default();
    if text("Form") != PERSON_FORM || submission.present()?.is_some() {
        return Ok(());
    }
    RuleBook::new(directory.databases()).forget(RuleOwner::Person(text("_id")))
}

/// Requests say what the server has done and does next, so that it alone writes them.
fn check_request(submission: Submission<'_>) -> Result<Guarded, DatabaseError> {
    let document = submission.document;
    let id = document.get("_id").and_then(Value::as_str).unwrap_or_default();
    if submission.access.identity().is_some() && is_request(id) {
        let reason =
            "requests are written by the server: rename person, remove person and the like ask for them";
        return Err(forbidden(reason.to_owned()));
    }
    Ok(Guarded { document, secret: Secret::Keep })
}

/// Refuses to set a password, and to say where mail goes and who acts for somebody, for who has not shown just now that it is them: a
/// cookie that was taken, or a program's app password, is not to become the whole account, or to get a copy of its mail for ever.
fn check_proof(submission: &Submission<'_>, directory: &Directory) -> Result<(), DatabaseError> {
    let document = &submission.document;
    let Some(identity) = submission.access.identity() else { return Ok(()) };
    let sets_password = ["password", "PasswordHash"].iter().any(|field| document.contains_key(*field));
    let may_open = OPENING_FIELDS.iter().any(|field| document.contains_key(*field));
    if !sets_password && !may_open {
        return Ok(());
    }
    let id = document.get("_id").and_then(Value::as_str).unwrap_or_default();
    let now_s = directory.databases().clock().now_s();
    if sets_password {
        may_set_password(identity, id, now_s).map_err(|reason| forbidden(reason.to_owned()))?;
    }
    let present = submission.present()?.unwrap_or_default();
    let opens = OPENING_FIELDS.iter().any(|field| {
        let says_something = |value: &&Value| !matches!(value, Value::Null | Value::Bool(false));
        let value = document.get(*field).filter(says_something);
        value.is_some() && value != present.get(*field)
    });
    if opens {
        may_open_mail(identity, id, now_s).map_err(|reason| forbidden(reason.to_owned()))?;
    }
    Ok(())
}

/// Lets those into a person's mail file whom the document names. Nobody comes in before the document is stored.
fn open_to_delegates(directory: &Directory, document: &Map<String, Value>) -> Result<(), DatabaseError> {
    if document.get("Form").and_then(Value::as_str) != Some(PERSON_FORM) {
        return Ok(());
    }
    let Ok(person) = Person::read(document) else { return Ok(()) };
    let is_known = || directory.person(&person.id).is_some_and(|known| known.delegates.open_mail());
    if !person.delegates.open_mail() || is_known() {
        return Ok(());
    }
    if let_delegates_in(directory.databases(), &person)? {
        return Ok(());
    }
    Err(forbidden(format!(
        "the mail database {} has no access control list, so that nobody can be let in by one; give it one: PUT /{{db}}/_acl",
        person.mail_file
    )))
}

impl OwnDatabases {
    fn directory(&self) -> Result<Arc<Directory>, DatabaseError> {
        let stopping = || DatabaseError::Unavailable { reason: "The server is about to stop.".to_owned() };
        self.directory.upgrade().ok_or_else(stopping)
    }

    /// Refuses a password that is too short or too long.
    fn check_length(&self, password: &str) -> Result<(), DatabaseError> {
        check_password(password, self.password_bytes.load(Ordering::Relaxed))
            .map_err(|error| forbidden(error.to_string()))
    }

    /// With the least length of passwords that is configured, also when it is changed.
    pub(crate) fn new(directory: &Arc<Directory>, configuration: &RunningConfiguration) -> Self {
        let settings = configuration.settings();
        let password_bytes = Arc::new(AtomicUsize::new(settings.login.password_bytes));
        let followed = Arc::clone(&password_bytes);
        configuration.on_change("login.password_bytes", move |settings| {
            followed.store(settings.login.password_bytes, Ordering::Relaxed);
            Ok(())
        });
        Self { password_bytes, ..Self::of_settings(directory, &settings) }
    }

    /// With settings as they are, for a command that writes while no server runs.
    pub(crate) fn of_settings(directory: &Arc<Directory>, settings: &Settings) -> Self {
        Self {
            directory: Arc::downgrade(directory),
            domains: settings.mail.domains.clone(),
            password_bytes: Arc::new(AtomicUsize::new(settings.login.password_bytes)),
        }
    }
}

impl Post {
    /// Makes a memo say who sends it: `From` is the sender, or `Sender` is, where somebody writes for another and may.
    /// An administrator may write for anybody.
    fn sign(&self, memo: &mut Map<String, Value>, identity: &Identity) -> Result<(), DatabaseError> {
        let Some(name) = identity.name() else { return Ok(()) };
        let Found::Person(sender) = self.directory.find(name) else {
            return if identity.is_administrator() { Ok(()) } else { Err(forbidden(UNKNOWN.to_owned())) };
        };
        let own = address_of(&sender);
        let from = match memo.get(field::FROM) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(from)) => from.trim().to_owned(),
            Some(_) => return Err(forbidden("the field From must be a text".to_owned())),
        };
        if from.is_empty() {
            memo.insert(field::FROM.to_owned(), Value::from(own));
            memo.shift_remove(field::SENDER);
            return Ok(());
        }
        match self.resolver.send_right(&sender, &from) {
            SendRight::Own => drop(memo.shift_remove(field::SENDER)),
            _ if identity.is_administrator() => {
                // What comes in by a gateway says who has sent it there.
                memo.entry(field::SENDER).or_insert_with(|| Value::from(own));
            }
            SendRight::As => drop(memo.shift_remove(field::SENDER)),
            SendRight::OnBehalf => drop(memo.insert(field::SENDER.to_owned(), Value::from(own))),
            SendRight::None => {
                return Err(forbidden(format!(
                    "a memo from {from:?} is not yours to send: leave From out or name yourself, {own}; for somebody \
                     else you can write when they name you in SendAs or SendOnBehalf of their document in the directory"
                )));
            }
        }
        Ok(())
    }

    /// Notes who has put a memo there, for those who ask to whom they may send. What an administrator puts there whom the directory
    /// does not have is the server's own.
    fn note(&self, memo: &mut Map<String, Value>, identity: &Identity, release_ms: Option<u64>) {
        let name = identity.name().unwrap_or_default();
        if !identity.is_administrator() || matches!(self.directory.find(name), Found::Person(_)) {
            note_submitter(memo, name, release_ms);
        }
    }
}

const UNKNOWN: &str = "you are not in the directory any more, so that nobody could answer you";

fn address_of(person: &Person) -> String {
    format_address(person.shown_name(), person.internet_address.as_deref().unwrap_or_default())
}

fn forbidden(reason: String) -> DatabaseError {
    DatabaseError::Forbidden { reason }
}
