//! Searches for the largest number of users: their points, what all runs of a cell say together, and the curve of it.

use serde::{Deserialize, Serialize};

use super::model::{CellPart, Spread, Unit};
use super::page::cell;
use super::text::value;
use crate::error::ReportError;
use crate::numbers::{milliseconds, thousands};
use crate::page::{
    CurvePoint, Curves, Marks, Markup, TableCell, heads, html, lines_figure, section_head, table,
};

pub(super) const TITLE: &str = "Response against users";

const HEADS: [&str; 5] = ["Users", "Average", "99 %", "Transactions per minute", "Reached"];

/// A curve that leaves its chord by less than this is taken for straight.
const LEAST_BEND: f64 = 0.1;

/// Nothing is answered sooner, so that every response has a logarithm.
const LEAST_MS: f64 = 1e-3;

/// What one run of a search found for one number of users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SearchPoint {
    pub users: f64,
    pub average_ms: f64,
    pub p99_ms: f64,
    pub transactions_per_minute: f64,
    /// The run is valid, and its average within the objective.
    pub reached: bool,
    /// Why the run says nothing of the server, such as a driver that was short of processor time. A server that did
    /// not keep up has missed the objective, and nothing is wrong with the run.
    #[serde(default)]
    pub invalid: Option<String>,
}

/// One number of users, by all runs that tried it.
struct Tried {
    users: f64,
    average_ms: Spread,
    p99_ms: Spread,
    transactions_per_minute: Spread,
    reached: usize,
    /// Those that its values are of: the valid ones, if there are any.
    runs: usize,
    /// Why none of them is valid.
    invalid: Option<String>,
}

impl Tried {
    fn of(users: f64, points: &[SearchPoint]) -> Option<Self> {
        let tried: Vec<&SearchPoint> =
            points.iter().filter(|point| point.users.total_cmp(&users).is_eq()).collect();
        let valid: Vec<&SearchPoint> =
            tried.iter().copied().filter(|point| point.invalid.is_none()).collect();
        let invalid = if valid.is_empty() { tried.first()?.invalid.clone() } else { None };
        let counted = if valid.is_empty() { tried } else { valid };
        let spread = |value: fn(&SearchPoint) -> f64| {
            Spread::of(&counted.iter().map(|point| value(point)).collect::<Vec<f64>>())
        };
        Some(Self {
            users,
            average_ms: spread(|point| point.average_ms)?,
            p99_ms: spread(|point| point.p99_ms)?,
            transactions_per_minute: spread(|point| point.transactions_per_minute)?,
            reached: counted.iter().filter(|point| point.reached).count(),
            runs: counted.len(),
            invalid,
        })
    }

    /// In every run.
    fn is_reached(&self) -> bool {
        self.invalid.is_none() && self.reached == self.runs
    }

    /// `yes`, `in 1 of 2 runs`, `no`, or why the run is not valid.
    fn outcome(&self) -> String {
        match &self.invalid {
            Some(why) => format!("not valid: {why}"),
            None if self.is_reached() => "yes".to_owned(),
            None if self.reached > 0 => format!("in {} of {} runs", self.reached, self.runs),
            None => "no".to_owned(),
        }
    }
}

/// From the fewest users to the most.
fn tried(points: &[SearchPoint]) -> Vec<Tried> {
    let mut users: Vec<f64> = points.iter().map(|point| point.users).collect();
    users.sort_by(f64::total_cmp);
    users.dedup();
    users.into_iter().filter_map(|users| Tried::of(users, points)).collect()
}

/// Where the searches of a cell ended, and where the curve bends.
pub(super) fn finding(points: &[SearchPoint]) -> Option<String> {
    let all = tried(points);
    let reached = all.iter().take_while(|tried| tried.is_reached()).count();
    let largest = all.get(reached.checked_sub(1)?)?;
    let mut text = format!(
        "{} users reached the objective, with {} on average and {} transactions a minute; ",
        thousands(largest.users),
        milliseconds(largest.average_ms.mean),
        thousands(largest.transactions_per_minute.mean)
    );
    text.push_str(&match all.get(reached) {
        None => "more were not tried.".to_owned(),
        Some(Tried { users, invalid: Some(why), .. }) => format!(
            "how many more would have is not known, since the run with {} was not valid: {why}.",
            thousands(*users)
        ),
        Some(tried) => format!(
            "{} missed it{}, with {}.",
            thousands(tried.users),
            if tried.reached > 0 {
                format!(" in {} of {} runs", tried.runs - tried.reached, tried.runs)
            } else {
                String::new()
            },
            milliseconds(tried.average_ms.mean)
        ),
    });
    if let Some(knee) = knee(&all) {
        text.push_str(&format!(
            " The curve of the average response bends most at {} users ({}).",
            thousands(knee.users),
            milliseconds(knee.average_ms.mean)
        ));
    }
    Some(text)
}

/// The valid point that lies farthest below the straight line between the first and the last one, both axes as parts of
/// their ranges ("Kneedle", Satopää et al., 2011), responses by their logarithms: how long people wait of a server that
/// is overloaded by far would else decide where the curve bends. `None` of fewer than four points, or where there is
/// no bend.
fn knee(all: &[Tried]) -> Option<&Tried> {
    let valid: Vec<&Tried> = all.iter().filter(|tried| tried.invalid.is_none()).collect();
    let place = |tried: &Tried| (tried.users, tried.average_ms.mean.max(LEAST_MS).ln());
    let ((left, low), (right, high)) = (place(valid.first()?), place(valid.last()?));
    if valid.len() < 4 || right <= left || high <= low {
        return None;
    }
    let below = |tried: &Tried| {
        let (users, response) = place(tried);
        (users - left) / (right - left) - (response - low) / (high - low)
    };
    let deepest = valid.iter().copied().max_by(|one, other| below(one).total_cmp(&below(other)))?;
    (below(deepest) > LEAST_BEND).then_some(deepest)
}

