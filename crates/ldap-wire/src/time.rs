//! Points in time as LDAP writes them (RFC 4517, section 3.3.13).

use scrinium_line_wire::{Cursor, Day, date_of, day_number};

/// A point in time, which is compared whatever its zone was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GeneralizedTime {
    /// Milliseconds since the beginning of 1970.
    unix_ms: i64,
}

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

impl GeneralizedTime {
    /// The time that lies `milliseconds` after the beginning of 1970; `None` outside the years 0 to 9999.
    #[must_use]
    pub fn from_unix_ms(unix_ms: i64) -> Option<Self> {
        // Years 0000 to 9999, from the first millisecond to the last one.
        (-62_167_219_200_000..=253_402_300_799_999).contains(&unix_ms).then_some(Self { unix_ms })
    }

    /// Milliseconds since the beginning of 1970.
    #[must_use]
    pub fn unix_ms(self) -> i64 {
        self.unix_ms
    }

    /// Reads `20261126043000Z`, with minutes and seconds or without, with a fraction of the last of them, and with an
    /// offset instead of `Z`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut cursor = Cursor::new(text.as_bytes());
        let year = digits(&mut cursor, 4)?;
        let (month, day) = (digits(&mut cursor, 2)?, digits(&mut cursor, 2)?);
        let (month, day) = (u8::try_from(month).ok()?, u8::try_from(day).ok()?);
        Day::new(u16::try_from(year).ok()?, month, day)?;
        let mut unix_ms =
            day_number(year, month, day) * DAY_MS + within(digits(&mut cursor, 2)?, 23)? * HOUR_MS;
        let mut unit_ms = HOUR_MS;
        if is_digit(&cursor) {
            unix_ms += within(digits(&mut cursor, 2)?, 59)? * MINUTE_MS;
            unit_ms = MINUTE_MS;
            if is_digit(&cursor) {
                // A second 60 is a leap second.
                unix_ms += within(digits(&mut cursor, 2)?, 60)? * 1000;
                unit_ms = 1000;
            }
        }
        if cursor.take(b'.') || cursor.take(b',') {
            unix_ms += fraction_ms(&mut cursor, unit_ms)?;
        }
        unix_ms -= offset_ms(&mut cursor)?;
        if cursor.is_empty() { Self::from_unix_ms(unix_ms) } else { None }
    }
}

impl std::fmt::Display for GeneralizedTime {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (year, month, day) = date_of(self.unix_ms.div_euclid(DAY_MS));
        let of_day = self.unix_ms.rem_euclid(DAY_MS);
        let (hour, minute) = (of_day / HOUR_MS, of_day % HOUR_MS / MINUTE_MS);
        let (second, rest) = (of_day % MINUTE_MS / 1000, of_day % 1000);
        write!(formatter, "{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")?;
        if rest != 0 {
            write!(formatter, ".{rest:03}")?;
        }
        formatter.write_str("Z")
    }
}

fn is_digit(cursor: &Cursor<'_>) -> bool {
    cursor.peek().is_some_and(|byte| byte.is_ascii_digit())
}

fn digits(cursor: &mut Cursor<'_>, count: usize) -> Option<i64> {
    let mut number = 0;
    for _ in 0..count {
        let digit = char::from(cursor.next()?).to_digit(10)?;
        number = number * 10 + i64::from(digit);
    }
    Some(number)
}

fn within(number: i64, most: i64) -> Option<i64> {
    (number <= most).then_some(number)
}

/// The digits behind the point, of hours, minutes or seconds; what is below a millisecond is left out.
fn fraction_ms(cursor: &mut Cursor<'_>, unit_ms: i64) -> Option<i64> {
    let digits = cursor.take_while(|byte| byte.is_ascii_digit());
    if digits.is_empty() || digits.len() > 32 {
        return None;
    }
    let (mut sum, mut scale) = (0_i64, 1_i64);
    for digit in digits.iter().take(9) {
        sum = sum * 10 + i64::from(digit - b'0');
        scale *= 10;
    }
    Some(sum * unit_ms / scale)
}

fn offset_ms(cursor: &mut Cursor<'_>) -> Option<i64> {
    let sign = match cursor.next()? {
        b'Z' | b'z' => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = within(digits(cursor, 2)?, 23)?;
    let minutes = if is_digit(cursor) { within(digits(cursor, 2)?, 59)? } else { 0 };
    Some(sign * (hours * HOUR_MS + minutes * MINUTE_MS))
}
