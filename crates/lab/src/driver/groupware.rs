//! What a client of mail files and shared databases asks for, beyond documents and the inbox.
//!
//! | the user | the request |
//! |---|---|
//! | opens a view without reading it | the view with `limit=0` |
//! | looks for a key | the view with `find=`, or `startkey=` where the server is not Scrinium |
//! | reads in another order | the view with `resort=` |
//! | marks as read or unread | `POST /{db}/_unread` |
//! | moves to a folder | `POST /{db}/_folder/{folder}`; elsewhere the document's field `Folder` is changed |
//! | asks what was changed | `GET /{db}/_changes` |
//! | looks people up | `POST /names/_all_docs` |
//! | replicates, where no other server does it for the user (`edge`) | `_changes`, `_bulk_get`, `_revs_diff`, `_bulk_docs`, `_local` |
//! | asks the console | `POST /_console` |

use std::future::Future;

use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::check;
use super::collections::{collection_path, view_page};
use super::documents::MessageDocument;
use super::edge::Edge;
use super::failure::{Failure, FailureKind};
use super::http::{HttpSession, body, part};
use super::{Fetched, From, Page};
use crate::content::Message;

/// The address book that the laboratory makes, which everybody may read.
pub(super) const ADDRESS_BOOK: &str = "names";

/// Databases that are the server's own, or the laboratory's for a whole run.
const NEVER_DELETED: [&str; 5] = [ADDRESS_BOOK, "directory", "log", "_users", "_replicator"];

/// What has changed in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Changes {
    /// Documents, without design documents.
    pub documents: Vec<String>,
    /// Where to go on.
    pub last: String,
}

