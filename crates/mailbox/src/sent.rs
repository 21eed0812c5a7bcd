//! What a `Date` field says (RFC 5322, section 3.3, with the obsolete forms), for SENTSINCE and sorting.

use scrinium_line_wire::{day_number, month_length};

/// When a message was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentDate {
    /// Seconds since 1970.
    pub utc_seconds: i64,
    /// The day where it was sent, counted from 1 January 1970: SENTON looks at no zone (RFC 9051, section 6.4.4).
    pub local_day: i64,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

impl SentDate {
    /// Reads a field's value.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(value.get(..value.len().min(200))?).to_ascii_lowercase();
        let text = text.split('(').next().unwrap_or_default().replace(',', " ");
        let mut words = text.split_ascii_whitespace().peekable();
        let starts_with_letter = |word: &&str| word.starts_with(|first: char| first.is_ascii_alphabetic());
        words.next_if(starts_with_letter);
        let day: i64 = number(words.next()?)?;
        let month = words.next()?;
        let month = MONTHS.iter().position(|name| month.starts_with(name))?;
        let month = u8::try_from(month + 1).ok()?;
        let written = words.next()?;
        // RFC 5322, section 4.3.
        let year = match (number(written)?, written.len()) {
            (year, 1 | 2) if year < 50 => year + 2000,
            (year, 1..=3) => year + 1900,
            (year, _) => year,
        };
        if !(1900..=9999).contains(&year) || !(1..=month_length(year, month)).contains(&day) {
            return None;
        }
        let seconds = clock(words.next().unwrap_or("0:0"))?;
        let zone = words.next().map_or(0, zone_seconds);
        let local_day = day_number(year, month, u8::try_from(day).ok()?);
        Some(Self { utc_seconds: local_day * 86_400 + seconds - zone, local_day })
    }
}

fn number(word: &str) -> Option<i64> {
    let valid = (1..=4).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
    if valid { word.parse().ok() } else { None }
}

fn clock(word: &str) -> Option<i64> {
    let mut parts = word.split(':');
    let (hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
    let second = parts.next().map_or(Some(0), number)?;
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second.min(59))
}

fn zone_seconds(word: &str) -> i64 {
    let hours = |hours: i64| hours * 3600;
    match word {
        "est" => hours(-5),
        "edt" => hours(-4),
        "cst" => hours(-6),
        "cdt" => hours(-5),
        "mst" => hours(-7),
        "mdt" => hours(-6),
        "pst" => hours(-8),
        "pdt" => hours(-7),
        _ => {
            let (sign, digits) = match word.split_at_checked(1) {
                Some(("+", digits)) => (1, digits),
                Some(("-", digits)) => (-1, digits),
                _ => return 0,
            };
            let written = if digits.len() == 4 { number(digits) } else { None };
            written.map_or(0, |zone| sign * (zone / 100 * 3600 + zone % 100 * 60))
        }
    }
}
