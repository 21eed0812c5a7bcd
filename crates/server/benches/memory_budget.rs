//! What a server takes of memory that was given a budget of 64 MB and a store far larger, through everything that it does.
//!
//! A server of its own is filled with a discussion database; people read, file, send and delete mail as in R5Mail, without
//! pauses; seven views are built; a quarter of the documents, at most 250,000, are changed and the database is compacted;
//! and everything is read once. The highest resident memory of the process is taken for each of these alone (proc(5),
//! `clear_refs`). Asked for: the budget and 128 MB. At last the budget is made four times larger and small again.
//! `cargo bench -p scrinium-server --bench memory_budget`; `SCRINIUM_DOCUMENTS=2500000 SCRINIUM_TEXT_BYTES=10000` for a
//! store of 20 GB, whose documents are as large as the seeds' messages; `SCRINIUM_BUDGET_MB=256` for another budget.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_precision_loss, reason = "a benchmark")]

use std::time::{Duration, Instant};

use scrinium_bench::client::{Connection, crowd, work};
use scrinium_bench::discussion::{design, id};
use scrinium_bench::process::{memory_bytes, peak_memory_bytes};
use scrinium_bench::server::{Discussion, Server};
use scrinium_bench::{Against, Line, report, scatter, setting};
use serde_json::{Value, json};

const DOCUMENTS: u64 = 500_000;
const BUDGET_MB: u64 = 64;
const BESIDE_MB: u64 = 128;
const PEOPLE: u64 = 30;
/// The seeds' size of a message.
const MESSAGE_BYTES: usize = 10_000;
const GIGABYTE: f64 = (1_u64 << 30) as f64;
const MAIL_RUN: Duration = Duration::from_secs(30);
/// Of a large store a quarter would only be more of the same, and take its room on disk twice.
const CHANGED_MAX: u64 = 250_000;
const PARTS: u64 = 10;

struct Measured {
    server: Server,
    budget_mb: u64,
}

impl Measured {
    fn statistics(&self, connection: &mut Connection, names: &str) -> Value {
        let command = json!({"command": format!("show statistics {names}")}).to_string();
        let answer: Value = serde_json::from_str(connection.request("POST", "/_console", &command)).unwrap();
        answer["data"]["statistics"].clone()
    }

    fn set_budget(&self, connection: &mut Connection, megabytes: u64) {
        let command = format!("set configuration memory.budget={megabytes}MB");
        connection.request("POST", "/_console", &json!({ "command": command }).to_string());
    }

    /// The highest resident memory while `done` is done, in MB, with what the statistics say of it.
    fn phase(&self, what: &str, done: impl FnOnce(&Server)) {
        let process = self.server.process_id();
        std::fs::write(format!("/proc/{process}/clear_refs"), "5").unwrap();
        let began = Instant::now();
        done(&self.server);
        let peak_mb = peak_memory_bytes(process) / f64::from(1 << 20);
        let mut connection = self.server.connect();
        let pool = self.statistics(&mut connection, "Database.BufferPool.*");
        eprintln!("{what}: {peak_mb:.0} MB in {:.1?}; {pool}", began.elapsed());
        let line = |case: &str, value: f64, against| {
            report(&Line { name: "memory-budget", case, values: &[value], unit: "MB", against });
        };
        let allowed = (self.budget_mb + BESIDE_MB) as f64;
        let case = format!("peak memory with a budget of {} MB: {what}", self.budget_mb);
        line(&case, peak_mb, Against::Given("the budget and 128 MB", allowed));
    }
}

fn person(number: u64) -> String {
    format!("user{number}")
}

/// A body that hardly compresses.
fn body(seed: u64) -> String {
    let words = (0..).map(|at| format!("{:016x} ", scatter(seed.wrapping_mul(1 << 16) + at)));
    words.take(MESSAGE_BYTES / 17).collect()
}

fn prepare_people(server: &Server) {
    let mut connection = server.connect();
    for number in 0..PEOPLE {
        let name = person(number);
        let document = json!({
            "Form": "Person", "ShortName": name, "FullName": [name], "MailFile": format!("mail/{name}"),
            "InternetAddress": format!("{name}@localhost"),
        });
        connection.request("PUT", &format!("/directory/person:{name}"), &document.to_string());
        connection.request("PUT", &format!("/mail%2F{name}"), "");
    }
}

