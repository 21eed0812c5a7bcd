//! What a server takes of memory that has a budget of 64 MB, while strangers and people with a password send it the worst
//! that they can.
//!
//! A server of its own for each of: a log-in that comes compressed and would be 64 MB of numbers, a selector like it, forty
//! bodies of 64 MB that come slowly, a document with its attachments in JSON asked for by readers who wait, a thousand
//! feeds, and three hundred readers who do not read. The highest resident memory of the server is held against the budget
//! and 128 MB; that of the processes that run its JavaScript, against what their number may take.
//! `cargo bench -p scrinium-server --bench hostile_memory`; `SCRINIUM_SECONDS=30` for a longer attack,
//! `SCRINIUM_CASE=slow` for the cases whose name holds a word.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_precision_loss, reason = "a benchmark")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use scrinium_bench::process::peak_memory_bytes;
use scrinium_bench::server::{PASSWORD, Server};
use scrinium_bench::{Against, Line, report, scatter, setting};
use serde_json::{Value, json};

const BUDGET_MB: u64 = 64;
const BESIDES_MB: u64 = 128;
const MEGABYTE: f64 = (1_u64 << 20) as f64;
/// How long each attack continues.
const SECONDS: u64 = 10;
const LARGE_BYTES: usize = 64 << 20;
const PEOPLE: usize = 50;
const FEEDS: usize = 1000;
const READERS: usize = 300;
const SLOW_BODIES: usize = 40;
/// A stranger's socket neither connects nor takes for longer than this.
const PATIENCE: Duration = Duration::from_secs(5);
/// An attachment of each of the documents that are asked for inline.
const ATTACHMENT_BYTES: usize = 24 << 20;

/// What is done to the server until the time is over; gives the connections that it leaves open.
type Attack = fn(&Target) -> Vec<TcpStream>;

const ATTACKS: [(&str, Attack); 6] = [
    ("gzip log-in", gzip_login),
    ("gzip _find", gzip_find),
    ("slow bodies", slow_bodies),
    ("inline attachments", inline_attachments),
    ("1000 feeds", feeds),
    ("300 readers who do not read", lazy_readers),
];

struct Target {
    server: Server,
    until: Instant,
}

impl Target {
    fn new() -> Self {
        let budget = format!("{BUDGET_MB} MB");
        let server = Server::start(env!("CARGO_BIN_EXE_scrinium"), &[("SCRINIUM_MEMORY__BUDGET", &budget)]);
        let mut connection = server.connect();
        connection.request("PUT", "/wide", "");
        let readers = json!({"default": {"level": "editor"}}).to_string();
        connection.request("PUT", "/wide/_acl", &readers);
        for number in 0..PEOPLE {
            let name = person(number);
            let document =
                json!({"Form": "Person", "ShortName": name, "FullName": [name], "password": PASSWORD});
            connection.request("PUT", &format!("/directory/person:{name}"), &document.to_string());
        }
        for number in 0..200 {
            let list: Vec<Value> = (0..50)
                .map(|at| json!({"_id": format!("d{number:03}-{at:02}"), "Text": letters(number * 50 + at)}))
                .collect();
            connection.request("POST", "/wide/_bulk_docs", &json!({ "docs": list }).to_string());
        }
        let data = STANDARD.encode(noise(ATTACHMENT_BYTES));
        let file = json!({"content_type": "application/octet-stream", "data": data});
        connection.request("PUT", "/wide/large", &json!({"_attachments": {"file": file}}).to_string());
        let map = "function (document) { emit(document._id, document.Text); }";
        let design = json!({"views": {"texts": {"map": map}}}).to_string();
        connection.request("PUT", "/wide/_design/texts", &design);
        connection.request("GET", "/wide/_design/texts/_view/texts?limit=1", "");
        let seconds = setting("SCRINIUM_SECONDS", SECONDS);
        Self { server, until: Instant::now() + Duration::from_secs(seconds) }
    }

    fn lasts(&self) -> bool {
        Instant::now() < self.until
    }

    /// Sends a head, and what of a body the server takes.
    fn send(&self, head: &str, body: &[u8]) -> Option<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&self.server.address(), PATIENCE).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(head.as_bytes()).ok()?;
        // A server that refuses early closes the connection while the body is still sent.
        let _ = stream.write_all(body);
        Some(stream)
    }

    fn post(&self, path: &str, more: &str, body: &[u8]) -> Option<TcpStream> {
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{more}\r\n"
        );
        self.send(&head, body)
    }

    fn get(&self, path: &str, number: usize) -> Option<TcpStream> {
        let authorization = authorization(number);
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: bench\r\n{authorization}\r\n"), b"")
    }
}

fn person(number: usize) -> String {
    format!("user{}", number % PEOPLE)
}

fn authorization(number: usize) -> String {
    format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{}:{PASSWORD}", person(number))))
}

fn letters(seed: u64) -> String {
    (0..64).map(|at| format!("{:016x}", scatter(seed << 8 | at))).collect()
}

fn noise(bytes: usize) -> Vec<u8> {
    (0..bytes as u64 / 8).flat_map(|at| scatter(at).to_le_bytes()).collect()
}

