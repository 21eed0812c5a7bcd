//! What all forms of a report say alike: values with their units, rows of figures.

use scrinium_lab_report::{bytes, milliseconds, thousands};

use super::Plan;
use crate::answer::{Figure, Unit};
use crate::check::{Check, Comparison};
use crate::range::Range;

const DASH: &str = "\u{2013}";

/// One value.
pub(super) fn value(number: f64, unit: Unit) -> String {
    if !number.is_finite() {
        return if unit == Unit::Milliseconds { "without end".to_owned() } else { "no number".to_owned() };
    }
    match unit {
        Unit::Count | Unit::Cores => thousands(number),
        Unit::PerSecond => format!("{}/s", rate(number)),
        Unit::Percent => percent(number),
        Unit::Milliseconds => milliseconds(number),
        Unit::Bytes => bytes(number),
        Unit::BytesPerSecond => format!("{}/s", bytes(number)),
    }
}

fn percent(number: f64) -> String {
    if number.abs() < 10.0 { format!("{number:.1} %") } else { format!("{} %", thousands(number.round())) }
}

fn rate(number: f64) -> String {
    if number < 10.0 { format!("{number:.2}") } else { thousands(number) }
}

/// The lowest and the highest, where they differ from each other as they are shown.
pub(super) fn spread(range: &Range, unit: Unit) -> String {
    let (low, high) = (value(range.low, unit), value(range.high, unit));
    if low == high { String::new() } else { format!("{low} {DASH} {high}") }
}

/// Heads of a check's table.
pub(super) const COMPARED: [&str; 6] = ["", "Forecast", "Low", "High", "Measured", "Error"];

/// One of its rows.
pub(super) fn compared(row: &Comparison) -> [String; 6] {
    let number =
        |value: f64| if value.is_finite() { format!("{value:.2}") } else { "without end".to_owned() };
    let error = row.error_percent;
    [
        row.what.to_owned(),
        number(row.forecast.value),
        number(row.forecast.low),
        number(row.forecast.high),
        number(row.measured.value),
        if error.is_finite() { format!("{error:+.1} %") } else { DASH.to_owned() },
    ]
}

/// What was forecast from what.
pub(super) fn extrapolated(check: &Check) -> String {
    format!(
        "{} users at a speed-up of {}, {:.1} times the {} of the calibration",
        thousands(f64::from(check.users)),
        check.speedup,
        f64::from(check.users) / check.calibrated_users.max(1.0),
        thousands(check.calibrated_users),
    )
}

/// The figures of a plan: title, value, range, and a value for each what-if.
pub(super) struct Row<'a> {
    pub(super) figure: &'a Figure,
    pub(super) value: String,
    pub(super) spread: String,
    pub(super) otherwise: Vec<String>,
}

pub(super) fn rows(plan: &Plan) -> Vec<Row<'_>> {
    let row = |figure: &'static str| {
        move |scenario: &super::Scenario| {
            scenario
                .plan
                .figure(figure)
                .map_or_else(|| DASH.to_owned(), |figure| value(figure.range.value, figure.unit))
        }
    };
    // A figure that only a changed plan has is shown too, behind the one that it follows there.
    let mut figures: Vec<&Figure> = plan.plan.figures.iter().collect();
    for scenario in &plan.what_if {
        let mut place = 0;
        for figure in &scenario.plan.figures {
            match figures.iter().position(|known| known.key == figure.key) {
                Some(known) => place = known + 1,
                None => {
                    figures.insert(place.min(figures.len()), figure);
                    place += 1;
                }
            }
        }
    }
    figures
        .into_iter()
        .map(|figure| {
            let own = plan.plan.figure(figure.key);
            Row {
                figure,
                value: own.map_or_else(|| DASH.to_owned(), |own| value(own.range.value, own.unit)),
                spread: own.map_or_else(String::new, |own| spread(&own.range, own.unit)),
                otherwise: plan.what_if.iter().map(row(figure.key)).collect(),
            }
        })
        .collect()
}

/// What a reader has to know besides the figures, a sentence each.
pub(super) fn sentences(plan: &Plan) -> Vec<String> {
    let answer = &plan.plan;
    let mut lines = vec![format!("What breaks first: {}", answer.breaks_first)];
    let reach = answer.reach.iter().map(|reach| {
        format!(
            "{}: {} asked, {} measured: {}.",
            capital(reach.what),
            thousands(reach.asked.round()),
            thousands(reach.measured.round()),
            reach.text
        )
    });
    lines.extend(reach);
    lines
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}
