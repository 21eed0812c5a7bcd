//! What compacting a database of a gigabyte takes, and what others notice of it.
//!
//! A database is filled until its files have about a gigabyte, then a third of its documents is updated and a third
//! deleted, at random; a round of updates and deletions, and rest, come before each measurement. Eight clients of another
//! database read and update documents over HTTP at half the rate that they reach without think times, for a while before,
//! and while the database is compacted (`load compact`). Sizes of all files of the store are added up meanwhile, and a hot
//! file next to the store tells whether the system's file cache was washed.
//! `cargo bench -p scrinium-server --bench compact`; `SCRINIUM_DOCUMENTS=100000` for another size, `SCRINIUM_PACE=0.3`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a benchmark stops at the first error"
)]

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use scrinium_bench::client::Connection;
use scrinium_bench::discussion::letters;
use scrinium_bench::server::{Discussion, Reads, Server, Times};
use scrinium_bench::{Against, Line, percentile, report, scatter, setting, timed};
use serde_json::{Value, json};

/// Their texts are random letters.
const DOCUMENTS: u64 = 800_000;
const TEXT_BYTES: usize = 1400;
const OTHERS: u64 = 50_000;
const CLIENTS: u64 = 8;
const ROUNDS: u64 = 3;
const BEFORE: Duration = Duration::from_secs(8);
const FLAT_OUT: Duration = Duration::from_secs(4);
const PACE: f64 = 0.5;
const AT_ONCE: u64 = 2000;
const MEGABYTE: f64 = 1_048_576.0;
const HOT_FILE_BYTES: usize = 256 << 20;

/// A database of documents with random texts.
struct Store {
    path: &'static str,
    revisions: Vec<Mutex<String>>,
}

fn document(number: u64, random: u64) -> Value {
    let body = letters(random, TEXT_BYTES);
    json!({"_id": format!("{number:08}"), "Subject": format!("document {number}"), "Body": body})
}

impl Store {
    fn fill(server: &Server, path: &'static str, documents: u64) -> Self {
        server.connect().request("PUT", path, "");
        let revisions = (0..documents).map(|_| Mutex::new(String::new())).collect();
        let store = Self { path, revisions };
        store.write(server, 0, |number| Some(document(number, number)));
        store
    }

    /// Writes what `make` gives for each document, by two clients.
    fn write(&self, server: &Server, seed: u64, make: impl Fn(u64) -> Option<Value> + Sync) {
        let next = AtomicU64::new(0);
        let documents = self.revisions.len() as u64;
        let part = || {
            let mut connection = server.connect();
            loop {
                let start = next.fetch_add(AT_ONCE, Ordering::Relaxed);
                if start >= documents {
                    return;
                }
                self.write_some(&mut connection, (start..documents.min(start + AT_ONCE)).filter_map(&make));
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(part);
            scope.spawn(part);
        });
        eprintln!("{}: round {seed} written", self.path);
    }

    fn write_some(&self, connection: &mut Connection, documents: impl Iterator<Item = Value>) {
        let (mut docs, mut numbers) = (Vec::new(), Vec::new());
        for mut document in documents {
            let number: usize = document["_id"].as_str().unwrap().parse().unwrap();
            let revision = self.revisions[number].lock().unwrap();
            if !revision.is_empty() {
                document["_rev"] = json!(*revision);
            }
            numbers.push((number, document["_deleted"] == true));
            docs.push(document);
        }
        let body = json!({"docs": docs}).to_string();
        let answer = connection.request("POST", &format!("{}/_bulk_docs", self.path), &body);
        let results: Vec<Value> = serde_json::from_str(answer).unwrap();
        for ((number, deleted), result) in numbers.into_iter().zip(results) {
            let revision = if deleted { "" } else { result["rev"].as_str().unwrap() };
            revision.clone_into(&mut self.revisions[number].lock().unwrap());
        }
    }

    /// A third is updated, a third deleted; what was deleted before is there again.
    fn churn(&self, server: &Server, round: u64) {
        self.write(server, round, |number| {
            let random = scatter(number ^ round << 40);
            let gone = self.revisions[number as usize].lock().unwrap().is_empty();
            match random % 3 {
                _ if gone => Some(document(number, random)),
                0 => Some(document(number, random)),
                1 => Some(json!({"_id": format!("{number:08}"), "_deleted": true})),
                _ => None,
            }
        });
    }
}

/// Clients read and update documents of another database while `meanwhile` runs.
fn load(server: &Server, others: &Discussion, think: Duration, seed: u64, meanwhile: impl FnOnce()) -> Times {
    others.load(server, (CLIENTS, Reads::Documents), think, seed, meanwhile).0
}

/// Adds up the store's files again and again until told to end; the most bytes there were.
fn peak_bytes(server: &Server, end: &AtomicBool) -> u64 {
    let mut peak = 0;
    while !end.load(Ordering::Relaxed) {
        peak = peak.max(server.tree_bytes());
        sleep(Duration::from_millis(20));
    }
    peak
}

/// Bytes of a file that are in the system's file cache, as util-linux's `fincore` tells.
fn cached_bytes(file: &Path) -> f64 {
    let told = Command::new("fincore").args(["-b", "-n", "-o", "RES"]).arg(file).output().unwrap();
    String::from_utf8(told.stdout).unwrap().trim().parse().unwrap()
}

fn sizes(connection: &mut Connection, path: &str) -> (f64, f64) {
    let info: Value = serde_json::from_str(connection.request("GET", path, "")).unwrap();
    let bytes = |name: &str| info["sizes"][name].as_f64().unwrap();
    (bytes("file"), bytes("active"))
}

