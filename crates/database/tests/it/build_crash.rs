//! Building views across kills: whatever was built, spilled or half written when the process was killed, the views are
//! afterwards what their documents make of them.
//!
//! A child process updates documents and builds views, in so little memory that the builds spill sorted runs; it is
//! killed at random moments, again and again. `SCRINIUM_SEED=… SCRINIUM_KILLS=… cargo test -p scrinium-database --test it
//! build_crash` repeats a run, as far as the moments of kills can be repeated, or makes it longer.

use std::path::Path;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_catalog::Databases;
use scrinium_database::{DatabaseOptions, Edit, EditMode, Freshness, ReadOptions, RowQuery};
use scrinium_fault::{Kills, Victim, tell};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::SERVER;

const DOCUMENTS: u64 = 6000;
/// A build may hold a quarter of it.
const BUDGET_BYTES: u64 = 16 << 20;
/// Most builds of one child, so that a child that is never killed ends.
const MOST_BUILDS: u64 = 500;

fn open(folder: &Path) -> (Store, Databases, OpenDatabase) {
    let mut options = StoreOptions::new(folder);
    options.budget_bytes = Some(BUDGET_BYTES);
    options.log_extent_bytes = 4 << 20;
    let store = Store::open(options, &Registry::new()).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    let database = databases
        .get("crash")
        .or_else(|_| databases.create("crash", &scrinium_database::InitialAccess::Everybody))
        .unwrap();
    (store, databases, database)
}

fn put(database: &OpenDatabase, documents: impl Iterator<Item = Value>) {
    let edits = documents.map(|json| Edit { json: json.to_string().into(), ..Edit::default() }).collect();
    // What somebody else has changed meanwhile is changed another time.
    drop(database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap());
}

fn document(number: u64, random: &mut StdRng) -> Value {
    let tags: Vec<String> = (0..random.random_range(1..4)).map(|tag| format!("tag {tag}")).collect();
    let text: String = (0..450).map(|_| char::from(random.random_range(b'a'..=b'z'))).collect();
    json!({"_id": format!("{number:05}"), "A": random.random_range(0..1000), "Tags": tags, "Text": text})
}

fn design(version: u64) -> Value {
    let text = json!({"title": "Text", "formula": "Text"});
    let number = |formula: &str, sort: &str| json!({"title": "N", "formula": formula, "sort": sort});
    json!({"_id": "_design/d", "language": "formula", "version": version, "views": {
        "numbers": {"columns": [
            number(&format!("A + {version}"), "asc"), text, {"title": "A", "formula": "A", "total": true}]},
        "tags": {"columns": [
            {"title": "Tag", "formula": "Tags", "category": true}, number(&format!("A + {version}"), "desc"), text]},
        "some": {"selection": format!("SELECT A > 500 & {version} >= 0"), "columns": [number("0 - A", "asc"), text]},
    }})
}

/// What stands in the database, with its revision, if it is there.
fn stored(database: &OpenDatabase, id: &str) -> Option<Value> {
    let document = database.read(id, &ReadOptions::default(), &SERVER).ok()?;
    serde_json::from_str(&document.json).ok()
}

/// Runs until it is killed; only the test below starts it.
#[test]
#[ignore = "a child process of the other test"]
fn child() {
    let Some((folder, seed)) = Victim::order() else { return };
    let (_store, _databases, database) = open(&folder);
    tell("ready");
    std::thread::scope(|scope| {
        scope.spawn(|| update_some(&database, seed));
        // What a kill cut off is resumed before the next is begun.
        for _ in 0..MOST_BUILDS {
            for view in ["numbers", "tags", "some"] {
                drop(rows(&database, view, &RowQuery { limit: Some(1), ..up_to_date() }));
            }
            let mut stored = stored(&database, "_design/d").unwrap();
            let revision = stored["_rev"].take();
            let mut next = design(stored["version"].as_u64().unwrap() + 1);
            next["_rev"] = revision;
            put(&database, std::iter::once(next));
            database.clean_up_views().unwrap();
        }
        std::process::exit(0);
    });
}

/// Changes, deletes and adds documents.
fn update_some(database: &OpenDatabase, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    loop {
        let changed: Vec<Value> = (0..random.random_range(1..30))
            .map(|_| {
                let mut document = document(random.random_range(0..DOCUMENTS * 11 / 10), &mut random);
                if let Some(mut stored) = stored(database, document["_id"].as_str().unwrap()) {
                    document["_rev"] = stored["_rev"].take();
                    if random.random_ratio(1, 10) {
                        document["_deleted"] = json!(true);
                    }
                }
                document
            })
            .collect();
        put(database, changed.into_iter());
        std::thread::sleep(Duration::from_millis(random.random_range(0..20)));
    }
}

