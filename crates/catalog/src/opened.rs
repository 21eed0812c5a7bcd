//! Which databases are open: never two of one database, however many ask for it at once.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use quick_cache::sync::Cache;
use scrinium_database::{Database, Result};

/// At most this many databases that are not open are read at once.
const LOADING: usize = 64;

/// Databases by name.
pub(crate) struct Opened {
    used: Mutex<Used>,
    /// Databases that are kept ready though nobody may use them.
    idle: Cache<String, Arc<Database>>,
    /// Held while a database is read that is not open, by a part of all names, so that nobody waits who reads another.
    loading: [Mutex<()>; LOADING],
    hasher: RandomState,
}

/// Databases in use, and what is left of the names of those that were.
struct Used {
    databases: HashMap<String, Weak<Database>>,
    /// Names that are left over are removed when there are this many, which is twice as many as stayed the last time: so
    /// each database that is opened costs two of them.
    sweep_at: usize,
    /// No fewer than these.
    sweep_at_least: usize,
}

impl Used {
    fn insert(&mut self, name: &str, database: &Arc<Database>) {
        self.databases.insert(name.to_owned(), Arc::downgrade(database));
        if self.databases.len() >= self.sweep_at {
            self.databases.retain(|_, database| database.strong_count() > 0);
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
    pub(crate) fn get(&self, name: &str, load: impl FnOnce() -> Result<Database>) -> Result<Arc<Database>> {
        if let Some(database) = self.idle.get(name).or_else(|| self.used(name)) {
            return Ok(database);
        }
        // Who drops or moves a database has it open, so that nobody reads what is about to go.
        let _loading = self.loading(name).map(Mutex::lock);
        if let Some(database) = self.used(name) {
            return Ok(database);
        }
        let database = Arc::new(load()?);
        self.replace(name, &database);
        Ok(database)
    }

    /// The database of this name if somebody uses it; it is kept ready from now on.
    fn used(&self, name: &str) -> Option<Arc<Database>> {
        let used = self.used.lock();
        let database = used.databases.get(name).and_then(Weak::upgrade)?;
        // Under the lock, so that a database that is dropped meanwhile does not come back.
        self.idle.insert(name.to_owned(), Arc::clone(&database));
        Some(database)
    }

    fn loading(&self, name: &str) -> Option<&Mutex<()>> {
        let part = self.hasher.hash_one(name) % LOADING as u64;
        self.loading.get(usize::try_from(part).ok()?)
    }

    /// The database of this name, if it is open.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Database>> {
        self.used.lock().databases.get(name).and_then(Weak::upgrade)
    }

    /// Gives this one to all who open the database from now on.
    pub(crate) fn replace(&self, name: &str, database: &Arc<Database>) {
        let mut used = self.used.lock();
        used.insert(name, database);
        self.idle.insert(name.to_owned(), Arc::clone(database));
    }

    /// Forgets a database that is gone.
    pub(crate) fn remove(&self, name: &str) {
        let mut used = self.used.lock();
        self.idle.remove(name);
        used.databases.remove(name);
    }

    /// What is kept ready.
    pub(crate) fn idle(&self) -> &Cache<String, Arc<Database>> {
        &self.idle
    }
}
