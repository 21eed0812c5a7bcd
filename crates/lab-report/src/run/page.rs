//! `report.html`: one page that needs nothing else.

use std::fmt::Write;

use super::model::{OperationRow, Report, SecondRow, Summary};
use super::parts::Phase;
use super::sections;
use crate::error::ReportError;
use crate::numbers::{bytes, bytes_scale, milliseconds, thousands, time};
use crate::page::{
    Chart, STYLE, Series, escape, figure, milliseconds_axis, ms, optional, series_variable, table,
};

/// The page.
///
/// # Errors
/// [`ReportError::Chart`] when a chart cannot be drawn.
pub fn page(report: &Report) -> Result<String, ReportError> {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        escape(&report.heading)
    );
    page.push_str(&header(report));
    page.push_str(&figures(&report.summary));
    page.push_str(&findings(report));
    page.push_str(&summary_table(report));
    page.push_str(&sections::repeats(report));
    page.push_str(&charts(report)?);
    page.push_str(&super::probe::section(report)?);
    page.push_str(&operations(report));
    page.push_str(&failures(report));
    page.push_str(&sections::drivers(report));
    page.push_str(&set_up(report));
    page.push_str("</main>\n</body>\n</html>\n");
    Ok(page)
}

fn header(report: &Report) -> String {
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
    let (class, verdict) = match (report.validity.valid, report.passed()) {
        (true, true) => ("good", "Valid run, every objective reached"),
        (true, false) => ("bad", "Valid run, an objective was missed"),
        (false, _) => ("bad", "Not a valid run: it says nothing about the server"),
    };
    let mut notes = String::new();
    for reason in &report.validity.reasons {
        notes.push_str(&format!("<li class=\"bad\">{}.</li>", escape(reason)));
    }
    for missed in report.objectives.iter().filter(|objective| !objective.reached) {
        notes.push_str(&format!(
            "<li class=\"bad\">Missed: {} {} {}, where at most {} was wanted.</li>",
            missed.name,
            ms(missed.value),
            missed.unit,
            missed.limit
        ));
    }
    for warning in &report.validity.warnings {
        notes.push_str(&format!("<li><span class=\"warn\">Note:</span> {}.</li>", escape(warning)));
    }
    format!(
        "<header>\n<p class=\"kicker\">Scrinium laboratory \u{b7} load run \u{b7} {began}</p>\n<h1>{name}, {users} users</h1>\n<p class=\"about\">{pace} {title}. Server: {server} at {target}; {model} model, {hold} counted.</p>\n<p class=\"verdict {class}\">{verdict}</p>\n<ul class=\"notes\">{notes}</ul>\n</header>\n",
        began = escape(&run.began.replace('T', " ").replace('Z', " UTC")),
        name = escape(&report.workload.name),
        users = thousands(run.users as f64),
        title = capital(&escape(&report.workload.title)),
        server = escape(format!("{} {}", run.server_name, run.server_version).trim()),
        target = escape(&run.target),
        model = run.model,
        hold = time(report.summary.hold_s),
    )
}

fn figures(summary: &Summary) -> String {
    let mut text = "<div class=\"figures\">\n".to_owned();
    text.push_str(&figure(&thousands(summary.transactions_per_minute), "transactions a minute"));
    text.push_str(&figure(&milliseconds(summary.latency.mean_ms), "average response"));
    text.push_str(&figure(&milliseconds(summary.latency.p99_ms), "99th percentile"));
    if let Some(cpu) = summary.cpu_percent {
        text.push_str(&figure(&format!("{cpu:.1} %"), "of all CPUs, by the server"));
    }
    if let Some(memory) = summary.memory_per_user_bytes {
        text.push_str(&figure(&bytes(memory), "memory per user"));
    }
    if let Some(disk) = summary.disk_bytes_per_transaction {
        text.push_str(&figure(&bytes(disk), "disk written per transaction"));
    }
    text.push_str(&figure(&thousands(summary.failed as f64), "failed requests"));
    text.push_str("</div>\n");
    text
}

fn findings(report: &Report) -> String {
    if report.findings.is_empty() {
        return String::new();
    }
    let items: String =
        report.findings.iter().map(|finding| format!("<li>{}</li>\n", escape(finding))).collect();
    format!("<h2>What it showed</h2>\n<ul class=\"findings\">\n{items}</ul>\n")
}

