//! What simulated users do to servers.
//!
//! A [`Driver`] knows how to reach servers. It prepares the users' databases, and gives each user a [`Session`].
//! **Every method of a session is one request** (one transaction), so that each can be timed by itself; every reply is
//! checked before it is returned, and a wrong one is a [`Failure`].
//!
//! A session is about documents, in terms of no protocol ([`HttpDriver`], [`PostgresDriver`]). What a user speaks
//! next to them, mail and calendars, is in its [`Protocols`], each of which may be there or not. [`Targets`] puts a
//! run's servers together; [`Driver::has`] says before a run what there is no server for.

mod caldav;
mod check;
mod client;
mod collections;
mod connection;
mod counts;
mod delivered;
mod documents;
mod edge;
mod endpoint;
mod failure;
mod groupware;
mod http;
mod icalendar;
mod imap;
mod ledger;
mod letter;
mod mail;
mod passed_on;
mod pop3;
mod postgres;
mod session;
mod smtp;
mod surroundings;
mod targets;
mod tls;
mod wire;

use std::future::Future;
use std::sync::Arc;

use scrinium_lab_script::{Ability, MessageSize, Needs};

use crate::content::Message;
pub use crate::content::{MessageNumber, Person};

pub use caldav::CalendarSession;
pub(crate) use client::{Client, path_part};
pub(crate) use collections::sorted_column;
pub use counts::ServerCounts;
pub use failure::{Failure, FailureKind};
pub use groupware::{Changes, Groupware};
pub use http::{HttpDriver, HttpOptions, HttpSession, Login, ViewLanguage};
pub use imap::ImapSession;
pub use ledger::{FoundMessage, Ledger, Noted};
pub use letter::{Letter, Scan};
pub use mail::MailOptions;
pub use pop3::{Pop3Entry, Pop3Session};
pub use postgres::{PostgresDriver, PostgresSession};
pub use session::{Protocols, TargetsSession};
pub use smtp::SmtpSender;
pub(crate) use smtp::{Dialect, SmtpConnection};
pub use surroundings::database_named;
pub(crate) use targets::stay_logged_in;
pub use targets::{TargetOptions, Targets};
pub(crate) use wire::Wire;

/// How a server for something is named on a command line.
pub(crate) fn target_form(ability: Ability) -> &'static str {
    match ability {
        Ability::Documents => "http://HOST:PORT or postgres://USER@HOST:PORT/DATABASE",
        Ability::SendMail => "smtp://HOST:PORT or lmtp://HOST:PORT",
        Ability::Imap => "imap://HOST:PORT",
        Ability::Pop3 => "pop3://HOST:PORT",
        Ability::Calendar => "caldav://HOST:PORT/{user}/calendar/",
    }
}

/// What a server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ServerDescription {
    pub name: String,
    pub version: String,
}

/// A database, when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DatabaseState {
    pub documents: u64,
    /// Differs when the database has changed.
    pub change: String,
}

/// Which entries of a view to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum From {
    /// The entry of this number and those after it; the first entry is 0.
    Position(u64),
    /// Those after this one: its key as the server wrote it, and its document.
    After(EntryPlace),
}

/// Where an entry stands in a view.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct EntryPlace {
    /// JSON text.
    pub key: String,
    pub document: String,
}

/// Some entries of a view, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Page {
    /// Entries in the whole view.
    pub total: u64,
    /// The documents of the entries.
    pub documents: Vec<String>,
    /// How deep each entry is: 0, or more for responses and in categories.
    pub levels: Vec<u32>,
    pub last: Option<EntryPlace>,
}

/// A document as it was read, to be changed and written again.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Fetched {
    pub id: String,
    pub revision: String,
    pub(crate) fields: serde_json::Map<String, serde_json::Value>,
}

impl Fetched {
    /// A field's text.
    #[must_use]
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(serde_json::Value::as_str)
    }

    /// The document was written, and has another revision now.
    pub(crate) fn set_revision(&mut self, revision: String) {
        self.fields.insert("_rev".to_owned(), serde_json::Value::from(revision.as_str()));
        self.revision = revision;
    }
}

/// What a user changes in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Puts it into a category.
    Category(&'a str),
    /// Writes another subject.
    Subject(&'a str),
    /// Puts it into a folder, where the server has none.
    Folder(&'a str),
}

/// What preparing one user took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Prepared {
    pub created: bool,
    pub documents_added: u64,
}

/// What a mail database holds when it is full.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Filling {
    pub documents: u64,
    pub size: MessageSize,
    pub seed: u64,
}

