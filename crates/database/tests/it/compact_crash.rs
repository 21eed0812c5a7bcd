//! Compacting across kills and on a full disk: what was acknowledged is there, what is gone stays gone, and the database
//! can be compacted again.
//!
//! A child process writes and deletes documents, tells what was acknowledged, and compacts and purges all the time; it is
//! killed at random moments, again and again. `SCRINIUM_SEED=… SCRINIUM_KILLS=… cargo test -p scrinium-database --test it
//! compact_crash` repeats a run, as far as the moments of kills can be repeated, or makes it longer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_catalog::Databases;
use scrinium_database::{
    ChangesQuery, DatabaseError, DatabaseOptions, Edit, EditMode, Freshness, HistoryLimits, Properties,
    ReadOptions, RowQuery,
};
use scrinium_fault::{Kills, Victim, tell, writes_done};
use scrinium_maintenance::{CompactOptions, CompactOrder, CompactStyle, Compactor, FixupOptions, fixup};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::SERVER;

const DOCUMENTS: u64 = 400;
/// Those on the disk that gets full.
const LARGE_DOCUMENTS: u64 = 4000;

/// Earlier bodies that each document keeps where processes are killed.
const KEPT: usize = 2;

const STYLES: [CompactStyle; 3] = [CompactStyle::Reclaim, CompactStyle::Shrink, CompactStyle::Copy];

fn open(folder: &Path, reserve_bytes: u64) -> (Store, Databases, OpenDatabase) {
    let mut options = StoreOptions::new(folder);
    options.budget_bytes = Some(16 << 20);
    options.log_extent_bytes = 4 << 20;
    options.checkpoint_log_bytes = 4 << 20;
    options.reserve_bytes = reserve_bytes;
    let store = Store::open(options, &Registry::new()).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    let purge_after = Duration::from_millis(100);
    Compactor::of(&databases).set_options(CompactOptions { purge_after });
    let database = databases
        .get("crash")
        .or_else(|_| databases.create("crash", &scrinium_database::InitialAccess::Everybody))
        .unwrap();
    (store, databases, database)
}

fn close(store: Store, databases: Databases, database: OpenDatabase) {
    drop((database, databases));
    store.close().unwrap();
}

fn put(database: &OpenDatabase, json: &Value) -> Result<(), DatabaseError> {
    let edit = Edit { json: json.to_string().into(), ..Edit::default() };
    database.update(vec![edit], EditMode::Interactive, &SERVER)?.wait()?.remove(0).map(drop)
}

fn stored(database: &OpenDatabase, id: &str) -> Option<Value> {
    let document = database.read(id, &ReadOptions::default(), &SERVER).ok()?;
    serde_json::from_str(&document.json).ok()
}

fn document(number: u64, turn: u64, random: &mut StdRng) -> Value {
    let length = if random.random_ratio(1, 8) { random.random_range(5000..40_000) } else { 400 };
    json!({"_id": format!("{number:04}"), "turn": turn, "Text": random_text(length, random)})
}

fn random_text(length: usize, random: &mut StdRng) -> String {
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        text.push_str(&format!("{:016x}", random.random::<u64>()));
    }
    text
}

fn design() -> Value {
    json!({"_id": "_design/d", "language": "formula", "views": {"turns": {"columns": [
        {"title": "turn", "formula": "turn", "sort": "asc"}]}}})
}

/// Runs until it is killed; only the test below starts it.
#[test]
#[ignore = "a child process of the other test"]
fn child() {
    let Some((folder, seed)) = Victim::order() else { return };
    let (_store, databases, database) = open(&folder, 0);
    tell("ready");
    std::thread::scope(|scope| {
        scope.spawn(|| write_some(&database, seed));
        for turn in 0_usize.. {
            let order = CompactOrder {
                style: STYLES[turn % 3],
                discard_views: turn % 7 == 6,
                bypass_file_cache: turn.is_multiple_of(2),
                ..CompactOrder::default()
            };
            Compactor::of(&databases).compact("crash", &order).unwrap();
            drop(rows(&database));
        }
    });
}

/// Tells `number turn` once that is acknowledged; turn 0 is a deletion.
fn write_some(database: &OpenDatabase, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    for turn in 1.. {
        let number = random.random_range(0..DOCUMENTS);
        // Turns grow from one child to the next.
        let turn = seed / 1000 * 1000 + turn;
        let mut document = document(number, turn, &mut random);
        let mut told = turn;
        if let Some(mut stored) = stored(database, document["_id"].as_str().unwrap()) {
            document["_rev"] = stored["_rev"].take();
            if random.random_ratio(1, 3) {
                document["_deleted"] = json!(true);
                told = 0;
            }
        }
        tell(format_args!("begin {number} {told}"));
        put(database, &document).unwrap();
        tell(format_args!("done {number} {told}"));
    }
}

