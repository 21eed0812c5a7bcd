//! A server's databases in a folder, with people in its directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_database::{Access, ChangesQuery, DatabaseOptions, Edit, EditMode, Updated};
use scrinium_directory::{DIRECTORY_DATABASE, Directory, NameLookup, prepare};
pub use scrinium_fault::noise;
use scrinium_mail::{Mailboxes, Resolver, Router, RouterOptions};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::{Map, Value, json};

/// A test may do everything.
pub static SERVER: Access = Access::of_the_server("a test");

pub struct Server {
    pub store: Store,
    pub databases: Databases,
    pub statistics: Registry,
    pub directory: Arc<Directory>,
    pub mailboxes: Mailboxes,
}

impl Server {
    /// Opens a server with two mail.boxes, and `people` (short names) in its directory.
    pub fn open(folder: &Path, people: &[&str]) -> Self {
        Self::with(folder, people, DatabaseOptions::default())
    }

    pub fn with(folder: &Path, people: &[&str], options: DatabaseOptions) -> Self {
        Self::at(folder, people, options, Clock::default())
    }

    pub fn at(folder: &Path, people: &[&str], options: DatabaseOptions, clock: Clock) -> Self {
        let mut store_options = StoreOptions::new(folder);
        store_options.clock = clock;
        store_options.budget_bytes = Some(64 << 20);
        store_options.log_extent_bytes = 4 << 20;
        let statistics = Registry::new();
        let store = Store::open(store_options, &statistics).unwrap();
        let databases = Databases::open(&store, options).unwrap();
        let directory = Arc::new(Directory::open(&databases).unwrap());
        let mailboxes = Mailboxes::open(&databases, 2, &statistics).unwrap();
        let server = Self { store, databases, statistics, directory, mailboxes };
        for name in people {
            server.add(json!({"_id": format!("person:{name}"), "Form": "Person", "ShortName": name,
                "FullName": [format!("{name} Someone")], "InternetAddress": format!("{name}@acme.example")}));
        }
        server
    }

    /// Writes a person or group into the directory, if it is not there.
    pub fn add(&self, document: Value) {
        let document = prepare(fields(document)).unwrap().document;
        let database = self.databases.get(DIRECTORY_DATABASE).unwrap();
        drop(put(&database, Value::Object(document)));
    }

    pub fn router(&self) -> Router {
        self.router_with(RouterOptions::default())
    }

    pub fn router_with(&self, options: RouterOptions) -> Router {
        self.router_over(self.directory.clone(), options)
    }

    pub fn router_over(&self, lookup: Arc<dyn NameLookup>, options: RouterOptions) -> Router {
        let resolver = Resolver::new(lookup, &["home.example".to_owned()]);
        Router::open(&self.databases, &self.mailboxes, resolver, options, &self.statistics).unwrap()
    }

    pub fn deposit(&self, memo: Value) -> Updated {
        self.mailboxes.deposit(fields(memo), Vec::new()).unwrap()
    }

    /// Runs rounds until none finds anything to do.
    pub fn route_all(&self, router: &mut Router) {
        while router.round().unwrap().memos > 0 {}
    }

    pub fn statistic(&self, name: &str) -> f64 {
        let snapshot = self.statistics.snapshot();
        #[allow(clippy::cast_precision_loss, reason = "small numbers")]
        let counter = snapshot.counters.get(name).map(|count| *count as f64);
        counter.or_else(|| snapshot.gauges.get(name).copied()).unwrap_or_default()
    }

    /// The documents of a database, without tombstones; none where there is no such database.
    pub fn documents(&self, name: &str) -> Vec<Map<String, Value>> {
        let Ok(database) = self.databases.get(name) else { return Vec::new() };
        documents(&database)
    }

    pub fn close(self) {
        let Self { store, databases, directory, mailboxes, statistics } = self;
        drop((databases, directory, mailboxes, statistics));
        store.close().unwrap();
    }
}

pub fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("not an object: {other}"),
    }
}

pub fn put(database: &OpenDatabase, document: Value) -> scrinium_database::Result<Updated> {
    let edit = Edit { json: document.to_string().into(), ..Edit::default() };
    database.update(vec![edit], EditMode::Interactive, &SERVER)?.wait()?.remove(0)
}

pub fn documents(database: &OpenDatabase) -> Vec<Map<String, Value>> {
    let query = ChangesQuery { include_documents: true, ..ChangesQuery::default() };
    let mut changes = database.changes(query, &SERVER).unwrap();
    let mut documents = Vec::new();
    loop {
        let some = changes.next_changes(100).unwrap();
        if some.is_empty() {
            return documents;
        }
        for change in some.into_iter().filter(|change| !change.deleted) {
            documents.push(serde_json::from_str(&change.document.unwrap()).unwrap());
        }
    }
}

/// The folder of `scripts/corpus`, or `None` and the test is skipped.
pub fn corpus() -> Option<PathBuf> {
    let folder = corpus_folder();
    if folder.is_none() {
        scrinium_fault::skip(
            "the corpus of real mail is not here: scripts/corpus fetches it, or SCRINIUM_CORPUS names it",
        );
    }
    folder
}

fn corpus_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("SCRINIUM_CORPUS").map(PathBuf::from);
    folder.or_else(|| Some(cache()?.join("corpus/spam-assassin-0.2.3/data"))).filter(|folder| folder.is_dir())
}

fn cache() -> Option<PathBuf> {
    if let Some(cache) = std::env::var_os("SCRINIUM_CACHE") {
        return Some(PathBuf::from(cache));
    }
    let of_user = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    Some(of_user.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?.join("scrinium"))
}

/// How many packages `scripts/corpus` and `scripts/corpora` take messages from.
pub const MOST_CORPORA: usize = 7;

/// The messages of one package, each a file, in the order of their paths.
pub struct Corpus {
    pub paths: Vec<PathBuf>,
}

/// What `scripts/corpus` and `scripts/corpora` have brought.
pub fn corpora() -> Vec<Corpus> {
    let others = cache().map(|cache| cache.join("corpus/messages-1"));
    let others = others.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten();
    let mut folders: Vec<PathBuf> = others.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders.extend(corpus_folder());
    folders.iter().map(|folder| Corpus { paths: files_below(folder) }).collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if !is_described(&entry.path()) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// Whether a file of a package is no message, but says something of messages.
fn is_described(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["json", "js"].iter().any(|known| extension == *known))
        || path.file_name().is_some_and(|name| name == "README")
}
