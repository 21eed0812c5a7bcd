//! A server with 100,000 databases of one document each: making one, and reading a document of any, compared with reading one of
//! 100,000 documents of a single database, and one of 100 databases, which the processor's caches hold.
//! `cargo bench -p scrinium-database --bench many_databases`.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a benchmark stops at the first error")]

use std::time::Instant;

use scrinium_bench::{Against, Line, folder, median, report, scatter};
use scrinium_catalog::Databases;
use scrinium_database::{Access, DatabaseOptions, Edit, EditMode, ReadOptions};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_views::OpenDatabase;
use tempfile::TempDir;

/// Tests and measurements may do everything.
static SERVER: Access = Access::of_the_server("a benchmark");

const FEW: u64 = 100;
const MANY: u64 = 100_000;
const ROUNDS: u64 = 7;
const READS: u64 = 5000;

const MEMO: &str = "memo";
const AT_ONCE: usize = 1000;

struct Server {
    databases: Databases,
    _folder: TempDir,
}

fn name(number: u64) -> String {
    format!("mail/user{number:06}")
}

fn id(number: u64) -> String {
    format!("memo{number:06}")
}

fn write(database: &OpenDatabase, ids: impl IntoIterator<Item = String>) {
    let edit = |id: String| {
        let json = format!("{{\"_id\":\"{id}\",\"Form\":\"Memo\"}}").into();
        Edit { json, ..Edit::default() }
    };
    database
        .update(ids.into_iter().map(edit).collect(), EditMode::Interactive, &SERVER)
        .unwrap()
        .wait()
        .unwrap();
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
            let database =
                self.databases.create(&name(number), &scrinium_database::InitialAccess::Everybody).unwrap();
            times.push(began.elapsed().as_secs_f64() * 1e6);
            write(&database, [MEMO.to_owned()]);
        }
        median(&times)
    }

    /// Makes one database with this many documents.
    fn fill(&self, documents: u64) {
        let database = self.databases.create(&name(0), &scrinium_database::InitialAccess::Everybody).unwrap();
        for from in (0..documents).step_by(AT_ONCE) {
            write(&database, (from..documents.min(from + AT_ONCE as u64)).map(id));
        }
    }

    /// Microseconds to read a document of a database, both picked by a random number: the median.
    fn read(&self, seed: u64, pick: impl Fn(u64) -> (String, String)) -> f64 {
        let read = |number: u64| {
            let (name, id) = pick(scatter(seed ^ number));
            let began = Instant::now();
            let database = self.databases.get(&name).unwrap();
            database.read(&id, &ReadOptions::default(), &SERVER).unwrap();
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
    let one = Server::new();
    one.fill(MANY);
    let (mut of_many, mut of_few, mut of_one) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let seed = round << 32;
        let at_few = few.read(seed, |random| (name(random % FEW), MEMO.to_owned()));
        let at_many = many.read(seed, |random| (name(random % MANY), MEMO.to_owned()));
        let at_one = one.read(seed, |random| (name(0), id(random % MANY)));
        eprintln!(
            "reading a document: {at_few:.1} us of {FEW} databases, {at_many:.1} us of {MANY}, {at_one:.1} us of one with {MANY}"
        );
        // The first round warms all up and is not counted.
        if round > 0 {
            of_few.push(at_few);
            of_many.push(at_many);
            of_one.push(at_one);
        }
    }
    for (against, theirs) in
        [("of any of 100,000 documents of one", &of_one), ("of any of 100 databases", &of_few)]
    {
        report(&Line {
            name: "many-databases",
            case: "a document of any of 100,000 databases",
            values: &of_many,
            unit: "us",
            against: Against::Measured(against, theirs),
        });
    }
}