/// One user's connection, as a client of mail files and shared databases uses it. Every method is one request, but
/// where it says something else. What a target has not is refused.
pub trait Groupware: Send + 'static {
    /// Whether the server keeps folders and unread marks. It is asked once for all users.
    fn is_scrinium(&mut self, database: &str) -> impl Future<Output = Result<bool, Failure>> + Send {
        let _ = database;
        async { Ok(false) }
    }

    /// Creates a document, in that folder if one is given; returns its revision.
    fn store(
        &mut self,
        database: &str,
        message: &Message,
        folder: Option<&str>,
    ) -> impl Future<Output = Result<String, Failure>> + Send {
        let _ = (database, message, folder);
        async { Err(refused()) }
    }

    /// Opens a view and brings it up to date, without reading entries; returns how many there are.
    fn open_collection(
        &mut self,
        database: &str,
        view: &str,
    ) -> impl Future<Output = Result<u64, Failure>> + Send {
        let _ = (database, view);
        async { Err(refused()) }
    }

    /// Reads the entries whose first key begins with the text, and those behind them.
    fn find(
        &mut self,
        database: &str,
        view: &str,
        text: &str,
        count: u64,
    ) -> impl Future<Output = Result<Page, Failure>> + Send {
        let _ = (database, view, text, count);
        async { Err(refused()) }
    }

    /// Reads the entries of a time, both ends as RFC 3339 writes them.
    fn find_period(
        &mut self,
        database: &str,
        view: &str,
        period: (&str, &str),
    ) -> impl Future<Output = Result<Page, Failure>> + Send {
        let _ = (database, view, period);
        async { Err(refused()) }
    }

    /// Reads the first page in the order of another column.
    fn read_sorted(
        &mut self,
        database: &str,
        view: &str,
        column: &str,
        count: u64,
    ) -> impl Future<Output = Result<Page, Failure>> + Send {
        let _ = (database, view, column, count);
        async { Err(refused()) }
    }

    /// How many documents of the database the user has not read.
    fn count_unread(&mut self, database: &str) -> impl Future<Output = Result<u64, Failure>> + Send {
        let _ = database;
        async { Err(refused()) }
    }

    /// Marks documents as read, or as unread.
    fn mark(
        &mut self,
        database: &str,
        documents: &[String],
        unread: bool,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        let _ = (database, documents, unread);
        async { Err(refused()) }
    }

    /// Moves documents from the inbox to another folder.
    fn move_to(
        &mut self,
        database: &str,
        documents: &[String],
        folder: &str,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        let _ = (database, documents, folder);
        async { Err(refused()) }
    }

    /// What has changed since then, at most `limit` documents.
    fn changes(
        &mut self,
        database: &str,
        since: &str,
        limit: u64,
    ) -> impl Future<Output = Result<Changes, Failure>> + Send {
        let _ = (database, since, limit);
        async { Err(refused()) }
    }

    /// What came into the inbox and left it since then; returns where to go on.
    fn folder_changes(
        &mut self,
        database: &str,
        since: &str,
    ) -> impl Future<Output = Result<String, Failure>> + Send {
        let _ = (database, since);
        async { Err(refused()) }
    }

    /// Looks names up together; every one must be there.
    fn look_up(&mut self, names: &[String]) -> impl Future<Output = Result<(), Failure>> + Send {
        let _ = names;
        async { Err(refused()) }
    }

    /// Reads a profile; one that is not there is an empty one without a revision.
    fn open_profile(
        &mut self,
        database: &str,
        name: &str,
    ) -> impl Future<Output = Result<Fetched, Failure>> + Send {
        let _ = (database, name);
        async { Err(refused()) }
    }

    /// Writes a profile with another value; returns its new revision.
    fn update_profile(
        &mut self,
        database: &str,
        profile: Fetched,
        values: &[(&str, &str)],
    ) -> impl Future<Output = Result<String, Failure>> + Send {
        let _ = (database, profile, values);
        async { Err(refused()) }
    }

    /// Reads documents whole, in one request; returns how many were there.
    fn read_many(
        &mut self,
        database: &str,
        documents: &[String],
    ) -> impl Future<Output = Result<u64, Failure>> + Send {
        let _ = (database, documents);
        async { Err(refused()) }
    }

    /// Which of these documents the server does not have, asked as a replica asks; returns how many.
    fn count_missing(
        &mut self,
        database: &str,
        messages: &[Message],
    ) -> impl Future<Output = Result<u64, Failure>> + Send {
        let _ = (database, messages);
        async { Err(refused()) }
    }

    /// Stores documents with the revisions of another replica.
    fn store_replicated(
        &mut self,
        database: &str,
        messages: &[Message],
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        let _ = (database, messages);
        async { Err(refused()) }
    }

    /// Notes the progress of a replication; returns the note's new revision.
    fn write_checkpoint(
        &mut self,
        database: &str,
        name: &str,
        before: Option<&str>,
        last: &str,
    ) -> impl Future<Output = Result<String, Failure>> + Send {
        let _ = (database, name, before, last);
        async { Err(refused()) }
    }

    /// Whether another server has the user's replicas.
    fn has_edge(&self) -> bool {
        false
    }

    /// Writes documents into the user's replica of a database, at the other server.
    fn add_at_edge(
        &mut self,
        database: &str,
        messages: &[Message],
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        let _ = (database, messages);
        async { Err(refused()) }
    }

    /// Lets the other server take what the user's replica has not.
    fn pull_to_edge(&mut self, database: &str) -> impl Future<Output = Result<(), Failure>> + Send {
        let _ = database;
        async { Err(refused()) }
    }

    /// Lets the other server bring what the user's replica has.
    fn push_from_edge(&mut self, database: &str) -> impl Future<Output = Result<(), Failure>> + Send {
        let _ = database;
        async { Err(refused()) }
    }

    /// Deletes a database, as the administrator.
    fn delete_database(&mut self, database: &str) -> impl Future<Output = Result<(), Failure>> + Send {
        let _ = database;
        async { Err(refused()) }
    }

    /// Sends a command to the server's console, as the administrator.
    fn console(&mut self, command: &str) -> impl Future<Output = Result<(), Failure>> + Send {
        let _ = command;
        async { Err(refused()) }
    }

    /// Fetches a page of the server; returns its bytes.
    fn get(&mut self, path: &str) -> impl Future<Output = Result<u64, Failure>> + Send {
        let _ = path;
        async { Err(refused()) }
    }
}

fn refused() -> Failure {
    Failure::new(FailureKind::Refused, "this target has nothing of the kind")
}

#[derive(Deserialize)]
struct ChangesAnswer {
    results: Vec<Change>,
    last_seq: Value,
}

#[derive(Deserialize)]
struct Change {
    id: String,
}

#[derive(Deserialize)]
struct Total {
    total_rows: Option<u64>,
}

