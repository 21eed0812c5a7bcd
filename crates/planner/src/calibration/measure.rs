//! Measures: starts servers, lets the laboratory's users work, and gathers what its reports say.

use std::path::PathBuf;
use std::time::Duration;

use scrinium_lab::Progress;
use scrinium_lab::experiment::{self, ExperimentArguments};
use scrinium_lab::monitor::this_machine;

use super::definition::{self, Cell, Size};
use super::gather::points;
use super::{Calibration, FORMAT, Point, device};
use crate::error::PlanError;

/// Where and by what is measured.
#[derive(Clone, Debug)]
pub struct Measuring {
    /// Reports go here.
    pub folder: PathBuf,
    /// Where servers keep their data meanwhile; by default below `folder`.
    pub data: Option<PathBuf>,
    /// What starts a server; by default this program.
    pub server_command: Option<String>,
    /// The device is measured for a shorter time.
    pub quick: bool,
    /// Go on with what an earlier call has left in `folder`.
    pub resume: bool,
}

/// The device is measured so long.
const DEVICE_PROBE: Duration = Duration::from_secs(6);
const QUICK_DEVICE_PROBE: Duration = Duration::from_secs(2);

/// Measures everything that a calibration holds.
///
/// # Errors
/// [`PlanError`]: a server cannot be started, a folder not be written, nothing was measured.
pub async fn measure(size: &Size, measuring: &Measuring) -> Result<Calibration, PlanError> {
    let data = measuring.data.clone().unwrap_or_else(|| measuring.folder.clone());
    std::fs::create_dir_all(&data).map_err(PlanError::file("make the folder", &data))?;
    let probe = if measuring.quick { QUICK_DEVICE_PROBE } else { DEVICE_PROBE };
    let device = device::measure(&data, probe).map_err(PlanError::file("measure the device of", &data))?;
    let cells = size.cells();
    let (points, notes) = measure_cells(&cells, size.repeats, measuring).await?;
    Ok(Calibration {
        format: FORMAT.to_owned(),
        made: format!("{:.0}", jiff::Timestamp::now()),
        scrinium_version: env!("CARGO_PKG_VERSION").to_owned(),
        quick: measuring.quick,
        machine: this_machine(),
        data_dir: data.display().to_string(),
        run_folder: measuring.folder.display().to_string(),
        device,
        points,
        notes,
    })
}

/// Measures some cells, each on a server of its own.
///
/// # Errors
/// As [`measure`].
pub async fn measure_cells(
    cells: &[Cell],
    repeats: u32,
    measuring: &Measuring,
) -> Result<(Vec<Point>, Vec<String>), PlanError> {
    let shown = measuring.folder.display().to_string();
    let file = measuring.folder.join("calibration.toml");
    let failed = PlanError::file("write", &file);
    let text = definition::experiment(cells, repeats, &measuring.folder.join("scripts"));
    let text = text.map_err(failed.clone())?;
    std::fs::write(&file, text).map_err(failed)?;
    let arguments = ExperimentArguments {
        name: file.display().to_string(),
        quick: measuring.quick,
        set: Vec::new(),
        only: Vec::new(),
        report: Some(measuring.folder.clone()),
        resume: measuring.resume,
        server_command: measuring.server_command.clone(),
        server_admin: "admin".to_owned(),
        server_password: None,
        data: measuring.data.clone(),
        json: false,
        dry_run: false,
    };
    let (report, folder) = experiment::measure(&arguments, &Progress::new()).await?;
    let (points, notes) = points(&report, cells, &folder);
    if points.is_empty() {
        let why = notes.first().cloned().unwrap_or_else(|| "no report was written".to_owned());
        return Err(PlanError::NothingMeasured { why, folder: shown });
    }
    Ok((points, notes))
}
