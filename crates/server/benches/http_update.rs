//! Durable document updates through HTTP by 64 clients, beside the same batches committed by 64 threads to
//! the store alone.
//!
//! Rounds alternate between both. The server is a process of its own; its clients share this one's two
//! threads. `cargo bench -p scrinium-server --bench http_update`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_precision_loss, reason = "a benchmark")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base64::Engine;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use scrinium_bench::{Against, Line, folder, report, scatter};
use scrinium_statistics::Registry;
use scrinium_store::{Batch, Family, Store, StoreOptions};
use serde_json::Value;

const CLIENTS: u64 = 64;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(4);
const PASSWORD: &str = "a password of the benchmark";
const DOCUMENT_BYTES: usize = 1024;

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(data_dir: &Path) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let child = Command::new(env!("CARGO_BIN_EXE_scrinium"))
            .args(["serve", "--data-dir"])
            .arg(data_dir)
            .env("SCRINIUM_HTTP__LISTEN", &address)
            .env("SCRINIUM_ADMIN_PASSWORD", PASSWORD)
            .env("SCRINIUM_TRACING__LEVEL", "warn")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while std::net::TcpStream::connect(&address).is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "the server did not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One client with its connection and its documents.
struct Client {
    sender: http1::SendRequest<Full<Bytes>>,
    authorization: String,
    revisions: Vec<String>,
    number: u64,
}

impl Client {
    async fn connect(address: &str, number: u64) -> Self {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let credentials = base64::engine::general_purpose::STANDARD.encode(format!("admin:{PASSWORD}"));
        Self {
            sender,
            authorization: format!("Basic {credentials}"),
            revisions: vec![String::new(); 50],
            number,
        }
    }

    async fn request(&mut self, method: Method, path: &str, body: String) -> (StatusCode, Bytes) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("authorization", &self.authorization)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        self.sender.ready().await.unwrap();
        let answer = self.sender.send_request(request).await.unwrap();
        let status = answer.status();
        (status, answer.into_body().collect().await.unwrap().to_bytes())
    }

    async fn update(&mut self, random: u64) {
        let place = usize::try_from(random % self.revisions.len() as u64).unwrap();
        let filler = format!("{random:016x}").repeat(DOCUMENT_BYTES / 16 - 4);
        let revision = &self.revisions[place];
        let named = if revision.is_empty() { String::new() } else { format!("\"_rev\":\"{revision}\",") };
        let body = format!("{{{named}\"Form\":\"Memo\",\"Body\":\"{filler}\"}}");
        let (status, answer) =
            self.request(Method::PUT, &format!("/bench/c{}-{place}", self.number), body).await;
        assert_eq!(status, StatusCode::CREATED, "{answer:?}");
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        answer["rev"].as_str().unwrap().clone_into(&mut self.revisions[place]);
    }
}

async fn http_round(clients: &mut Vec<Client>, seed: u64) -> f64 {
    let began = Instant::now();
    let tasks: Vec<_> = clients
        .drain(..)
        .map(|mut client| {
            tokio::spawn(async move {
                let mut random = scatter(seed ^ client.number);
                let mut updates = 0_u64;
                while began.elapsed() < ROUND {
                    random = scatter(random);
                    client.update(random).await;
                    updates += 1;
                }
                (client, updates)
            })
        })
        .collect();
    let mut total = 0;
    for task in tasks {
        let (client, updates) = task.await.unwrap();
        clients.push(client);
        total += updates;
    }
    total as f64 / began.elapsed().as_secs_f64()
}

/// What a document's update is to the store: header, head, winner and change put, the old change deleted.
fn batch(writer: u64, place: u64, version: u64, filler: &[u8]) -> Batch {
    let document = [&writer.to_be_bytes()[..], &place.to_be_bytes()].concat();
    let change = |number: u64| [&writer.to_be_bytes()[..], &number.to_be_bytes()].concat();
    let mut batch = Batch::with_capacity(DOCUMENT_BYTES + 512);
    batch.put(Family::Scan, &document, filler);
    batch.delete(Family::Churn, &change(version));
    batch.put(Family::Churn, &change(version + 1), &[7; 64]);
    batch.put(Family::Point, &document, &[7; 60]);
    batch.put(Family::Meta, b"header", &[7; 60]);
    batch
}

fn store_round(store: &Store, versions: &[AtomicU64], seed: u64) -> f64 {
    let stop = AtomicBool::new(false);
    let began = Instant::now();
    let total: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS)
            .map(|writer| {
                let (stop, version) = (&stop, &versions[usize::try_from(writer).unwrap()]);
                scope.spawn(move || {
                    let mut random = scatter(seed ^ writer);
                    let mut commits = 0;
                    let filler = vec![b'x'; DOCUMENT_BYTES];
                    while !stop.load(Ordering::Relaxed) {
                        random = scatter(random);
                        let version = version.fetch_add(1, Ordering::Relaxed);
                        store.commit(batch(writer, random % 50, version, &filler)).unwrap();
                        commits += 1;
                    }
                    commits
                })
            })
            .collect();
        std::thread::sleep(ROUND);
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    total as f64 / began.elapsed().as_secs_f64()
}

fn main() {
    let folder = folder();
    let server = Server::start(&folder.path().join("server"));
    let store = Store::open(StoreOptions::new(folder.path().join("store")), &Registry::new()).unwrap();
    let versions: Vec<AtomicU64> = (0..CLIENTS).map(|_| AtomicU64::new(0)).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut clients = runtime.block_on(async {
        let mut clients = Vec::new();
        for number in 0..CLIENTS {
            clients.push(Client::connect(&server.address, number).await);
        }
        let (status, answer) = clients[0].request(Method::PUT, "/bench", String::new()).await;
        assert_eq!(status, StatusCode::CREATED, "{answer:?}");
        clients
    });
    let store = Arc::new(store);
    let (mut through_http, mut alone) = (Vec::new(), Vec::new());
    // The first round warms both up and is not counted.
    for round in 0..=ROUNDS as u64 {
        let ours = runtime.block_on(http_round(&mut clients, round << 32));
        let theirs = store_round(&store, &versions, round << 32);
        eprintln!(
            "round {round}: {ours:.0} updates/s through HTTP, {theirs:.0} commits/s by the store alone"
        );
        if round > 0 {
            through_http.push(ours);
            alone.push(theirs);
        }
    }
    report(&Line {
        name: "http-update",
        case: "1 KB documents, 64 clients on the same two cores",
        values: &through_http,
        unit: "updates/s",
        against: Against::Measured("the store alone, 64 threads", &alone),
    });
}
