//! `report.html`: one page that needs nothing else.

use super::model::{OperationRow, Report, SecondRow, Summary};
use super::parts::Phase;
use super::{probe, sections};
use crate::error::ReportError;
use crate::numbers::{bytes, bytes_scale, milliseconds, thousands, time};
use crate::page::{
    Chart, Markup, STYLE, Series, TableCell, broken, figure, heads, html, inline_svg, key, list,
    milliseconds_axis, ms, optional, section_head, styled_document, table,
};

/// The page.
///
/// # Errors
/// [`ReportError::Chart`] when a chart cannot be drawn.
pub fn page(report: &Report) -> Result<String, ReportError> {
    let (charts, probe) = (charts(report)?, probe::section(report)?);
    let main = html! {
        (header(report))
        (figures(&report.summary))
        (list("What it showed", &report.findings))
        (list("Notes", &report.run.notes))
        (summary_table(report))
        (sections::repeats(report))
        (charts)
        (probe)
        (operations(report))
        (failures(report))
        (sections::drivers(report))
        (set_up(report))
    };
    Ok(styled_document(&report.heading, STYLE, &main))
}

fn header(report: &Report) -> Markup {
    let run = &report.run;
    let (class, verdict) = match (report.validity.valid, report.passed()) {
        (true, true) => ("good", "Valid run, every objective reached"),
        (true, false) => ("bad", "Valid run, an objective was missed"),
        (false, _) => ("bad", "Not a valid run: it says nothing about the server"),
    };
    let missed = report.objectives.iter().filter(|objective| !objective.reached);
    html! {
        header { "\n"
            p class="kicker" {
                "Scrinium laboratory \u{b7} load run \u{b7} " (run.began.replace('T', " ").replace('Z', " UTC"))
            } "\n"
            h1 { (report.workload.name) ", " (thousands(run.users as f64)) " users" } "\n"
            p class="about" {
                (pace(report)) " " (capital(&report.workload.title)) ". Server: "
                (format!("{} {}", run.server_name, run.server_version).trim()) " at " (run.target) "; "
                (run.model) " model, " (time(report.summary.hold_s)) " counted."
            } "\n"
            p class={ "verdict " (class) } { (verdict) } "\n"
            ul class="notes" {
                @for reason in &report.validity.reasons { li class="bad" { (reason) "." } }
                @for missed in missed {
                    li class="bad" {
                        "Missed: " (missed.name) " " (ms(missed.value)) " " (missed.unit)
                        ", where at most " (missed.limit) " was wanted."
                    }
                }
                @for warning in &report.validity.warnings { li { span class="warn" { "Note:" } " " (warning) "." } }
            } "\n"
        } "\n"
    }
}

fn pace(report: &Report) -> String {
    let run = &report.run;
    let mut pace = if (run.speedup - 1.0).abs() > f64::EPSILON {
        format!(
            "Speed-up {}: {} of think time took {}.",
            run.speedup,
            time(report.workload.round_s),
            time(report.workload.round_with_speedup_s)
        )
    } else {
        "At the script's own pace.".to_owned()
    };
    if let Some(idle_s) = run.keep_alive_s {
        pace.push_str(&format!(" Users close a connection that was idle for {}.", time(idle_s)));
    }
    pace
}

fn figures(summary: &Summary) -> Markup {
    let seen = |value: Option<f64>, name: &str, show: fn(f64) -> String| {
        value.map(|value| figure(&show(value), name)).unwrap_or_default()
    };
    html! {
        div class="figures" { "\n"
            (figure(&thousands(summary.transactions_per_minute), "transactions a minute"))
            (figure(&milliseconds(summary.latency.mean_ms), "average response"))
            (figure(&milliseconds(summary.latency.p99_ms), "99th percentile"))
            (seen(summary.cpu_percent, "of all CPUs, by the server", |cpu| format!("{cpu:.1} %")))
            (seen(summary.memory_per_user_bytes, "memory per user", bytes))
            (seen(summary.disk_bytes_per_transaction, "disk written per transaction", bytes))
            (figure(&thousands(summary.failed as f64), "failed requests"))
        } "\n"
    }
}

