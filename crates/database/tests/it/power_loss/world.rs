//! Databases of a store, as clients change them and as they are seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use scrinium_catalog::{Databases, NameRange};
use scrinium_database::{
    DatabaseError, DatabaseOptions, Edit, EditMode, FolderChange, Freshness, NewAttachment, Row, RowQuery,
};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use super::model::{CLIENTS, Client, Made, Step, folder, person};
use crate::common::{SERVER, edit, get};

/// A store's databases, of which "main" is everybody's.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) databases: Databases,
}

pub(crate) fn design(version: u64) -> Value {
    json!({"_id": "_design/d", "language": "formula", "version": version, "views": {
        "numbers": {"columns": [
            {"title": "N", "formula": format!("N + {version}"), "sort": "desc"},
            {"title": "Size", "formula": "Size", "total": true},
        ]},
        "texts": {"selection": format!("SELECT Size > 0 & {version} >= 0"), "columns": [
            {"title": "Client", "formula": "Client", "category": true},
            {"title": "N", "formula": "N", "sort": "asc"},
        ]},
    }})
}

impl World {
    pub(crate) fn open(dir: &Path) -> Result<Self, DatabaseError> {
        let mut options = StoreOptions::new(dir);
        options.budget_bytes = Some(16 << 20);
        options.log_extent_bytes = 512 << 10;
        options.log_spare_extents = 1;
        options.reserve_bytes = 0;
        let store = Store::open(options, &Registry::new())?;
        let databases = Databases::open(&store, DatabaseOptions::default())?;
        Ok(Self { store, databases })
    }

    pub(crate) fn main(&self) -> OpenDatabase {
        self.databases.get("main").unwrap()
    }

    /// Makes what everybody needs, as far as it is not there.
    pub(crate) fn prepare(&self) {
        let main = self
            .databases
            .get("main")
            .or_else(|_| self.databases.create("main", &scrinium_database::InitialAccess::Everybody))
            .unwrap();
        if get(&main, "_design/d").is_err() {
            put(&main, edit(&design(0))).unwrap();
        }
        for client in 0..CLIENTS {
            for which in 0..2 {
                let columns = json!([{"title": "N", "formula": "N", "sort": "asc"}]);
                main.define_folder(&folder(client, which), Some(&columns)).unwrap();
            }
        }
    }

    /// Does a step. What it returns says that it is durable.
    pub(crate) fn run(&self, client: usize, step: &Step) -> Result<(), DatabaseError> {
        let main = self.main();
        let revision = |id: &str| get(&main, id).ok().map(|found| found["_rev"].as_str().unwrap().to_owned());
        let change = |id: &str, change| -> Result<(), DatabaseError> {
            let changed = main.change_folders(vec![(id.to_owned(), change)], &SERVER)?;
            changed.wait()?.remove(0).map(drop)
        };
        match step {
            Step::Edit(id, made) => {
                let mut json = json!({"_id": id, "Client": client, "N": made.n, "Text": made.text, "Size": made.text.len()});
                if let Some(revision) = revision(id) {
                    json["_rev"] = json!(revision);
                }
                let mut edit = edit(&json);
                if let Some(bytes) = &made.attachment {
                    edit.attachments.push(NewAttachment {
                        name: "file".to_owned(),
                        content_type: "application/octet-stream".to_owned(),
                        content: main.store_content(bytes, "application/octet-stream")?,
                    });
                }
                let archive = main.folder_members(&folder(client, 1), 0, usize::MAX, (None, &SERVER))?;
                if !archive.members.iter().any(|member| member.id == *id) {
                    edit.folders.push(FolderChange::Add { folder: folder(client, 0) });
                }
                put(&main, edit)
            }
            Step::Delete(id) => put(&main, edit(&json!({"_id": id, "_rev": revision(id), "_deleted": true}))),
            Step::Move(id, from) => {
                change(id, FolderChange::Move { from: folder(client, *from), to: folder(client, 1 - from) })
            }
            Step::Mark(id, read) => {
                main.mark(&person(client), vec![id.clone()], *read, &SERVER)?.wait()?.remove(0).map(drop)
            }
            Step::CreateDatabase(name) => {
                self.databases.create(name, &scrinium_database::InitialAccess::Everybody).map(drop)
            }
            Step::DeleteDatabase(name) => self.databases.delete(name),
        }
    }

    /// Changes the views, and has them built.
    pub(crate) fn redesign(&self) -> Result<(), DatabaseError> {
        let main = self.main();
        let mut stored = get(&main, "_design/d")?;
        let mut next = design(stored["version"].as_u64().unwrap() + 1);
        next["_rev"] = stored["_rev"].take();
        put(&main, edit(&next))?;
        rows(&main, "numbers")?;
        rows(&main, "texts")?;
        main.clean_up_views().map(drop)
    }

