//! Replication: documents from one server to another, with a PouchDB server that does the same; and a thousand replications
//! that wait for changes.
//!
//! `SCRINIUM_DOCUMENTS` is how many documents are replicated, of 1 KB each; the PouchDB server gets a twentieth. It comes by
//! npm; where there is none, that comparison is left out. `SCRINIUM_JOBS` is how many replications wait.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use scrinium_bench::client::Connection;
use scrinium_bench::process::{Process, command, memory_bytes, used_ticks};
use scrinium_bench::server::{PASSWORD, Server};
use scrinium_bench::{Against, Line, folder, report, scatter, setting};
use serde_json::{Value, json};

const ROUNDS: usize = 3;
const BATCH: u64 = 1000;

/// Of these, at least; and this many times what a PouchDB server does.
const DOCUMENTS_PER_SECOND: f64 = 20_000.0;
const TIMES_POUCHDB: f64 = 10.0;

/// A thousand replications at rest may take this much memory, and this share of a core.
const REST_MB: f64 = 100.0;
const REST_PERCENT: f64 = 1.0;

/// How long they are watched.
const REST: Duration = Duration::from_secs(20);

/// Clock ticks of a second (proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;

/// A document of about 1 KB that does not compress well.
fn document(number: u64) -> Value {
    let text: String = (0..55).map(|part| format!("{:016x} ", scatter(number * 64 + part))).collect();
    json!({"_id": format!("{number:08}"), "number": number, "text": text})
}

fn fill(connection: &mut Connection, database: &str, documents: u64) {
    connection.request("PUT", &format!("/{database}"), "");
    for begin in (0..documents).step_by(usize::try_from(BATCH).unwrap()) {
        let some: Vec<Value> = (begin..documents.min(begin + BATCH)).map(document).collect();
        connection.request("POST", &format!("/{database}/_bulk_docs"), &json!({"docs": some}).to_string());
    }
}

/// The documents of a server, as another one names them.
fn url_of(server: &Server) -> String {
    format!("http://admin:{}@{}/docs", PASSWORD.replace(' ', "%20"), server.address())
}

/// Documents that came in a second.
fn replicate(connection: &mut Connection, order: &Value, documents: u64) -> f64 {
    let began = Instant::now();
    let answer = connection.request("POST", "/_replicate", &order.to_string());
    let took = began.elapsed().as_secs_f64();
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert_eq!(answer["ok"], true, "{answer}");
    documents as f64 / took
}

/// A PouchDB server, if there can be one.
fn pouchdb_server(dir: &Path) -> Option<(Process, SocketAddr)> {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../http/tests/conformance/pouchdb-server");
    for file in ["package.json", "pouchdb_server.js"] {
        std::fs::copy(files.join(file), dir.join(file)).unwrap();
    }
    let install = ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"];
    let installed = Command::new("npm").args(install).current_dir(dir).stdout(Stdio::null()).status();
    if !installed.is_ok_and(|status| status.success()) {
        eprintln!("there is no npm, or it cannot fetch PouchDB's server: it is left out");
        return None;
    }
    std::fs::create_dir(dir.join("data")).unwrap();
    // It says its port into a file, since it lives longer than a pipe that nobody reads.
    let said = dir.join("port");
    let mut node = command("node", None);
    node.args(["pouchdb_server.js", "data"]).current_dir(dir).stdin(Stdio::null());
    node.env("STAYS", "true").stdout(std::fs::File::create(&said).unwrap());
    let process = Process::start(&mut node, Signal::KILL);
    for _ in 0..200 {
        std::thread::sleep(Duration::from_millis(50));
        let mut line = String::new();
        BufReader::new(std::fs::File::open(&said).unwrap()).read_line(&mut line).unwrap();
        if let Ok(port) = line.trim().parse::<u16>() {
            return Some((process, SocketAddr::from(([127, 0, 0, 1], port))));
        }
    }
    panic!("the PouchDB server did not start");
}

