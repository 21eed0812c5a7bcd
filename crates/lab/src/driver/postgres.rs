//! PostgreSQL as a store of documents, for comparisons: the same workloads, each request one statement or transaction.
//!
//! | the user | the statement |
//! |---|---|
//! | opens a database, asks for new mail | counts its documents and reads its last change |
//! | opens a view, scrolls | reads rows of an index on the delivery date, newest first, and counts all |
//! | opens, changes, adds, deletes a document | one row by its key; a change names the revision that it follows |
//! | sends a message | inserts a copy for each recipient in one transaction: there is no router |
//!
//! All mail files are one table with an index as the inbox. Nothing of the server's settings is changed, so that what
//! is durable is what `synchronous_commit` says.

use std::sync::Arc;
use std::time::Duration;

use scrinium_lab_script::Needs;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls};

use super::documents::MessageDocument;
use super::failure::{Failure, FailureKind};
use super::mail::in_time;
use super::{
    Change, DatabaseState, Driver, EntryPlace, Fetched, Filling, From, Groupware, Page, Person, Prepared,
    ServerCounts, ServerDescription, Session, check, database_named,
};
use crate::content::{Message, Writer, digest};

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS lab_documents (
  database text NOT NULL, id text NOT NULL, revision bigint NOT NULL, change bigint NOT NULL,
  delivered timestamptz NOT NULL, body jsonb NOT NULL, PRIMARY KEY (database, id));
CREATE INDEX IF NOT EXISTS lab_inbox ON lab_documents (database, delivered DESC, id DESC);
CREATE INDEX IF NOT EXISTS lab_changes ON lab_documents (database, change);
CREATE SEQUENCE IF NOT EXISTS lab_change CACHE 1;";

const OPEN: &str = "SELECT count(*), coalesce(max(change), 0) FROM lab_documents WHERE database = $1";
const PAGE: &str = "SELECT id, delivered::text, (SELECT count(*) FROM lab_documents WHERE database = $1)
  FROM lab_documents WHERE database = $1 ORDER BY delivered DESC, id DESC OFFSET $2 LIMIT $3";
const PAGE_AFTER: &str = "SELECT id, delivered::text, (SELECT count(*) FROM lab_documents WHERE database = $1)
  FROM lab_documents WHERE database = $1 AND (delivered, id) < ($2::text::timestamptz, $3) ORDER BY delivered DESC, id DESC LIMIT $4";
const READ: &str = "SELECT revision, body::text FROM lab_documents WHERE database = $1 AND id = $2";
const INSERT: &str = "INSERT INTO lab_documents (database, id, revision, change, delivered, body)
  SELECT unnest($1::text[]), $2, 1, nextval('lab_change'), to_timestamp($3), $4::text::jsonb";
const UPDATE: &str =
    "UPDATE lab_documents SET revision = revision + 1, change = nextval('lab_change'), body = $4::text::jsonb
  WHERE database = $1 AND id = $2 AND revision = $3";
const DELETE: &str = "DELETE FROM lab_documents WHERE database = $1 AND id = $2 AND revision = $3";

/// The mail files' documents are spread over this time before the run.
const HISTORY_S: i64 = 30 * 86_400;

/// Drives PostgreSQL.
#[derive(Clone)]
pub struct PostgresDriver {
    config: Arc<Config>,
    time_out: Duration,
    /// `mail/`, before everyone's name.
    folder: Arc<std::sync::OnceLock<String>>,
}

/// The connection of one user.
pub struct PostgresSession {
    driver: PostgresDriver,
    open: Option<(Client, Task)>,
}

