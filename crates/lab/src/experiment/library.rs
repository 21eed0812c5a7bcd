//! Experiments by name or by path, and what is wrong with one.

use std::path::{Path, PathBuf};

use scrinium_lab_script::{TextFileError, read_text};

use super::cells::first_step_of;
use super::definition::{Column, Definition, Factor};
use super::error::{ExperimentError, Problem};
use super::step::CellStep;

/// Experiments that the program carries with it: name and text.
const CARRIED: &[(&str, &str)] = &[
    ("all-documents", include_str!("../../../../experiments/all-documents.toml")),
    ("buffer-pool", include_str!("../../../../experiments/buffer-pool.toml")),
    ("capacity", include_str!("../../../../experiments/capacity.toml")),
    ("compact-cache", include_str!("../../../../experiments/compact-cache.toml")),
    ("configurations", include_str!("../../../../experiments/configurations.toml")),
    ("deferred-queue", include_str!("../../../../experiments/deferred-queue.toml")),
    ("imap-idle", include_str!("../../../../experiments/imap-idle.toml")),
    ("imap-inbox-size", include_str!("../../../../experiments/imap-inbox-size.toml")),
    ("imap-users", include_str!("../../../../experiments/imap-users.toml")),
    ("inbox-size", include_str!("../../../../experiments/inbox-size.toml")),
    ("io-spread", include_str!("../../../../experiments/io-spread.toml")),
    ("lmtp-deliver", include_str!("../../../../experiments/lmtp-deliver.toml")),
    ("mail-routing-hub", include_str!("../../../../experiments/mail-routing-hub.toml")),
    ("mailboxes", include_str!("../../../../experiments/mailboxes.toml")),
    ("memory-per-user", include_str!("../../../../experiments/memory-per-user.toml")),
    ("own-pace", include_str!("../../../../experiments/own-pace.toml")),
    ("pool-concurrency", include_str!("../../../../experiments/pool-concurrency.toml")),
    ("pool-tasks", include_str!("../../../../experiments/pool-tasks.toml")),
    ("port-encryption", include_str!("../../../../experiments/port-encryption.toml")),
    ("queue-drain", include_str!("../../../../experiments/queue-drain.toml")),
    ("rebuild-ram-disk", include_str!("../../../../experiments/rebuild-ram-disk.toml")),
    ("replication-hub", include_str!("../../../../experiments/replication-hub.toml")),
    ("restart", include_str!("../../../../experiments/restart.toml")),
    ("smtp-accept", include_str!("../../../../experiments/smtp-accept.toml")),
    ("transaction-logging", include_str!("../../../../experiments/transaction-logging.toml")),
    ("users", include_str!("../../../../experiments/users.toml")),
    ("view-rebuild", include_str!("../../../../experiments/view-rebuild.toml")),
];

/// A longer file is no experiment.
const LONGEST_BYTES: usize = 1 << 20;

/// The ending of an experiment's file, and the folder where files are looked for.
const ENDING: &str = "toml";
const FOLDER: &str = "experiments";

/// An experiment, and where it came from.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Experiment {
    pub name: String,
    /// A path, or `carried:buffer-pool.toml`.
    pub origin: String,
    pub definition: Definition,
}

impl Experiment {
    /// Finds an experiment: a path if there is such a file, else a name in the folder `experiments`, else one that the
    /// program carries.
    ///
    /// # Errors
    /// [`ExperimentError::Unknown`], [`ExperimentError::File`], or what is wrong with it, with lines.
    pub fn find(name: &str) -> Result<Self, ExperimentError> {
        let (origin, text) = text_of(name)?;
        Self::parse(&stem(&origin), &origin, &text)
    }

    /// Reads an experiment's text.
    ///
    /// # Errors
    /// [`ExperimentError::Wrong`], with lines.
    pub fn parse(name: &str, origin: &str, text: &str) -> Result<Self, ExperimentError> {
        let wrong = |problems: String| ExperimentError::Wrong { origin: origin.to_owned(), problems };
        let definition: Definition = toml_edit::de::from_str(text).map_err(|error| {
            let line = error.span().map(|span| line_at(text, span.start));
            wrong(Problem { line, what: error.message().to_owned() }.to_string())
        })?;
        let problems = problems(&definition, text);
        if !problems.is_empty() {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return Err(wrong(lines.join("\n")));
        }
        Ok(Self { name: name.to_owned(), origin: origin.to_owned(), definition })
    }

