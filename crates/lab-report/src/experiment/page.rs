//! `experiment.html`: hypothesis, tables and charts, the source's next to ours, and how to repeat it; one page that needs
//! nothing else.

use super::findings::{number, shown};
use super::model::{CellPart, ExperimentReport, FigurePart, LoadReport, Published, Spread, Unit};
use super::objective::ObjectivePart;
use super::{search, text};
use crate::error::ReportError;
use crate::numbers::{bytes_scale, thousands, time};
use crate::page::{
    COLOURS_OF_SERIES, CurvePoint, Curves, Marks, Markup, TableCell, document, heads, html, keys,
    lines_figure, list, section_head, series_variable, table,
};

/// The page.
///
/// # Errors
/// [`ReportError::Chart`] when a chart cannot be drawn.
pub(super) fn page(report: &ExperimentReport) -> Result<String, ReportError> {
    let figures: Result<Vec<Markup>, ReportError> = report.figures.iter().map(figure_section).collect();
    let searches: Result<Vec<Markup>, ReportError> = report.searched().map(search::section).collect();
    let main = html! {
        (header(report))
        (objectives(report))
        (list("What it showed", &report.findings))
        @for section in figures?.iter().chain(&searches?) { (section) }
        (all_cells(report))
        @for table in &report.published {
            (section_head(&table.title, "the source"))
            (published(table))
        }
        (list("What is otherwise than in the source", &report.choices))
        (list("Notes", &report.notes))
        (set_up(report))
    };
    Ok(document(&report.title, &main))
}

fn header(report: &ExperimentReport) -> Markup {
    let lines: Vec<String> = text::stars(report).into_iter().chain(text::left_out(report)).collect();
    let (class, verdict) = match (report.is_whole(), report.left_out()) {
        (true, 0) => ("good", "Every cell was measured, and every run is valid"),
        (true, _) => ("bad", "Every cell was measured, with some runs left out"),
        (false, _) => ("bad", "Some cells say nothing"),
    };
    html! {
        header { "\n"
            p class="kicker" {
                "Scrinium laboratory \u{b7} experiment " (report.name) " \u{b7} " (report.form.name()) " form \u{b7} "
                (report.began.replace('T', " ").replace('Z', " UTC"))
            } "\n"
            h1 { (report.title) } "\n"
            p class="about" { b { "Hypothesis." } " " (report.hypothesis) } "\n"
            p class="about" { b { "Source." } " " (report.source) } "\n"
            p class={ "verdict " (class) } { (verdict) }
            @if class == "bad" { ul class="notes" { @for line in &lines { li class="bad" { (line) } } } }
            "\n"
        } "\n"
    }
}

/// A table of what was asked, measured and held.
fn objectives(report: &ExperimentReport) -> Markup {
    if report.objectives.is_empty() {
        return Markup::default();
    }
    let row = |objective: &ObjectivePart| -> Vec<TableCell> {
        let class = match objective.held {
            Some(true) => "good",
            Some(false) => "bad",
            None => "",
        };
        let measured = html! {
            @match &objective.measured {
                Some(measured) => { (measured) small { (objective.cell.join(", ")) } }
                None => "\u{2013}",
            }
        };
        vec![
            html! { (objective.title) small { (objective.column) } }.into(),
            objective.asked.as_str().into(),
            measured.into(),
            html! { span class=(class) { (objective.verdict()) } }.into(),
        ]
    };
    let rows: Vec<Vec<TableCell>> = report.objectives.iter().map(row).collect();
    html! {
        h2 { "What was asked" } "\n"
        (table(&heads(["Objective", "Asked", "Measured", ""]), &rows))
    }
}

/// A value, and what its runs differed by in small letters.
pub(crate) fn cell(spread: Option<&Spread>, unit: Unit) -> Markup {
    let Some(spread) = spread else { return html! { "\u{2013}" } };
    let (low, high) = (shown(spread.low, unit), shown(spread.high, unit));
    let mean = shown(spread.mean, unit);
    html! {
        (mean)
        @if spread.runs > 1 && low != high { " " small { (low) "\u{2013}" (high) } }
    }
}

