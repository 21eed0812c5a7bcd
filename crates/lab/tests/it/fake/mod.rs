//! A small server in memory with as much of CouchDB's interface as the laboratory uses, and with faults
//! that can be switched on: it stalls, fails, or answers wrongly.
#![allow(dead_code, unused_imports, unreachable_pub, reason = "each test uses another part of it")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fall over")]

mod groupware;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base64::Engine;
use http::Method;
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

mod wire;

pub use wire::{Delivery, Served};

/// What the server does wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Every answer takes this long.
    pub delay: Duration,
    /// Every nth reading of a document fails with this status.
    pub failing_reads: Option<(u64, u16)>,
    /// Every nth reading of a document answers with another body than was written.
    pub wrong_bodies: Option<u64>,
    /// It is too busy for the first registrations of people, as many of them.
    pub busy: u64,
    /// Every nth change of a document of the same database meets one that has been changed by someone else.
    pub conflicts: Option<u64>,
    /// No answer ever comes to the deletion of a document.
    pub silent_deletes: bool,
    /// Every nth copy that the router makes is lost, made twice or changed, in turn.
    pub wrong_deliveries: Option<u64>,
    /// The copy of this number that the router makes is lost; the first is 1.
    pub lost_delivery: Option<u64>,
    /// The copy of this number is made twice.
    pub doubled_delivery: Option<u64>,
    /// It has no fault at all, and folders.
    pub folders: bool,
    /// Readings of documents take the first time, and every nth of them the second.
    pub read_delays: Option<(Duration, u64, Duration)>,
    /// Every nth reading of a document is broken off in the middle of its answer.
    pub truncated: Option<u64>,
    /// Every nth reading of a document is answered twice.
    pub doubled: Option<u64>,
    /// The answer to every nth reading of a document comes in pieces, over this time.
    pub dribbled: Option<(u64, Duration)>,
    /// It keeps no log, so that it can be asked for long.
    pub forgetful: bool,
}

#[derive(Default)]
struct Database {
    documents: BTreeMap<String, Value>,
    changes: u64,
    inbox: bool,
    /// Documents that are in another folder than the inbox.
    elsewhere: std::collections::BTreeSet<String>,
    locals: BTreeMap<String, u64>,
    /// Changes of documents that were there.
    rewrites: u64,
    /// The last change of each document.
    last: BTreeMap<String, u64>,
}

#[derive(Default)]
struct State {
    databases: BTreeMap<String, Database>,
    refused: u64,
    reads: u64,
    deliveries: u64,
    log: Vec<String>,
    deleted: Vec<Value>,
}

pub struct FakeServer {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
pub struct Shared {
    state: Mutex<State>,
    syncs: AtomicU64,
    connections: AtomicU64,
    readings: AtomicU64,
    served: Mutex<Vec<Served>>,
    gone: watch::Sender<bool>,
    /// No request is answered before this.
    stalled_until: Mutex<Option<Instant>>,
}

type Answer = (u16, Value);

impl FakeServer {
    pub async fn start(faults: Faults) -> Self {
        Self::start_at("127.0.0.1:0", faults).await
    }

    pub async fn start_at(address: &str, faults: Faults) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let served = Arc::clone(&shared);
        tokio::spawn(async move {
            let mut gone = served.gone.subscribe();
            loop {
                let stream = tokio::select! {
                    accepted = listener.accept() => accepted.unwrap().0,
                    _ = gone.wait_for(|gone| *gone) => return,
                };
                stream.set_nodelay(true).unwrap();
                served.connections.fetch_add(1, Ordering::Relaxed);
                let shared = Arc::clone(&served);
                tokio::spawn(wire::serve(stream, shared, faults));
            }
        });
        Self { address, shared }
    }

    /// From now on no request is answered for so long.
    pub fn stall_for(&self, time: Duration) {
        *self.shared.stalled_until.lock() = Some(Instant::now() + time);
    }

    /// From now on nobody is there: connections are closed, and no new ones accepted.
    pub fn go_away(&self) {
        self.shared.gone.send_replace(true);
    }

    /// Connections that were made.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Documents in a database, without design documents.
    pub fn count(&self, database: &str) -> usize {
        let state = self.shared.state.lock();
        let documents = state.databases.get(database).map(|database| &database.documents);
        documents.map_or(0, |documents| documents.keys().filter(|id| !id.starts_with('_')).count())
    }

