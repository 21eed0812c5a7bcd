//! Charts as files of their own, for pages and slides that show them elsewhere: a title, what the colours mean, the lines.

use super::model::ExperimentReport;
use super::page::lines;
use super::search;
use crate::error::ReportError;
use crate::page::{CHART_HEIGHT, CHART_WIDTH, COLOURS, COLOURS_OF_SERIES, escape, series_variable};

/// The title, and if there are several lines what each is, above the chart.
const TITLE: u32 = 42;
const KEY: u32 = 22;
/// What is below it: the name of the axis.
const FOOT: u32 = 26;
const MARGIN: u32 = 14;
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
/// About how wide a letter of the key is.
const LETTER: usize = 8;

/// What stands around the lines.
struct Frame<'a> {
    title: String,
    series: &'a [String],
    axis: &'a str,
}

/// A picture of each figure that has lines and of each search for the largest number of users, with its file's name.
///
/// # Errors
/// [`ReportError::Chart`] when a chart cannot be drawn.
pub(super) fn pictures(report: &ExperimentReport) -> Result<Vec<(String, String)>, ReportError> {
    let mut pictures = Vec::new();
    for figure in &report.figures {
        if let Some(lines) = lines(figure)? {
            let title = format!("{}: {}", report.title, figure.title);
            let frame = Frame { title, series: &figure.series, axis: &figure.rows_title };
            pictures.push((file_name(&figure.title), picture(&frame, &lines)));
        }
    }
    for cell in report.searched() {
        let title = format!("{}: {}, {}", report.title, search::TITLE, cell.labels.join(", "));
        let frame = Frame { title, series: &search::series(), axis: "Users" };
        let name = file_name(&format!("{} {}", search::TITLE, cell.labels.join(" ")));
        pictures.push((name, picture(&frame, &search::lines(&cell.search)?)));
    }
    Ok(pictures)
}

/// `Probe, 99 % within` becomes `probe-99-within.svg`.
fn file_name(title: &str) -> String {
    let words = title.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<&str>>().join("-").to_ascii_lowercase() + ".svg"
}

fn picture(frame: &Frame<'_>, lines: &str) -> String {
    let head = if frame.series.is_empty() { TITLE } else { TITLE + KEY };
    let (width, height) = (CHART_WIDTH + 2 * MARGIN, head + CHART_HEIGHT + FOOT);
    let placed =
        format!("<svg x=\"{MARGIN}\" y=\"{head}\" width=\"{CHART_WIDTH}\" height=\"{CHART_HEIGHT}\" ");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" font-family=\"{FONT}\" role=\"img\">\n<style>\n{COLOURS}.ink {{ fill: var(--ink); }}\n.quiet {{ fill: var(--quiet); }}\n</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"var(--card)\"/>\n\
         <text x=\"{left}\" y=\"28\" font-size=\"17\" font-weight=\"600\" class=\"ink\">{}</text>\n{}{}\n\
         <text x=\"{middle}\" y=\"{bottom}\" font-size=\"13\" text-anchor=\"middle\" class=\"quiet\">{}</text>\n</svg>\n",
        escape(&frame.title),
        key(frame.series),
        lines.replacen("<svg ", &placed, 1),
        escape(frame.axis),
        left = MARGIN + 6,
        middle = width / 2,
        bottom = height - 10,
    )
}

fn key(series: &[String]) -> String {
    let mut left = MARGIN as usize + 6;
    let mut text = String::new();
    for (index, label) in series.iter().enumerate() {
        text.push_str(&format!(
            "<rect x=\"{left}\" y=\"42\" width=\"12\" height=\"12\" rx=\"2\" fill=\"var({})\"/><text x=\"{}\" y=\"53\" font-size=\"13\" class=\"quiet\">{}</text>\n",
            series_variable(index % COLOURS_OF_SERIES),
            left + 18,
            escape(label)
        ));
        left += 18 + LETTER * label.chars().count() + 22;
    }
    text
}
