//! A server with 100,000 databases beside one with 100: making one, and reading a document of any.
//!
//! Each database holds one document. `cargo bench -p scrinium-database --bench many_databases`.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a benchmark stops at the first error")]

use std::time::Instant;

use scrinium_bench::{Against, Line, folder, median, report, scatter};
use scrinium_database::{DatabaseOptions, Databases, Edit, EditMode, ReadOptions};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use tempfile::TempDir;

const FEW: u64 = 100;
const MANY: u64 = 100_000;
const ROUNDS: u64 = 7;
const READS: u64 = 5000;

struct Server {
    databases: Databases,
    _folder: TempDir,
}

fn name(number: u64) -> String {
    format!("mail/user{number:06}")
}

impl Server {
    fn new() -> Self {
        let folder = folder();
        let store = Store::open(StoreOptions::new(folder.path()), &Registry::new()).unwrap();
        Self { databases: Databases::open(&store, DatabaseOptions::default()).unwrap(), _folder: folder }
    }

    /// Microseconds to make each of the databases from `from` up to `to`, with a document in it: the median.
    fn make(&self, from: u64, to: u64) -> f64 {
        let mut times = Vec::new();
        for number in from..to {
            let began = Instant::now();
            let database = self.databases.create(&name(number)).unwrap();
            times.push(began.elapsed().as_secs_f64() * 1e6);
            let edit = Edit { json: "{\"_id\":\"memo\",\"Form\":\"Memo\"}".into(), ..Edit::default() };
            database.update(vec![edit], EditMode::Interactive).unwrap().wait().unwrap();
        }
        median(&times)
    }

    /// Microseconds to read a document of a database that is picked at random: the median.
    fn read(&self, databases: u64, seed: u64) -> f64 {
        let read = |number: u64| {
            let began = Instant::now();
            let database = self.databases.get(&name(scatter(seed ^ number) % databases)).unwrap();
            database.read("memo", &ReadOptions::default()).unwrap();
            began.elapsed().as_secs_f64() * 1e6
        };
        median(&(0..READS).map(read).collect::<Vec<_>>())
    }
}

fn main() {
    let (few, many) = (Server::new(), Server::new());
    eprintln!("making {MANY} databases ...");
    let (mut first, mut last) = (Vec::new(), Vec::new());
    few.make(0, FEW);
    let step = MANY / 10;
    for part in 0..10 {
        let median = many.make(part * step, (part + 1) * step);
        eprintln!("databases {} to {}: {median:.0} us each", part * step, (part + 1) * step);
        match part {
            0..3 => first.push(median),
            7.. => last.push(median),
            _ => {}
        }
    }
    report(&Line {
        name: "many-databases",
        case: "making one, the last 30,000 of 100,000",
        values: &last,
        unit: "us",
        against: Against::Measured("the first 30,000", &first),
    });
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for seed in 0..=ROUNDS {
        let (at_few, at_many) = (few.read(FEW, seed << 32), many.read(MANY, seed << 32));
        eprintln!("reading a document: {at_few:.1} us of {FEW} databases, {at_many:.1} us of {MANY}");
        // The first round warms both up and is not counted.
        if seed > 0 {
            theirs.push(at_few);
            ours.push(at_many);
        }
    }
    report(&Line {
        name: "many-databases",
        case: "a document of any of 100,000 databases",
        values: &ours,
        unit: "us",
        against: Against::Measured("of any of 100", &theirs),
    });
}
