//! A mail database of a running server as the target of an import.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use hyper::body::Bytes;
use parking_lot::Mutex;
use scrinium_directory::Person;
use scrinium_mail::import::{
    ImportTarget, ImportedMemo, Position, StoredBatch, checkpoint_id, read_position, write_position,
};
use scrinium_mail::{SOURCE_ATTACHMENT, SOURCE_CONTENT_TYPE, mail_columns};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::nobody;
use crate::cli::Failure;
use crate::client::{ClientError, ConsoleClient};
use crate::config::Settings;

type Answer = Result<(StatusCode, Bytes), ClientError>;

/// Documents of one batch that go into the same folder, all read or all not.
type Groups = BTreeMap<(String, bool), Vec<Value>>;

/// A person's mail database behind a server's port.
pub(crate) struct RemoteMail {
    client: ConsoleClient,
    runtime: Runtime,
    /// The person's document.
    pub(crate) person_id: String,
    /// The name under which the person uses the server.
    owner: String,
    /// Folders that are known to be there.
    folders: Mutex<HashSet<String>>,
    /// `/mail%2Fada`.
    database: String,
    checkpoint: String,
}

impl RemoteMail {
    /// The mail database of a person at the server that these settings describe.
    pub(crate) fn find(settings: &Settings, person: &str, root: &Path) -> Result<Self, Failure> {
        Self::of_client(ConsoleClient::of_own_server(settings)?, person, root)
    }

    /// The mail database of a person at a server.
    pub(crate) fn of_client(client: ConsoleClient, person: &str, root: &Path) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(Failure::work)?;
        let found = runtime.block_on(find_person(&client, person))?;
        let person = found.ok_or_else(|| nobody(person))?;
        Ok(Self {
            client,
            runtime,
            person_id: person.id,
            owner: person.short_name,
            folders: Mutex::default(),
            database: format!("/{}", escape(&person.mail_file)),
            checkpoint: checkpoint_id(root),
        })
    }

    /// Makes a folder unless it is there.
    fn make_folder(&self, name: &str) -> Result<(), String> {
        if self.folders.lock().contains(name) {
            return Ok(());
        }
        let path = format!("_folder/{}", escape(name));
        let members = self.ask(Method::GET, &format!("{path}/_members?limit=0"), None);
        let mut answer = members.map_err(|error| error.to_string())?;
        if answer.0 == StatusCode::NOT_FOUND {
            let columns = json!({"columns": *mail_columns()});
            answer = self.ask(Method::PUT, &path, Some(columns)).map_err(|error| error.to_string())?;
        }
        let (status, body) = answer;
        if !status.is_success() {
            return Err(refusal(status, &body));
        }
        self.folders.lock().insert(name.to_owned());
        Ok(())
    }

    fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let path = format!("{}/{path}", self.database);
        self.runtime.block_on(self.client.request(method, &path, body.map(|body| body.to_string().into())))
    }
}

/// The person with this short or full name.
async fn find_person(client: &ConsoleClient, name: &str) -> Result<Option<Person>, Failure> {
    let path = "/directory/_all_docs?include_docs=true&start_key=%22person:%22&end_key=%22person;%22";
    let (status, body) = client.request(Method::GET, path, None).await.map_err(Failure::work)?;
    if !status.is_success() {
        return Err(Failure::Work(format!(
            "the directory cannot be read: {}",
            String::from_utf8_lossy(&body)
        )));
    }
    let body: Value = serde_json::from_slice(&body).map_err(Failure::work)?;
    let rows = body.get("rows").and_then(Value::as_array).cloned().unwrap_or_default();
    let wanted = scrinium_directory::fold_name(name);
    let found = rows.into_iter().filter_map(|row| {
        let document = row.get("doc")?.as_object()?.clone();
        let person = Person::read(&document).ok()?;
        let names = person.full_names.iter().chain([&person.short_name]);
        let is_it = names
            .flat_map(|name| [name.as_str(), scrinium_directory::common_name(name)])
            .any(|name| scrinium_directory::fold_name(name) == wanted);
        is_it.then_some(person)
    });
    Ok(found.into_iter().next())
}

fn escape(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
}

fn document(memo: ImportedMemo) -> Value {
    let mut fields = memo.fields;
    fields.insert("_id".to_owned(), memo.id.into());
    let source = json!({SOURCE_ATTACHMENT: {
        "content_type": SOURCE_CONTENT_TYPE,
        "data": STANDARD.encode(&memo.source),
    }});
    fields.insert("_attachments".to_owned(), source);
    Value::Object(fields)
}

/// What the server says is wrong.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let reason: Value = serde_json::from_slice(body).unwrap_or_default();
    let reason = reason.get("reason").and_then(Value::as_str).unwrap_or_default();
    format!("the server answers {status}: {reason}")
}

/// Counts what became of the documents of one request.
fn count(answer: Answer, stored: &mut StoredBatch) -> Result<(), String> {
    let (status, body) = answer.map_err(|error| error.to_string())?;
    if !status.is_success() {
        return Err(refusal(status, &body));
    }
    let rows: Vec<Value> = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
    for row in rows {
        match row.get("error").and_then(Value::as_str) {
            None => stored.added += 1,
            Some("conflict") => stored.present += 1,
            Some(error) => return Err(format!("the server refuses a message: {error}: {row}")),
        }
    }
    Ok(())
}

impl ImportTarget for RemoteMail {
    type Pending = JoinHandle<Vec<Answer>>;

    fn position(&self) -> Result<Option<Position>, String> {
        let (status, body) =
            self.ask(Method::GET, &self.checkpoint, None).map_err(|error| error.to_string())?;
        match status {
            StatusCode::OK => Ok(serde_json::from_slice(&body).ok().as_ref().and_then(read_position)),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(refusal(status, &body)),
        }
    }

    fn submit(&self, batch: Vec<ImportedMemo>) -> Result<Self::Pending, String> {
        let mut groups = Groups::new();
        for memo in batch {
            groups.entry((memo.folder.clone(), memo.read)).or_default().push(document(memo));
        }
        let mut requests = Vec::with_capacity(groups.len());
        for ((folder, read), documents) in groups {
            self.make_folder(&folder)?;
            let mut path = format!("{}/_bulk_docs?folder={}", self.database, escape(&folder));
            if read {
                path.push_str("&read_by=");
                path.push_str(&escape(&self.owner));
            }
            requests.push((path, Bytes::from(json!({"docs": documents}).to_string())));
        }
        let client = self.client.clone();
        Ok(self.runtime.spawn(async move {
            let mut answers = Vec::with_capacity(requests.len());
            for (path, body) in requests {
                answers.push(client.request(Method::POST, &path, Some(body)).await);
            }
            answers
        }))
    }

    fn finish(&self, pending: Self::Pending, position: &Position) -> Result<StoredBatch, String> {
        let mut stored = StoredBatch::default();
        for answer in self.runtime.block_on(pending).map_err(|error| error.to_string())? {
            count(answer, &mut stored)?;
        }
        let (status, body) = self
            .ask(Method::PUT, &self.checkpoint, Some(write_position(position)))
            .map_err(|error| error.to_string())?;
        if status.is_success() { Ok(stored) } else { Err(refusal(status, &body)) }
    }

    fn complete(&self) -> Result<(), String> {
        let (status, body) =
            self.ask(Method::DELETE, &self.checkpoint, None).map_err(|error| error.to_string())?;
        if status.is_success() || status == StatusCode::NOT_FOUND {
            Ok(())
        } else {
            Err(refusal(status, &body))
        }
    }
}
