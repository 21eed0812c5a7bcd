//! Data folders of released formats, opened and read as they were when they were made.
//!
//! `golden/format-N` holds a store and, in `seen.json`, what was read from it then; `golden/format-N-volumes` has alongside
//! the store a volume (`fast`) and a store of objects (`objects`). Those of the present format are made by
//!
//!     cargo test -p scrinium-database --test it -- --ignored make_the_folders_of_this_format
//!
//! which leaves alone what is there. CONTRIBUTING.md says when a folder is added.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_catalog::{Databases, FIRST_VOLUME, NameRange};
use scrinium_contents::AttachmentOptions;
use scrinium_database::{
    AccessList, ChangesQuery, DatabaseOptions, Edit, EditMode, FlagsChange, FolderChange, Freshness,
    NewAttachment, OpenRevision, OpenRevisions, ReadOptions, RowQuery,
};
use scrinium_fault::copy_folder;
use scrinium_mango::IndexDefinition;
use scrinium_objects::{Objects, open_bucket};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::{SERVER, all_rows, edit, get, put, replicate};

/// Of `store.format`.
const PRESENT_FORMAT: u32 = 3;
const PEOPLE: [&str; 2] = ["Ada Lovelace/Engine", "bob"];
const VOLUME: &str = "fast";
const ADDRESS: &str = "file:///objects";
const OBJECTS: AttachmentOptions = AttachmentOptions {
    store: None,
    threshold_bytes: 270_000,
    cache_bytes: 0,
    keep_removed: Duration::from_secs(3600),
};
/// What is longer is shown by its digest.
const TOLD_BYTES: usize = 10_000;
const VIEWS: [(&str, &str); 3] = [("mail", "by date"), ("mail", "by tag"), ("counts", "sizes")];

fn folders() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn open_store(dir: &Path) -> Store {
    let mut options = StoreOptions::new(dir);
    options.budget_bytes = Some(16 << 20);
    options.log_extent_bytes = 64 << 10;
    options.log_spare_extents = 0;
    options.reserve_bytes = 0;
    Store::open(options, &Registry::new()).unwrap()
}

/// The store of a folder, with the volume and the store of objects that it has alongside.
fn open(folder: &Path) -> (Vec<Store>, Databases) {
    let mut stores = vec![open_store(&folder.join("store"))];
    let databases = Databases::open(&stores[0], DatabaseOptions::default()).unwrap();
    let volume = folder.join(VOLUME);
    if volume.exists() {
        stores.push(open_store(&volume));
        databases.attach(VOLUME, Ok(stores[1].clone())).unwrap();
        // The folder is another one each time, and its address is stored.
        let objects = format!("file://{}", folder.join("objects").display());
        let opener = Arc::new(move |address: &str| {
            assert_eq!(address, ADDRESS);
            open_bucket(&objects)
        });
        databases.set_objects(&Objects::new(&folder.join("spool"), opener));
        let store = Some(ADDRESS.to_owned());
        databases.set_attachment_options(AttachmentOptions { store, ..OBJECTS }).unwrap();
    }
    (stores, databases)
}

fn close((stores, databases): (Vec<Store>, Databases)) {
    drop(databases);
    stores.into_iter().for_each(|store| store.close().unwrap());
}

fn memo(number: u32) -> Value {
    let tags: Vec<String> = (0..number % 3).map(|tag| format!("Tag {tag}")).collect();
    let text = if number.is_multiple_of(5) { "A longer text. ".repeat(200) } else { "Short.".to_owned() };
    json!({"_id": format!("memo {number:02}"), "Form": "Memo", "Date": format!("2026-02-{:02}", number % 28 + 1),
        "From": PEOPLE[number as usize % 2], "Subject": format!("Größe ‹{number}›"), "Tags": tags, "Size": number * 7,
        "Text": text})
}

