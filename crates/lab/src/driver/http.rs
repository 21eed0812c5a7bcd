//! The mapping onto CouchDB's HTTP interface.
//!
//! | the user | the request |
//! |---|---|
//! | opens a database, asks for new mail | `GET /{database}` |
//! | opens a view, scrolls | `GET /{database}/_design/mail/_view/{view}?descending=true&limit=..` with `skip`, or `startkey` and `startkey_docid` |
//! | opens the inbox where it is a folder | `GET /{database}/_folder/Inbox?..`, with the same parameters |
//! | opens a document | `GET /{database}/{id}` |
//! | changes a document | `PUT /{database}/{id}` with its revision |
//! | adds a document | `PUT /{database}/{id}`, with `?folder=Inbox` where the inbox is a folder |
//! | deletes a document | `DELETE /{database}/{id}?rev=..` |
//! | sends a message | `PUT /mail.box/{id}`: the server's router delivers it |
//!
//! A server whose databases have folders (`GET /{database}/_folder`) has the inbox as one; elsewhere it is a view.
//!
//! A person is a document of `directory`; a mail database is `mail/{name}`. On a server that has no
//! directory the users can log in as the administrator ([`Login::Admin`]), and views can be written in
//! JavaScript ([`ViewLanguage::Javascript`]), so that the document part runs against any server with
//! CouchDB's interface.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use scrinium_lab_script::Needs;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::collections::{INBOX_VIEW, collection_path, view_page};
use super::connection::{Address, Connection};
use super::counts::CountsReader;
use super::documents::{
    MessageDocument, inbox_columns, mail_design, message_in, person as person_document, person_id,
};
use super::edge::Edge;
use super::failure::{Failure, FailureKind};
use super::ledger::FoundMessage;
use super::{
    Change, DatabaseState, Driver, Fetched, Filling, From, Page, Person, Prepared, ServerCounts,
    ServerDescription, Session, check, delivered,
};
use crate::content::{Form, Message, Writer};

/// What stays as it is in a part of a path: all that RFC 3986 calls unreserved.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The folder that the inbox is, where the server has folders.
const INBOX: &str = "Inbox";

/// How long a server may take for the index of an inbox that was just filled.
const INDEX_TIME_OUT: Duration = Duration::from_secs(900);

/// Documents of one `_bulk_docs` request, unless they are large.
const BULK_DOCUMENTS: u64 = 100;
const BULK_BYTES: usize = 2 << 20;

/// The mail files' documents are spread over this time before the run.
const HISTORY_S: i64 = 30 * 86_400;

/// Fetched messages that a user remembers, to know which of them were deleted; as many as a desk has room for.
const REMEMBERED: usize = 64;

/// As whom the simulated users log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub enum Login {
    /// Each as a person of the directory.
    Users,
    /// All as the administrator.
    Admin,
}

/// In what the mail database's view is written, where the laboratory has to make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ViewLanguage {
    Formula,
    Javascript,
}

impl ViewLanguage {
    /// As a design document says it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Formula => "formula",
            Self::Javascript => "javascript",
        }
    }
}

/// Where the server is and how to use it.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct HttpOptions {
    /// `http://host:port`
    pub target: String,
    /// Name and password of an administrator.
    pub admin: Option<(String, String)>,
    pub login: Login,
    /// The password that every simulated user gets.
    pub user_password: String,
    pub view_language: ViewLanguage,
    pub directory: String,
    pub mail_box: String,
    pub time_out: Duration,
    /// Whether compressed answers are asked for.
    pub compressed: bool,
    /// Another server, `http://host:port`, with a replica of its own for each user and the same administrator.
    pub edge: Option<String>,
}

/// Drives a server by CouchDB's HTTP interface.
#[derive(Clone)]
pub struct HttpDriver {
    address: Arc<Address>,
    edge: Option<Arc<Address>>,
    pub(super) options: Arc<HttpOptions>,
    counts: Arc<CountsReader>,
    /// Whether the inbox is a folder; not known before the first database was asked.
    pub(super) inbox_is_folder: Arc<OnceLock<bool>>,
    now_s: i64,
    /// Whether it is to be known which messages are deleted.
    remembers: bool,
}

/// The connection of one user.
pub struct HttpSession {
    pub(super) connection: Connection,
    address: Arc<Address>,
    pub(super) edge: Option<Edge>,
    pub(super) options: Arc<HttpOptions>,
    inbox_is_folder: Arc<OnceLock<bool>>,
    remembers: bool,
    /// Ids of the laboratory's messages that were fetched last, and which they are, if anybody is to ask.
    fetched: Vec<(String, FoundMessage)>,
    name: String,
}