/// The revision that a document of another replica has: it depends on the document's id alone.
fn replicated_revision(id: &str) -> String {
    let hash = crc32fast::hash(id.as_bytes());
    format!("1-{hash:08x}{hash:08x}{hash:08x}{hash:08x}")
}

fn profile_id(name: &str) -> String {
    format!("profile:{}", name.to_ascii_lowercase())
}

impl HttpSession {
    fn edge(&mut self) -> Result<&mut Edge, Failure> {
        self.edge.as_mut().ok_or_else(refused)
    }

    async fn ask(&mut self, method: Method, path: &str, body: Option<Bytes>) -> Result<Value, Failure> {
        let answer = self.connection.exchange(method, path, body).await?.expect(&[200, 201, 202])?;
        check::json(&answer)
    }
}

impl Groupware for HttpSession {
    async fn is_scrinium(&mut self, database: &str) -> Result<bool, Failure> {
        self.inbox_is_folder(database).await
    }

    async fn store(
        &mut self,
        database: &str,
        message: &Message,
        folder: Option<&str>,
    ) -> Result<String, Failure> {
        let mut document = serde_json::to_value(MessageDocument::of(message))
            .map_err(|error| Failure::wrong(format!("cannot write a document: {error}")))?;
        let mut parameter = String::new();
        if let Some(folder) = folder {
            if self.inbox_is_folder(database).await? {
                parameter = format!("?folder={}", part(folder));
            } else if let Some(fields) = document.as_object_mut() {
                fields.insert("Folder".to_owned(), json!(folder));
            }
        }
        self.put(database, &message.id, body(&document)?, None, &parameter).await
    }

    async fn open_collection(&mut self, database: &str, view: &str) -> Result<u64, Failure> {
        let here = self.inbox_is_folder(database).await?;
        let path = collection_path(database, view, here);
        // A folder's index is always brought up to date.
        let update = if here && !path.contains("/_folder/") { "&update=true" } else { "" };
        let answer = self.connection.exchange(Method::GET, &format!("{path}?limit=0{update}"), None).await?;
        let total: Total = check::json(&answer.expect(&[200])?)?;
        Ok(total.total_rows.unwrap_or(0))
    }

    async fn find(&mut self, database: &str, view: &str, text: &str, count: u64) -> Result<Page, Failure> {
        let here = self.inbox_is_folder(database).await?;
        let path = collection_path(database, view, here);
        let from = if here {
            format!("find={}", part(text))
        } else {
            format!("startkey={}", part(&json!([text]).to_string()))
        };
        view_page(
            &mut self.connection,
            &format!("{path}?{from}&limit={count}"),
            count,
            From::Position(u64::MAX),
        )
        .await
    }

    async fn find_period(
        &mut self,
        database: &str,
        view: &str,
        (from, to): (&str, &str),
    ) -> Result<Page, Failure> {
        const MOST: u64 = 1000;
        let here = self.inbox_is_folder(database).await?;
        let path = collection_path(database, view, here);
        let key = |time: &str| part(&json!([time]).to_string());
        let range = format!("{path}?startkey={}&endkey={}&limit={MOST}", key(from), key(to));
        view_page(&mut self.connection, &range, MOST, From::Position(u64::MAX)).await
    }

    async fn read_sorted(
        &mut self,
        database: &str,
        view: &str,
        column: &str,
        count: u64,
    ) -> Result<Page, Failure> {
        let path = collection_path(database, view, self.inbox_is_folder(database).await?);
        let path = format!("{path}?resort={column}&limit={count}");
        view_page(&mut self.connection, &path, count, From::Position(0)).await
    }

    async fn count_unread(&mut self, database: &str) -> Result<u64, Failure> {
        #[derive(Deserialize)]
        struct Unread {
            database: u64,
        }
        let path = format!("/{}/_unread", part(database));
        let answer = self.connection.exchange(Method::GET, &path, None).await?.expect(&[200])?;
        let unread: Unread = check::json(&answer)?;
        Ok(unread.database)
    }

    async fn mark(&mut self, database: &str, documents: &[String], unread: bool) -> Result<(), Failure> {
        let path = format!("/{}/_unread", part(database));
        let marks = if unread { json!({"unread": documents}) } else { json!({"read": documents}) };
        let answer = self.connection.exchange(Method::POST, &path, Some(body(&marks)?)).await?;
        all_done(&answer.expect(&[200])?, documents.len())
    }

