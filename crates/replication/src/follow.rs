//! Replications that documents of the database `_replicator` order: begun when one is written or changed, ended when it is
//! deleted, and how they ended is written into it, as in CouchDB.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use scrinium_database::{
    Access, ChangesQuery, Database, DatabaseError, Edit, EditMode, Identity, ReadOptions, Since,
};
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

use crate::REPLICATOR_DATABASE;
use crate::error::{ReplicationError, Result};
use crate::job::{Job, JobState};
use crate::name::{digest_of, iso_time};
use crate::order::Order;
use crate::replicator::Replicator;
use crate::secret;

/// How often is looked whether the database is there, while it is not.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Documents that are read at once.
const PAGE: usize = 100;

/// How long, and how often, a document that was just written is waited for until it is carried out.
const SOON_LOOKS: usize = 100;
const SOON_EVERY: Duration = Duration::from_millis(30);

/// How often a document is read again that somebody else wrote in between.
const TRIES: usize = 5;

/// What the documents have ordered, by their ids.
#[derive(Default)]
pub(crate) struct Documents {
    known: Mutex<BTreeMap<String, DocumentState>>,
}

/// What became of what a document orders.
#[derive(Clone)]
struct DocumentState {
    /// Of what it orders.
    fingerprint: String,
    job: Option<Arc<Job>>,
    source: Value,
    target: Value,
    /// How it ended, where there is no job any more.
    ended: Option<(String, Value)>,
    changed: String,
}

/// A document as it was read.
struct Read {
    id: String,
    /// `None`: it was deleted.
    members: Option<Map<String, Value>>,
    secret: Option<Bytes>,
}

fn server() -> Access {
    Access::of_the_server("replications that documents order")
}

