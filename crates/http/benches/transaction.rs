//! Durable transactions through HTTP, compared with durable updates of single documents through the same port.
//!
//! A client of transactions POSTs the next revisions of three of its documents (1 KB each), two in one database and one in
//! another, and waits for the answer, which comes when all three are synced. A client of updates PUTs one. Both take turns
//! within one run, on one server; clients and server share the machine's cores. Standard output is one JSON object a line.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use scrinium_bench::{Against, Line, folder, report, scatter};
use scrinium_catalog::Databases;
use scrinium_database::{DatabaseOptions, InitialAccess};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const CLIENTS: u64 = 64;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(3);
/// Documents of one client in each of the three places of a transaction.
const DOCUMENTS: usize = 300;
const DOCUMENT_BYTES: usize = 1024;
const PLACES: [&str; 3] = ["one", "one", "other"];

/// One client: its connection, and the revisions of its documents in each place.
struct Client {
    stream: TcpStream,
    number: u64,
    revisions: [Vec<Option<String>>; 3],
    random: u64,
    answer: Vec<u8>,
}

impl Client {
    async fn connect(address: SocketAddr, number: u64) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let revisions = [const { Vec::new() }; 3].map(|_: Vec<Option<String>>| vec![None; DOCUMENTS]);
        Self { stream, number, revisions, random: scatter(number + 1), answer: Vec::new() }
    }

    /// The next revision of a document.
    fn document(&self, round: &str, place: usize, document: usize, text: &str) -> String {
        let revision = match &self.revisions[place][document] {
            Some(revision) => format!("\"_rev\":\"{revision}\","),
            None => String::new(),
        };
        format!(
            "{{\"_id\":\"{round}-{}-{place}-{document}\",{revision}\"Form\":\"Memo\",\"Body\":\"{text}\"}}",
            self.number
        )
    }

    async fn transact(&mut self, round: &str, pool: &str) {
        let (document, text) = self.choose(pool);
        let edits: Vec<String> = PLACES
            .iter()
            .enumerate()
            .map(|(place, database)| {
                format!("{{\"db\":\"{database}\",\"doc\":{}}}", self.document(round, place, document, text))
            })
            .collect();
        let body = format!("{{\"edits\":[{}]}}", edits.join(","));
        self.send("POST /_transaction", &body).await;
        let answer = String::from_utf8(self.answer.clone()).unwrap();
        for (place, found) in answer.split("\"rev\":\"").skip(1).enumerate() {
            self.revisions[place][document] = Some(found.split_once('"').unwrap().0.to_owned());
        }
    }

    async fn update(&mut self, round: &str, pool: &str) {
        let (document, text) = self.choose(pool);
        let body = self.document(round, 0, document, text);
        let address = format!("PUT /one/{round}-{}-0-{document}", self.number);
        self.send(&address, &body).await;
        let answer = std::str::from_utf8(&self.answer).unwrap();
        let revision = answer.split_once("\"rev\":\"").unwrap().1.split_once('"').unwrap().0.to_owned();
        self.revisions[0][document] = Some(revision);
    }

    /// Which documents are next, and their text.
    fn choose<'p>(&mut self, pool: &'p str) -> (usize, &'p str) {
        self.random = scatter(self.random);
        let document = usize::try_from(self.random).unwrap() % DOCUMENTS;
        let start = usize::try_from(self.random >> 40).unwrap() % (pool.len() - DOCUMENT_BYTES);
        (document, &pool[start..start + DOCUMENT_BYTES - 110])
    }

    async fn send(&mut self, address: &str, body: &str) {
        let request = format!(
            "{address} HTTP/1.1\r\nHost: bench\r\nAuthorization: Basic YTpi\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
        self.answer.clear();
        // The body is one line, and the only one that ends without a carriage return.
        while !self.answer.ends_with(b"}\n") {
            assert!(self.stream.read_buf(&mut self.answer).await.unwrap() > 0);
        }
        let text = std::str::from_utf8(&self.answer).unwrap();
        assert!(text.starts_with("HTTP/1.1 201"), "{text}");
    }
}

/// How many a second of what the clients do.
async fn round(address: SocketAddr, together: bool, name: String, pool: Arc<str>) -> f64 {
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    let started = Instant::now();
    for number in 0..CLIENTS {
        let (stop, pool, name) = (Arc::clone(&stop), Arc::clone(&pool), name.clone());
        tasks.spawn(async move {
            let mut client = Client::connect(address, number).await;
            let mut done = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                if together {
                    client.transact(&name, &pool).await;
                } else {
                    client.update(&name, &pool).await;
                }
                done += 1;
            }
            done
        });
    }
    tokio::time::sleep(ROUND).await;
    stop.store(true, Ordering::Relaxed);
    let done: u64 = tasks.join_all().await.into_iter().sum();
    done as f64 / started.elapsed().as_secs_f64()
}

fn main() {
    let (dir, statistics) = (folder(), Registry::new());
    let mut options = StoreOptions::new(dir.path());
    options.budget_bytes = Some(1 << 30);
    let store = Store::open(options, &statistics).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    for name in ["one", "other"] {
        databases.create(name, &InitialAccess::Everybody).unwrap();
    }
    let words = ["memo ", "form ", "view ", "reply ", "folder ", "calendar ", "agent ", "replica "];
    let pool: Arc<str> = (0..40_000_u64)
        .map(|number| {
            format!("{}{:x} ", words[usize::try_from(scatter(number) % 8).unwrap()], scatter(number) >> 52)
        })
        .collect::<String>()
        .into();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let address = runtime.block_on(async { support::serve(databases, &statistics) });
    let (mut transactions, mut updates) = (Vec::new(), Vec::new());
    for number in 0..ROUNDS {
        let name = |kind: &str| format!("{kind}{number}");
        transactions.push(runtime.block_on(round(address, true, name("t"), Arc::clone(&pool))));
        updates.push(runtime.block_on(round(address, false, name("u"), Arc::clone(&pool))));
        eprintln!("round {number}: {:?} transactions, {:?} updates", transactions.last(), updates.last());
    }
    let against = Against::Measured("single updates", &updates);
    let case = "3 documents in 2 databases, 64 clients";
    report(&Line { name: "transaction", case, values: &transactions, unit: "transactions/s", against });
}