fn published(published: &Published) -> Markup {
    let row = |row: &Vec<String>| row.iter().map(|cell| cell.as_str().into()).collect();
    let rows: Vec<Vec<TableCell>> = published.rows.iter().map(row).collect();
    html! {
        (table(&heads(published.columns.iter().map(String::as_str)), &rows))
        @if !published.note.is_empty() { p class="published" { (published.note) } "\n" }
    }
}

/// Chart, our table, and the source's next to it.
fn figure_section(figure: &FigurePart) -> Result<Markup, ReportError> {
    let series = if figure.series.is_empty() { std::slice::from_ref(&figure.title) } else { &figure.series };
    let head_texts = std::iter::once(&figure.rows_title).chain(series);
    let row = |(label, values): (&String, &Vec<Option<Spread>>)| -> Vec<TableCell> {
        let values = values.iter().map(|spread| cell(spread.as_ref(), figure.unit).into());
        std::iter::once(label.as_str().into()).chain(values).collect()
    };
    let rows: Vec<Vec<TableCell>> = figure.rows.iter().zip(&figure.values).map(row).collect();
    let ours = table(&heads(head_texts.map(String::as_str)), &rows);
    let chart = chart(figure)?;
    Ok(html! {
        h2 {
            (figure.title)
            small {
                "by " (figure.rows_title)
                @if !figure.series.is_empty() { " and " (figure.series_title) }
                @if !figure.fixed.is_empty() { "; " (figure.fixed.join(", ")) }
            }
        } "\n"
        (chart)
        @match &figure.published {
            None => { (ours) }
            Some(theirs) => {
                div class="beside" {
                    div { h3 { "Here" } (ours) }
                    div { h3 { (theirs.title) } (published(theirs)) }
                } "\n"
            }
        }
    })
}

/// Lines where the rows are numbers, else bars.
fn chart(figure: &FigurePart) -> Result<Markup, ReportError> {
    let Some(svg) = lines(figure)? else { return Ok(bars(figure)) };
    Ok(lines_figure(&figure.title, &figure.series, &svg))
}

/// The figure's lines as an `<svg>` element; `None` where its rows are no numbers, or too few were measured.
pub(super) fn lines(figure: &FigurePart) -> Result<Option<String>, ReportError> {
    let xs: Option<Vec<f64>> = figure.rows.iter().map(|label| number(label)).collect();
    let measured = figure.values.iter().flatten().flatten().count();
    let Some(xs) = xs.filter(|xs| xs.len() > 1 && measured > 1) else { return Ok(None) };
    let line = |column: usize| -> Vec<CurvePoint> {
        xs.iter()
            .zip(&figure.values)
            .filter_map(|(x, values)| {
                let spread = values.get(column).copied().flatten()?;
                Some(CurvePoint { x: *x, low: spread.low, mean: spread.mean, high: spread.high })
            })
            .collect()
    };
    let mut lines: Vec<Vec<CurvePoint>> = (0..columns(figure)).map(line).collect();
    let highest = lines.iter().flatten().map(|point| point.high).fold(0.0, f64::max);
    let (divisor, bytes_unit) = bytes_scale(highest);
    if figure.unit == Unit::Bytes {
        for point in lines.iter_mut().flatten() {
            (point.low, point.mean, point.high) =
                (point.low / divisor, point.mean / divisor, point.high / divisor);
        }
    }
    let show_y = |value: f64| match figure.unit {
        Unit::Bytes => format!("{}{bytes_unit}", thousands(value)),
        unit => shown(value, unit),
    };
    let curves = Curves { lines, show_x: &thousands, show_y: &show_y, marks: Marks::All, logarithmic: true };
    curves.svg().map(Some)
}

fn columns(figure: &FigurePart) -> usize {
    figure.values.iter().map(Vec::len).max().unwrap_or(0)
}