    pub fn documents(&self, database: &str) -> Vec<Value> {
        let state = self.shared.state.lock();
        state
            .databases
            .get(database)
            .map(|database| database.documents.values().cloned().collect())
            .unwrap_or_default()
    }

    /// Documents that were deleted, as they were.
    pub fn deleted(&self) -> Vec<Value> {
        self.shared.state.lock().deleted.clone()
    }

    /// Readings of documents, as the server has measured them.
    pub fn served(&self) -> Vec<Served> {
        self.shared.served.lock().clone()
    }

    /// How many readings of documents have begun; a forgetful server counts them too.
    pub fn readings(&self) -> u64 {
        self.shared.readings.load(Ordering::Relaxed)
    }

    /// Requests that were answered, as `GET /path`.
    pub fn log(&self) -> Vec<String> {
        self.shared.state.lock().log.clone()
    }
}

/// Status, type and body of the answer, after the time that it takes.
async fn answer(
    asked: wire::Asked,
    shared: &Shared,
    faults: Faults,
    reading: u64,
) -> (u16, &'static str, Vec<u8>) {
    let delay = match faults.read_delays {
        Some((_, nth, long)) if reading > 0 && reading.is_multiple_of(nth) => long,
        Some((short, ..)) if reading > 0 => short,
        _ => faults.delay,
    };
    tokio::time::sleep(delay).await;
    let stalled_until = *shared.stalled_until.lock();
    if let Some(until) = stalled_until {
        tokio::time::sleep_until(until.into()).await;
    }
    if faults.silent_deletes && asked.method == Method::DELETE {
        std::future::pending::<()>().await;
    }
    let user = asked.authorization.and_then(|value| {
        let token = base64::engine::general_purpose::STANDARD.decode(value.strip_prefix("Basic ")?).ok()?;
        String::from_utf8(token).ok()?.split_once(':').map(|(name, word)| (name.to_owned(), word.to_owned()))
    });
    let path = asked.uri.path().to_owned();
    let query: BTreeMap<String, String> = asked
        .uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), decoded(value)))
        .collect();
    if path == "/metrics" {
        let syncs = shared.syncs.load(Ordering::Relaxed);
        let text = format!(
            "# TYPE x counter\nscrinium_log_syncs_total {syncs}\nscrinium_database_buffer_pool_hits {}\n\
             scrinium_database_buffer_pool_misses {syncs}\nscrinium_view_updates {syncs}\n\
             scrinium_view_updates_changes {}\n",
            3 * syncs,
            2 * syncs
        );
        return (200, "text/plain", text.into_bytes());
    }
    if matches!(asked.method, Method::PUT | Method::POST | Method::DELETE) {
        shared.syncs.fetch_add(1, Ordering::Relaxed);
    }
    let mut state = shared.state.lock();
    if !faults.forgetful {
        state.log.push(format!("{} {path}", asked.method));
    }
    let body: Value = serde_json::from_slice(&asked.body).unwrap_or(Value::Null);
    let (status, answer) = state.answer(&asked.method, &path, &query, body, user.as_ref(), &faults);
    (status, "application/json", wire::bytes(&answer))
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn error(status: u16, error: &str, reason: &str) -> Answer {
    (status, json!({"error": error, "reason": reason}))
}

fn field<'a>(document: &'a Value, name: &str) -> &'a str {
    document.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn next_revision(before: Option<&Value>) -> String {
    let generation: u64 = before.map_or(0, |document| {
        field(document, "_rev").split('-').next().unwrap_or_default().parse().unwrap_or(0)
    });
    format!("{}-{:032x}", generation + 1, rand::random::<u128>())
}