/// The task that drives a connection ends with the connection's owner.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl PostgresDriver {
    /// A driver for the server at `postgres://user:password@host:port/database`. Nothing is sent yet.
    ///
    /// # Errors
    /// What is wrong with the address.
    pub fn new(target: &str, time_out: Duration) -> Result<Self, String> {
        let config: Config =
            target.parse().map_err(|error| format!("the address of PostgreSQL cannot be read: {error}"))?;
        Ok(Self { config: Arc::new(config), time_out, folder: Arc::default() })
    }

    /// Host and port of the server.
    #[must_use]
    pub fn host_and_port(&self) -> (&str, u16) {
        let host = self.config.get_hosts().iter().find_map(|host| match host {
            tokio_postgres::config::Host::Tcp(name) => Some(name.as_str()),
            tokio_postgres::config::Host::Unix(_) => None,
        });
        (host.unwrap_or("localhost"), self.config.get_ports().first().copied().unwrap_or(5432))
    }

    fn open(&self) -> PostgresSession {
        PostgresSession { driver: self.clone(), open: None }
    }

    /// The mail file of a person of that name.
    fn mail_file(&self, name: &str) -> String {
        format!("{}{name}", self.folder.get().map_or("mail/", String::as_str))
    }
}

impl PostgresSession {
    async fn client(&mut self) -> Result<&Client, Failure> {
        if self.open.as_ref().is_none_or(|(client, _)| client.is_closed()) {
            let (client, connection) =
                self.driver.config.connect(NoTls).await.map_err(|error| failed(&error))?;
            let task = tokio::spawn(async move { drop(connection.await) });
            self.open = Some((client, Task(task)));
        }
        match &self.open {
            Some((client, _)) => Ok(client),
            None => Err(Failure::new(FailureKind::Connection, "the connection was lost")),
        }
    }

