//! A view of documents with readers: what pages cost somebody who may read one document in 10,000, compared with what they
//! cost an administrator.
//!
//! One client over HTTP; rounds alternate between the people. `SCRINIUM_SIZES=100000` for another number of documents.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark stops at the first error")]

mod support;

use std::time::Instant;

use scrinium_bench::client::Connection;
use scrinium_bench::discussion::{date, document};
use scrinium_bench::{Against, Line, alternate, report, sizes};
use scrinium_catalog::Databases;
use scrinium_database::{Access, AccessList, Edit, EditMode};
use serde_json::{Value, json};

use support::Served;

/// Tests and measurements may do everything.
static SERVER: Access = Access::of_the_server("a benchmark");

/// Each document is one person's.
const PEOPLE: u64 = 10_000;

/// An administrator; one who finds documents by name; and one who does by name and by a group.
const WHO: [(&str, &str); 3] =
    [("an administrator", "a"), ("a reader of 1 in 10,000", "p7"), ("a reader by two names", "p7+p8")];

const OPERATIONS: u64 = 1000;
const AT_ONCE: u64 = 2000;
const VIEW: &str = "/memos/_design/memos/_view";

/// Parameters of a page from a random number.
type Parameters = fn(u64) -> String;

fn design() -> Value {
    let date = json!({"title": "Date", "formula": "Date", "sort": "desc"});
    let subject = json!({"title": "Subject", "formula": "Subject"});
    let category = json!({"title": "Category", "formula": "Categories", "category": true});
    let size = json!({"title": "Size", "formula": "Size", "total": true});
    json!({"_id": "_design/memos", "language": "formula", "views": {
        "by date": {"columns": [date, subject, size]},
        "by category": {"columns": [category, date, subject, size]},
    }})
}

fn fill(databases: &Databases, documents: u64) {
    let database = databases.create("memos", &scrinium_database::InitialAccess::Everybody).unwrap();
    let list = json!({"default": {"level": "reader"}});
    database.set_access_list(Some(AccessList::parse(&list).unwrap())).unwrap();
    let edit = |json: Value| Edit { json: json.to_string().into(), ..Edit::default() };
    let memo = |number: u64| {
        let mut memo = document(number);
        memo["Readers"] = format!("p{}", number % PEOPLE).into();
        edit(memo)
    };
    for start in (0..documents).step_by(usize::try_from(AT_ONCE).unwrap()) {
        let edits = (start..documents.min(start + AT_ONCE)).map(memo).collect();
        database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    }
    let began = Instant::now();
    database.update(vec![edit(design())], EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    database.update_view_group("memos").unwrap();
    eprintln!("two views of {documents} documents built in {:.1?}", began.elapsed());
}

fn main() {
    let served = Served::start(6 << 30);
    let documents = sizes(&[500_000])[0];
    fill(&served.databases, documents);
    served.store.admin().checkpoint().unwrap();
    let mut connections: Vec<Connection> = WHO.iter().map(|(_, name)| served.connect_as(name)).collect();
    let people = WHO.map(|(who, _)| who);
    let cases: [(&str, Parameters); 4] = [
        ("30 entries at the top", |_| "by%20date?limit=30".to_owned()),
        ("30 entries at a random key", |number| {
            format!("by%20date?limit=30&startkey=[%22{}%22]", date(number))
        }),
        ("30 entries at entry 20", |_| "by%20date?limit=30&start=20".to_owned()),
        ("totals of 10 categories", |_| "by%20category?group_level=1&limit=10".to_owned()),
    ];
    for (case, parameters) in cases {
        let values = alternate(case, &people, OPERATIONS, |who, number| {
            let path = format!("{VIEW}/{}", parameters(number));
            let answer = connections[who].request("GET", &format!("{path}&update=false"), "");
            // Behind a random key there may be nothing that somebody may read.
            assert!(answer.contains("\"rows\":"), "{answer}");
        });
        let administrator = &values[0];
        for (who, values) in people.iter().zip(&values).skip(1) {
            report(&Line {
                name: "readers",
                case: &format!("{case}, {who}, {documents} documents"),
                values,
                unit: "us",
                against: Against::Measured(people[0], administrator),
            });
        }
    }
}