/// What the lines of a search are.
pub(super) fn series() -> [String; 2] {
    ["average", "99 %"].map(str::to_owned)
}

/// The lines of a search as an `<svg>` element.
pub(super) fn lines(points: &[SearchPoint]) -> Result<String, ReportError> {
    let all = tried(points);
    let line = |value: fn(&Tried) -> Spread| -> Vec<CurvePoint> {
        let point = |tried: &Tried| {
            let spread = value(tried);
            CurvePoint { x: tried.users, low: spread.low, mean: spread.mean, high: spread.high }
        };
        all.iter().map(point).collect()
    };
    let curves = Curves {
        lines: vec![line(|tried| tried.average_ms), line(|tried| tried.p99_ms)],
        show_x: &thousands,
        show_y: &milliseconds,
        marks: Marks::All,
        logarithmic: true,
    };
    curves.svg()
}

/// The table of a search, for Markdown: heads and rows.
pub(super) fn plain_table(points: &[SearchPoint]) -> (Vec<String>, Vec<Vec<String>>) {
    let row = |tried: &Tried| {
        vec![
            thousands(tried.users),
            value(Some(&tried.average_ms), Unit::Milliseconds),
            value(Some(&tried.p99_ms), Unit::Milliseconds),
            value(Some(&tried.transactions_per_minute), Unit::Count),
            tried.outcome(),
        ]
    };
    (HEADS.map(str::to_owned).to_vec(), tried(points).iter().map(row).collect())
}

/// Curve and table of a cell's search, for a page.
pub(super) fn section(found: &CellPart) -> Result<Markup, ReportError> {
    let row = |tried: &Tried| -> Vec<TableCell> {
        vec![
            thousands(tried.users).into(),
            cell(Some(&tried.average_ms), Unit::Milliseconds).into(),
            cell(Some(&tried.p99_ms), Unit::Milliseconds).into(),
            cell(Some(&tried.transactions_per_minute), Unit::Count).into(),
            tried.outcome().into(),
        ]
    };
    let rows: Vec<Vec<TableCell>> = tried(&found.search).iter().map(row).collect();
    let svg = lines(&found.search)?;
    Ok(html! {
        (section_head(TITLE, &found.labels.join(", ")))
        (lines_figure("Response", &series(), &svg))
        (table(&heads(HEADS), &rows))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(users: f64, average_ms: f64) -> SearchPoint {
        SearchPoint {
            users,
            average_ms,
            p99_ms: 2.0 * average_ms,
            transactions_per_minute: users,
            reached: average_ms < 50.0,
            invalid: None,
        }
    }

    fn text(points: &[SearchPoint]) -> String {
        finding(points).unwrap_or_default()
    }

    #[test]
    fn the_knee_is_where_the_curve_bends() {
        let curve = [(100.0, 5.0), (200.0, 6.0), (400.0, 8.0), (500.0, 60.0), (600.0, 200.0)]
            .map(|(users, average_ms)| point(users, average_ms));
        assert_eq!(
            text(&curve),
            "400 users reached the objective, with 8.00 ms on average and 400 transactions a minute; 500 missed it, with 60.0 ms. The curve of the average response bends most at 400 users (8.00 ms)."
        );
        // How far it is overloaded at the end does not move it.
        let mut overloaded = curve;
        if let Some(last) = overloaded.last_mut() {
            last.average_ms = 20_000.0;
        }
        assert!(text(&overloaded).ends_with("bends most at 400 users (8.00 ms)."), "{}", text(&overloaded));
        let straight = [1.0, 2.0, 3.0, 4.0].map(|number| point(number, number));
        assert_eq!(
            text(&straight),
            "4 users reached the objective, with 4.00 ms on average and 4 transactions a minute; more were not tried."
        );
    }

    /// Two runs of a search end at different numbers. The larger one is not what the server holds.
    #[test]
    fn runs_that_ended_at_different_numbers_are_told_together() {
        let runs = [
            point(100.0, 5.0),
            point(200.0, 40.0),
            point(250.0, 45.0),
            point(100.0, 7.0),
            point(200.0, 60.0),
        ];
        assert_eq!(
            text(&runs),
            "100 users reached the objective, with 6.00 ms on average and 100 transactions a minute; 200 missed it in 1 of 2 runs, with 50.0 ms."
        );
        let (_, rows) = plain_table(&runs);
        let outcomes: Vec<&str> = rows.iter().filter_map(|row| row.last()).map(String::as_str).collect();
        assert_eq!(outcomes, ["yes", "in 1 of 2 runs", "yes"]);
        assert_eq!(
            rows.first().and_then(|row| row.get(1)).map(String::as_str),
            Some("6.00 ms (5.00 ms\u{2013}7.00 ms)")
        );
    }

    /// It was told that the server had missed the objective where the driver had no time.
    #[test]
    fn a_starved_driver_is_no_miss_of_the_server() {
        let mut starved = point(400.0, 900.0);
        starved.invalid = Some("the driver had no time".to_owned());
        let curve = [point(100.0, 5.0), point(200.0, 6.0), point(300.0, 7.0), starved];
        assert_eq!(
            text(&curve),
            "300 users reached the objective, with 7.00 ms on average and 300 transactions a minute; how many more would have is not known, since the run with 400 was not valid: the driver had no time."
        );
    }
}
