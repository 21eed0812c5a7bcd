//! An experiment's report as text: for a terminal, as Markdown, as CSV.

use std::fmt::Write;
use std::path::Path;

use super::findings::shown;
use super::model::{CellPart, ExperimentReport, LeftOut, Published, Spread, Unit};
use super::objective::ObjectivePart;
use super::{page, picture, search};
use crate::error::ReportError;
use crate::files::write_all;
use crate::numbers::{bytes, time};

/// A value with what its runs differed by, where that can be seen.
pub(crate) fn value(spread: Option<&Spread>, unit: Unit) -> String {
    let Some(spread) = spread else { return "\u{2013}".to_owned() };
    let mean = shown(spread.mean, unit);
    let (low, high) = (shown(spread.low, unit), shown(spread.high, unit));
    if spread.runs < 2 || low == high { mean } else { format!("{mean} ({low}\u{2013}{high})") }
}

/// How many cells there are.
#[must_use]
pub fn cell_count(count: usize) -> String {
    if count == 1 { "1 cell".to_owned() } else { format!("{count} cells") }
}

/// Heads and rows of the table of all cells.
pub(super) fn table(report: &ExperimentReport) -> (Vec<String>, Vec<Vec<String>>) {
    let factors = report.factors.iter().map(|factor| factor.title.clone());
    let columns = report.columns.iter().map(|column| column.title.clone());
    let row = |cell: &CellPart| {
        let mut row = cell.labels.clone();
        if let (false, Some(last)) = (cell.is_valid(), row.last_mut()) {
            last.push_str(" *");
        }
        let values = report.columns.iter().zip(&cell.values);
        row.extend(values.map(|(column, spread)| value(spread.as_ref(), column.unit)));
        row
    };
    (factors.chain(columns).collect(), report.cells.iter().map(row).collect())
}

/// What the stars in the table mean.
pub(super) fn stars(report: &ExperimentReport) -> Vec<String> {
    let reason = |cell: &CellPart| {
        let name = cell.labels.join(", ");
        match (&cell.failed, cell.invalid.first()) {
            (Some(failed), _) => Some(format!("* {name} could not be measured: {failed}")),
            (None, Some(invalid)) => Some(format!("* {name} is not valid: {invalid}")),
            (None, None) => None,
        }
    };
    report.cells.iter().filter_map(reason).collect()
}

/// The runs that do not count in cells that have others.
pub(super) fn left_out(report: &ExperimentReport) -> Vec<String> {
    let of = |cell: &CellPart| {
        let name = cell.labels.join(", ");
        let line = |run: &LeftOut| {
            let what = if run.failed { "could not be measured" } else { "is not valid" };
            format!("Run {} of {name} {what} and is left out: {}", run.run, run.why)
        };
        cell.left_out.iter().map(line).collect::<Vec<String>>()
    };
    report.cells.iter().flat_map(of).collect()
}

/// The machine and what ran on it, in one line.
pub(super) fn set_up(report: &ExperimentReport) -> String {
    let machine = &report.machine;
    let server = format!("{} {}", report.server_name, report.server_version);
    format!(
        "{}; {} CPUs ({}), {} of memory, Linux {}; laboratory {}; server and driver on one machine",
        if server.trim().is_empty() { "a server that does not say its name" } else { server.trim() },
        machine.cpus,
        machine.cpu_model,
        bytes(machine.memory_bytes as f64),
        machine.kernel,
        report.laboratory_version
    )
}

