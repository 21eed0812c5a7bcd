//! What a client waits for at 1,000 documents and at many more: a document, pages of a view, entry N, and an
//! update that seven views follow.
//!
//! One client over HTTP; rounds alternate between the sizes. `SCRINIUM_SIZES=1000,80000` for other sizes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark stops at the first error")]

mod support;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use scrinium_bench::discussion::{date, design, document, id};
use scrinium_bench::{Against, Line, folder, median, report, scatter};
use scrinium_database::{Database, DatabaseOptions, Databases, Edit, EditMode, ReadOptions};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use serde_json::Value;
use support::Connection;

const SIZES: [u64; 2] = [1000, 1_000_000];
const ROUNDS: u64 = 7;
const OPERATIONS: u64 = 1000;
const AT_ONCE: u64 = 2000;
const VIEW: &str = "_design/discussion/_view/all%20documents";

/// A database of so many documents, and what is known of it.
struct Place {
    documents: u64,
    database: Arc<Database>,
    path: String,
}

type Operation = fn(&Place, &mut Connection, u64);

fn fill(databases: &Databases, documents: u64) -> Place {
    let name = format!("discussion{documents}");
    let database = databases.create(&name).unwrap();
    let edit = |json: Value| Edit { json: json.to_string().into(), ..Edit::default() };
    let began = Instant::now();
    for start in (0..documents).step_by(usize::try_from(AT_ONCE).unwrap()) {
        let edits = (start..documents.min(start + AT_ONCE)).map(|number| edit(document(number))).collect();
        database.update(edits, EditMode::Interactive).unwrap().wait().unwrap();
    }
    let stored = began.elapsed();
    database.update(vec![edit(design())], EditMode::Interactive).unwrap().wait().unwrap();
    database.update_view_group("discussion").unwrap();
    eprintln!(
        "{documents} documents stored in {stored:.1?}, seven views built in {:.1?}",
        began.elapsed() - stored
    );
    Place { documents, database, path: format!("/{name}") }
}

fn read_document(place: &Place, connection: &mut Connection, number: u64) {
    connection.request("GET", &format!("{}/{}", place.path, id(number)), "");
}

/// The same below HTTP.
fn read_document_inside(place: &Place, _connection: &mut Connection, number: u64) {
    place.database.read(&id(number), &ReadOptions::default()).unwrap();
}

fn read_page(place: &Place, connection: &mut Connection, parameters: &str) {
    let answer = connection.request("GET", &format!("{}/{VIEW}?update=false&{parameters}", place.path), "");
    assert!(answer.contains("\"id\":"), "{answer}");
}

fn read_top(place: &Place, connection: &mut Connection, _number: u64) {
    read_page(place, connection, "limit=30");
}

fn read_middle(place: &Place, connection: &mut Connection, number: u64) {
    read_page(place, connection, &format!("limit=30&skip={}", place.documents / 2 - number % 300));
}

fn read_somewhere(place: &Place, connection: &mut Connection, number: u64) {
    read_page(place, connection, &format!("limit=30&skip={}", number - number.min(30)));
}

fn read_at_key(place: &Place, connection: &mut Connection, number: u64) {
    read_page(place, connection, &format!("limit=30&startkey=[%22{}%22]", date(number)));
}

fn read_entry(place: &Place, connection: &mut Connection, number: u64) {
    read_page(place, connection, &format!("limit=1&skip={number}"));
}

/// An update, and then a read that brings all seven views up to date.
fn update(place: &Place, connection: &mut Connection, number: u64) {
    let address = format!("{}/{}", place.path, id(number));
    let mut next: Value = serde_json::from_str(connection.request("GET", &address, "")).unwrap();
    next["Date"] = date(scatter(number ^ place.database.visible_change_number())).into();
    connection.request("PUT", &address, &next.to_string());
    connection.request("GET", &format!("{}/{VIEW}?limit=0", place.path), "");
}

/// The median of one operation, in microseconds.
fn round(place: &Place, connection: &mut Connection, seed: u64, operation: Operation) -> f64 {
    let times: Vec<f64> = (0..OPERATIONS)
        .map(|count| {
            let number = scatter(seed << 32 ^ count) % place.documents;
            let began = Instant::now();
            operation(place, connection, number);
            began.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    median(&times)
}

fn compare(places: &[Place], connection: &mut Connection, name: &str, operation: Operation) {
    let mut values: Vec<Vec<f64>> = places.iter().map(|_| Vec::new()).collect();
    // The first round warms up and is not counted.
    for seed in 0..=ROUNDS {
        let mut talk = String::new();
        for (place, values) in places.iter().zip(&mut values) {
            let value = round(place, connection, seed, operation);
            write!(talk, " {value:.1} us at {},", place.documents).unwrap();
            if seed > 0 {
                values.push(value);
            }
        }
        eprintln!("{name}:{talk}");
    }
    let (smallest, against) = (values[0].clone(), format!("the same at {} documents", places[0].documents));
    for (place, values) in places.iter().zip(&values).skip(1) {
        report(&Line {
            name: "page-depth",
            case: &format!("{name}, {} documents", place.documents),
            values,
            unit: "us",
            against: Against::Measured(&against, &smallest),
        });
    }
}

fn main() {
    let folder = folder();
    let mut options = StoreOptions::new(folder.path());
    options.budget_bytes = Some(6 << 30);
    let statistics = Registry::new();
    let store = Store::open(options, &statistics).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let address = runtime.block_on(async { support::serve(databases.clone(), &statistics) });
    let sizes = std::env::var("SCRINIUM_SIZES").ok();
    let sizes = sizes
        .map_or_else(|| SIZES.to_vec(), |text| text.split(',').map(|size| size.parse().unwrap()).collect());
    let places: Vec<Place> = sizes.into_iter().map(|documents| fill(&databases, documents)).collect();
    store.checkpoint().unwrap();
    let mut connection = Connection::open(address);
    // At 1,000 documents everything is in memory, so here too: it is depth that is compared, not the disk.
    for place in &places {
        (0..place.documents).for_each(|number| read_document_inside(place, &mut connection, number));
        for start in (0..place.documents).step_by(1000) {
            read_page(place, &mut connection, &format!("limit=1000&skip={start}"));
        }
    }
    let operations: [(&str, Operation); 8] = [
        ("a document", read_document),
        ("a document, below HTTP", read_document_inside),
        ("30 entries at the top", read_top),
        ("30 entries in the middle", read_middle),
        ("30 entries at a random place", read_somewhere),
        ("30 entries at a random key", read_at_key),
        ("entry number N", read_entry),
        ("an update that 7 views follow", update),
    ];
    for (name, operation) in operations {
        compare(&places, &mut connection, name, operation);
    }
}