fn rows(database: &OpenDatabase) -> Vec<String> {
    let query = RowQuery { freshness: Freshness::UpToDate, ..RowQuery::default() };
    let rows = database.view("d", "turns", query, &SERVER).unwrap().next_rows(usize::MAX).unwrap();
    rows.into_iter().map(|row| format!("{} {}", row.id.unwrap(), row.key)).collect()
}

/// Runs a child for a while and kills it; `known` then has what it acknowledged. The write that was under way may
/// have come through or not.
fn run_child_until_killed(folder: &Path, seed: u64, known: &mut BTreeMap<u64, u64>, random: &mut StdRng) {
    let child = Victim::start(module_path!(), folder, seed).unwrap();
    child.wait_until_ready().unwrap();
    std::thread::sleep(Duration::from_millis(random.random_range(50..900)));
    let under_way = writes_done(&child.kill().unwrap(), known);
    let (store, databases, database) = open(folder, 0);
    if let Some((number, turn)) = under_way {
        let found =
            stored(&database, &format!("{number:04}")).map_or(0, |found| found["turn"].as_u64().unwrap());
        let before = known.get(&number).copied().unwrap_or(0);
        assert!(found == turn || found == before, "document {number} is of {found}, not {before} or {turn}");
        known.insert(number, found);
    }
    check(&database, known);
    Compactor::of(&databases).compact("crash", &CompactOrder::default()).unwrap();
    check(&database, known);
    fixup(&databases, Some("crash"), FixupOptions::default(), |finding| panic!("{finding:?}")).unwrap();
    close(store, databases, database);
}

/// Documents, changes, views and counts are what was acknowledged.
fn check(database: &OpenDatabase, known: &BTreeMap<u64, u64>) {
    let there: Vec<(u64, u64)> =
        known.iter().filter(|(_, turn)| **turn != 0).map(|(number, turn)| (*number, *turn)).collect();
    for (number, turn) in known {
        let id = format!("{number:04}");
        let found = stored(database, &id).map_or(0, |found| found["turn"].as_u64().unwrap());
        assert_eq!(found, *turn, "document {number}");
        if *turn != 0 && database.history().is_on() {
            check_history(database, &id);
        }
    }
    let mut expected: Vec<(u64, String)> =
        there.iter().map(|(number, turn)| (*turn, format!("{number:04} [{turn}]"))).collect();
    expected.sort();
    let expected: Vec<String> = expected.into_iter().map(|(_, row)| row).collect();
    let found: Vec<String> = rows(database).into_iter().filter(|row| !row.ends_with("\"\"]")).collect();
    assert_eq!(found, expected);
    let feed = database.changes(ChangesQuery::default(), &SERVER).unwrap().next_changes(usize::MAX).unwrap();
    let info = database.info().unwrap();
    let alive: Vec<&str> =
        feed.iter().filter(|change| !change.deleted).map(|change| change.id.as_str()).collect();
    assert_eq!(alive.len(), there.len() + 1, "{alive:?} and not the design document and {there:?}");
    assert_eq!(feed.iter().filter(|change| change.deleted).count() as u64, info.deleted_count);
    assert_eq!(info.document_count, there.len() as u64 + 1);
}

/// What the last edits replaced can be read, and nothing before.
fn check_history(database: &OpenDatabase, id: &str) {
    let options = ReadOptions { revisions_info: true, ..ReadOptions::default() };
    let document = database.read(id, &options, &SERVER).unwrap();
    let document: Value = serde_json::from_str(&document.json).unwrap();
    for (place, one) in document["_revs_info"].as_array().unwrap().iter().enumerate() {
        let revision = one["rev"].as_str().unwrap().to_owned();
        let options = ReadOptions { revision: Some(revision), ..ReadOptions::default() };
        assert_eq!(database.read(id, &options, &SERVER).is_ok(), place <= KEPT, "{id}: {one}");
        assert_eq!(one["status"] == "missing", place > KEPT, "{id}: {one}");
    }
}

