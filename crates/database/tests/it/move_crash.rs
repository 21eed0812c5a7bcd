//! Databases that are moved to and fro between volumes, across kills: each is whole on one of them, with all that was
//! acknowledged, and nothing of it is left on the other.
//!
//! A child process writes and deletes documents, tells what was acknowledged, and moves the database all the time; it is
//! killed at random moments, again and again. `SCRINIUM_SEED=… SCRINIUM_KILLS=… cargo test -p scrinium-database --test it
//! move_crash` repeats a run, as far as the moments of kills can be repeated, or makes it longer.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_catalog::{Databases, FIRST_VOLUME};
use scrinium_database::{ChangesQuery, DatabaseError, DatabaseOptions, FolderChange, RowQuery};
use scrinium_fault::{Kills, rerun};
use scrinium_maintenance::FixupOptions;
use scrinium_statistics::Registry;
use scrinium_store::{Direction, Family, KeyRange, Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::json;

use crate::common::stores::numbers;
use crate::common::{SERVER, get, put};

const FOLDER: &str = "SCRINIUM_CRASH_FOLDER";
const SEED: &str = "SCRINIUM_CRASH_SEED";

const VOLUMES: [&str; 2] = [FIRST_VOLUME, "fast"];
const DOCUMENTS: u64 = 300;

/// Marks that anyone who clears up takes away: dropped databases, uploads under way, dropped folders.
const MARKS: [u8; 3] = [0x13, 0x15, 0x17];

struct World {
    stores: Vec<Store>,
    databases: Databases,
}

impl World {
    fn open(folder: &Path) -> Self {
        let store = |name: &&str| {
            let mut options = StoreOptions::new(folder.join(name));
            options.budget_bytes = Some(16 << 20);
            options.log_extent_bytes = 4 << 20;
            options.checkpoint_log_bytes = 4 << 20;
            options.reserve_bytes = 0;
            Store::open(options, &Registry::new()).unwrap()
        };
        let stores: Vec<Store> = VOLUMES.iter().map(store).collect();
        let databases = Databases::open(&stores[0], DatabaseOptions::default()).unwrap();
        databases.attach(VOLUMES[1], Ok(stores[1].clone())).unwrap();
        databases.set_rebuild_dir(folder.join("rebuild"));
        databases.remove_left_builds();
        Self { stores, databases }
    }

    fn crash(&self) -> OpenDatabase {
        self.databases.get("crash").unwrap()
    }

    fn close(self) {
        drop(self.databases);
        self.stores.into_iter().for_each(|store| store.close().unwrap());
    }
}

fn id(number: u64) -> String {
    format!("{number:04}")
}

/// Which turn a document is of; 0: there is none.
fn turn_of(database: &OpenDatabase, number: u64) -> u64 {
    match get(database, &id(number)) {
        Ok(document) => {
            let turn = document["turn"].as_u64().unwrap();
            assert_eq!(document["Text"], text(turn), "the text of {number}");
            turn
        }
        Err(DatabaseError::NotFound { .. }) => 0,
        Err(error) => panic!("document {number}: {error}"),
    }
}

/// Of some it is a content of its own, of a few one in several pieces.
fn text(turn: u64) -> String {
    let length = match turn % 40 {
        0 => 600_000,
        1..5 => 5000,
        _ => 300,
    };
    format!("{turn} is said again and again. ").repeat(length / 30)
}

/// Runs until it is killed; only the test below starts it.
#[test]
#[ignore = "a child process of the other test"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let world = World::open(Path::new(&folder));
    println!("\n@ready");
    std::thread::scope(|scope| {
        scope.spawn(|| write_some(&world.databases, seed));
        scope.spawn(|| {
            loop {
                world.databases.purge_dropped().unwrap();
                world.databases.collect_contents().unwrap();
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        loop {
            let to = VOLUMES.iter().find(|volume| **volume != world.crash().volume()).unwrap();
            match world.databases.relocate("crash", to) {
                Ok(_) => println!("@moved"),
                // It changes faster than it is copied.
                Err(DatabaseError::Unavailable { .. }) => {}
                Err(error) => {
                    // The other threads would go on, and nobody would notice.
                    eprintln!("the database is not moved: {error}");
                    std::process::abort();
                }
            }
        }
    });
}

/// Tells `number turn` once that is acknowledged; turn 0 is a deletion.
fn write_some(databases: &Databases, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut output = std::io::stdout();
    let mut database = databases.get("crash").unwrap();
    // Turns grow from one child to the next.
    for turn in seed / 1000 * 1000 + 1.. {
        // Somebody may have had it open since before it was moved.
        if random.random_ratio(1, 10) {
            database = databases.get("crash").unwrap();
        }
        let number = random.random_range(0..DOCUMENTS);
        let mut document = json!({"_id": id(number), "turn": turn, "Text": text(turn)});
        let mut told = turn;
        let newest = databases.get("crash").unwrap();
        if let Ok(mut stored) = get(&newest, &id(number)) {
            document["_rev"] = stored["_rev"].take();
            if random.random_ratio(1, 4) {
                document["_deleted"] = json!(true);
                told = 0;
            }
        }
        writeln!(output, "@begin {number} {told}").unwrap();
        put(&database, &document).unwrap();
        if told != 0 && turn.is_multiple_of(7) {
            let filed = vec![(id(number), FolderChange::Add { folder: "Inbox".to_owned() })];
            database.change_folders(filed, &SERVER).unwrap().wait().unwrap();
            database.mark("ada", vec![id(number)], true, &SERVER).unwrap().wait().unwrap();
        }
        writeln!(output, "@done {number} {told}").unwrap();
        output.flush().unwrap();
    }
}

/// Runs a child for a while and kills it; `known` then has what it acknowledged. The write that was under way may
/// have come through or not. Returns how often the database was moved.
fn run_child_until_killed(
    folder: &Path,
    seed: u64,
    known: &mut BTreeMap<u64, u64>,
    random: &mut StdRng,
) -> usize {
    let mut child = rerun(module_path!(), "child")
        .unwrap()
        .env(FOLDER, folder)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.by_ref().any(|line| line == "@ready"), "the child did not start");
    let reading = std::thread::spawn(move || lines.collect::<Vec<String>>());
    std::thread::sleep(Duration::from_millis(random.random_range(50..1200)));
    assert!(child.try_wait().unwrap().is_none(), "the child failed");
    child.kill().unwrap();
    child.wait().unwrap();
    let (mut under_way, mut moves) = (None, 0);
    for line in reading.join().unwrap() {
        let words: Vec<&str> = line.split(' ').collect();
        moves += usize::from(words == ["@moved"]);
        let [kind, number, turn] = words.as_slice() else { continue };
        let (Ok(number), Ok(turn)) = (number.parse(), turn.parse()) else { continue };
        under_way = (*kind == "@begin").then_some((number, turn));
        if *kind == "@done" {
            known.insert(number, turn);
        }
    }
    let world = World::open(folder);
    if let Some((number, turn)) = under_way {
        let found = turn_of(&world.crash(), number);
        let before = known.get(&number).copied().unwrap_or(0);
        assert!(found == turn || found == before, "document {number} is of {found}, not {before} or {turn}");
        known.insert(number, found);
    }
    check(&world, folder, known);
    world.close();
    moves
}

/// The database is what was acknowledged, and on one volume.
fn check(world: &World, folder: &Path, known: &BTreeMap<u64, u64>) {
    let database = world.crash();
    for (number, turn) in known {
        assert_eq!(turn_of(&database, *number), *turn, "document {number}");
    }
    let there = known.values().filter(|turn| **turn != 0).count() as u64;
    let info = database.info().unwrap();
    assert_eq!(info.document_count, there + 1);
    let rows = database.view("d", "turns", RowQuery::default(), &SERVER).unwrap();
    assert_eq!(rows.total_rows, Some(there));
    let feed = database.changes(ChangesQuery::default(), &SERVER).unwrap().next_changes(usize::MAX).unwrap();
    assert_eq!(feed.len() as u64, info.document_count + info.deleted_count);
    world.databases.purge_dropped().unwrap();
    while world.databases.collect_contents().unwrap().removed > 0 {}
    let report = scrinium_maintenance::fixup(
        &world.databases,
        None,
        FixupOptions { views: true, ..FixupOptions::default() },
        |_| {},
    )
    .unwrap();
    assert!(report.is_clean(), "{}", report.to_text());
    for (volume, store) in VOLUMES.iter().zip(&world.stores) {
        check_leftovers(store, (*volume == database.volume()).then(|| database.number()));
    }
    let left = std::fs::read_dir(folder.join("rebuild")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "folders of builds are left");
}

/// A store has this database, or none, and nothing that is still to be cleared up.
fn check_leftovers(store: &Store, number: Option<u32>) {
    assert_eq!(numbers(store), number.into_iter().collect::<BTreeSet<u32>>());
    let snapshot = store.snapshot();
    for mark in MARKS {
        let (from, to) = ([mark], [mark + 1]);
        let mut marks = snapshot.cursor(Family::Meta, KeyRange::new(&from, &to), Direction::Forward);
        assert!(marks.next().unwrap().is_none(), "a mark {mark:x} is left");
    }
    if number.is_none() {
        let mut contents = snapshot.cursor(Family::Blob, KeyRange::ALL, Direction::Forward);
        assert!(contents.next().unwrap().is_none(), "contents are left where no database is");
    }
}

#[test]
fn a_database_is_whole_on_one_volume_whenever_its_move_is_killed() {
    let kills = Kills::from_environment(6);
    println!("{kills}");
    let mut random = StdRng::seed_from_u64(kills.seed);
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path());
    let database = world.databases.create("crash", &scrinium_database::InitialAccess::Everybody).unwrap();
    let columns = json!([{"title": "turn", "formula": "turn", "sort": "asc"}]);
    let views = json!({"turns": {"selection": "SELECT @IsAvailable(turn)", "columns": columns}});
    put(&database, &json!({"_id": "_design/d", "language": "formula", "views": views})).unwrap();
    database.define_folder("Inbox", None).unwrap();
    drop(database);
    world.close();
    let (mut known, mut moves) = (BTreeMap::new(), 0);
    for kill in 1..=kills.count {
        let seed = kill * 1_000_000 + random.random_range(0..1000);
        moves += run_child_until_killed(folder.path(), seed, &mut known, &mut random);
    }
    println!("{} documents were acknowledged, and {moves} moves", known.len());
    assert!(moves > 0, "the database was never moved");
}
