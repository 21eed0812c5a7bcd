//! What the other users of a server notice while a person is renamed who is named in 100,000 documents of 1,000 databases.
//!
//! Eight clients read pages of a view and update documents over HTTP, at half the rate that they reach without think times. Each
//! round measures them for a while, and then from the request to its end; the next round renames the person again. Asked for: p99 at
//! most twice as high. `cargo bench -p scrinium-server --bench rename`; `SCRINIUM_DATABASES=20 SCRINIUM_DOCUMENTS=5000
//! SCRINIUM_ROUNDS=1` for a short form.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

use std::thread::sleep;
use std::time::{Duration, Instant};

use scrinium_bench::client::Connection;
use scrinium_bench::discussion::design;
use scrinium_bench::server::{Discussion, Reads, Server, Times};
use scrinium_bench::{Against, Line, percentile, report, setting};
use serde_json::{Value, json};

const DATABASES: u64 = 1_000;
/// Documents that name the person, of all databases together.
const DOCUMENTS: u64 = 100_000;
/// Documents of the database in which the clients work.
const OWN_DOCUMENTS: u64 = 20_000;
const CLIENTS: u64 = 8;
const ROUNDS: u64 = 3;
const BEFORE: Duration = Duration::from_secs(8);
const FLAT_OUT: Duration = Duration::from_secs(5);
/// Of the rate without think times; `SCRINIUM_PACE` for another.
const PACE: f64 = 0.5;
/// No rename takes longer.
const AT_MOST: Duration = Duration::from_secs(1_800);
const LOOK_EVERY: Duration = Duration::from_millis(250);

type Kind = fn(&Times) -> &[f64];

/// Databases whose documents name the person in `Readers`.
fn fill(connection: &mut Connection, databases: u64, documents: u64) {
    let person = json!({"Form": "Person", "FullName": ["Ada"], "ShortName": "name0"});
    connection.request("PUT", "/directory/person:ada", &person.to_string());
    let each = documents.div_ceil(databases);
    for number in 0..databases {
        connection.request("PUT", &format!("/named{number}"), "");
        let documents: Vec<Value> = (0..each)
            .map(|number| json!({"Readers": ["name0", "somebody"], "Number": number, "Body": "text ".repeat(100)}))
            .collect();
        connection.request(
            "POST",
            &format!("/named{number}/_bulk_docs"),
            &json!({"docs": documents}).to_string(),
        );
    }
}

/// Renames the person, and waits for the end; how long that took.
fn rename(connection: &mut Connection, round: u64) -> Duration {
    let began = Instant::now();
    let command = format!("rename person name{} name{round}", round - 1);
    connection.request("POST", "/_console", &json!({"command": command}).to_string());
    loop {
        let shown = connection.request("POST", "/_console", &json!({"command": "show requests"}).to_string());
        let shown: Value = serde_json::from_str(shown).unwrap();
        let requests = shown["data"]["requests"].as_array().unwrap();
        let last = requests.last().unwrap();
        if last["ended"].is_string() {
            assert_eq!(last["state"], "done", "{last}");
            eprintln!("round {round}: {last}");
            return began.elapsed();
        }
        assert!(began.elapsed() < AT_MOST, "the rename does not end: {last}");
        sleep(LOOK_EVERY);
    }
}

fn main() {
    let (databases, documents) =
        (setting("SCRINIUM_DATABASES", DATABASES), setting("SCRINIUM_DOCUMENTS", DOCUMENTS));
    let server = Server::start(env!("CARGO_BIN_EXE_scrinium"), &[]);
    let mut connection = server.connect();
    fill(&mut connection, databases, documents);
    let discussion = Discussion::fill(&server, "discussion", OWN_DOCUMENTS);
    discussion.build(&mut connection, &design());
    let load = |think: Duration, seed: u64, meanwhile: &mut dyn FnMut()| {
        discussion.load(&server, (CLIENTS, Reads::Pages), think, seed, meanwhile).0
    };
    let flat_out = load(Duration::ZERO, 0, &mut || sleep(FLAT_OUT)).operations() as f64;
    let rate = setting("SCRINIUM_PACE", PACE) * flat_out / FLAT_OUT.as_secs_f64();
    let think = Duration::from_secs_f64(CLIENTS as f64 / rate);
    server.settle();
    let (mut before, mut during, mut seconds) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=setting("SCRINIUM_ROUNDS", ROUNDS) {
        before.push(load(think, round << 1, &mut || sleep(BEFORE)));
        let mut took = Duration::ZERO;
        during.push(load(think, round << 1 | 1, &mut || took = rename(&mut connection, round)));
        seconds.push(took.as_secs_f64());
        server.settle();
    }
    let what = format!("a person of {documents} documents in {databases} databases is renamed");
    let lines: [(&str, Kind); 2] =
        [("a page of a view", |times| &times.reads), ("an update", |times| &times.updates)];
    for (operation, kind) in lines {
        for (name, part) in [("median", 0.5), ("p99", 0.99)] {
            let of = |rounds: &[Times]| -> Vec<f64> {
                rounds.iter().map(|times| percentile(kind(times), part)).collect()
            };
            report(&Line {
                name: "rename",
                case: &format!("{operation}, {name}, while {what}"),
                values: &of(&during),
                unit: "us",
                against: Against::Measured("before (asked for: p99 at most twice as high)", &of(&before)),
            });
        }
    }
    report(&Line {
        name: "rename",
        case: &format!("until {what}"),
        values: &seconds,
        unit: "s",
        against: Against::Given("what is asked for", 600.0),
    });
}
