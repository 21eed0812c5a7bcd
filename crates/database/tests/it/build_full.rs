//! The disk is full in the middle of a view's build: the reader gets that error, documents are unharmed, nothing of the build is
//! left on the disk that is full, and when there is space the view is built.
//!
//! A child process runs with the library of `scrinium_fault` before its C library, which refuses writes from some write
//! on: of sorted runs, or of the files that become the index. `SCRINIUM_SEED` repeats a run.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_catalog::Databases;
use scrinium_database::{DatabaseError, DatabaseOptions, Edit, EditMode, ReadOptions, RowQuery};
use scrinium_fault::{Calls, Failure, Faults, Plan, rerun, run_bounded};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::json;

use crate::common::SERVER;

const FOLDER: &str = "SCRINIUM_FULL_FOLDER";
const DOCUMENTS: usize = 9000;
/// A build may hold a quarter of it, which these documents do not fit into.
const BUDGET_BYTES: u64 = 16 << 20;
const LIMIT: Duration = Duration::from_secs(300);

fn fill(database: &OpenDatabase) {
    let mut random = StdRng::seed_from_u64(1);
    for from in (0..DOCUMENTS).step_by(1000) {
        let mut text =
            || -> String { (0..600).map(|_| char::from(random.random_range(b'a'..=b'z'))).collect() };
        let edits = (from..from + 1000).map(|number| {
            let json = json!({"_id": format!("{number:05}"), "N": number * 7 % 1000, "Text": text()});
            Edit { json: json.to_string().into(), ..Edit::default() }
        });
        let done = database.update(edits.collect(), EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
        assert!(done.iter().all(Result::is_ok));
    }
    let columns =
        json!([{"title": "N", "formula": "N", "sort": "asc"}, {"title": "Text", "formula": "Text"}]);
    let design = json!({"_id": "_design/d", "language": "formula", "views": {"all": {"columns": columns}}});
    let edit = Edit { json: design.to_string().into(), ..Edit::default() };
    database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap().wait().unwrap().remove(0).unwrap();
}

fn entries(database: &OpenDatabase) -> Result<usize, DatabaseError> {
    let mut rows = database.view("d", "all", RowQuery::default(), &SERVER)?;
    let mut count = 0;
    while let Some(some) = Some(rows.next_rows(1000)?).filter(|rows| !rows.is_empty()) {
        count += some.len();
    }
    Ok(count)
}

/// Files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    found.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Run by the test below.
#[test]
#[ignore = "a child process of the other test"]
fn child() {
    let Some(root) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let mut marks = File::create(root.join("marks")).unwrap();
    let mut options = StoreOptions::new(root.join("store"));
    options.budget_bytes = Some(BUDGET_BYTES);
    options.reserve_bytes = 0;
    let store = Store::open(options, &Registry::new()).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    let database = databases.create("full", &scrinium_database::InitialAccess::Everybody).unwrap();
    fill(&database);
    writeln!(marks, "@fail").unwrap();
    match entries(&database) {
        Err(DatabaseError::Full { reason }) => println!("refused: {reason}"),
        other => panic!("{other:?}"),
    }
    assert!(files(&root.join("store/rebuild")).is_empty(), "runs are left on the full disk");
    assert!(files(&root.join("store/ingest")).is_empty(), "sorted files are left on the full disk");
    for number in 0..DOCUMENTS {
        database.read(&format!("{number:05}"), &ReadOptions::default(), &SERVER).unwrap();
    }
    writeln!(marks, "@mend").unwrap();
    assert_eq!(entries(&database).unwrap(), DOCUMENTS);
    assert!(files(&root.join("store/rebuild")).is_empty());
    println!("@done");
}

#[test]
fn a_disk_that_is_full_in_the_middle_of_a_build_costs_the_build_and_nothing_else() {
    let plan = Plan::from_environment(0);
    println!("{plan}");
    let mut random = StdRng::seed_from_u64(plan.seed);
    for (part, latest) in [("store/rebuild/", 12), ("store/ingest/", 6)] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        std::fs::create_dir(&root).unwrap();
        let first = random.random_range(0..latest);
        let failure = Failure {
            error: Failure::NO_SPACE,
            calls: Calls::WRITE | Calls::SIZE,
            first,
            count: u64::MAX,
            part: part.to_owned(),
        };
        let faults = Faults { failure: Some(failure), ..Faults::default() };
        let mut command = rerun(module_path!(), "child").unwrap();
        command.env(FOLDER, &root);
        faults.interpose(&mut command, &root, &folder.path().join("journal"));
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let output = run_bounded(&mut command, LIMIT).unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.contains("@done"),
            "{part} from write {first} on: {said}{told}"
        );
    }
}
