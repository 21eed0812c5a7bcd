//! `experiment.html`: hypothesis, tables and charts, the source's beside ours, and how to repeat it; one page that needs
//! nothing else.

use super::findings::{number, shown};
use super::model::{CellPart, ExperimentReport, FigurePart, LoadReport, Published, Spread, Unit};
use super::{search, text};
use crate::error::ReportError;
use crate::numbers::{bytes_scale, thousands, time};
use crate::page::{
    COLOURS_OF_SERIES, CurvePoint, Curves, Marks, begin, escape, keys, lines_figure, series_variable, table,
};

/// The page.
///
/// # Errors
/// [`ReportError::Chart`] when a chart cannot be drawn.
pub(super) fn page(report: &ExperimentReport) -> Result<String, ReportError> {
    let mut page = begin(&report.title);
    page.push_str(&header(report));
    page.push_str(&objectives(report));
    page.push_str(&list("What it showed", &report.findings));
    for figure in &report.figures {
        page.push_str(&figure_section(figure)?);
    }
    for cell in report.searched() {
        page.push_str(&search::section(cell)?);
    }
    page.push_str(&all_cells(report));
    for table in &report.published {
        page.push_str(&format!(
            "<h2>{}<small>the source</small></h2>\n{}",
            escape(&table.title),
            published(table)
        ));
    }
    page.push_str(&list("What is otherwise than in the source", &report.choices));
    page.push_str(&list("Notes", &report.notes));
    page.push_str(&set_up(report));
    page.push_str("</main>\n</body>\n</html>\n");
    Ok(page)
}

fn header(report: &ExperimentReport) -> String {
    let lines: String = text::stars(report)
        .iter()
        .chain(&text::left_out(report))
        .map(|line| format!("<li class=\"bad\">{}</li>", escape(line)))
        .collect();
    let verdict = match (report.is_whole(), report.left_out()) {
        (true, 0) => {
            "<p class=\"verdict good\">Every cell was measured, and every run is valid</p>".to_owned()
        }
        (true, _) => format!(
            "<p class=\"verdict bad\">Every cell was measured, with some runs left out</p><ul class=\"notes\">{lines}</ul>"
        ),
        (false, _) => {
            format!("<p class=\"verdict bad\">Some cells say nothing</p><ul class=\"notes\">{lines}</ul>")
        }
    };
    format!(
        "<header>\n<p class=\"kicker\">Scrinium laboratory \u{b7} experiment {} \u{b7} {} form \u{b7} {}</p>\n<h1>{}</h1>\n<p class=\"about\"><b>Hypothesis.</b> {}</p>\n<p class=\"about\"><b>Source.</b> {}</p>\n{verdict}\n</header>\n",
        escape(&report.name),
        report.form.name(),
        escape(&report.began.replace('T', " ").replace('Z', " UTC")),
        escape(&report.title),
        escape(&report.hypothesis),
        escape(&report.source),
    )
}

fn list(head: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", escape(line))).collect();
    format!("<h2>{head}</h2>\n<ul class=\"findings\">\n{items}</ul>\n")
}

/// A table of what was asked, measured and held.
fn objectives(report: &ExperimentReport) -> String {
    if report.objectives.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = report
        .objectives
        .iter()
        .map(|objective| {
            let class = match objective.held {
                Some(true) => "good",
                Some(false) => "bad",
                None => "",
            };
            let measured = objective.measured.as_ref().map(|measured| {
                format!("{}<small>{}</small>", escape(measured), escape(&objective.cell.join(", ")))
            });
            vec![
                format!("{}<small>{}</small>", escape(&objective.title), escape(&objective.column)),
                escape(&objective.asked),
                measured.unwrap_or_else(|| "\u{2013}".to_owned()),
                format!("<span class=\"{class}\">{}</span>", objective.verdict()),
            ]
        })
        .collect();
    format!("<h2>What was asked</h2>\n{}", table(&["Objective", "Asked", "Measured", ""], &rows))
}

/// A value, and what its runs differed by in small letters.
pub(crate) fn cell(spread: Option<&Spread>, unit: Unit) -> String {
    let Some(spread) = spread else { return "\u{2013}".to_owned() };
    let (low, high) = (shown(spread.low, unit), shown(spread.high, unit));
    let mean = shown(spread.mean, unit);
    if spread.runs < 2 || low == high { mean } else { format!("{mean} <small>{low}\u{2013}{high}</small>") }
}

fn references(heads: &[String]) -> Vec<&str> {
    heads.iter().map(String::as_str).collect()
}

fn published(table_of: &Published) -> String {
    let heads: Vec<String> = table_of.columns.iter().map(|head| escape(head)).collect();
    let rows: Vec<Vec<String>> =
        table_of.rows.iter().map(|row| row.iter().map(|cell| escape(cell)).collect()).collect();
    let note = if table_of.note.is_empty() {
        String::new()
    } else {
        format!("<p class=\"published\">{}</p>\n", escape(&table_of.note))
    };
    format!("{}{note}", table(&references(&heads), &rows))
}