impl Replicator {
    /// Carries out what the documents of `_replicator` order, from now on.
    #[must_use]
    pub fn follow(&self) -> JoinHandle<()> {
        let replicator = self.clone();
        self.runtime.spawn(async move {
            let mut stopping = replicator.stopping.subscribe();
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stopping| *stopping) => {}
                () = replicator.follow_documents() => {}
            }
        })
    }

    async fn follow_documents(&self) {
        loop {
            let databases = self.databases.clone();
            let opened = self.workers.run(move || databases.get(REPLICATOR_DATABASE)).await;
            match opened {
                Ok(Ok(database)) => {
                    if let Err(error) = self.follow_database(&database).await {
                        tracing::warn!(%error, "the documents of _replicator cannot be read; tried again soon");
                    }
                }
                Ok(Err(DatabaseError::NotFound { .. })) => self.forget_all(),
                Ok(Err(error)) => tracing::warn!(%error, "_replicator cannot be opened; tried again soon"),
                Err(_busy) => {}
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Ends when the database is gone, or was moved.
    async fn follow_database(&self, database: &Arc<Database>) -> Result<()> {
        let mut seen = database.watch();
        let mut since = Since::Beginning;
        loop {
            seen.borrow_and_update();
            loop {
                let (documents, reached, is_last) = self.read_documents(database, since).await?;
                since = Since::At(reached);
                for document in documents {
                    self.apply(database, document).await;
                }
                if is_last {
                    break;
                }
            }
            if seen.changed().await.is_err() {
                return Ok(());
            }
        }
    }

    async fn read_documents(
        &self,
        database: &Arc<Database>,
        since: Since,
    ) -> Result<(Vec<Read>, String, bool)> {
        let database = Arc::clone(database);
        let read = move || {
            let query = ChangesQuery { since, include_documents: true, ..ChangesQuery::default() };
            let mut changes = database.changes(query, &server())?;
            let mut documents = Vec::new();
            for change in changes.next_changes(PAGE)? {
                if change.id.starts_with('_') {
                    continue;
                }
                let members = change.document.filter(|_| !change.deleted).and_then(|json| json.to_object());
                let secret = database.secret(&change.id)?;
                documents.push(Read { id: change.id, members, secret });
            }
            Ok::<_, DatabaseError>((documents, changes.last_sequence(), changes.is_at_end()))
        };
        Ok(self.workers.run(read).await??)
    }

    async fn apply(&self, database: &Arc<Database>, document: Read) {
        let Read { id, members, secret } = document;
        let Some(mut members) = members else {
            if let Some(job) = self.documents.known.lock().remove(&id).and_then(|known| known.job) {
                job.cancel();
            }
            return;
        };
        let fingerprint = fingerprint(&members, secret.as_deref());
        let member = |name: &str| members.get(name).cloned().unwrap_or_default();
        let mut state = DocumentState {
            fingerprint: fingerprint.clone(),
            job: None,
            source: shown(&member("source")),
            target: shown(&member("target")),
            ended: None,
            changed: iso_time(&self.clock),
        };
        let known = self.documents.known.lock().get(&id).cloned();
        let word = member("_replication_state");
        if let Some(word @ ("completed" | "failed")) = word.as_str() {
            let info = if word == "failed" {
                json!({"error": member("_replication_state_reason")})
            } else {
                member("_replication_stats")
            };
            state.ended = Some((word.to_owned(), info));
            state.job = known.and_then(|known| known.job).filter(|job| job.is_over());
            self.documents.known.lock().insert(id, state);
            return;
        }
        if let Some(job) = known.as_ref().and_then(|known| known.job.as_ref()) {
            if known.as_ref().is_some_and(|known| known.fingerprint == fingerprint) && !job.is_over() {
                return;
            }
            job.cancel();
            drop(job.over().await);
        }
        let owner = member("owner");
        secret::put_back(&mut members, secret.as_deref());
        match self.begin_document(&id, &members, owner.as_str()) {
            Ok(job) => {
                state.job = Some(Arc::clone(&job));
                self.documents.known.lock().insert(id.clone(), state);
                self.write_end_of(database, id, job, fingerprint);
            }
            Err(error) => {
                let reason = error.told();
                state.ended = Some(("failed".to_owned(), json!({"error": reason})));
                self.documents.known.lock().insert(id.clone(), state);
                let members = json!({"_replication_state": "failed", "_replication_state_reason": reason});
                self.write_state(database, &id, &fingerprint, members).await;
            }
        }
    }

    fn begin_document(
        &self,
        id: &str,
        members: &Map<String, Value>,
        owner: Option<&str>,
    ) -> Result<Arc<Job>> {
        let order = Order::parse(members)?;
        let owner = owner.and_then(|owner| self.people.named(owner)).ok_or_else(|| {
            ReplicationError::order("Nobody answers for this replication: its `owner` is not known here.")
        })?;
        order.check_allowed(owner.is_administrator())?;
        self.begin(&order, &owner, Some(id))
    }

    /// Writes into the document how its job ends.
    fn write_end_of(&self, database: &Arc<Database>, id: String, job: Arc<Job>, fingerprint: String) {
        let (replicator, database) = (self.clone(), Arc::clone(database));
        self.runtime.spawn(async move {
            let ended = job.over().await;
            let members = match (job.status().state, ended) {
                (JobState::Completed, _) => {
                    json!({"_replication_state": "completed", "_replication_stats": job.counts.shown()})
                }
                (JobState::Failed, Err(error)) => {
                    json!({"_replication_state": "failed", "_replication_state_reason": error.told()})
                }
                _ => return,
            };
            replicator.write_state(&database, &id, &fingerprint, members).await;
        });
    }

    /// Writes members into a document, unless it orders something else by now.
    async fn write_state(&self, database: &Arc<Database>, id: &str, fingerprint: &str, members: Value) {
        let Value::Object(mut members) = members else { return };
        members.insert("_replication_state_time".to_owned(), iso_time(&self.clock).into());
        for _ in 0..TRIES {
            match self.try_write_state(database, id, (fingerprint, &members)).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(id, %error, "how a replication ended cannot be written into its document");
                    return;
                }
            }
        }
    }

    /// False if somebody else wrote in between.
    async fn try_write_state(
        &self,
        database: &Arc<Database>,
        id: &str,
        (known, state): (&str, &Map<String, Value>),
    ) -> Result<bool> {
        let (database, id) = (Arc::clone(database), id.to_owned());
        let (known, state) = (known.to_owned(), state.clone());
        let admission = self.workers.admit().await?;
        let submitted = admission.run(move || {
            let document = match database.read(&id, &ReadOptions::default(), &server()) {
                Err(DatabaseError::NotFound { .. }) => return Ok(None),
                read => read?,
            };
            let mut members = document.json.to_object().unwrap_or_default();
            if fingerprint(&members, database.secret(&id)?.as_deref()) != known {
                return Ok(None);
            }
            members.extend(state);
            let json = Value::from(members).to_string().into();
            let edit = Edit { id: Some(id), json, ..Edit::default() };
            database.update(vec![edit], EditMode::Interactive, &server()).map(Some)
        });
        let Some(update) = submitted.await?? else { return Ok(true) };
        for result in update.durable().await? {
            match result {
                Err(DatabaseError::Conflict) => return Ok(false),
                stored => stored.map(drop)?,
            }
        }
        Ok(true)
    }

    fn forget_all(&self) {
        let known = std::mem::take(&mut *self.documents.known.lock());
        known.into_values().filter_map(|known| known.job).for_each(|job| job.cancel());
    }

    /// What the documents order and what became of it, as `_scheduler/docs` lists it.
    #[must_use]
    pub fn documents_shown(&self) -> Vec<Value> {
        let known: Vec<(String, DocumentState)> =
            self.documents.known.lock().iter().map(|(id, known)| (id.clone(), known.clone())).collect();
        known.iter().map(|(id, known)| self.document(id, known)).collect()
    }

    /// The same of one document.
    #[must_use]
    pub fn document_shown(&self, id: &str) -> Option<Value> {
        let known = self.documents.known.lock().get(id).cloned()?;
        Some(self.document(id, &known))
    }

    /// The same, of a document that was written a moment ago too.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn document_soon_shown(&self, id: &str) -> Result<Option<Value>> {
        for _ in 0..SOON_LOOKS {
            if let Some(shown) = self.document_shown(id) {
                return Ok(Some(shown));
            }
            let (databases, wanted) = (self.databases.clone(), id.to_owned());
            let is_there = self.workers.run(move || {
                let database = databases.get(REPLICATOR_DATABASE)?;
                database.read(&wanted, &ReadOptions::default(), &server())
            });
            match is_there.await? {
                Err(DatabaseError::NotFound { .. }) => return Ok(None),
                found => found.map(drop)?,
            }
            tokio::time::sleep(SOON_EVERY).await;
        }
        Ok(None)
    }

    fn document(&self, id: &str, known: &DocumentState) -> Value {
        let status = known.job.as_ref().map(|job| job.status());
        let job = known.job.as_ref();
        let (state, info) = match (&known.ended, &status, job) {
            (Some((word, info)), ..) => (word.as_str(), info.clone()),
            (None, Some(status), Some(job)) => (status.state.word(), job.info(status)),
            _ => ("initializing", Value::Null),
        };
        json!({
            "database": REPLICATOR_DATABASE,
            "doc_id": id,
            "id": job.map(|job| job.id.as_str()),
            "node": self.node(),
            "source": known.source,
            "target": known.target,
            "state": state,
            "info": info,
            "error_count": status.as_ref().map_or(0, |status| status.failures),
            "start_time": status.as_ref().map_or(&known.changed, |status| &status.started),
            "last_updated": status.as_ref().map_or(&known.changed, |status| &status.changed),
            "source_proxy": null,
            "target_proxy": null,
        })
    }
}

