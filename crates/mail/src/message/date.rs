//! Dates that others than the sender put to a message, and dates as memos write them.

use jiff::fmt::strtime;
use jiff::{Timestamp, tz};

use super::written_date::{self, Moment};

/// The date in C's form, without a zone: `Thu Aug 22 13:17:22 2002`, as mbox lines have it.
pub(super) fn asctime(text: &str) -> Option<i64> {
    let words: Vec<&str> = text.split_whitespace().take(6).collect();
    let [weekday, month, day, time, year, ..] = words.as_slice() else { return None };
    // Some put a zone between time and year.
    let year = if year.parse::<u16>().is_ok() { *year } else { words.get(5).copied()? };
    let text = format!("{weekday} {month} {day} {time} {year}");
    let broken = strtime::parse("%a %b %d %H:%M:%S %Y", text).ok()?;
    let moment = broken.to_datetime().ok()?.to_zoned(tz::TimeZone::UTC).ok()?.timestamp().as_second();
    (moment >= 0).then_some(moment)
}

/// The date at the end of an mbox line `From sender date`.
pub(super) fn of_mbox_line(line: &[u8]) -> Option<i64> {
    let line = std::str::from_utf8(line).ok()?;
    let date = line.trim_start_matches('>').strip_prefix("From ")?.trim_start().split_once(' ')?.1;
    asctime(date)
}

/// The date that a `Received:` field ends with (RFC 5321 §4.4).
pub(super) fn of_received(field: &str) -> Option<i64> {
    match written_date::read(field.rsplit_once(';')?.1) {
        Moment::At(seconds, _) => Some(seconds),
        Moment::NoDate | Moment::Absurd => None,
    }
}

/// RFC 3339 in UTC, `2002-08-22T11:17:21Z`.
pub(super) fn text_of(seconds: i64) -> Option<String> {
    Timestamp::from_second(seconds).ok().map(|moment| moment.to_string())
}