/// Chart, our table, and the source's beside it.
fn figure_section(figure: &FigurePart) -> Result<String, ReportError> {
    let fixed = if figure.fixed.is_empty() {
        String::new()
    } else {
        format!("; {}", escape(&figure.fixed.join(", ")))
    };
    let mut heads = vec![escape(&figure.rows_title)];
    match figure.series.as_slice() {
        [] => heads.push(escape(&figure.title)),
        series => heads.extend(series.iter().map(|label| escape(label))),
    }
    let rows: Vec<Vec<String>> = figure
        .rows
        .iter()
        .zip(&figure.values)
        .map(|(label, values)| {
            let values = values.iter().map(|spread| cell(spread.as_ref(), figure.unit));
            std::iter::once(escape(label)).chain(values).collect()
        })
        .collect();
    let ours = table(&references(&heads), &rows);
    let tables = match &figure.published {
        None => ours,
        Some(theirs) => format!(
            "<div class=\"beside\"><div><h3>Here</h3>{ours}</div><div><h3>{}</h3>{}</div></div>\n",
            escape(&theirs.title),
            published(theirs)
        ),
    };
    Ok(format!(
        "<h2>{}<small>by {}{}{fixed}</small></h2>\n{}{tables}",
        escape(&figure.title),
        escape(&figure.rows_title),
        if figure.series.is_empty() {
            String::new()
        } else {
            format!(" and {}", escape(&figure.series_title))
        },
        chart(figure)?
    ))
}

/// Lines where the rows are numbers, else bars.
fn chart(figure: &FigurePart) -> Result<String, ReportError> {
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
fn bars(figure: &FigurePart) -> String {
    let highest = figure.values.iter().flatten().flatten().map(|spread| spread.high).fold(0.0, f64::max);
    if highest <= 0.0 {
        return String::new();
    }
    let mut rows = String::new();
    for (label, values) in figure.rows.iter().zip(&figure.values) {
        for (column, spread) in values.iter().enumerate() {
            let Some(spread) = spread else { continue };
            let name = if column == 0 { escape(label) } else { String::new() };
            let width = 100.0 * spread.mean / highest;
            rows.push_str(&format!(
                "<span class=\"of\">{name}</span><span class=\"track\"><i style=\"width:{width:.1}%;background:var({})\"></i></span><span class=\"is\">{}</span>\n",
                series_variable(column % COLOURS_OF_SERIES),
                cell(Some(spread), figure.unit)
            ));
        }
    }
    let keys = if columns(figure) > 1 {
        format!("<figcaption><span class=\"keys\">{}</span></figcaption>", keys(&figure.series))
    } else {
        String::new()
    };
    format!("<figure class=\"wide\">{keys}<div class=\"bars\">{rows}</div></figure>\n")
}

fn all_cells(report: &ExperimentReport) -> String {
    let mut heads: Vec<String> = report.factors.iter().map(|factor| escape(&factor.title)).collect();
    heads.extend(report.columns.iter().map(|column| escape(&column.title)));
    heads.push("Runs".to_owned());
    let row = |part: &CellPart| {
        let mut row: Vec<String> =
            part.labels.iter().map(|label| format!("<td class=\"left\">{}</td>", escape(label))).collect();
        let values = report.columns.iter().zip(&part.values);
        row.extend(values.map(|(column, spread)| cell(spread.as_ref(), column.unit)));
        row.push(runs(part));
        row
    };
    let rows: Vec<Vec<String>> = report.cells.iter().map(row).collect();
    format!(
        "<h2>All cells<small>average of the runs, lowest and highest in small letters</small></h2>\n{}",
        table(&references(&heads), &rows)
    )
}

/// Links to the reports of a cell's runs, or why there are none.
fn runs(part: &CellPart) -> String {
    if part.failed.is_some() {
        return "<span class=\"bad\">not measured</span>".to_owned();
    }
    let link = |report: &LoadReport| {
        let alone = part.load_reports.iter().filter(|other| other.run == report.run).count() == 1;
        let name = if alone { report.run.to_string() } else { format!("{} {}", report.run, report.load) };
        match report.folder.as_str() {
            "" => escape(&name),
            folder => format!("<a href=\"{}/report.html\">{}</a>", escape(folder), escape(&name)),
        }
    };
    let links: Vec<String> = part.load_reports.iter().map(link).collect();
    let marked = if part.invalid.is_empty() { "" } else { " <span class=\"bad\">not valid</span>" };
    format!("{}{marked}", links.join(" "))
}

fn set_up(report: &ExperimentReport) -> String {
    let settings = |cell: &CellPart| {
        let settings: Vec<String> = cell
            .settings
            .iter()
            .map(|(name, value)| format!("<code>{}</code> = {}", escape(name), escape(value)))
            .collect();
        let settings = if settings.is_empty() { "defaults".to_owned() } else { settings.join(", ") };
        format!("{}: {settings}", escape(&cell.labels.join(", ")))
    };
    let mut cells: Vec<String> = report.cells.iter().map(settings).collect();
    cells.dedup();
    let parameters: Vec<String> = report
        .parameters
        .iter()
        .map(|(name, value)| format!("{} = {}", escape(name), escape(value)))
        .collect();
    let rows = [
        ("Machine and versions", escape(&text::set_up(report))),
        ("Server\u{2019}s command", format!("<code>{}</code>", escape(&report.server_command))),
        ("Settings that are no defaults", cells.join("<br>")),
        ("Parameters", parameters.join(", ")),
        ("Experiment", escape(&report.origin)),
        (
            "Length",
            format!(
                "{}; each cell {}",
                time(report.seconds),
                if report.repeats == 1 { "once".to_owned() } else { format!("{} times", report.repeats) }
            ),
        ),
    ];
    let rows: String =
        rows.iter().map(|(name, value)| format!("<dt>{name}</dt><dd>{value}</dd>\n")).collect();
    format!(
        "<h2>Set-up</h2>\n<dl>\n{rows}</dl>\n<h2>To repeat it</h2>\n<pre>{}</pre>\n<footer>Made by scrinium lab {}. The same is in experiment.md, experiment.csv and experiment.json.</footer>\n",
        escape(&report.command),
        escape(&report.laboratory_version)
    )
}
