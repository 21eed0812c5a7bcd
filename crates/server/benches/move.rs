//! What moving a database of a gigabyte to another volume takes, and what those who work in it notice.
//!
//! Eight clients read and update documents of the database over HTTP, at half the rate that they reach without think
//! times, for a while before and while it is moved (`load move`) to the other volume, which lies on the same device; two
//! clients read in another database meanwhile. Each round moves it to where it is not.
//! `cargo bench -p scrinium-server --bench move`; `SCRINIUM_DOCUMENTS=50000` for another size, `SCRINIUM_PACE=0.3`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

use std::thread::sleep;
use std::time::{Duration, Instant};

use scrinium_bench::client::Connection;
use scrinium_bench::server::{Discussion, Reads, Server, Times};
use scrinium_bench::{Against, Line, folder, percentile, report, setting, timed};
use serde_json::{Value, json};

/// With texts that do not compress and are no contents of their own.
const DOCUMENTS: u64 = 600_000;
const TEXT_BYTES: usize = 1800;
const OTHERS: u64 = 20_000;
const CLIENTS: u64 = 8;
const OTHER_CLIENTS: u64 = 2;
const OTHER_THINK: Duration = Duration::from_millis(20);
const ROUNDS: u64 = 3;
const BEFORE: Duration = Duration::from_secs(8);
const ENDED_WITHIN: Duration = Duration::from_secs(5);
const FLAT_OUT: Duration = Duration::from_secs(4);
const PACE: f64 = 0.5;
const MEGABYTE: f64 = 1_048_576.0;
const MOVED_WITHIN: Duration = Duration::from_secs(1800);
const VOLUMES: [&str; 2] = ["fast", "main"];

struct Place {
    server: Server,
    moved: Discussion,
    others: Discussion,
    think: Duration,
}

/// What one round gave: times in the database and in the other one, before and meanwhile.
struct Round {
    before: (Times, Times),
    during: (Times, Times),
    seconds: f64,
    megabytes: f64,
    held_ms: f64,
}

impl Place {
    fn load(&self, seed: u64, meanwhile: impl FnOnce()) -> (Times, Times) {
        let inside = (CLIENTS, Reads::Documents);
        let outside = (OTHER_CLIENTS, Reads::Documents);
        let (others, moved) = self.others.load(&self.server, outside, OTHER_THINK, seed ^ 0xffff, || {
            self.moved.load(&self.server, inside, self.think, seed, meanwhile).0
        });
        (moved, others)
    }

    fn round(&self, number: u64) -> Round {
        let mut connection = self.server.connect();
        let before = self.load(number << 1, || sleep(BEFORE));
        let info: Value = serde_json::from_str(connection.request("GET", &self.moved.path, "")).unwrap();
        let megabytes = info["sizes"]["file"].as_f64().unwrap() / MEGABYTE;
        let target = VOLUMES[usize::from(info["volume"] == VOLUMES[0])];
        let mut took = Duration::ZERO;
        let during = self.load(number << 1 | 1, || {
            took = timed(|| relocate(&mut connection, &self.moved.path, target)).1;
        });
        let held_ms = held_ms(&mut connection);
        eprintln!(
            "round {number}: {megabytes:.0} MB moved to {target} in {took:.1?} beside {} operations, writers held for {held_ms} ms",
            during.0.operations()
        );
        self.server.settle();
        Round { before, during, seconds: took.as_secs_f64(), megabytes, held_ms }
    }
}

fn console(connection: &mut Connection, command: &str) -> Value {
    let command = json!({ "command": command }).to_string();
    serde_json::from_str(connection.request("POST", "/_console", &command)).unwrap()
}

fn relocate(connection: &mut Connection, path: &str, volume: &str) {
    console(connection, &format!("load move {} {volume}", path.trim_start_matches('/')));
    let (asked, there) = (Instant::now(), format!("\"volume\":\"{volume}\""));
    while !connection.request("GET", path, "").contains(&there) {
        assert!(asked.elapsed() < MOVED_WITHIN, "{path} is not moved");
        sleep(Duration::from_millis(20));
    }
}