/// `{"NAME":[0,0,0 ...]}`, compressed: some 64 KB for 64 MB.
fn zeros(before: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(before.as_bytes()).unwrap();
    let piece = b"0,".repeat(32 << 10);
    for _ in 0..LARGE_BYTES / piece.len() {
        encoder.write_all(&piece).unwrap();
    }
    encoder.write_all(b"0]}").unwrap();
    encoder.finish().unwrap()
}

/// The answer's first bytes, or none.
fn answer(stream: Option<TcpStream>) {
    if let Some(mut stream) = stream {
        let mut first = [0; 512];
        let _ = stream.read(&mut first);
    }
}

fn gzip_login(target: &Target) -> Vec<TcpStream> {
    let body = zeros("{\"a\":[");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while target.lasts() {
                    answer(target.post("/_session", "Content-Encoding: gzip\r\n", &body));
                }
            });
        }
    });
    Vec::new()
}

fn gzip_find(target: &Target) -> Vec<TcpStream> {
    let body = zeros("{\"selector\":{\"a\":{\"$in\":[");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let body = &body;
            scope.spawn(move || {
                let more = format!("Content-Encoding: gzip\r\n{}", authorization(number));
                while target.lasts() {
                    answer(target.post("/wide/_find", &more, body));
                }
            });
        }
    });
    Vec::new()
}

/// Bodies that say 64 MB and come as a few bytes at a time, half of them from strangers.
fn slow_bodies(target: &Target) -> Vec<TcpStream> {
    let begin = |number: usize| {
        let who = if number.is_multiple_of(2) { authorization(number) } else { String::new() };
        let head = format!(
            "POST /wide/_bulk_docs HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n\
             Content-Length: {LARGE_BYTES}\r\n{who}\r\n"
        );
        target.send(&head, b"{\"docs\":[")
    };
    let mut streams: Vec<TcpStream> = (0..SLOW_BODIES).filter_map(begin).collect();
    let piece = b"0,".repeat(512);
    while target.lasts() {
        streams.retain_mut(|stream| stream.write_all(&piece).is_ok());
        std::thread::sleep(Duration::from_millis(20));
    }
    streams
}

fn inline_attachments(target: &Target) -> Vec<TcpStream> {
    let streams = (0..PEOPLE)
        .filter_map(|number| {
            let path = if number.is_multiple_of(2) {
                "/wide/large?attachments=true"
            } else {
                "/wide/_changes?include_docs=true&attachments=true&descending=true&limit=5"
            };
            let authorization = authorization(number);
            let accept = "Accept: application/json\r\n";
            target.send(&format!("GET {path} HTTP/1.1\r\nHost: bench\r\n{accept}{authorization}\r\n"), b"")
        })
        .collect();
    wait(target);
    streams
}

fn feeds(target: &Target) -> Vec<TcpStream> {
    let path = "/wide/_changes?feed=continuous&include_docs=true&heartbeat=1000&since=now";
    let streams = (0..FEEDS).filter_map(|number| target.get(path, number)).collect();
    wait(target);
    streams
}

fn lazy_readers(target: &Target) -> Vec<TcpStream> {
    let streams =
        (0..READERS).filter_map(|number| target.get("/wide/_all_docs?include_docs=true", number)).collect();
    wait(target);
    streams
}

fn wait(target: &Target) {
    while target.lasts() {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The processes that a process has started (proc(5)).
fn children(process: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let listed = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    listed
        .flat_map(|text| text.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The address space that a process may have (proc(5)).
fn limit_bytes(process: u32) -> f64 {
    let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn measure(name: &str, attack: Attack) {
    let target = Target::new();
    let process = target.server.process_id();
    let children = children(process);
    assert!(!children.is_empty(), "no process runs the view's function");
    for process in children.iter().chain([&process]) {
        let _ = std::fs::write(format!("/proc/{process}/clear_refs"), "5");
    }
    let held = attack(&target);
    let peak_mb = peak_memory_bytes(process) / MEGABYTE;
    eprintln!("{name}: {peak_mb:.0} MB, {} connections are left", held.len());
    report(&Line {
        name: "hostile-memory",
        case: &format!("peak, {name}"),
        values: &[peak_mb],
        unit: "MB",
        against: Against::Given("the budget and 128 MB", (BUDGET_MB + BESIDES_MB) as f64),
    });
    let of_children_mb: f64 = children.iter().map(|child| peak_memory_bytes(*child) / MEGABYTE).sum();
    let limits_mb: f64 = children.iter().map(|child| limit_bytes(*child) / MEGABYTE).sum();
    report(&Line {
        name: "hostile-memory",
        case: &format!("children's peak, {name}"),
        values: &[of_children_mb],
        unit: "MB",
        against: Against::Given("their limit", limits_mb),
    });
}

fn main() {
    let wanted: String = setting("SCRINIUM_CASE", String::new());
    for (name, attack) in ATTACKS.into_iter().filter(|(name, _)| name.contains(&wanted)) {
        measure(name, attack);
    }
}
