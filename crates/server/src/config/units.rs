//! Sizes, times and shares as people write them.

use std::fmt;
use std::time::Duration;

const KIB: u64 = 1024;

/// Longest first, so that a size is written with the largest unit that divides it.
const BYTE_UNITS: [(&str, u64); 4] =
    [("TB", KIB * KIB * KIB * KIB), ("GB", KIB * KIB * KIB), ("MB", KIB * KIB), ("KB", KIB)];

const DURATION_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1)];

/// A number of bytes: `8 MB`, `512KB`, `1073741824`. A KB is 1,024 bytes, as in the tools of the field;
/// `KiB` and `K` mean the same.
///
/// # Errors
/// Says what is wrong with the text.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split_unit(text);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" | "byte" | "bytes" => 1,
        "k" | "kb" | "kib" => KIB,
        "m" | "mb" | "mib" => KIB * KIB,
        "g" | "gb" | "gib" => KIB * KIB * KIB,
        "t" | "tb" | "tib" => KIB * KIB * KIB * KIB,
        _ => return Err(format!("{text:?} is no size: the units are KB, MB, GB and TB")),
    };
    multiplied(number, factor).ok_or_else(|| format!("{text:?} is no size: write it like \"64 MB\""))
}

/// A size with the largest unit that expresses it exactly.
#[must_use]
pub fn print_bytes(bytes: u64) -> String {
    let unit = BYTE_UNITS.iter().find(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor));
    unit.map_or_else(|| bytes.to_string(), |(name, factor)| format!("{} {name}", bytes / factor))
}

/// A time: `500 ms`, `30 s`, `10 min`, `2 h`, `7 d`. The unit must be there, except for 0.
///
/// # Errors
/// Says what is wrong with the text.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split_unit(text);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" if number == "0" => 1,
        "" => return Err(format!("{text:?} has no unit: write ms, s, min, h or d after the number")),
        "ms" => 1,
        "s" | "sec" | "second" | "seconds" => 1000,
        "m" | "min" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        _ => return Err(format!("{text:?} is no time: the units are ms, s, min, h and d")),
    };
    let milliseconds = multiplied(number, factor);
    milliseconds
        .map(Duration::from_millis)
        .ok_or_else(|| format!("{text:?} is no time: write it like \"30 s\""))
}

/// A time with the largest unit that expresses it exactly.
#[must_use]
pub fn print_duration(duration: Duration) -> String {
    let milliseconds = scrinium_clock::milliseconds(duration);
    let unit = DURATION_UNITS.iter().find(|(_, factor)| milliseconds.is_multiple_of(*factor));
    match unit {
        Some((name, factor)) if milliseconds > 0 => format!("{} {name}", milliseconds / factor),
        _ => "0 s".to_owned(),
    }
}

/// A size given as itself or as a part of something larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// This many bytes.
    Bytes(u64),
    /// This many hundredths of the whole.
    Percent(u64),
}

impl Share {
    /// Parses `25 %` or a size.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(number) = text.trim().strip_suffix('%') else { return parse_bytes(text).map(Self::Bytes) };
        match number.trim().parse() {
            Ok(percent) if percent <= 100 => Ok(Self::Percent(percent)),
            _ => Err(format!("{text:?} is no part of a whole: write it like \"25 %\"")),
        }
    }

    /// The number of bytes where the whole has `total_bytes`.
    #[must_use]
    pub fn of(self, total_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => total_bytes / 100 * percent + total_bytes % 100 * percent / 100,
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => formatter.write_str(&print_bytes(*bytes)),
            Self::Percent(percent) => write!(formatter, "{percent} %"),
        }
    }
}

fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim_start())
}

/// `number` times `factor`, exactly; a fraction is allowed where the product is whole (`1.5 GB`).
fn multiplied(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().ok()?;
    let product = whole.checked_mul(factor)?;
    if fraction.is_empty() {
        return (!number.ends_with('.')).then_some(product);
    }
    let numerator: u64 = fraction.parse().ok()?;
    let denominator = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = numerator.checked_mul(factor)?;
    part.is_multiple_of(denominator).then(|| product.checked_add(part / denominator)).flatten()
}
