//! How `@Text` shows a number.

use smol_str::format_smolstr;

use crate::number::{exponential, shown};
use crate::value::Text;

/// Places behind the point that a format may ask for; a number has no more than 17 digits that mean
/// anything.
const MAX_PLACES: usize = 20;

/// The format of a number: general, fixed, scientific, currency or percent, with separators between
/// thousands and parentheses around negative numbers if asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NumberFormat {
    style: Style,
    places: Option<usize>,
    thousands: bool,
    parentheses: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Style {
    General,
    Fixed,
    Scientific,
    Currency,
    Percent,
}

impl NumberFormat {
    /// As a number is shown without a format.
    const GENERAL: Self = Self { style: Style::General, places: None, thousands: false, parentheses: false };

    /// Reads `G`, `F2`, `S3`, `C`, `%`, each perhaps with `,` and `()`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut format = Self::GENERAL;
        let mut digits = String::new();
        for character in text.chars() {
            match character.to_ascii_uppercase() {
                'G' => format.style = Style::General,
                'F' => format.style = Style::Fixed,
                'S' => format.style = Style::Scientific,
                'C' => format.style = Style::Currency,
                '%' => format.style = Style::Percent,
                ',' => format.thousands = true,
                '(' | ')' => format.parentheses = true,
                ' ' => {}
                digit if digit.is_ascii_digit() => digits.push(digit),
                other => {
                    return Err(format!(
                        "'{other}' has no meaning in the format of a number; use G, F, S, C, %, a number of \
                         places, ',' and '()'"
                    ));
                }
            }
        }
        if !digits.is_empty() {
            format.places = digits.parse().ok().filter(|places| *places <= MAX_PLACES);
            if format.places.is_none() {
                return Err(format!("a number is shown with at most {MAX_PLACES} places"));
            }
        }
        Ok(format)
    }

    pub(super) fn show(self, number: f64) -> Text {
        if self == Self::GENERAL {
            return shown(number);
        }
        let size = number.abs();
        let digits = match self.style {
            Style::General => match self.places {
                Some(places) => significant(size, places),
                None => shown(size).into(),
            },
            Style::Fixed => format!("{size:.*}", self.places.unwrap_or(2)),
            Style::Currency => format!("${size:.*}", self.places.unwrap_or(2)),
            Style::Percent => match self.places {
                Some(places) => format!("{:.*}", places, size * 100.0),
                None => shown(size * 100.0).into(),
            },
            Style::Scientific => exponential(&format!("{size:.*e}", self.places.unwrap_or(2))),
        };
        let mut result = if self.thousands { with_thousands(&digits) } else { digits };
        if self.style == Style::Percent {
            result.push('%');
        }
        let zero = !result.contains(|character: char| ('1'..='9').contains(&character));
        match (number < 0.0 && !zero, self.parentheses) {
            (false, _) => result.into(),
            (true, false) => format_smolstr!("-{result}"),
            (true, true) => format_smolstr!("({result})"),
        }
    }
}

/// Rounded to this many significant digits.
fn significant(size: f64, digits: usize) -> String {
    let rounded = format!("{size:.*e}", digits.saturating_sub(1));
    rounded.parse().map_or(rounded, |number| shown(number).into())
}

fn with_thousands(digits: &str) -> String {
    let (sign, rest) = digits.strip_prefix('$').map_or(("", digits), |rest| ("$", rest));
    let (whole, fraction) = rest.find(['.', 'E']).map_or((rest, ""), |place| rest.split_at(place));
    let mut result = sign.to_owned();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            result.push(',');
        }
        result.push(digit);
    }
    result + fraction
}
