//! From what was measured of cells to the report of an experiment.

use scrinium_lab_report::experiment::{
    CellPart, ColumnPart, ExperimentReport, FORMAT, FactorPart, FigurePart, Form, LeftOut, LoadReport, Spread,
};

use super::cells::{Cell, Plan};
use super::definition::{Column, Figure};
use super::kept::CellRun;
use super::library::Experiment;
use super::objective::Measured;
use crate::monitor::this_machine;

/// What an experiment was made with.
pub(super) struct ReportInputs<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) plan: &'a Plan,
    pub(super) form: Form,
    pub(super) server_command: &'a str,
    pub(super) command: &'a str,
    pub(super) began: jiff::Timestamp,
    pub(super) seconds: f64,
}

/// The report of an experiment whose cells were measured.
pub(super) fn report_of(making: &ReportInputs<'_>, runs: &[CellRun]) -> ExperimentReport {
    let definition = &making.experiment.definition;
    let factors: Vec<FactorPart> = making
        .plan
        .factors
        .iter()
        .map(|(factor, levels)| FactorPart {
            name: factor.name.clone(),
            title: factor.title.clone(),
            levels: levels.iter().map(|level| level.label.clone()).collect(),
        })
        .collect();
    let cells: Vec<CellPart> =
        making.plan.cells.iter().map(|cell| cell_part(cell, &definition.columns, runs)).collect();
    let columns: Vec<ColumnPart> = definition
        .columns
        .iter()
        .map(|column| ColumnPart { title: column.title.clone(), unit: column.unit })
        .collect();
    let figures = definition.figures.iter().map(|figure| figure_part(figure, &factors, &columns, &cells));
    let figures = figures.collect();
    let measured = Measured { form: making.form, factors: &factors, columns: &columns, cells: &cells };
    let objectives = measured.judge(&definition.objectives);
    let server = runs.iter().find_map(|run| run.server.clone()).unwrap_or_default();
    let mut notes: Vec<String> = Vec::new();
    for note in runs.iter().flat_map(|run| &run.notes) {
        if !notes.contains(note) && notes.len() < MOST_NOTES {
            notes.push(note.clone());
        }
    }
    let mut report = ExperimentReport {
        format: FORMAT.to_owned(),
        name: making.experiment.name.clone(),
        title: definition.title.clone(),
        hypothesis: definition.hypothesis.clone(),
        source: definition.source.clone(),
        choices: definition.choices.clone(),
        origin: making.experiment.origin.clone(),
        form: making.form,
        repeats: making.plan.runs(),
        machine: this_machine(),
        server_name: server.0,
        server_version: server.1,
        server_command: making.server_command.to_owned(),
        laboratory_version: env!("CARGO_PKG_VERSION").to_owned(),
        began: format!("{:.0}", making.began),
        seconds: making.seconds,
        parameters: making.plan.parameters.clone(),
        factors,
        columns,
        cells,
        figures,
        published: definition.published.clone(),
        objectives,
        findings: Vec::new(),
        notes,
        command: making.command.to_owned(),
    };
    report.set_findings();
    report
}

/// Drivers say much the same of each run.
const MOST_NOTES: usize = 40;

fn cell_part(cell: &Cell, columns: &[Column], runs: &[CellRun]) -> CellPart {
    let runs: Vec<&CellRun> = runs.iter().filter(|run| run.labels == cell.labels).collect();
    let valid: Vec<&&CellRun> =
        runs.iter().filter(|run| run.invalid.is_empty() && run.failed.is_none()).collect();
    // Values of runs that are not valid are shown where there are no others.
    let counted: Vec<&CellRun> =
        if valid.is_empty() { runs.clone() } else { valid.iter().map(|run| **run).collect() };
    let values = columns.iter().map(|column| {
        let values: Vec<f64> = counted.iter().filter_map(|run| value(column, run, cell)).collect();
        Spread::of(&values)
    });
    let invalid =
        if valid.is_empty() { runs.iter().flat_map(|run| run.invalid.clone()).collect() } else { Vec::new() };
    let failed = if valid.is_empty() { runs.iter().find_map(|run| run.failed.clone()) } else { None };
    let measured = || runs.iter().filter(|run| run.failed.is_none());
    let folder = |run: &CellRun| format!("cells/{}-{}", cell.slug(), run.repeat);
    let load_report = |run: &CellRun, load: &String| LoadReport {
        run: run.repeat,
        load: load.clone(),
        folder: format!("{}/{load}", folder(run)),
    };
    CellPart {
        labels: cell.labels.clone(),
        settings: runs.iter().map(|run| run.settings.clone()).next_back().unwrap_or_default(),
        values: values.collect(),
        invalid,
        failed,
        left_out: if valid.is_empty() {
            Vec::new()
        } else {
            runs.iter().filter_map(|run| left_out(run)).collect()
        },
        search: counted.iter().flat_map(|run| run.search.clone()).collect(),
        reports: measured().map(|run| folder(run)).collect(),
        load_reports: measured()
            .flat_map(|run| run.loads.iter().map(|load| load_report(run, load)))
            .collect(),
    }
}