/// What a database has that knows folders.
#[derive(Deserialize)]
pub(super) struct FoldersAnswer {
    folders: Vec<FolderAnswer>,
}

#[derive(Deserialize)]
pub(super) struct FolderAnswer {
    name: String,
}

#[derive(Deserialize)]
struct DatabaseAnswer {
    #[serde(default)]
    db_name: String,
    doc_count: u64,
    #[serde(default)]
    update_seq: Value,
}

impl HttpOptions {
    /// What is usual: people of `directory` log in, memos go to `mail.box`, and an answer may take 30 s. There is no
    /// administrator, and no password.
    #[must_use]
    pub fn new(target: String) -> Self {
        Self {
            target,
            admin: None,
            login: Login::Users,
            user_password: String::new(),
            view_language: ViewLanguage::Formula,
            directory: "directory".to_owned(),
            mail_box: "mail.box".to_owned(),
            time_out: Duration::from_secs(30),
            compressed: false,
            edge: None,
        }
    }

    pub(super) fn administrator(&self) -> Option<(&str, &str)> {
        self.admin.as_ref().map(|(name, password)| (name.as_str(), password.as_str()))
    }
}

impl HttpDriver {
    /// A driver for that server. Nothing is sent yet.
    ///
    /// # Errors
    /// What is wrong with the target's address, or the edge's.
    pub fn new(options: HttpOptions) -> Result<Self, String> {
        let address = Arc::new(Address::parse(&options.target)?);
        let edge = options.edge.as_deref().map(Address::parse).transpose()?.map(Arc::new);
        let now_s = jiff::Timestamp::now().as_second();
        Ok(Self {
            address,
            edge,
            options: Arc::new(options),
            counts: Arc::default(),
            inbox_is_folder: Arc::default(),
            now_s,
            remembers: false,
        })
    }

    /// From now on sessions know which message a document is.
    pub(super) fn remember_messages(&mut self) {
        self.remembers = true;
    }

    /// Host and port of the server.
    #[must_use]
    pub fn host_and_port(&self) -> (&str, u16) {
        (&self.address.host, self.address.port)
    }

    /// The edge of a user, if the run has one.
    pub(super) fn edge(&self, user: &str) -> Option<Edge> {
        Edge::of(self.edge.as_ref(), &self.address, &self.options, user)
    }

    fn connection(&self, account: Option<(&str, &str)>) -> Connection {
        connection(&self.address, account, &self.options)
    }

    pub(super) fn administrator(&self) -> Connection {
        self.connection(self.options.administrator())
    }

    /// The administrator, who has time: for what is not measured.
    pub(super) fn preparer(&self) -> Connection {
        let mut connection = self.administrator();
        connection.ask_again_when_busy();
        connection
    }

    pub(super) async fn make_database(connection: &mut Connection, database: &str) -> Result<bool, Failure> {
        let path = format!("/{}", part(database));
        let answer = connection.exchange(Method::PUT, &path, None).await?;
        Ok(answer.expect(&[201, 202, 412])?.status.as_u16() != 412)
    }

    /// The user may read and write the mail database; a server that has no such list needs none.
    async fn give_access(
        &self,
        connection: &mut Connection,
        database: &str,
        person: &Person,
    ) -> Result<(), Failure> {
        if self.options.login == Login::Admin {
            return Ok(());
        }
        let list = json!({"admins": {"names": [person.name], "roles": ["_admin"]},
                          "members": {"names": [person.name], "roles": ["_admin"]}});
        let path = format!("/{}/_security", part(database));
        let answer = connection.exchange(Method::PUT, &path, Some(body(&list)?)).await?;
        answer.expect(&[200, 201, 202, 404, 405, 501]).map(|_| ())
    }

    async fn register(&self, connection: &mut Connection, person: &Person) -> Result<(), Failure> {
        if self.options.login == Login::Admin {
            return Ok(());
        }
        let path = format!("/{}/{}", part(&self.options.directory), part(&person_id(person)));
        let document = person_document(person, &self.options.user_password);
        let answer = connection.exchange(Method::PUT, &path, Some(body(&document)?)).await?;
        answer.expect(&[200, 201, 202, 409]).map(|_| ())
    }

