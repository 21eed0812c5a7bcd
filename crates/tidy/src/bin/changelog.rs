//! Shows the changes that are not released yet, or moves them into CHANGELOG.md; `make changelog` calls it.
//!
//! `changelog`, or `changelog VERSION DATE`, in the repository's root.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use scrinium_tidy::changes::{next, release};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = Path::new(".");
    let done = match words.as_slice() {
        [] => next(root).map(|text| print!("{text}")),
        [version, date] => release(root, version, date),
        _ => Err(io::Error::other("usage: changelog [VERSION DATE]")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("changelog: {error}");
            ExitCode::FAILURE
        }
    }
}
