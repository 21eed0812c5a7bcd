//! The same updates with the transaction log, without it at the same durability, and with no sync at all.
//!
//! A client reads nothing: it PUTs the next revision of one of its documents (1 KB) and waits for the answer. With the
//! log that comes when the log is synced; without it when the files of the databases are, which all that wait share;
//! without syncs at once, from the page cache: an upper bound, with which a crash of the machine loses what was
//! acknowledged. The three take turns within one run, on stores of their own in the same folder; clients and servers
//! share the machine's cores. Standard output is one JSON object a line.
//!
//! `cargo bench -p scrinium-http --bench logging -- 64` measures 64 clients only.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

mod support;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use scrinium_bench::client::{Connection, crowd, work};
use scrinium_bench::{Against, Line, median, report, scatter, setting};
use scrinium_store::{LogStyle, StoreOptions};
use serde_json::Value;
use support::Served;

const CLIENTS: [u64; 3] = [1, 8, 64];
const ROUND: Duration = Duration::from_secs(2);
const DOCUMENT_BYTES: usize = 1024;
const DOCUMENTS_EACH: usize = 300;
const BUDGET_BYTES: u64 = 1 << 30;

type Side = (&'static str, Served);

fn side(name: &'static str, choose: impl FnOnce(&mut StoreOptions)) -> Side {
    let served = Served::start_with(|options| {
        options.budget_bytes = Some(BUDGET_BYTES);
        choose(options);
    });
    served.databases.create("updates", &scrinium_database::InitialAccess::Everybody).unwrap();
    (name, served)
}

/// A client's documents of one round.
struct Client<'a> {
    connection: Connection,
    prefix: String,
    revisions: Vec<Option<String>>,
    pool: &'a str,
}

impl Client<'_> {
    fn update(&mut self, random: u64) {
        let document = usize::try_from(random).unwrap() % self.revisions.len();
        let start = usize::try_from(random >> 40).unwrap() % (self.pool.len() - DOCUMENT_BYTES);
        let text = &self.pool[start..start + DOCUMENT_BYTES - 90];
        let revision = match &self.revisions[document] {
            Some(revision) => format!("\"_rev\":\"{revision}\","),
            None => String::new(),
        };
        let body = format!("{{{revision}\"Form\":\"Memo\",\"Body\":\"{text}\"}}");
        let answer = self.connection.request("PUT", &format!("/updates/{}-{document}", self.prefix), &body);
        let answer: Value = serde_json::from_str(answer).unwrap();
        self.revisions[document] = Some(answer["rev"].as_str().unwrap().to_owned());
    }
}

/// Updates a minute of this many clients, and their median response in milliseconds.
fn measure(served: &Served, clients: u64, round: usize, pool: &str) -> [f64; 2] {
    let connections: Vec<_> = (0..clients).map(|_| Mutex::new(Some(served.connect()))).collect();
    let began = Instant::now();
    let user = |number: u64, end: &_| {
        let connection = connections[usize::try_from(number).unwrap()].lock().unwrap().take().unwrap();
        let (prefix, revisions) = (format!("{clients}-{round}-{number}"), vec![None; DOCUMENTS_EACH]);
        let mut client = Client { connection, prefix, revisions, pool };
        work(Duration::ZERO, end, number, |random| client.update(random))
    };
    let (done, elapsed) = crowd(clients, user, || {
        std::thread::sleep(ROUND);
        began.elapsed()
    });
    let responses: Vec<f64> = done.into_iter().flatten().map(|((), us)| us / 1000.0).collect();
    [responses.len() as f64 / elapsed.as_secs_f64() * 60.0, median(&responses)]
}

fn main() {
    let words = ["memo ", "form ", "view ", "reply ", "folder ", "calendar ", "agent ", "replica "];
    let pool: String = (0..40_000_u64)
        .map(|number| {
            format!("{}{:x} ", words[usize::try_from(scatter(number) % 8).unwrap()], scatter(number) >> 52)
        })
        .collect();
    let sides = [
        side("with the log", |_| {}),
        side("without the log", |options| options.log_style = LogStyle::Off),
        side("with no sync at all", |options| {
            options.sync = false;
            options.direct_io = false;
        }),
    ];
    let rounds: usize = setting("SCRINIUM_ROUNDS", 5);
    let only = std::env::args().skip(1).find_map(|argument| argument.parse::<u64>().ok());
    for clients in CLIENTS.into_iter().filter(|clients| only.is_none_or(|only| only == *clients)) {
        let mut updates = [const { Vec::new() }; 3];
        let mut responses = [const { Vec::new() }; 3];
        for round in 0..rounds {
            for (place, (name, served)) in sides.iter().enumerate() {
                let [rate, response] = measure(served, clients, round, &pool);
                eprintln!("{clients} clients, round {round}, {name}: {rate:.0} a minute, {response:.2} ms");
                updates[place].push(rate);
                responses[place].push(response);
            }
        }
        let noun = if clients == 1 { "client" } else { "clients" };
        for other in [1, 2] {
            for (case, unit, values) in [("updates", "updates/min", &updates), ("response", "ms", &responses)]
            {
                report(&Line {
                    name: "logging",
                    case: &format!("{clients} {noun}, {case}"),
                    values: &values[0],
                    unit,
                    against: Against::Measured(sides[other].0, &values[other]),
                });
            }
        }
    }
}
