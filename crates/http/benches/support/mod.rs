//! A server without passwords on a free port, for measuring.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark stops at the first error")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use scrinium_bench::{Against, Line, folder, median, report, scatter, timed};
use scrinium_database::{DatabaseOptions, Databases};
use scrinium_http::{
    Administration, Authenticator, ConsoleAnswer, HttpOptions, HttpState, Identity, Parts, PortOptions,
    Server, Session, SessionToken,
};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_worker::{WorkerOptions, WorkerPool};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Everybody is an administrator, from memory: passwords are not what is measured.
struct Anybody;

impl Authenticator for Anybody {
    fn recall(&self, name: &str, _password: &str) -> Option<Identity> {
        Some(Identity::new(name, vec!["_admin".to_owned()]))
    }

    fn verify(&self, _name: &str, _password: &str) -> Result<Option<Identity>, String> {
        Ok(None)
    }

    fn open_session(&self, _identity: &Identity) -> SessionToken {
        SessionToken { token: String::new(), max_age_seconds: 0 }
    }

    fn session(&self, _token: &str) -> Option<Session> {
        None
    }

    fn close_session(&self, _token: &str) {}
}

struct Nothing;

impl Administration for Nothing {
    fn console(&self, _command: &str, _by: &Identity) -> Result<ConsoleAnswer, String> {
        Err(String::new())
    }

    fn statistics(&self) -> Value {
        Value::Null
    }

    fn prometheus(&self) -> String {
        String::new()
    }

    fn active_tasks(&self) -> Value {
        Value::Null
    }
}

/// A server on a free port that runs until the process ends. Call it within a runtime.
pub(crate) fn serve(databases: Databases, statistics: &Registry) -> SocketAddr {
    let state = HttpState::new(Parts {
        databases,
        authenticator: Arc::new(Anybody),
        administration: Arc::new(Nothing),
        workers: WorkerPool::new(&WorkerOptions::default(), statistics),
        statistics: statistics.clone(),
        options: HttpOptions::default(),
    });
    let port = PortOptions { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..PortOptions::default() };
    let server = Server::bind(vec![port], state).unwrap();
    let address = server.addresses()[0];
    tokio::spawn(server.run(std::future::pending(), Duration::ZERO));
    address
}

/// A server over a store of its own, until the process ends.
#[allow(dead_code, reason = "not every benchmark compares sizes")]
pub(crate) struct Served {
    pub(crate) databases: Databases,
    pub(crate) store: Store,
    address: SocketAddr,
    _runtime: Runtime,
    _folder: TempDir,
}

#[allow(dead_code, reason = "not every benchmark compares sizes")]
impl Served {
    pub(crate) fn start(budget_bytes: u64) -> Self {
        let folder = folder();
        let mut options = StoreOptions::new(folder.path());
        options.budget_bytes = Some(budget_bytes);
        let statistics = Registry::new();
        let store = Store::open(options, &statistics).unwrap();
        let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
        let runtime = Runtime::new().unwrap();
        let address = runtime.block_on(async { serve(databases.clone(), &statistics) });
        Self { databases, store, address, _runtime: runtime, _folder: folder }
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.address)
    }

    /// How many documents the databases have: `usual`, or what `SCRINIUM_SIZES` says.
    pub(crate) fn sizes(usual: &[u64]) -> Vec<u64> {
        let sizes = std::env::var("SCRINIUM_SIZES").ok();
        sizes.map_or_else(
            || usual.to_vec(),
            |text| text.split(',').map(|size| size.parse().unwrap()).collect(),
        )
    }
}

/// Compares an operation at several sizes with what it costs at the first. `operation` gets the place of the size and a
/// random number; rounds alternate between the sizes, and each is a median of so many operations.
#[allow(dead_code, reason = "not every benchmark compares sizes")]
pub(crate) fn compare_sizes(
    bench: &str,
    case: &str,
    sizes: &[u64],
    operations: u64,
    mut operation: impl FnMut(usize, u64),
) {
    const ROUNDS: u64 = 7;
    let mut values: Vec<Vec<f64>> = sizes.iter().map(|_| Vec::new()).collect();
    // The first round warms up and is not counted.
    for seed in 0..=ROUNDS {
        for (size, values) in values.iter_mut().enumerate() {
            let times: Vec<f64> = (0..operations)
                .map(|count| {
                    let ((), took) = timed(|| operation(size, scatter(seed << 32 ^ count)));
                    took.as_secs_f64() * 1e6
                })
                .collect();
            eprintln!("{case}: {:.1} us at {}", median(&times), sizes[size]);
            if seed > 0 {
                values.push(median(&times));
            }
        }
    }
    let (smallest, against) = (values[0].clone(), format!("the same at {} documents", sizes[0]));
    for (size, values) in sizes.iter().zip(&values).skip(1) {
        report(&Line {
            name: bench,
            case: &format!("{case}, {size} documents"),
            values,
            unit: "us",
            against: Against::Measured(&against, &smallest),
        });
    }
}

/// A client's connection that waits for each answer.
#[allow(dead_code, reason = "not every benchmark has this kind of client")]
pub(crate) struct Connection {
    stream: TcpStream,
    answer: Vec<u8>,
}

#[allow(dead_code, reason = "not every benchmark has this kind of client")]
impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, answer: Vec::new() }
    }

    /// The whole answer, which must be a success; it ends where the connection has nothing more to say.
    pub(crate) fn request(&mut self, method: &str, path: &str, body: &str) -> &str {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Basic YTpi\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(request.as_bytes()).unwrap();
        self.answer.clear();
        let mut part = [0; 16 << 10];
        while !self.is_whole() {
            let read = self.stream.read(&mut part).unwrap();
            assert!(read > 0, "{}", String::from_utf8_lossy(&self.answer));
            self.answer.extend_from_slice(&part[..read]);
        }
        let text = std::str::from_utf8(&self.answer).unwrap();
        assert!(text.starts_with("HTTP/1.1 20"), "{text}");
        text.split_once("\r\n\r\n").unwrap().1
    }

    /// Our answers end with a line, and a list that is sent in pieces with the last piece.
    fn is_whole(&self) -> bool {
        let text = String::from_utf8_lossy(&self.answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        length.map_or_else(|| body.ends_with("0\r\n\r\n"), |length: usize| body.len() >= length)
    }
}
