//! For a terminal.

use std::fmt::Write;

use scrinium_lab_report::{TextTable, bytes, milliseconds, thousands};

use super::Plan;
use super::lines::{COMPARED, capital, compared, extrapolated, rows, sentences};
use crate::calibration::Calibration;
use crate::check::Check;
use crate::class::Class;
use crate::fit::Model;

/// The whole plan.
#[must_use]
pub fn plan(plan: &Plan) -> String {
    let answer = &plan.plan;
    let mut text = format!("{} \u{b7} {}\n\n", answer.organisation, answer.summary);
    for problem in &answer.problems {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "NOT HELD: {problem}.");
    }
    if !answer.problems.is_empty() {
        text.push('\n');
    }
    let mut heads = vec!["Figure", "Value", "Range"];
    heads.extend(plan.what_if.iter().map(|scenario| scenario.change.as_str()));
    let mut table = TextTable::new(&heads);
    let rows = rows(plan);
    for row in &rows {
        let mut cells = vec![row.figure.title.to_owned(), row.value.clone(), row.spread.clone()];
        cells.extend(row.otherwise.iter().cloned());
        table.row(cells);
    }
    table.write(&mut text);
    text.push('\n');
    for scenario in &plan.what_if {
        let _ = writeln!(text, "With {}: {}", scenario.change, scenario.plan.summary);
        for problem in &scenario.plan.problems {
            let _ = writeln!(text, "  NOT HELD: {problem}.");
        }
    }
    for line in sentences(plan) {
        let _ = writeln!(text, "\u{b7} {line}");
    }
    text.push_str("\nSettings\n");
    for setting in &answer.settings {
        let _ = writeln!(text, "  {} = {:<16} {}", setting.key, setting.value, setting.why);
    }
    text.push_str("\nWhere the figures come from\n");
    for row in &rows {
        let _ = writeln!(text, "  {:<34} {}", row.figure.title, row.figure.source);
    }
    for assumption in &answer.assumptions {
        let _ = writeln!(text, "  Assumed: {assumption}");
    }
    let _ = writeln!(text, "\nCalibration: {}; runs in {}", answer.calibration, answer.run_folder);
    for note in &answer.notes {
        let _ = writeln!(text, "Note: {note}.");
    }
    text
}

/// What a calibration found.
#[must_use]
pub fn calibration(calibration: &Calibration, model: &Model) -> String {
    let mut text = "What a request costs\n".to_owned();
    request_costs(model, &mut text);
    text.push_str("\nThe ladder, and what the model makes of it\n");
    ladder(model, &mut text);
    device(calibration, model, &mut text);
    scalability(model, &mut text);
    let _ = writeln!(
        text,
        "\u{b7} The server takes {} of memory, and {} for each who is connected.",
        bytes(model.memory.base_bytes.value),
        bytes(model.memory.user_bytes.value)
    );
    for note in &calibration.notes {
        let _ = writeln!(text, "Note: {note}.");
    }
    text
}

fn request_costs(model: &Model, text: &mut String) {
    let mut table = TextTable::new(&["Class", "CPU", "Alone", "Commits", "Written"]);
    for class in Class::ALL {
        table.row([
            capital(class.name()),
            milliseconds(model.costs.alone_cpu_s(class) * 1000.0),
            milliseconds(*model.response.alone_ms.get(class)),
            format!("{:.2}", model.costs.commits.get(class).value),
            bytes(model.costs.written_bytes.get(class).value),
        ]);
    }
    table.write(text);
    let _ = writeln!(
        text,
        "CPU of a request with syncs of its own, {} each, which those who wait together share; at rest {:.3} processors",
        milliseconds(model.costs.sync_cpu_s.value * 1000.0),
        model.costs.rest_cpus.value
    );
}

fn ladder(model: &Model, text: &mut String) {
    let mut table = TextTable::new(&["Users", "Requests/s", "Response", "Model", "Processors", "Model"]);
    for rung in &model.ladder {
        table.row([
            thousands(rung.users),
            format!("{:.1}", rung.per_s),
            milliseconds(rung.measured_ms.value),
            milliseconds(rung.fitted_ms),
            format!("{:.3}", rung.measured_cpus),
            format!("{:.3}", rung.fitted_cpus),
        ]);
    }
    table.write(text);
}

fn device(calibration: &Calibration, model: &Model, text: &mut String) {
    let device = &calibration.device;
    let _ = writeln!(
        text,
        "\n\u{b7} The model is off by at most {:.0} % in response and {:.0} % in CPU at loads of the ladder.",
        model.response.error * 100.0,
        model.costs.cpu_error * 100.0
    );
    let _ = writeln!(
        text,
        "\u{b7} A sync takes {} (1st to 9th tenth: {} to {}); the device writes {} a second.",
        milliseconds(device.sync_ms.value),
        milliseconds(device.sync_ms.low),
        milliseconds(device.sync_ms.high),
        bytes(device.write_bytes_per_s.value)
    );
}

fn scalability(model: &Model, text: &mut String) {
    if let Some(law) = &model.scalability {
        let (asking, most) = law.most();
        let most = if asking.is_finite() {
            format!("at most {} requests a second, when {:.0} ask at once", thousands(most), asking)
        } else if most.is_finite() {
            format!("at most {} requests a second, however many ask", thousands(most))
        } else {
            "no end in sight".to_owned()
        };
        let _ = writeln!(
            text,
            "\u{b7} Users without a pause, by the Universal Scalability Law: \u{3bb} = {:.1}/s, \u{3c3} = {:.4}, \u{3ba} = {:.6}: {most}. The driver had its share of the processors.",
            law.one_per_s, law.contention, law.coherency
        );
    }
}

/// What a check found.
#[must_use]
pub fn check(check: &Check) -> String {
    let mut text = format!("{}\n\n", extrapolated(check));
    let mut table = TextTable::new(&COMPARED);
    check.comparisons.iter().for_each(|row| table.row(compared(row)));
    table.write(&mut text);
    text.push('\n');
    for reason in &check.invalid {
        let _ = writeln!(text, "NOT VALID: {reason}.");
    }
    text
}