    /// What a client has, as it can be read.
    pub(crate) fn seen(&self, client: usize) -> Client {
        let main = self.main();
        let mine = |id: &str| id.starts_with(&format!("{client}-"));
        let mut seen = Client::default();
        for document in documents(&main).into_iter().filter(|found| mine(found["_id"].as_str().unwrap())) {
            let id = document["_id"].as_str().unwrap().to_owned();
            let attachment = document["_attachments"]["file"].is_object().then(|| {
                let reader = main.open_attachment(&id, "file", None, &SERVER).unwrap();
                let bytes = reader.read(0, usize::MAX).unwrap();
                assert_eq!(bytes.len() as u64, reader.length);
                bytes.to_vec()
            });
            let (n, text) = (document["N"].as_u64().unwrap(), document["Text"].as_str().unwrap().to_owned());
            seen.documents.insert(id, Made { n, text, attachment });
        }
        for which in 0..2 {
            let (name, person) = (folder(client, which), person(client));
            let members = main.folder_members(&name, 0, usize::MAX, (Some(&person), &SERVER)).unwrap();
            let read = members.members.iter().filter(|member| member.read == Some(true));
            seen.read.extend(read.map(|member| member.id.clone()));
            seen.folders[which] = members.members.iter().map(|member| member.id.clone()).collect();
            let info = main.folder(&name, Some(&person)).unwrap();
            let unread = members.members.iter().filter(|member| member.read == Some(false)).count();
            assert_eq!((info.total, info.unread), (members.members.len() as u64, Some(unread as u64)));
            // The collection in order, which is derived.
            let mut listed = main.folder_rows(&name, RowQuery::default(), (Some(&person), &SERVER)).unwrap();
            let listed: Vec<String> =
                listed.next_rows(usize::MAX).unwrap().into_iter().filter_map(|row| row.id).collect();
            let mut expected: Vec<(u64, String)> =
                seen.folders[which].iter().map(|id| (seen.documents[id].n, id.clone())).collect();
            expected.sort();
            assert!(listed.iter().eq(expected.iter().map(|(_, id)| id)), "{name}: {listed:?}, {expected:?}");
        }
        let names = self.databases.names(&NameRange { limit: usize::MAX, ..NameRange::default() }).unwrap();
        seen.databases =
            names.into_iter().filter(|name| name.starts_with(&format!("own/{client}/"))).collect();
        seen
    }

    /// Views are what the documents make of them, and every database opens.
    pub(crate) fn check_derived(&self) {
        let main = self.main();
        let version = get(&main, "_design/d").unwrap()["version"].as_i64().unwrap();
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        let mut sizes = 0;
        for document in documents(&main) {
            let (id, n) = (document["_id"].as_str().unwrap().to_owned(), document["N"].as_i64().unwrap());
            let size = document["Size"].as_i64().unwrap();
            sizes += size;
            numbers.push((-(n + version), id.clone()));
            if size > 0 {
                texts.push(((document["Client"].as_i64().unwrap(), n), id));
            }
        }
        numbers.sort();
        texts.sort();
        let ids = |rows: Vec<Row>| rows.into_iter().filter_map(|row| row.id).collect::<Vec<_>>();
        let found = rows(&main, "numbers").unwrap();
        let keys: Vec<Value> = found.iter().map(|row| serde_json::from_str(&row.key).unwrap()).collect();
        assert!(
            keys.iter().eq(&numbers.iter().map(|(key, _)| json!([-key])).collect::<Vec<_>>()),
            "{keys:?}"
        );
        assert!(ids(found).iter().eq(numbers.iter().map(|(_, id)| id)));
        assert!(ids(rows(&main, "texts").unwrap()).iter().eq(texts.iter().map(|(_, id)| id)));
        let query = RowQuery { reduce: Some(true), freshness: Freshness::UpToDate, ..RowQuery::default() };
        let totals = main.view("d", "numbers", query, &SERVER).unwrap().next_rows(1).unwrap();
        let totals = totals.first().map(|row| serde_json::from_str(row.value.as_ref().unwrap()).unwrap());
        let expected = json!({"count": numbers.len(), "totals": {"Size": sizes as f64}});
        assert_eq!(totals, (!numbers.is_empty()).then_some(expected));
        let names = self.databases.names(&NameRange { limit: usize::MAX, ..NameRange::default() }).unwrap();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for name in names {
            self.databases.get(&name).unwrap().info().unwrap();
        }
    }
}

pub(crate) fn rows(database: &OpenDatabase, view: &str) -> Result<Vec<Row>, DatabaseError> {
    let query = RowQuery { freshness: Freshness::UpToDate, ..RowQuery::default() };
    database.view("d", view, query, &SERVER)?.next_rows(usize::MAX)
}

fn put(database: &OpenDatabase, edit: Edit) -> Result<(), DatabaseError> {
    database.update(vec![edit], EditMode::Interactive, &SERVER)?.wait()?.remove(0).map(drop)
}

/// All but design documents, each also read by itself.
fn documents(database: &OpenDatabase) -> Vec<Value> {
    let query = RowQuery { include_documents: true, ..RowQuery::default() };
    let all = database.all_documents(query, &SERVER).unwrap().next_rows(usize::MAX).unwrap();
    let all = all.into_iter().filter(|row| !row.id.as_ref().unwrap().starts_with('_'));
    let documents: BTreeMap<String, Value> =
        all.map(|row| (row.id.unwrap(), serde_json::from_str(&row.document.unwrap()).unwrap())).collect();
    for (id, document) in &documents {
        assert_eq!(get(database, id).unwrap(), *document);
    }
    documents.into_values().collect()
}

/// Whether something failed as it may where the device fails: it says so.
pub(crate) fn is_refusal(error: &DatabaseError) -> bool {
    match error {
        DatabaseError::Full { .. } | DatabaseError::Unavailable { .. } => true,
        DatabaseError::Damaged { .. } | DatabaseError::Store(_) | DatabaseError::Internal { .. } => {
            let reason = error.to_string();
            let reasons = ["No space left on device", "Input/output error", "Read-only file system"];
            reasons.iter().any(|known| reason.contains(known))
        }
        _ => false,
    }
}