/// A bar for each row and series.
fn bars(figure: &FigurePart) -> Markup {
    let highest = figure.values.iter().flatten().flatten().map(|spread| spread.high).fold(0.0, f64::max);
    if highest <= 0.0 {
        return Markup::default();
    }
    let style = |spread: &Spread, column: usize| {
        let width = 100.0 * spread.mean / highest;
        format!("width:{width:.1}%;background:var({})", series_variable(column % COLOURS_OF_SERIES))
    };
    html! {
        figure class="wide" {
            @if columns(figure) > 1 { figcaption { span class="keys" { (keys(&figure.series)) } } }
            div class="bars" {
                @for (label, values) in figure.rows.iter().zip(&figure.values) {
                    @for (column, spread) in values.iter().enumerate() {
                        @if let Some(spread) = spread {
                            span class="of" { @if column == 0 { (label) } }
                            span class="track" { i style=(style(spread, column)) {} }
                            span class="is" { (cell(Some(spread), figure.unit)) } "\n"
                        }
                    }
                }
            }
        } "\n"
    }
}

fn all_cells(report: &ExperimentReport) -> Markup {
    let factors = report.factors.iter().map(|factor| factor.title.as_str());
    let columns = report.columns.iter().map(|column| column.title.as_str());
    let heads = heads(factors.chain(columns).chain(["Runs"]));
    let row = |part: &CellPart| -> Vec<TableCell> {
        let labels = part.labels.iter().map(|label| TableCell::of_class("left", html! { (label) }));
        let values = report.columns.iter().zip(&part.values);
        let values = values.map(|(column, spread)| cell(spread.as_ref(), column.unit).into());
        labels.chain(values).chain([runs(part).into()]).collect()
    };
    let rows: Vec<Vec<TableCell>> = report.cells.iter().map(row).collect();
    html! {
        (section_head("All cells", "average of the runs, lowest and highest in small letters"))
        (table(&heads, &rows))
    }
}

/// Links to the reports of a cell's runs, or why there are none.
fn runs(part: &CellPart) -> Markup {
    if part.failed.is_some() {
        return html! { span class="bad" { "not measured" } };
    }
    let name = |report: &LoadReport| {
        let alone = part.load_reports.iter().filter(|other| other.run == report.run).count() == 1;
        if alone { report.run.to_string() } else { format!("{} {}", report.run, report.load) }
    };
    html! {
        @for (index, report) in part.load_reports.iter().enumerate() {
            @if index > 0 { " " }
            @if report.folder.is_empty() {
                (name(report))
            } @else {
                a href={ (report.folder) "/report.html" } { (name(report)) }
            }
        }
        @if !part.invalid.is_empty() { " " span class="bad" { "not valid" } }
    }
}

/// Settings of a cell that are not the defaults.
fn settings(cell: &CellPart) -> Markup {
    html! {
        (cell.labels.join(", ")) ": "
        @if cell.settings.is_empty() { "defaults" }
        @for (index, (name, value)) in cell.settings.iter().enumerate() {
            @if index > 0 { ", " }
            code { (name) } " = " (value)
        }
    }
}

fn set_up(report: &ExperimentReport) -> Markup {
    let mut cells: Vec<Markup> = report.cells.iter().map(settings).collect();
    cells.dedup_by(|one, other| one.0 == other.0);
    let cells = html! {
        @for (index, cell) in cells.iter().enumerate() {
            @if index > 0 { br; }
            (cell)
        }
    };
    let parameters: Vec<String> =
        report.parameters.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let times = if report.repeats == 1 { "once".to_owned() } else { format!("{} times", report.repeats) };
    let rows = [
        ("Machine and versions", html! { (text::set_up(report)) }),
        ("Server\u{2019}s command", html! { code { (report.server_command) } }),
        ("Settings that are no defaults", cells),
        ("Parameters", html! { (parameters.join(", ")) }),
        ("Experiment", html! { (report.origin) }),
        ("Length", html! { (time(report.seconds)) "; each cell " (times) }),
    ];
    html! {
        h2 { "Set-up" } "\n"
        dl { "\n" @for (name, value) in &rows { dt { (name) } dd { (value) } "\n" } } "\n"
        h2 { "To repeat it" } "\n"
        pre { (report.command) } "\n"
        footer {
            "Made by scrinium lab " (report.laboratory_version)
            ". The same is in experiment.md, experiment.csv and experiment.json."
        } "\n"
    }
}
