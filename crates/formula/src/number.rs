//! Numbers: writing them as text, and turning them into counts and places.

use smol_str::format_smolstr;

use crate::value::Text;

/// Significant digits shown: every decimal number of this many digits survives being stored.
const SIGNIFICANT_DIGITS: usize = 15;

/// Whole numbers below this have at most 15 digits.
const LARGEST_EXACT: f64 = 1e15;

/// The number with up to 15 significant digits and no more than it needs; very large and very small ones
/// with an exponent.
pub(crate) fn shown(number: f64) -> Text {
    if number.fract() == 0.0 && number.abs() < LARGEST_EXACT {
        return format_smolstr!("{}", whole(number));
    }
    let rounded = format!("{number:.*e}", SIGNIFICANT_DIGITS - 1);
    let Some((digits, exponent)) = rounded.split_once('e') else { return rounded.into() };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-6..=20).contains(&exponent) {
        return rounded.parse::<f64>().map_or_else(|_| rounded.into(), |number| format_smolstr!("{number}"));
    }
    let digits =
        if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    exponential(&format!("{digits}e{exponent}")).into()
}

/// `8.5e2` as `8.5E+02`.
pub(crate) fn exponential(text: &str) -> String {
    let Some((digits, exponent)) = text.split_once('e') else { return text.to_owned() };
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}E{sign}{exponent:0>2}")
}

/// The whole part, towards 0. What does not fit is the nearest that does.
pub(crate) const fn whole(number: f64) -> i64 {
    #[allow(clippy::cast_possible_truncation, reason = "the cast saturates, which is what is wanted")]
    return number as i64;
}

/// A count or a place as a number.
pub(crate) fn from_count(count: usize) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "counts here are far below 2^53")]
    return count as f64;
}

/// The number, if it is finite.
pub(crate) fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

/// Reads a number as a person writes it: `12`, `-0.5`, `1,234.5`, `1.5E3`.
pub(crate) fn read(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let plain;
    let text = if text.contains(',') {
        plain = text.replace(',', "");
        plain.as_str()
    } else {
        text
    };
    text.parse().ok().and_then(finite)
}