fn left_out(run: &CellRun) -> Option<LeftOut> {
    let of = |failed, why: &String| LeftOut { run: run.repeat, failed, why: why.clone() };
    let failed = run.failed.as_ref().map(|why| of(true, why));
    failed.or_else(|| run.invalid.first().map(|why| of(false, why)))
}

/// A column's value of one run.
fn value(column: &Column, run: &CellRun, cell: &Cell) -> Option<f64> {
    let value = *run.values.get(&column.value)?;
    let Some(per) = &column.per else { return Some(value) };
    let divisor = match per.strip_prefix('$') {
        Some(name) => cell.values.get(name)?.parse().ok()?,
        None => *run.values.get(per)?,
    };
    (divisor != 0.0).then(|| value / divisor)
}

fn figure_part(
    figure: &Figure,
    factors: &[FactorPart],
    columns: &[ColumnPart],
    cells: &[CellPart],
) -> FigurePart {
    let at = |name: &str| factors.iter().position(|factor| factor.name == name);
    let levels = |index: Option<usize>| index.and_then(|index| factors.get(index)).cloned();
    let (rows_at, series_at) = (at(&figure.rows), figure.series.as_deref().and_then(at));
    let rows = levels(rows_at);
    let series = levels(series_at);
    let column = columns.iter().position(|column| column.title == figure.column);
    // Of the factors that it does not show, the first level.
    let others: Vec<(usize, String)> = factors
        .iter()
        .enumerate()
        .filter(|(index, _)| Some(*index) != rows_at && Some(*index) != series_at)
        .filter_map(|(index, factor)| Some((index, factor.levels.first()?.clone())))
        .collect();
    let find = |row: &str, line: Option<&str>| {
        let is = |cell: &CellPart, index: Option<usize>, label: &str| {
            index.and_then(|index| cell.labels.get(index)).is_some_and(|found| found == label)
        };
        let cell = cells.iter().find(|cell| {
            is(cell, rows_at, row)
                && line.is_none_or(|line| is(cell, series_at, line))
                && others.iter().all(|(index, label)| is(cell, Some(*index), label))
        })?;
        if cell.invalid.is_empty() { cell.values.get(column?).copied().flatten() } else { None }
    };
    let row_labels = rows.as_ref().map(|factor| factor.levels.clone()).unwrap_or_default();
    let series_labels = series.as_ref().map(|factor| factor.levels.clone()).unwrap_or_default();
    let values = row_labels.iter().map(|row| match series_labels.as_slice() {
        [] => vec![find(row, None)],
        labels => labels.iter().map(|label| find(row, Some(label))).collect(),
    });
    FigurePart {
        title: figure.column.clone(),
        unit: column.and_then(|index| columns.get(index)).map(|column| column.unit).unwrap_or_default(),
        rows_title: rows.as_ref().map(|factor| factor.title.clone()).unwrap_or_default(),
        values: values.collect(),
        rows: row_labels,
        series_title: series.map(|factor| factor.title).unwrap_or_default(),
        series: series_labels,
        fixed: others
            .into_iter()
            .filter_map(|(index, label)| Some(format!("{}: {label}", factors.get(index)?.title)))
            .collect(),
        published: figure.published.clone(),
    }
}
