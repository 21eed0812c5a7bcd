//! One user's connections to all servers of a run.

use std::sync::Arc;

use scrinium_lab_script::Ability;

use super::caldav::CalendarSession;
use super::failure::{Failure, FailureKind};
use super::http::HttpSession;
use super::imap::ImapSession;
use super::ledger::{FoundMessage, Ledger};
use super::pop3::Pop3Session;
use super::postgres::PostgresSession;
use super::smtp::SmtpSender;
use super::{Change, DatabaseState, Fetched, From, Page, Session};
use crate::content::Message;

/// One user's connections. Each is made when it is first used.
pub struct TargetsSession {
    pub(super) documents: DocumentsSession,
    pub(super) ledger: Option<(Ability, Arc<Ledger>)>,
    pub(super) protocols: Protocols,
}

pub(super) enum DocumentsSession {
    Http(Box<HttpSession>),
    Postgres(Box<PostgresSession>),
    None,
}

/// What a user can speak besides HTTP.
#[allow(missing_docs, reason = "the names say it")]
pub struct Protocols {
    pub sender: Option<SmtpSender>,
    pub imap: Option<Box<ImapSession>>,
    pub pop3: Option<Box<Pop3Session>>,
    pub calendar: Option<Box<CalendarSession>>,
}

pub(super) fn no_documents() -> Failure {
    Failure::new(FailureKind::Refused, "no target holds documents")
}

/// Calls the session that holds the documents.
macro_rules! documents {
    ($self:ident, $session:ident => $call:expr) => {
        match &mut $self.documents {
            DocumentsSession::Http($session) => $call.await,
            DocumentsSession::Postgres($session) => $call.await,
            DocumentsSession::None => Err(no_documents()),
        }
    };
}

impl Session for TargetsSession {
    async fn open_database(&mut self, database: &str) -> Result<DatabaseState, Failure> {
        documents!(self, session => session.open_database(database))
    }

    async fn read_entries(
        &mut self,
        database: &str,
        view: &str,
        from: From,
        count: u64,
    ) -> Result<Page, Failure> {
        documents!(self, session => session.read_entries(database, view, from, count))
    }

    async fn fetch(&mut self, database: &str, id: &str, known: Option<&str>) -> Result<Fetched, Failure> {
        documents!(self, session => session.fetch(database, id, known))
    }

    async fn update(
        &mut self,
        database: &str,
        fetched: Fetched,
        change: Change<'_>,
    ) -> Result<String, Failure> {
        documents!(self, session => session.update(database, fetched, change))
    }

    async fn add(&mut self, database: &str, message: &Message) -> Result<String, Failure> {
        documents!(self, session => session.add(database, message))
    }

    async fn delete(&mut self, database: &str, id: &str, revision: &str) -> Result<(), Failure> {
        documents!(self, session => session.delete(database, id, revision))
    }

    async fn send(&mut self, message: &Message) -> Result<(), Failure> {
        documents!(self, session => session.send(message))
    }

    fn disconnect(&mut self) {
        match &mut self.documents {
            DocumentsSession::Http(session) => session.disconnect(),
            DocumentsSession::Postgres(session) => session.disconnect(),
            DocumentsSession::None => {}
        }
        self.protocols.disconnect();
    }

    fn close_idle(&mut self) {
        if let DocumentsSession::Http(session) = &mut self.documents {
            session.close_idle();
        }
        if let Some(calendar) = &mut self.protocols.calendar {
            calendar.close();
        }
    }

    fn protocols(&mut self) -> Option<&mut Protocols> {
        Some(&mut self.protocols)
    }

    fn ledger(&self) -> Option<(Ability, Arc<Ledger>)> {
        self.ledger.clone()
    }

    fn message_of(&self, id: &str) -> Option<FoundMessage> {
        match &self.documents {
            DocumentsSession::Http(session) => session.message_of(id),
            DocumentsSession::Postgres(_) | DocumentsSession::None => None,
        }
    }
}

impl Protocols {
    fn disconnect(&mut self) {
        if let Some(imap) = &mut self.imap {
            imap.close();
        }
        if let Some(pop3) = &mut self.pop3 {
            pop3.close();
        }
        if let Some(calendar) = &mut self.calendar {
            calendar.close();
        }
    }
}