/// For a terminal.
#[must_use]
pub fn terminal_text(report: &ExperimentReport) -> String {
    let (heads, rows) = table(report);
    let lines: Vec<&Vec<String>> = std::iter::once(&heads).chain(&rows).collect();
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let factors = report.factors.len();
    let mut text = format!("{} ({})\n\n", report.title, report.form.name());
    for (index, line) in lines.iter().enumerate() {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let space = " ".repeat(width.saturating_sub(cell.chars().count()));
            if column < factors { format!("{cell}{space}") } else { format!("{space}{cell}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
        if index == 0 {
            let total = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
            text.push_str(&format!("{}\n", "\u{2500}".repeat(total)));
        }
    }
    text.push('\n');
    for line in stars(report).iter().chain(&left_out(report)) {
        text.push_str(&format!("{line}\n"));
    }
    for line in objectives(report).iter().chain(&report.findings) {
        text.push_str(&format!("\u{b7} {line}\n"));
    }
    text
}

/// A sentence for each objective.
pub(super) fn objectives(report: &ExperimentReport) -> Vec<String> {
    report.objectives.iter().map(ObjectivePart::sentence).collect()
}

/// As Markdown.
pub(super) fn markdown(report: &ExperimentReport) -> String {
    let mut text = format!(
        "# {}\n\n{}\n\n*Source:* {}\n\n*Set-up:* {}. {} form, {}, {}.\n\n",
        report.title,
        report.hypothesis,
        report.source,
        set_up(report),
        report.form.name(),
        if report.repeats == 1 {
            "each cell once".to_owned()
        } else {
            format!("each cell {} times", report.repeats)
        },
        time(report.seconds)
    );
    let (heads, rows) = table(report);
    markdown_table(&mut text, &heads, &rows);
    for line in stars(report) {
        text.push_str(&format!("\n\\{line}\n"));
    }
    for line in left_out(report) {
        text.push_str(&format!("\n{line}\n"));
    }
    section(&mut text, "What was asked", &objectives(report));
    section(&mut text, "What it showed", &report.findings);
    for cell in report.searched() {
        let (heads, rows) = search::plain_table(&cell.search);
        text.push_str(&format!("\n## {}: {}\n\n", search::TITLE, cell.labels.join(", ")));
        markdown_table(&mut text, &heads, &rows);
    }
    let figures = report.figures.iter().filter_map(|figure| figure.published.as_ref());
    let published: Vec<&Published> = figures.chain(&report.published).collect();
    if !published.is_empty() {
        text.push_str("\n## The source\u{2019}s tables\n");
    }
    for table in published {
        text.push_str(&format!("\n{}\n\n", table.title));
        markdown_table(&mut text, &table.columns, &table.rows);
        if !table.note.is_empty() {
            text.push_str(&format!("\n{}\n", table.note));
        }
    }
    section(&mut text, "What is otherwise than in the source", &report.choices);
    section(&mut text, "Notes", &report.notes);
    // Writing to a string cannot fail.
    let _ = write!(text, "\n## To repeat it\n\n    {}\n", report.command);
    text
}

fn section(text: &mut String, head: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    text.push_str(&format!("\n## {head}\n\n"));
    for line in lines {
        text.push_str(&format!("- {line}\n"));
    }
}

fn markdown_table(text: &mut String, heads: &[String], rows: &[Vec<String>]) {
    let cell = |cell: &String| cell.replace('|', "\\|");
    let mut line = |cells: &mut dyn Iterator<Item = String>| {
        text.push_str(&format!("| {} |\n", cells.collect::<Vec<_>>().join(" | ")));
    };
    line(&mut heads.iter().map(cell));
    line(&mut heads.iter().map(|_| "---".to_owned()));
    for row in rows {
        line(&mut row.iter().map(cell));
    }
}

/// Mean, lowest and highest of a value in a CSV file; empty where there is none.
pub(crate) fn spread_numbers(spread: Option<&Spread>) -> [String; 3] {
    spread
        .map(|spread| [spread.mean, spread.low, spread.high].map(|number| number.to_string()))
        .unwrap_or_default()
}

/// As CSV: a line for each cell, with mean, lowest and highest of each column.
pub(super) fn csv(report: &ExperimentReport) -> String {
    let quoted = |text: &str| {
        if text.contains(['"', ',', '\n']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_owned()
        }
    };
    let mut heads: Vec<String> = report.factors.iter().map(|factor| quoted(&factor.name)).collect();
    for column in &report.columns {
        for part in ["mean", "low", "high"] {
            heads.push(quoted(&format!("{} {part}", column.title)));
        }
    }
    heads.extend(["runs".to_owned(), "valid".to_owned()]);
    let mut text = heads.join(",") + "\n";
    for cell in &report.cells {
        let mut line: Vec<String> = cell.labels.iter().map(|label| quoted(label)).collect();
        for spread in &cell.values {
            line.extend(spread_numbers(spread.as_ref()));
        }
        let runs = cell.values.iter().flatten().map(|spread| spread.runs).max().unwrap_or(0);
        line.push(runs.to_string());
        line.push(cell.is_valid().to_string());
        text.push_str(&(line.join(",") + "\n"));
    }
    text
}

impl ExperimentReport {
    /// Writes `experiment.json`, `.html`, `.md` and `.csv` into a folder, which is made if need be, and a picture of each
    /// chart with lines, such as `average-response.svg`.
    ///
    /// # Errors
    /// A file cannot be written, or a chart not be drawn.
    pub fn write(&self, folder: &Path) -> Result<(), ReportError> {
        let files = [
            ("experiment.json", serde_json::to_string_pretty(self)? + "\n"),
            ("experiment.html", page::page(&self.as_kept_in(folder))?),
            ("experiment.md", markdown(self)),
            ("experiment.csv", csv(self)),
        ];
        let files = files.map(|(name, text)| (name.to_owned(), text));
        write_all(folder, files.into_iter().chain(picture::pictures(self)?))
    }
}