    async fn query(
        &mut self,
        what: &str,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, Failure> {
        let time_out = self.driver.time_out;
        let answer = in_time(time_out, what, async {
            let client = self.client().await?;
            client.query(statement, values).await.map_err(|error| failed(&error))
        });
        let answer = answer.await;
        if answer.as_ref().is_err_and(|failure| failure.kind == FailureKind::TimeOut) {
            self.open = None;
        }
        answer
    }

    async fn execute(
        &mut self,
        what: &str,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Failure> {
        let time_out = self.driver.time_out;
        let answer = in_time(time_out, what, async {
            let client = self.client().await?;
            client.execute(statement, values).await.map_err(|error| failed(&error))
        });
        let answer = answer.await;
        if answer.as_ref().is_err_and(|failure| failure.kind == FailureKind::TimeOut) {
            self.open = None;
        }
        answer
    }

    /// Inserts a message into some databases at once.
    async fn insert(&mut self, databases: &[String], message: &Message) -> Result<(), Failure> {
        let body = serde_json::to_string(&MessageDocument::of(message))
            .map_err(|error| Failure::wrong(error.to_string()))?;
        #[allow(clippy::cast_precision_loss, reason = "seconds since 1970 need no more than 53 bits")]
        let posted = message.posted as f64;
        let rows = self.execute("INSERT", INSERT, &[&databases, &message.id, &posted, &body]).await?;
        if rows == databases.len() as u64 {
            return Ok(());
        }
        Err(Failure::wrong(format!(
            "INSERT {}: {rows} rows were written, of {}",
            message.id,
            databases.len()
        )))
    }
}

/// What the server, or the connection, says.
fn failed(error: &tokio_postgres::Error) -> Failure {
    match error.as_db_error() {
        Some(said) if *said.code() == SqlState::UNIQUE_VIOLATION => {
            Failure::new(FailureKind::Conflict, said.message())
        }
        Some(said) => {
            Failure::new(FailureKind::Refused, format!("{} ({})", said.message(), said.code().code()))
        }
        None => Failure::new(FailureKind::Connection, error.to_string()),
    }
}

fn wrong_row(error: &tokio_postgres::Error) -> Failure {
    Failure::wrong(error.to_string())
}

/// The number of a revision as the session hands it out: `3-1`.
fn number(revision: &str) -> Result<i64, Failure> {
    let generation = check::generation(revision).and_then(|generation| i64::try_from(generation).ok());
    generation.ok_or_else(|| Failure::wrong(format!("{revision} is no revision")))
}

impl Driver for PostgresDriver {
    type Session = PostgresSession;

    fn session(&self, _person: &Person) -> PostgresSession {
        self.open()
    }

    async fn describe(&self) -> Result<ServerDescription, Failure> {
        let rows = self.open().query("SHOW server_version", "SHOW server_version", &[]).await?;
        let version: String = rows
            .first()
            .map_or(Ok(String::new()), |row| row.try_get(0))
            .map_err(|error| wrong_row(&error))?;
        Ok(ServerDescription { name: "PostgreSQL".to_owned(), version })
    }

    async fn prepare_server(&self) -> Result<(), Failure> {
        let mut session = self.open();
        let client = session.client().await?;
        in_time(self.time_out, "CREATE TABLE", async {
            client.batch_execute(TABLES).await.map_err(|error| failed(&error))
        })
        .await
    }

    async fn prepare_user(
        &self,
        person: &Person,
        senders: &[String],
        filling: Filling,
    ) -> Result<Prepared, Failure> {
        let folder = person.mail_database.strip_suffix(&person.name).unwrap_or("mail/");
        self.folder.get_or_init(|| folder.to_owned());
        let mut session = self.open();
        let there = session.open_database(&person.mail_database).await?.documents;
        let missing = filling.documents.saturating_sub(there);
        let mut writer = Writer::new(person, filling.seed, rand::random());
        let now_s = jiff::Timestamp::now().as_second();
        for index in 0..missing {
            let ago =
                HISTORY_S - i64::try_from(index * HISTORY_S.unsigned_abs() / missing.max(1)).unwrap_or(0);
            let (body, attachment) = writer.sizes(&filling.size);
            let mut message = writer.write(
                crate::content::Form::Memo,
                body,
                attachment,
                vec![person.name.clone()],
                now_s - ago,
            );
            if let Some(sender) =
                usize::try_from(index).ok().and_then(|index| senders.get(index % senders.len().max(1)))
            {
                message.from.clone_from(sender);
            }
            message.delivered = true;
            session.insert(std::slice::from_ref(&person.mail_database), &message).await?;
        }
        Ok(Prepared { created: there == 0 && missing > 0, documents_added: missing })
    }

    /// Mail files are all that there is.
    async fn prepare_surroundings(&self, needs: &Needs, people: &[Person]) -> Result<(), Failure> {
        let Some(first) = people.first() else { return Ok(()) };
        let shared = needs.databases.iter().any(|database| {
            let name = database_named(&database.name.of(first.number, &first.name), first);
            name != first.mail_database
        });
        if shared || needs.address_book || !needs.folders.is_empty() || !needs.only_here.is_empty() {
            return Err(Failure::new(
                FailureKind::Refused,
                "a target of PostgreSQL has mail files and nothing else: no shared databases, folders or look-ups",
            ));
        }
        Ok(())
    }

    async fn prepare_mail_surroundings(&self, _needs: &Needs, _person: &Person) -> Result<(), Failure> {
        Ok(())
    }

    async fn counts(&self) -> Option<ServerCounts> {
        None
    }
}

impl Groupware for PostgresSession {
    async fn store(
        &mut self,
        database: &str,
        message: &Message,
        _folder: Option<&str>,
    ) -> Result<String, Failure> {
        self.add(database, message).await
    }
}

impl Session for PostgresSession {
    async fn open_database(&mut self, database: &str) -> Result<DatabaseState, Failure> {
        let rows = self.query("OPEN", OPEN, &[&database]).await?;
        let row = rows.first().ok_or_else(|| Failure::wrong("OPEN: no row came"))?;
        let documents: i64 = row.try_get(0).map_err(|error| wrong_row(&error))?;
        let change: i64 = row.try_get(1).map_err(|error| wrong_row(&error))?;
        Ok(DatabaseState { documents: documents.unsigned_abs(), change: change.to_string() })
    }

    async fn read_entries(
        &mut self,
        database: &str,
        _view: &str,
        from: From,
        count: u64,
    ) -> Result<Page, Failure> {
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = match &from {
            From::Position(position) => {
                let offset = i64::try_from(*position).unwrap_or(i64::MAX);
                self.query("PAGE", PAGE, &[&database, &offset, &limit]).await?
            }
            From::After(place) => {
                self.query("PAGE", PAGE_AFTER, &[&database, &place.key, &place.document, &limit]).await?
            }
        };
        let mut page =
            Page { total: 0, documents: Vec::with_capacity(rows.len()), levels: Vec::new(), last: None };
        for row in &rows {
            let document: String = row.try_get(0).map_err(|error| wrong_row(&error))?;
            let key: String = row.try_get(1).map_err(|error| wrong_row(&error))?;
            let total: i64 = row.try_get(2).map_err(|error| wrong_row(&error))?;
            page.total = total.unsigned_abs();
            page.last = Some(EntryPlace { key, document: document.clone() });
            page.documents.push(document);
        }
        let read = page.documents.len() as u64;
        match from {
            _ if read > count => Err(Failure::wrong(format!("PAGE: {read} rows came, of {count}"))),
            From::Position(position) if read < count && read > 0 && position + read < page.total => {
                Err(Failure::wrong(format!("PAGE: {read} rows came from {position} on, of {}", page.total)))
            }
            _ => Ok(page),
        }
    }

    async fn fetch(&mut self, database: &str, id: &str, known: Option<&str>) -> Result<Fetched, Failure> {
        let rows = self.query("READ", READ, &[&database, &id]).await?;
        let row =
            rows.first().ok_or_else(|| Failure::new(FailureKind::Missing, format!("READ {id}: no row")))?;
        let revision: i64 = row.try_get(0).map_err(|error| wrong_row(&error))?;
        let body: String = row.try_get(1).map_err(|error| wrong_row(&error))?;
        let fields: Map<String, Value> =
            serde_json::from_str(&body).map_err(|error| Failure::wrong(format!("READ {id}: {error}")))?;
        if let Some(known) = known
            && revision < number(known)?
        {
            return Err(Failure::wrong(format!("READ {id}: revision {revision} where {known} was known")));
        }
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        if text("_id") != Some(id) {
            return Err(Failure::wrong(format!("READ {id}: another document came")));
        }
        if let (Some(body), Some(check)) = (text("Body"), text("LabCheck"))
            && digest(body) != check
        {
            return Err(Failure::wrong(format!(
                "READ {id}: the body's digest is {} and was {check}",
                digest(body)
            )));
        }
        Ok(Fetched { id: id.to_owned(), revision: format!("{revision}-1"), fields })
    }

    async fn update(
        &mut self,
        database: &str,
        mut fetched: Fetched,
        change: Change<'_>,
    ) -> Result<String, Failure> {
        match change {
            Change::Category(category) => fetched.fields.insert("Categories".to_owned(), json!([category])),
            Change::Folder(folder) => fetched.fields.insert("Folder".to_owned(), json!(folder)),
            Change::Subject(subject) => fetched.fields.insert("Subject".to_owned(), json!(subject)),
        };
        let body =
            serde_json::to_string(&fetched.fields).map_err(|error| Failure::wrong(error.to_string()))?;
        let before = number(&fetched.revision)?;
        match self.execute("UPDATE", UPDATE, &[&database, &fetched.id, &before, &body]).await? {
            1 => Ok(format!("{}-1", before + 1)),
            0 => Err(Failure::new(
                FailureKind::Conflict,
                format!("UPDATE {}: no row of revision {before}", fetched.id),
            )),
            rows => Err(Failure::wrong(format!("UPDATE {}: {rows} rows were written", fetched.id))),
        }
    }

    async fn add(&mut self, database: &str, message: &Message) -> Result<String, Failure> {
        self.insert(&[database.to_owned()], message).await.map(|()| "1-1".to_owned())
    }

    async fn delete(&mut self, database: &str, id: &str, revision: &str) -> Result<(), Failure> {
        match self.execute("DELETE", DELETE, &[&database, &id, &number(revision)?]).await? {
            1 => Ok(()),
            0 => Err(Failure::new(
                FailureKind::Conflict,
                format!("DELETE {id}: no row of revision {revision}"),
            )),
            rows => Err(Failure::wrong(format!("DELETE {id}: {rows} rows went"))),
        }
    }

    async fn send(&mut self, message: &Message) -> Result<(), Failure> {
        let files: Vec<String> = message.recipients.iter().map(|name| self.driver.mail_file(name)).collect();
        self.insert(&files, message).await
    }

    fn disconnect(&mut self) {
        self.open = None;
    }
}
