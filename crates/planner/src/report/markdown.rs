//! As Markdown.

use std::fmt::Write;

use super::Plan;
use super::lines::{rows, sentences};

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

fn line(text: &mut String, cells: &[String]) {
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
