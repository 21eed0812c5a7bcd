//! A server with people, and databases that name them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use scrinium_administration::Requests;
use scrinium_catalog::Databases;
use scrinium_database::{
    Access, AccessList, DatabaseError, DatabaseOptions, Edit, EditMode, Guard, Guarded, InitialAccess, Level,
    ReadOptions, RowQuery, Submission,
};
use scrinium_directory::{DIRECTORY_DATABASE, Directory};
use scrinium_statistics::{Registry, Tasks};
use scrinium_store::{Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::{Map, Value, json};

/// A test may do everything.
pub(crate) static SERVER: Access = Access::of_the_server("a test");

pub(crate) struct Server {
    pub(crate) store: Store,
    pub(crate) databases: Databases,
    pub(crate) directory: Arc<Directory>,
    pub(crate) requests: Arc<Requests>,
}

/// Keeps the directory's names, as a server does.
struct Names(std::sync::Weak<Directory>);

impl Guard for Names {
    fn guards(&self, database: &str) -> bool {
        database == DIRECTORY_DATABASE
    }

    fn check(&self, submission: Submission<'_>) -> Result<Guarded, DatabaseError> {
        self.0.upgrade().unwrap().check(&submission)
    }
}

impl Server {
    pub(crate) fn open(folder: &Path) -> Self {
        let mut options = StoreOptions::new(folder);
        options.budget_bytes = Some(64 << 20);
        options.log_extent_bytes = 4 << 20;
        let store = Store::open(options, &Registry::new()).unwrap();
        let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
        let directory = Arc::new(Directory::open(&databases).unwrap());
        databases.set_guard(Arc::new(Names(Arc::downgrade(&directory))));
        let requests = Arc::new(Requests::new(&directory, &Tasks::new()));
        Self { store, databases, directory, requests }
    }

    pub(crate) fn database(&self, name: &str) -> OpenDatabase {
        match self.databases.get(name) {
            Err(DatabaseError::NotFound { .. }) => {
                self.databases.create(name, &InitialAccess::Closed).unwrap()
            }
            found => found.unwrap(),
        }
    }

    pub(crate) fn put(&self, database: &str, document: &Value) {
        let edit = Edit { json: document.to_string().into(), ..Edit::default() };
        self.database(database).update_one(edit, EditMode::Interactive, &SERVER).unwrap();
    }

    pub(crate) fn get(&self, database: &str, id: &str) -> Option<Map<String, Value>> {
        let found = self.database(database).read(id, &ReadOptions::default(), &SERVER).ok()?;
        found.json.to_object()
    }

    /// Documents by their ids, without revisions.
    pub(crate) fn documents(&self, database: &str) -> BTreeMap<String, Value> {
        let query = RowQuery { include_documents: true, ..RowQuery::default() };
        let mut rows = self.database(database).all_documents(query, &SERVER).unwrap();
        let rows = rows.next_rows(usize::MAX).unwrap();
        let document = |text: &str| {
            let mut document: Map<String, Value> = serde_json::from_str(text).unwrap();
            document.remove("_rev");
            Value::Object(document)
        };
        rows.into_iter().map(|row| (row.id.unwrap(), document(row.document.as_deref().unwrap()))).collect()
    }

    pub(crate) fn people(&self) {
        for (short, full) in [("ada", "Ada Lovelace/Acme"), ("bob", "Bob Bones"), ("eve", "Eve Eaves")] {
            self.put(
                DIRECTORY_DATABASE,
                &json!({"_id": format!("person:{short}"), "Form": "Person", "ShortName": short,
                "FullName": [full], "InternetAddress": format!("{short}@acme.example")}),
            );
        }
        for (group, members) in
            [("sales", json!(["ada", "bob"])), ("all", json!(["sales", "Ada Lovelace/Acme", "eve"]))]
        {
            self.put(
                DIRECTORY_DATABASE,
                &json!({"_id": format!("group:{group}"), "Form": "Group", "ListName": group,
                "Members": members}),
            );
        }
    }

    /// Fills a database; gives who has read what.
    pub(crate) fn fill(&self, name: &str, world: &World) {
        let database = self.database(name);
        database.set_access_list(world.list.clone().map(|list| AccessList::parse(&list).unwrap())).unwrap();
        database.set_security(&world.security).unwrap();
        for (id, (document, readers)) in &world.documents {
            let mut document = document.clone();
            document["_id"] = json!(id);
            self.put(name, &document);
            for reader in readers {
                database.mark(reader, vec![id.clone()], true, &SERVER).unwrap().wait().unwrap();
            }
        }
    }

    pub(crate) fn level(&self, database: &str, name: &str, groups: &[&str]) -> Option<Level> {
        let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        Some(self.database(database).access_list().unwrap()?.level_of(Some(name), &groups))
    }
}

/// What is in a database.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) list: Option<Value>,
    pub(crate) security: Value,
    pub(crate) documents: BTreeMap<String, (Value, Vec<&'static str>)>,
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["ada", "ADA", "bob", "eve", "sales", "[HR]", "*", "Ada Lovelace/Acme", "adam"])
}

fn field() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        name().prop_map(Value::from),
        prop::collection::vec(name(), 0..4).prop_map(|names| json!(names)),
    ]
}

fn document() -> impl Strategy<Value = (Value, Vec<&'static str>)> {
    let readers = prop::sample::subsequence(vec!["ada", "bob", "eve"], 0..=3);
    (field(), field(), field(), 0..2_000_u64, readers).prop_map(|(readers, authors, other, number, marks)| {
        let mut document = json!({"Other": other, "Number": number, "Body": "ada ".repeat(usize::try_from(number).unwrap())});
        for (name, value) in [("Readers", readers), ("Authors", authors)] {
            if !value.is_null() {
                document[name] = value;
            }
        }
        (document, marks)
    })
}

pub(crate) fn world(documents: usize) -> impl Strategy<Value = World> {
    let entry = (
        prop::sample::select(vec!["ada", "bob", "sales"]),
        prop::sample::select(vec!["reader", "editor", "manager"]),
    );
    let list =
        prop::option::of(prop::collection::btree_map(entry.clone().prop_map(|(name, _)| name), entry, 0..3));
    let list = list.prop_map(|entries| {
        let entries = entries?;
        let entries: Vec<Value> =
            entries.into_iter().map(|(name, (_, level))| json!({"name": name, "level": level})).collect();
        Some(json!({"default": {"level": "no_access"}, "entries": entries}))
    });
    let names = prop::collection::vec(prop::sample::select(vec!["ada", "bob"]), 0..2);
    let security = names.prop_map(|names| json!({"members": {"names": names, "roles": []}}));
    (list, security, prop::collection::vec(document(), documents)).prop_map(|(list, security, documents)| {
        World {
            list,
            security,
            documents: documents
                .into_iter()
                .enumerate()
                .map(|(number, document)| (format!("d{number}"), document))
                .collect(),
        }
    })
}