/// Rounds of R5Mail until the end: a memo to three people, five documents read, two changed, one added, one deleted.
fn mail_run(server: &Server) {
    let user = |number: u64, end: &_| {
        let mut connection = server.connect();
        let path = format!("/mail%2F{}", person(number));
        let mut round = 0;
        let done = work(Duration::ZERO, end, number, |random| {
            let to: Vec<String> = (0..3).map(|at| person(scatter(random + at) % PEOPLE)).collect();
            let memo = json!({"Form": "Memo", "SendTo": to, "Subject": "as in R5Mail", "Body": body(random)});
            connection.request("POST", "/mail.box", &memo.to_string());
            let page = connection.request("GET", &format!("{path}/_all_docs?limit=5&include_docs=true"), "");
            let page: Value = serde_json::from_str(page).unwrap();
            let rows = page["rows"].as_array().unwrap();
            let changed: Vec<Value> = rows.iter().take(2).map(|row| row["doc"].clone()).collect();
            connection.request("POST", &format!("{path}/_bulk_docs"), &json!({"docs": changed}).to_string());
            let note = json!({"Form": "Note", "Body": body(random + 1)}).to_string();
            connection.request("PUT", &format!("{path}/note{number}-{round}"), &note);
            if let Some(row) = rows.get(3) {
                let gone =
                    json!({"docs": [{"_id": row["id"], "_rev": row["value"]["rev"], "_deleted": true}]});
                connection.request("POST", &format!("{path}/_bulk_docs"), &gone.to_string());
            }
            round += 1;
        });
        done.len()
    };
    let (rounds, ()) = crowd(PEOPLE, user, || std::thread::sleep(MAIL_RUN));
    eprintln!("{} rounds of mail", rounds.iter().sum::<usize>());
}

fn fill(server: &Server, discussion: &mut Discussion, documents: u64) {
    for part in 1..=PARTS {
        discussion.grow(server, documents * part / PARTS);
        let gigabytes = server.tree_bytes() as f64 / GIGABYTE;
        eprintln!("{} of {documents} documents, {gigabytes:.1} GB", discussion.documents());
    }
}

/// Documents all over the database change, with the views, and what they leave is compacted.
fn change(server: &Server, discussion: &Discussion, count: u64) {
    let mut connection = server.connect();
    let every = discussion.documents() / count;
    let at_once = discussion.at_once();
    for start in (0..count).step_by(usize::try_from(at_once).unwrap()) {
        let keys: Vec<String> =
            (start..count.min(start + at_once)).map(|number| id(number * every)).collect();
        let page = connection.request(
            "POST",
            &format!("{}/_all_docs", discussion.path),
            &json!({"keys": keys}).to_string(),
        );
        let page: Value = serde_json::from_str(page).unwrap();
        let changed: Vec<Value> = (start..)
            .zip(page["rows"].as_array().unwrap())
            .map(|(number, row)| {
                let mut next = discussion.document(discussion.documents() + number);
                next["_id"] = row["id"].clone();
                next["_rev"] = row["value"]["rev"].clone();
                next
            })
            .collect();
        let body = json!({"docs": changed}).to_string();
        connection.request("POST", &format!("{}/_bulk_docs", discussion.path), &body);
    }
    connection.request("POST", &format!("{}/_compact", discussion.path), "");
    Server::await_compaction(&mut connection, &discussion.path);
}

fn read_all(server: &Server, discussion: &Discussion) {
    let mut connection = server.connect();
    let mut from = String::new();
    loop {
        let path =
            format!("{}/_all_docs?include_docs=true&limit=2000&start_key=%22{from}%22", discussion.path);
        let page: Value = serde_json::from_str(connection.request("GET", &path, "")).unwrap();
        let rows = page["rows"].as_array().unwrap();
        let Some(last) = rows.last().filter(|_| rows.len() > 1) else { return };
        last["id"].as_str().unwrap().clone_into(&mut from);
    }
}

fn main() {
    let budget_mb = setting("SCRINIUM_BUDGET_MB", BUDGET_MB);
    let budget = format!("{budget_mb} MB");
    let server = Server::start(env!("CARGO_BIN_EXE_scrinium"), &[("SCRINIUM_MEMORY__BUDGET", &budget)]);
    let measured = Measured { server, budget_mb };
    let text_bytes = setting("SCRINIUM_TEXT_BYTES", 0);
    let mut discussion = Discussion::with_texts(&measured.server, "discussion", text_bytes);
    let documents = setting("SCRINIUM_DOCUMENTS", DOCUMENTS);
    measured.phase(&format!("{documents} documents stored"), |server| {
        fill(server, &mut discussion, documents);
    });
    report(&Line {
        name: "memory-budget",
        case: "the databases' files",
        values: &[measured.server.tree_bytes() as f64 / GIGABYTE],
        unit: "GB",
        against: Against::Given("the budget", budget_mb as f64 / 1024.0),
    });
    prepare_people(&measured.server);
    measured.phase("a mail run", mail_run);
    measured.phase("seven views built", |server| {
        drop(discussion.build(&mut server.connect(), &design()));
    });
    let changed = (documents / 4).min(CHANGED_MAX);
    measured.phase(&format!("{changed} documents changed, and the database compacted"), |server| {
        change(server, &discussion, changed);
        measured.server.settle();
    });
    measured.phase("everything read", |server| read_all(server, &discussion));

    let mut connection = measured.server.connect();
    measured.set_budget(&mut connection, budget_mb * 4);
    read_all(&measured.server, &discussion);
    let large_mb = memory_bytes(measured.server.process_id()) / f64::from(1 << 20);
    measured.set_budget(&mut connection, budget_mb);
    std::thread::sleep(Duration::from_secs(5));
    let small_mb = memory_bytes(measured.server.process_id()) / f64::from(1 << 20);
    report(&Line {
        name: "memory-budget",
        case: &format!("memory five seconds after the budget went from {} to {budget_mb} MB", budget_mb * 4),
        values: &[small_mb],
        unit: "MB",
        against: Against::Measured("before", &[large_mb]),
    });
}
