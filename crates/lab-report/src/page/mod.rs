//! What pages are made of, for other programs whose reports shall look the same too.
//!
//! Pages are written as templates of crate `maud`: what is put into one is escaped unless its type, [`Markup`], says that
//! it is part of a page already.

mod chart;
mod curve;

pub(crate) use chart::{Chart, HEIGHT as CHART_HEIGHT, Series, WIDTH as CHART_WIDTH, clock, series_variable};
pub use curve::{CurvePoint, Curves, Marks};
use maud::{DOCTYPE, PreEscaped};
pub use maud::{Markup, html};

use crate::numbers::thousands;

/// The style of a run's page.
pub(crate) const STYLE: &str = concat!(include_str!("colours.css"), include_str!("report.css"));

/// The colours alone, in light and in dark.
pub(crate) const COLOURS: &str = include_str!("colours.css");

/// The style of pages of experiments, comparisons and plans.
const LONGER_STYLE: &str =
    concat!(include_str!("colours.css"), include_str!("report.css"), include_str!("experiment.css"));

/// Colours of the page.
pub(crate) const COLOURS_OF_SERIES: usize = 4;

/// A whole page in the style of all reports but that of a run.
#[must_use]
pub fn document(title: &str, main: &Markup) -> String {
    styled_document(title, LONGER_STYLE, main)
}

/// A whole page that needs nothing else. A style sheet is ours, and no text of anybody's.
pub(crate) fn styled_document(title: &str, style: &'static str, main: &Markup) -> String {
    let page = html! {
        (DOCTYPE) "\n"
        html lang="en" { "\n"
            head { "\n"
                meta charset="utf-8"; "\n"
                meta name="viewport" content="width=device-width, initial-scale=1"; "\n"
                title { (title) } "\n"
                style { "\n" (PreEscaped(style)) } "\n"
            } "\n"
            body { "\n" main { "\n" (main) } "\n" } "\n"
        } "\n"
    };
    page.into_string()
}

/// A chart in its page. It comes from the library that draws them, which escapes the text in it.
#[must_use]
pub fn inline_svg(svg: &str) -> Markup {
    PreEscaped(svg.to_owned())
}

/// The head of a section, and what it is about in small letters.
#[must_use]
pub fn section_head(head: &str, about: &str) -> Markup {
    html! { h2 { (head) small { (about) } } "\n" }
}

/// A list of sentences below a head; nothing where there are none.
#[must_use]
pub fn list(head: &str, lines: &[String]) -> Markup {
    html! {
        @if !lines.is_empty() {
            h2 { (head) } "\n"
            ul class="findings" { "\n" @for line in lines { li { (line) } "\n" } } "\n"
        }
    }
}

/// A large number with its name below it.
#[must_use]
pub fn figure(value: &str, name: &str) -> Markup {
    html! {
        div class="figure" {
            b {
                @match value.rsplit_once(' ') {
                    Some((number, unit)) => { (number) small { (unit) } }
                    None => { (value) }
                }
            }
            span { (name) }
        } "\n"
    }
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub struct TableCell {
    class: Option<&'static str>,
    style: Option<&'static str>,
    content: Markup,
}

impl TableCell {
    /// A cell of this class.
    pub(crate) fn of_class(class: &'static str, content: Markup) -> Self {
        Self { class: Some(class), style: None, content }
    }

    /// Text that may take several lines, and begins at the left.
    #[must_use]
    pub fn prose(text: &str) -> Self {
        let content = html! { (text) };
        Self { class: Some("left"), style: Some("white-space:normal"), content }
    }
}

impl From<Markup> for TableCell {
    fn from(content: Markup) -> Self {
        Self { class: None, style: None, content }
    }
}

impl From<String> for TableCell {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&str> for TableCell {
    fn from(text: &str) -> Self {
        html! { (text) }.into()
    }
}

/// Heads of a table; each line of one is a line there.
pub fn heads<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<Markup> {
    texts.into_iter().map(|text| broken(text.lines())).collect()
}

/// Texts, each in a line of its own.
pub(crate) fn broken<'a>(lines: impl IntoIterator<Item = &'a str>) -> Markup {
    html! {
        @for (index, line) in lines.into_iter().enumerate() {
            @if index > 0 { br; }
            (line)
        }
    }
}

/// A table.
#[must_use]
pub fn table(heads: &[Markup], rows: &[Vec<TableCell>]) -> Markup {
    html! {
        div class="scroll" {
            table { "\n"
                thead { tr { @for head in heads { th { (head) } } } } "\n"
                tbody { "\n"
                    @for row in rows {
                        tr { @for cell in row { td class=[cell.class] style=[cell.style] { (cell.content) } } } "\n"
                    }
                } "\n"
            }
        } "\n"
    }
}

pub(crate) fn optional(value: Option<f64>, show: impl FnOnce(f64) -> String) -> String {
    value.map_or_else(|| "\u{2013}".to_owned(), show)
}

pub(crate) fn ms(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}") } else { thousands(value) }
}

/// What one colour means.
pub(crate) fn key(series: usize, label: &str) -> Markup {
    html! { span class="key" style={ "--key:var(" (series_variable(series)) ")" } { (label) } }
}

/// What the colours mean.
#[must_use]
pub fn keys(series: &[String]) -> Markup {
    html! { @for (index, label) in series.iter().enumerate() { (key(index % COLOURS_OF_SERIES, label)) } }
}

/// A wide figure with lines, and what their colours mean.
pub(crate) fn lines_figure(title: &str, series: &[String], svg: &str) -> Markup {
    html! {
        figure class="wide" {
            figcaption { span { b { (title) } } span class="keys" { (keys(series)) } } "\n"
            (inline_svg(svg))
        } "\n"
    }
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

/// Text as it can stand in a picture, which is no page.
pub(crate) fn escape(text: &str) -> String {
    html! { (text) }.into_string()
}