    /// Every experiment that can be named, in the order of their names.
    #[must_use]
    pub fn names() -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(FOLDER)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
            .map(|path| stem(&path.to_string_lossy()))
            .chain(CARRIED.iter().map(|(name, _)| (*name).to_owned()))
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

fn text_of(name: &str) -> Result<(String, String), ExperimentError> {
    for path in [PathBuf::from(name), PathBuf::from(FOLDER).join(format!("{name}.{ENDING}"))] {
        if path.is_file() {
            let origin = path.display().to_string();
            return match read_text(&path, "an experiment", LONGEST_BYTES) {
                Ok(text) => Ok((origin, text)),
                Err(TextFileError::File { what, path, source }) => {
                    Err(ExperimentError::File { what, path, source })
                }
                Err(error) => Err(ExperimentError::Usage(error.to_string())),
            };
        }
    }
    CARRIED
        .iter()
        .find(|(carried, _)| *carried == name)
        .map(|(name, text)| (format!("carried:{name}.{ENDING}"), (*text).to_owned()))
        .ok_or_else(|| ExperimentError::Unknown {
            name: name.to_owned(),
            known: Experiment::names().join(", "),
        })
}

fn stem(path: &str) -> String {
    let path = path.strip_prefix("carried:").unwrap_or(path);
    Path::new(path).file_stem().map_or_else(|| path.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// The line where something is first named.
fn line_of(text: &str, named: &str) -> Option<usize> {
    text.lines().position(|line| line.contains(named)).map(|index| index + 1)
}

/// What the form of the file does not rule out.
fn problems(definition: &Definition, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut tell = |named: &str, what: String| problems.push(Problem { line: line_of(text, named), what });
    for factor in &definition.factors {
        if let Err(what) = check_factor(factor) {
            tell(&format!("\"{}\"", factor.name), what);
        }
    }
    let steps: Vec<&str> = definition.steps.iter().map(CellStep::name).collect();
    for column in &definition.columns {
        if let Err(what) = check_column(column, &steps) {
            tell(&column.value, what);
        }
    }
    for (name, what) in wrong_turns(definition) {
        tell(&format!("\"{name}\""), what);
    }
    let has_factor = |name: &str| definition.factors.iter().any(|factor| factor.name == name);
    for figure in &definition.figures {
        if !definition.columns.iter().any(|column| column.title == figure.column) {
            tell(
                &figure.column,
                format!("a figure shows \u{201c}{}\u{201d}, and no column has this title", figure.column),
            );
        }
        for name in std::iter::once(&figure.rows).chain(&figure.series) {
            if !has_factor(name) {
                tell(&format!("\"{name}\""), format!("a figure names {name}, and no factor is called so"));
            }
        }
    }
    for objective in &definition.objectives {
        if let Err(what) = objective.check(definition) {
            tell(&objective.title, what);
        }
    }
    let tables = definition.figures.iter().filter_map(|figure| figure.published.as_ref());
    for table in tables.chain(&definition.published) {
        let columns = table.columns.len();
        for row in table.rows.iter().filter(|row| row.len() != columns) {
            let first = row.first().map_or("", String::as_str);
            tell(
                &table.title,
                format!(
                    "in the published table \u{201c}{}\u{201d} the row {first} has {} cells and not {columns}",
                    table.title,
                    row.len()
                ),
            );
        }
    }
    for name in names_in(text) {
        let known = definition.parameters.contains_key(&name)
            || has_factor(&name)
            || BUILT_IN.contains(&name.as_str())
            || definition
                .factors
                .iter()
                .flat_map(|factor| &factor.levels)
                .any(|level| level.values.contains_key(&name));
        if !known {
            tell(&format!("${name}"), format!("${name} is no parameter, and nothing that a factor sets"));
        }
    }
    problems
}

/// Names that every experiment has: the data folder of a cell's first server, a folder in memory, and the database of
/// a request.
pub(super) const BUILT_IN: &[&str] = &["data", "ram", "database"];

fn check_factor(factor: &Factor) -> Result<(), String> {
    let name = &factor.name;
    match (factor.levels.is_empty(), factor.quick.is_empty(), factor.full.is_empty()) {
        (false, true, true) if factor.levels.iter().any(|level| !level.only_full) => Ok(()),
        (false, true, true) => Err(format!("the factor {name} has no level for the quick form")),
        (true, false, false) => Ok(()),
        (false, ..) => Err(format!("the factor {name} has levels, and so neither quick nor full")),
        (true, ..) => Err(format!("the factor {name} needs levels, or both quick and full")),
    }
}

/// What a factor whose levels take turns cannot have, by its name.
fn wrong_turns(definition: &Definition) -> Vec<(&str, String)> {
    let mut wrong = Vec::new();
    let mut found = false;
    for factor in definition.factors.iter().filter(|factor| factor.turns.is_some()) {
        let name = factor.name.as_str();
        if std::mem::replace(&mut found, true) {
            wrong.push((name, format!("the factor {name} has turns, and another one has them, too")));
        }
        if factor.levels.iter().any(|level| !level.settings.is_empty()) {
            wrong.push((
                name,
                format!("the factor {name} has turns and settings: these change with a server's start only"),
            ));
        }
        match first_step_of(factor, definition) {
            None => wrong.push((name, format!("the factor {name} has turns, and no step depends on it"))),
            Some(0) => wrong.push((
                name,
                format!(
                    "the factor {name} has turns, and the first step depends on it: servers start before"
                ),
            )),
            Some(_) => {}
        }
    }
    wrong
}

fn check_column(column: &Column, steps: &[&str]) -> Result<(), String> {
    for value in std::iter::once(&column.value).chain(&column.per) {
        let step = value.split('.').next().unwrap_or_default();
        if !value.starts_with('$') && !steps.contains(&step) {
            return Err(format!("{value}: no step is called {step}; there is: {}", steps.join(", ")));
        }
    }
    Ok(())
}

/// All `$names` of a text without its comments.
fn names_in(text: &str) -> Vec<String> {
    let mut names: Vec<String> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(super::cells::names)
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}
