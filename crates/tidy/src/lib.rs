//! The project's own rules for its files, checked; the page of its benchmarks; the list of changes; the stamps of tests
//! that passed.
//!
//! [`check`] reads the whole repository and tells what breaks a rule. It knows files and manifests, and
//! nothing of what the crates do. The rules and their reasons are in CONTRIBUTING.md.

mod access;
pub mod benchmarks;
pub mod changes;
mod circles;
mod clock;
pub mod closing;
mod crates;
mod files;
mod functions;
mod json;
mod map;
pub mod parts;
mod phrases;
mod places;
pub mod regression;
pub mod stamps;
mod text;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Something that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, from the repository's root.
    pub path: PathBuf,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, what } = self;
        match line {
            0 => write!(formatter, "{}: {what}", path.display()),
            line => write!(formatter, "{}:{line}: {what}", path.display()),
        }
    }
}

/// A text file of the repository.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// From the repository's root.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|found| found == extension)
    }

    pub(crate) fn finding(&self, line: usize, what: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, what: what.into() }
    }
}

/// Everything below `root` that breaks a rule, in the order of the files.
///
/// # Errors
/// If a file cannot be read.
pub fn check(root: &Path) -> io::Result<Vec<Finding>> {
    let files = files::read(root)?;
    let mut findings = Vec::new();
    for file in &files {
        text::check(file, &mut findings);
        if file.has_extension("rs") {
            functions::check(file, &mut findings);
        }
    }
    files::check_names(&files, &mut findings);
    text::check_links(root, &files, &mut findings);
    crates::check(&files, &mut findings);
    json::check(&files, &mut findings);
    stamps::check(root, &files, &mut findings);
    access::check(&files, &mut findings);
    clock::check(&files, &mut findings);
    changes::check(&files, &mut findings);
    circles::check(&files, &mut findings);
    phrases::check(&files, &mut findings);
    places::check(&files, &mut findings);
    findings.sort();
    Ok(findings)
}
