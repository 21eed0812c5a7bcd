//! What pages are made of, for other programs whose reports shall look the same too.

mod chart;
mod curve;

pub(crate) use chart::{Chart, HEIGHT as CHART_HEIGHT, Series, WIDTH as CHART_WIDTH, clock, series_variable};
pub use curve::{CurvePoint, Curves, Marks};

use crate::numbers::thousands;

pub(crate) const STYLE: &str = concat!(include_str!("colours.css"), include_str!("report.css"));

/// The colours alone, in light and in dark.
pub(crate) const COLOURS: &str = include_str!("colours.css");

/// What pages of experiments, comparisons and plans have beside it.
const MORE_STYLE: &str = include_str!("experiment.css");

/// Colours of the page.
pub(crate) const COLOURS_OF_SERIES: usize = 4;

/// The head of a page in the style of all reports.
#[must_use]
pub fn begin(title: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>\n{STYLE}{MORE_STYLE}</style>\n</head>\n<body>\n<main>\n",
        escape(title)
    )
}

/// A large number with its name below it.
#[must_use]
pub fn figure(value: &str, name: &str) -> String {
    let value = match value.rsplit_once(' ') {
        Some((number, unit)) => format!("{number}<small>{unit}</small>"),
        None => value.to_owned(),
    };
    format!("<div class=\"figure\"><b>{value}</b><span>{name}</span></div>\n")
}

/// A table of strings that are escaped already.
#[must_use]
pub fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = "<div class=\"scroll\"><table>\n<thead><tr>".to_owned();
    for head in heads {
        text.push_str(&format!("<th>{head}</th>"));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        text.push_str("<tr>");
        for cell in row {
            if cell.starts_with("<td") {
                text.push_str(cell);
            } else {
                text.push_str(&format!("<td>{cell}</td>"));
            }
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table></div>\n");
    text
}

pub(crate) fn optional(value: Option<f64>, show: impl FnOnce(f64) -> String) -> String {
    value.map_or_else(|| "\u{2013}".to_owned(), show)
}

pub(crate) fn ms(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}") } else { thousands(value) }
}

/// What the colours mean.
#[must_use]
pub fn keys(series: &[String]) -> String {
    let key = |(index, label): (usize, &String)| {
        format!(
            "<span class=\"key\" style=\"--key:var({})\">{}</span>",
            series_variable(index % COLOURS_OF_SERIES),
            escape(label)
        )
    };
    series.iter().enumerate().map(key).collect()
}

/// A wide figure with lines, and what their colours mean.
pub(crate) fn lines_figure(title: &str, series: &[String], svg: &str) -> String {
    format!(
        "<figure class=\"wide\"><figcaption><span><b>{}</b></span><span class=\"keys\">{}</span></figcaption>\n{svg}</figure>\n",
        escape(title),
        keys(series),
    )
}

pub(crate) fn milliseconds_axis(value: f64) -> String {
    if value >= 1000.0 {
        format!("{} s", thousands(value / 1000.0))
    } else if value >= 1.0 {
        format!("{value:.0} ms")
    } else {
        format!("{} \u{b5}s", thousands(value * 1000.0))
    }
}

/// Text as it can stand in a page.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
