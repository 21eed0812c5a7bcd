//! Memory of an idle server, and of each idle connection.
//!
//! A server with an empty store is measured, then with connections that have each made one request as a
//! logged-in user and stay open. `cargo bench -p scrinium-server --bench idle_memory`.

#![allow(clippy::cast_precision_loss, reason = "a benchmark")]

use std::time::Duration;

use scrinium_bench::client::Connection;
use scrinium_bench::process::memory_bytes;
use scrinium_bench::server::Server;
use scrinium_bench::{Against, Line, report};

const CONNECTIONS: usize = 2000;
const ROUNDS: usize = 3;
const SERVER_LIMIT_MB: f64 = 100.0;
const USER_LIMIT_KB: f64 = 64.0;

/// Resident memory in KB.
fn memory_kb(server: &Server) -> f64 {
    memory_bytes(server.process_id()) / 1024.0
}

/// A connection that has made one request and stays open.
fn connect(server: &Server) -> Connection {
    let mut connection = server.connect();
    connection.request("GET", "/_all_dbs", "");
    connection
}

fn main() {
    let (mut idle_mb, mut user_kb) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let server = Server::start(env!("CARGO_BIN_EXE_scrinium"), &[]);
        std::thread::sleep(Duration::from_secs(2));
        let idle = memory_kb(&server);
        let mut connections = vec![connect(&server)];
        std::thread::sleep(Duration::from_secs(1));
        let one = memory_kb(&server);
        connections.extend((1..CONNECTIONS).map(|_| connect(&server)));
        std::thread::sleep(Duration::from_secs(2));
        let each = (memory_kb(&server) - one) / (CONNECTIONS - 1) as f64;
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