#[test]
fn what_was_acknowledged_is_there_whenever_a_compaction_is_killed() {
    let kills = Kills::from_environment(5);
    println!("{kills}");
    let mut random = StdRng::seed_from_u64(kills.seed);
    let folder = tempfile::tempdir().unwrap();
    let (store, databases, database) = open(folder.path(), 0);
    put(&database, &design()).unwrap();
    let history = HistoryLimits { revisions: u32::try_from(KEPT).unwrap(), days: 0 };
    database.set_properties(Properties { history, ..database.properties() }).unwrap();
    close(store, databases, database);
    let mut known = BTreeMap::new();
    for kill in 1..=kills.count {
        let seed = kill * 1_000_000 + random.random_range(0..1000);
        run_child_until_killed(folder.path(), seed, &mut known, &mut random);
    }
    println!("{} documents were acknowledged", known.len());
}

/// A small file system with a file in it that can be removed to make space.
struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    fn mount(megabytes: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).status();
        if !mounted.is_ok_and(|status| status.success()) {
            scrinium_fault::skip("mounting a file system in memory is not permitted here; root may");
            return None;
        }
        Some(Self { folder })
    }

    fn ballast(&self) -> PathBuf {
        self.folder.path().join("ballast")
    }

    /// Leaves this many bytes free.
    fn fill_but(&self, left_bytes: u64) {
        let found =
            Command::new("df").args(["--output=avail", "-B1"]).arg(self.folder.path()).output().unwrap();
        let free = String::from_utf8(found.stdout).unwrap();
        let free: u64 = free.lines().nth(1).unwrap().trim().parse().unwrap();
        let bytes = usize::try_from(free.saturating_sub(left_bytes)).unwrap();
        std::fs::write(self.ballast(), vec![1; bytes]).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}

#[test]
fn without_room_a_compaction_is_refused_with_a_number_and_a_full_disk_amid_one_loses_nothing() {
    let Some(disk) = Disk::mount(160) else { return };
    let reserve_bytes = 4 << 20;
    let (store, databases, database) = open(&disk.folder.path().join("store"), reserve_bytes);
    put(&database, &design()).unwrap();
    let mut random = StdRng::seed_from_u64(1);
    let mut known = BTreeMap::new();
    for turn in 1..=2 {
        for start in (0..LARGE_DOCUMENTS).step_by(500) {
            let edits = (start..start + 500).map(|number| {
                let mut document = document(number, turn, &mut random);
                document["Text"] = json!(random_text(1500, &mut random));
                if let Some(mut stored) = stored(&database, document["_id"].as_str().unwrap()) {
                    document["_rev"] = stored["_rev"].take();
                }
                known.insert(number, turn);
                Edit { json: document.to_string().into(), ..Edit::default() }
            });
            drop(database.update(edits.collect(), EditMode::Interactive, &SERVER).unwrap().wait().unwrap());
        }
    }
    drop(rows(&database));
    store.admin().checkpoint().unwrap();
    let order = CompactOrder { style: CompactStyle::Copy, ..CompactOrder::default() };
    // Else the tree may merge files in the background just now, and give space back.
    Compactor::of(&databases).compact("crash", &order).unwrap();
    disk.fill_but(reserve_bytes + 500_000);
    let refused = Compactor::of(&databases).compact("crash", &order).unwrap_err();
    let DatabaseError::Full { reason } = &refused else { panic!("{refused:?}") };
    assert!(reason.starts_with("Compacting needs ") && reason.contains(" MB of free space"), "{reason}");
    check(&database, &known);

    std::fs::remove_file(disk.ballast()).unwrap();
    let compacted = std::thread::scope(|scope| {
        let compacting = scope.spawn(|| Compactor::of(&databases).compact("crash", &order));
        std::thread::sleep(Duration::from_millis(random.random_range(0..60)));
        disk.fill_but(200_000);
        compacting.join().unwrap()
    });
    println!("on the disk that got full the compaction ended with {compacted:?}");
    check(&database, &known);
    std::fs::remove_file(disk.ballast()).unwrap();
    // RocksDB looks for space every few seconds after it was refused some.
    for _ in 0..100 {
        if Compactor::of(&databases).compact("crash", &order).is_ok()
            && put(&database, &json!({"_id": "later"})).is_ok()
        {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let later = stored(&database, "later").unwrap();
    put(&database, &json!({"_id": "later", "_rev": later["_rev"], "_deleted": true})).unwrap();
    check(&database, &known);
    close(store, databases, database);
    let (store, databases, database) = open(&disk.folder.path().join("store"), reserve_bytes);
    check(&database, &known);
    close(store, databases, database);
}
