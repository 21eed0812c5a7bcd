//! What a client waits for with a Mango query at 1,000 documents and at many more: 25 documents that have a value in
//! an indexed field, results from the index alone, and documents behind many others.
//!
//! One client over HTTP; rounds alternate between the sizes. `SCRINIUM_SIZES=1000,1000000` for other sizes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark stops at the first error")]

mod support;

use std::time::Instant;

use scrinium_bench::client::Connection;
use scrinium_bench::discussion::document;
use scrinium_bench::{compare_sizes, sizes};
use scrinium_catalog::Databases;
use scrinium_database::{Access, Edit, EditMode};
use scrinium_mango::{IndexDefinition, Query};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use support::Served;

/// Tests and measurements may do everything.
static SERVER: Access = Access::of_the_server("a benchmark");

const SIZES: [u64; 2] = [1000, 100_000];
const OPERATIONS: u64 = 500;
const AT_ONCE: u64 = 2000;
/// Documents with the same value of the field, whatever the size.
const GROUP: u64 = 100;

/// A database of this many documents, each of which has a `Group`, and in it a `Place`.
struct Place {
    documents: u64,
    database: OpenDatabase,
    path: String,
}

type Operation = fn(&Place, &mut Connection, u64);

fn fill(databases: &Databases, documents: u64) -> Place {
    let name = format!("discussion{documents}");
    let database = databases.create(&name, &scrinium_database::InitialAccess::Everybody).unwrap();
    let edit = |number: u64| {
        let mut json = document(number);
        (json["Group"], json["Place"]) = (json!(number / GROUP), json!(number % GROUP));
        Edit { json: json.to_string().into(), ..Edit::default() }
    };
    for start in (0..documents).step_by(usize::try_from(AT_ONCE).unwrap()) {
        let edits = (start..documents.min(start + AT_ONCE)).map(edit).collect();
        database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    }
    let index = json!({ "index": { "fields": ["Group", "Place"] }, "ddoc": "groups", "name": "groups" });
    database.create_index(&IndexDefinition::parse(&index).unwrap(), &SERVER).unwrap();
    let began = Instant::now();
    database.update_view_group("groups").unwrap();
    eprintln!("{documents} documents indexed in {:.1?}", began.elapsed());
    Place { documents, database, path: format!("/{name}") }
}

fn body(place: &Place, number: u64, beside: &Value) -> Value {
    let group = number % (place.documents / GROUP);
    let mut body = json!({ "selector": { "Group": group, "Place": { "$gte": 0 } }, "limit": 25 });
    body.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
    body
}

fn ask(place: &Place, connection: &mut Connection, body: &Value) {
    let address = format!("{}/_find", place.path);
    let answer = connection.request("POST", &address, &body.to_string());
    assert_eq!(answer.matches("\"_id\":").count(), 25, "{answer}");
}

fn equal(place: &Place, connection: &mut Connection, number: u64) {
    ask(place, connection, &body(place, number, &json!({})));
}

/// The same below HTTP.
fn equal_inside(place: &Place, _connection: &mut Connection, number: u64) {
    let query = Query::parse(&body(place, number, &json!({}))).unwrap();
    let mut find = place.database.find(&query, &SERVER).unwrap();
    let found = find.next(25, 2000).unwrap().len();
    assert!(found == 25 && find.is_at_end() && find.execution_stats().keys_examined == 25);
}

fn covered(place: &Place, connection: &mut Connection, number: u64) {
    ask(place, connection, &body(place, number, &json!({ "fields": ["_id", "Place"] })));
}

fn skipped(place: &Place, connection: &mut Connection, number: u64) {
    let skip = place.documents / 2 + number % (place.documents / 4);
    let all = json!({ "Group": { "$gte": 0 }, "Place": { "$exists": true } });
    ask(place, connection, &body(place, number, &json!({ "selector": all, "skip": skip })));
}

fn main() {
    let served = Served::start(1 << 30);
    let places: Vec<Place> =
        sizes(&SIZES).into_iter().map(|documents| fill(&served.databases, documents)).collect();
    served.store.admin().checkpoint().unwrap();
    let mut connection = served.connect();
    // At 1,000 documents everything is in memory, so here too: it is size that is compared, not the disk.
    for place in &places {
        (0..place.documents / GROUP * 4).for_each(|part| {
            let bookmark = json!({ "skip": part % 4 * 25 });
            let body = body(place, part / 4, &bookmark);
            ask(place, &mut connection, &body);
        });
    }
    let operations: [(&str, Operation); 4] = [
        ("25 documents equal in a field", equal),
        ("25 documents equal in a field, below HTTP", equal_inside),
        ("25 results from the index alone", covered),
        ("25 documents behind half of all", skipped),
    ];
    let sizes: Vec<u64> = places.iter().map(|place| place.documents).collect();
    for (case, operation) in operations {
        compare_sizes("find", case, &sizes, OPERATIONS, |size, number| {
            operation(&places[size], &mut connection, number);
        });
    }
}
