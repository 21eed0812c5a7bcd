//! Backups of a server at work: how fast, what its users notice, and what the next one costs.
//!
//! The device is measured in the same rounds by `dd` past the page cache: reading, writing, and copying one large file
//! on it, which is what a backup on the same device does. Eight clients read pages and update documents over HTTP, at a
//! part of the rate that they reach without think times; `dd` copies at the same time too, since what they do is taken from the
//! device as well. Asked for: 70 % of the sequential speed, p99 at most twice as high, and an incremental backup in
//! proportion to what changed.
//! `cargo bench -p scrinium-server --bench backup`; `SCRINIUM_GIGABYTES=10` for another size, `SCRINIUM_RATE=100MB` for
//! backups that are held back.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a benchmark stops at the first error"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use scrinium_bench::client::Connection;
use scrinium_bench::discussion::design;
use scrinium_bench::server::{Discussion, Reads, Server};
use scrinium_bench::{Against, Line, folder, percentile, report, scatter, setting};
use serde_json::{Value, json};
use tempfile::TempDir;

const GIGABYTES: f64 = 1.0;
const DOCUMENTS: u64 = 20_000;
const CLIENTS: u64 = 8;
const ROUNDS: u64 = 3;
const BEFORE: Duration = Duration::from_secs(5);
const SETTLE: Duration = Duration::from_secs(3);
const FLAT_OUT: Duration = Duration::from_secs(3);
/// Of the rate without think times; `SCRINIUM_PACE` for another.
const PACE: f64 = 0.3;
const ATTACHMENT_BYTES: usize = 8 << 20;
const MEGABYTE: f64 = 1e6;

struct Place {
    server: Server,
    discussion: Discussion,
    backups: TempDir,
}

/// The one place that the server makes backups in.
fn repository(backups: &TempDir) -> PathBuf {
    backups.path().join("repository")
}

impl Place {
    /// That place, without a backup.
    fn empty_repository(&self) -> PathBuf {
        let repository = repository(&self.backups);
        drop(std::fs::remove_dir_all(&repository));
        repository
    }

    /// The clients work while `meanwhile` runs. Gives how long each operation took, in microseconds.
    fn load<M>(&self, think: Duration, seed: u64, meanwhile: impl FnOnce() -> M) -> (Vec<f64>, M) {
        let load = self.discussion.load(&self.server, (CLIENTS, Reads::Pages), think, seed, meanwhile);
        (load.0.all(), load.1)
    }

    fn think(&self) -> Duration {
        let (flat_out, ()) = self.load(Duration::ZERO, 0, || sleep(FLAT_OUT));
        let rate = setting("SCRINIUM_PACE", PACE) * flat_out.len() as f64 / FLAT_OUT.as_secs_f64();
        eprintln!("{rate:.0} operations a second");
        Duration::from_secs_f64(CLIENTS as f64 / rate)
    }
}

/// Bytes that compression hardly makes less.
fn noise(seed: u64) -> String {
    let mut state = scatter(seed);
    let mut text = String::with_capacity(ATTACHMENT_BYTES);
    while text.len() < ATTACHMENT_BYTES {
        state = scatter(state);
        text.extend(state.to_le_bytes().map(|byte| char::from(byte & 0x7f)));
    }
    text
}

fn fill(connection: &mut Connection, bytes: u64) {
    connection.request("PUT", "/large", "");
    for number in 0..bytes / ATTACHMENT_BYTES as u64 {
        connection.request("PUT", &format!("/large/{number}/noise"), &noise(number));
    }
}

/// Makes a backup; what it says of itself, and how long it took.
fn back_up(connection: &mut Connection, repository: &Path) -> (Value, Duration) {
    let rate: String = setting("SCRINIUM_RATE", String::new());
    let rate = if rate.is_empty() { rate } else { format!(" -r {rate}") };
    let command = json!({"command": format!("load backup \"{}\"{rate}", repository.display())});
    let began = Instant::now();
    let begun: Value =
        serde_json::from_str(connection.request("POST", "/_console", &command.to_string())).unwrap();
    let task = &begun["data"]["task"];
    loop {
        sleep(Duration::from_millis(20));
        let tasks = connection.request("POST", "/_console", &json!({"command": "show tasks"}).to_string());
        let tasks: Value = serde_json::from_str(tasks).unwrap();
        let ended = tasks["data"]["ended"].as_array().unwrap().iter().find(|ended| ended["task"] == *task);
        if let Some(ended) = ended {
            assert!(ended["state"] == "finished", "{ended}");
            return (ended["details"]["result"].clone(), began.elapsed());
        }
    }
}

/// How long backups have given way to requests.
fn yielded_ms(connection: &mut Connection) -> f64 {
    let name = "IO.Backup.Yielded.Milliseconds";
    let command = json!({"command": format!("show statistics {name}")}).to_string();
    let answer: Value = serde_json::from_str(connection.request("POST", "/_console", &command)).unwrap();
    answer["data"]["statistics"][name].as_f64().unwrap()
}

/// MB a second of `dd` between two files, or `/dev/zero` and `/dev/null`.
fn dd(from: &Path, to: &Path, bytes: u64) -> f64 {
    let count = bytes / (2 << 20);
    let mut command = Command::new("dd");
    command.arg(format!("if={}", from.display())).arg(format!("of={}", to.display()));
    command.args(["bs=2M", &format!("count={count}"), "status=none"]);
    if from.is_file() {
        command.arg("iflag=direct");
    }
    if to.as_os_str() != "/dev/null" {
        command.args(["oflag=direct", "conv=fsync"]);
    }
    let began = Instant::now();
    assert!(command.status().unwrap().success());
    (count * (2 << 20)) as f64 / began.elapsed().as_secs_f64() / MEGABYTE
}

