//! Times as IMAP writes them.

use jiff::Timestamp;
use jiff::tz::Offset;
use scrinium_database::{DatabaseError, Result};
use scrinium_imap_wire::{Date, DateTime, Day};

/// A time in milliseconds since 1970, shown where the clock is `zone_minutes` ahead of Greenwich. What lies beyond the years
/// that IMAP writes becomes the first of them.
///
/// # Errors
/// None: a time that cannot be written is a fault.
pub(crate) fn date_time(time_ms: i64, zone_minutes: i16) -> Result<DateTime> {
    let offset = Offset::from_seconds(i32::from(zone_minutes) * 60).unwrap_or(Offset::UTC);
    let time = Timestamp::from_millisecond(time_ms).unwrap_or_default();
    let shown = offset.to_datetime(time);
    let (year, month, day) = match u16::try_from(shown.year()) {
        Ok(year) => (year, shown.month(), shown.day()),
        Err(_) => (1970, 1, 1),
    };
    let part = |number: i8| u8::try_from(number).unwrap_or(0);
    let clock = (part(shown.hour()), part(shown.minute()), part(shown.second()));
    let date = Day::new(year, part(month), part(day));
    let time = date.and_then(|day| DateTime::new(Date(day), clock, zone_minutes));
    time.ok_or_else(|| DatabaseError::Internal { reason: format!("The time {time_ms} cannot be written.") })
}

/// The milliseconds since 1970 of a time.
pub(crate) fn milliseconds(time: &DateTime) -> i64 {
    scrinium_imap::utc_seconds(time).saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn times_come_back_as_they_were_given() {
        for text in ["17-Jul-1996 02:44:25 -0700", "1-Jan-1970 00:00:00 +0000", "31-Dec-2026 23:59:59 +1400"]
        {
            let time = DateTime::parse(text).unwrap();
            assert_eq!(date_time(milliseconds(&time), time.zone_minutes()).unwrap(), time);
        }
    }
}