    async fn make_view(&self, connection: &mut Connection, database: &str) -> Result<(), Failure> {
        let path = format!("/{}/_design/mail", part(database));
        let answer = connection.exchange(Method::GET, &path, None).await?;
        if answer.expect(&[200, 404])?.status.as_u16() == 200 {
            return Ok(());
        }
        let design = mail_design(self.options.view_language);
        let answer = connection.exchange(Method::PUT, &path, Some(body(&design)?)).await?;
        answer.expect(&[201, 202, 409]).map(|_| ())
    }

    /// Makes the folder that the inbox is, where the server has folders.
    async fn make_inbox(&self, connection: &mut Connection, database: &str) -> Result<(), Failure> {
        if self.inbox_is_folder.get() == Some(&false) {
            return Ok(());
        }
        let Some(folders) = folders(connection, &self.inbox_is_folder, database).await? else {
            return Ok(());
        };
        if folders.iter().any(|folder| folder.name.eq_ignore_ascii_case(INBOX)) {
            return Ok(());
        }
        let columns = json!({"columns": inbox_columns()});
        let path = format!("/{}/_folder/{INBOX}", part(database));
        let answer = connection.exchange(Method::PUT, &path, Some(body(&columns)?)).await?;
        answer.expect(&[200, 201]).map(|_| ())
    }
}

pub(super) fn connection(
    address: &Arc<Address>,
    account: Option<(&str, &str)>,
    options: &HttpOptions,
) -> Connection {
    let authorization = account.and_then(|(name, password)| basic(name, password));
    Connection::new(Arc::clone(address), authorization, options.time_out)
        .asking_for_compression(options.compressed)
}

/// Adds documents in one request.
pub(super) async fn add_all(
    connection: &mut Connection,
    path: &str,
    messages: &[Message],
) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Bulk<'a> {
        docs: Vec<MessageDocument<'a>>,
    }
    let request = body(&Bulk { docs: messages.iter().map(MessageDocument::of).collect() })?;
    let answer = connection.exchange(Method::POST, path, Some(request)).await?.expect(&[201, 202])?;
    let rows: Vec<Value> = check::json(&answer)?;
    let right = rows.len() == messages.len()
        && rows.iter().zip(messages).all(|(row, message)| {
            row.get("rev").is_some() && row.get("id").and_then(Value::as_str) == Some(message.id.as_str())
        });
    if right { Ok(()) } else { Err(answer.failure(FailureKind::WrongAnswer, "not all were written: ")) }
}

/// The folders of a database, and whether its server has such at all.
pub(super) async fn folders(
    connection: &mut Connection,
    known: &OnceLock<bool>,
    database: &str,
) -> Result<Option<Vec<FolderAnswer>>, Failure> {
    let path = format!("/{}/_folder", part(database));
    let answer = connection.exchange(Method::GET, &path, None).await?.expect(&[200, 400, 404, 405, 501])?;
    let found: Option<FoldersAnswer> =
        if answer.status.as_u16() == 200 { check::json(&answer).ok() } else { None };
    known.get_or_init(|| found.is_some());
    Ok(found.map(|answer| answer.folders))
}

impl Driver for HttpDriver {
    type Session = HttpSession;

    fn session(&self, person: &Person) -> HttpSession {
        let connection = match self.options.login {
            Login::Admin => self.administrator(),
            Login::Users => self.connection(Some((&person.name, &self.options.user_password))),
        };
        let inbox_is_folder = Arc::clone(&self.inbox_is_folder);
        let (address, options) = (Arc::clone(&self.address), Arc::clone(&self.options));
        HttpSession {
            connection,
            address,
            edge: self.edge(&person.name),
            options,
            inbox_is_folder,
            remembers: self.remembers,
            fetched: Vec::new(),
            name: person.name.clone(),
        }
    }

    async fn describe(&self) -> Result<ServerDescription, Failure> {
        let answer = self.administrator().exchange(Method::GET, "/", None).await?.expect(&[200])?;
        let welcome: Value = check::json(&answer)?;
        let text = |pointer: &str| welcome.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name = match (text("/vendor/name"), &answer.server) {
            ("", Some(server)) => server.clone(),
            ("", None) => "unknown".to_owned(),
            (name, _) => name.to_owned(),
        };
        let version = if text("/vendor/version").is_empty() { "/version" } else { "/vendor/version" };
        Ok(ServerDescription { name, version: text(version).to_owned() })
    }

