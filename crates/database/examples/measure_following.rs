//! What following a change costs seven views:
//! `cargo run --release -p scrinium-database --example measure_following [DOCUMENTS] [CHANGES AT ONCE]`.
//!
//! Every change is one of a document chosen at random, of its date, subject and size, so that most of its entries move.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "it measures, and serves nobody"
)]

use std::time::{Duration, Instant};

use scrinium_bench::discussion::{design, document};
use scrinium_bench::scatter;
use scrinium_catalog::Databases;
use scrinium_database::{Access, DatabaseOptions, Edit, EditMode, ReadOptions};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

/// Tests and measurements may do everything.
static SERVER: Access = Access::of_the_server("a measurement");

const AT_ONCE: u64 = 5000;
const ROUNDS: usize = 7;
const CHANGES: u64 = 20_000;

fn put(database: &OpenDatabase, documents: impl Iterator<Item = Value>) {
    let edits = documents.map(|json| Edit { json: json.to_string().into(), ..Edit::default() }).collect();
    let results = database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    results.into_iter().for_each(|result| drop(result.unwrap()));
}

/// The document with this number as it is after an edit with that number.
fn edited(database: &OpenDatabase, number: u64, edit: u64) -> Value {
    let mut changed = document(number);
    let other = document(edit.wrapping_mul(31) + 7);
    let present = database.read(other_id(&changed), &ReadOptions::default(), &SERVER).unwrap();
    let present: Value = serde_json::from_str(&present.json).unwrap();
    changed["_rev"] = present["_rev"].clone();
    for member in ["Date", "Subject", "Size"] {
        changed[member] = other[member].clone();
    }
    changed
}

fn other_id(document: &Value) -> &str {
    document["_id"].as_str().unwrap()
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|number| number.parse::<u64>().unwrap());
    let count = arguments.next().unwrap_or(100_000);
    let at_once = arguments.next().unwrap_or(64);
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(StoreOptions::new(dir.path()), &Registry::new()).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    let database = databases.create("discussion", &scrinium_database::InitialAccess::Everybody).unwrap();
    for first in (0..count).step_by(usize::try_from(AT_ONCE).unwrap()) {
        put(&database, (first..count.min(first + AT_ONCE)).map(document));
    }
    put(&database, std::iter::once(design()));
    database.update_view_group("discussion").unwrap();
    let mut edit = 0;
    for _ in 0..ROUNDS {
        let (mut written, mut followed) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..CHANGES / at_once {
            let mut numbers: Vec<u64> = (0..at_once).map(|at| scatter(edit + at) % count).collect();
            numbers.sort_unstable();
            numbers.dedup();
            edit += at_once;
            let documents: Vec<Value> =
                numbers.iter().map(|number| edited(&database, *number, edit + number)).collect();
            let begun = Instant::now();
            put(&database, documents.into_iter());
            written += begun.elapsed();
            let begun = Instant::now();
            database.update_view_group("discussion").unwrap();
            followed += begun.elapsed();
        }
        let each = |time: Duration| time.as_secs_f64() * 1e6 / CHANGES as f64;
        println!(
            "{}",
            json!({"documents": count, "changes_at_once": at_once, "write_us": each(written), "follow_us": each(followed)})
        );
    }
}
