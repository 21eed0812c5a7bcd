//! The console and the client in Chromium: how large they are, how soon they show what is asked for, and what memory they take, with what
//! is asked of them.
//!
//! `make bench NAME=web`, which builds their files first; `web/tests/measure.mjs` drives the browser. `SCRINIUM_MEMOS` (80000),
//! `SCRINIUM_DOCUMENTS` (1000000) and `SCRINIUM_EVENTS` (1000) say how much there is, `SCRINIUM_ROUNDS` (11) how often each is timed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark stops at the first error")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use scrinium_bench::server::{PASSWORD, Server};
use scrinium_bench::{Against, Line, report};
use serde_json::Value;

/// Where Debian's package `chromium` has it.
const CHROMIUM: &str = "/usr/bin/chromium";

/// What is asked for: the case, the most, and its unit.
const TARGETS: [(&str, f64, &str); 12] = [
    ("client before the first list", 90.0, "KB"),
    ("console first page", 80.0, "KB"),
    ("first paint, warm", 500.0, "ms"),
    ("first paint, cold, shaped", 1.5, "s"),
    ("folder of 80000 opened", 150.0, "ms"),
    ("jump to row 79000", 150.0, "ms"),
    ("memo opened", 120.0, "ms"),
    ("key e to the next memo", 50.0, "ms"),
    ("INP p95", 100.0, "ms"),
    ("heap", 120.0, "MB"),
    ("view of 1000000, any page", 200.0, "ms"),
    ("month with 1000 events", 200.0, "ms"),
];

fn main() {
    if !Path::new(CHROMIUM).exists() {
        eprintln!("bench: web is left out: there is no {CHROMIUM} (package chromium)");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let modules = Command::new(root.join("scripts/web")).arg("modules").status().unwrap();
    assert!(modules.success(), "the modules of web/ are missing");
    let server = Server::start(env!("CARGO_BIN_EXE_scrinium"), &[]);
    let mut measuring = Command::new("node")
        .arg(root.join("web/tests/measure.mjs"))
        .args([&format!("http://{}", server.address()), PASSWORD, CHROMIUM])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A line for each case as it is measured.
    for line in BufReader::new(measuring.stdout.take().unwrap()).lines() {
        let told: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let found = TARGETS.iter().find(|(case, _, _)| told["case"] == *case);
        let (case, target, unit) = *found.unwrap();
        let values: Vec<f64> = told["values"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
        assert!(!values.is_empty(), "nothing was measured of {case}");
        report(&Line { name: "web", case, values: &values, unit, against: Against::Given("target", target) });
    }
    assert!(measuring.wait().unwrap().success(), "the browser was not driven to the end");
}