fn speed(ours: &Server, theirs: &Server, documents: u64) {
    fill(&mut theirs.connect(), "docs", documents);
    let dir = folder();
    let few = documents / 20;
    let pouch = pouchdb_server(dir.path());
    let mut pouch_client = pouch.as_ref().map(|(_, address)| Connection::anonymous(*address));
    if let Some(client) = &mut pouch_client {
        fill(client, "docs", few);
    }
    let (mut rates, mut their_rates, mut within) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let source = url_of(theirs);
        let target = format!("copy{round}");
        let order = json!({"source": source, "target": target, "create_target": true});
        rates.push(replicate(&mut ours.connect(), &order, documents));
        let order = json!({"source": target, "target": format!("again{round}"), "create_target": true});
        within.push(replicate(&mut ours.connect(), &order, documents));
        if let (Some(client), Some((_, address))) = (&mut pouch_client, &pouch) {
            let named = |name: &str| format!("http://{address}/{name}");
            let order = json!({"source": named("docs"), "target": named(&target), "create_target": true});
            client.request("PUT", &format!("/{target}"), "");
            their_rates.push(replicate(client, &order, few));
        }
        eprintln!(
            "round {round}: {rates:?} from another server, {within:?} within one, {their_rates:?} PouchDB"
        );
    }
    let case = format!("{documents} documents of 1 KB, ours to ours");
    let line = |case, values, against| {
        report(&Line { name: "replicate", case, values, unit: "documents/s", against });
    };
    line(&case, &rates, Against::Given("the least", DOCUMENTS_PER_SECOND));
    line("the same within one server", &within, Against::Given("the least", DOCUMENTS_PER_SECOND));
    if !their_rates.is_empty() {
        let least: Vec<f64> = their_rates.iter().map(|rate| rate * TIMES_POUCHDB).collect();
        line("ours to ours", &rates, Against::Measured("ten times PouchDB Server", &least));
    }
}

/// Memory and processor time of replications that have nothing to do.
fn rest(jobs: usize, theirs: Option<&Server>) -> (f64, f64) {
    let server = Server::start(env!("CARGO_BIN_EXE_scrinium"), &SETTINGS);
    let mut connection = server.connect();
    connection.request("PUT", "/from", "");
    connection.request("PUT", "/to", "");
    connection.request("PUT", "/from/a", "{}");
    std::thread::sleep(Duration::from_secs(2));
    let before = memory_bytes(server.process_id());
    let source = theirs.map_or_else(|| "from".to_owned(), url_of);
    for number in 0..jobs {
        // Each is another one by what it lets through.
        let order = json!({"source": source, "target": "to", "continuous": true, "doc_ids": [format!("{number}"), "a"]});
        connection.request("POST", "/_replicate", &order.to_string());
    }
    std::thread::sleep(Duration::from_secs(10));
    let used = memory_bytes(server.process_id()) - before;
    let ticks = used_ticks(server.process_id());
    std::thread::sleep(REST);
    let ticks = used_ticks(server.process_id()) - ticks;
    let shown: Value =
        serde_json::from_str(connection.request("GET", "/_scheduler/jobs?limit=1", "")).unwrap();
    assert_eq!(shown["total_rows"], jobs);
    (used / f64::from(1 << 20), ticks as f64 / TICKS_PER_SECOND / REST.as_secs_f64() * 100.0)
}

/// Other servers of this machine may be named.
const SETTINGS: [(&str, &str); 1] = [("SCRINIUM_REPLICATION__ALLOWED_NETWORKS", "127.0.0.0/8")];

fn main() {
    let documents = setting("SCRINIUM_DOCUMENTS", 100_000);
    let jobs = setting("SCRINIUM_JOBS", 1000);
    let (ours, theirs) = (
        Server::start(env!("CARGO_BIN_EXE_scrinium"), &SETTINGS),
        Server::start(env!("CARGO_BIN_EXE_scrinium"), &[]),
    );
    speed(&ours, &theirs, documents);
    drop(ours);
    for (suffix, other) in [("", None), (", of another server", Some(&theirs))] {
        let (memory, processor) = rest(jobs, other);
        for (what, value, unit, limit) in
            [("memory", memory, "MB", REST_MB), ("CPU", processor, "% of a core", REST_PERCENT)]
        {
            let case = format!("{jobs} continuous jobs at rest{suffix}, {what}");
            report(&Line {
                name: "replicate",
                case: &case,
                values: &[value],
                unit,
                against: Against::Given("the limit", limit),
            });
        }
    }
}
