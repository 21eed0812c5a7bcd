//! How long a server takes until it serves again after SIGKILL, with 1 GB of log behind it.
//!
//! A server is filled with documents of some 600 bytes over HTTP until it has written so much log, then continues until as
//! much as ever before would have to be done again, and is killed with SIGKILL; then it is started on the same folder.
//! What is measured is the time from the start of the process until a document written last has been read over HTTP.
//! `cargo bench -p scrinium-server --bench restart`; `SCRINIUM_LOG_MB` and `SCRINIUM_ROUNDS` make it smaller.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a benchmark stops at the first error")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use scrinium_bench::discussion::{document, id};
use scrinium_bench::server::Server;
use scrinium_bench::{Against, Line, report, setting, timed};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_scrinium");
const MEGABYTE: f64 = 1_048_576.0;
const AT_ONCE: u64 = 1000;
const WRITERS: usize = 2;

/// What is asked of each.
const TARGETS: [(&str, f64); 2] = [("restart", 2.0), ("runtime", 10.0)];

struct Restart {
    redone_mb: f64,
    read_seconds: f64,
    serving_seconds: f64,
}

fn restart(favor: &str, log_bytes: f64) -> Restart {
    let settings = [("SCRINIUM_LOG__FAVOR", favor)];
    let server = Server::start(PROGRAM, &settings);
    server.connect().request("PUT", "/documents", "");
    let (next, last) = (AtomicU64::new(0), AtomicU64::new(0));
    let full = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                let mut connection = server.connect();
                while !full.load(Ordering::Relaxed) {
                    let first = next.fetch_add(AT_ONCE, Ordering::Relaxed);
                    let list: Vec<Value> = (first..first + AT_ONCE).map(document).collect();
                    connection.request("POST", "/documents/_bulk_docs", &json!({"docs": list}).to_string());
                    last.store(first, Ordering::Relaxed);
                }
            });
        }
        let mut connection = server.connect();
        let mut most = 0.0_f64;
        loop {
            let redo = Server::statistic(&mut connection, "Log.Redo.Bytes");
            most = most.max(redo);
            if Server::statistic(&mut connection, "Log.Bytes") >= log_bytes && redo >= most * 0.9 {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        full.store(true, Ordering::Relaxed);
    });
    let folder = server.kill();
    let (server, elapsed) = timed(|| {
        let server = Server::start_in(folder, PROGRAM, &settings);
        let written_last = id(last.load(Ordering::Relaxed));
        server.connect().request("GET", &format!("/documents/{written_last}"), "");
        server
    });
    let mut connection = server.connect();
    Restart {
        redone_mb: Server::statistic(&mut connection, "Log.Restart.Bytes") / MEGABYTE,
        read_seconds: Server::statistic(&mut connection, "Log.Restart.Seconds"),
        serving_seconds: elapsed.as_secs_f64(),
    }
}

fn main() {
    let log_bytes = setting("SCRINIUM_LOG_MB", 1024.0) * MEGABYTE;
    let rounds: usize = setting("SCRINIUM_ROUNDS", 3);
    let mut found = TARGETS.map(|_| Vec::new());
    for round in 0..rounds {
        for ((favor, _), found) in TARGETS.iter().zip(&mut found) {
            let restart = restart(favor, log_bytes);
            let Restart { redone_mb, read_seconds, serving_seconds } = restart;
            eprintln!(
                "log.favor = {favor}, round {round}: serving after {serving_seconds:.2} s, of these {read_seconds:.2} s for \
                 {redone_mb:.0} MB of log"
            );
            found.push(restart);
        }
    }
    for ((favor, target), found) in TARGETS.iter().zip(&found) {
        let of = |value: fn(&Restart) -> f64| found.iter().map(value).collect::<Vec<_>>();
        let case = |what: &str| format!("log.favor = {favor}, {what}");
        report(&Line {
            name: "restart",
            case: &case("serving after SIGKILL"),
            values: &of(|restart| restart.serving_seconds),
            unit: "s",
            against: Against::Given("the target", *target),
        });
        report(&Line {
            name: "restart",
            case: &case("log done again"),
            values: &of(|restart| restart.redone_mb),
            unit: "MB",
            against: Against::Given("log behind it", log_bytes / MEGABYTE),
        });
    }
}
