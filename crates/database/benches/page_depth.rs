//! Reading at 1,000 documents and at 1,000,000: a document, a page of a view at a random place, entry N.
//!
//! Rounds alternate between both sizes. `cargo bench -p scrinium-database --bench page_depth`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_precision_loss, reason = "a benchmark")]

use std::sync::Arc;
use std::time::Instant;

use scrinium_bench::{Against, Line, folder, median, report, scatter};
use scrinium_database::{
    Database, DatabaseOptions, Databases, Edit, EditMode, Freshness, ReadOptions, RowQuery,
};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use serde_json::json;

const SMALL: u64 = 1000;
const LARGE: u64 = 1_000_000;
const ROUNDS: usize = 7;
const READS: u64 = 2000;
const AT_ONCE: u64 = 2000;
const PAGE: usize = 30;

type Read = fn(&Arc<Database>, u64);

fn id(number: u64) -> String {
    format!("{:016x}", scatter(number))
}

fn key(number: u64) -> String {
    format!("{:012x}", scatter(number ^ 0x5555) >> 16)
}

fn fill(databases: &Databases, name: &str, documents: u64) -> Arc<Database> {
    let database = databases.create(name).unwrap();
    let text = "All of this is text that a view does not need. ".repeat(12);
    for start in (0..documents).step_by(usize::try_from(AT_ONCE).unwrap()) {
        let edits = (start..documents.min(start + AT_ONCE))
            .map(|number| {
                let document = json!({"_id": id(number), "Form": "Memo", "Key": key(number), "Size": number, "Body": text});
                Edit { json: document.to_string().into(), ..Edit::default() }
            })
            .collect();
        database.update(edits, EditMode::Interactive).unwrap().wait().unwrap();
    }
    let design = json!({"_id": "_design/mail", "language": "formula", "views": {"inbox": {
        "selection": "SELECT Form = \"Memo\"",
        "columns": [{"title": "Key", "formula": "Key", "sort": "asc"}, {"title": "Size", "formula": "Size", "total": true}],
    }}});
    let edit = Edit { json: design.to_string().into(), ..Edit::default() };
    database.update(vec![edit], EditMode::Interactive).unwrap().wait().unwrap();
    database.update_view_group("mail").unwrap();
    database
}

/// The median of one operation, in microseconds.
fn round(documents: u64, seed: u64, mut operation: impl FnMut(u64)) -> f64 {
    let times: Vec<f64> = (0..READS)
        .map(|read| {
            let number = scatter(seed ^ read) % documents;
            let began = Instant::now();
            operation(number);
            began.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    median(&times)
}

fn read_document(database: &Arc<Database>, number: u64) {
    database.read(&id(number), &ReadOptions::default()).unwrap();
}

fn read_rows(database: &Arc<Database>, query: RowQuery) {
    let query = RowQuery { freshness: Freshness::AsItStands, ..query };
    let mut rows = database.view("mail", "inbox", query).unwrap();
    assert!(!rows.next_rows(PAGE).unwrap().is_empty());
}

fn read_page(database: &Arc<Database>, number: u64) {
    let start_key = Some(json!([key(number)]));
    read_rows(database, RowQuery { start_key, limit: Some(PAGE as u64), ..RowQuery::default() });
}

fn read_entry(database: &Arc<Database>, number: u64) {
    read_rows(database, RowQuery { skip: number, limit: Some(1), ..RowQuery::default() });
}

fn main() {
    let folder = folder();
    let mut options = StoreOptions::new(folder.path());
    options.budget_bytes = Some(4 << 30);
    let store = Store::open(options, &Registry::new()).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    let small = fill(&databases, "small", SMALL);
    eprintln!("storing {LARGE} documents and building their view ...");
    let large = fill(&databases, "large", LARGE);
    store.checkpoint().unwrap();
    // At 1,000 documents everything is in memory, so here too: it is depth that is compared, not the disk.
    (0..LARGE).for_each(|number| read_document(&large, number));
    let operations: [(&str, Read); 3] = [
        ("a document", read_document),
        ("a page of 30 at a random key", read_page),
        ("entry number N", read_entry),
    ];
    for (name, operation) in operations {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        // The first round warms both up and is not counted.
        for seed in 0..=ROUNDS as u64 {
            let at_small = round(SMALL, seed << 32, |number| operation(&small, number));
            let at_large = round(LARGE, seed << 32, |number| operation(&large, number));
            eprintln!("{name}: {at_small:.1} us at {SMALL}, {at_large:.1} us at {LARGE}");
            if seed > 0 {
                theirs.push(at_small);
                ours.push(at_large);
            }
        }
        report(&Line {
            name: "page-depth",
            case: &format!("{name}, {LARGE} documents"),
            values: &ours,
            unit: "us",
            against: Against::Measured("the same at 1,000 documents", &theirs),
        });
    }
}
