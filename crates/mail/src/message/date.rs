//! Dates of messages: RFC 5322 §3.3, the obsolete forms of §4.3, and the forms that are found besides.

use jiff::civil::Date;
use jiff::fmt::strtime;
use jiff::{Timestamp, tz};
use mail_parser::DateTime;

/// Nobody wrote mail before; what says so is damaged.
const FIRST_YEAR: u16 = 1970;

/// The year up to which a date is believed.
const LAST_YEAR: u16 = 2199;

/// A date's moment, or why it has none.
pub(super) enum Moment {
    /// Seconds since 1970, UTC.
    At(i64),
    /// The text is there, and is no date.
    NoDate,
    /// It names a day that no mail can be of.
    Absurd,
}

/// Reads the text of a `Date:` field.
pub(super) fn read(text: &str) -> Moment {
    let text = text.trim();
    // Without a zone a date is incomplete to the parser; most such senders meant UTC or we cannot know.
    let parsed = DateTime::parse_rfc822(&format!("{text}\n"))
        .or_else(|| DateTime::parse_rfc822(&format!("{text} +0000\n")));
    match parsed {
        Some(parsed) => moment_of(&parsed),
        None => asctime(text).map_or(Moment::NoDate, Moment::At),
    }
}

fn moment_of(date: &DateTime) -> Moment {
    // A year of three digits counts from 1900 (RFC 5322 §4.3); senders with that fault write 2002 as 0102.
    let date = DateTime {
        year: if (100..200).contains(&date.year) { date.year + 1900 } else { date.year },
        ..*date
    };
    let (Ok(year), Ok(month), Ok(day)) =
        (i16::try_from(date.year), i8::try_from(date.month), i8::try_from(date.day))
    else {
        return Moment::Absurd;
    };
    let possible = (FIRST_YEAR..=LAST_YEAR).contains(&date.year)
        && Date::new(year, month, day).is_ok()
        && date.hour < 24
        && date.minute < 60
        // A leap second is written as 60.
        && date.second <= 60;
    if possible { Moment::At(date.to_timestamp()) } else { Moment::Absurd }
}

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
    match read(field.rsplit_once(';')?.1) {
        Moment::At(seconds) => Some(seconds),
        Moment::NoDate | Moment::Absurd => None,
    }
}

/// RFC 3339 in UTC, `2002-08-22T11:17:21Z`.
pub(super) fn text_of(seconds: i64) -> Option<String> {
    Timestamp::from_second(seconds).ok().map(|moment| moment.to_string())
}
