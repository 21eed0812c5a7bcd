//! The run as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;

use super::junit::{self, Outcome};
use super::listed::{self, Program};
use crate::stamps::Stamp;

/// A test, as nextest calls it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TestName {
    /// Of the program, as in `scrinium-store::it`.
    pub(super) program: String,
    /// Its path in the program.
    pub(super) test: String,
}

impl fmt::Display for TestName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.program, self.test)
    }
}

/// What is known of a run, as text.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'i> {
    /// `cargo nextest list --message-format json`.
    pub list: &'i str,
    /// The report of nextest; empty if it wrote none.
    pub junit: &'i str,
    /// Lines of tests that skipped themselves: `PROGRAM<tab>TEST<tab>REASON`.
    pub skips: &'i str,
    /// `cargo test --doc`, and a last line `exit 0` with its exit code; `None` if it was not to run.
    pub documents: Option<&'i str>,
}

/// Tests that did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// A test, or all of a crate.
    pub what: String,
    /// How many they are.
    pub tests: u64,
    /// Why.
    pub reason: String,
}

/// What a run came to.
#[derive(Debug, Default)]
pub struct Run {
    /// Tests that passed, of each crate that ran.
    pub passed: BTreeMap<String, u64>,
    /// Tests that failed or did not come to their end.
    pub failed: BTreeSet<String>,
    /// Tests that passed only when they were tried again; they count as passed.
    pub again: BTreeSet<String>,
    /// Everything that did not run.
    pub skipped: Vec<Skip>,
    /// Crates with a failure.
    failing: BTreeSet<String>,
    documents_passed: u64,
    failing_documents: u64,
}

impl Run {
    /// Reads what is known of a run. Crates in `stamped` were not to run.
    ///
    /// # Errors
    /// If nextest's own files are not what they should be.
    pub fn read(inputs: &Inputs<'_>, stamped: &BTreeMap<String, Stamp>) -> io::Result<Self> {
        let programs = listed::parse(inputs.list)?;
        let ran = junit::parse(inputs.junit)?;
        let mut run = Self::default();
        let said: BTreeMap<(&str, &str), &str> = inputs.skips.lines().filter_map(skip_of_line).collect();
        for (name, program) in &programs {
            if !stamped.contains_key(&program.package) {
                run.add_program(name, program, &ran, &said);
            }
        }
        for (package, stamp) in stamped {
            let reason =
                format!("they passed at {}, and nothing that they depend on has changed", stamp.commit);
            let what = format!("{package}, {} tests", stamp.passed);
            run.skipped.push(Skip { what, tests: stamp.passed, reason });
        }
        if let Some(documents) = inputs.documents {
            run.add_documents(documents);
        }
        Ok(run)
    }

    fn add_program(
        &mut self,
        name: &str,
        program: &Program,
        ran: &BTreeMap<TestName, Outcome>,
        said: &BTreeMap<(&str, &str), &str>,
    ) {
        let mut skip = |what: String, reason: &str| {
            self.skipped.push(Skip { what, tests: 1, reason: reason.to_owned() });
        };
        for (test, reason) in program.reasons(name) {
            skip(test.to_string(), &reason);
        }
        let passed = self.passed.entry(program.package.clone()).or_default();
        for (test, _) in program.tests.iter().filter(|(_, ignored)| !**ignored) {
            let test = TestName { program: name.to_owned(), test: test.clone() };
            let reason = said.get(&(test.program.as_str(), test.test.as_str()));
            match (ran.get(&test), reason) {
                (Some(Outcome::Passed), None) => *passed += 1,
                (Some(Outcome::PassedAgain), None) => {
                    *passed += 1;
                    self.again.insert(test.to_string());
                }
                (Some(Outcome::Passed | Outcome::PassedAgain), Some(reason)) => {
                    skip(test.to_string(), reason);
                }
                (Some(Outcome::Failed), _) => drop(self.failed.insert(test.to_string())),
                (None, _) => drop(self.failed.insert(format!("{test} (it did not run)"))),
            }
            if !matches!(ran.get(&test), Some(Outcome::Passed | Outcome::PassedAgain)) {
                self.failing.insert(program.package.clone());
            }
        }
    }

    /// The tests in documents have no report but their output.
    fn add_documents(&mut self, output: &str) {
        let (mut package, mut open) = (String::new(), false);
        for line in output.lines() {
            if let Some(name) = line.trim_start().strip_prefix("Doc-tests ") {
                package = name.replace('_', "-");
                open = true;
            } else if line.starts_with("test result: ") {
                open = false;
            } else if let Some((test, result)) =
                line.strip_prefix("test ").and_then(|line| line.rsplit_once(" ... "))
            {
                let what = format!("{package} {test}");
                match result.split_once(", ").unwrap_or((result, "ignored without a reason")) {
                    ("ok", _) => self.documents_passed += 1,
                    ("ignored", reason) => {
                        self.skipped.push(Skip { what, tests: 1, reason: reason.to_owned() });
                    }
                    _ => {
                        self.failing_documents += 1;
                        self.failed.insert(what);
                        self.failing.insert(package.clone());
                    }
                }
            }
        }
        if open {
            self.failed.insert(format!("{package}, tests in documents (they did not come to their end)"));
            self.failing.insert(package);
        } else if output.lines().next_back() != Some("exit 0") && self.failing_documents == 0 {
            // They cannot be built; whose they are is not known.
            self.failed.insert("tests in documents (see above)".to_owned());
            self.failing.extend(self.passed.keys().cloned());
        }
    }

    /// Whether a crate was to run, and all its tests passed or were skipped.
    #[must_use]
    pub fn has_passed(&self, package: &str) -> bool {
        self.passed.contains_key(package) && !self.failing.contains(package)
    }

    /// Passed, failed and skipped.
    #[must_use]
    pub fn counts(&self) -> [u64; 3] {
        let passed = self.passed.values().sum::<u64>() + self.documents_passed;
        let skipped = self.skipped.iter().map(|skip| skip.tests).sum();
        [passed, self.failed.len() as u64, skipped]
    }
}

/// What did not run and why, what was tried again, what failed, and last the counts, alone on their line.
impl fmt::Display for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Skip { what, reason, .. } in &self.skipped {
            writeln!(formatter, "skipped: {what}: {reason}")?;
        }
        for test in &self.again {
            writeln!(formatter, "passed when it was tried again: {test}")?;
        }
        for test in &self.failed {
            writeln!(formatter, "failed: {test}")?;
        }
        let [passed, failed, skipped] = self.counts();
        write!(formatter, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

fn skip_of_line(line: &str) -> Option<((&str, &str), &str)> {
    let (program, rest) = line.split_once('\t')?;
    let (test, reason) = rest.split_once('\t')?;
    Some(((program, test), reason))
}
