//! Numbers, times and sizes as people read them.

/// A number with commas between thousands, and decimals only when it is small.
#[must_use]
pub fn thousands(value: f64) -> String {
    if value.abs() < 10.0 && value.fract() != 0.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |rest| ("-", rest));
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    format!("{sign}{text}")
}

/// A time in milliseconds, with three digits or so.
#[must_use]
pub fn milliseconds(value: f64) -> String {
    match value {
        _ if value <= 0.0 => "0 ms".to_owned(),
        _ if value < 0.1 => format!("{value:.3} ms"),
        _ if value < 10.0 => format!("{value:.2} ms"),
        _ if value < 100.0 => format!("{value:.1} ms"),
        _ if value < 10_000.0 => format!("{} ms", thousands(value)),
        _ => format!("{:.1} s", value / 1000.0),
    }
}

/// A number of bytes, in units of 1,024.
#[must_use]
pub fn bytes(value: f64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB"];
    let mut value = value;
    let mut unit = units[0];
    for next in units.iter().skip(1) {
        if value.abs() < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if value.abs() < 10.0 && unit != "B" {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

/// What bytes are divided by to have round numbers at an axis, and what stands behind them.
pub(crate) fn bytes_scale(highest: f64) -> (f64, &'static str) {
    let scales = [(1024.0, " KB"), (1024.0 * 1024.0, " MB"), (1024.0 * 1024.0 * 1024.0, " GB")];
    scales.into_iter().rfind(|(scale, _)| *scale <= highest).unwrap_or((1.0, " B"))
}

/// A time in seconds, for people.
#[must_use]
pub fn time(seconds: f64) -> String {
    let short = |value: f64, unit: &str| {
        let text = format!("{value:.1}");
        format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
    };
    match seconds {
        _ if seconds < 1.0 => short(seconds * 1000.0, "ms"),
        _ if seconds < 120.0 => short(seconds, "s"),
        _ if seconds < 7200.0 => short(seconds / 60.0, "min"),
        _ => short(seconds / 3600.0, "h"),
    }
}
