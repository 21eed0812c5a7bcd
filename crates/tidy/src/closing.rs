//! What a run of all tests came to: which passed, which failed, and why each other one did not run.
//!
//! [`Run::read`] takes what cargo-nextest says before and after (its list of tests as JSON, its report as JUnit), what tests
//! that skipped themselves said (`scrinium_fault::skip`), and the output of the tests in documents (`cargo test --doc`).

mod junit;
mod listed;
mod run;

pub use run::{Inputs, Run, Skip};
