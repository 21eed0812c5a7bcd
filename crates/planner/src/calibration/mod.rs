//! A calibration: what was measured on one machine, so that the planner can speak of others like it.
//!
//! The file holds measurements and no fits: these are made again each time it is read, so that a better model can use
//! an older calibration.

mod definition;
pub mod device;
mod gather;
mod measure;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use scrinium_lab_report::Machine;
use serde::{Deserialize, Serialize};

use crate::class::PerClass;
use crate::error::PlanError;
use crate::range::Range;

pub use definition::{Cell, Size};
pub use measure::{Measuring, measure, measure_cells};

/// The form of the file. A reader that finds another number behind the slash must not guess.
pub const FORMAT: &str = "scrinium-calibration/1";

/// Everything that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Calibration {
    pub format: String,
    /// RFC 3339.
    pub made: String,
    pub scrinium_version: String,
    /// The short form: noisier.
    pub quick: bool,
    pub machine: Machine,
    /// Where the servers' data lay: the device that was measured.
    pub data_dir: String,
    /// The folder of the runs' reports.
    pub run_folder: String,
    pub device: Device,
    pub points: Vec<Point>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// The device of the data, measured without a server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// A sync of an extent that is written over, 4 KB at a time, as the log does: median, 1st and 9th tenth.
    pub sync_ms: Range,
    /// Writing a large file to its end, and syncing it.
    pub write_bytes_per_s: Range,
}

/// What a point is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The mixed workload at one of several loads.
    Ladder,
    /// Users without a pause, for what the machine can do at most.
    Rush,
    /// The mixed workload through the encrypted port.
    Encrypted,
    /// The mixed workload with large mail files.
    Inbox,
    /// Users who are connected and do next to nothing.
    Connected,
    /// A workload of mainly one class of requests.
    Class,
}

/// One load, measured once or several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Point {
    pub name: String,
    pub kind: Kind,
    pub workload: String,
    pub users: u32,
    pub speedup: f64,
    /// In each mail file at the beginning.
    pub documents: u64,
    pub message_bytes: f64,
    pub runs: Vec<Run>,
}

/// What one run showed, in its hold phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Run {
    /// Its report, below the folder of the runs.
    pub report: String,
    /// Requests a second and their average latency.
    pub per_s: PerClass<f64>,
    pub latency_ms: PerClass<f64>,
    pub mean_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    /// Processors that the server kept busy, in user and in system mode: CPU seconds a second.
    pub user_cpus: f64,
    pub system_cpus: f64,
    /// Processors that the driver kept busy, on the same machine.
    pub driver_cpus: f64,
    pub resident_bytes: f64,
    pub written_bytes_per_s: f64,
    pub syncs_per_s: Option<f64>,
    /// On disk after the server was stopped, less what it had before there were users, without the log; and the log.
    pub data_bytes: f64,
    pub log_bytes: f64,
    /// Documents that were put into mail files before the run.
    pub documents_added: f64,
    /// About how many more were written in it.
    pub documents_grown: f64,
    pub failed_percent: f64,
    /// Why it says little of the server.
    #[serde(default)]
    pub invalid: Vec<String>,
}

impl Point {
    /// The runs that count: the valid ones, or all where none is.
    pub fn counted(&self) -> impl Iterator<Item = &Run> {
        let any_valid = self.runs.iter().any(|run| run.invalid.is_empty());
        self.runs.iter().filter(move |run| !any_valid || run.invalid.is_empty())
    }
}

impl Run {
    /// Processors that the server kept busy.
    #[must_use]
    pub fn server_cpus(&self) -> f64 {
        self.user_cpus + self.system_cpus
    }
}

impl Calibration {
    /// Reads a file.
    ///
    /// # Errors
    /// [`PlanError::NoCalibration`], [`PlanError::File`], [`PlanError::WrongCalibration`].
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => PlanError::NoCalibration { path: shown.clone() },
            _ => PlanError::file("read", path)(source),
        })?;
        let wrong = |why: String| PlanError::WrongCalibration { path: shown.clone(), why };
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        match value.get("format").and_then(serde_json::Value::as_str) {
            Some(FORMAT) => {}
            Some(other) => {
                return Err(wrong(format!("its format is {other}, and this program reads {FORMAT}")));
            }
            None => return Err(wrong("it is no calibration".to_owned())),
        }
        let calibration: Self = serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
        calibration.check().map_err(wrong)?;
        Ok(calibration)
    }

    /// Writes the file, whole or not at all, and makes its folder.
    ///
    /// # Errors
    /// [`PlanError::File`].
    pub fn write(&self, path: &Path) -> Result<(), PlanError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(PlanError::file("make the folder", folder))?;
        }
        let part = path.with_extension("part");
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(&part, text)
            .and_then(|()| std::fs::rename(&part, path))
            .map_err(PlanError::file("write", path))
    }

    /// Numbers that a model can be made of.
    fn check(&self) -> Result<(), String> {
        if self.machine.cpus == 0 {
            return Err("its machine has no processors".to_owned());
        }
        let numbers =
            [self.device.sync_ms.low, self.device.sync_ms.high, self.device.write_bytes_per_s.value];
        if numbers.iter().any(|number| !number.is_finite() || *number <= 0.0) {
            return Err("its device was not measured".to_owned());
        }
        for point in &self.points {
            for run in &point.runs {
                let rates = crate::Class::ALL.iter().map(|class| *run.per_s.get(*class));
                let others =
                    [run.mean_ms, run.user_cpus, run.system_cpus, run.driver_cpus, run.resident_bytes];
                if rates.chain(others).any(|number| !number.is_finite() || number < 0.0) {
                    return Err(format!("a number of its point {} is below 0 or none", point.name));
                }
            }
        }
        Ok(())
    }

    /// What a model needs and this lacks.
    #[must_use]
    pub fn missing(&self) -> Option<&'static str> {
        let has = |kind: Kind, fewest: usize| self.of(kind).count() >= fewest;
        [(Kind::Ladder, 2, "ladder of loads"), (Kind::Class, 2, "loads of one class of requests")]
            .into_iter()
            .find(|(kind, fewest, _)| !has(*kind, *fewest))
            .map(|(_, _, what)| what)
    }

    /// The points of a kind.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |point| point.kind == kind)
    }
}

/// Where a calibration is kept unless another place is named: below the user's data folder (XDG base directories).
#[must_use]
pub fn usual_path(environment: &BTreeMap<String, String>) -> PathBuf {
    let named = |name: &str| environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = named("XDG_DATA_HOME").or_else(|| named("HOME").map(|home| home.join(".local/share")));
    folder.unwrap_or_else(|| PathBuf::from(".")).join("scrinium/calibration.json")
}