#[derive(Default)]
struct Found {
    full: Vec<f64>,
    beside: Vec<f64>,
    device_reads: Vec<f64>,
    device_writes: Vec<f64>,
    device_copies: Vec<f64>,
    /// While the clients work.
    copies_beside: Vec<f64>,
    before: Vec<f64>,
    during: Vec<f64>,
    incremental_seconds: Vec<f64>,
    incremental_bytes: Vec<f64>,
    full_seconds: Vec<f64>,
    full_bytes: Vec<f64>,
}

fn main() {
    let bytes = (setting("SCRINIUM_GIGABYTES", GIGABYTES) * 1e9) as u64;
    let backups = folder();
    let target = repository(&backups).display().to_string();
    let server = Server::start(env!("CARGO_BIN_EXE_scrinium"), &[("SCRINIUM_BACKUP__TARGETS", &target)]);
    let discussion = Discussion::fill(&server, "discussion", setting("SCRINIUM_DOCUMENTS", DOCUMENTS));
    let mut connection = server.connect();
    discussion.build(&mut connection, &design());
    fill(&mut connection, bytes);
    let place = Place { server, discussion, backups };
    let think = place.think();
    let mut found = Found::default();
    for round in 1..=ROUNDS {
        measure(&place, &mut connection, think, round, bytes.min(1 << 30), &mut found);
    }
    tell(&found);
}

fn measure(
    place: &Place,
    connection: &mut Connection,
    think: Duration,
    round: u64,
    device_bytes: u64,
    found: &mut Found,
) {
    let scratch = folder();
    let (one, two) = (scratch.path().join("one"), scratch.path().join("two"));
    found.device_writes.push(dd(Path::new("/dev/zero"), &one, device_bytes));
    found.device_reads.push(dd(&one, Path::new("/dev/null"), device_bytes));
    found.device_copies.push(dd(&one, &two, device_bytes));
    let (_, beside) = place.load(think, round << 2 | 2, || dd(&one, &two, device_bytes));
    found.copies_beside.push(beside);
    drop(scratch);
    // What dd wrote is being given back by the file system for a while.
    sleep(SETTLE);
    let repository = place.empty_repository();
    let (before, ()) = place.load(think, round << 2, || sleep(BEFORE));
    // The first while nobody works, to be compared with the device.
    let (full, took) = back_up(connection, &repository);
    let full_bytes = full["new_bytes"].as_f64().unwrap();
    found.full.push(full_bytes / took.as_secs_f64() / MEGABYTE);
    found.full_seconds.push(took.as_secs_f64());
    found.full_bytes.push(full_bytes / MEGABYTE);
    // Then a hundred documents.
    for number in 0..100 {
        place.discussion.update(connection, scatter(number << 8 | round));
    }
    let (incremental, took) = back_up(connection, &repository);
    found.incremental_seconds.push(took.as_secs_f64());
    found.incremental_bytes.push(incremental["new_bytes"].as_f64().unwrap() / MEGABYTE);
    // And a full one while they work.
    let repository = place.empty_repository();
    let yielded_before = yielded_ms(connection);
    let (during, (full, took)) = place.load(think, round << 2 | 1, || back_up(connection, &repository));
    let rate = full["new_bytes"].as_f64().unwrap() / took.as_secs_f64() / MEGABYTE;
    found.beside.push(rate);
    eprintln!(
        "round {round}: {rate:.0} MB/s beside {} operations in {took:.1?}, {:.0} ms of it left to requests",
        during.len(),
        yielded_ms(connection) - yielded_before
    );
    found.before.push(percentile(&before, 0.99));
    found.during.push(percentile(&during, 0.99));
}

fn tell(found: &Found) {
    let line = |case: &str, values: &[f64], unit: &str, against: Against<'_>| {
        report(&Line { name: "backup", case, values, unit, against });
    };
    let copy = Against::Measured("dd copying a file there (asked for: 0.7)", &found.device_copies);
    line("a full backup on the same device, speed", &found.full, "MB/s", copy);
    let copy = Against::Measured("dd copying a file there (asked for: 0.7)", &found.device_copies);
    line("the same beside 8 users, speed", &found.beside, "MB/s", copy);
    let beside = Against::Measured("dd copying a file beside them", &found.copies_beside);
    line("the same beside 8 users, speed", &found.beside, "MB/s", beside);
    let write = Against::Measured("dd writing there", &found.device_writes);
    line("a full backup on the same device, speed", &found.full, "MB/s", write);
    let read = Against::Measured("dd reading there", &found.device_reads);
    line("a full backup on the same device, speed", &found.full, "MB/s", read);
    let before = Against::Measured("before (asked for: at most 2)", &found.before);
    line("pages and updates of 8 users during a full backup, p99", &found.during, "us", before);
    let full = Against::Measured("the full one", &found.full_bytes);
    line("an incremental backup after 100 updates, new bytes", &found.incremental_bytes, "MB", full);
    let full = Against::Measured("the full one", &found.full_seconds);
    line("an incremental backup after 100 updates, time", &found.incremental_seconds, "s", full);
}