/// Whether a build has spilled something.
fn has_spilled(folder: &Path) -> bool {
    let builds = std::fs::read_dir(folder.join("rebuild")).into_iter().flatten().flatten();
    builds.into_iter().any(|build| build.path().join("manifest.json").exists())
}

/// Kills the child some time after it is ready, or after a build has spilled something. Whether there is something spilled
/// is returned.
fn run_child_until_killed(folder: &Path, random: &mut StdRng) -> bool {
    let child = Victim::start(module_path!(), folder, random.random()).unwrap();
    child.wait_until_ready().unwrap();
    if random.random_bool(0.6) {
        let begun = Instant::now();
        while !has_spilled(folder) && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(random.random_range(0..400)));
    } else {
        std::thread::sleep(Duration::from_millis(random.random_range(10..1500)));
    }
    child.kill().unwrap();
    has_spilled(folder)
}

fn up_to_date() -> RowQuery {
    RowQuery { freshness: Freshness::UpToDate, ..RowQuery::default() }
}

/// Keys, ids and values.
fn rows(database: &OpenDatabase, view: &str, query: &RowQuery) -> Vec<(Value, String, Value)> {
    let parse = |json: &str| serde_json::from_str::<Value>(json).unwrap();
    let rows = database.view("d", view, query.clone(), &SERVER).unwrap().next_rows(usize::MAX).unwrap();
    let row = |row: scrinium_database::Row| {
        (parse(&row.key), row.id.unwrap_or_default(), parse(&row.value.unwrap()))
    };
    rows.into_iter().map(row).collect()
}

/// Holds the views against what the documents make of them.
fn check(folder: &Path) {
    let (store, databases, database) = open(folder);
    let version = stored(&database, "_design/d").unwrap()["version"].as_i64().unwrap();
    let query = RowQuery { include_documents: true, ..RowQuery::default() };
    let all = database.all_documents(query, &SERVER).unwrap().next_rows(usize::MAX).unwrap();
    let documents: Vec<Value> = all
        .into_iter()
        .filter(|row| !row.id.as_ref().unwrap().starts_with('_'))
        .map(|row| serde_json::from_str(&row.document.unwrap()).unwrap())
        .collect();
    assert!(documents.len() > 1000);
    let (mut numbers, mut tags, mut some, mut sum) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for document in documents {
        let (id, a) = (document["_id"].as_str().unwrap().to_owned(), document["A"].as_i64().unwrap());
        let (n, text) = (a + version, &document["Text"]);
        sum += a;
        let value = json!({"N": n, "Text": text, "A": a});
        numbers.push(((String::new(), n), (json!([n]), id.clone(), value)));
        for tag in document["Tags"].as_array().unwrap() {
            let value = json!({"Tag": tag, "N": n, "Text": text});
            tags.push(((tag.as_str().unwrap().to_owned(), -n), (json!([tag, n]), id.clone(), value)));
        }
        if a > 500 {
            some.push(((String::new(), -a), (json!([-a]), id, json!({"N": -a, "Text": text}))));
        }
    }
    let count = numbers.len();
    for (view, mut expected) in [("numbers", numbers), ("tags", tags), ("some", some)] {
        expected.sort_by(|(left, (_, left_id, _)), (right, (_, right_id, _))| {
            (left, left_id).cmp(&(right, right_id))
        });
        let found = rows(&database, view, &up_to_date());
        assert_eq!(found.len(), expected.len(), "{view}");
        for (found, (_, expected)) in found.into_iter().zip(expected) {
            assert_eq!(found, expected, "{view}");
        }
    }
    let totals = rows(&database, "numbers", &RowQuery { reduce: Some(true), ..up_to_date() });
    assert_eq!(totals[0].2["count"], count);
    assert_eq!(totals[0].2["totals"]["A"].as_f64().unwrap(), sum as f64);
    drop((database, databases));
    store.close().unwrap();
}

#[test]
fn views_are_what_their_documents_make_of_them_whenever_a_build_is_killed() {
    let kills = Kills::from_environment(6);
    println!("{kills}");
    let mut random = StdRng::seed_from_u64(kills.seed);
    let folder = tempfile::tempdir().unwrap();
    let (store, databases, database) = open(folder.path());
    for from in (0..DOCUMENTS).step_by(1000) {
        put(&database, (from..from + 1000).map(|number| document(number, &mut random)));
    }
    put(&database, std::iter::once(design(0)));
    drop((database, databases));
    store.close().unwrap();
    let mut cut_off = 0;
    for kill in 1..=kills.count {
        cut_off += u64::from(run_child_until_killed(folder.path(), &mut random));
        if kill == kills.count || random.random_ratio(1, 4) {
            check(folder.path());
        }
    }
    println!("{cut_off} kills cut off a build that had spilled something");
}
