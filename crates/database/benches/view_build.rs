//! The seeds' Test Case #3: seven views of a discussion database are built from its documents, at several sizes, in one
//! database and in two at once, on one core and on two.
//!
//! 256,000 documents of some 600 bytes, as in the article (155 MB), took 5,571 s there and left the file 382 % larger.
//! The documents are stored once; each case is a process of its own on a copy of the store, kept to its cores, so that
//! its peak of memory is its own. Rounds alternate between the cases. `cargo bench -p scrinium-database --bench
//! view_build`; `SCRINIUM_SIZES=8000,5000000` for other sizes. Above 256,000 there is one round, of one database.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a benchmark"
)]

use std::path::Path;

use scrinium_bench::discussion::{design, design_in_javascript, document};
use scrinium_bench::process::{is_case, peak_memory_bytes, run_case};
use scrinium_bench::{Against, Line, folder, report, sizes, timed};
use scrinium_catalog::Databases;
use scrinium_database::{Access, DatabaseOptions, Edit, EditMode, RowQuery};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Tests and measurements may do everything.
static SERVER: Access = Access::of_the_server("a benchmark");

const SIZES: [u64; 3] = [8000, 32_000, 256_000];
/// The seeds' seconds for one database and one CPU, without a setting of the buffer pool.
const SEEDS_SECONDS: [(u64, f64); 3] = [(8000, 129.0), (32_000, 580.0), (256_000, 5571.0)];
const SEEDS_GROWTH: f64 = 3.82;
const ROUNDS: usize = 3;
const LARGEST_OF_ROUNDS: u64 = 256_000;
const AT_ONCE: u64 = 1000;
const BUDGET_BYTES: u64 = 2 << 30;
/// What the entries do not fit into, so that they go through the rebuild dir: a build holds a quarter of it.
const SMALL_BUDGET_BYTES: u64 = 64 << 20;
/// A file system in memory, as the seeds' RAM disk.
const MEMORY_DIR: &str = "/dev/shm";

fn open(folder: &Path, budget_bytes: u64) -> (Store, Databases) {
    let mut options = StoreOptions::new(folder);
    options.budget_bytes = Some(budget_bytes);
    let store = Store::open(options, &Registry::new()).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    (store, databases)
}

fn fill(database: &OpenDatabase, documents: u64) {
    let mut pending = Vec::new();
    for start in (0..documents).step_by(usize::try_from(AT_ONCE).unwrap()) {
        let edits = (start..documents.min(start + AT_ONCE))
            .map(|number| Edit { json: document(number).to_string().into(), ..Edit::default() })
            .collect();
        pending.push(database.update(edits, EditMode::Interactive, &SERVER).unwrap());
    }
    for update in pending {
        update.wait().unwrap().into_iter().for_each(|result| drop(result.unwrap()));
    }
}

/// A store of databases with this many documents each, which was closed.
fn stored(documents: u64, count: u64) -> TempDir {
    let folder = folder();
    let (store, databases) = open(folder.path(), BUDGET_BYTES);
    let ((), took) = timed(|| {
        for number in 0..count {
            fill(
                &databases
                    .create(&format!("discussion{number}"), &scrinium_database::InitialAccess::Everybody)
                    .unwrap(),
                documents,
            );
        }
        store.admin().checkpoint().unwrap();
    });
    eprintln!("{count} times {documents} documents stored in {took:.1?}");
    folder
}

fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copied(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// What is built, and with what.
#[derive(Clone, Copy)]
struct Case {
    documents: u64,
    databases: u64,
    cores: usize,
    javascript: bool,
    budget_bytes: u64,
    rebuild_in_memory: bool,
}

/// What that took, round by round.
#[derive(Default)]
struct Measured {
    seconds: Vec<f64>,
    peak_bytes: Vec<f64>,
    growth: Vec<f64>,
    growth_of_json: Vec<f64>,
}

impl Case {
    const fn new(documents: u64, databases: u64, cores: usize) -> Self {
        Self {
            documents,
            databases,
            cores,
            javascript: false,
            budget_bytes: BUDGET_BYTES,
            rebuild_in_memory: false,
        }
    }

    fn run(&self, store: &Path, measured: &mut Measured) {
        let copy = folder();
        copied(store, copy.path());
        let rebuild = self.rebuild_in_memory.then(|| tempfile::tempdir_in(MEMORY_DIR).unwrap());
        let case = json!({
            "folder": copy.path(), "documents": self.documents, "databases": self.databases,
            "javascript": self.javascript, "budget_bytes": self.budget_bytes,
            "rebuild_dir": rebuild.as_ref().map(TempDir::path),
        });
        let result = run_case(&case, self.cores);
        eprintln!("{} documents on {} cores: {result}", self.documents, self.cores);
        let number = |name: &str| result[name].as_f64().unwrap();
        measured.seconds.push(number("seconds"));
        measured.peak_bytes.push(number("peak_bytes"));
        measured.growth.push(number("index_bytes") / number("file_bytes"));
        measured.growth_of_json.push(number("index_bytes") / number("json_bytes"));
    }
}

/// In a process of its own: builds the views of all databases at once.
fn build(case: &Value) -> Value {
    let (store, databases) =
        open(Path::new(case["folder"].as_str().unwrap()), case["budget_bytes"].as_u64().unwrap());
    if let Some(dir) = case["rebuild_dir"].as_str() {
        databases.set_rebuild_dir(dir.into());
    }
    let (group, design) = match case["javascript"].as_bool() {
        Some(true) => ("javascript", design_in_javascript()),
        _ => ("discussion", design()),
    };
    let opened: Vec<OpenDatabase> = (0..case["databases"].as_u64().unwrap())
        .map(|number| databases.get(&format!("discussion{number}")).unwrap())
        .collect();
    for database in &opened {
        let edit = Edit { json: design.to_string().into(), ..Edit::default() };
        let results = database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
        results.into_iter().for_each(|result| drop(result.unwrap()));
    }
    let ((), building) = timed(|| {
        std::thread::scope(|scope| {
            for database in &opened {
                scope.spawn(|| database.update_view_group(group).unwrap());
            }
        });
    });
    let peak_bytes = peak_memory_bytes(std::process::id());
    for database in &opened {
        let rows = database.view(group, "all documents", RowQuery::default(), &SERVER).unwrap();
        assert_eq!(rows.total_rows, case["documents"].as_u64());
    }
    store.admin().checkpoint().unwrap();
    let sum = |bytes: &dyn Fn(&OpenDatabase) -> u64| opened.iter().map(bytes).sum::<u64>();
    json!({
        "seconds": building.as_secs_f64(), "peak_bytes": peak_bytes,
        "index_bytes": sum(&OpenDatabase::derived_bytes),
        "file_bytes": sum(&|database| database.info().unwrap().sizes.file_bytes),
        "json_bytes": sum(&|database| database.info().unwrap().sizes.external_bytes),
    })
}

fn line(case: &str, values: &[f64], unit: &str, against: Against<'_>) {
    report(&Line { name: "view-build", case, values, unit, against });
}

/// Measures cases of one store in alternating rounds.
fn measure<const CASES: usize>(store: &Path, cases: [Case; CASES]) -> [Measured; CASES] {
    let mut measured = cases.map(|_| Measured::default());
    let rounds = if cases[0].documents > LARGEST_OF_ROUNDS { 1 } else { ROUNDS };
    for _ in 0..rounds {
        for (case, measured) in cases.iter().zip(&mut measured) {
            case.run(store, measured);
        }
    }
    measured
}

/// Cores, databases at once, memory and sizes at one number of documents. Gives the seconds on two cores.
fn measure_size(store: &Path, documents: u64) -> Vec<f64> {
    let cases = [Case::new(documents, 1, 1), Case::new(documents, 1, 2)];
    let [one_core, two_cores] = if documents > LARGEST_OF_ROUNDS {
        measure(store, cases)
    } else {
        let [one_core, two_cores, both_on_one, both_on_two] =
            measure(store, [cases[0], cases[1], Case::new(documents, 2, 1), Case::new(documents, 2, 2)]);
        for (cores, both, one) in
            [("one core", &both_on_one, &one_core), ("two cores", &both_on_two, &two_cores)]
        {
            let case = format!("two databases of {documents} documents at once, {cores}");
            line(&case, &both.seconds, "s", Against::Measured("one of them", &one.seconds));
        }
        [one_core, two_cores]
    };
    let seeds = SEEDS_SECONDS.iter().find(|(size, _)| *size == documents);
    let case = format!("{documents} documents, 7 views, one core");
    let against = match seeds {
        Some((_, seconds)) => Against::Given("the seeds' Test Case #3 (1 CPU of 200 MHz)", *seconds),
        None => Against::Measured("two cores", &two_cores.seconds),
    };
    line(&case, &one_core.seconds, "s", against);
    let case = format!("{documents} documents, 7 views, two cores");
    line(&case, &two_cores.seconds, "s", Against::Measured("one core", &one_core.seconds));
    let peak_mb: Vec<f64> = two_cores.peak_bytes.iter().map(|bytes| bytes / f64::from(1 << 20)).collect();
    let case = format!("peak memory of the process, {documents} documents, two cores");
    line(&case, &peak_mb, "MB", Against::Given("the store's budget", (BUDGET_BYTES >> 20) as f64));
    for (what, values) in [
        ("size of the views by the size of the documents on disk", &two_cores.growth),
        ("size of the views by the documents' JSON", &two_cores.growth_of_json),
    ] {
        let against = Against::Given("the seeds' growth of the file", SEEDS_GROWTH);
        line(&format!("{what}, {documents} documents"), values, "", against);
    }
    two_cores.seconds
}

/// Views in JavaScript, little memory, and a rebuild dir in memory, at one size on two cores.
fn measure_ways(store: &Path, documents: u64) {
    let plain = Case::new(documents, 1, 2);
    let spilled = Case { budget_bytes: SMALL_BUDGET_BYTES, ..plain };
    let [formulas, javascript, on_disk, in_memory] = measure(
        store,
        [plain, Case { javascript: true, ..plain }, spilled, Case { rebuild_in_memory: true, ..spilled }],
    );
    let case = format!("the same seven views in JavaScript, {documents} documents");
    line(&case, &javascript.seconds, "s", Against::Measured("as formulas", &formulas.seconds));
    let case = format!("{documents} documents, 7 views, a budget of {} MB", SMALL_BUDGET_BYTES >> 20);
    line(&case, &on_disk.seconds, "s", Against::Measured("a budget of 2048 MB", &formulas.seconds));
    let peak_mb: Vec<f64> = on_disk.peak_bytes.iter().map(|bytes| bytes / f64::from(1 << 20)).collect();
    let against = Against::Given("the store's budget", (SMALL_BUDGET_BYTES >> 20) as f64);
    line(&format!("peak memory of the process, {case}"), &peak_mb, "MB", against);
    let against = Against::Measured("on the databases' disk", &on_disk.seconds);
    line(&format!("the rebuild dir in memory, {case}"), &in_memory.seconds, "s", against);
}

fn main() {
    if is_case(build) {
        return;
    }
    let sizes = sizes(&SIZES);
    let ways = sizes.iter().copied().filter(|size| *size <= LARGEST_OF_ROUNDS).max();
    let mut us_each: Vec<(u64, Vec<f64>)> = Vec::new();
    for documents in sizes {
        let store = stored(documents, if documents > LARGEST_OF_ROUNDS { 1 } else { 2 });
        let seconds = measure_size(store.path(), documents);
        us_each.push((documents, seconds.iter().map(|seconds| seconds * 1e6 / documents as f64).collect()));
        if Some(documents) == ways {
            measure_ways(store.path(), documents);
        }
    }
    let (smallest, others) = us_each.split_first().unwrap();
    for (documents, us) in others {
        let against = format!("of {}", smallest.0);
        line(
            &format!("each of {documents} documents, two cores"),
            us,
            "us",
            Against::Measured(&against, &smallest.1),
        );
    }
}
