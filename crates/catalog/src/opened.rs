//! Which databases are open: never two of one database, however many ask for it at once.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use quick_cache::sync::Cache;
use scrinium_database::{Database, Result};
use scrinium_views::{OpenDatabase, Views, ViewsContext};

/// At most this many databases that are not open are read at once.
const LOADING: usize = 64;

/// Databases by name.
pub(crate) struct Opened {
    used: Mutex<Used>,
    /// Databases that are kept ready though nobody may use them.
    idle: Cache<String, OpenDatabase>,
    /// Held while a database is read that is not open, by a part of all names, so that nobody waits who reads another.
    loading: [Mutex<()>; LOADING],
    hasher: RandomState,
}

/// Databases in use, and what is left of the names of those that were.
struct Used {
    databases: HashMap<String, Known>,
    /// Names that are left over are removed when there are this many, which is twice as many as stayed the last time: so
    /// each database that is opened costs two of them.
    sweep_at: usize,
    /// No fewer than these.
    sweep_at_least: usize,
}

/// A database that may be in use, with its views, which last as long.
struct Known {
    database: Weak<Database>,
    views: Weak<Views>,
    server: Weak<ViewsContext>,
}

impl Known {
    fn of(database: &OpenDatabase) -> Self {
        let server = Arc::downgrade(database.server());
        Self {
            database: Arc::downgrade(database.database()),
            views: Arc::downgrade(database.views()),
            server,
        }
    }

    fn upgrade(&self) -> Option<OpenDatabase> {
        Some(OpenDatabase::of(self.database.upgrade()?, self.views.upgrade()?, self.server.upgrade()?))
    }
}

impl Used {
    fn insert(&mut self, name: &str, database: &OpenDatabase) {
        self.databases.insert(name.to_owned(), Known::of(database));
        if self.databases.len() >= self.sweep_at {
            self.databases.retain(|_, known| known.database.strong_count() > 0);
            self.sweep_at = self.sweep_at_least.max(2 * self.databases.len());
        }
    }
}

impl Opened {
    /// Keeps this many ready.
    pub(crate) fn new(idle_databases: usize) -> Self {
        let sweep_at = 2 * idle_databases.max(1);
        let used = Used { databases: HashMap::new(), sweep_at, sweep_at_least: sweep_at };
        Self {
            used: Mutex::new(used),
            idle: Cache::new(idle_databases.max(1)),
            loading: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
        }
    }

    /// The database of this name; `load` reads it if it is not open.
    ///
    /// # Errors
    /// Those of `load`.
    pub(crate) fn get(
        &self,
        name: &str,
        load: impl FnOnce() -> Result<OpenDatabase>,
    ) -> Result<OpenDatabase> {
        if let Some(database) = self.idle.get(name).or_else(|| self.used(name)) {
            return Ok(database);
        }
        // Who drops or moves a database has it open, so that nobody reads what is about to go.
        let _loading = self.loading(name).map(Mutex::lock);
        if let Some(database) = self.used(name) {
            return Ok(database);
        }
        let database = load()?;
        self.replace(name, &database);
        Ok(database)
    }

    /// The database of this name if somebody uses it; it is kept ready from now on.
    fn used(&self, name: &str) -> Option<OpenDatabase> {
        let used = self.used.lock();
        let database = used.databases.get(name).and_then(Known::upgrade)?;
        // Under the lock, so that a database that is dropped meanwhile does not come back.
        self.idle.insert(name.to_owned(), database.clone());
        Some(database)
    }

    fn loading(&self, name: &str) -> Option<&Mutex<()>> {
        let part = self.hasher.hash_one(name) % LOADING as u64;
        self.loading.get(usize::try_from(part).ok()?)
    }

    /// The database of this name, if it is open.
    pub(crate) fn find(&self, name: &str) -> Option<OpenDatabase> {
        self.used.lock().databases.get(name).and_then(Known::upgrade)
    }

    /// Gives this one to all who open the database from now on.
    pub(crate) fn replace(&self, name: &str, database: &OpenDatabase) {
        let mut used = self.used.lock();
        used.insert(name, database);
        self.idle.insert(name.to_owned(), database.clone());
    }

    /// Forgets a database that is gone.
    pub(crate) fn remove(&self, name: &str) {
        let mut used = self.used.lock();
        self.idle.remove(name);
        used.databases.remove(name);
    }

    /// What is kept ready.
    pub(crate) fn idle(&self) -> &Cache<String, OpenDatabase> {
        &self.idle
    }
}
