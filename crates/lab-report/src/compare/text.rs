//! A comparison as text: for a terminal, as Markdown, as CSV.

use super::{Comparison, Metric};
use crate::experiment::{factor, spread_numbers, value};

/// The row of a value: each side, and what the others are of the first.
pub(super) fn row(metric: &Metric) -> Vec<String> {
    let mut row = vec![metric.title.clone()];
    row.extend(metric.values.iter().map(|spread| value(spread.as_ref(), metric.unit)));
    row.extend(
        (1..metric.values.len()).map(|side| metric.ratio(side).map_or_else(|| "\u{2013}".to_owned(), factor)),
    );
    row
}

pub(super) fn heads(comparison: &Comparison) -> Vec<String> {
    let names: Vec<&str> = comparison.sides.iter().map(|side| side.name.as_str()).collect();
    let first = names.first().copied().unwrap_or_default();
    let mut heads = vec![String::new()];
    heads.extend(names.iter().map(|name| (*name).to_owned()));
    heads.extend(names.iter().skip(1).map(|name| format!("{name}/{first}")));
    heads
}

pub(super) fn terminal(comparison: &Comparison) -> String {
    let mut text = String::new();
    for side in &comparison.sides {
        let runs = if side.runs == 1 { "1 run".to_owned() } else { format!("{} runs", side.runs) };
        text.push_str(&format!("{}  {} ({runs})  {}\n", side.name, side.heading, side.path));
    }
    text.push('\n');
    let mut lines = vec![heads(comparison)];
    lines.extend(comparison.metrics.iter().map(row));
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for (index, line) in lines.iter().enumerate() {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let space = " ".repeat(width.saturating_sub(cell.chars().count()));
            if column == 0 { format!("{cell}{space}") } else { format!("{space}{cell}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
        if index == 0 {
            let total = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
            text.push_str(&format!("{}\n", "\u{2500}".repeat(total)));
        }
    }
    if !comparison.differences.is_empty() {
        text.push_str("\nDifferent set-ups:\n");
        for difference in &comparison.differences {
            let values: Vec<String> = comparison
                .sides
                .iter()
                .zip(&difference.values)
                .map(|(side, value)| format!("{} {value}", side.name))
                .collect();
            text.push_str(&format!("  {}: {}\n", difference.what, values.join(", ")));
        }
    }
    text.push('\n');
    for verdict in &comparison.verdicts {
        text.push_str(&format!("\u{b7} {verdict}\n"));
    }
    for warning in &comparison.warnings {
        text.push_str(&format!("Note: {warning}.\n"));
    }
    text
}

pub(super) fn markdown(comparison: &Comparison) -> String {
    let mut text = "# Comparison\n\n".to_owned();
    for side in &comparison.sides {
        text.push_str(&format!("- **{}**: {} ({}), `{}`\n", side.name, side.heading, side.runs, side.path));
    }
    text.push_str("\n## What differs\n\n");
    for verdict in &comparison.verdicts {
        text.push_str(&format!("- {verdict}\n"));
    }
    for warning in &comparison.warnings {
        text.push_str(&format!("- Note: {warning}.\n"));
    }
    text.push('\n');
    let heads = heads(comparison);
    let mut line = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    };
    line(heads.clone());
    line(heads.iter().map(|_| "---".to_owned()).collect());
    for metric in &comparison.metrics {
        line(row(metric));
    }
    if !comparison.differences.is_empty() {
        text.push_str("\n## Different set-ups\n\n");
        for difference in &comparison.differences {
            text.push_str(&format!("- {}: {}\n", difference.what, difference.values.join(" | ")));
        }
    }
    text.push_str(&format!("\n## To repeat it\n\n    {}\n", comparison.command));
    text
}

pub(super) fn csv(comparison: &Comparison) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let mut heads = vec!["metric".to_owned(), "unit".to_owned()];
    for side in &comparison.sides {
        heads.extend(["mean", "low", "high"].map(|part| format!("{} {part}", side.name)));
    }
    let mut text = heads.join(",") + "\n";
    for metric in &comparison.metrics {
        let unit = serde_json::to_string(&metric.unit).unwrap_or_default();
        let mut line = vec![quoted(&metric.title), unit];
        for spread in &metric.values {
            line.extend(spread_numbers(spread.as_ref()));
        }
        text.push_str(&(line.join(",") + "\n"));
    }
    text
}