fn summary_table(report: &Report) -> Markup {
    let summary = &report.summary;
    let percent = |value: f64| format!("{value:.2}");
    let row = [
        thousands(summary.users as f64),
        optional(summary.cpu_percent, percent),
        optional(summary.user_percent, percent),
        optional(summary.system_percent, percent),
        thousands(summary.transactions_per_minute),
        ms(summary.latency.mean_ms),
        ms(summary.latency.p95_ms),
        ms(summary.latency.p99_ms),
        optional(summary.memory_per_user_bytes, bytes),
        optional(summary.added_memory_per_user_bytes, |added| bytes(added.max(0.0))),
        optional(summary.disk_bytes_per_transaction, bytes),
        optional(summary.log_syncs_per_transaction, |syncs| format!("{syncs:.2}")),
    ];
    let heads = heads([
        "Users",
        "% CPU",
        "% user",
        "% system",
        "Trans\u{ad}actions\nper minute",
        "Average\nresponse ms",
        "95 %\nms",
        "99 %\nms",
        "Memory\nper user",
        "of which\nadded",
        "Disk per\ntransaction",
        "Log syncs per\ntransaction",
    ]);
    let about = format!(
        "the {} in which all users were at work; CPU is of all {} CPUs, the server\u{2019}s process alone",
        time(summary.hold_s),
        report.machine.cpus
    );
    html! {
        (section_head("Summary", &about))
        (table(&heads, &[row.map(TableCell::from).into()]))
        (published(report))
    }
}

/// What others have published for the workload, to look at next to ours.
fn published(report: &Report) -> Markup {
    let lines = &report.workload.published;
    html! {
        @if !lines.is_empty() {
            p class="published" {
                "Published for this workload: " (broken(lines.iter().map(String::as_str)))
            } "\n"
        }
    }
}

/// What the numbers of a chart are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Plain,
    Percent,
    Bytes,
    Milliseconds,
}

/// One chart with its caption.
struct Panel {
    title: &'static str,
    about: &'static str,
    unit: Unit,
    series: Vec<Series>,
}

impl Panel {
    /// What all values are divided by to have round numbers at the axis, and what stands behind them.
    fn scale(&self) -> (f64, &'static str) {
        let values = self.series.iter().flat_map(|series| series.values.iter().flatten());
        let highest = values.copied().fold(0.0, f64::max);
        match self.unit {
            Unit::Bytes => bytes_scale(highest),
            Unit::Percent => (1.0, " %"),
            Unit::Plain | Unit::Milliseconds => (1.0, ""),
        }
    }
}

fn line(
    seconds: &[SecondRow],
    name: &'static str,
    colour: usize,
    filled: bool,
    value: impl Fn(&SecondRow) -> Option<f64>,
) -> Series {
    Series { name, colour, values: seconds.iter().map(value).collect(), filled }
}

fn panel(title: &'static str, about: &'static str, unit: Unit, series: Vec<Series>) -> Panel {
    Panel { title, about, unit, series }
}

/// Everything that can be shown; what was never seen is left out.
fn panels(seconds: &[SecondRow]) -> Vec<Panel> {
    let answered = |second: &SecondRow, value: f64| (second.latency.count > 0).then_some(value);
    let mut throughput = vec![line(seconds, "answered", 0, true, |second| Some(second.transactions_per_s))];
    if seconds.iter().any(|second| second.failed_per_s > 0.0) {
        throughput.push(line(seconds, "failed", 2, false, |second| Some(second.failed_per_s)));
    }
    let response = vec![
        line(seconds, "median", 0, false, |second| answered(second, second.latency.p50_ms)),
        line(seconds, "95 %", 1, false, |second| answered(second, second.latency.p95_ms)),
        line(seconds, "99 %", 2, false, |second| answered(second, second.latency.p99_ms)),
    ];
    let server_cpu = |second: &SecondRow| Some(second.server_user_percent? + second.server_system_percent?);
    let cpu = vec![
        line(seconds, "server", 0, true, server_cpu),
        line(seconds, "its system part", 1, true, |second| second.server_system_percent),
        line(seconds, "driver", 2, false, |second| second.driver_cpu_percent),
    ];
    let resident = |second: &SecondRow| second.server_resident_bytes.map(|bytes| bytes as f64);
    let memory = vec![line(seconds, "resident", 0, true, resident)];
    let disk = vec![line(seconds, "written", 0, true, |second| second.server_written_bytes_per_s)];
    let syncs = vec![line(seconds, "syncs", 0, true, |second| second.log_syncs_per_s)];
    let pool = vec![line(seconds, "found there", 0, true, |second| second.pool_hits_percent)];
    let lag = vec![line(seconds, "changes", 0, true, |second| second.view_lag_changes)];
    let mut panels = vec![
        panel("Throughput", "transactions per second", Unit::Plain, throughput),
        panel("Response time", "from when due", Unit::Milliseconds, response),
        panel("CPU", "of all CPUs", Unit::Percent, cpu),
        panel("Memory", "of the server\u{2019}s process", Unit::Bytes, memory),
        panel("Disk", "written per second", Unit::Bytes, disk),
        panel("Log syncs", "per second", Unit::Plain, syncs),
        panel("Buffer pool", "blocks found there when needed", Unit::Percent, pool),
        panel("View lag", "changes behind, when brought up to date", Unit::Plain, lag),
    ];
    for panel in &mut panels {
        panel.series.retain(|series| series.values.iter().any(Option::is_some));
    }
    panels.retain(|panel| !panel.series.is_empty());
    panels
}

