//! `comparison.html`: one page that needs nothing else.

use super::side::Side;
use super::{Better, Comparison};
use crate::error::ReportError;
use crate::experiment::{cell, factor};
use crate::numbers::{bytes, thousands};
use crate::page::{CurvePoint, Curves, Marks, begin, clock, escape, keys, milliseconds_axis, table};
use crate::run::{Phase, SecondRow};

/// So many points of a course are drawn at most.
const MOST_POINTS: usize = 240;

pub(super) fn page(comparison: &Comparison, sides: &[Side]) -> Result<String, ReportError> {
    let names: Vec<&str> = comparison.sides.iter().map(|side| side.name.as_str()).collect();
    let mut page = begin(&format!("Comparison of {}", names.join(", ")));
    page.push_str(&header(comparison));
    page.push_str(&list("What differs", &comparison.verdicts));
    page.push_str(&metrics(comparison));
    if sides.iter().all(|side| !side.runs().is_empty()) {
        page.push_str(&courses(sides)?);
    }
    page.push_str(&differences(comparison));
    page.push_str(&format!(
        "<h2>To repeat it</h2>\n<pre>{}</pre>\n<footer>The same is in comparison.md, comparison.csv and comparison.json.</footer>\n</main>\n</body>\n</html>\n",
        escape(&comparison.command)
    ));
    Ok(page)
}

fn header(comparison: &Comparison) -> String {
    let sides: String = comparison
        .sides
        .iter()
        .map(|side| {
            let runs = if side.runs == 1 { "1 run".to_owned() } else { format!("{} runs", side.runs) };
            format!(
                "<p class=\"about\"><b>{}</b> {} ({runs}) <small>{}</small></p>\n",
                escape(&side.name),
                escape(&side.heading),
                escape(&side.path)
            )
        })
        .collect();
    let notes: String = comparison
        .warnings
        .iter()
        .map(|warning| format!("<li><span class=\"warn\">Note:</span> {}.</li>", escape(warning)))
        .collect();
    format!(
        "<header>\n<p class=\"kicker\">Scrinium laboratory \u{b7} comparison</p>\n<h1>{} against {}</h1>\n{sides}<ul class=\"notes\">{notes}</ul>\n</header>\n",
        comparison.sides.iter().skip(1).map(|side| escape(&side.name)).collect::<Vec<_>>().join(", "),
        comparison.sides.first().map(|side| escape(&side.name)).unwrap_or_default()
    )
}

fn list(head: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", escape(line))).collect();
    format!("<h2>{head}</h2>\n<ul class=\"findings\">\n{items}</ul>\n")
}

fn metrics(comparison: &Comparison) -> String {
    let heads: Vec<String> = super::text::heads(comparison).iter().map(|head| escape(head)).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = comparison
        .metrics
        .iter()
        .map(|metric| {
            let mut row = vec![escape(&metric.title)];
            row.extend(metric.values.iter().map(|spread| cell(spread.as_ref(), metric.unit)));
            for side in 1..metric.values.len() {
                row.push(metric.ratio(side).map_or_else(
                    || "\u{2013}".to_owned(),
                    |ratio| {
                        let apart = match (
                            metric.values.first().copied().flatten(),
                            metric.values.get(side).copied().flatten(),
                        ) {
                            (Some(first), Some(other)) => {
                                first.runs.min(other.runs) > 1 && first.differs_from(&other)
                            }
                            _ => false,
                        };
                        let class = match (apart, metric.better, ratio < 1.0) {
                            (true, Some(Better::Lower), true) | (true, Some(Better::Higher), false) => "good",
                            (true, Some(Better::Lower), false) | (true, Some(Better::Higher), true) => "bad",
                            _ => "same",
                        };
                        format!("<span class=\"{class}\">{}</span>", factor(ratio))
                    },
                ));
            }
            row
        })
        .collect();
    format!(
        "<h2>All values<small>average of a side\u{2019}s runs, lowest and highest in small letters; coloured where no run of one side was among those of the other</small></h2>\n{}",
        table(&heads, &rows)
    )
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
fn courses(sides: &[Side]) -> Result<String, ReportError> {
    let names: Vec<String> = sides.iter().map(|side| side.name.clone()).collect();
    let mut text = "<h2>Over time<small>the hold phase of each side\u{2019}s first run, from its beginning</small></h2>\n<div class=\"charts\">\n".to_owned();
    for (title, value, show_y, logarithmic) in COURSES {
        let lines: Vec<Vec<CurvePoint>> = sides.iter().map(|side| course(side, *value)).collect();
        if lines.iter().all(Vec::is_empty) {
            continue;
        }
        let curves = Curves { lines, show_x: &clock, show_y, marks: Marks::None, logarithmic: *logarithmic };
        text.push_str(&format!(
            "<figure><figcaption><span><b>{title}</b></span><span class=\"keys\">{}</span></figcaption>\n{}</figure>\n",
            keys(&names),
            curves.svg()?
        ));
    }
    text.push_str("</div>\n");
    Ok(text)
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

fn differences(comparison: &Comparison) -> String {
    if comparison.differences.is_empty() {
        return "<h2>Set-ups</h2>\n<p class=\"about\">Everything that the reports say of their set-ups is the same.</p>\n".to_owned();
    }
    let mut heads = vec![""];
    heads.extend(comparison.sides.iter().map(|side| side.name.as_str()));
    let rows: Vec<Vec<String>> = comparison
        .differences
        .iter()
        .map(|difference| {
            let mark =
                if difference.of_the_workload { " <small class=\"warn\">other work</small>" } else { "" };
            let mut row = vec![format!("{}{mark}", escape(&difference.what))];
            row.extend(difference.values.iter().map(|value| escape(value)));
            row
        })
        .collect();
    format!("<h2>Different set-ups</h2>\n{}", table(&heads, &rows))
}
