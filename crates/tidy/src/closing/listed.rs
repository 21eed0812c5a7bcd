//! The list of tests, as cargo-nextest gives it before it runs them.

use std::collections::BTreeMap;
use std::io;
use std::process::Command;

use serde_json::Value;

use super::run::TestName;

/// A program of tests.
pub(super) struct Program {
    /// Of the crate, as in `scrinium-store`.
    pub(super) package: String,
    path: String,
    folder: String,
    /// Each test, and whether it is ignored.
    pub(super) tests: BTreeMap<String, bool>,
}

/// The programs by nextest's name for each, as in `scrinium-store::it`.
pub(super) fn parse(list: &str) -> io::Result<BTreeMap<String, Program>> {
    let list: Value = serde_json::from_str(list).map_err(io::Error::other)?;
    let suites = list.get("rust-suites").and_then(Value::as_object);
    let suites = suites.ok_or_else(|| io::Error::other("nextest's list of tests has no rust-suites"))?;
    let text =
        |suite: &Value, key: &str| suite.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut programs = BTreeMap::new();
    for (name, suite) in suites {
        let tests = suite.get("testcases").and_then(Value::as_object);
        let is_ignored = |test: &Value| test.get("ignored").and_then(Value::as_bool).unwrap_or(false);
        let program = Program {
            package: text(suite, "package-name"),
            path: text(suite, "binary-path"),
            folder: text(suite, "cwd"),
            tests: tests.into_iter().flatten().map(|(name, test)| (name.clone(), is_ignored(test))).collect(),
        };
        programs.insert(name.clone(), program);
    }
    Ok(programs)
}

impl Program {
    /// Why tests are ignored: the program says so of those that it is asked for, and runs none of them.
    pub(super) fn reasons(&self, name: &str) -> BTreeMap<TestName, String> {
        let ignored: Vec<&String> =
            self.tests.iter().filter(|(_, ignored)| **ignored).map(|(test, _)| test).collect();
        if ignored.is_empty() {
            return BTreeMap::new();
        }
        let output =
            Command::new(&self.path).current_dir(&self.folder).arg("--exact").args(&ignored).output();
        let output = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let output = output.unwrap_or_default();
        let reason = |test: &str| {
            let line = output.lines().find_map(|line| line.strip_prefix(&format!("test {test} ... ignored")));
            let reason = line.map(|line| line.trim_start_matches([',', ' '])).filter(|line| !line.is_empty());
            reason.unwrap_or("ignored without a reason").to_owned()
        };
        let named = |test: &String| TestName { program: name.to_owned(), test: test.clone() };
        ignored.into_iter().map(|test| (named(test), reason(test))).collect()
    }
}
