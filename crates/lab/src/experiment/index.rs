//! One page that links the reports of many experiments.

use std::path::{Path, PathBuf};

use super::model::{ExperimentReport, FORMAT};
use super::page::begin;
use crate::error::LabError;
use crate::report::html::escape;
use crate::report::time;

/// So many findings of each experiment are shown.
const SHOWN: usize = 3;

/// Writes `index.html` into a folder, for all experiments whose reports lie in folders of it.
pub(super) fn write(folder: &Path) -> Result<PathBuf, LabError> {
    let failed = |what, path: &Path| {
        let path = path.display().to_string();
        move |source| LabError::File { what, path, source }
    };
    let entries = std::fs::read_dir(folder).map_err(failed("read the folder", folder))?;
    let mut reports: Vec<(String, ExperimentReport)> = entries
        .flatten()
        .filter_map(|entry| {
            let text = std::fs::read(entry.path().join("experiment.json")).ok()?;
            let report: ExperimentReport = serde_json::from_slice(&text).ok()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            (report.format == FORMAT).then_some((name, report))
        })
        .collect();
    reports.sort_by(|one, other| one.0.cmp(&other.0));
    if reports.is_empty() {
        let shown = folder.display();
        return Err(LabError::Usage(format!(
            "no folder of {shown} holds an experiment.json; run lab experiment NAME --report {shown}/NAME first"
        )));
    }
    let path = folder.join("index.html");
    std::fs::write(&path, page(&reports)).map_err(failed("write", &path))?;
    Ok(path)
}

fn page(reports: &[(String, ExperimentReport)]) -> String {
    let mut page = begin("Experiments");
    let seconds: f64 = reports.iter().map(|(_, report)| report.seconds).sum();
    let whole = reports.iter().filter(|(_, report)| report.is_whole()).count();
    let set_up = reports.first().map(|(_, report)| super::text::set_up(report)).unwrap_or_default();
    page.push_str(&format!(
        "<header>\n<p class=\"kicker\">Scrinium laboratory</p>\n<h1>{} experiments</h1>\n<p class=\"about\">{}. All together took {}; in {whole} of them every run is valid.</p>\n</header>\n<div class=\"cards\">\n",
        reports.len(),
        escape(&set_up),
        time(seconds)
    ));
    for (folder, report) in reports {
        let findings: String =
            report.findings.iter().take(SHOWN).map(|finding| format!("<p>{}</p>", escape(finding))).collect();
        let (class, verdict) =
            if report.is_whole() { ("good", "valid") } else { ("bad", "not every cell is valid") };
        page.push_str(&format!(
            "<div class=\"card\"><h2><a href=\"{}/experiment.html\">{}</a></h2><p>{} form \u{b7} {} \u{b7} {} \u{b7} <span class=\"{class}\">{verdict}</span></p>{findings}</div>\n",
            escape(folder),
            escape(&report.title),
            report.form.name(),
            match report.cells.len() {
                1 => "1 cell".to_owned(),
                more => format!("{more} cells"),
            },
            time(report.seconds),
        ));
    }
    page.push_str("</div>\n</main>\n</body>\n</html>\n");
    page
}
