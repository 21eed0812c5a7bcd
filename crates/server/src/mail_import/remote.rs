//! A mail database of a running server as the target of an import.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use http::{Method, StatusCode};
use hyper::body::Bytes;
use parking_lot::Mutex;
use scrinium_database::FolderKind;
use scrinium_mail::import::{
    ImportTarget, ImportedMemo, Position, RefusedMessage, StoredBatch, checkpoint_id, read_position,
    write_position,
};
use scrinium_mail::mail_columns;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::letters::{Letters, escape};
use crate::cli::Failure;
use crate::client::{ClientError, ConsoleClient};
use crate::registry::{self, RemoteRegistry, refusal};

type Answer = Result<(StatusCode, Bytes), ClientError>;

/// Messages of one batch that go into the same folders, all read or all not.
type Groups = BTreeMap<(Vec<String>, bool), Vec<ImportedMemo>>;

/// A person's mail database behind a server's port.
pub(crate) struct RemoteMail {
    letters: Letters,
    runtime: Runtime,
    /// The person's document.
    pub(crate) person_id: String,
    /// Folders that are known to be there, and those that the server does not make, with the reason.
    folders: Mutex<HashMap<String, Option<String>>>,
    checkpoint: String,
}

impl RemoteMail {
    /// The mail database of a person at a server; made, for the person alone, if it is missing.
    pub(crate) fn of_client(client: ConsoleClient, person: &str, root: &Path) -> Result<Self, Failure> {
        let names = registry::names(&RemoteRegistry::new(client.clone())?)?;
        let person = registry::person_called(&names, person)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let remote = Self {
            letters: Letters {
                client,
                database: format!("/{}", escape(&person.mail_file)),
                owner: person.short_name.clone(),
            },
            runtime: runtime.map_err(Failure::work)?,
            person_id: person.id.clone(),
            folders: Mutex::default(),
            checkpoint: checkpoint_id(root),
        };
        remote.make_database()?;
        Ok(remote)
    }

    /// Remembers the progress of what is called `root` from now on.
    pub(crate) fn remember_at(&mut self, root: &Path) {
        self.checkpoint = checkpoint_id(root);
    }

    fn make_database(&self) -> Result<(), Failure> {
        let Letters { client, database, owner } = &self.letters;
        let path = format!("{database}?owner={}", escape(owner));
        let asked = self.runtime.block_on(client.request(Method::GET, database, None));
        let (mut status, mut body) = asked.map_err(Failure::work)?;
        if status == StatusCode::NOT_FOUND {
            let asked = self.runtime.block_on(client.request(Method::PUT, &path, None));
            (status, body) = asked.map_err(Failure::work)?;
        }
        // Somebody else may have made it in this moment.
        if status.is_success() || status == StatusCode::PRECONDITION_FAILED {
            return Ok(());
        }
        Err(Failure::Work(format!("the mail database cannot be used: {}", refusal(client, status, &body))))
    }

    /// Makes a folder unless it is there; says why if the server will not.
    fn make_folder(&self, name: &str) -> Result<Option<String>, String> {
        if let Some(known) = self.folders.lock().get(name) {
            return Ok(known.clone());
        }
        let path = format!("_folder/{}", escape(name));
        let members = self.ask(Method::GET, &format!("{path}/_members?limit=0"), None);
        let mut answer = members.map_err(|error| error.to_string())?;
        if answer.0 == StatusCode::NOT_FOUND {
            let columns = json!({"columns": *mail_columns()});
            answer = self.ask(Method::PUT, &path, Some(columns)).map_err(|error| error.to_string())?;
        }
        let (status, body) = answer;
        let refused = (!status.is_success()).then(|| refusal(&self.letters.client, status, &body));
        if status == StatusCode::UNAUTHORIZED || status.is_server_error() {
            return Err(refused.unwrap_or_default());
        }
        self.folders.lock().insert(name.to_owned(), refused.clone());
        Ok(refused)
    }