/// The servers of a run.
pub trait Driver: Send + Sync + 'static {
    /// The connection of one user.
    type Session: Session;

    /// A session of this user. It connects when it is first used.
    fn session(&self, person: &Person) -> Self::Session;

    /// Asks the server what it is.
    fn describe(&self) -> impl Future<Output = Result<ServerDescription, Failure>> + Send;

    /// Makes what all users share: directory and mail box.
    fn prepare_server(&self) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Registers a user, and makes and fills the mail database.
    fn prepare_user(
        &self,
        person: &Person,
        senders: &[String],
        filling: Filling,
    ) -> impl Future<Output = Result<Prepared, Failure>> + Send;

    /// Makes what a script needs besides mail databases, for all users together.
    ///
    /// # Errors
    /// [`FailureKind::Missing`] too, where the server has not what a command of the script asks for.
    fn prepare_surroundings(
        &self,
        needs: &Needs,
        people: &[Person],
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Makes the views and folders of one mail database that a script needs.
    fn prepare_mail_surroundings(
        &self,
        needs: &Needs,
        person: &Person,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// What the server counts of itself, if it tells anything.
    fn counts(&self) -> impl Future<Output = Option<ServerCounts>> + Send;

    /// Whether there is a server for this.
    fn has(&self, ability: Ability) -> bool {
        ability == Ability::Documents
    }

    /// Where users note what they send, if deliveries are checked after the run: as documents, or as mail.
    fn ledger(&self) -> Option<(Ability, Arc<Ledger>)> {
        None
    }

    /// The processes of this machine that serve.
    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Where a mailbox ends now, for [`Self::read_mailbox`].
    fn mark_mailbox(&self, person: &Person) -> impl Future<Output = Result<String, Failure>> + Send {
        let _ = person;
        async { Err(nothing_to_read()) }
    }

    /// Reads the laboratory's messages that came into a mailbox since it was marked.
    fn read_mailbox(
        &self,
        person: &Person,
        since: &str,
        visit: &mut (dyn FnMut(FoundMessage) + Send),
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        let _ = (person, since, visit);
        async { Err(nothing_to_read()) }
    }
}

fn nothing_to_read() -> Failure {
    Failure::new(FailureKind::Refused, "no target reads mail")
}

/// One user's connection.
pub trait Session: Groupware {
    /// Opens a database.
    fn open_database(
        &mut self,
        database: &str,
    ) -> impl Future<Output = Result<DatabaseState, Failure>> + Send;

    /// Reads entries of a view, newest first.
    fn read_entries(
        &mut self,
        database: &str,
        view: &str,
        from: From,
        count: u64,
    ) -> impl Future<Output = Result<Page, Failure>> + Send;

    /// Reads a document whole. If `known` is given, the revision read may not be an older one.
    fn fetch(
        &mut self,
        database: &str,
        id: &str,
        known: Option<&str>,
    ) -> impl Future<Output = Result<Fetched, Failure>> + Send;

    /// Writes a fetched document with a change; returns its new revision.
    fn update(
        &mut self,
        database: &str,
        fetched: Fetched,
        change: Change<'_>,
    ) -> impl Future<Output = Result<String, Failure>> + Send;

    /// Creates a document in a database; returns its revision.
    fn add(
        &mut self,
        database: &str,
        message: &Message,
    ) -> impl Future<Output = Result<String, Failure>> + Send;

    /// Deletes that revision of a document.
    fn delete(
        &mut self,
        database: &str,
        id: &str,
        revision: &str,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Gives a message to the server to be delivered.
    fn send(&mut self, message: &Message) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Drops the connections; the next request makes a new one.
    fn disconnect(&mut self);

    /// Drops the connections that hold nothing but themselves, those of HTTP; where a user is logged in on one, as in mail
    /// and in a database, it stays.
    fn close_idle(&mut self) {}

    /// What the user can speak besides HTTP.
    fn protocols(&mut self) -> Option<&mut Protocols> {
        None
    }

    /// Where the user notes what is sent.
    fn ledger(&self) -> Option<(Ability, Arc<Ledger>)> {
        None
    }

    /// Which message a document is, of those that were fetched last.
    fn message_of(&self, id: &str) -> Option<FoundMessage> {
        let _ = id;
        None
    }
}