    async fn prepare_server(&self) -> Result<(), Failure> {
        let mut connection = self.preparer();
        if self.options.login == Login::Users {
            Self::make_database(&mut connection, &self.options.directory).await?;
        }
        Self::make_database(&mut connection, &self.options.mail_box).await.map(|_| ())
    }

    async fn prepare_user(
        &self,
        person: &Person,
        senders: &[String],
        filling: Filling,
    ) -> Result<Prepared, Failure> {
        let mut connection = self.preparer();
        self.register(&mut connection, person).await?;
        let database = &person.mail_database;
        let created = Self::make_database(&mut connection, database).await?;
        if created {
            self.give_access(&mut connection, database, person).await?;
        }
        self.make_view(&mut connection, database).await?;
        self.make_inbox(&mut connection, database).await?;

        // As the user, so that a login that fails is found before the run.
        let mut session = self.session(person);
        session.connection.ask_again_when_busy();
        // The design document is counted too.
        let present = session.open_database(database).await?.documents.saturating_sub(1);
        let missing = filling.documents.saturating_sub(present);
        let mut writer = Writer::new(person, filling.seed, fresh_number());
        let mut left = missing;
        while left > 0 {
            let mut messages = Vec::new();
            let mut bytes = 0;
            while bytes < BULK_BYTES && left > 0 && (messages.len() as u64) < BULK_DOCUMENTS {
                let age =
                    HISTORY_S / i64::try_from(missing).unwrap_or(1).max(1) * i64::try_from(left).unwrap_or(0);
                let (size, attachment) = writer.sizes(&filling.size);
                let recipients = vec![person.name.clone()];
                let mut message = writer.write(Form::Memo, size, attachment, recipients, self.now_s - age);
                message.delivered = true;
                let sender = usize::try_from(left).unwrap_or(0) % senders.len().max(1);
                if let Some(sender) = senders.get(sender) {
                    message.from.clone_from(sender);
                }
                bytes = bytes.saturating_add(size).saturating_add(attachment);
                left -= 1;
                messages.push(message);
            }
            session.add_many(database, &messages).await?;
        }
        if missing > 0 {
            // The index is built before the run, not by the first user who opens the view, and that of a million
            // documents takes longer than an answer may in the run.
            session.connection.wait_at_least(INDEX_TIME_OUT);
            session.read_entries(database, INBOX_VIEW, From::Position(0), 1).await?;
        }
        Ok(Prepared { created, documents_added: missing })
    }

    async fn prepare_surroundings(&self, needs: &Needs, people: &[Person]) -> Result<(), Failure> {
        self.make_surroundings(needs, people).await
    }

    async fn prepare_mail_surroundings(&self, needs: &Needs, person: &Person) -> Result<(), Failure> {
        self.make_mail_surroundings(needs, person).await
    }

    async fn mark_mailbox(&self, person: &Person) -> Result<String, Failure> {
        delivered::mark(&mut self.administrator(), &part(&person.mail_database)).await
    }

    async fn read_mailbox(
        &self,
        person: &Person,
        since: &str,
        visit: &mut (dyn FnMut(FoundMessage) + Send),
    ) -> Result<(), Failure> {
        let database = part(&person.mail_database);
        delivered::read(&mut self.administrator(), &database, &person.name, since, visit).await
    }

    async fn counts(&self) -> Option<ServerCounts> {
        self.counts.read(|| self.administrator()).await
    }
}

impl HttpSession {
    /// A connection of the administrator's, for what a user may not do.
    pub(super) fn administrator(&self) -> Connection {
        connection(&self.address, self.options.administrator(), &self.options)
    }

    pub(super) async fn inbox_is_folder(&mut self, database: &str) -> Result<bool, Failure> {
        match self.inbox_is_folder.get() {
            Some(known) => Ok(*known),
            None => Ok(folders(&mut self.connection, &self.inbox_is_folder, database).await?.is_some()),
        }
    }

    /// What a request says that stores documents that stand in the inbox: a view finds them by itself.
    async fn inbox_parameter(&mut self, database: &str) -> Result<&'static str, Failure> {
        Ok(if self.inbox_is_folder(database).await? { "?folder=Inbox" } else { "" })
    }

    async fn add_many(&mut self, database: &str, messages: &[Message]) -> Result<(), Failure> {
        let path = format!("/{}/_bulk_docs{}", part(database), self.inbox_parameter(database).await?);
        add_all(&mut self.connection, &path, messages).await
    }

    pub(super) async fn put(
        &mut self,
        database: &str,
        id: &str,
        document: Bytes,
        before: Option<&str>,
        folder: &str,
    ) -> Result<String, Failure> {
        let path = format!("/{}/{}{folder}", part(database), part(id));
        let answer = self.connection.exchange(Method::PUT, &path, Some(document)).await?;
        check::written(&answer.expect(&[201, 202])?, id, before)
    }
}

