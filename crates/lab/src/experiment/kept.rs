//! Results of cells on disk, so that an experiment that was broken off continues where it was.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use scrinium_lab_report::experiment::SearchPoint;
use serde::{Deserialize, Serialize};

use super::cells::slug;
use super::error::ExperimentError;
use super::resume::ResumeKey;

/// One measurement of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CellRun {
    pub(super) labels: Vec<String>,
    /// From 1, over all repeats and turns.
    pub(super) repeat: u32,
    /// `step.value`.
    pub(super) values: BTreeMap<String, f64>,
    /// Why it says nothing of the server.
    pub(super) invalid: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) search: Vec<SearchPoint>,
    /// Folders of the loads' reports, in that of its reports.
    #[serde(default)]
    pub(super) loads: Vec<String>,
    pub(super) settings: BTreeMap<String, String>,
    /// Name and version.
    pub(super) server: Option<(String, String)>,
    pub(super) seconds: f64,
    /// Why it could not be measured. Such a run is not kept: it is tried again.
    #[serde(skip)]
    pub(super) failed: Option<String>,
}

/// The folder of an experiment's results.
pub(super) struct Kept {
    folder: PathBuf,
}

/// What a folder's results are of.
const KEY: &str = "experiment.key.json";

/// What said so in versions before there were keys.
const FORMER_KEY: &str = "experiment.print";

impl Kept {
    /// Opens a folder. Results in it are used again if they are to be and are of the same experiment.
    ///
    /// # Errors
    /// [`ExperimentError::OtherResults`] if `resume` and they are not, [`ExperimentError::FormerResults`] if that cannot be
    /// known; [`ExperimentError::Usage`] if there are results and not `resume`.
    pub(super) fn open(folder: &Path, key: &ResumeKey, resume: bool) -> Result<Self, ExperimentError> {
        let path = folder.join(KEY);
        let shown = folder.display().to_string();
        let before = std::fs::read_to_string(&path).ok();
        let is_former = before.is_none() && folder.join(FORMER_KEY).exists();
        match before {
            _ if !resume && (before.is_some() || is_former) => Err(ExperimentError::Usage(format!(
                "{shown} holds results already; continue with --resume, remove it, or name another by --report"
            ))),
            _ if is_former => Err(ExperimentError::FormerResults { folder: shown }),
            Some(before) => match key.differences(&before) {
                differences if differences.is_empty() => Ok(Self { folder: folder.to_owned() }),
                differences => Err(ExperimentError::OtherResults { folder: shown, differences }),
            },
            None => {
                std::fs::create_dir_all(folder.join("cells"))
                    .and_then(|()| std::fs::write(&path, key.text()))
                    .map_err(|source| ExperimentError::File {
                        what: "write",
                        path: path.display().to_string(),
                        source,
                    })?;
                Ok(Self { folder: folder.to_owned() })
            }
        }
    }

    fn path(&self, slug: &str, repeat: u32) -> PathBuf {
        self.folder.join("cells").join(format!("{slug}-{repeat}.json"))
    }

    /// A run that was done before. One that cannot be read is done again.
    pub(super) fn find(&self, slug: &str, repeat: u32) -> Option<CellRun> {
        serde_json::from_slice(&std::fs::read(self.path(slug, repeat)).ok()?).ok()
    }

    /// Keeps a run: whole, or not at all.
    pub(super) fn keep(&self, run: &CellRun) -> Result<(), ExperimentError> {
        let path = self.path(&slug(&run.labels), run.repeat);
        let part = path.with_extension("part");
        let text = serde_json::to_vec_pretty(run).unwrap_or_default();
        std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, &path)).map_err(|source| {
            ExperimentError::File { what: "write", path: path.display().to_string(), source }
        })
    }

    /// Where reports of a run go.
    pub(super) fn reports(&self, slug: &str, repeat: u32) -> PathBuf {
        self.folder.join("cells").join(format!("{slug}-{repeat}"))
    }
}
