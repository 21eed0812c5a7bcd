//! Says which crates are to be tested, and what came of it; `scripts/test` calls it in the repository's root.
//!
//! - `checks plan WORK [STAMPS]` writes into the folder WORK what `close` wants to know, nextest's `filter`, and
//!   `documents-too` if the tests in documents are to run. Without the folder STAMPS every crate is tested.
//! - `checks close WORK REPORT [STAMPS]` prints what was skipped and why, what failed, and the counts; keeps the stamps of
//!   crates that passed. REPORT is nextest's. It fails if a test did or if none passed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

use scrinium_tidy::closing::{Inputs, Run};
use scrinium_tidy::stamps::{Crates, Stamp, Stamps, surroundings};
use serde_json::{Value, json};

/// The crate that checks all others' files is fast, and tested each time.
const ALWAYS: &str = "tidy";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["plan", work] => plan(Path::new(work), None).map(|()| true),
        ["plan", work, stamps] => plan(Path::new(work), Some(Path::new(stamps))).map(|()| true),
        ["close", work, report] => close(Path::new(work), report, None),
        ["close", work, report, stamps] => close(Path::new(work), report, Some(Path::new(stamps))),
        _ => Err(io::Error::other("usage: checks plan WORK [STAMPS] | checks close WORK REPORT [STAMPS]")),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("checks: {error}");
            ExitCode::FAILURE
        }
    }
}

fn plan(work: &Path, stamps: Option<&Path>) -> io::Result<()> {
    let stamps = stamps.map(Stamps::new);
    let crates = Crates::read(Path::new("."))?;
    let surroundings = surroundings();
    let (mut plan, mut to_run) = (serde_json::Map::new(), Vec::new());
    for name in crates.names() {
        let fingerprint = crates.fingerprint(name, &surroundings)?;
        let stamp =
            stamps.as_ref().filter(|_| name != ALWAYS).and_then(|stamps| stamps.find(name, &fingerprint));
        if stamp.is_none() {
            to_run.push(name);
        }
        let stamp = stamp.map(|stamp| json!({"commit": stamp.commit, "passed": stamp.passed}));
        plan.insert(name.to_owned(), json!({"fingerprint": fingerprint.to_string(), "stamp": stamp}));
    }
    let filter: Vec<String> = to_run.iter().map(|name| format!("package(=scrinium-{name})")).collect();
    let others = to_run.iter().any(|name| *name != ALWAYS);
    fs::write(work.join("plan.json"), Value::Object(plan).to_string())?;
    fs::write(work.join("filter"), filter.join(" + "))?;
    fs::write(work.join("documents-too"), if others { "yes" } else { "" })?;
    eprintln!("test: {} of {} crates are tested", to_run.len(), crates.names().count());
    Ok(())
}

fn close(work: &Path, report: &str, stamps: Option<&Path>) -> io::Result<bool> {
    let plan: BTreeMap<String, Value> =
        serde_json::from_slice(&fs::read(work.join("plan.json"))?).map_err(io::Error::other)?;
    let mut stamped = BTreeMap::new();
    for (name, planned) in &plan {
        let field = |key: &str| planned.get("stamp").and_then(|stamp| stamp.get(key));
        if let (Some(commit), Some(passed)) =
            (field("commit").and_then(Value::as_str), field("passed").and_then(Value::as_u64))
        {
            stamped.insert(format!("scrinium-{name}"), Stamp { commit: commit.to_owned(), passed });
        }
    }
    let [list, skips] = ["list.json", "skips"].map(|name| fs::read_to_string(work.join(name)));
    let documents_too = fs::metadata(work.join("documents-too"))?.len() > 0;
    let documents = documents_too.then(|| fs::read_to_string(work.join("documents")).unwrap_or_default());
    let run = Run::read(
        &Inputs {
            list: &list?,
            junit: &fs::read_to_string(report).unwrap_or_default(),
            skips: &skips?,
            documents: documents.as_deref(),
        },
        &stamped,
    )?;
    if let Some(stamps) = stamps {
        keep(&Stamps::new(stamps), &plan, &stamped, &run)?;
    }
    println!("{run}");
    let [passed, failed, _] = run.counts();
    Ok(failed == 0 && passed > 0)
}

/// Stamps what passed, as it was when the run was planned; if it is not that any more, it is not known what was tested.
fn keep(
    stamps: &Stamps,
    plan: &BTreeMap<String, Value>,
    stamped: &BTreeMap<String, Stamp>,
    run: &Run,
) -> io::Result<()> {
    let commit = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    let commit = commit.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let commit = commit.unwrap_or_default();
    let crates = Crates::read(Path::new("."))?;
    let surroundings = surroundings();
    for (name, planned) in plan {
        let package = format!("scrinium-{name}");
        if stamped.contains_key(&package) || !run.has_passed(&package) {
            continue;
        }
        let fingerprint = crates.fingerprint(name, &surroundings)?;
        if planned.get("fingerprint").and_then(Value::as_str) == Some(&fingerprint.to_string()) {
            let passed = run.passed.get(&package).copied().unwrap_or_default();
            stamps.keep(name, &fingerprint, &Stamp { commit: commit.clone(), passed })?;
        } else {
            eprintln!("test: {package} was changed while it was tested, so that it counts as not tested");
        }
    }
    Ok(())
}