/// A source or a target, as it is shown.
fn shown(end: &Value) -> Value {
    let url = end.as_str().or_else(|| end.get("url").and_then(Value::as_str));
    crate::order::without_credentials(url.unwrap_or_default()).into()
}

/// What a document orders, apart from what became of it.
fn fingerprint(members: &Map<String, Value>, secret: Option<&[u8]>) -> String {
    let mut ordered: Vec<(&String, &Value)> =
        members.iter().filter(|(name, _)| !name.starts_with('_')).collect();
    ordered.sort_unstable_by_key(|(name, _)| name.as_str());
    let secret = String::from_utf8_lossy(secret.unwrap_or_default());
    digest_of(&[&json!(ordered).to_string(), &secret])
}

/// Prepares a document that is written into `_replicator`: who writes it answers for it, and its credentials are not
/// stored where anybody reads them. Gives the credentials.
///
/// # Errors
/// Why it cannot be carried out, and so is not stored.
pub fn prepare_document(
    document: &mut Map<String, Value>,
    by: Option<&Identity>,
) -> std::result::Result<Map<String, Value>, String> {
    let id = document.get("_id").and_then(Value::as_str).unwrap_or_default();
    if id.starts_with("_design/") || document.get("_deleted") == Some(&Value::Bool(true)) {
        return Ok(Map::new());
    }
    // What the server itself writes says how it ended.
    let Some(by) = by else { return Ok(Map::new()) };
    let order = Order::parse(document).map_err(|error| error.to_string())?;
    order.check_allowed(by.is_administrator()).map_err(|error| error.to_string())?;
    document.insert("owner".to_owned(), by.name().map_or(Value::Null, Value::from));
    Ok(secret::take_out(document))
}
