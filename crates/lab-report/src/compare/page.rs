//! `comparison.html`: one page that needs nothing else.

use super::side::Side;
use super::{Better, Comparison, Difference, Metric};
use crate::error::ReportError;
use crate::experiment::{cell, factor};
use crate::numbers::{bytes, thousands};
use crate::page::{
    CurvePoint, Curves, Marks, Markup, TableCell, clock, document, heads, html, inline_svg, keys, list,
    milliseconds_axis, section_head, table,
};
use crate::run::{Phase, SecondRow};

/// At most this many points of a course are drawn.
const MOST_POINTS: usize = 240;

pub(super) fn page(comparison: &Comparison, sides: &[Side]) -> Result<String, ReportError> {
    let names: Vec<&str> = comparison.sides.iter().map(|side| side.name.as_str()).collect();
    let courses =
        if sides.iter().all(|side| !side.runs().is_empty()) { courses(sides)? } else { Markup::default() };
    let main = html! {
        (header(comparison, &names))
        (list("What differs", &comparison.verdicts))
        (metrics(comparison))
        (courses)
        (differences(comparison))
        h2 { "To repeat it" } "\n"
        pre { (comparison.command) } "\n"
        footer { "The same is in comparison.md, comparison.csv and comparison.json." } "\n"
    };
    Ok(document(&format!("Comparison of {}", names.join(", ")), &main))
}

fn header(comparison: &Comparison, names: &[&str]) -> Markup {
    let runs = |count: usize| if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
    let (first, others) = names.split_first().map_or(("", &[][..]), |(first, others)| (*first, others));
    html! {
        header { "\n"
            p class="kicker" { "Scrinium laboratory \u{b7} comparison" } "\n"
            h1 { (others.join(", ")) " against " (first) } "\n"
            @for side in &comparison.sides {
                p class="about" {
                    b { (side.name) } " " (side.heading) " (" (runs(side.runs)) ") " small { (side.path) }
                } "\n"
            }
            ul class="notes" {
                @for warning in &comparison.warnings { li { span class="warn" { "Note:" } " " (warning) "." } }
            } "\n"
        } "\n"
    }
}

fn metrics(comparison: &Comparison) -> Markup {
    let heads = heads(super::text::heads(comparison).iter().map(String::as_str));
    let row = |metric: &Metric| -> Vec<TableCell> {
        let mut row = vec![metric.title.as_str().into()];
        row.extend(metric.values.iter().map(|spread| cell(spread.as_ref(), metric.unit).into()));
        row.extend((1..metric.values.len()).map(|side| ratio(metric, side).into()));
        row
    };
    let rows: Vec<Vec<TableCell>> = comparison.metrics.iter().map(row).collect();
    let about = "average of a side\u{2019}s runs, lowest and highest in small letters; coloured where no run of one side was among those of the other";
    html! { (section_head("All values", about)) (table(&heads, &rows)) }
}

/// What a side's value is of the first's, coloured where their runs lie apart.
fn ratio(metric: &Metric, side: usize) -> Markup {
    let Some(ratio) = metric.ratio(side) else { return html! { "\u{2013}" } };
    let spread = |side: usize| metric.values.get(side).copied().flatten();
    let apart = match (spread(0), spread(side)) {
        (Some(first), Some(other)) => first.runs.min(other.runs) > 1 && first.differs_from(&other),
        _ => false,
    };
    let class = match (apart, metric.better, ratio < 1.0) {
        (true, Some(Better::Lower), true) | (true, Some(Better::Higher), false) => "good",
        (true, Some(Better::Lower), false) | (true, Some(Better::Higher), true) => "bad",
        _ => "same",
    };
    html! { span class=(class) { (factor(ratio)) } }
}

/// What is drawn over time: a title, a value of a second, how it is shown, whether powers of ten are at equal distances.
type Course = (&'static str, fn(&SecondRow) -> Option<f64>, fn(f64) -> String, bool);

const COURSES: &[Course] = &[
    ("Transactions per second", |second| Some(second.transactions_per_s), thousands, false),
    ("Median response", |second| answered(second, second.latency.p50_ms), milliseconds_axis, true),
    ("99 % of responses within", |second| answered(second, second.latency.p99_ms), milliseconds_axis, true),
    (
        "CPU of the server",
        |second| Some(second.server_user_percent? + second.server_system_percent?),
        percent,
        false,
    ),
    ("Memory of the server", |second| second.server_resident_bytes.map(|bytes| bytes as f64), bytes, false),
    ("Written per second", |second| second.server_written_bytes_per_s, bytes, false),
];

fn answered(second: &SecondRow, value: f64) -> Option<f64> {
    (second.latency.count > 0).then_some(value)
}

fn percent(value: f64) -> String {
    format!("{value:.0} %")
}

/// The hold phases of the sides' first runs over each other, each from its own beginning.
fn courses(sides: &[Side]) -> Result<Markup, ReportError> {
    let names: Vec<String> = sides.iter().map(|side| side.name.clone()).collect();
    let mut charts = Vec::new();
    for (title, value, show_y, logarithmic) in COURSES {
        let lines: Vec<Vec<CurvePoint>> = sides.iter().map(|side| course(side, *value)).collect();
        if lines.iter().all(Vec::is_empty) {
            continue;
        }
        let curves = Curves { lines, show_x: &clock, show_y, marks: Marks::None, logarithmic: *logarithmic };
        charts.push((title, curves.svg()?));
    }
    let about = "the hold phase of each side\u{2019}s first run, from its beginning";
    Ok(html! {
        (section_head("Over time", about))
        div class="charts" { "\n"
            @for (title, svg) in &charts {
                figure {
                    figcaption { span { b { (title) } } span class="keys" { (keys(&names)) } } "\n"
                    (inline_svg(svg))
                } "\n"
            }
        } "\n"
    })
}

fn course(side: &Side, value: fn(&SecondRow) -> Option<f64>) -> Vec<CurvePoint> {
    let Some(run) = side.runs().first() else { return Vec::new() };
    let held: Vec<&SecondRow> = run.seconds.iter().filter(|second| second.phase == Phase::Hold).collect();
    let begin = held.first().map_or(0.0, |second| second.at_s);
    let at_once = held.len().div_ceil(MOST_POINTS).max(1);
    held.chunks(at_once)
        .filter_map(|seconds| {
            // The highest of several seconds: an average of percentiles would be none.
            let highest = seconds.iter().filter_map(|second| value(second)).reduce(f64::max)?;
            let x = seconds.last()?.at_s - begin;
            Some(CurvePoint { x, low: highest, mean: highest, high: highest })
        })
        .collect()
}

fn differences(comparison: &Comparison) -> Markup {
    if comparison.differences.is_empty() {
        return html! {
            h2 { "Set-ups" } "\n"
            p class="about" { "Everything that the reports say of their set-ups is the same." } "\n"
        };
    }
    let names = comparison.sides.iter().map(|side| side.name.as_str());
    let row = |difference: &Difference| -> Vec<TableCell> {
        let what = html! {
            (difference.what)
            @if difference.of_the_workload { " " small class="warn" { "other work" } }
        };
        let values = difference.values.iter().map(|value| TableCell::from(value.as_str()));
        std::iter::once(what.into()).chain(values).collect()
    };
    let rows: Vec<Vec<TableCell>> = comparison.differences.iter().map(row).collect();
    html! {
        h2 { "Different set-ups" } "\n"
        (table(&heads(std::iter::once("").chain(names)), &rows))
    }
}