fn summary_table(report: &Report) -> String {
    let summary = &report.summary;
    let percent = |value: f64| format!("{value:.2}");
    let row = vec![
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
    let heads = [
        "Users",
        "% CPU",
        "% user",
        "% system",
        "Trans\u{ad}actions<br>per minute",
        "Average<br>response ms",
        "95 %<br>ms",
        "99 %<br>ms",
        "Memory<br>per user",
        "of which<br>added",
        "Disk per<br>transaction",
        "Log syncs per<br>transaction",
    ];
    format!(
        "<h2>Summary<small>the {} in which all users were at work; CPU is of all {} CPUs, the server\u{2019}s process alone</small></h2>\n{}{}",
        time(summary.hold_s),
        report.machine.cpus,
        table(&heads, &[row]),
        published(report)
    )
}

/// What others have published for the workload, to look at beside ours.
fn published(report: &Report) -> String {
    let lines: Vec<String> = report.workload.published.iter().map(|line| escape(line)).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("<p class=\"published\">Published for this workload: {}</p>\n", lines.join("<br>"))
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

fn charts(report: &Report) -> Result<String, ReportError> {
    let times: Vec<f64> = report.seconds.iter().map(|second| second.at_s).collect();
    let hold = report.run.phases.iter().find(|phase| phase.phase == Phase::Hold);
    let end = times.last().copied().unwrap_or(0.0);
    let hold_s = hold.map_or((end, end), |phase| (phase.from_s, phase.to_s));
    let mut text = "<h2>Against time<small>minutes and seconds; ramp-up and ramp-down are shaded</small></h2>\n<div class=\"charts\">\n".to_owned();
    for mut panel in panels(&report.seconds) {
        let mut keys = String::new();
        for series in &panel.series {
            let variable = series_variable(series.colour);
            keys.push_str(&format!(
                "<span class=\"key\" style=\"--key:var({variable})\">{}</span>",
                series.name
            ));
        }
        let (divisor, unit) = panel.scale();
        for value in panel.series.iter_mut().flat_map(|series| series.values.iter_mut().flatten()) {
            *value /= divisor;
        }
        let plain = |value: f64| format!("{}{unit}", thousands(value));
        let logarithmic = panel.unit == Unit::Milliseconds;
        let chart = Chart {
            times_s: &times,
            series: panel.series,
            logarithmic,
            hold_s,
            show: if logarithmic { &milliseconds_axis } else { &plain },
        };
        text.push_str(&format!(
            "<figure><figcaption><span><b>{}</b><em>{}</em></span><span class=\"keys\">{keys}</span></figcaption>\n{}</figure>\n",
            panel.title,
            panel.about,
            chart.svg()?
        ));
    }
    text.push_str("</div>\n");
    Ok(text)
}

fn operations(report: &Report) -> String {
    let shown = |row: &&OperationRow| row.latency.count > 0;
    let low = report.operations.iter().filter(shown).map(|row| row.latency.p50_ms).fold(f64::MAX, f64::min);
    let high = report.operations.iter().map(|row| row.latency.max_ms).fold(0.001, f64::max);
    let rows: Vec<Vec<String>> = report
        .operations
        .iter()
        .map(|row| {
            let failed = thousands(row.failed as f64);
            vec![
                format!("{} <small>{}</small>", escape(&row.command), escape(&row.transaction)),
                thousands(row.answered as f64),
                thousands(row.per_minute),
                ms(row.latency.mean_ms),
                ms(row.latency.p50_ms),
                ms(row.latency.p95_ms),
                ms(row.latency.p99_ms),
                ms(row.latency.max_ms),
                spread(row, low.min(high), high),
                ms(row.service.mean_ms),
                if row.failed > 0 { format!("<span class=\"bad\">{failed}</span>") } else { failed },
            ]
        })
        .collect();
    let heads = [
        "Command <small>transaction</small>",
        "Answered",
        "per<br>minute",
        "Average<br>ms",
        "Median",
        "95 %",
        "99 %",
        "Slowest",
        "Median to 99 %,<br>slowest",
        "From the<br>sending",
        "Failed",
    ];
    format!("<h2>Operations<small>milliseconds from when each was due</small></h2>\n{}", table(&heads, &rows))
}

/// A bar from the median to the 99th percentile, with marks at the median and at the slowest, on one
/// logarithmic scale for all rows.
fn spread(row: &OperationRow, low: f64, high: f64) -> String {
    if row.latency.count == 0 {
        return "<td class=\"spread\"></td>".to_owned();
    }
    let width = (high / low.max(0.001)).ln().max(0.001);
    let at = |value: f64| (100.0 * (value.max(0.001) / low.max(0.001)).ln() / width).clamp(0.0, 100.0);
    let (median, p99, slowest) = (at(row.latency.p50_ms), at(row.latency.p99_ms), at(row.latency.max_ms));
    format!(
        "<td class=\"spread\"><div class=\"bar\"><i style=\"left:{median:.1}%;width:{:.1}%\"></i><u style=\"left:{median:.1}%\"></u><s style=\"left:{slowest:.1}%\"></s></div></td>",
        (p99 - median).max(0.0)
    )
}

fn failures(report: &Report) -> String {
    if report.failures.is_empty() {
        return String::new();
    }
    let mut text =
        "<h2>Failures<small>of the whole run; the first few of each kind, word for word</small></h2>\n"
            .to_owned();
    for failure in &report.failures {
        let lines: Vec<String> = failure.first.iter().map(|line| escape(line)).collect();
        text.push_str(&format!(
            "<div class=\"failure\"><b>{}</b> <small>{}</small>: {} \u{d7} <span class=\"bad\">{}</span><pre>{}</pre></div>\n",
            escape(&failure.command),
            escape(&failure.transaction),
            thousands(failure.count as f64),
            escape(&failure.kind),
            lines.join("\n")
        ));
    }
    text
}

fn set_up(report: &Report) -> String {
    let (run, machine, workload) = (&report.run, &report.machine, &report.workload);
    let variables: Vec<String> = workload
        .variables
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("<code>[{}]</code> = {}", escape(name), escape(value)))
        .collect();
    let expected: Vec<String> = workload
        .expected
        .iter()
        .map(|row| format!("{} {}", escape(&row.command), thousands(row.per_user_hour)))
        .collect();
    let process = match (&run.server_program, run.server_pid) {
        (Some(program), Some(pid)) => format!("{} (process {pid})", escape(program)),
        _ => "not on this machine, or not to be looked at".to_owned(),
    };
    let join = |lines: &[String]| lines.iter().map(|line| escape(line)).collect::<Vec<_>>().join("<br>");
    let rows = [
        (
            "Driver\u{2019}s machine",
            format!(
                "{} CPUs ({}), {} of memory, Linux {}",
                machine.cpus,
                escape(&machine.cpu_model),
                bytes(machine.memory_bytes as f64),
                escape(&machine.kernel)
            ),
        ),
        ("Server process", process),
        ("Workload", escape(&workload.origin)),
        ("Source", join(&workload.sources)),
        ("What it leaves open", join(&workload.choices)),
        ("Variables", variables.join(", ")),
        ("Per user and hour", expected.join(", ")),
        (
            "Preparation",
            format!(
                "{} databases made, {} documents added",
                thousands(run.databases_created as f64),
                thousands(run.documents_added as f64)
            ),
        ),
        (
            "Driver",
            format!(
                "{:.1} % of its CPUs; 99 of 100 timers less than {} late; seed {}; time-out {}",
                report.summary.driver_cpu_percent,
                milliseconds(report.summary.driver_lag_p99_ms),
                run.seed,
                time(run.time_out_s)
            ),
        ),
    ];
    let mut text = "<h2>Set-up</h2>\n<dl>\n".to_owned();
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "<dt>{name}</dt><dd>{value}</dd>");
    }
    let _ = writeln!(
        text,
        "</dl>\n<h2>To repeat it</h2>\n<pre>{}</pre>\n<footer>Made by scrinium lab {}. The numbers of every second are in report.csv, everything in report.json.</footer>",
        escape(&run.command),
        escape(&run.laboratory_version)
    );
    text
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + characters.as_str())
}