/// How long writers were held by the move that ended last.
fn held_ms(connection: &mut Connection) -> f64 {
    let asked = Instant::now();
    loop {
        let told = console(connection, "show tasks");
        let (running, ended) = (&told["data"]["running"], &told["data"]["ended"]);
        let is_move = |task: &&Value| task["kind"] == "database_move";
        let is_running = running.as_array().unwrap().iter().any(|task| is_move(&task));
        if let Some(task) = ended.as_array().unwrap().iter().find(is_move).filter(|_| !is_running) {
            return task["details"]["held_ms"].as_f64().unwrap();
        }
        assert!(asked.elapsed() < ENDED_WITHIN, "the move does not end: {told}");
        sleep(Duration::from_millis(20));
    }
}

type Kind = fn(&(Times, Times)) -> &[f64];

fn line(case: &str, values: &[f64], unit: &str, against: Against<'_>) {
    report(&Line { name: "move", case, values, unit, against });
}

fn tell(rounds: &[Round]) {
    let of = |value: fn(&Round) -> f64| -> Vec<f64> { rounds.iter().map(value).collect() };
    let megabytes = scrinium_bench::median(&of(|round| round.megabytes));
    let case = format!("a database of {megabytes:.0} MB moved while {CLIENTS} clients work in it");
    let rate = of(|round| round.megabytes / round.seconds);
    line(&case, &rate, "MB/s", Against::Given("a move in 20 s", megabytes / 20.0));
    let held = of(|round| round.held_ms);
    line("writers held at once, at most", &held, "ms", Against::Given("meant: at most", 100.0));
    let longest = |times: &(Times, Times)| times.0.updates.iter().copied().fold(0.0, f64::max) / 1000.0;
    let values = |times: fn(&Round) -> &(Times, Times)| -> Vec<f64> {
        rounds.iter().map(|round| longest(times(round))).collect()
    };
    line(
        "the longest wait of an update in it",
        &values(|round| &round.during),
        "ms",
        Against::Measured("before", &values(|round| &round.before)),
    );
    let kinds: [(&str, Kind); 3] = [
        ("an update in it", |times| &times.0.updates),
        ("a document read in it", |times| &times.0.reads),
        ("a document read in another database", |times| &times.1.reads),
    ];
    for (what, kind) in kinds {
        for (name, part) in [("median", 0.5), ("p99", 0.99)] {
            let values = |times: fn(&Round) -> &(Times, Times)| -> Vec<f64> {
                rounds.iter().map(|round| percentile(kind(times(round)), part)).collect()
            };
            line(
                &format!("{what}, {name}, meanwhile"),
                &values(|round| &round.during),
                "us",
                Against::Measured("before", &values(|round| &round.before)),
            );
        }
    }
}

fn main() {
    let volume = folder();
    let dir = volume.path().display().to_string();
    let settings = [("SCRINIUM_VOLUME__FAST__DIR", dir.as_str()), ("SCRINIUM_COMPACT__WINDOW", "")];
    let server = Server::start(env!("CARGO_BIN_EXE_scrinium"), &settings);
    let others = Discussion::fill(&server, "others", OTHERS);
    let mut moved = Discussion::with_texts(&server, "moved", TEXT_BYTES);
    let began = Instant::now();
    moved.grow(&server, setting("SCRINIUM_DOCUMENTS", DOCUMENTS));
    eprintln!("filled in {:.0?}", began.elapsed());
    server.settle();
    let mut place = Place { server, moved, others, think: Duration::ZERO };
    let operations = place.load(0, || sleep(FLAT_OUT)).0.operations() as f64;
    let rate = setting("SCRINIUM_PACE", PACE) * operations / FLAT_OUT.as_secs_f64();
    eprintln!("{rate:.0} operations a second");
    place.think = Duration::from_secs_f64(CLIENTS as f64 / rate);
    let rounds: Vec<Round> =
        (1..=setting("SCRINIUM_ROUNDS", ROUNDS)).map(|number| place.round(number)).collect();
    tell(&rounds);
}
