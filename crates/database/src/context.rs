//! What the databases of one store use, and what all databases of a server use.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use scrinium_contents::Contents;
use scrinium_statistics::{Registry, Tasks};
use scrinium_store::{IoLimits, Store};

use crate::changed::DatabaseEvents;
use crate::collation::Collation;
use crate::conflict_counts::ConflictCounts;
use crate::damage::Damage;
use crate::deletion::UndeleteLimits;
use crate::designs::DesignInterpreter;
use crate::error::Result;
use crate::folder::MoveWatcher;
use crate::guard::Guard;
use crate::passed_over::PassedOver;

/// What holds for all databases of a server.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseOptions {
    /// A document's JSON may have this many bytes, without its attachments.
    pub document_max_bytes: usize,
    /// An attachment may have this many bytes.
    pub attachment_max_bytes: u64,
    /// A document may have this many leaf revisions, conflicts and tombstones, before replication brings it no more:
    /// whatever is done with it takes as long as it has leaves.
    pub leaves_max: usize,
    /// For how long deleted messages can be had back, and how many bytes of them, where a database says nothing else.
    pub undelete: UndeleteLimits,
    /// What the names of databases begin with for which that holds; others keep deleted messages where they say so themselves.
    pub undelete_prefix: &'static str,
    /// A view that depends on the time (`@Now`, `@Today`) is evaluated again, whole, when it is read and this old:
    /// its formulas may say something else of any document at any moment.
    pub time_variant_seconds: i64,
    /// Databases that are kept ready though nobody uses them, some KB each; looked at when the databases are opened.
    pub idle_databases: usize,
    /// Which collation orders the keys of indexes; looked at when the databases are opened.
    #[doc(hidden)]
    pub collation: Collation,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self {
            document_max_bytes: 8 << 20,
            attachment_max_bytes: 1 << 30,
            leaves_max: 10_000,
            undelete: UndeleteLimits::NONE,
            undelete_prefix: "",
            time_variant_seconds: 15 * 60,
            idle_databases: 4096,
            collation: Collation::default(),
        }
    }
}

/// What the databases of one store use.
pub struct StoreContext {
    /// The name of the volume that the store is.
    pub volume: String,
    /// The store.
    pub store: Store,
    /// Its contents.
    pub contents: Contents,
    /// Which databases have keys in damaged files.
    pub damage: Damage,
    /// What a byte of records takes on disk, of all databases of the store, and when that was found.
    pub share: Mutex<Option<(Instant, f64)>>,
    /// What tells the store from every other one, also from copies of it.
    pub history: String,
    /// Which collation orders the keys of indexes.
    pub collation: Collation,
    /// What all databases of the server use.
    pub server: Arc<ServerContext>,
}

/// What all databases of a server use.
pub struct ServerContext {
    options: RwLock<DatabaseOptions>,
    collation: Collation,
    guard: OnceLock<Arc<dyn Guard>>,
    move_watcher: OnceLock<Arc<dyn MoveWatcher>>,
    tasks: OnceLock<Tasks>,
    /// What understands design documents.
    pub designs: Arc<dyn DesignInterpreter>,
    /// What becomes of databases.
    pub events: DatabaseEvents,
    /// The limits of background work, which all of it shares.
    pub io: IoLimits,
    /// Documents that have come into conflict, and those that are in it no more.
    pub conflicts: ConflictCounts,
    /// What was skipped because it cannot be read.
    pub passed_over: PassedOver,
    /// Databases that keep more deleted messages than they may, by name: the oldest are to go soon.
    pub too_much_deleted: Mutex<BTreeSet<String>>,
}

impl ServerContext {
    /// That of a server with these options, whose design documents `designs` understands.
    #[must_use]
    pub fn new(options: DatabaseOptions, designs: Arc<dyn DesignInterpreter>) -> Self {
        Self {
            collation: options.collation,
            options: RwLock::new(options),
            guard: OnceLock::new(),
            move_watcher: OnceLock::new(),
            tasks: OnceLock::new(),
            designs,
            events: DatabaseEvents::default(),
            io: IoLimits::default(),
            conflicts: ConflictCounts::default(),
            passed_over: PassedOver::default(),
            too_much_deleted: Mutex::default(),
        }
    }

    /// The limits for what is written, as they are set now.
    #[must_use]
    pub fn options(&self) -> DatabaseOptions {
        *self.options.read()
    }

    /// Sets other limits for what is written from now on.
    pub fn set_options(&self, options: DatabaseOptions) {
        *self.options.write() = options;
    }

    /// Checks the documents of certain databases from now on. Only the first call counts.
    pub fn set_guard(&self, guard: Arc<dyn Guard>) {
        if self.guard.set(guard).is_err() {
            tracing::warn!("the databases have a guard already");
        }
    }

    /// Tells `watcher` what people move between folders from now on. Only the first call counts.
    pub fn set_move_watcher(&self, watcher: Arc<dyn MoveWatcher>) {
        if self.move_watcher.set(watcher).is_err() {
            tracing::warn!("somebody watches what is moved between folders already");
        }
    }

    pub(crate) fn move_watcher(&self) -> Option<&dyn MoveWatcher> {
        self.move_watcher.get().map(AsRef::as_ref)
    }

    /// Shows the progress of long work in `tasks`, where it can be cancelled too. Only the first call counts.
    pub fn set_tasks(&self, tasks: &Tasks) {
        if self.tasks.set(tasks.clone()).is_err() {
            tracing::warn!("the databases show their tasks already");
        }
    }

    /// A gauge that reads 0 once the databases are closed.
    pub fn figure(
        self: &Arc<Self>,
        statistics: &Registry,
        name: &str,
        read: impl Fn(&Self) -> f64 + Send + Sync + 'static,
    ) {
        let server = Arc::downgrade(self);
        statistics.gauge(name, move || server.upgrade().map_or(0.0, |server| read(&server)));
    }
}

impl StoreContext {
    /// That of a store which is this volume.
    ///
    /// # Errors
    /// What the store reports.
    pub fn open(volume: &str, store: Store, server: Arc<ServerContext>) -> Result<Self> {
        Ok(Self {
            volume: volume.to_owned(),
            contents: Contents::open(store.clone())?,
            damage: Damage::of(&store),
            share: Mutex::default(),
            history: store.admin().history()?,
            store,
            collation: server.collation,
            server,
        })
    }

    /// As [`ServerContext::options`].
    #[must_use]
    pub fn options(&self) -> DatabaseOptions {
        self.server.options()
    }

    /// Where long work shows its progress, if anywhere.
    #[must_use]
    pub fn tasks(&self) -> Option<&Tasks> {
        self.server.tasks.get()
    }

    /// What checks the edits of a database, if anything does.
    #[must_use]
    pub fn guard(&self, database: &str) -> Option<&Arc<dyn Guard>> {
        self.server.guard.get().filter(|guard| guard.guards(database))
    }
}