impl State {
    fn answer(
        &mut self,
        method: &Method,
        path: &str,
        query: &BTreeMap<String, String>,
        body: Value,
        user: Option<&(String, String)>,
        faults: &Faults,
    ) -> Answer {
        let parts: Vec<String> = path.trim_matches('/').splitn(2, '/').map(decoded).collect();
        if path == "/" {
            return (200, json!({"couchdb": "Welcome", "vendor": {"name": "Fake", "version": "1.0"}}));
        }
        let Some(user) = user else { return error(401, "unauthorized", "Name or password is incorrect.") };
        if !self.may_enter(user) {
            return error(401, "unauthorized", "Name or password is incorrect.");
        }
        if let Some(answer) = self.groupware(method, &parts, query, &body, faults) {
            return answer;
        }
        match parts.as_slice() {
            [database] => self.database(method, database, user),
            [_, rest] if rest.starts_with("_folder") && !faults.folders => error(404, "not_found", "missing"),
            [database, rest] if rest.starts_with("_folder") => self.folder(method, database, rest, query),
            [database, rest] if rest == "_bulk_docs" => self.bulk(database, &body),
            [_, rest] if rest == "_security" => (200, json!({"ok": true})),
            [database, rest] if rest.starts_with("_design/mail/_view/") => self.view(database, query),
            [database, id] => self.document(method, database, id, query, body, faults),
            _ => error(404, "not_found", "missing"),
        }
    }

    /// `admin` with `secret`, and everyone in the directory with the password given there.
    fn may_enter(&self, (name, password): &(String, String)) -> bool {
        let person = self
            .databases
            .get("directory")
            .and_then(|directory| directory.documents.get(&format!("person:{name}")));
        (name == "admin" && password == "secret")
            || person.is_some_and(|person| field(person, "password") == password)
    }

    fn database(&mut self, method: &Method, name: &str, user: &(String, String)) -> Answer {
        let known = self.databases.get(name);
        match (method, known) {
            (&Method::PUT, Some(_)) => error(412, "file_exists", "The database could not be created."),
            (&Method::PUT, None) if user.0 != "admin" => error(403, "forbidden", "no"),
            (&Method::PUT, None) => {
                self.databases.insert(name.to_owned(), Database::default());
                (201, json!({"ok": true}))
            }
            (_, None) => error(404, "not_found", "Database does not exist."),
            (_, Some(database)) => (
                200,
                json!({"db_name": name, "doc_count": database.documents.len(),
                       "update_seq": format!("{}-x", database.changes)}),
            ),
        }
    }

    fn bulk(&mut self, name: &str, body: &Value) -> Answer {
        let documents = body["docs"].as_array().cloned().unwrap_or_default();
        let rows: Vec<Value> = documents
            .into_iter()
            .map(|document| {
                let id = field(&document, "_id").to_owned();
                json!({"ok": true, "id": id, "rev": self.store(name, &id, document)})
            })
            .collect();
        (201, json!(rows))
    }

    fn store(&mut self, name: &str, id: &str, mut document: Value) -> String {
        let Some(database) = self.databases.get_mut(name) else { return String::new() };
        let revision = next_revision(database.documents.get(id));
        document["_id"] = json!(id);
        document["_rev"] = json!(revision);
        database.documents.insert(id.to_owned(), document);
        database.changes += 1;
        database.last.insert(id.to_owned(), database.changes);
        revision
    }

    /// The only folder, which holds everything.
    fn folder(
        &mut self,
        method: &Method,
        name: &str,
        rest: &str,
        query: &BTreeMap<String, String>,
    ) -> Answer {
        let Some(database) = self.databases.get_mut(name) else { return error(404, "not_found", "missing") };
        match (method, rest) {
            (&Method::GET, "_folder") => {
                (200, json!({"folders": if database.inbox { json!([{"name": "Inbox"}]) } else { json!([]) }}))
            }
            (&Method::PUT, "_folder/Inbox") => {
                database.inbox = true;
                (201, json!({"ok": true}))
            }
            (&Method::GET, "_folder/Inbox") if database.inbox => self.view(name, query),
            _ => error(404, "not_found", "There is no such folder."),
        }
    }

    /// The inbox: by date, newest first.
    fn view(&self, name: &str, query: &BTreeMap<String, String>) -> Answer {
        let Some(database) = self.databases.get(name) else { return error(404, "not_found", "missing") };
        let mut rows: Vec<(&str, &String)> = database
            .documents
            .iter()
            .filter(|(id, _)| !id.starts_with('_') && !id.starts_with("profile:"))
            .filter(|(id, _)| !database.elsewhere.contains(*id))
            .map(|(id, document)| (field(document, "DeliveredDate"), id))
            .collect();
        rows.sort();
        rows.reverse();
        let number = |name: &str, default: usize| {
            query.get(name).and_then(|value| value.parse().ok()).unwrap_or(default)
        };
        let mut offset = number("skip", 0);
        if let (Some(key), Some(id)) = (query.get("startkey"), query.get("startkey_docid")) {
            let key: Value = serde_json::from_str(key).unwrap();
            let from = (key[0].as_str().unwrap_or_default(), id);
            offset += rows.iter().position(|row| *row <= from).unwrap_or(rows.len());
        }
        let page: Vec<Value> = rows
            .iter()
            .skip(offset)
            .take(number("limit", usize::MAX))
            .map(|(date, id)| json!({"id": id, "key": [date], "value": []}))
            .collect();
        (200, json!({"total_rows": rows.len(), "offset": offset, "rows": page}))
    }

