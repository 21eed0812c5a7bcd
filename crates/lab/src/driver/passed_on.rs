//! What a client of mail files asks for, passed on to the session that holds the documents.

use super::failure::Failure;
use super::groupware::{Changes, Groupware};
use super::session::{DocumentsSession, TargetsSession, no_documents};
use super::{Fetched, Page};
use crate::content::Message;

/// Calls the session that holds the documents.
macro_rules! pass_on {
    ($self:ident, $session:ident => $call:expr) => {
        match &mut $self.documents {
            DocumentsSession::Http($session) => $call.await,
            DocumentsSession::Postgres($session) => $call.await,
            DocumentsSession::None => Err(no_documents()),
        }
    };
}

impl Groupware for TargetsSession {
    async fn is_scrinium(&mut self, database: &str) -> Result<bool, Failure> {
        pass_on!(self, session => session.is_scrinium(database))
    }

    async fn store(
        &mut self,
        database: &str,
        message: &Message,
        folder: Option<&str>,
    ) -> Result<String, Failure> {
        pass_on!(self, session => session.store(database, message, folder))
    }

    async fn open_collection(&mut self, database: &str, view: &str) -> Result<u64, Failure> {
        pass_on!(self, session => session.open_collection(database, view))
    }

    async fn find(&mut self, database: &str, view: &str, text: &str, count: u64) -> Result<Page, Failure> {
        pass_on!(self, session => session.find(database, view, text, count))
    }

    async fn find_period(
        &mut self,
        database: &str,
        view: &str,
        period: (&str, &str),
    ) -> Result<Page, Failure> {
        pass_on!(self, session => session.find_period(database, view, period))
    }

    async fn read_sorted(
        &mut self,
        database: &str,
        view: &str,
        column: &str,
        count: u64,
    ) -> Result<Page, Failure> {
        pass_on!(self, session => session.read_sorted(database, view, column, count))
    }

    async fn count_unread(&mut self, database: &str) -> Result<u64, Failure> {
        pass_on!(self, session => session.count_unread(database))
    }

    async fn mark(&mut self, database: &str, documents: &[String], unread: bool) -> Result<(), Failure> {
        pass_on!(self, session => session.mark(database, documents, unread))
    }

    async fn move_to(&mut self, database: &str, documents: &[String], folder: &str) -> Result<(), Failure> {
        pass_on!(self, session => session.move_to(database, documents, folder))
    }

    async fn changes(&mut self, database: &str, since: &str, limit: u64) -> Result<Changes, Failure> {
        pass_on!(self, session => session.changes(database, since, limit))
    }

    async fn folder_changes(&mut self, database: &str, since: &str) -> Result<String, Failure> {
        pass_on!(self, session => session.folder_changes(database, since))
    }

    async fn look_up(&mut self, names: &[String]) -> Result<(), Failure> {
        pass_on!(self, session => session.look_up(names))
    }

    async fn open_profile(&mut self, database: &str, name: &str) -> Result<Fetched, Failure> {
        pass_on!(self, session => session.open_profile(database, name))
    }

    async fn update_profile(
        &mut self,
        database: &str,
        profile: Fetched,
        values: &[(&str, &str)],
    ) -> Result<String, Failure> {
        pass_on!(self, session => session.update_profile(database, profile, values))
    }

    async fn read_many(&mut self, database: &str, documents: &[String]) -> Result<u64, Failure> {
        pass_on!(self, session => session.read_many(database, documents))
    }

    async fn count_missing(&mut self, database: &str, messages: &[Message]) -> Result<u64, Failure> {
        pass_on!(self, session => session.count_missing(database, messages))
    }

    fn has_edge(&self) -> bool {
        matches!(&self.documents, DocumentsSession::Http(session) if session.has_edge())
    }

    async fn add_at_edge(&mut self, database: &str, messages: &[Message]) -> Result<(), Failure> {
        pass_on!(self, session => session.add_at_edge(database, messages))
    }

    async fn pull_to_edge(&mut self, database: &str) -> Result<(), Failure> {
        pass_on!(self, session => session.pull_to_edge(database))
    }

    async fn push_from_edge(&mut self, database: &str) -> Result<(), Failure> {
        pass_on!(self, session => session.push_from_edge(database))
    }

    async fn store_replicated(&mut self, database: &str, messages: &[Message]) -> Result<(), Failure> {
        pass_on!(self, session => session.store_replicated(database, messages))
    }

    async fn write_checkpoint(
        &mut self,
        database: &str,
        name: &str,
        before: Option<&str>,
        last: &str,
    ) -> Result<String, Failure> {
        pass_on!(self, session => session.write_checkpoint(database, name, before, last))
    }

    async fn delete_database(&mut self, database: &str) -> Result<(), Failure> {
        pass_on!(self, session => session.delete_database(database))
    }

    async fn console(&mut self, command: &str) -> Result<(), Failure> {
        pass_on!(self, session => session.console(command))
    }

    async fn get(&mut self, path: &str) -> Result<u64, Failure> {
        pass_on!(self, session => session.get(path))
    }
}
