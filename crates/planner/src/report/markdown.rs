//! As Markdown.

use std::fmt::Write;

use scrinium_lab_report::bytes;

use super::lines::{COMPARED, compared, extrapolated, rows, sentences};
use super::{Plan, calibration_text};
use crate::calibration::Calibration;
use crate::check::Check;
use crate::fit::Model;

/// The whole plan.
#[must_use]
pub fn markdown(plan: &Plan) -> String {
    let answer = &plan.plan;
    let mut text = format!("# {}\n\n**{}**\n\n", cell(&answer.organisation), cell(&answer.summary));
    for problem in &answer.problems {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- Not held: {}.", cell(problem));
    }
    if !answer.problems.is_empty() {
        text.push('\n');
    }
    let mut heads = vec!["Figure".to_owned(), "Value".to_owned(), "Range".to_owned()];
    heads.extend(plan.what_if.iter().map(|scenario| cell(&scenario.change)));
    heads.push("Source".to_owned());
    line(&mut text, &heads);
    line(&mut text, &vec!["---".to_owned(); heads.len()]);
    for row in rows(plan) {
        let mut cells = vec![cell(row.figure.title), row.value, row.spread];
        cells.extend(row.otherwise);
        cells.push(cell(&row.figure.source));
        line(&mut text, &cells);
    }
    text.push('\n');
    for scenario in &plan.what_if {
        let _ = writeln!(text, "- With `{}`: {}", scenario.change, cell(&scenario.plan.summary));
        for problem in &scenario.plan.problems {
            let _ = writeln!(text, "  - Not held: {}.", cell(problem));
        }
    }
    for sentence in sentences(plan) {
        let _ = writeln!(text, "- {}", cell(&sentence));
    }
    text.push_str("\n## Settings\n\n| Key | Value | Why |\n| --- | --- | --- |\n");
    for setting in &answer.settings {
        line(&mut text, &[format!("`{}`", setting.key), setting.value.clone(), cell(&setting.why)]);
    }
    text.push_str("\n## Assumed\n\n");
    for assumption in &answer.assumptions {
        let _ = writeln!(text, "- {}", cell(assumption));
    }
    let _ = writeln!(text, "\nCalibration: {}; runs in `{}`", cell(&answer.calibration), answer.run_folder);
    for note in &answer.notes {
        let _ = writeln!(text, "\nNote: {}.", cell(note));
    }
    text
}

/// A forecast held against a measurement, with the calibration that it rests on.
#[must_use]
pub fn check_markdown(check: &Check, calibration: &Calibration, model: &Model) -> String {
    let machine = &calibration.machine;
    let mut text = format!(
        "# Forecast and measurement\n\n{}. Scrinium {}; {} CPUs ({}), {} of memory, Linux {}; server and driver on one \
         machine.\n\n",
        extrapolated(check),
        calibration.scrinium_version,
        machine.cpus,
        cell(&machine.cpu_model),
        bytes(machine.memory_bytes as f64),
        machine.kernel,
    );
    line(&mut text, &COMPARED.map(str::to_owned));
    line(&mut text, &COMPARED.map(|_| "---".to_owned()));
    for row in &check.comparisons {
        line(&mut text, &compared(row).map(|value| cell(&value)));
    }
    text.push('\n');
    for reason in &check.invalid {
        let _ = writeln!(text, "**Not valid**: {}.\n", cell(reason));
    }
    let _ = writeln!(
        text,
        "`scrinium plan calibrate` and `scrinium plan check` repeat it. The calibration of {}:\n\n```\n{}```",
        calibration.made,
        calibration_text(calibration, model)
    );
    text
}

fn line(text: &mut String, cells: &[String]) {
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
