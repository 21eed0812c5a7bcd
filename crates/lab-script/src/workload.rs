//! Workloads: scripts with a header, by name or by path.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::error::ScriptErrors;
use crate::text_file::{TextFileError, read_text};
use crate::words::LONGEST_SCRIPT_BYTES;
use crate::{Script, StrangeVariable, Variables, strange_variable};

/// Each with the text of its file.
macro_rules! carried {
    ($($name:literal),* $(,)?) => {
        [$((concat!($name, ".script"), include_str!(concat!("../../../workloads/", $name, ".script")))),*]
    };
}

/// Workloads that the program carries with it: file name and text.
const CARRIED: &[(&str, &str)] = &carried![
    "calendar",
    "groupware_a",
    "groupware_b",
    "idle",
    "imap",
    "imap-idle",
    "mail-only",
    "mail-routing-hub",
    "maildb",
    "n8mail",
    "r5mail",
    "r6mail",
    "replication-hub",
    "shared-database",
    "smtp-pop3",
    "web-mail",
];

/// Why there is no workload.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum WorkloadError {
    #[error("there is no file and no workload called {name}; there is: {known}")]
    NoSuchWorkload { name: String, known: String },
    #[error(transparent)]
    Text(#[from] TextFileError),
    #[error("{origin}\n{errors}")]
    Script { origin: String, errors: ScriptErrors },
    #[error(
        "{origin} has no variable {name}{}; it has {}",
        .nearest.as_ref().map_or_else(String::new, |nearest| format!("; did you mean {nearest}?")),
        if .known.is_empty() { "none" } else { .known.as_str() }
    )]
    NoSuchVariable { origin: String, name: String, nearest: Option<String>, known: String },
    /// An operation log that no workload can be made of.
    #[error("{0}")]
    Log(String),
}

impl WorkloadError {
    /// Whether what was asked for is at fault, and not the system.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Text(TextFileError::File { .. }))
    }
}

/// The ending of a workload's file.
const ENDING: &str = "script";

/// A script, the values of its variables, and where it came from.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Workload {
    pub name: String,
    pub script: Script,
    pub variables: Variables,
    /// A path, or `carried:r5mail.script`.
    pub origin: String,
    pub text: String,
}

impl Workload {
    /// Finds a workload: a path if there is such a file, else a name in the folder `workloads`, else one
    /// that the program carries.
    ///
    /// # Errors
    /// [`WorkloadError::NoSuchWorkload`], [`WorkloadError::Text`], or what is wrong with the script.
    pub fn find(name: &str, given: &Variables) -> Result<Self, WorkloadError> {
        let (origin, text) = text_of(name)?;
        Self::of(origin, text, given)
    }

    /// One of [`Workload::carried_names`], whatever files there are.
    pub(crate) fn find_carried(name: &str, given: &Variables) -> Result<Self, WorkloadError> {
        let (origin, text) = carried_text(name)?;
        Self::of(origin, text, given)
    }

    /// The names of the workloads that the program carries.
    pub(crate) fn carried_names() -> impl Iterator<Item = &'static str> {
        CARRIED.iter().map(|(file, _)| file.split('.').next().unwrap_or(file))
    }

    /// A workload whose text was found somewhere.
    ///
    /// # Errors
    /// What is wrong with the script.
    pub fn of(origin: String, text: String, given: &Variables) -> Result<Self, WorkloadError> {
        let strange = strange_variable(&text, given);
        let mut given = given.clone();
        for (name, value) in [("MailServer", ""), ("MailTemplate", ""), ("nb_dbdir", "mail/")] {
            given.set_default(name, value);
        }
        let (script, variables) = Script::parse(&text, &given)
            .map_err(|errors| WorkloadError::Script { origin: origin.clone(), errors })?;
        if let Some(StrangeVariable { name, nearest, known }) = strange {
            return Err(WorkloadError::NoSuchVariable { origin, name, nearest, known: known.join(", ") });
        }
        let name = script.header.name.clone().unwrap_or_else(|| stem(&origin));
        Ok(Self { name, script, variables, origin, text })
    }

    /// Every workload that can be named: those in the folder `workloads`, then those that are carried.
    #[must_use]
    pub fn names() -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir("workloads")
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
            .map(|path| stem(&path.to_string_lossy()))
            .chain(CARRIED.iter().map(|(file, _)| stem(file)))
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

fn text_of(name: &str) -> Result<(String, String), WorkloadError> {
    let in_folder = PathBuf::from("workloads").join(format!("{}.{ENDING}", name.to_ascii_lowercase()));
    for path in [PathBuf::from(name), in_folder] {
        if path.is_file() {
            let origin = path.display().to_string();
            return Ok((origin, read_text(&path, "a script", LONGEST_SCRIPT_BYTES)?));
        }
    }
    carried_text(name)
}

fn carried_text(name: &str) -> Result<(String, String), WorkloadError> {
    CARRIED
        .iter()
        .find(|(file, _)| stem(file).eq_ignore_ascii_case(name))
        .map(|(file, text)| (format!("carried:{file}"), (*text).to_owned()))
        .ok_or_else(|| WorkloadError::NoSuchWorkload {
            name: name.to_owned(),
            known: Workload::names().join(", "),
        })
}

fn stem(path: &str) -> String {
    let path = path.strip_prefix("carried:").unwrap_or(path);
    Path::new(path).file_stem().map_or_else(|| path.to_owned(), |stem| stem.to_string_lossy().into_owned())
}
