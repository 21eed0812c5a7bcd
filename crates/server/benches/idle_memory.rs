//! Memory of an idle server, and of each idle connection.
//!
//! A server with an empty store is measured, then with connections that have each made one request as a
//! logged-in user and stay open. `cargo bench -p scrinium-server --bench idle_memory`.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a benchmark stops at the first error")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use scrinium_bench::{Against, Line, folder, report};

const CONNECTIONS: usize = 2000;
const ROUNDS: usize = 3;
const PASSWORD: &str = "a password of the benchmark";
const SERVER_LIMIT_MB: f64 = 100.0;
const USER_LIMIT_KB: f64 = 64.0;

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
        while TcpStream::connect(&address).is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "the server did not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, address }
    }

    /// Resident memory in KB.
    fn memory_kb(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that has made one request and stays open.
fn connect(address: &str) -> TcpStream {
    let credentials = base64::engine::general_purpose::STANDARD.encode(format!("admin:{PASSWORD}"));
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /_all_dbs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {credentials}\r\n\r\n")
        .unwrap();
    let mut answer = [0; 4096];
    let length = stream.read(&mut answer).unwrap();
    assert!(
        answer.starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(answer.get(..length).unwrap())
    );
    stream
}

fn main() {
    let (mut idle_mb, mut user_kb) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let folder = folder();
        let server = Server::start(folder.path());
        std::thread::sleep(Duration::from_secs(2));
        let idle = server.memory_kb();
        let mut connections = vec![connect(&server.address)];
        std::thread::sleep(Duration::from_secs(1));
        let one = server.memory_kb();
        connections.extend((1..CONNECTIONS).map(|_| connect(&server.address)));
        std::thread::sleep(Duration::from_secs(2));
        let each = (server.memory_kb() - one) / (CONNECTIONS - 1) as f64;
        eprintln!(
            "round {round}: {:.1} MB idle, {each:.1} KB for each of {} connections",
            idle / 1024.0,
            connections.len()
        );
        idle_mb.push(idle / 1024.0);
        user_kb.push(each);
    }
    report(&Line {
        name: "idle-memory",
        case: "server with an empty store",
        values: &idle_mb,
        unit: "MB",
        against: Against::Given("the limit", SERVER_LIMIT_MB),
    });
    report(&Line {
        name: "idle-memory",
        case: "each connected idle user",
        values: &user_kb,
        unit: "KB",
        against: Against::Given("the limit", USER_LIMIT_KB),
    });
}
