//! What simulated users do to a server, in terms of no protocol.
//!
//! A [`Driver`] knows one protocol and one server. It prepares the users' databases, and gives each user a
//! [`Session`]. **Every method of a session is one request** (one transaction), so that each can be timed
//! by itself; every reply is checked before it is returned, and a wrong one is a [`Failure`].

mod check;
mod client;
mod connection;
mod documents;
mod failure;
mod http;
mod statistics;
mod tls;

use std::future::Future;

use crate::content::Message;

pub(crate) use client::{Client, path_part};
pub use failure::{Failure, FailureKind};
pub use http::{HttpDriver, HttpOptions, Login, ViewLanguage};

/// A simulated user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Person {
    /// The first user is 1.
    pub number: usize,
    /// The short name, with which the user logs in: `user0001`.
    pub name: String,
    pub full_name: String,
    /// The mail database: `mail/user0001`.
    pub mail_database: String,
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

/// What a user changes in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Puts it into a category.
    Category(&'a str),
    /// Writes another subject.
    Subject(&'a str),
}

/// What preparing one user took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Prepared {
    pub created: bool,
    pub documents_added: u64,
}

/// What a mail database holds when it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Filling {
    pub documents: u64,
    pub body_bytes: usize,
    pub seed: u64,
}

/// One server, by one protocol.
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

    /// How many times the server has synced its log, if it tells.
    fn log_syncs(&self) -> impl Future<Output = Option<u64>> + Send;
}

/// One user's connection.
pub trait Session: Send + 'static {
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

    /// Drops the connection; the next request makes a new one.
    fn disconnect(&mut self);
}