/// Compacts the database, and waits until it is done.
fn compact(connection: &mut Connection, name: &str) {
    let command = json!({"command": format!("load compact {name}")});
    connection.request("POST", "/_console", &command.to_string());
    Server::await_compaction(connection, &format!("/{name}"));
}

/// What one round gave.
struct Round {
    before: Times,
    during: Times,
    seconds: f64,
    database_bytes: f64,
    extra_percent: f64,
    active_error_percent: f64,
    reclaimed_percent: f64,
    cached_percent: f64,
}

fn round(server: &Server, big: &Store, others: &Discussion, think: Duration, number: u64) -> Round {
    big.churn(server, number);
    server.settle();
    let hot = server.folder().join("hot");
    std::fs::write(&hot, vec![number as u8; HOT_FILE_BYTES]).unwrap();
    std::fs::File::open(&hot).unwrap().sync_all().unwrap();
    let cached = cached_bytes(&hot);
    let mut connection = server.connect();
    let before = load(server, others, think, number << 1, || sleep(BEFORE));
    let (file, active) = sizes(&mut connection, big.path);
    let disk = server.tree_bytes();
    let end = AtomicBool::new(false);
    let (mut took, mut peak) = (Duration::ZERO, 0);
    let during = load(server, others, think, number << 1 | 1, || {
        std::thread::scope(|scope| {
            let watching = scope.spawn(|| peak_bytes(server, &end));
            took = timed(|| compact(&mut connection, big.path.trim_start_matches('/'))).1;
            end.store(true, Ordering::Relaxed);
            peak = watching.join().unwrap();
        });
    });
    let (after, _) = sizes(&mut connection, big.path);
    eprintln!(
        "round {number}: {:.0} MB, of which {:.0} active; compacted in {took:.1?} to {:.0} MB; disk {:.0} MB, at most {:.0}",
        file / MEGABYTE,
        active / MEGABYTE,
        after / MEGABYTE,
        disk as f64 / MEGABYTE,
        peak as f64 / MEGABYTE,
    );
    Round {
        before,
        during,
        seconds: took.as_secs_f64(),
        database_bytes: file,
        extra_percent: 100.0 * (peak.saturating_sub(disk)) as f64 / file,
        active_error_percent: 100.0 * (active - after).abs() / after,
        reclaimed_percent: 100.0 * (file - after) / file,
        cached_percent: 100.0 * cached_bytes(&hot) / cached,
    }
}

type Kind = fn(&Times) -> &[f64];

fn main() {
    let server = Server::start(env!("CARGO_BIN_EXE_scrinium"), &[("SCRINIUM_COMPACT__WINDOW", "")]);
    let others = Discussion::fill(&server, "others", OTHERS);
    let began = Instant::now();
    let big = Store::fill(&server, "/big", setting("SCRINIUM_DOCUMENTS", DOCUMENTS));
    eprintln!("filled in {:.0?}", began.elapsed());
    server.settle();
    let flat_out = load(&server, &others, Duration::ZERO, 0, || sleep(FLAT_OUT));
    let operations = flat_out.operations() as f64;
    let rate = setting("SCRINIUM_PACE", PACE) * operations / FLAT_OUT.as_secs_f64();
    eprintln!("{rate:.0} operations a second");
    let think = Duration::from_secs_f64(CLIENTS as f64 / rate);
    let rounds: Vec<Round> = (1..=setting("SCRINIUM_ROUNDS", ROUNDS))
        .map(|number| round(&server, &big, &others, think, number))
        .collect();

    let of = |value: fn(&Round) -> f64| -> Vec<f64> { rounds.iter().map(value).collect() };
    let megabytes = scrinium_bench::median(&of(|round| round.database_bytes)) / MEGABYTE;
    let line = |case: &str, values: &[f64], unit: &str, against: (&'static str, f64)| {
        report(&Line { name: "compact", case, values, unit, against: Against::Given(against.0, against.1) });
    };
    let case = format!("a database of {megabytes:.0} MB, updated and deleted at random, compacted");
    line(&case, &of(|round| round.seconds), "s", ("asked for: less than", 20.0));
    line(
        "disk taken meanwhile, of the database",
        &of(|round| round.extra_percent),
        "%",
        ("asked for: at most", 25.0),
    );
    line(
        "of the database given back",
        &of(|round| round.reclaimed_percent),
        "%",
        ("of a database without garbage", 0.0),
    );
    line(
        "sizes.active beside the file size after it",
        &of(|round| round.active_error_percent),
        "% away",
        ("meant: within a few percent", 5.0),
    );
    line(
        "a hot file of 256 MB, still in the file cache",
        &of(|round| round.cached_percent),
        "%",
        ("before", 100.0),
    );
    let kinds: [(&str, Kind); 2] =
        [("a document read", |times| &times.reads), ("an update", |times| &times.updates)];
    for (what, kind) in kinds {
        for (name, part) in [("median", 0.5), ("p99", 0.99)] {
            let values = |times: fn(&Round) -> &Times| -> Vec<f64> {
                rounds.iter().map(|round| percentile(kind(times(round)), part)).collect()
            };
            report(&Line {
                name: "compact",
                case: &format!("{what} in another database, {name}, meanwhile"),
                values: &values(|round| &round.during),
                unit: "us",
                against: Against::Measured(
                    "before (asked for: p99 at most twice as high)",
                    &values(|round| &round.before),
                ),
            });
        }
    }
}