fn charts(report: &Report) -> Result<Markup, ReportError> {
    let times: Vec<f64> = report.seconds.iter().map(|second| second.at_s).collect();
    let hold = report.run.phases.iter().find(|phase| phase.phase == Phase::Hold);
    let end = times.last().copied().unwrap_or(0.0);
    let hold_s = hold.map_or((end, end), |phase| (phase.from_s, phase.to_s));
    let figures: Result<Vec<Markup>, ReportError> =
        panels(&report.seconds).into_iter().map(|panel| chart(panel, &times, hold_s)).collect();
    Ok(html! {
        (section_head("Against time", "minutes and seconds; ramp-up and ramp-down are shaded"))
        div class="charts" { "\n" @for figure in figures? { (figure) } } "\n"
    })
}

fn chart(mut panel: Panel, times_s: &[f64], hold_s: (f64, f64)) -> Result<Markup, ReportError> {
    let keys: Vec<Markup> = panel.series.iter().map(|series| key(series.colour, series.name)).collect();
    let (divisor, unit) = panel.scale();
    for value in panel.series.iter_mut().flat_map(|series| series.values.iter_mut().flatten()) {
        *value /= divisor;
    }
    let plain = |value: f64| format!("{}{unit}", thousands(value));
    let logarithmic = panel.unit == Unit::Milliseconds;
    let chart = Chart {
        times_s,
        series: panel.series,
        logarithmic,
        hold_s,
        show: if logarithmic { &milliseconds_axis } else { &plain },
    };
    let svg = chart.svg()?;
    Ok(html! {
        figure {
            figcaption {
                span { b { (panel.title) } em { (panel.about) } }
                span class="keys" { @for key in &keys { (key) } }
            } "\n"
            (inline_svg(&svg))
        } "\n"
    })
}

fn operations(report: &Report) -> Markup {
    let shown = |row: &&OperationRow| row.latency.count > 0;
    let low = report.operations.iter().filter(shown).map(|row| row.latency.p50_ms).fold(f64::MAX, f64::min);
    let high = report.operations.iter().map(|row| row.latency.max_ms).fold(0.001, f64::max);
    let rows: Vec<Vec<TableCell>> =
        report.operations.iter().map(|row| operation(row, low.min(high), high)).collect();
    let mut heads = vec![html! { "Command " small { "transaction" } }];
    heads.extend(crate::page::heads([
        "Answered",
        "per\nminute",
        "Average\nms",
        "Median",
        "95 %",
        "99 %",
        "Slowest",
        "Median to 99 %,\nslowest",
        "From the\nsending",
        "Failed",
    ]));
    html! {
        (section_head("Operations", "milliseconds from when each was due"))
        (table(&heads, &rows))
    }
}

fn operation(row: &OperationRow, low: f64, high: f64) -> Vec<TableCell> {
    let failed = thousands(row.failed as f64);
    vec![
        html! { (row.command) " " small { (row.transaction) } }.into(),
        thousands(row.answered as f64).into(),
        thousands(row.per_minute).into(),
        ms(row.latency.mean_ms).into(),
        ms(row.latency.p50_ms).into(),
        ms(row.latency.p95_ms).into(),
        ms(row.latency.p99_ms).into(),
        ms(row.latency.max_ms).into(),
        TableCell::of_class("spread", spread(row, low, high)),
        ms(row.service.mean_ms).into(),
        if row.failed > 0 { html! { span class="bad" { (failed) } }.into() } else { failed.into() },
    ]
}

