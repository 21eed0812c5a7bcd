//! What is wrong with a configuration, where, and what to do.

use std::fmt;
use std::path::{Path, PathBuf};

use super::key::Key;
use super::table::{SECTIONS, keys};
use super::volume::volume_section;

/// Where a value comes from, or a problem is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The table of keys.
    Default,
    /// A line of the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        variable: String,
    },
    /// A flag of the command line.
    CommandLine {
        /// The flag.
        flag: String,
    },
    /// Another key, which sets it where nothing else is said.
    Key {
        /// The other key.
        name: &'static str,
    },
    /// `set config`, while the server runs.
    Console,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File { path, line } => write!(formatter, "{}:{line}", path.display()),
            Self::Environment { variable } => formatter.write_str(variable),
            Self::CommandLine { flag } => formatter.write_str(flag),
            Self::Key { name } => formatter.write_str(name),
            Self::Console => formatter.write_str("set config"),
        }
    }
}

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub source: Source,
    /// What, and what to do.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.source, self.what)
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The configuration file cannot be read.
    #[error("cannot read the configuration file {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// Everything that is wrong with what was read.
    #[error("{}", lines(.0))]
    Invalid(Vec<Problem>),
}

impl ConfigError {
    /// The problems one by one.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        match self {
            Self::Invalid(problems) => problems.clone(),
            Self::Unreadable { path, cause } => {
                let source = Source::File { path: path.clone(), line: 1 };
                vec![Problem { source, what: format!("cannot be read: {cause}") }]
            }
        }
    }
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// What to say of a name that is no key.
pub(super) fn unknown_key(name: &str) -> String {
    if name.starts_with("volume.") {
        let keys: Vec<&str> = volume_section().keys.iter().map(Key::short_name).collect();
        return format!("there is no key {name}; volume.NAME has {}", keys.join(", "));
    }
    match nearest_key(name) {
        Some(nearest) => format!("there is no key {name}; did you mean {nearest}?"),
        None => format!("there is no key {name}; `scrinium config default` shows all"),
    }
}

/// What to say of a name that is no section.
pub(super) fn unknown_section(name: &str) -> String {
    let sections = SECTIONS.iter().map(|section| section.name);
    match nearest(name, sections) {
        Some(nearest) => format!("there is no section [{name}]; did you mean [{nearest}]?"),
        None => format!("there is no section [{name}]; `scrinium config default` shows all"),
    }
}

/// The key that `name` most likely means: Domino's name, the key without its section, or a mistyped one.
#[must_use]
pub fn nearest_key(name: &str) -> Option<&'static str> {
    let same = |other: &str| other.eq_ignore_ascii_case(name);
    if let Some(key) = keys().find(|key| key.domino.is_some_and(same) || same(key.short_name())) {
        return Some(key.name);
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    let likeness = |candidate: &str| {
        let short = candidate.rsplit('.').next().unwrap_or(candidate);
        // The whole name counts a little more, so that `log.size` stays in its section.
        let whole = strsim::normalized_damerau_levenshtein(&name.to_lowercase(), candidate);
        whole.max(strsim::normalized_damerau_levenshtein(&last.to_lowercase(), short) - 0.05)
    };
    most_alike(keys().map(|key| key.name), likeness)
}

/// The candidate that `name` most likely means, if one is alike at all.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    most_alike(candidates, |candidate| {
        strsim::normalized_damerau_levenshtein(&name, &candidate.to_lowercase())
    })
}

fn most_alike<'a>(
    candidates: impl Iterator<Item = &'a str>,
    likeness: impl Fn(&str) -> f64,
) -> Option<&'a str> {
    const ALIKE: f64 = 0.5;
    let scored = candidates.map(|candidate| (likeness(candidate), candidate));
    let best = scored.filter(|(score, _)| *score >= ALIKE).max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, candidate)| candidate)
}

/// The line, from 1, of a byte of `text`.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

pub(super) fn in_file(path: &Path, line: usize) -> Source {
    Source::File { path: path.to_owned(), line }
}
