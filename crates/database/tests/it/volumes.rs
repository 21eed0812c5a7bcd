//! Databases on several stores: what a simple model says of them holds while they are made, changed, dropped and moved,
//! and after any of it was cut off.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_catalog::{Databases, FIRST_VOLUME, NameRange};
use scrinium_database::{
    ChangesQuery, DatabaseError, DatabaseOptions, Edit, EditMode, FolderChange, NewAttachment, RowQuery,
};
use scrinium_fault::quick_folder;
use scrinium_maintenance::Compactor;
use scrinium_statistics::{Registry, Tasks};
use scrinium_store::{Batch, Family, IoClass, Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::stores::numbers;
use crate::common::words::Words as _;
use crate::common::{SERVER, edit, get, put, read_attachment};

const VOLUMES: [&str; 3] = [FIRST_VOLUME, "fast", "slow"];
const STEPS: usize = 250;

/// Several stores below one folder, as a server has them.
struct World {
    stores: Vec<Store>,
    databases: Databases,
    tasks: Tasks,
}

fn store_of(dir: &Path) -> Store {
    let mut options = StoreOptions::new(dir);
    options.budget_bytes = Some(32 << 20);
    options.log_extent_bytes = 4 << 20;
    options.reserve_bytes = 0;
    Store::open(options, &Registry::new()).unwrap()
}

impl World {
    fn open(dir: &Path) -> Self {
        let stores: Vec<Store> = VOLUMES.iter().map(|name| store_of(&dir.join(name))).collect();
        let databases = Databases::open(&stores[0], DatabaseOptions::default()).unwrap();
        for (name, store) in VOLUMES.iter().zip(&stores).skip(1) {
            databases.attach(name, Ok(store.clone())).unwrap();
        }
        let tasks = Tasks::new();
        databases.set_tasks(&tasks);
        databases.purge_dropped().unwrap();
        Self { stores, databases, tasks }
    }

    fn close(self) {
        let Self { stores, databases, .. } = self;
        drop(databases);
        stores.into_iter().for_each(|store| store.close().unwrap());
    }

    fn store(&self, volume: &str) -> &Store {
        &self.stores[VOLUMES.iter().position(|name| *name == volume).unwrap()]
    }

    /// Nothing is left of a database where it is not.
    fn check_leftovers(&self) {
        self.databases.purge_dropped().unwrap();
        while self.databases.collect_contents().unwrap().removed > 0 {}
        let mut there: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for name in self.databases.names(&NameRange::default()).unwrap() {
            let database = self.databases.get(&name).unwrap();
            let volume = VOLUMES.iter().find(|volume| **volume == database.volume()).unwrap();
            there.entry(volume).or_default().insert(database.number());
        }
        for volume in VOLUMES {
            let found = numbers(self.store(volume));
            let known = there.remove(volume).unwrap_or_default();
            assert!(found.is_subset(&known), "{volume} has {found:?}, and should have {known:?}");
        }
    }
}

/// A database as it should be.
#[derive(Clone, Default)]
struct Known {
    volume: String,
    /// The title of each document, and the attachment that it has.
    documents: BTreeMap<String, (u64, u8)>,
}

fn attachment(database: &OpenDatabase, kind: u8) -> NewAttachment {
    // Some small, some in pieces; the same ones come in several databases.
    let bytes: Vec<u8> = (0..(usize::from(kind) * 60_000 + 10))
        .map(|place| u8::try_from(place % 251).unwrap() ^ kind)
        .collect();
    let mut upload = database.upload("application/octet-stream");
    upload.write(&bytes).unwrap();
    NewAttachment {
        name: "file".to_owned(),
        content_type: "application/octet-stream".to_owned(),
        content: upload.finish().unwrap(),
    }
}

fn write(database: &OpenDatabase, id: &str, title: u64, kind: u8, from: &OpenDatabase) {
    let rev = get(database, id).ok().map(|document| document["_rev"].clone());
    let mut json = json!({"_id": id, "title": title});
    if let Some(rev) = rev {
        json["_rev"] = rev;
    }
    // The attachment may have been uploaded into a database of another volume.
    let edit = Edit { attachments: vec![attachment(from, kind)], ..edit(&json) };
    database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap().wait().unwrap().remove(0).unwrap();
}

fn check(databases: &Databases, name: &str, known: &Known) {
    let database = databases.get(name).unwrap();
    assert_eq!(database.volume(), known.volume, "{name}");
    let info = database.info().unwrap();
    assert_eq!(info.document_count, known.documents.len() as u64 + 1, "{name}");
    for (id, (title, kind)) in &known.documents {
        assert_eq!(get(&database, id).unwrap()["title"], *title, "{name} {id}");
        let bytes = read_attachment(&database, id).unwrap();
        assert_eq!((bytes.len(), bytes[7]), (usize::from(*kind) * 60_000 + 10, 7 ^ kind), "{name} {id}");
    }
    let rows = database.view("d", "titles", RowQuery::default(), &SERVER).unwrap();
    assert_eq!(rows.total_rows, Some(known.documents.len() as u64), "{name}");
    let mut changes = database.changes(ChangesQuery::default(), &SERVER).unwrap();
    assert_eq!(changes.next_changes(10_000).unwrap().len() as u64, info.document_count + info.deleted_count);
}

fn prepare(database: &OpenDatabase) {
    let view =
        json!({"selection": "SELECT @All", "columns": [{"title": "t", "formula": "title", "sort": "asc"}]});
    put(database, &json!({"_id": "_design/d", "language": "formula", "views": {"titles": view}})).unwrap();
}

#[test]
fn databases_of_several_stores_are_as_a_model_of_them_is() {
    let seed = std::env::var("SCRINIUM_SEED").ok().map_or_else(rand::random, |seed| seed.parse().unwrap());
    println!("SCRINIUM_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let dir = quick_folder();
    let mut world = World::open(dir.path());
    let mut model: BTreeMap<String, Known> = BTreeMap::new();
    for step in 0..STEPS {
        let name = format!("db{}", random.random_range(0..4));
        let volume = VOLUMES[random.random_range(0..VOLUMES.len())];
        let Some(known) = model.get_mut(&name) else {
            let database = world
                .databases
                .create_on(&name, &scrinium_database::InitialAccess::Everybody, Some(volume))
                .unwrap();
            prepare(&database);
            model.insert(name, Known { volume: volume.to_owned(), ..Known::default() });
            continue;
        };
        let database = world.databases.get(&name).unwrap();
        match random.random_range(0..100) {
            0..60 => {
                let (id, title) = (format!("d{}", random.random_range(0..12)), random.random());
                let kind = random.random_range(0..6);
                let others: Vec<String> = world.databases.names(&NameRange::default()).unwrap();
                let other = world.databases.get(&others[random.random_range(0..others.len())]).unwrap();
                write(&database, &id, title, kind, &other);
                known.documents.insert(id, (title, kind));
            }
            60..70 => {
                let Some(id) = known.documents.keys().next().cloned() else { continue };
                let rev = get(&database, &id).unwrap()["_rev"].clone();
                put(&database, &json!({"_id": id, "_rev": rev, "_deleted": true})).unwrap();
                known.documents.remove(&id);
            }
            70..90 => {
                let moved = world.databases.relocate(&name, volume);
                if known.volume == volume {
                    assert_eq!(moved.unwrap_err().status(), 400);
                } else {
                    moved.unwrap();
                    volume.clone_into(&mut known.volume);
                    // Anyone who has it open writes where it is now, and reads what it was.
                    assert_eq!(database.moved().unwrap().volume(), volume);
                    write(&database, "late", step as u64, 1, &database);
                    known.documents.insert("late".to_owned(), (step as u64, 1));
                }
            }
            90..94 => {
                drop(database);
                world.databases.delete(&name).unwrap();
                model.remove(&name);
            }
            _ => {
                drop(database);
                world.close();
                world = World::open(dir.path());
            }
        }
    }
    model.iter().for_each(|(name, known)| check(&world.databases, name, known));
    world.check_leftovers();
    world.close();
    let world = World::open(dir.path());
    model.iter().for_each(|(name, known)| check(&world.databases, name, known));
    let counted: usize = world.databases.volumes().unwrap().iter().map(|volume| volume.databases).sum();
    assert_eq!(counted, model.len());
}

#[test]
fn writers_and_readers_go_on_while_a_database_is_moved() {
    let dir = quick_folder();
    let world = World::open(dir.path());
    let database = world.databases.create("mail/ada", &scrinium_database::InitialAccess::Everybody).unwrap();
    prepare(&database);
    database.define_folder("Inbox", None).unwrap();
    let uuid = database.info().unwrap().uuid;
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for writer in 0..3_u64 {
            let (databases, stop, written) = (&world.databases, &stop, &written);
            // It keeps what it has opened for some time, as sessions do.
            scope.spawn(move || {
                let mut database = databases.get("mail/ada").unwrap();
                for number in 0_u64.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    if number % 50 == 0 {
                        database = databases.get("mail/ada").unwrap();
                    }
                    let id = format!("w{writer}-{number}");
                    let folders = vec![(id.clone(), FolderChange::Add { folder: "Inbox".to_owned() })];
                    put(&database, &json!({"_id": id, "title": number})).unwrap();
                    database.change_folders(folders, &SERVER).unwrap().wait().unwrap();
                    database.mark("ada", vec![id.clone()], true, &SERVER).unwrap().wait().unwrap();
                    database
                        .write_local(&format!("_local/{writer}"), b"{}", false, None, &SERVER)
                        .unwrap()
                        .wait()
                        .unwrap();
                    // What was acknowledged is read by the one who opens the database.
                    let fresh = databases.get("mail/ada").unwrap();
                    assert_eq!(get(&fresh, &id).unwrap()["title"], number);
                    written.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 0..6 {
            let before = written.load(Ordering::Relaxed);
            while written.load(Ordering::Relaxed) < before + 60 {
                std::thread::yield_now();
            }
            world.databases.relocate("mail/ada", VOLUMES[(round + 1) % VOLUMES.len()]).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    let written = written.load(Ordering::Relaxed);
    let moved = world.databases.get("mail/ada").unwrap();
    let info = moved.info().unwrap();
    assert_eq!((info.uuid, info.document_count), (uuid, written + 1));
    assert_eq!(moved.view("d", "titles", RowQuery::default(), &SERVER).unwrap().total_rows, Some(written));
    assert_eq!(moved.folder("Inbox", Some("ada")).unwrap().total, written);
    let report = scrinium_maintenance::fixup(&world.databases, None, Default::default(), |finding| {
        panic!("{finding:?}")
    })
    .unwrap();
    assert_eq!(report.databases, 1);
    drop((database, moved));
    world.check_leftovers();
}

/// What a crash at some moment of a move leaves is one whole database, and nothing else once it was cleared up.
#[test]
fn a_move_that_is_cut_off_leaves_the_database_on_one_volume() {
    let dir = quick_folder();
    let world = World::open(&dir.path().join("live"));
    let database = world.databases.create("papers", &scrinium_database::InitialAccess::Everybody).unwrap();
    prepare(&database);
    let mut known = Known { volume: FIRST_VOLUME.to_owned(), ..Known::default() };
    for number in 0..200 {
        let (id, kind) = (format!("d{number}"), (number % 3) as u8);
        write(&database, &id, number, kind, &database);
        known.documents.insert(id, (number, kind));
    }
    // Stopped before it is done: it stays, and what was copied goes.
    world.databases.io_limits().set_rate(IoClass::Move, 1);
    std::thread::scope(|scope| {
        let stopped = scope.spawn(|| world.databases.relocate("papers", "fast"));
        while !stopped.is_finished() {
            for task in world.tasks.running() {
                let _is_still_there = world.tasks.cancel(task.id);
            }
            std::thread::yield_now();
        }
        assert!(matches!(stopped.join().unwrap(), Err(DatabaseError::Unavailable { .. })));
    });
    world.databases.io_limits().set_rate(IoClass::Move, 0);
    check(&world.databases, "papers", &known);
    world.check_leftovers();
    // Cut off between the mark at the place that it is to leave and the catalogue, and after the catalogue before the
    // other mark went: only the catalogue counts, and the mark goes.
    let mark = |volume: &str| {
        let mut batch = Batch::new();
        let number = world.databases.get("papers").unwrap().number().to_be_bytes();
        batch.put(Family::Meta, &[&[0x13][..], &number].concat(), &[]);
        world.store(volume).commit(batch).unwrap();
        assert_eq!(world.databases.purge_dropped().unwrap(), 0);
    };
    mark(FIRST_VOLUME);
    world.databases.relocate("papers", "fast").unwrap();
    "fast".clone_into(&mut known.volume);
    mark("fast");
    check(&world.databases, "papers", &known);
    // What was left behind is read by who had it open, and goes when they do.
    assert_eq!(get(&database, "d7").unwrap()["title"], 7);
    assert!(!numbers(world.store(FIRST_VOLUME)).is_empty());
    drop(database);
    check(&world.databases, "papers", &known);
    world.check_leftovers();
}

/// Each came with an update of its own; a move brings them along with the document.
#[test]
fn a_document_whose_attachments_are_more_than_a_batch_takes_is_moved() {
    let dir = quick_folder();
    let world = World::open(dir.path());
    let database = world.databases.create("papers", &scrinium_database::InitialAccess::Everybody).unwrap();
    let mut random = StdRng::seed_from_u64(1);
    let contents: Vec<Vec<u8>> = (0..12).map(|_| (0..240_000).map(|_| random.random()).collect()).collect();
    for (number, bytes) in contents.iter().enumerate() {
        let mut upload = database.upload("application/octet-stream");
        upload.write(bytes).unwrap();
        let attachment = NewAttachment {
            name: number.to_string(),
            content_type: "application/octet-stream".to_owned(),
            content: upload.finish().unwrap(),
        };
        let mut edit = Edit { id: Some("a".to_owned()), attachments: vec![attachment], ..edit(&json!({})) };
        if let Ok(document) = get(&database, "a") {
            edit.revision = document["_rev"].as_str().map(str::to_owned);
            edit.attachments_only = true;
        }
        database
            .update(vec![edit], EditMode::Interactive, &SERVER)
            .unwrap()
            .wait()
            .unwrap()
            .remove(0)
            .unwrap();
    }
    drop(database);
    world.databases.relocate("papers", "fast").unwrap();
    world.check_leftovers();
    let database = world.databases.get("papers").unwrap();
    for (number, bytes) in contents.iter().enumerate() {
        let reader = database.open_attachment("a", &number.to_string(), None, &SERVER).unwrap();
        assert!(reader.read(0, 1 << 20).unwrap() == *bytes, "attachment {number}");
    }
    let report = scrinium_maintenance::fixup(&world.databases, None, Default::default(), |finding| {
        panic!("{finding:?}")
    })
    .unwrap();
    assert_eq!(report.databases, 1);
}

/// What is derived is not in the log, while the removal of the mark was.
#[test]
fn the_views_of_a_dropped_database_do_not_come_back_with_a_crash() {
    let server = crate::common::Server::quick();
    let database = server.databases.create("papers", &scrinium_database::InitialAccess::Everybody).unwrap();
    prepare(&database);
    put(&database, &json!({"_id": "a", "title": 1})).unwrap();
    assert_eq!(database.view("d", "titles", RowQuery::default(), &SERVER).unwrap().total_rows, Some(1));
    server.store.as_ref().unwrap().admin().checkpoint().unwrap();
    drop(database);
    server.databases.delete("papers").unwrap();
    assert_eq!(server.databases.purge_dropped().unwrap(), 1);
    let server = server.crash();
    server.databases.purge_dropped().unwrap();
    assert_eq!(numbers(server.store.as_ref().unwrap()), BTreeSet::new());
}

#[test]
fn a_volume_that_is_away_takes_only_its_own_databases_along() {
    let dir = quick_folder();
    let world = World::open(dir.path());
    for (name, volume) in [("here", FIRST_VOLUME), ("there", "fast"), ("elsewhere", "slow")] {
        put(
            &world
                .databases
                .create_on(name, &scrinium_database::InitialAccess::Everybody, Some(volume))
                .unwrap(),
            &json!({"_id": "a"}),
        )
        .unwrap();
    }
    world.close();
    let first = store_of(&dir.path().join(FIRST_VOLUME));
    let databases = Databases::open(&first, DatabaseOptions::default()).unwrap();
    databases.attach("fast", Err("its device is not mounted".to_owned())).unwrap();
    // The store of another volume, under this name.
    databases.attach("slow", Ok(store_of(&dir.path().join("fast")))).unwrap();
    assert_eq!(databases.known_volume("fast").unwrap().map(|identity| identity.len()), Some(32));
    assert!(get(&databases.get("here").unwrap(), "a").is_ok());
    for (name, why) in [("there", "its device is not mounted"), ("elsewhere", "another store")] {
        let error = databases.get(name).map(drop).unwrap_err();
        assert_eq!(error.status(), 503);
        assert!(error.reason().contains(why) && error.reason().contains(name), "{error}");
        assert!(databases.create(name, &scrinium_database::InitialAccess::Everybody).is_err());
    }
    assert_eq!(databases.refused().unwrap(), ["elsewhere", "there"]);
    assert_eq!(databases.names(&NameRange::default()).unwrap(), ["elsewhere", "here", "there"]);
    // What walks all databases passes them over, and removes nothing of them.
    databases.purge_dropped().unwrap();
    Compactor::of(&databases).with_garbage(1).unwrap();
    scrinium_maintenance::fixup(&databases, None, Default::default(), |finding| panic!("{finding:?}"))
        .unwrap();
    assert_eq!(
        databases
            .create_on("new", &scrinium_database::InitialAccess::Everybody, Some("none"))
            .map(drop)
            .unwrap_err()
            .status(),
        400
    );
    let activity = databases.activity().unwrap();
    let shown: Vec<(&str, &str)> =
        activity.iter().map(|database| (database.name.as_str(), database.volume.as_str())).collect();
    assert_eq!(shown, [("elsewhere", "slow"), ("here", FIRST_VOLUME), ("there", "fast")]);
    drop(databases);
    first.close().unwrap();
    // With everything at its place again all is there.
    let world = World::open(dir.path());
    let read = |name: &str| get(&world.databases.get(name).unwrap(), "a").map(|_: Value| ());
    assert!(read("here").is_ok() && read("there").is_ok() && read("elsewhere").is_ok());
}
