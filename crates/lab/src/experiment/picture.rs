//! Charts as files of their own, for pages and slides that show them elsewhere: a title, what the colours mean, the lines.

use super::model::{ExperimentReport, FigurePart};
use super::page::{COLOURS_OF_SERIES, lines};
use crate::error::LabError;
use crate::report::html::{COLOURS, escape};
use crate::report::{CHART_HEIGHT, CHART_WIDTH, series_variable};

/// The title, and if there are several lines what each is, above the chart.
const TITLE: u32 = 42;
const KEY: u32 = 22;
/// What is below it: the name of the axis.
const FOOT: u32 = 26;
const MARGIN: u32 = 14;
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
/// About how wide a letter of the key is.
const LETTER: usize = 8;

/// A picture of each figure that has lines, with its file's name.
///
/// # Errors
/// [`LabError::Chart`] when a chart cannot be drawn.
pub(super) fn pictures(report: &ExperimentReport) -> Result<Vec<(String, String)>, LabError> {
    let drawn = report.figures.iter().map(|figure| {
        let lines = lines(figure)?;
        Ok(lines.map(|lines| (file_name(&figure.title), picture(&report.title, figure, &lines))))
    });
    drawn.filter_map(Result::transpose).collect()
}

/// `Probe, 99 % within` becomes `probe-99-within.svg`.
fn file_name(title: &str) -> String {
    let words = title.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<&str>>().join("-").to_ascii_lowercase() + ".svg"
}

fn picture(title: &str, figure: &FigurePart, lines: &str) -> String {
    let head = if figure.series.is_empty() { TITLE } else { TITLE + KEY };
    let (width, height) = (CHART_WIDTH + 2 * MARGIN, head + CHART_HEIGHT + FOOT);
    let placed =
        format!("<svg x=\"{MARGIN}\" y=\"{head}\" width=\"{CHART_WIDTH}\" height=\"{CHART_HEIGHT}\" ");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" font-family=\"{FONT}\" role=\"img\">\n<style>\n{COLOURS}.ink {{ fill: var(--ink); }}\n.quiet {{ fill: var(--quiet); }}\n</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"var(--card)\"/>\n\
         <text x=\"{left}\" y=\"28\" font-size=\"17\" font-weight=\"600\" class=\"ink\">{}: {}</text>\n{}{}\n\
         <text x=\"{middle}\" y=\"{bottom}\" font-size=\"13\" text-anchor=\"middle\" class=\"quiet\">{}</text>\n</svg>\n",
        escape(title),
        escape(&figure.title),
        key(figure),
        lines.replacen("<svg ", &placed, 1),
        escape(&figure.rows_title),
        left = MARGIN + 6,
        middle = width / 2,
        bottom = height - 10,
    )
}

fn key(figure: &FigurePart) -> String {
    let mut left = MARGIN as usize + 6;
    let mut text = String::new();
    for (index, label) in figure.series.iter().enumerate() {
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