impl Session for HttpSession {
    async fn open_database(&mut self, database: &str) -> Result<DatabaseState, Failure> {
        let path = format!("/{}", part(database));
        let answer = self.connection.exchange(Method::GET, &path, None).await?.expect(&[200])?;
        let state: DatabaseAnswer = check::json(&answer)?;
        if state.db_name != database {
            return Err(answer.failure(FailureKind::WrongAnswer, "another database: "));
        }
        Ok(DatabaseState { documents: state.doc_count, change: state.update_seq.to_string() })
    }

    async fn read_entries(
        &mut self,
        database: &str,
        view: &str,
        from: From,
        count: u64,
    ) -> Result<Page, Failure> {
        let here = self.inbox_is_folder(database).await?;
        let mut path = collection_path(database, view, here);
        path.push_str(&format!("?descending=true&limit={count}"));
        match &from {
            From::Position(0) => {}
            From::Position(position) => path.push_str(&format!("&skip={position}")),
            From::After(place) => {
                let (key, id) = (part(&place.key), part(&place.document));
                path.push_str(&format!("&startkey={key}&startkey_docid={id}&skip=1"));
            }
        }
        view_page(&mut self.connection, &path, count, from).await
    }

    async fn fetch(&mut self, database: &str, id: &str, known: Option<&str>) -> Result<Fetched, Failure> {
        let path = format!("/{}/{}", part(database), part(id));
        let answer = self.connection.exchange(Method::GET, &path, None).await?.expect(&[200])?;
        let (revision, fields) = check::document(&answer, id, known)?;
        if self.remembers
            && let Some(found) = message_in(&fields, &self.name)
        {
            self.fetched.retain(|(known, _)| known != id);
            if self.fetched.len() >= REMEMBERED {
                self.fetched.remove(0);
            }
            self.fetched.push((id.to_owned(), found));
        }
        Ok(Fetched { id: id.to_owned(), revision, fields })
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
        let document = body(&fetched.fields)?;
        self.put(database, &fetched.id, document, Some(&fetched.revision), "").await
    }

    async fn add(&mut self, database: &str, message: &Message) -> Result<String, Failure> {
        let document = body(&MessageDocument::of(message))?;
        let folder = self.inbox_parameter(database).await?;
        self.put(database, &message.id, document, None, folder).await
    }

    async fn delete(&mut self, database: &str, id: &str, revision: &str) -> Result<(), Failure> {
        let path = format!("/{}/{}?rev={}", part(database), part(id), part(revision));
        let answer = self.connection.exchange(Method::DELETE, &path, None).await?.expect(&[200, 202])?;
        check::written(&answer, id, Some(revision)).map(|_| ())
    }

    async fn send(&mut self, message: &Message) -> Result<(), Failure> {
        let document = body(&MessageDocument::of(message))?;
        let options = Arc::clone(&self.options);
        self.put(&options.mail_box, &message.id, document, None, "").await.map(|_| ())
    }

    fn disconnect(&mut self) {
        self.connection.close();
    }

    fn close_idle(&mut self) {
        self.disconnect();
    }

    fn message_of(&self, id: &str) -> Option<FoundMessage> {
        self.fetched.iter().find(|(known, _)| known == id).map(|(_, found)| found.clone())
    }
}

/// What a user logs in with.
pub(super) fn basic(name: &str, password: &str) -> Option<HeaderValue> {
    let token = STANDARD.encode(format!("{name}:{password}"));
    let mut value = HeaderValue::from_str(&format!("Basic {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// One part of a path, with a slash in it encoded.
pub(super) fn part(text: &str) -> String {
    utf8_percent_encode(text, PART).to_string()
}

pub(super) fn body(document: &impl Serialize) -> Result<Bytes, Failure> {
    serde_json::to_vec(document)
        .map(Bytes::from)
        .map_err(|error| Failure::wrong(format!("cannot write a document: {error}")))
}

/// Ids of documents that fill a mail database differ from those of any earlier filling.
fn fresh_number() -> u32 {
    rand::random()
}