fn add_memos(database: &OpenDatabase, numbers: std::ops::Range<u32>) {
    let edits = numbers.map(|number| Edit {
        folders: vec![FolderChange::Add {
            folder: ["Inbox", "Projects\\Old"][number as usize % 2].to_owned(),
        }],
        ..edit(&memo(number))
    });
    let updated = database.update(edits.collect(), EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    assert!(updated.iter().all(Result::is_ok));
}

fn define(database: &OpenDatabase) {
    let columns = json!([{"title": "Date", "formula": "Date", "sort": "desc"},
        {"title": "Size", "formula": "Size", "total": true}]);
    database.define_folder("Inbox", Some(&columns)).unwrap();
    database.define_folder("Projects\\Old", Some(&columns)).unwrap();
    let mail = json!({"_id": "_design/mail", "language": "formula", "views": {
        "by date": {"selection": "SELECT Form = \"Memo\"", "columns": [
            {"title": "Date", "formula": "Date", "sort": "desc"}, {"title": "Subject", "formula": "Subject"},
            {"title": "Size", "formula": "Size", "total": true}]},
        "by tag": {"columns": [{"title": "Tag", "formula": "Tags", "category": true},
            {"title": "From", "formula": "@LowerCase(From)", "sort": "asc"}]},
    }});
    let counts = json!({"_id": "_design/counts", "views": {"sizes": {
        "map": "function (doc) { if (doc.Size) emit([doc.From, doc.Size], doc.Size); }", "reduce": "_sum"}}});
    put(database, &mail).unwrap();
    put(database, &counts).unwrap();
    let index = json!({"index": {"fields": ["Form", "Size"]}, "ddoc": "by-size", "name": "by size"});
    database.create_index(&IndexDefinition::parse(&index).unwrap(), &SERVER).unwrap();
    database
        .set_security(
            &json!({"admins": {"names": ["ada"], "roles": []}, "members": {"names": [], "roles": []}}),
        )
        .unwrap();
    let list = json!({"default": {"level": "author"}, "entries": [{"name": PEOPLE[0], "level": "manager"}]});
    database.set_access_list(Some(AccessList::parse(&list).unwrap())).unwrap();
    database.set_revision_limit(500).unwrap();
    let local = json!({"source": "here", "n": 7}).to_string();
    database
        .write_local("_local/checkpoint", local.as_bytes(), false, None, &SERVER)
        .unwrap()
        .wait()
        .unwrap();
}

/// What was flushed to files, and what only the log holds, is of every kind.
fn fill(databases: &Databases, half: u32) {
    let database = databases
        .get("mail/ada")
        .or_else(|_| databases.create("mail/ada", &scrinium_database::InitialAccess::Everybody))
        .unwrap();
    if half == 0 {
        define(&database);
    }
    let first = half * 20;
    add_memos(&database, first..first + 20);
    let id = |number: u32| format!("memo {:02}", first + number);
    let revision = |number: u32| get(&database, &id(number)).unwrap()["_rev"].clone();
    let mut changed = memo(first);
    (changed["_rev"], changed["Size"]) = (revision(0), json!(9999));
    put(&database, &changed).unwrap();
    put(&database, &json!({"_id": id(1), "_rev": revision(1), "_deleted": true})).unwrap();
    for digest in ["aa", "bb"] {
        let json = json!({"_id": format!("conflict {half}"), "_rev": format!("2-{digest}"), "Size": 1,
            "_revisions": {"start": 2, "ids": [digest, "11"]}});
        replicate(&database, &json).unwrap();
    }
    let mut random = StdRng::seed_from_u64(u64::from(half));
    for (number, bytes) in [(2, 10), (3, 6000), (4, 6000)] {
        let content: Vec<u8> = (0..bytes).map(|_| random.random()).collect();
        let attachment = NewAttachment {
            name: "file.bin".to_owned(),
            content_type: "application/octet-stream".to_owned(),
            content: database.store_content(&content, "application/octet-stream").unwrap(),
        };
        let edit = Edit {
            id: Some(id(number)),
            revision: Some(revision(number).as_str().unwrap().to_owned()),
            attachments: vec![attachment],
            attachments_only: true,
            ..Edit::default()
        };
        database
            .update(vec![edit], EditMode::Interactive, &SERVER)
            .unwrap()
            .wait()
            .unwrap()
            .remove(0)
            .unwrap();
    }
    let moved = FolderChange::Move { from: "Inbox".to_owned(), to: "Projects\\Old".to_owned() };
    let placed = database.change_folders(vec![(id(6), moved)], &SERVER).unwrap().wait().unwrap();
    assert!(placed.iter().all(Result::is_ok));
    for person in PEOPLE {
        database.mark(person, vec![id(7), id(8)], true, &SERVER).unwrap().wait().unwrap();
    }
    database.mark(PEOPLE[1], vec![id(8)], false, &SERVER).unwrap().wait().unwrap();
    let add = ["\\Flagged", "$Forwarded", "later"].map(str::to_owned).to_vec();
    let deleted = FolderChange::SetDeleted { folder: "Inbox".to_owned(), deleted: true };
    let flagged = FlagsChange { add, folders: vec![deleted.clone()], ..FlagsChange::default() };
    let deleted = FlagsChange { folders: vec![deleted], ..FlagsChange::default() };
    let flags = database.change_flags(&[(id(9), flagged), (id(10), deleted)], &SERVER).unwrap();
    assert!(flags.iter().all(Result::is_ok), "{flags:?}");
    for (design, view) in VIEWS {
        drop(view_of(&database, design, view, RowQuery::default()));
    }
    let other =
        databases.create(&format!("other-{half}"), &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&other, &json!({"_id": "one", "n": half})).unwrap();
    databases.create(&format!("gone-{half}"), &scrinium_database::InitialAccess::Everybody).unwrap();
    databases.delete(&format!("gone-{half}")).unwrap();
}

/// Documents on a volume, with attachments that are objects there, that are shared, and that are none.
fn fill_volume(databases: &Databases, half: u32) {
    let attach = |database: &OpenDatabase, id: &str, number: u32, length: usize| {
        let mut upload = database.upload("text/plain");
        upload.write(format!("{number:07} ").repeat(length / 8).as_bytes()).unwrap();
        let attachment = NewAttachment {
            name: "file.txt".to_owned(),
            content_type: "text/plain".to_owned(),
            content: upload.finish().unwrap(),
        };
        let edit = Edit { attachments: vec![attachment], ..edit(&json!({"_id": id, "Size": length})) };
        database
            .update(vec![edit], EditMode::Interactive, &SERVER)
            .unwrap()
            .wait()
            .unwrap()
            .remove(0)
            .unwrap();
    };
    let papers = databases
        .get("papers")
        .or_else(|_| {
            databases.create_on("papers", &scrinium_database::InitialAccess::Everybody, Some(VOLUME))
        })
        .unwrap();
    for (id, number, length) in [("large", 1, 400_000), ("same", 1, 400_000), ("small", 2, 260_000)] {
        attach(&papers, &format!("{id} {half}"), number + half, length);
    }
    let mail = databases.get("mail/ada").unwrap();
    attach(&mail, &format!("large {half}"), 1 + half, 400_000);
    let moved =
        databases.create(&format!("moved-{half}"), &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&moved, &json!({"_id": "one", "n": half})).unwrap();
    attach(&moved, "large", 3 + half, 300_000);
    databases.relocate(&format!("moved-{half}"), VOLUME).unwrap();
    for (name, volume) in [("papers", VOLUME), ("mail/ada", FIRST_VOLUME)] {
        assert_eq!(databases.get(name).unwrap().volume(), volume);
    }
}

fn parse(text: Option<&str>) -> Value {
    text.map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
}

fn view_of(database: &OpenDatabase, design: &str, view: &str, query: RowQuery) -> Value {
    let query = RowQuery { freshness: Freshness::UpToDate, ..query };
    let rows = all_rows(database.view(design, view, query, &SERVER).unwrap());
    let row =
        |row: scrinium_database::Row| json!([row.id, parse(Some(&row.key)), parse(row.value.as_deref())]);
    rows.into_iter().map(row).collect()
}

/// Everything that can be read, by what it means.
fn seen(databases: &Databases) -> Value {
    let names = databases.names(&NameRange::default()).unwrap();
    let of = |name: &String| (name.clone(), seen_of(&databases.get(name).unwrap()));
    let all: serde_json::Map<String, Value> = names.iter().map(of).collect();
    json!({"server": databases.server_uuid(), "databases": all})
}

/// With the digests of long attachments.
fn shortened(mut document: Value) -> Value {
    let attachments = document.get_mut("_attachments").and_then(Value::as_object_mut);
    for (_, attachment) in attachments.into_iter().flatten() {
        let long = attachment["data"].as_str().filter(|data| data.len() > TOLD_BYTES);
        if let Some(digest) = long.map(|data| blake3::hash(data.as_bytes()).to_hex().to_string()) {
            attachment["data"] = json!(digest);
        }
    }
    document
}

fn seen_of(database: &OpenDatabase) -> Value {
    let mut changes = database.changes(ChangesQuery::default(), &SERVER).unwrap();
    let changes = changes.next_changes(usize::MAX).unwrap();
    let documents: Vec<Value> = changes
        .iter()
        .map(|change| {
            let options =
                ReadOptions { revisions: true, conflicts: true, attachments: true, ..ReadOptions::default() };
            let leaves = database.open_revisions(&change.id, &OpenRevisions::All, &options, &SERVER).unwrap();
            let json = |leaf| match leaf {
                OpenRevision::Found(leaf) => {
                    let options = ReadOptions { revision: Some(leaf.revision), ..options.clone() };
                    let document = database.read(&change.id, &options, &SERVER).unwrap();
                    shortened(parse(Some(&document.json.filled().unwrap())))
                }
                OpenRevision::Missing(revision) => json!(revision),
            };
            let leaves: Vec<Value> = leaves.into_iter().map(json).collect();
            json!([change.sequence, change.id, change.deleted, leaves])
        })
        .collect();
    let folders: Vec<Value> = database
        .folders(Some(PEOPLE[0]))
        .unwrap()
        .into_iter()
        .map(|folder| {
            let asked = (Some(PEOPLE[0]), &SERVER);
            let members = database.folder_members(&folder.name, 0, usize::MAX, asked).unwrap();
            let keywords: BTreeMap<u16, String> = database.keywords().unwrap().into_iter().collect();
            let members: Vec<Value> = members
                .members
                .iter()
                .map(|member| match (member.flags, member.keywords.as_slice()) {
                    (0, []) => json!([member.uid, member.id, member.read]),
                    (flags, own) => {
                        let own: Vec<&String> = own.iter().map(|keyword| &keywords[keyword]).collect();
                        json!([member.uid, member.id, member.read, flags, own])
                    }
                })
                .collect();
            let rows =
                all_rows(database.folder_rows(&folder.name, RowQuery::default(), (None, &SERVER)).unwrap());
            let rows: Vec<Value> =
                rows.into_iter().map(|row| json!([row.id, parse(row.value.as_deref())])).collect();
            json!({"name": folder.name, "uid_validity": folder.uid_validity, "next_uid": folder.next_uid,
                "unread": folder.unread, "members": members, "rows": rows})
        })
        .collect();
    let unread: Vec<Value> =
        PEOPLE.iter().map(|person| json!(database.unread(person).unwrap().database)).collect();
    let views: Vec<Value> = VIEWS
        .iter()
        .filter(|(design, _)| get(database, &format!("_design/{design}")).is_ok())
        .map(|(design, view)| {
            let reduced = RowQuery { reduce: Some(true), ..RowQuery::default() };
            let plain = RowQuery { reduce: Some(false), ..RowQuery::default() };
            json!([view, view_of(database, design, view, plain), view_of(database, design, view, reduced)])
        })
        .collect();
    json!({
        "documents": documents, "folders": folders, "unread": unread, "views": views,
        "security": *database.security().unwrap(),
        "access": database.access_list().unwrap().map(|list| list.to_json()),
        "local": database.read_local("_local/checkpoint", &SERVER).ok().map(|found| parse(Some(&found.json))),
        "revision_limit": database.info().unwrap().revision_limit,
    })
}

fn fill_all(folder: &Path, databases: &Databases, half: u32) {
    fill(databases, half);
    if folder.join(VOLUME).exists() {
        fill_volume(databases, half);
    }
}

#[test]
#[ignore = "makes what the other test reads"]
fn make_the_folders_of_this_format() {
    for (suffix, with_volume) in [("", false), ("-volumes", true)] {
        let golden = folders().join(format!("format-{PRESENT_FORMAT}{suffix}"));
        if !golden.exists() {
            make(&golden, with_volume);
        }
    }
}

fn make(golden: &Path, with_volume: bool) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    if with_volume {
        std::fs::create_dir(folder.join(VOLUME)).unwrap();
        std::fs::create_dir(folder.join("objects")).unwrap();
    }
    let opened = open(folder);
    fill_all(folder, &opened.1, 0);
    close(opened);
    let (stores, databases) = open(folder);
    fill_all(folder, &databases, 1);
    let text = serde_json::to_string(&seen(&databases)).unwrap();
    // Without a checkpoint: the second half is in the log alone.
    drop((databases, stores));
    copy_folder(folder, golden).unwrap();
    for store in ["store", VOLUME].map(|name| golden.join(name)).into_iter().filter(|store| store.exists()) {
        for entry in std::fs::read_dir(store.join("tree")).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("LOG") || name.starts_with("OPTIONS") || name == "LOCK" {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
        for lock in ["store.lock", "log/log.lock"] {
            std::fs::remove_file(store.join(lock)).unwrap();
        }
    }
    std::fs::write(golden.join("seen.json"), text + "\n").unwrap();
}

#[test]
fn folders_of_every_released_format_are_read_as_they_were() {
    let mut opened = 0;
    for entry in std::fs::read_dir(folders()).unwrap().flatten() {
        if !entry.file_name().to_string_lossy().starts_with("format-") {
            continue;
        }
        let name = entry.path().display().to_string();
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        copy_folder(&entry.path(), folder).unwrap();
        let text = std::fs::read_to_string(folder.join("seen.json")).unwrap();
        let expected: Value = serde_json::from_str(&text).unwrap();
        let (stores, databases) = open(folder);
        assert_eq!(seen(&databases), expected, "{name}");
        // It takes more, and holds all of it when it is opened again.
        fill_all(folder, &databases, 2);
        let more = seen(&databases);
        close((stores, databases));
        let again = open(folder);
        assert_eq!(seen(&again.1), more, "{name}");
        close(again);
        opened += u32::from(!name.ends_with("-volumes"));
    }
    assert!(opened >= PRESENT_FORMAT, "a format has no folder");
}
