//! What a view with responses costs: `cargo run --release -p scrinium-database --example measure_responses [DOCUMENTS]`.
//!
//! One document in twenty is a topic; the others respond to any document before them. Half of them have ids that sort
//! before their parents', none is stored before its parent.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "it measures, and serves nobody"
)]

use std::time::Instant;

use scrinium_catalog::Databases;
use scrinium_database::{Access, DatabaseOptions, Edit, EditMode, ReadOptions, RowQuery};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

/// Tests and measurements may do everything.
static SERVER: Access = Access::of_the_server("a measurement");

const AT_ONCE: u64 = 5000;

fn random(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8
}

fn id(number: u64) -> String {
    format!("{:014x}", random(number))
}

fn document(number: u64) -> Value {
    let mut json = json!({"_id": id(number), "Form": "Response", "Subject": format!("about {}", random(number + 7) % 9000),
        "Date": number, "From": format!("CN=Person {}/O=Acme", number % 300), "Body": "text ".repeat(60)});
    if number.is_multiple_of(20) {
        json["Form"] = json!("Topic");
    } else {
        json["$REF"] = json!(id(random(number + 1) % number));
    }
    json
}

fn put(database: &OpenDatabase, documents: &[Value]) {
    let edits = documents.iter().map(|json| Edit { json: json.to_string().into(), ..Edit::default() });
    let results = database.update(edits.collect(), EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    results.into_iter().for_each(|result| drop(result.unwrap()));
}

fn design(name: &str, responses: &Value, selection: &str) -> Value {
    let columns = json!([{"title": "Subject", "formula": "Subject", "sort": "asc"},
        {"title": "Date", "formula": "Date", "sort": "desc"}, {"title": "From", "formula": "@Name([CN]; From)"}]);
    json!({"_id": format!("_design/{name}"), "language": "formula",
        "views": {"v": {"selection": selection, "responses": responses, "columns": columns}}})
}

/// Reads a page, which brings the view up to date first, and says what that took.
fn read(what: &str, database: &OpenDatabase, name: &str, documents: u64) {
    let begun = Instant::now();
    let mut rows =
        database.view(name, "v", RowQuery { limit: Some(30), ..RowQuery::default() }, &SERVER).unwrap();
    let count = rows.next_rows(30).unwrap().len();
    let seconds = begun.elapsed().as_secs_f64();
    let total = rows.total_rows.unwrap();
    let rate = documents as f64 / seconds;
    println!(
        "{}",
        json!({"what": what, "entries": total, "page": count, "ms": seconds * 1000.0, "documents_s": rate})
    );
}

fn change(database: &OpenDatabase, id: &str, member: &str, value: Value) {
    let present = database.read(id, &ReadOptions::default(), &SERVER).unwrap();
    let mut present: Value = serde_json::from_str(&present.json).unwrap();
    present[member] = value;
    put(database, &[present]);
}

fn main() {
    let count = std::env::args().nth(1).map_or(200_000, |count| count.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(StoreOptions::new(dir.path()), &Registry::new()).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    let database = databases.create("forum", &scrinium_database::InitialAccess::Everybody).unwrap();
    for first in (0..count).step_by(usize::try_from(AT_ONCE).unwrap()) {
        put(&database, &(first..count.min(first + AT_ONCE)).map(document).collect::<Vec<_>>());
    }
    let selection = "SELECT Form = \"Topic\" | @AllDescendants";
    put(&database, &[design("flat", &Value::Null, "SELECT @All"), design("tree", &json!(true), selection)]);
    read("build, without responses", &database, "flat", count);
    read("build, with responses", &database, "tree", count);
    change(&database, &id(count - 1), "Subject", json!("edited"));
    read("edit of a response", &database, "tree", 1);
    change(&database, &id(0), "From", json!("CN=Somebody/O=Acme"));
    read("edit of the first topic that leaves its key", &database, "tree", 1);
    change(&database, &id(0), "Subject", json!("zzz"));
    read("edit of the first topic that moves what is beneath it", &database, "tree", 1);
}
