//! An organisation's file: who is to be served, and what is expected.

mod value;

use std::collections::BTreeMap;
use std::path::Path;

use scrinium_lab::experiment::definition::Scalar;
use serde::{Deserialize, Serialize};

use crate::error::PlanError;
pub(crate) use value::size;
use value::{
    bytes, count, factor, milliseconds, optional_bytes, optional_count, optional_milliseconds, percent, years,
};

/// A commented file with every key, which `plan --example` prints.
pub const EXAMPLE: &str = include_str!("example.toml");

/// The whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Organisation {
    pub name: String,
    pub users: Vec<Group>,
    #[serde(default)]
    pub busy_hour: BusyHour,
    #[serde(default)]
    pub objective: Objective,
    #[serde(default)]
    pub growth: Growth,
    #[serde(default)]
    pub availability: Availability,
    #[serde(default)]
    pub storage: Storage,
    #[serde(default)]
    pub network: Network,
    #[serde(default)]
    pub machine: Hardware,
}

/// Users who do the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Group {
    pub workload: String,
    #[serde(deserialize_with = "count")]
    pub count: f64,
    #[serde(deserialize_with = "count")]
    pub documents: f64,
    /// Bytes.
    #[serde(deserialize_with = "bytes")]
    pub mail_file: f64,
    /// Variables of the workload.
    #[serde(default)]
    pub set: BTreeMap<String, Scalar>,
}

/// When most is done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct BusyHour {
    #[serde(deserialize_with = "percent")]
    pub connected_percent: f64,
    #[serde(deserialize_with = "factor")]
    pub load: f64,
}

/// What users and administrators expect.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Objective {
    #[serde(deserialize_with = "milliseconds")]
    pub average_ms: f64,
    #[serde(deserialize_with = "optional_milliseconds")]
    pub p99_ms: Option<f64>,
    #[serde(deserialize_with = "percent")]
    pub cpu_percent: f64,
    #[serde(deserialize_with = "percent")]
    pub disk_percent: f64,
}

/// What it will be like in some years.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Growth {
    #[serde(deserialize_with = "years")]
    pub years: f64,
    #[serde(deserialize_with = "percent")]
    pub users_percent: f64,
    #[serde(deserialize_with = "percent")]
    pub mail_percent: f64,
}

/// What may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Availability {
    pub servers_lost: u32,
    pub copies: u32,
}

/// What lies on the disks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Storage {
    #[serde(deserialize_with = "percent")]
    pub attachment_percent: f64,
    #[serde(deserialize_with = "percent")]
    pub working_set_percent: f64,
    #[serde(deserialize_with = "percent")]
    pub free_percent: f64,
}

/// How users reach the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Network {
    pub encryption: bool,
}

/// Machines other than the one of the calibration; and how many, which only a what-if says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Hardware {
    #[serde(deserialize_with = "optional_count")]
    pub cores: Option<f64>,
    /// Bytes.
    #[serde(deserialize_with = "optional_bytes")]
    pub memory: Option<f64>,
    #[serde(skip)]
    pub servers: Option<u32>,
}

impl Default for BusyHour {
    fn default() -> Self {
        Self { connected_percent: 80.0, load: 1.5 }
    }
}

impl Default for Objective {
    fn default() -> Self {
        Self { average_ms: 100.0, p99_ms: None, cpu_percent: 60.0, disk_percent: 60.0 }
    }
}

impl Default for Growth {
    fn default() -> Self {
        Self { years: 3.0, users_percent: 5.0, mail_percent: 25.0 }
    }
}

impl Default for Availability {
    fn default() -> Self {
        Self { servers_lost: 0, copies: 1 }
    }
}

impl Default for Storage {
    fn default() -> Self {
        Self { attachment_percent: 50.0, working_set_percent: 1.0, free_percent: 30.0 }
    }
}

impl Default for Network {
    fn default() -> Self {
        Self { encryption: true }
    }
}

/// More servers than this are not planned one by one.
pub const MOST_SERVERS: u32 = 10_000;

impl Organisation {
    /// Reads a file.
    ///
    /// # Errors
    /// [`PlanError::NoOrganisation`], [`PlanError::File`], or what is wrong with it, with its line.
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let origin = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => PlanError::NoOrganisation { path: origin.clone() },
            _ => PlanError::file("read", path)(source),
        })?;
        Self::parse(&origin, &text)
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// [`PlanError::Organisation`], with the line.
    pub fn parse(origin: &str, text: &str) -> Result<Self, PlanError> {
        let wrong =
            |line: usize, what: String| PlanError::Organisation { origin: origin.to_owned(), line, what };
        let organisation: Self = toml_edit::de::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_at(text, span.start));
            wrong(line, error.message().to_owned())
        })?;
        organisation.check().map_err(|(named, what)| wrong(line_of(text, named), what))?;
        Ok(organisation)
    }

    /// What the form of the file does not rule out: the name that is to be looked for, and what is wrong.
    fn check(&self) -> Result<(), (&'static str, String)> {
        let Availability { servers_lost, copies } = self.availability;
        if self.users.is_empty() {
            return Err(("users", "there are no users: write at least one group [[users]]".to_owned()));
        }
        if self.objective.cpu_percent < 1.0 {
            return Err((
                "cpu_percent",
                "cpu_percent: servers that do nothing hold nobody; from 1 to 100".to_owned(),
            ));
        }
        if self.objective.disk_percent < 1.0 {
            return Err(("disk_percent", "disk_percent is from 1 to 100".to_owned()));
        }
        if self.storage.free_percent > 90.0 {
            return Err(("free_percent", "free_percent is from 0 to 90".to_owned()));
        }
        if servers_lost > 100 {
            return Err(("servers_lost", "servers_lost is from 0 to 100".to_owned()));
        }
        if copies == 0 || copies > 100 {
            return Err(("copies", "copies is from 1 to 100: the original is one".to_owned()));
        }
        if copies <= servers_lost {
            return Err((
                "servers_lost",
                format!(
                    "with {servers_lost} servers lost, mail of which there are {copies} copies is lost: copies must be {} or more",
                    servers_lost + 1
                ),
            ));
        }
        Ok(())
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// The line that begins with a key, or the first.
fn line_of(text: &str, key: &str) -> usize {
    text.lines().position(|line| line.trim_start().starts_with(key)).map_or(1, |index| index + 1)
}
