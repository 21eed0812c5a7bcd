//! Durable document updates through HTTP, compared with durable commits of the store alone.
//!
//! A client reads nothing: it PUTs the next revision of one of its documents (1 KB) and waits for the
//! answer, which comes when the update is synced. The store's side commits what the `commit` benchmark
//! does: 1 KB put, four index entries put and four deleted, by as many threads as there are clients. Both
//! take turns within one run, on stores of their own in the same folder. Clients and server share the
//! machine's cores. Standard output is one JSON object a line.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

mod support;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use scrinium_bench::{Against, Line, folder, report, scatter};
use scrinium_catalog::Databases;
use scrinium_database::DatabaseOptions;
use scrinium_statistics::Registry;
use scrinium_store::{Batch, Family, Store, StoreOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const CLIENTS: [u64; 3] = [1, 8, 64];
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(3);
const DOCUMENTS: u64 = 20_000;
const DOCUMENT_BYTES: usize = 1024;
const INDEXES: u8 = 4;
const BUDGET_BYTES: u64 = 1 << 30;

fn open_store(dir: &Path, statistics: &Registry) -> Store {
    let mut options = StoreOptions::new(dir);
    options.budget_bytes = Some(BUDGET_BYTES);
    Store::open(options, statistics).unwrap()
}

/// One client: its connection, and the revisions of its documents.
struct Client {
    stream: TcpStream,
    number: u64,
    revisions: Vec<Option<String>>,
    random: u64,
    answer: Vec<u8>,
}

impl Client {
    async fn connect(address: SocketAddr, number: u64, clients: u64) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let documents = usize::try_from(DOCUMENTS / clients).unwrap();
        Self {
            stream,
            number,
            revisions: vec![None; documents],
            random: scatter(number + 1),
            answer: Vec::new(),
        }
    }

    /// PUTs the next revision of one document and waits for the answer.
    async fn update(&mut self, round: &str, pool: &str) {
        self.random = scatter(self.random);
        let document = usize::try_from(self.random).unwrap() % self.revisions.len();
        let start = usize::try_from(self.random >> 40).unwrap() % (pool.len() - DOCUMENT_BYTES);
        let text = &pool[start..start + DOCUMENT_BYTES - 90];
        let revision = match &self.revisions[document] {
            Some(revision) => format!("\"_rev\":\"{revision}\","),
            None => String::new(),
        };
        let body = format!("{{{revision}\"Form\":\"Memo\",\"Body\":\"{text}\"}}");
        let request = format!(
            "PUT /updates/{round}-{}-{document} HTTP/1.1\r\nHost: bench\r\nAuthorization: Basic YTpi\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.number,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
        self.revisions[document] = Some(self.read_revision().await);
    }

    async fn read_revision(&mut self) -> String {
        self.answer.clear();
        // The body is one line, and the only one that ends without a carriage return.
        while !self.answer.ends_with(b"}\n") {
            assert!(self.stream.read_buf(&mut self.answer).await.unwrap() > 0);
        }
        let text = std::str::from_utf8(&self.answer).unwrap();
        assert!(text.starts_with("HTTP/1.1 201"), "{text}");
        let revision = text.split_once("\"rev\":\"").unwrap().1;
        revision.split_once('"').unwrap().0.to_owned()
    }
}

/// Updates a second of this many clients.
async fn http_round(address: SocketAddr, clients: u64, round: String, pool: Arc<str>) -> f64 {
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    let started = Instant::now();
    for number in 0..clients {
        let (stop, pool, round) = (Arc::clone(&stop), Arc::clone(&pool), round.clone());
        tasks.spawn(async move {
            let mut client = Client::connect(address, number, clients).await;
            let mut updates = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                client.update(&round, &pool).await;
                updates += 1;
            }
            updates
        });
    }
    tokio::time::sleep(ROUND).await;
    stop.store(true, Ordering::Relaxed);
    let updates: u64 = tasks.join_all().await.into_iter().sum();
    updates as f64 / started.elapsed().as_secs_f64()
}

