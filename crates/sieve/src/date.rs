//! Dates and their parts (RFC 5260, section 4.2).

use jiff::civil::{Date, Weekday};
use jiff::fmt::{rfc2822, strtime};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

/// What a date may be asked for.
pub(crate) const PARTS: [&str; 13] = [
    "year", "month", "day", "date", "julian", "hour", "minute", "second", "time", "iso8601", "std11", "zone",
    "weekday",
];

pub(crate) fn is_part(name: &str) -> bool {
    PARTS.contains(&name)
}

/// Seconds east of Greenwich of `+0100`.
pub(crate) fn offset_seconds(text: &str) -> Option<i32> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) = digits.split_at_checked(2)?;
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (minutes < 60 && hours < 24).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// A moment in a zone.
pub(crate) fn at(seconds: i64, offset_seconds: i32) -> Option<Zoned> {
    let offset = Offset::from_seconds(offset_seconds).ok()?;
    Some(Timestamp::from_second(seconds).ok()?.to_zoned(TimeZone::fixed(offset)))
}

/// The date of a field: all of it, or what stands behind its last semicolon, as in `Received` (RFC 5260, section 4).
pub(crate) fn read(field: &str) -> Option<Zoned> {
    let text = field.rsplit_once(';').map_or(field, |(_, date)| date).trim();
    let parser = rfc2822::DateTimeParser::new().relaxed_weekday(true);
    parser.parse_zoned(text).ok()
}

/// The same moment in another zone.
pub(crate) fn in_zone(moment: &Zoned, offset_seconds: i32) -> Option<Zoned> {
    at(moment.timestamp().as_second(), offset_seconds)
}

/// A part of a moment, as a text.
pub(crate) fn part(moment: &Zoned, name: &str) -> Option<String> {
    let offset = moment.offset().seconds();
    let sign = if offset < 0 { '-' } else { '+' };
    let minutes = offset.unsigned_abs() / 60;
    let (zone_hours, zone_minutes) = (minutes / 60, minutes % 60);
    Some(match name {
        "year" => format!("{:04}", moment.year()),
        "month" => format!("{:02}", moment.month()),
        "day" => format!("{:02}", moment.day()),
        "date" => format!("{:04}-{:02}-{:02}", moment.year(), moment.month(), moment.day()),
        "julian" => julian(moment.date())?.to_string(),
        "hour" => format!("{:02}", moment.hour()),
        "minute" => format!("{:02}", moment.minute()),
        "second" => format!("{:02}", moment.second()),
        "time" => format!("{:02}:{:02}:{:02}", moment.hour(), moment.minute(), moment.second()),
        "iso8601" => {
            let local = strtime::format("%Y-%m-%dT%H:%M:%S", moment).ok()?;
            format!("{local}{sign}{zone_hours:02}:{zone_minutes:02}")
        }
        "std11" => {
            let local = strtime::format("%a, %d %b %Y %H:%M:%S", moment).ok()?;
            format!("{local} {sign}{zone_hours:02}{zone_minutes:02}")
        }
        "zone" => format!("{sign}{zone_hours:02}{zone_minutes:02}"),
        "weekday" => weekday(moment.weekday()).to_string(),
        _ => return None,
    })
}

/// The modified Julian day: days since 17 November 1858.
fn julian(date: Date) -> Option<i32> {
    let first = Date::new(1858, 11, 17).ok()?;
    Some(date.since((jiff::Unit::Day, first)).ok()?.get_days())
}

/// 0 is Sunday.
fn weekday(day: Weekday) -> i8 {
    day.to_sunday_zero_offset()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_date() {
        let moment = read("Thu, 26 Nov 2026 04:30:13 -0530").unwrap();
        let expected = [
            "2026",
            "11",
            "26",
            "2026-11-26",
            "61370",
            "04",
            "30",
            "13",
            "04:30:13",
            "2026-11-26T04:30:13-05:30",
            "Thu, 26 Nov 2026 04:30:13 -0530",
            "-0530",
            "4",
        ];
        for (name, expected) in PARTS.iter().zip(expected) {
            assert_eq!(part(&moment, name).as_deref(), Some(expected), "{name}");
        }
        let received = "from a by b; Thu, 26 Nov 26 04:30 EST (comment)";
        let moment = in_zone(&read(received).unwrap(), 3_600).unwrap();
        assert_eq!(part(&moment, "iso8601").as_deref(), Some("2026-11-26T10:30:00+01:00"));
        assert!(read("yesterday").is_none());
    }

    #[test]
    fn zones_are_signs_and_four_digits() {
        assert_eq!(offset_seconds("+0530"), Some(19_800));
        assert_eq!(offset_seconds("-0100"), Some(-3_600));
        for wrong in ["", "0100", "+100", "+01:00", "+0160", "+9900", "é0100"] {
            assert_eq!(offset_seconds(wrong), None, "{wrong}");
        }
    }
}