    async fn move_to(&mut self, database: &str, documents: &[String], folder: &str) -> Result<(), Failure> {
        let path = format!("/{}/_folder/Inbox", part(database));
        let order = json!({"move": {"to": folder, "ids": documents}});
        let answer = self.connection.exchange(Method::POST, &path, Some(body(&order)?)).await?;
        all_done(&answer.expect(&[200, 201])?, documents.len())
    }

    async fn changes(&mut self, database: &str, since: &str, limit: u64) -> Result<Changes, Failure> {
        let path = format!("/{}/_changes?limit={limit}&since={}", part(database), part(since));
        let answer = self.connection.exchange(Method::GET, &path, None).await?.expect(&[200])?;
        let found: ChangesAnswer = check::json(&answer)?;
        if found.results.len() as u64 > limit {
            return Err(answer.failure(FailureKind::WrongAnswer, "more changes than were asked for: "));
        }
        let documents =
            found.results.into_iter().map(|change| change.id).filter(|id| !id.starts_with('_')).collect();
        let last = found.last_seq.as_str().map_or_else(|| found.last_seq.to_string(), str::to_owned);
        Ok(Changes { documents, last })
    }

    async fn folder_changes(&mut self, database: &str, since: &str) -> Result<String, Failure> {
        let path = format!("/{}/_folder/Inbox/_changes?since={}", part(database), part(since));
        let found = self.ask(Method::GET, &path, None).await?;
        let last = found.get("last_seq").ok_or_else(|| Failure::wrong(format!("GET {path}: no last_seq")))?;
        Ok(last.as_str().map_or_else(|| last.to_string(), str::to_owned))
    }