/// An index entry of a version of a document.
fn entry(number: u64, index: u8, version: u64) -> [u8; 25] {
    let mut entry = [0; 25];
    entry[0] = index;
    entry[1..9].copy_from_slice(&scatter(number * 31 + version * 7 + u64::from(index)).to_be_bytes());
    entry[9..17].copy_from_slice(&number.to_be_bytes());
    entry[17..].copy_from_slice(&version.to_be_bytes());
    entry
}

/// Commits a second of this many threads.
fn store_round(store: &Store, writers: u64, versions: &[AtomicU64], pool: &str) -> f64 {
    let stop = AtomicBool::new(false);
    let started = Instant::now();
    let commits: u64 = thread::scope(|scope| {
        let writing: Vec<_> = (0..writers)
            .map(|writer| {
                let stop = &stop;
                scope.spawn(move || {
                    let (mut random, mut commits) = (scatter(writer + 1), 0_u64);
                    while !stop.load(Ordering::Relaxed) {
                        random = scatter(random);
                        let number = random % (DOCUMENTS / writers) * writers + writer;
                        let slot = &versions[usize::try_from(number).unwrap()];
                        let version = slot.fetch_add(1, Ordering::Relaxed) + 1;
                        let start = usize::try_from(random >> 40).unwrap() % (pool.len() - DOCUMENT_BYTES);
                        let mut batch = Batch::with_capacity(DOCUMENT_BYTES + 512);
                        let document = &pool.as_bytes()[start..start + DOCUMENT_BYTES];
                        batch.put(Family::Scan, &number.to_be_bytes(), document);
                        for index in 0..INDEXES {
                            batch.delete(Family::Point, &entry(number, index, version - 1));
                            batch.put(Family::Point, &entry(number, index, version), b"");
                        }
                        store.commit(batch).unwrap();
                        commits += 1;
                    }
                    commits
                })
            })
            .collect();
        thread::sleep(ROUND);
        stop.store(true, Ordering::Relaxed);
        writing.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    commits as f64 / started.elapsed().as_secs_f64()
}

fn main() {
    let (served_dir, alone_dir) = (folder(), folder());
    let served_statistics = Registry::new();
    let served = open_store(served_dir.path(), &served_statistics);
    let alone = open_store(alone_dir.path(), &Registry::new());
    let versions: Vec<AtomicU64> = (0..DOCUMENTS).map(|_| AtomicU64::new(0)).collect();
    // Text that compresses about as well as text does.
    let words = ["memo ", "form ", "view ", "reply ", "folder ", "calendar ", "agent ", "replica "];
    let pool: Arc<str> = (0..40_000_u64)
        .map(|number| {
            format!("{}{:x} ", words[usize::try_from(scatter(number) % 8).unwrap()], scatter(number) >> 52)
        })
        .collect::<String>()
        .into();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let databases = Databases::open(&served, DatabaseOptions::default()).unwrap();
    databases.create("updates", &scrinium_database::InitialAccess::Everybody).unwrap();
    let address = runtime.block_on(async { support::serve(databases, &served_statistics) });
    // `cargo bench --bench http_update -- 64` measures 64 clients only.
    let only = std::env::args().skip(1).find_map(|argument| argument.parse::<u64>().ok());
    for clients in CLIENTS.into_iter().filter(|clients| only.is_none_or(|only| only == *clients)) {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let name = format!("{clients}-{round}");
            ours.push(runtime.block_on(http_round(address, clients, name, Arc::clone(&pool))));
            theirs.push(store_round(&alone, clients, &versions, &pool));
            eprintln!("{clients} clients, round {round}: {:?} against {:?}", ours.last(), theirs.last());
        }
        let case = format!("{clients} clients");
        let against = Against::Measured("store alone", &theirs);
        report(&Line { name: "http-update", case: &case, values: &ours, unit: "updates/s", against });
    }
    for (name, operation) in served_statistics.snapshot().operations {
        eprintln!(
            "{name}: {} times, p50 {} us, p99 {} us",
            operation.count, operation.p50_us, operation.p99_us
        );
    }
}
