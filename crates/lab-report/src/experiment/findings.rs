//! What an experiment showed, in sentences that are computed from its numbers, and from no more than was measured.

use super::model::{ExperimentReport, FigurePart, Published, Spread, Unit};
use super::search;
use crate::numbers::{bytes, milliseconds, thousands, time};

/// A value in its unit.
#[must_use]
pub fn shown(value: f64, unit: Unit) -> String {
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
pub fn factor(ratio: f64) -> String {
    match ratio {
        _ if ratio >= 100.0 => format!("\u{d7}{}", thousands(ratio)),
        _ if ratio >= 10.0 => format!("\u{d7}{ratio:.1}"),
        _ => format!("\u{d7}{ratio:.2}"),
    }
}

pub(super) fn of(report: &ExperimentReport) -> Vec<String> {
    let mut findings: Vec<String> = report.figures.iter().flat_map(of_figure).collect();
    findings.extend(report.cells.iter().filter_map(|cell| search::finding(&cell.search)));
    if !findings.is_empty() && report.cells.len() > 1 {
        findings.extend(how_sure(report.repeats).map(str::to_owned));
    }
    let out = report.cells.iter().filter(|cell| !cell.is_valid()).count();
    if out > 0 {
        findings.push(format!(
            "{out} of {} cells gave no valid result and are no part of these sentences; the table says why.",
            report.cells.len()
        ));
    }
    let left_out = report.cells.iter().filter(|cell| !cell.left_out.is_empty()).count();
    if left_out > 0 {
        findings.push(format!(
            "Of {left_out} of {} cells runs were left out, so that less is known of how far two of theirs differ.",
            report.cells.len()
        ));
    }
    findings
}

/// What this many runs of each cell can tell. Of 2n runs that do not differ, the n of one cell are all above or all below
/// the others in 2 of (2n choose n) cases.
fn how_sure(runs: u32) -> Option<&'static str> {
    match runs {
        0 | 1 => {
            Some("Each cell was measured once, so nothing is known of how far two runs of the same differ.")
        }
        2 => Some(
            "Each cell was measured twice: of cells that do not differ, one pair in three lies apart by chance.",
        ),
        3 => Some(
            "Each cell was measured three times: of cells that do not differ, one pair in ten lies apart by chance.",
        ),
        _ => None,
    }
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
        let is_like_it = |(row, value): &&(usize, Spread)| {
            base.runs.min(value.runs) > 1
                && !base.differs_from(value)
                && self.published_ratio(*first, *row).is_none()
        };
        // One sentence for all that make no difference, or those that do would be lost among them.
        let like_it: Vec<String> =
            others.iter().filter(is_like_it).map(|(row, value)| self.named(*row, value)).collect();
        let together = like_it.len() > 1;
        let mut alone: Vec<&(usize, Spread)> =
            others.iter().filter(|other| !(together && is_like_it(other))).collect();
        // What makes the largest difference comes first.
        alone.sort_by(|one, other| base.distance(&other.1).total_cmp(&base.distance(&one.1)));
        let mut sentences: Vec<String> =
            alone.into_iter().map(|other| self.beside((*first, *base), *other)).collect();
        if together {
            sentences.push(format!(
                "{}: {} differ from {} by no more than runs of the same do.",
                self.subject(),
                words(&like_it),
                self.named(*first, base)
            ));
        }
        sentences
    }

    /// `0.70 ms (as delivered)`.
    fn named(&self, row: usize, value: &Spread) -> String {
        format!("{} ({})", shown(value.mean, self.figure.unit), self.label(row))
    }

    /// One row held against another one.
    fn beside(&self, (first, base): (usize, Spread), (row, value): (usize, Spread)) -> String {
        let mut text =
            format!("{}: {}, {}", self.subject(), self.named(first, &base), self.named(row, &value));
        text.push_str(&ratio_text(base.mean, value.mean));
        text.push_str(match (base.differs_from(&value), base.runs.min(value.runs)) {
            (_, 0 | 1) => "",
            (true, _) => "; no run of one was among those of the other",
            (false, _) => ", which is within what runs of the same differ by",
        });
        if let Some(ratio) = self.published_ratio(first, row) {
            text.push_str(&format!(", in the source {}", factor(ratio)));
        }
        text.push('.');
        text
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

/// `a, b and c`.
fn words(list: &[String]) -> String {
    match list.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => list.concat(),
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
        let mut with_more = both;
        for (row, value) in [("mirror", spread(155.0, 165.0)), ("unsafe", spread(20.0, 24.0))] {
            with_more.rows.push(row.to_owned());
            with_more.values.push(vec![value]);
        }
        assert_eq!(
            of_figure(&with_more),
            [
                "Response: 160 ms (off), 22.0 ms (unsafe), \u{d7}0.14; no run of one was among those of the other.",
                "Response: 160 ms (off), 62.0 ms (on), \u{d7}0.39; no run of one was among those of the other.",
                "Response: 148 ms (archive) and 160 ms (mirror) differ from 160 ms (off) by no more than runs of the same do.",
            ]
        );
    }
}
