//! Values of an organisation's file: numbers within bounds, and sizes with their units.

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A number, or a text such as `300 MB`, in bytes.
struct Amount(f64);

struct AmountVisitor;

impl Visitor<'_> for AmountVisitor {
    type Value = Amount;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a number, or a size such as \"300 MB\"")
    }

    #[allow(clippy::cast_precision_loss, reason = "bounded below")]
    fn visit_i64<E>(self, number: i64) -> Result<Amount, E> {
        Ok(Amount(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Amount, E> {
        Ok(Amount(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Amount, E> {
        size(text).map(Amount).ok_or_else(|| E::custom(format!("{text} is no size; write 300 MB")))
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountVisitor)
    }
}

/// `300 MB`, in units of 1,024.
pub(crate) fn size(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let power =
        ["B", "KB", "MB", "GB", "TB"].iter().position(|known| *known == unit.trim().to_ascii_uppercase())?;
    let number: f64 = number.parse().ok()?;
    Some(number * 1024_f64.powi(i32::try_from(power).ok()?))
}

fn within<'de, D: Deserializer<'de>>(deserializer: D, low: f64, high: f64) -> Result<f64, D::Error> {
    let Amount(number) = Amount::deserialize(deserializer)?;
    if number.is_finite() && (low..=high).contains(&number) {
        Ok(number)
    } else {
        Err(D::Error::custom(format!("{number} is not from {low} to {high}")))
    }
}

pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = within(deserializer, 1.0, 100_000_000.0)?;
    if number.fract() == 0.0 {
        Ok(number)
    } else {
        Err(D::Error::custom(format!("{number} is no whole number")))
    }
}

pub(super) fn optional_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let number = within(deserializer, 1.0, 1024.0)?;
    if number.fract() == 0.0 {
        Ok(Some(number))
    } else {
        Err(D::Error::custom(format!("{number} is no whole number")))
    }
}

/// From 1 KB to 1 PB.
pub(super) fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, 1024.0, 1024_f64.powi(5))
}

pub(super) fn optional_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    bytes(deserializer).map(Some)
}

pub(super) fn percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, 0.0, 100.0)
}

pub(super) fn factor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, 0.01, 1000.0)
}

pub(super) fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, 0.001, 3_600_000.0)
}

pub(super) fn optional_milliseconds<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    milliseconds(deserializer).map(Some)
}

pub(super) fn years<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, 0.0, 20.0)
}