    fn document(
        &mut self,
        method: &Method,
        name: &str,
        id: &str,
        query: &BTreeMap<String, String>,
        body: Value,
        faults: &Faults,
    ) -> Answer {
        if *method == Method::PUT && name == "directory" && self.refused < faults.busy {
            self.refused += 1;
            return error(
                429,
                "too_many_requests",
                "Too many logins are being checked; try again in a moment.",
            );
        }
        let Some(database) = self.databases.get_mut(name) else {
            return error(404, "not_found", "Database does not exist.");
        };
        let known = database.documents.get(id).cloned();
        match *method {
            Method::GET => self.read(known, faults),
            Method::PUT => {
                if let Some(nth) = faults.conflicts.filter(|_| known.is_some()) {
                    database.rewrites += 1;
                    if database.rewrites.is_multiple_of(nth) {
                        // Someone else writes the same document first.
                        self.store(name, id, known.unwrap());
                        return error(409, "conflict", "Document update conflict.");
                    }
                }
                let before = known.as_ref().map_or("", |document| field(document, "_rev"));
                if before != field(&body, "_rev") {
                    return error(409, "conflict", "Document update conflict.");
                }
                if name == "mail.box" {
                    self.deliver(id, &body, faults);
                }
                let revision = self.store(name, id, body);
                (201, json!({"ok": true, "id": id, "rev": revision}))
            }
            Method::DELETE => match known {
                None => error(404, "not_found", "deleted"),
                Some(document) if Some(field(&document, "_rev")) != query.get("rev").map(String::as_str) => {
                    error(409, "conflict", "Document update conflict.")
                }
                Some(document) => {
                    let revision = next_revision(Some(&document));
                    let database = self.databases.get_mut(name).unwrap();
                    database.documents.remove(id);
                    database.changes += 1;
                    self.deleted.push(document);
                    (200, json!({"ok": true, "id": id, "rev": revision}))
                }
            },
            _ => error(405, "method_not_allowed", "no"),
        }
    }

    fn read(&mut self, known: Option<Value>, faults: &Faults) -> Answer {
        let Some(mut document) = known else { return error(404, "not_found", "missing") };
        if field(&document, "_id").starts_with('_') {
            return (200, document);
        }
        self.reads += 1;
        if let Some((nth, status)) = faults.failing_reads
            && self.reads.is_multiple_of(nth)
        {
            return error(status, "unavailable", "busy");
        }
        if faults.wrong_bodies.is_some_and(|nth| self.reads.is_multiple_of(nth)) {
            document["Body"] = json!("something else");
        }
        (200, document)
    }

    /// The router: a copy for each recipient.
    fn deliver(&mut self, id: &str, memo: &Value, faults: &Faults) {
        let recipients = memo["SendTo"].as_array().cloned().unwrap_or_default();
        for recipient in recipients.iter().filter_map(Value::as_str) {
            let mut copy: Map<String, Value> = memo.as_object().cloned().unwrap_or_default();
            copy.remove("_rev");
            copy.insert("DeliveredDate".to_owned(), memo["PostedDate"].clone());
            let mail_file = format!("mail/{recipient}");
            self.deliveries += 1;
            let number = Some(self.deliveries);
            let by_turns = faults.wrong_deliveries.filter(|nth| self.deliveries.is_multiple_of(*nth));
            let fault = match by_turns {
                Some(nth) => Some(self.deliveries / nth % 3),
                None if number == faults.lost_delivery => Some(0),
                None if number == faults.doubled_delivery => Some(1),
                None => None,
            };
            match fault {
                Some(0) => continue,
                Some(1) => drop(self.store(&mail_file, &format!("{id}-again"), Value::Object(copy.clone()))),
                Some(_) => drop(copy.insert("Body".to_owned(), json!("something else"))),
                None => {}
            }
            self.store(&mail_file, id, Value::Object(copy));
        }
    }
}
