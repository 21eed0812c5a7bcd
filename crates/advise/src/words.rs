//! Numbers as people read them, and sizes as the configuration takes them.

use crate::advice::Unit;

pub(crate) const MB: f64 = 1_048_576.0;
pub(crate) const GB: f64 = 1024.0 * MB;
pub(crate) const DAY_S: f64 = 86_400.0;

/// A number with its unit.
pub(crate) fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Count => count(value),
        Unit::Bytes => bytes(value),
        Unit::Percent => format!("{} %", places(value)),
        Unit::Milliseconds => format!("{} ms", places(value)),
        Unit::Seconds => format!("{} s", places(value)),
        Unit::Days => format!("{} days", places(value)),
        Unit::Truth => (if value >= 1.0 { "yes" } else { "no" }).to_owned(),
    }
}

/// Thousands apart where it is whole: 1,234,567.
pub(crate) fn count(value: f64) -> String {
    if value < 100.0 && value.fract() > 0.0 {
        return places(value);
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::from(if value < 0.0 { "-" } else { "" });
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// At most two places, fewer in large numbers.
fn places(value: f64) -> String {
    let places = match value.abs() {
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn bytes(value: f64) -> String {
    match value {
        large if large >= GB => format!("{} GB", places(value / GB)),
        middle if middle >= MB => format!("{} MB", places(value / MB)),
        small if small >= 1024.0 => format!("{} KB", places(value / 1024.0)),
        _ => format!("{} bytes", count(value)),
    }
}

/// A size as the configuration takes it: whole gigabytes where there are several, else whole megabytes.
pub(crate) fn size(bytes: f64) -> String {
    if bytes >= 8.0 * GB {
        format!("{:.0} GB", (bytes / GB).floor())
    } else {
        format!("{:.0} MB", (bytes / MB).floor().max(1.0))
    }
}

/// A time as the configuration takes it.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        days if days >= 2.0 * DAY_S => format!("{:.0} d", (days / DAY_S).round()),
        hours if hours >= 7200.0 => format!("{:.0} h", (hours / 3600.0).round()),
        minutes if minutes >= 120.0 => format!("{:.0} min", (minutes / 60.0).round()),
        seconds => format!("{:.0} s", seconds.round()),
    }
}

/// A time as people say it.
pub(crate) fn spoken(seconds: f64) -> String {
    if seconds >= 120.0 { time(seconds) } else { format!("{} s", places(seconds)) }
}

/// Lines of at most `width` letters, the first of which has `first` before it and the others blanks.
pub(crate) fn wrapped(first: &str, text: &str, width: usize) -> String {
    let indent = " ".repeat(first.chars().count());
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_whitespace() {
        let taken = indent.len() + line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && taken > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    let before = std::iter::once(first).chain(std::iter::repeat(indent.as_str()));
    before.zip(lines).map(|(before, line)| format!("{before}{line}").trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_sizes_are_taken_by_the_configuration() {
        assert_eq!(
            [0.0, 0.25, 12.0, 999.0, 1000.0, 1_234_567.0].map(count).join(" "),
            "0 0.25 12 999 1,000 1,234,567"
        );
        assert_eq!([12.0, 2048.0, 1.5 * MB, 200.0 * GB].map(bytes).join(" "), "12 bytes 2 KB 1.5 MB 200 GB");
        assert_eq!([0.5 * MB, 1.5 * GB, 20.9 * GB].map(size), ["1 MB", "1536 MB", "20 GB"]);
        assert_eq!(
            [5.0, 90.0, 600.0, 7200.0, 90.0 * DAY_S].map(time),
            ["5 s", "90 s", "10 min", "2 h", "90 d"]
        );
        assert_eq!(wrapped("a  ", "one two three", 9), "a  one\n   two\n   three\n");
    }
}
