//! What an experiment showed, in sentences that are computed from its numbers, and from no more than was measured.

use super::definition::{Published, Unit};
use super::model::{ExperimentReport, FigurePart, Spread};
use crate::report::{bytes, milliseconds, thousands, time};

/// A value in its unit.
#[must_use]
pub(crate) fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Count => thousands(value),
        Unit::Percent if (0.005..1.0).contains(&value.abs()) => format!("{value:.2} %"),
        Unit::Percent => format!("{value:.1} %"),
        Unit::Milliseconds => milliseconds(value),
        Unit::Seconds => time(value),
        Unit::Bytes => bytes(value),
        Unit::Ratio => format!("{value:.2}"),
    }
}

/// `×2.5`: three digits or so.
#[must_use]
pub(crate) fn factor(ratio: f64) -> String {
    match ratio {
        _ if ratio >= 100.0 => format!("\u{d7}{}", thousands(ratio)),
        _ if ratio >= 10.0 => format!("\u{d7}{ratio:.1}"),
        _ => format!("\u{d7}{ratio:.2}"),
    }
}

pub(super) fn of(report: &ExperimentReport, in_findings: &[bool]) -> Vec<String> {
    let mut findings = Vec::new();
    for figure in &report.figures {
        let index = report.columns.iter().position(|column| column.title == figure.title);
        if index.is_none_or(|index| in_findings.get(index).copied().unwrap_or(true)) {
            findings.extend(of_figure(figure));
        }
    }
    findings.extend(
        report.cells.iter().filter(|cell| !cell.search.is_empty()).filter_map(|cell| of_search(&cell.search)),
    );
    if !findings.is_empty() && report.repeats < 2 {
        findings.push(
            "Each cell was measured once, so nothing is known of how far two runs of the same differ."
                .to_owned(),
        );
    }
    let out = report.cells.iter().filter(|cell| !cell.invalid.is_empty() || cell.failed.is_some()).count();
    if out > 0 {
        findings.push(format!(
            "{out} of {} cells gave no valid result and are no part of these sentences; the table says why.",
            report.cells.len()
        ));
    }
    findings
}

/// Sentences of one figure.
pub(super) fn of_figure(figure: &FigurePart) -> Vec<String> {
    let columns = figure.values.iter().map(Vec::len).max().unwrap_or(0);
    let numbers: Option<Vec<f64>> = figure.rows.iter().map(|label| number(label)).collect();
    let mut sentences = Vec::new();
    for column in 0..columns {
        let points: Vec<(usize, Spread)> = figure
            .values
            .iter()
            .enumerate()
            .filter_map(|(row, values)| Some((row, values.get(column).copied().flatten()?)))
            .collect();
        let line = Line { figure, column, points };
        match &numbers {
            Some(_) => sentences.extend(line.ends_of_range()),
            None => sentences.extend(line.against_the_first()),
        }
    }
    sentences
}

/// One series of a figure: rows that have a value.
struct Line<'a> {
    figure: &'a FigurePart,
    column: usize,
    points: Vec<(usize, Spread)>,
}

