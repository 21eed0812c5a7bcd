//! Attachments in a store of objects across kills: what was acknowledged can be read, and once everything is settled
//! the store has exactly what documents refer to.
//!
//! A child process attaches and deletes, moves attachments to and fro, collects and removes all the time; it is killed
//! at random moments, again and again. `SCRINIUM_SEED=… SCRINIUM_KILLS=… cargo test -p scrinium-database --test it
//! objects_crash` repeats a run, as far as the moments of kills can be repeated, or makes it longer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_catalog::{Databases, FIRST_VOLUME};
use scrinium_contents::{AttachmentOptions, Relocation};
use scrinium_database::{DatabaseOptions, Edit, EditMode, NewAttachment, ReadOptions};
use scrinium_fault::{Kills, Victim, tell, writes_done};
use scrinium_maintenance::FixupOptions;
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_views::OpenDatabase;

use crate::common::SERVER;

const DOCUMENTS: u64 = 12;
/// Contents are few, so that documents share them and take up what is about to be removed.
const CONTENTS: u64 = 8;

fn open(folder: &Path) -> (Store, Databases, OpenDatabase) {
    let mut options = StoreOptions::new(folder.join("data"));
    options.budget_bytes = Some(16 << 20);
    options.log_extent_bytes = 4 << 20;
    options.reserve_bytes = 0;
    let store = Store::open(options, &Registry::new()).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    let bucket = folder.join("bucket");
    std::fs::create_dir_all(&bucket).unwrap();
    let options = AttachmentOptions {
        store: Some(format!("file://{}", bucket.display())),
        threshold_bytes: 300 << 10,
        cache_bytes: 3 << 20,
        keep_removed: Duration::ZERO,
    };
    databases.set_attachment_options(options).unwrap();
    let database = databases
        .get("crash")
        .or_else(|_| databases.create("crash", &scrinium_database::InitialAccess::Everybody))
        .unwrap();
    (store, databases, database)
}

/// The bytes of a content; those of 0 are none.
fn content(number: u64) -> Vec<u8> {
    let length = 200_000 + number * 150_000;
    (0..length).map(|at| (at * (number + 3) + at / 1000).to_le_bytes()[0]).collect()
}

fn attach(database: &OpenDatabase, id: u64, number: u64) {
    let id = id.to_string();
    let revision =
        database.read(&id, &ReadOptions::default(), &SERVER).ok().map(|document| document.revision);
    let mut edit = Edit { id: Some(id), revision: revision.clone(), json: "{}".into(), ..Edit::default() };
    if number == 0 {
        if revision.is_none() {
            return;
        }
        edit.json = "{\"_deleted\":true}".into();
    } else {
        let mut upload = database.upload("text/plain");
        upload.write(&content(number)).unwrap();
        let content = upload.finish().unwrap();
        let attachment = NewAttachment { name: "file".into(), content_type: "text/plain".into(), content };
        edit.attachments.push(attachment);
    }
    database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap().wait().unwrap().remove(0).unwrap();
}

/// Which content a document has; 0: none.
fn stored(database: &OpenDatabase, id: u64) -> u64 {
    let Ok(reader) = database.open_attachment(&id.to_string(), "file", None, &SERVER) else {
        return 0;
    };
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < reader.length {
        bytes.extend_from_slice(&reader.read(bytes.len() as u64, 1 << 20).unwrap());
    }
    let found = (1..=CONTENTS).find(|number| content(*number) == bytes);
    let Some(found) = found else { panic!("an attachment is not one of those that were sent") };
    found
}

/// Runs until it is killed; only the test below starts it.
#[test]
#[ignore = "a child process of the other test"]
fn child() {
    let Some((folder, seed)) = Victim::order() else { return };
    let (_store, databases, database) = open(&folder);
    tell("ready");
    std::thread::scope(|scope| {
        scope.spawn(|| write_some(&database, seed));
        for turn in 0_u64.. {
            databases.collect_contents().unwrap();
            databases.remove_objects(&|| true).unwrap();
            if turn % 5 == 4 {
                let to = if turn % 2 == 0 { Relocation::ToVolume } else { Relocation::AsSet };
                databases.relocate_attachments(None, to, false).unwrap();
            }
        }
    });
}

/// Tells `document content` once that is acknowledged.
fn write_some(database: &OpenDatabase, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    loop {
        let (id, number) = (random.random_range(0..DOCUMENTS), random.random_range(0..=CONTENTS));
        tell(format_args!("begin {id} {number}"));
        attach(database, id, number);
        tell(format_args!("done {id} {number}"));
    }
}

/// Runs a child for a while and kills it; `known` then has what it acknowledged. The write that was under way may
/// have come through or not.
fn run_child_until_killed(folder: &Path, seed: u64, known: &mut BTreeMap<u64, u64>, random: &mut StdRng) {
    let child = Victim::start(module_path!(), folder, seed).unwrap();
    child.wait_until_ready().unwrap();
    std::thread::sleep(Duration::from_millis(random.random_range(50..1500)));
    let under_way = writes_done(&child.kill().unwrap(), known);
    let (store, databases, database) = open(folder);
    if let Some((id, number)) = under_way {
        let (found, before) = (stored(&database, id), known.get(&id).copied().unwrap_or(0));
        assert!(found == number || found == before, "document {id} has {found}, not {before} or {number}");
        known.insert(id, found);
    }
    check(&database, known);
    while databases.collect_contents().unwrap().removed > 0 {}
    std::thread::sleep(Duration::from_millis(2));
    while databases.remove_objects(&|| true).unwrap().examined > 0 {}
    check(&database, known);
    let mut needed = BTreeSet::new();
    let listed = databases.each_object(FIRST_VOLUME, |object| {
        needed.insert(object.needed.stored.name.to_string());
        Ok(true)
    });
    listed.unwrap();
    assert_eq!(objects_in(&folder.join("bucket")), needed);
    let report = scrinium_maintenance::fixup(
        &databases,
        None,
        FixupOptions { views: true, ..FixupOptions::default() },
        |_| {},
    )
    .unwrap();
    assert!(report.is_clean(), "{}", report.to_text());
    drop((database, databases));
    store.close().unwrap();
}

fn check(database: &OpenDatabase, known: &BTreeMap<u64, u64>) {
    for (id, number) in known {
        assert_eq!(stored(database, *id), *number, "document {id}");
    }
}

/// The objects that are whole.
fn objects_in(bucket: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for home in std::fs::read_dir(bucket).unwrap().flatten() {
        for folder in std::fs::read_dir(home.path()).unwrap().flatten() {
            for object in std::fs::read_dir(folder.path()).unwrap().flatten() {
                let path = object.path();
                if path.extension().is_none() {
                    found.insert(path.strip_prefix(bucket).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
    }
    found
}

#[test]
fn what_was_acknowledged_can_be_read_whenever_it_is_killed() {
    let kills = Kills::from_environment(6);
    println!("{kills}");
    let mut random = StdRng::seed_from_u64(kills.seed);
    let folder = tempfile::tempdir().unwrap();
    let mut known = BTreeMap::new();
    for kill in 1..=kills.count {
        let seed = kill * 1_000_000 + random.random_range(0..1000);
        run_child_until_killed(folder.path(), seed, &mut known, &mut random);
    }
    println!("{} documents were acknowledged", known.len());
}