/// A bar from the median to the 99th percentile, with marks at the median and at the slowest, on one
/// logarithmic scale for all rows.
fn spread(row: &OperationRow, low: f64, high: f64) -> Markup {
    if row.latency.count == 0 {
        return Markup::default();
    }
    let width = (high / low.max(0.001)).ln().max(0.001);
    let at = |value: f64| (100.0 * (value.max(0.001) / low.max(0.001)).ln() / width).clamp(0.0, 100.0);
    let (median, p99, slowest) = (at(row.latency.p50_ms), at(row.latency.p99_ms), at(row.latency.max_ms));
    let left = |percent: f64| format!("left:{percent:.1}%");
    html! {
        div class="bar" {
            i style={ (left(median)) ";width:" (format!("{:.1}", (p99 - median).max(0.0))) "%" } {}
            u style=(left(median)) {}
            s style=(left(slowest)) {}
        }
    }
}

fn failures(report: &Report) -> Markup {
    let about = "of the whole run; the first few of each kind, word for word";
    html! {
        @if !report.failures.is_empty() {
            (section_head("Failures", about))
            @for failure in &report.failures {
                div class="failure" {
                    b { (failure.command) } " " small { (failure.transaction) } ": "
                    (thousands(failure.count as f64)) " \u{d7} " span class="bad" { (failure.kind) }
                    pre { (failure.first.join("\n")) }
                } "\n"
            }
        }
    }
}

fn set_up(report: &Report) -> Markup {
    let (run, machine, workload) = (&report.run, &report.machine, &report.workload);
    let variables: Vec<(&String, &String)> =
        workload.variables.iter().filter(|(_, value)| !value.is_empty()).collect();
    let expected: Vec<String> = workload
        .expected
        .iter()
        .map(|row| format!("{} {}", row.command, thousands(row.per_user_hour)))
        .collect();
    let process = match (&run.server_program, run.server_pid) {
        (Some(program), Some(pid)) => format!("{program} (process {pid})"),
        _ => "not on this machine, or not to be looked at".to_owned(),
    };
    let machine = format!(
        "{} CPUs ({}), {} of memory, Linux {}",
        machine.cpus,
        machine.cpu_model,
        bytes(machine.memory_bytes as f64),
        machine.kernel
    );
    let preparation = format!(
        "{} databases made, {} documents added",
        thousands(run.databases_created as f64),
        thousands(run.documents_added as f64)
    );
    let driver = format!(
        "{:.1} % of its CPUs; 99 of 100 timers less than {} late; seed {}; time-out {}",
        report.summary.driver_cpu_percent,
        milliseconds(report.summary.driver_lag_p99_ms),
        run.seed,
        time(run.time_out_s)
    );
    let variables = html! {
        @for (index, (name, value)) in variables.iter().enumerate() {
            @if index > 0 { ", " }
            code { "[" (name) "]" } " = " (value)
        }
    };
    let lines = |lines: &[String]| broken(lines.iter().map(String::as_str));
    let rows = [
        ("Driver\u{2019}s machine", html! { (machine) }),
        ("Server process", html! { (process) }),
        ("Workload", html! { (workload.origin) }),
        ("Source", lines(&workload.sources)),
        ("What it leaves open", lines(&workload.choices)),
        ("Variables", variables),
        ("Per user and hour", html! { (expected.join(", ")) }),
        ("Preparation", html! { (preparation) }),
        ("Driver", html! { (driver) }),
    ];
    html! {
        h2 { "Set-up" } "\n"
        dl { "\n"
            @for (name, value) in rows.iter().filter(|(_, value)| !value.0.is_empty()) {
                dt { (name) } dd { (value) } "\n"
            }
        } "\n"
        h2 { "To repeat it" } "\n"
        pre { (run.command) } "\n"
        footer {
            "Made by scrinium lab " (run.laboratory_version)
            ". The numbers of every second are in report.csv, everything in report.json."
        } "\n"
    }
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + characters.as_str())
}