impl Line<'_> {
    /// What the sentence is about: the column, and the level of the series.
    fn subject(&self) -> String {
        match self.figure.series.get(self.column) {
            Some(level) => format!("{} ({}: {level})", self.figure.title, self.figure.series_title),
            None => self.figure.title.clone(),
        }
    }

    fn label(&self, row: usize) -> &str {
        self.figure.rows.get(row).map_or("", String::as_str)
    }

    fn ends_of_range(&self) -> Option<String> {
        let ((first, low), (last, high)) = (self.points.first()?, self.points.last()?);
        if first == last {
            return None;
        }
        let unit = self.figure.unit;
        let (from, to) = (self.label(*first), self.label(*last));
        let mut text = format!("{}, from {from} to {to} ({}): ", self.subject(), self.figure.rows_title);
        text.push_str(&change(low, high, unit));
        if let Some((published_from, published_to, a, b)) = self.published_ends() {
            text.push_str(&format!(" The source, from {published_from} to {published_to}: {a} to {b}"));
            if let Some(ratio) = ratio_of_texts(&a, &b) {
                text.push_str(&format!(" ({})", factor(ratio)));
            }
            text.push('.');
        }
        Some(text)
    }

    /// First and last row of the source's table that have a value in this series' column.
    fn published_ends(&self) -> Option<(String, String, String, String)> {
        let table = self.figure.published.as_ref()?;
        let column = self.published_column(table)?;
        let mut cells = table.rows.iter().filter_map(|row| {
            let value = row.get(column)?;
            number(value).map(|_| (row.first().cloned().unwrap_or_default(), value.clone()))
        });
        let first = cells.next()?;
        let last = cells.next_back()?;
        Some((first.0, last.0, first.1, last.1))
    }

    /// The column of the source's table that is headed as this series is called; without series the only one.
    fn published_column(&self, table: &Published) -> Option<usize> {
        match self.figure.series.get(self.column) {
            None => (table.columns.len() == 2).then_some(1),
            Some(level) => table.columns.iter().position(|head| head.eq_ignore_ascii_case(level)),
        }
    }

    fn against_the_first(&self) -> Vec<String> {
        let Some(((first, base), others)) = self.points.split_first() else { return Vec::new() };
        let unit = self.figure.unit;
        let sentence = |(row, value): &(usize, Spread)| {
            let mut text = format!(
                "{}: {} ({}), {} ({})",
                self.subject(),
                shown(base.mean, unit),
                self.label(*first),
                shown(value.mean, unit),
                self.label(*row)
            );
            text.push_str(&match (base.differs_from(value), base.runs.min(value.runs)) {
                (_, 0 | 1) => ratio_text(base.mean, value.mean),
                (true, _) => format!(
                    "{}; no run of one was among those of the other",
                    ratio_text(base.mean, value.mean)
                ),
                (false, _) => format!(
                    "{}, which is within what runs of the same differ by",
                    ratio_text(base.mean, value.mean)
                ),
            });
            if let Some(ratio) = self.published_ratio(*first, *row) {
                text.push_str(&format!(", in the source {}", factor(ratio)));
            }
            text.push('.');
            text
        };
        others.iter().map(sentence).collect()
    }

    /// What the source's value of one row is of another one's, by the rows' names.
    fn published_ratio(&self, first: usize, row: usize) -> Option<f64> {
        let table = self.figure.published.as_ref()?;
        let column = self.published_column(table)?;
        let cell = |label: &str| {
            let named = |row: &&Vec<String>| row.first().is_some_and(|name| name.eq_ignore_ascii_case(label));
            table.rows.iter().find(named)?.get(column).map(String::as_str)
        };
        ratio_of_texts(cell(self.label(first))?, cell(self.label(row))?)
    }
}

fn ratio_of_texts(from: &str, to: &str) -> Option<f64> {
    let (from, to) = (number(from)?, number(to)?);
    (from > 0.0).then_some(to / from)
}

/// What one value is of another; values below 0 have no ratio that says anything.
fn ratio_text(from: f64, to: f64) -> String {
    if from > 0.0 && to >= 0.0 { format!(", {}", factor(to / from)) } else { String::new() }
}

/// How one value became another.
fn change(from: &Spread, to: &Spread, unit: Unit) -> String {
    let (a, b) = (shown(from.mean, unit), shown(to.mean, unit));
    let ratio = ratio_text(from.mean, to.mean);
    if from.runs.min(to.runs) < 2 {
        return format!("{a} to {b}{ratio}.");
    }
    if !from.differs_from(to) {
        return format!("{a} and {b}{ratio}: no change beyond what runs of the same differ by.");
    }
    let word = if to.mean > from.mean { "it rose" } else { "it fell" };
    format!("{word} from {a} to {b}{ratio}.")
}

/// The number that a text begins with: `1,000`, `25.24`, `16%`, `253K`; `01:36` and `01:25:04` in seconds.
#[must_use]
pub(crate) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    if text.contains(':') {
        let parts: Option<Vec<f64>> = text.split(':').map(|part| part.parse().ok()).collect();
        return Some(parts?.into_iter().fold(0.0, |sum, part| sum * 60.0 + part));
    }
    let text = text.replace(',', "");
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    let known = matches!(rest.trim(), "" | "%" | "K" | "KB" | "MB" | "GB" | "s" | "ms" | "M");
    let scale = match rest.trim() {
        "KB" | "K" => 1024.0,
        "MB" | "M" => 1024.0 * 1024.0,
        "GB" => 1024.0 * 1024.0 * 1024.0,
        _ => 1.0,
    };
    digits.parse::<f64>().ok().filter(|_| known).map(|number| number * scale)
}

/// A search for the largest number of users: where it ended, and where the curve bends.
fn of_search(points: &[super::load_step::SearchPoint]) -> Option<String> {
    let largest =
        points.iter().filter(|point| point.reached).max_by(|one, other| one.users.total_cmp(&other.users))?;
    let missed =
        points.iter().filter(|point| !point.reached).min_by(|one, other| one.users.total_cmp(&other.users));
    let mut text = format!(
        "{} users reached the objective, with {} on average and {} transactions a minute",
        thousands(largest.users),
        milliseconds(largest.average_ms),
        thousands(largest.transactions_per_minute)
    );
    match missed {
        Some(missed) => text.push_str(&format!(
            "; {} missed it, with {}.",
            thousands(missed.users),
            milliseconds(missed.average_ms)
        )),
        None => text.push_str("; more were not tried."),
    }
    if let Some(knee) = knee(points) {
        text.push_str(&format!(
            " The curve of the average response bends most at {} users ({}).",
            thousands(knee.users),
            milliseconds(knee.average_ms)
        ));
    }
    Some(text)
}

