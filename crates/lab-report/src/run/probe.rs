//! What a probe saw beside the users of a run.

use super::model::Report;
use super::parts::{Phase, ProbePart, Subject};
use crate::error::ReportError;
use crate::numbers::{milliseconds, thousands};
use crate::page::{CurvePoint, Curves, Marks, clock, escape, milliseconds_axis, series_variable};

impl Report {
    /// The hold phase on the run's time axis.
    #[must_use]
    pub fn hold_s(&self) -> (f64, f64) {
        let hold = self.run.phases.iter().find(|phase| phase.phase == Phase::Hold);
        hold.map_or((0.0, 0.0), |phase| (phase.from_s, phase.to_s))
    }

    /// Adds what a probe saw beside the users.
    pub fn add_probe(&mut self, probe: ProbePart) {
        self.findings.extend(findings(&probe));
        self.probe = Some(probe);
    }
}

/// A sentence about each subject.
fn findings(probe: &ProbePart) -> Vec<String> {
    probe
        .summary
        .iter()
        .map(|(subject, seen)| {
            let what = match subject {
                Subject::Database => format!(
                    "One more user, the probe, opened {} and its view, read a page and a document and wrote one",
                    probe.database
                ),
                Subject::Mail => "The probe sent a message to itself and read it".to_owned(),
            };
            let failed = if seen.failed > 0 { format!("; {} failed", thousands(seen.failed as f64)) } else { String::new() };
            if seen.response.count == 0 {
                return format!("{what}: no round of {} was answered{failed}.", thousands(seen.rounds as f64));
            }
            format!(
                "{what} in {} on average, 99 of 100 times in {} ({} rounds{failed}).",
                milliseconds(seen.response.mean_ms),
                milliseconds(seen.response.p99_ms),
                thousands(seen.rounds as f64)
            )
        })
        .collect()
}

/// The probe's rounds against time; nothing where there was no probe.
pub(super) fn section(report: &Report) -> Result<String, ReportError> {
    let Some(probe) = report.probe.as_ref().filter(|probe| !probe.points.is_empty()) else {
        return Ok(String::new());
    };
    let line = |subject: Subject| -> Vec<CurvePoint> {
        let answered = probe.points.iter().filter(|point| point.subject == subject && !point.failed);
        answered
            .map(|point| CurvePoint {
                x: point.at_s,
                low: point.response_ms,
                mean: point.response_ms,
                high: point.response_ms,
            })
            .collect()
    };
    let mut keys = String::new();
    let mut lines = Vec::new();
    for subject in [Subject::Database, Subject::Mail] {
        let points = line(subject);
        if !points.is_empty() {
            let colour = series_variable(lines.len());
            keys.push_str(&format!(
                "<span class=\"key\" style=\"--key:var({colour})\">{}</span>",
                subject.name()
            ));
            lines.push(points);
        }
    }
    let curves =
        Curves { lines, show_x: &clock, show_y: &milliseconds_axis, marks: Marks::All, logarithmic: true };
    Ok(format!(
        "<h2>The probe<small>one more user, of {}, every {} s; on the same time axis</small></h2>\n<div class=\"charts\">\n<figure><figcaption><span><b>Response of a whole round</b></span><span class=\"keys\">{keys}</span></figcaption>\n{}</figure>\n</div>\n",
        escape(&probe.database),
        probe.interval_s,
        curves.svg()?
    ))
}