    async fn look_up(&mut self, names: &[String]) -> Result<(), Failure> {
        let path = format!("/{ADDRESS_BOOK}/_all_docs?include_docs=true");
        let keys = json!({"keys": names.iter().map(|name| format!("person:{name}")).collect::<Vec<_>>()});
        let answer =
            self.connection.exchange(Method::POST, &path, Some(body(&keys)?)).await?.expect(&[200])?;
        let found: Value = check::json(&answer)?;
        let rows = found.get("rows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let right = rows.len() == names.len()
            && rows.iter().zip(names).all(|(row, name)| {
                row.pointer("/doc/ShortName").and_then(Value::as_str) == Some(name.as_str())
            });
        if right { Ok(()) } else { Err(answer.failure(FailureKind::Missing, "not everybody was found: ")) }
    }

    async fn open_profile(&mut self, database: &str, name: &str) -> Result<Fetched, Failure> {
        let id = profile_id(name);
        let path = format!("/{}/{}", part(database), part(&id));
        let answer = self.connection.exchange(Method::GET, &path, None).await?.expect(&[200, 404])?;
        if answer.status.as_u16() == 404 {
            let mut fields = Map::new();
            fields.insert("_id".to_owned(), json!(id));
            fields.insert("Form".to_owned(), json!("Profile"));
            return Ok(Fetched { id, revision: String::new(), fields });
        }
        let (revision, fields) = check::document(&answer, &id, None)?;
        Ok(Fetched { id, revision, fields })
    }

    async fn update_profile(
        &mut self,
        database: &str,
        mut profile: Fetched,
        values: &[(&str, &str)],
    ) -> Result<String, Failure> {
        for (name, value) in values {
            profile.fields.insert((*name).to_owned(), json!(value));
        }
        let before = Some(profile.revision.as_str()).filter(|revision| !revision.is_empty());
        self.put(database, &profile.id, body(&profile.fields)?, before, "").await
    }

    async fn read_many(&mut self, database: &str, documents: &[String]) -> Result<u64, Failure> {
        let path = format!("/{}/_bulk_get", part(database));
        let ids: Vec<Value> = documents.iter().map(|id| json!({"id": id})).collect();
        let found = self.ask(Method::POST, &path, Some(body(&json!({"docs": ids}))?)).await?;
        let results = found.get("results").and_then(Value::as_array).map_or(0, Vec::len);
        if results < documents.len() {
            return Err(Failure::wrong(format!("POST {path}: {results} of {} documents", documents.len())));
        }
        Ok(results as u64)
    }

    async fn count_missing(&mut self, database: &str, messages: &[Message]) -> Result<u64, Failure> {
        let path = format!("/{}/_revs_diff", part(database));
        let asked: Map<String, Value> = messages
            .iter()
            .map(|message| (message.id.clone(), json!([replicated_revision(&message.id)])))
            .collect();
        let found = self.ask(Method::POST, &path, Some(body(&asked)?)).await?;
        Ok(found.as_object().map_or(0, Map::len) as u64)
    }

    async fn store_replicated(&mut self, database: &str, messages: &[Message]) -> Result<(), Failure> {
        let path = format!("/{}/_bulk_docs", part(database));
        let mut documents = Vec::with_capacity(messages.len());
        for message in messages {
            let mut document = serde_json::to_value(MessageDocument::of(message))
                .map_err(|error| Failure::wrong(format!("cannot write a document: {error}")))?;
            if let Some(fields) = document.as_object_mut() {
                fields.insert("_rev".to_owned(), json!(replicated_revision(&message.id)));
            }
            documents.push(document);
        }
        let request = json!({"new_edits": false, "docs": documents});
        let answer = self.ask(Method::POST, &path, Some(body(&request)?)).await?;
        // Without new edits only what was refused is answered.
        match answer.as_array().and_then(|rows| rows.iter().find(|row| row.get("error").is_some())) {
            Some(refused) => Err(Failure::wrong(format!("POST {path}: {refused}"))),
            None => Ok(()),
        }
    }

    async fn write_checkpoint(
        &mut self,
        database: &str,
        name: &str,
        before: Option<&str>,
        last: &str,
    ) -> Result<String, Failure> {
        let path = format!("/{}/_local/{}", part(database), part(name));
        let mut note = json!({"source_last_seq": last});
        if let (Some(before), Some(fields)) = (before, note.as_object_mut()) {
            fields.insert("_rev".to_owned(), json!(before));
        }
        let answer = self.ask(Method::PUT, &path, Some(body(&note)?)).await?;
        let revision = answer.get("rev").and_then(Value::as_str).map(str::to_owned);
        revision.ok_or_else(|| Failure::wrong(format!("PUT {path}: no revision")))
    }

    fn has_edge(&self) -> bool {
        self.edge.is_some()
    }

    async fn add_at_edge(&mut self, database: &str, messages: &[Message]) -> Result<(), Failure> {
        self.edge()?.add(database, messages).await
    }

    async fn pull_to_edge(&mut self, database: &str) -> Result<(), Failure> {
        self.edge()?.pull(database).await
    }

    async fn push_from_edge(&mut self, database: &str) -> Result<(), Failure> {
        self.edge()?.push(database).await
    }

    async fn delete_database(&mut self, database: &str) -> Result<(), Failure> {
        let own = NEVER_DELETED.contains(&database)
            || database == self.options.directory
            || database.starts_with(&self.options.mail_box)
            || database.is_empty();
        if own {
            return Err(Failure::wrong(format!("DbDelete: {database} is the server's own and stays")));
        }
        let path = format!("/{}", part(database));
        let answer = self.administrator().exchange(Method::DELETE, &path, None).await?;
        answer.expect(&[200, 202, 404]).map(|_| ())
    }

    async fn console(&mut self, command: &str) -> Result<(), Failure> {
        let order = body(&json!({"command": command}))?;
        let answer = self.administrator().exchange(Method::POST, "/_console", Some(order)).await?;
        answer.expect(&[200]).map(|_| ())
    }

    async fn get(&mut self, path: &str) -> Result<u64, Failure> {
        let answer = self.connection.exchange(Method::GET, path, None).await?.expect(&[200])?;
        Ok(answer.body.len() as u64)
    }
}

/// One result for each document, and no error but that it has been deleted meanwhile.
fn all_done(answer: &super::connection::Answer, documents: usize) -> Result<(), Failure> {
    let results: Vec<Value> = check::json(answer)?;
    let fine = |result: &Value| {
        result.get("error").is_none_or(|error| matches!(error.as_str(), Some("not_found" | "deleted")))
    };
    if results.len() == documents && results.iter().all(fine) {
        return Ok(());
    }
    Err(answer.failure(FailureKind::WrongAnswer, "not all were done: "))
}