    /// What a folder is for; `None`: it is not there.
    pub(crate) fn folder_kind(&self, name: &str) -> Result<Option<FolderKind>, String> {
        let (status, body) = self.ask(Method::GET, "_folder", None).map_err(|error| error.to_string())?;
        if !status.is_success() {
            return Err(self.refusal(status, &body));
        }
        let answer: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        let folders = answer.get("folders").and_then(Value::as_array).into_iter().flatten();
        let text = |folder: &Value, member: &str| folder.get(member)?.as_str().map(str::to_owned);
        let mut named = folders
            .filter(|folder| text(folder, "name").is_some_and(|known| known.eq_ignore_ascii_case(name)));
        Ok(named.find_map(|folder| FolderKind::parse(&text(folder, "kind")?)))
    }

    /// Makes a folder for something.
    pub(crate) fn make_folder_of(&self, name: &str, kind: FolderKind) -> Result<(), String> {
        let path = format!("_folder/{}", escape(name));
        let asked = self.ask(Method::PUT, &path, Some(json!({"kind": kind.text()})));
        let (status, body) = asked.map_err(|error| error.to_string())?;
        if status.is_success() { Ok(()) } else { Err(self.refusal(status, &body)) }
    }

    /// Stores documents into a folder. Gives what the server says of each, in their order.
    pub(crate) fn store_documents(&self, folder: &str, documents: &[Value]) -> Result<Vec<Value>, String> {
        let (path, count) = (format!("_bulk_docs?folder={}", escape(folder)), documents.len());
        let asked = self.ask(Method::POST, &path, Some(json!({"docs": documents})));
        let (status, body) = asked.map_err(|error| error.to_string())?;
        if !status.is_success() {
            return Err(self.refusal(status, &body));
        }
        let rows: Vec<Value> = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        if rows.len() != count {
            return Err(format!("the server answers {} rows for {count} documents", rows.len()));
        }
        Ok(rows)
    }

    fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let path = format!("{}/{path}", self.letters.database);
        let body = body.map(|body| body.to_string().into());
        self.runtime.block_on(self.letters.client.request(method, &path, body))
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> String {
        refusal(&self.letters.client, status, body)
    }
}

impl ImportTarget for RemoteMail {
    type Pending = JoinHandle<Result<StoredBatch, String>>;

    fn position(&self) -> Result<Option<Position>, String> {
        let (status, body) =
            self.ask(Method::GET, &self.checkpoint, None).map_err(|error| error.to_string())?;
        match status {
            StatusCode::OK => Ok(serde_json::from_slice(&body).ok().as_ref().and_then(read_position)),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(self.refusal(status, &body)),
        }
    }

    fn submit(&self, batch: Vec<ImportedMemo>) -> Result<Self::Pending, String> {
        let mut stored = StoredBatch::default();
        let mut groups = Groups::new();
        for memo in batch {
            let mut reason = None;
            for folder in &memo.folders {
                reason = reason.or(self.make_folder(folder)?);
            }
            match reason {
                Some(reason) => stored.refused.push(RefusedMessage { place: memo.place, reason }),
                None => groups.entry((memo.folders.clone(), memo.read)).or_default().push(memo),
            }
        }
        let letters = self.letters.clone();
        Ok(self.runtime.spawn(async move {
            for memos in groups.into_values() {
                letters.store(memos, &mut stored).await?;
            }
            Ok(stored)
        }))
    }

    fn finish(&self, pending: Self::Pending, position: &Position) -> Result<StoredBatch, String> {
        let stored = self.runtime.block_on(pending).map_err(|error| error.to_string())??;
        let (status, body) = self
            .ask(Method::PUT, &self.checkpoint, Some(write_position(position)))
            .map_err(|error| error.to_string())?;
        if status.is_success() { Ok(stored) } else { Err(self.refusal(status, &body)) }
    }

    fn complete(&self) -> Result<(), String> {
        let (status, body) =
            self.ask(Method::DELETE, &self.checkpoint, None).map_err(|error| error.to_string())?;
        if status.is_success() || status == StatusCode::NOT_FOUND {
            Ok(())
        } else {
            Err(self.refusal(status, &body))
        }
    }
}
