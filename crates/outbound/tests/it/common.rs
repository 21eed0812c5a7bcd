//! A server's databases with people, a router and a queue of outgoing mail, at a time that the test says.

use std::path::Path;
use std::sync::Arc;

use scrinium_catalog::Databases;
use scrinium_clock::{Clock, ManualClock};
use scrinium_database::{Access, ChangesQuery, DatabaseOptions, Edit, EditMode};
use scrinium_directory::{DIRECTORY_DATABASE, Directory, NameLookup, prepare};
use scrinium_mail::{Mailboxes, OutgoingOptions, OutgoingQueue, Resolver, Router, RouterOptions};
use scrinium_mail_queue::report::ReportOptions;
use scrinium_mail_queue::route::{RewriteTable, TlsRule, Transport, TransportTable};
use scrinium_mail_queue::{QueuePolicy, SchedulerOptions};
use scrinium_outbound::{Courier, ManagerOptions, QueueManager};
use scrinium_smtp_wire::Mailbox;
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use serde_json::{Map, Value, json};

/// A test may do everything.
pub static SERVER: Access = Access::of_the_server("a test");

/// Friday, 2026-01-02.
pub const START_MS: u64 = 1_767_312_000_000;

pub struct Server {
    pub store: Store,
    pub databases: Databases,
    pub directory: Arc<Directory>,
    pub mailboxes: Mailboxes,
    pub queue: OutgoingQueue,
    pub clock: Clock,
}

pub fn by_mx() -> TransportTable {
    TransportTable::new(Transport::Exchangers { tls: TlsRule::Opportunistic })
}

impl Server {
    pub fn open(folder: &Path, clock: &Clock) -> Self {
        Self::with(folder, clock, by_mx())
    }

    pub fn with(folder: &Path, clock: &Clock, transports: TransportTable) -> Self {
        let mut store_options = StoreOptions::new(folder);
        store_options.clock = clock.clone();
        store_options.budget_bytes = Some(64 << 20);
        store_options.log_extent_bytes = 8 << 20;
        let statistics = Registry::new();
        let store = Store::open(store_options, &statistics).unwrap();
        let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
        let directory = Arc::new(Directory::open(&databases).unwrap());
        let mailboxes = Mailboxes::open(&databases, 2, &statistics).unwrap();
        let options = OutgoingOptions {
            host: "mx.acme.example".to_owned(),
            transports,
            rewrites: RewriteTable::default(),
            policy: QueuePolicy::default(),
            verp_senders: vec!["list@acme.example".to_owned()],
            hops_max: 100,
        };
        let queue = OutgoingQueue::open(&databases, options).unwrap();
        let server = Self { store, databases, directory, mailboxes, queue, clock: clock.clone() };
        for (name, language) in [("ada", "en"), ("bob", "de"), ("list", "en")] {
            server.add(json!({"_id": format!("person:{name}"), "Form": "Person", "ShortName": name,
                "FullName": [format!("{name} Someone")], "InternetAddress": format!("{name}@acme.example"),
                "Language": language}));
        }
        server
    }

    /// Writes a person or group into the directory, if it is not there.
    pub fn add(&self, document: Value) {
        let Value::Object(document) = document else { panic!("no object") };
        let document = prepare(document).unwrap().document;
        let database = self.databases.get(DIRECTORY_DATABASE).unwrap();
        let edit = Edit { json: Value::Object(document).to_string().into(), ..Edit::default() };
        drop(database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap().wait().unwrap());
    }

    pub fn router(&self) -> Router {
        let lookup: Arc<dyn NameLookup> = self.directory.clone();
        let resolver = Resolver::new(lookup, &["acme.example".to_owned()]);
        Router::open(&self.databases, &self.mailboxes, resolver, RouterOptions::default(), &Registry::new())
            .unwrap()
            .with_outgoing(self.queue.clone())
    }

    pub fn deposit(&self, memo: Value) {
        let Value::Object(memo) = memo else { panic!("no object") };
        self.mailboxes.deposit(memo, Vec::new()).unwrap();
    }

    /// Runs rounds until none finds anything to do.
    pub fn route_all(&self, router: &mut Router) {
        while router.round().unwrap().memos > 0 {}
    }

    pub fn manager(&self, courier: Arc<dyn Courier>, scheduler: SchedulerOptions) -> QueueManager {
        let options = ManagerOptions {
            policy: self.queue.options().policy.clone(),
            scheduler,
            report: ReportOptions {
                host: "mx.acme.example".to_owned(),
                from: Mailbox::parse(b"postmaster@acme.example").unwrap(),
            },
            seed: 7,
        };
        let parts = (self.clock.clone(), &Registry::new());
        QueueManager::open(self.queue.clone(), self.mailboxes.clone(), courier, options, parts).unwrap()
    }

    /// The documents of a database, without tombstones; none where there is no such database.
    pub fn documents(&self, name: &str) -> Vec<Map<String, Value>> {
        let Ok(database) = self.databases.get(name) else { return Vec::new() };
        let query = ChangesQuery { include_documents: true, ..ChangesQuery::default() };
        let mut changes = database.changes(query, &SERVER).unwrap();
        let mut documents = Vec::new();
        loop {
            let some = changes.next_changes(100).unwrap();
            if some.is_empty() {
                return documents;
            }
            let there = some.into_iter().filter(|change| !change.deleted);
            documents.extend(there.map(|change| change.document.unwrap().to_object().unwrap()));
        }
    }

    /// The source of a document, from its beginning.
    pub fn source(&self, database: &str, id: &str) -> String {
        let database = self.databases.get(database).unwrap();
        let reader = database.open_attachment(id, "message.eml", None, &SERVER).unwrap();
        String::from_utf8(reader.read(0, 1 << 20).unwrap().to_vec()).unwrap()
    }

    /// As a server that was killed leaves it.
    pub fn close(self) {
        let Self { store, databases, directory, mailboxes, queue, .. } = self;
        drop((databases, directory, mailboxes, queue));
        store.close().unwrap();
    }
}

pub fn manual() -> ManualClock {
    Clock::manual(START_MS)
}
