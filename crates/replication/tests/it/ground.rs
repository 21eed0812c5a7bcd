//! Servers without sockets: stores in temporary folders, with databases that are ends of replications.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bytes::Bytes;
use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_database::{
    Access, Database, DatabaseError, DatabaseOptions, Edit, EditMode, Identity, InitialAccess, OpenRevision,
    OpenRevisions, ReadOptions,
};
use scrinium_replication::{
    Counts, End, EngineOptions, Filter, LocalEnd, People, Replication, Replicator, ReplicatorOptions, Turns,
};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_worker::{WorkerOptions, WorkerPool};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// `admin` administers; everybody else is a person of that name, but for `nobody`.
pub(crate) struct Everybody;

impl People for Everybody {
    fn present(&self, identity: &Identity) -> Option<Identity> {
        self.named(identity.name()?)
    }

    fn named(&self, name: &str) -> Option<Identity> {
        match name {
            "nobody" => None,
            "admin" => Some(Identity::new("admin", vec!["_admin".to_owned()])),
            name => Some(Identity::new(name, Vec::new())),
        }
    }
}

pub(crate) fn person(name: &str) -> Identity {
    Everybody.named(name).unwrap()
}

/// A store with databases.
pub(crate) struct Ground {
    pub(crate) databases: Databases,
    pub(crate) workers: WorkerPool,
    pub(crate) statistics: Registry,
    _dir: tempfile::TempDir,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let statistics = Registry::new();
        let mut options = StoreOptions::new(dir.path());
        options.budget_bytes = Some(64 << 20);
        options.log_extent_bytes = 4 << 20;
        options.log_spare_extents = 0;
        let store = Store::open(options, &statistics).unwrap();
        // Closing takes RocksDB a second, which the tests need not wait for: the process's end does it.
        std::mem::forget(store.clone());
        let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
        let options = WorkerOptions { threads: 8, ..WorkerOptions::default() };
        Self { databases, workers: WorkerPool::new(&options, &statistics), statistics, _dir: dir }
    }

    pub(crate) fn create(&self, name: &str) -> Arc<Database> {
        Arc::clone(&self.databases.create(name, &InitialAccess::Everybody).unwrap())
    }

    /// A database as an end, of a person.
    pub(crate) fn end(&self, person_name: &str, name: &str) -> Arc<dyn End> {
        let whose = (person(person_name), name);
        Arc::new(LocalEnd::new(self.databases.clone(), self.workers.clone(), Arc::new(Everybody), whose))
    }

    pub(crate) fn replicator(&self) -> Replicator {
        self.replicator_with(ReplicatorOptions::default())
    }

    pub(crate) fn replicator_with(&self, options: ReplicatorOptions) -> Replicator {
        Replicator::new(&self.databases, &self.workers, Arc::new(Everybody), (options, &self.statistics))
    }
}

pub(crate) fn server() -> Access {
    Access::of_the_server("a test")
}

/// Stores a document.
pub(crate) async fn put(database: &Arc<Database>, json: Value) -> String {
    edit(database, json, EditMode::Interactive).await
}

/// Stores a revision under its own name.
pub(crate) async fn bring(database: &Arc<Database>, json: Value) -> String {
    edit(database, json, EditMode::Replicated).await
}

/// Stores a document, unless its leaf was edited meanwhile.
pub(crate) async fn try_put(database: &Arc<Database>, json: &Value) -> Option<String> {
    match try_edit(database, json, EditMode::Interactive).await {
        Err(DatabaseError::Conflict) => None,
        stored => Some(stored.unwrap()),
    }
}

async fn edit(database: &Arc<Database>, json: Value, mode: EditMode) -> String {
    try_edit(database, &json, mode).await.unwrap()
}

async fn try_edit(database: &Arc<Database>, json: &Value, mode: EditMode) -> Result<String, DatabaseError> {
    let edit = Edit { json: Bytes::from(json.to_string()), ..Edit::default() };
    let update = database.update(vec![edit], mode, &server()).unwrap();
    Ok(update.durable().await.unwrap().remove(0)?.revision)
}

/// All leaves of a document with their bodies, attachments in them.
pub(crate) fn leaves(database: &Arc<Database>, id: &str) -> Vec<Value> {
    let options = ReadOptions { revisions: true, attachments: true, ..ReadOptions::default() };
    let Ok(found) = database.open_revisions(id, &OpenRevisions::All, &options, &server()) else {
        return Vec::new();
    };
    let mut leaves: Vec<Value> = found
        .into_iter()
        .map(|found| match found {
            OpenRevision::Found(document) => {
                let mut filled = scrinium_document::json::JsonWriter::new();
                filled.json(&document.json);
                let mut filled = filled.into_filled();
                let mut text = Vec::new();
                while let Some(piece) = filled.next_piece(1 << 20).unwrap() {
                    text.extend_from_slice(&piece);
                }
                serde_json::from_slice(&text).unwrap()
            }
            OpenRevision::Missing(revision) => json!({"missing": revision}),
        })
        .collect();
    leaves.sort_by_key(|leaf| leaf["_rev"].as_str().unwrap_or_default().to_owned());
    leaves
}

/// All documents of a database with all their leaves.
pub(crate) fn everything(database: &Arc<Database>) -> Vec<(String, Vec<Value>)> {
    let mut changes = database.changes(scrinium_database::ChangesQuery::default(), &server()).unwrap();
    let mut all = Vec::new();
    while !changes.is_at_end() {
        for change in changes.next_changes(1000).unwrap() {
            all.push((change.id.clone(), leaves(database, &change.id)));
        }
    }
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

/// Options of replications that wait for nobody long.
pub(crate) fn options() -> EngineOptions {
    EngineOptions {
        checkpoint_every: Duration::from_secs(1),
        content_wait: Duration::from_millis(2),
        ..EngineOptions::default()
    }
}

/// A replication of all documents.
pub(crate) fn replication(source: Arc<dyn End>, target: Arc<dyn End>) -> Replication {
    let name = format!("{}-{}", source.identity(), target.identity()).replace([':', '/', '@'], "-");
    Replication {
        source,
        target,
        filter: Arc::new(Filter::All),
        name,
        continuous: false,
        create_target: false,
        winners_only: false,
        since: None,
        uses_checkpoints: true,
        options: options(),
        counts: Arc::new(Counts::default()),
        clock: Clock::system(),
        turns: Turns::of(Arc::new(Semaphore::new(8))),
        read_at_once: Arc::new(AtomicUsize::new(100)),
    }
}

/// What a replication has counted.
pub(crate) fn count(replication: &Replication, name: &str) -> u64 {
    replication.counts.shown()[name].as_u64().unwrap()
}
