//! A store in a temporary folder, with databases on it.

pub mod mail;
pub mod stores;
pub(crate) mod words;

use std::time::Duration;

use scrinium_catalog::Databases;
use scrinium_clock::{Clock, ManualClock};
use scrinium_database::{
    Access, DatabaseError, DatabaseOptions, Edit, EditMode, ReadOptions, Row, RowQuery, Rows, Updated,
};
use scrinium_fault::{crash_image, quick_folder};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::Value;

/// That of a test: everything.
pub static SERVER: Access = Access::of_the_server("a test");

/// A database as somebody sees it.
#[derive(Clone)]
pub struct Seen {
    pub database: OpenDatabase,
    pub access: Access,
}

impl Seen {
    pub fn by_the_server(database: &OpenDatabase) -> Self {
        Self { database: database.clone(), access: SERVER.clone() }
    }

    pub fn view(&self, design: &str, view: &str, query: RowQuery) -> Result<Rows, DatabaseError> {
        self.database.view(design, view, query, &self.access)
    }
}

pub struct Server {
    pub store: Option<Store>,
    pub databases: Databases,
    /// Of a server whose time the test moves.
    manual: Option<ManualClock>,
    /// Last, so that it is still there when the store is closed.
    pub dir: tempfile::TempDir,
}

impl Server {
    pub fn new() -> Self {
        Self::with(DatabaseOptions::default())
    }

    /// In memory where there is a folder in memory: for many runs that ask what is written, not whether it is synced.
    pub fn quick() -> Self {
        Self::open(quick_folder(), DatabaseOptions::default(), None)
    }

    pub fn with(options: DatabaseOptions) -> Self {
        Self::open(tempfile::tempdir().unwrap(), options, None)
    }

    /// As [`Server::quick`]; time passes by [`Server::pass`] alone, also when it is opened again.
    pub fn timed() -> Self {
        Self::timed_with(DatabaseOptions::default())
    }

    pub fn timed_with(options: DatabaseOptions) -> Self {
        Self::open(quick_folder(), options, Some(Clock::manual(1_790_000_000_000)))
    }

    pub fn pass(&self, time: Duration) {
        self.manual.as_ref().unwrap().advance(time);
    }

    /// A server over what a crash at this moment would leave.
    pub fn crash(&self) -> Self {
        let dir = quick_folder();
        crash_image(self.dir.path(), dir.path());
        Self::open(dir, DatabaseOptions::default(), self.manual.clone())
    }

    /// Closes the store and opens it again.
    pub fn reopen(self) -> Self {
        self.reopen_with(DatabaseOptions::default())
    }

    pub fn reopen_with(self, options: DatabaseOptions) -> Self {
        let Self { dir, store, databases, manual } = self;
        drop(databases);
        store.unwrap().close().unwrap();
        Self::open(dir, options, manual)
    }

    fn open(dir: tempfile::TempDir, options: DatabaseOptions, manual: Option<ManualClock>) -> Self {
        let mut store_options = StoreOptions::new(dir.path());
        store_options.budget_bytes = Some(64 << 20);
        store_options.log_extent_bytes = 4 << 20;
        store_options.clock = manual.as_ref().map(ManualClock::clock).unwrap_or_default();
        let store = Store::open(store_options, &Registry::new()).unwrap();
        let databases = Databases::open(&store, options).unwrap();
        Self { store: Some(store), databases, manual, dir }
    }
}

pub fn edit(json: &Value) -> Edit {
    Edit { json: json.to_string().into(), ..Edit::default() }
}

pub fn put(database: &OpenDatabase, json: &Value) -> Result<Updated, DatabaseError> {
    database.update(vec![edit(json)], EditMode::Interactive, &SERVER)?.wait()?.remove(0)
}

pub fn replicate(database: &OpenDatabase, json: &Value) -> Result<Updated, DatabaseError> {
    database.update(vec![edit(json)], EditMode::Replicated, &SERVER)?.wait()?.remove(0)
}

pub fn get(database: &OpenDatabase, id: &str) -> Result<Value, DatabaseError> {
    get_with(database, id, &ReadOptions::default())
}

pub fn get_with(database: &OpenDatabase, id: &str, options: &ReadOptions) -> Result<Value, DatabaseError> {
    database.read(id, options, &SERVER).map(|document| serde_json::from_str(&document.json).unwrap())
}

/// All bytes of an attachment `file`.
pub fn read_attachment(database: &OpenDatabase, id: &str) -> Result<Vec<u8>, DatabaseError> {
    let reader = database.open_attachment(id, "file", None, &SERVER)?;
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < reader.length {
        let piece = reader.read(bytes.len() as u64, 200_000)?;
        assert!(!piece.is_empty(), "{id} ends early");
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// All rows, read a few at a time.
pub fn all_rows(mut rows: Rows) -> Vec<Row> {
    let mut all = Vec::new();
    loop {
        let some = rows.next_rows(3).unwrap();
        if some.is_empty() {
            return all;
        }
        all.extend(some);
    }
}
