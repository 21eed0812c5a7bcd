//! One page that links the reports of many experiments, whose pages are rewritten.

use std::path::{Path, PathBuf};

use super::model::{ExperimentReport, FORMAT};
use super::text::{self, set_up};
use crate::error::ReportError;
use crate::numbers::time;
use crate::page::{Markup, document, html};

/// At most this many findings of each experiment are shown.
const SHOWN: usize = 3;

/// Writes `index.html` into a folder, for all experiments whose `experiment.json` lies in a folder of it, and `index.md`,
/// which is the same where pages are not shown, as next to source code. What is made from an `experiment.json` is made
/// again, so that all reports are of one form. Gives the page's path.
///
/// # Errors
/// No report is there, or a file cannot be read or written.
pub fn write_index(folder: &Path) -> Result<PathBuf, ReportError> {
    let failed = |what, path: &Path| {
        let path = path.display().to_string();
        move |source| ReportError::File { what, path, source }
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
        return Err(ReportError::Usage(format!(
            "no folder of {shown} holds an experiment.json; run lab experiment NAME --report {shown}/NAME first"
        )));
    }
    for (name, report) in &mut reports {
        report.set_findings();
        report.write(&folder.join(name.as_str()))?;
    }
    for (name, text) in [("index.md", markdown(&reports)), ("index.html", page(&reports))] {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(failed("write", &path))?;
    }
    Ok(folder.join("index.html"))
}

fn markdown(reports: &[(String, ExperimentReport)]) -> String {
    let mut text = format!("# Experiments\n\n{}\n", introduction(reports));
    let several = one_set_up(reports).is_none();
    for (folder, report) in reports {
        text.push_str(&format!("\n## [{}]({folder}/experiment.md)\n\n", report.title));
        text.push_str(&format!("{}. The page: `{folder}/experiment.html`.\n\n", summary(report).join(", ")));
        if several {
            text.push_str(&format!("{}.\n\n", set_up(report)));
        }
        for line in lines(report) {
            text.push_str(&format!("- {line}\n"));
        }
    }
    text
}

fn introduction(reports: &[(String, ExperimentReport)]) -> String {
    let seconds: f64 = reports.iter().map(|(_, report)| report.seconds).sum();
    let whole = reports.iter().filter(|(_, report)| report.every_run_counts()).count();
    let set_up = one_set_up(reports)
        .unwrap_or_else(|| "On more than one machine, which each experiment names".to_owned());
    format!(
        "{set_up}. All together took {}; in {whole} of {} every run is valid.",
        time(seconds),
        reports.len()
    )
}

/// Hardware and versions, if they are those of all reports.
fn one_set_up(reports: &[(String, ExperimentReport)]) -> Option<String> {
    let mut all = reports.iter().map(|(_, report)| set_up(report));
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// What was asked, and the first findings.
fn lines(report: &ExperimentReport) -> Vec<String> {
    text::objectives(report).into_iter().chain(report.findings.iter().take(SHOWN).cloned()).collect()
}

/// Form, size, time, and whether every run counts.
fn summary(report: &ExperimentReport) -> [String; 4] {
    let cells = text::cell_count(report.cells.len());
    let verdict = match (report.is_whole(), report.left_out()) {
        (true, 0) => "valid".to_owned(),
        (true, 1) => "valid but for 1 run, which is left out".to_owned(),
        (true, runs) => format!("valid but for {runs} runs, which are left out"),
        (false, _) => "not every cell is valid".to_owned(),
    };
    [format!("{} form", report.form.name()), cells, time(report.seconds), verdict]
}

fn page(reports: &[(String, ExperimentReport)]) -> String {
    let several = one_set_up(reports).is_none();
    let main = html! {
        header { "\n"
            p class="kicker" { "Scrinium laboratory" } "\n"
            h1 { (reports.len()) " experiments" } "\n"
            p class="about" { (introduction(reports)) } "\n"
        } "\n"
        div class="cards" { "\n"
            @for (folder, report) in reports { (card(folder, report, several)) }
        } "\n"
    };
    document("Experiments", &main)
}

fn card(folder: &str, report: &ExperimentReport, says_set_up: bool) -> Markup {
    let class = if report.every_run_counts() { "good" } else { "bad" };
    let [form, cells, took, verdict] = summary(report);
    html! {
        div class="card" {
            h2 { a href={ (folder) "/experiment.html" } { (report.title) } }
            p { (form) " \u{b7} " (cells) " \u{b7} " (took) " \u{b7} " span class=(class) { (verdict) } }
            @if says_set_up { p class="about" { (set_up(report)) } }
            @for line in lines(report) { p { (line) } }
        } "\n"
    }
}
