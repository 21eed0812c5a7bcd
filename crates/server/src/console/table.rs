//! Numbers, times and tables as text.

use std::borrow::Cow;
use std::time::Duration;

use scrinium_statistics::one_line;

/// A cell has about this many bytes: names and messages of others stand in some.
const CELL_BYTES_MAX: usize = 4096;

/// How a column is set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// Lines of columns as wide as their widest cell, two spaces apart.
pub(super) fn table(columns: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<Cow<'_, str>>> =
        rows.iter().map(|row| row.iter().map(|cell| one_line(cell, CELL_BYTES_MAX)).collect()).collect();
    let width = |column: usize, title: &str| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([title.chars().count()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> =
        columns.iter().enumerate().map(|(column, (title, _))| width(column, title)).collect();
    let titles: Vec<Cow<'_, str>> = columns.iter().map(|(title, _)| Cow::Borrowed(*title)).collect();
    let mut text = String::new();
    for row in std::iter::once(&titles).chain(&rows) {
        let cells = row.iter().zip(columns).zip(&widths).map(|((cell, (_, align)), width)| match align {
            Align::Left => format!("{cell:<width$}"),
            Align::Right => format!("{cell:>width$}"),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A number without needless places: 12, 0.5, 99.875.
pub(super) fn number(value: f64) -> String {
    let places = if value.abs() >= 1.0 { 3 } else { 6 };
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Columns of numbers, but for some whose texts begin at the left.
pub(super) fn columns<const N: usize>(
    titles: [&'static str; N],
    texts: &[&str],
) -> [(&'static str, Align); N] {
    titles.map(|title| (title, if texts.contains(&title) { Align::Left } else { Align::Right }))
}

/// Bytes as megabytes, with one place.
#[allow(clippy::cast_precision_loss, reason = "a size needs no more than 53 bits")]
pub(super) fn megabytes_of(bytes: u64) -> String {
    megabytes(bytes as f64)
}

/// Bytes as megabytes, with one place.
pub(super) fn megabytes(bytes: f64) -> String {
    format!("{:.1}", bytes / 1_048_576.0)
}

/// A whole number with its thousands apart: 1,234,567.
pub(super) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let first = digits.len() % 3;
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && position % 3 == first {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Microseconds as milliseconds.
#[allow(clippy::cast_precision_loss, reason = "a time needs no more than 53 bits")]
pub(super) fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}

/// A time to be read, not to be computed with: 45 s, 3 min 20 s, 2 h 5 min, 3 d 4 h.
pub(super) fn spoken(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds % 60, "s")];
    let first = parts.iter().position(|(count, _)| *count > 0).unwrap_or(parts.len() - 1);
    let shown = parts.iter().skip(first).take(2).enumerate();
    let shown = shown.filter(|(position, (count, _))| *position == 0 || *count > 0);
    shown.map(|(_, (count, unit))| format!("{count} {unit}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_short() {
        let numbers = [0.0, 1.0, -2.5, 0.000_25, 1_234.567_89, f64::NAN].map(number);
        assert_eq!(numbers, ["0", "1", "-2.5", "0.00025", "1234.568", "NaN"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        let times = [0, 45, 200, 3600, 7500, 86_400, 273_600].map(Duration::from_secs).map(spoken);
        assert_eq!(times, ["0 s", "45 s", "3 min 20 s", "1 h", "2 h 5 min", "1 d", "3 d 4 h"]);
    }
}
