//! Tests that cannot run here, and say so.

use std::fmt;
use std::io::Write;

/// Says that the test that calls it cannot run on this machine, and why: one sentence, and what would bring what is missing. The
/// caller returns then.
///
/// The line goes to the test's output, and to the file that `SCRINIUM_SKIPS` names, from which `scripts/test` counts and
/// prints it: `PROGRAM<tab>TEST<tab>REASON`, in the names that cargo-nextest gives.
pub fn skip(reason: impl fmt::Display) {
    let reason = reason.to_string().replace(['\n', '\t'], " ");
    println!("skipped: {reason}");
    let Some(file) = std::env::var_os("SCRINIUM_SKIPS") else { return };
    let name = |variable: &str| std::env::var(variable).unwrap_or_default();
    let line = format!("{}\t{}\t{reason}\n", name("NEXTEST_BINARY_ID"), name("NEXTEST_TEST_NAME"));
    // In one write, so that lines of tests at the same time stay whole.
    let written = std::fs::File::options().append(true).create(true).open(file);
    if let Err(error) = written.and_then(|mut file| file.write_all(line.as_bytes())) {
        eprintln!("the skip could not be counted: {error}");
    }
}