/// The point that lies farthest below the straight line between the first and the last one, both axes as parts of
/// their ranges ("Kneedle", Satopää et al., 2011). `None` of fewer than four points, or where there is no bend.
fn knee(points: &[super::load_step::SearchPoint]) -> Option<super::load_step::SearchPoint> {
    /// A curve that leaves its chord by less than this is taken for straight.
    const LEAST_BEND: f64 = 0.1;
    let (first, last) = (points.first()?, points.last()?);
    let (width, height) = (last.users - first.users, last.average_ms - first.average_ms);
    if points.len() < 4 || width <= 0.0 || height <= 0.0 {
        return None;
    }
    let below = |point: &super::load_step::SearchPoint| {
        (point.users - first.users) / width - (point.average_ms - first.average_ms) / height
    };
    let deepest = points.iter().max_by(|one, other| below(one).total_cmp(&below(other)))?;
    (below(deepest) > LEAST_BEND).then_some(*deepest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(low: f64, high: f64) -> Option<Spread> {
        Spread::of(&[low, high])
    }

    fn figure(rows: &[&str], values: Vec<Vec<Option<Spread>>>) -> FigurePart {
        FigurePart {
            title: "Response".to_owned(),
            unit: Unit::Milliseconds,
            rows_title: "users".to_owned(),
            rows: rows.iter().map(|row| (*row).to_owned()).collect(),
            series_title: String::new(),
            series: Vec::new(),
            values,
            fixed: Vec::new(),
            published: None,
        }
    }

    #[test]
    fn numbers_are_read_as_tables_write_them() {
        let read = |text| number(text).unwrap_or(f64::NAN);
        assert_eq!([read("1,000"), read(".04"), read("16%"), read("01:25:04")], [1000.0, 0.04, 16.0, 5104.0]);
        assert_eq!(read("253K"), 253.0 * 1024.0);
        assert!(number("off").is_none() && number("").is_none() && number("NA").is_none());
    }

    #[test]
    fn a_change_is_told_with_its_range_and_beside_the_source() {
        let mut rose =
            figure(&["1", "100", "400"], vec![vec![spread(9.0, 11.0)], vec![None], vec![spread(38.0, 42.0)]]);
        rose.published = Some(Published {
            title: String::new(),
            columns: vec!["Users".to_owned(), "s".to_owned()],
            rows: vec![vec!["100".to_owned(), ".04".to_owned()], vec!["350".to_owned(), "14.49".to_owned()]],
            note: String::new(),
        });
        assert_eq!(
            of_figure(&rose),
            [
                "Response, from 1 to 400 (users): it rose from 10.0 ms to 40.0 ms, \u{d7}4.00. The source, from 100 to 350: .04 to 14.49 (\u{d7}362)."
            ]
        );
        // The last one that has a value, not the last that was wished for.
        rose.values[2] = vec![None];
        rose.values[1] = vec![spread(8.0, 10.5)];
        rose.published = None;
        assert_eq!(
            of_figure(&rose),
            [
                "Response, from 1 to 100 (users): 10.0 ms and 9.25 ms, \u{d7}0.93: no change beyond what runs of the same differ by."
            ]
        );
    }

    #[test]
    fn levels_without_numbers_are_held_against_the_first() {
        let both = figure(
            &["off", "on", "archive"],
            vec![vec![spread(150.0, 170.0)], vec![spread(60.0, 64.0)], vec![spread(140.0, 155.0)]],
        );
        assert_eq!(
            of_figure(&both),
            [
                "Response: 160 ms (off), 62.0 ms (on), \u{d7}0.39; no run of one was among those of the other.",
                "Response: 160 ms (off), 148 ms (archive), \u{d7}0.92, which is within what runs of the same differ by.",
            ]
        );
    }

    #[test]
    fn the_knee_is_where_the_curve_bends() {
        let point = |users: f64, average_ms: f64| super::super::load_step::SearchPoint {
            users,
            average_ms,
            p99_ms: 0.0,
            transactions_per_minute: users,
            reached: average_ms < 50.0,
        };
        let curve = [
            point(100.0, 5.0),
            point(200.0, 6.0),
            point(400.0, 8.0),
            point(500.0, 60.0),
            point(600.0, 200.0),
        ];
        assert_eq!(knee(&curve).map(|knee| knee.users), Some(400.0));
        assert!(knee(&[point(1.0, 1.0), point(2.0, 2.0), point(3.0, 3.0), point(4.0, 4.0)]).is_none());
        assert!(
            of_search(&curve)
                .unwrap_or_default()
                .starts_with("400 users reached the objective, with 8.00 ms")
        );
    }
}
