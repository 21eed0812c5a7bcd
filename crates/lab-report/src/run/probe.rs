//! What a probe saw alongside the users of a run.

use super::model::Report;
use super::parts::{Phase, ProbePart, Subject};
use crate::error::ReportError;
use crate::numbers::{milliseconds, thousands};
use crate::page::{
    CurvePoint, Curves, Marks, Markup, clock, html, inline_svg, keys, milliseconds_axis, section_head,
};

impl Report {
    /// The hold phase on the run's time axis.
    #[must_use]
    pub fn hold_s(&self) -> (f64, f64) {
        let hold = self.run.phases.iter().find(|phase| phase.phase == Phase::Hold);
        hold.map_or((0.0, 0.0), |phase| (phase.from_s, phase.to_s))
    }

    /// Adds what a probe saw alongside the users.
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
pub(super) fn section(report: &Report) -> Result<Markup, ReportError> {
    let Some(probe) = report.probe.as_ref().filter(|probe| !probe.points.is_empty()) else {
        return Ok(Markup::default());
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
    let (mut names, mut lines) = (Vec::new(), Vec::new());
    for subject in [Subject::Database, Subject::Mail] {
        let points = line(subject);
        if !points.is_empty() {
            names.push(subject.name().to_owned());
            lines.push(points);
        }
    }
    let curves =
        Curves { lines, show_x: &clock, show_y: &milliseconds_axis, marks: Marks::All, logarithmic: true };
    let svg = curves.svg()?;
    let about =
        format!("one more user, of {}, every {} s; on the same time axis", probe.database, probe.interval_s);
    Ok(html! {
        (section_head("The probe", &about))
        div class="charts" { "\n"
            figure {
                figcaption { span { b { "Response of a whole round" } } span class="keys" { (keys(&names)) } } "\n"
                (inline_svg(&svg))
            } "\n"
        } "\n"
    })
}
