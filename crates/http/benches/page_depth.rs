//! What a client waits for at 1,000 documents and at many more: a document, pages of a view, entry N, and an
//! update that seven views follow. Then the same at the largest size with memory for all, and for a tenth.
//!
//! One client over HTTP, on a core of its own; rounds alternate between the sizes, and between the budgets.
//! `SCRINIUM_SIZES=1000,5000000` for other sizes, `SCRINIUM_CASE=update` for the cases with a word in their name.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark stops at the first error")]

mod support;

use std::time::Instant;

use scrinium_bench::client::Connection;
use scrinium_bench::discussion::{date, design, document, id};
use scrinium_bench::process::on_core;
use scrinium_bench::{Against, Line, alternate, compare_sizes, report, scatter, setting, sizes};
use scrinium_catalog::Databases;
use scrinium_database::{Access, Edit, EditMode, ReadOptions};
use scrinium_store::{Direction, Family, KeyRange};
use scrinium_views::OpenDatabase;
use serde_json::Value;

use support::Served;

/// Tests and measurements may do everything.
static SERVER: Access = Access::of_the_server("a benchmark");

const SIZES: [u64; 4] = [1000, 10_000, 80_000, 500_000];
/// Everything is in memory: it is depth that is compared, not the disk.
const AMPLE_BYTES: u64 = 12 << 30;
/// As little as the configuration takes.
const LEAST_BYTES: u64 = 16 << 20;
const OPERATIONS: u64 = 1000;
const AT_ONCE: u64 = 2000;
const CLIENT_CORE: usize = 0;
const SERVER_CORE: usize = 1;
const VIEW: &str = "_design/discussion/_view/all%20documents";

/// A database of this many documents, and what is known of it.
struct Place {
    documents: u64,
    database: OpenDatabase,
    path: String,
}

type Operation = fn(&Place, &mut Connection, u64);

fn fill(databases: &Databases, documents: u64) -> Place {
    let name = format!("discussion{documents}");
    let database = databases.create(&name, &scrinium_database::InitialAccess::Everybody).unwrap();
    let edit = |json: Value| Edit { json: json.to_string().into(), ..Edit::default() };
    let began = Instant::now();
    for start in (0..documents).step_by(usize::try_from(AT_ONCE).unwrap()) {
        let edits = (start..documents.min(start + AT_ONCE)).map(|number| edit(document(number))).collect();
        database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    }
    let stored = began.elapsed();
    database.update(vec![edit(design())], EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
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
    place.database.read(&id(number), &ReadOptions::default(), &SERVER).unwrap();
}

fn read_page(place: &Place, connection: &mut Connection, parameters: &str) {
    let answer = connection.request("GET", &format!("{}/{VIEW}?update=false&{parameters}", place.path), "");
    // Behind the last key, which an update may have moved, there is no entry.
    assert!(answer.contains("\"id\":") || parameters.contains("startkey"), "{answer}");
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

/// At 1,000 documents everything is in memory, so at all sizes, what updates read included.
fn warm_everything(served: &Served) {
    let snapshot = served.store.snapshot();
    for family in Family::ALL {
        let mut cursor = snapshot.cursor(family, KeyRange::ALL, Direction::Forward);
        while cursor.next().unwrap().is_some() {}
    }
}

/// As much of what is read as fits.
fn warm(place: &Place, served: &Served) {
    for number in 0..place.documents {
        place.database.read(&id(number), &ReadOptions::default(), &SERVER).unwrap();
    }
    // A connection from before that would have been idle for too long.
    let connection = &mut served.connect();
    for start in (0..place.documents).step_by(1000) {
        read_page(place, connection, &format!("limit=1000&skip={start}"));
    }
}

const CASES: [(&str, Operation); 8] = [
    ("a document", read_document),
    ("a document, below HTTP", read_document_inside),
    ("30 entries at the top", read_top),
    ("30 entries in the middle", read_middle),
    ("30 entries at a random place", read_somewhere),
    ("30 entries at a random key", read_at_key),
    ("entry number N", read_entry),
    ("an update that 7 views follow", update),
];

fn chosen() -> impl Iterator<Item = (&'static str, Operation)> {
    let word = setting("SCRINIUM_CASE", String::new());
    CASES.into_iter().filter(move |(case, _)| case.contains(&word))
}

/// The same operations where a tenth of the data fits into memory, compared with `ample`, where everything does.
fn compare_budgets(ample: &Place, ample_served: &Served) {
    let data = ample.database.info().unwrap().sizes.file_bytes + ample.database.derived_bytes();
    let budget_bytes = (data / 10).max(LEAST_BYTES);
    eprintln!("{} MB of documents and views, and {} MB of memory", data >> 20, budget_bytes >> 20);
    let served = on_core(SERVER_CORE, || Served::start(budget_bytes));
    let scarce = fill(&served.databases, ample.documents);
    served.store.admin().checkpoint().unwrap();
    warm(&scarce, &served);
    let (mut ample_connection, mut scarce_connection) = (ample_served.connect(), served.connect());
    let places = ["memory for all", "memory for a tenth"];
    for (case, operation) in chosen() {
        let values = alternate(case, &places, OPERATIONS, |place, number| {
            let number = number % ample.documents;
            if place == 0 {
                operation(ample, &mut ample_connection, number);
            } else {
                operation(&scarce, &mut scarce_connection, number);
            }
        });
        report(&Line {
            name: "page-depth",
            case: &format!("{case}, {} documents, memory for a tenth", ample.documents),
            values: &values[1],
            unit: "us",
            against: Against::Measured("the same with memory for all", &values[0]),
        });
    }
}

fn main() {
    let served = on_core(SERVER_CORE, || Served::start(AMPLE_BYTES));
    let sizes = sizes(&SIZES);
    let places: Vec<Place> = sizes.iter().map(|documents| fill(&served.databases, *documents)).collect();
    served.store.admin().checkpoint().unwrap();
    places.iter().for_each(|place| warm(place, &served));
    warm_everything(&served);
    let mut connection = served.connect();
    on_core(CLIENT_CORE, || {
        measure(&places, &sizes, &mut connection);
        compare_budgets(places.last().unwrap(), &served);
    });
}

fn measure(places: &[Place], sizes: &[u64], connection: &mut Connection) {
    for (case, operation) in chosen() {
        compare_sizes("page-depth", case, sizes, OPERATIONS, |size, number| {
            let place = &places[size];
            operation(place, connection, number % place.documents);
        });
    }
}
