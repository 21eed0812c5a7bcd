//! Times as mail writes them.

use scrinium_line_wire::{Day, date_of, day_number, weekday_of};

const DAY_S: u64 = 86_400;

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Days since 1970 of a time, and seconds of its day. What is beyond the year 9999 becomes its last day.
fn split(time_ms: u64) -> (i64, u64) {
    let seconds = (time_ms / 1000).min(253_402_300_799);
    (i64::try_from(seconds / DAY_S).unwrap_or_default(), seconds % DAY_S)
}

/// A date-time of RFC 5322, section 3.3, in UTC: `Thu, 26 Nov 2026 09:20:51 +0000`.
pub(crate) fn message_date(time_ms: u64) -> String {
    let (days, seconds) = split(time_ms);
    let (year, month, day) = date_of(days);
    let weekday = WEEKDAYS.get(usize::from(weekday_of(days))).unwrap_or(&"Mon");
    let month = MONTHS.get(usize::from(month).saturating_sub(1)).unwrap_or(&"Jan");
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{weekday}, {day} {month} {year:04} {hour:02}:{minute:02}:{second:02} +0000")
}

/// A date-time of RFC 3339 in UTC: `2026-11-26T09:20:51Z`.
pub(crate) fn internet_date(time_ms: u64) -> String {
    let (days, seconds) = split(time_ms);
    let (year, month, day) = date_of(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// What a date-time of RFC 3339 says, in milliseconds since 1970; one before that is 0.
pub(crate) fn read_internet_date(text: &str) -> Option<u64> {
    let (date, rest) = text.split_at_checked(10)?;
    let (time, rest) = rest.strip_prefix(['T', 't'])?.split_at_checked(8)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let (month, day) = (u8::try_from(month).ok()?, u8::try_from(day).ok()?);
    Day::new(year, month, day)?;
    // A leap second is 60.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
    let seconds = day_number(i64::from(year), month, day) * 86_400 + seconds - offset_s(fraction(rest)?)?;
    Some(u64::try_from(seconds).unwrap_or_default().saturating_mul(1000))
}

/// What stands behind a fraction of a second.
fn fraction(rest: &str) -> Option<&str> {
    let Some(digits) = rest.strip_prefix('.') else { return Some(rest) };
    let after = digits.trim_start_matches(|character: char| character.is_ascii_digit());
    (after.len() < digits.len()).then_some(after)
}

/// Seconds east of UTC.
fn offset_s(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("Z") {
        return Some(0);
    }
    let (sign, rest) = zone.split_at_checked(1)?;
    let [hours, minutes] = numbers(rest, ':', [2, 2])?;
    let seconds = i64::from(hours) * 3600 + i64::from(minutes) * 60;
    match sign {
        _ if hours > 23 || minutes > 59 => None,
        "+" => Some(seconds),
        "-" => Some(-seconds),
        _ => None,
    }
}

/// Numbers, each of which has its number of digits.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[u16; N]> {
    let mut numbers = [0; N];
    let mut words = text.split(separator);
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let word = words.next()?;
        if word.len() != digits || !word.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = word.parse().ok()?;
    }
    words.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::{internet_date, message_date, read_internet_date};

    #[test]
    fn times_are_written_and_read() {
        let time_ms = 1_795_684_851_000;
        assert_eq!(message_date(time_ms), "Thu, 26 Nov 2026 09:20:51 +0000");
        assert_eq!(internet_date(time_ms), "2026-11-26T09:20:51Z");
        for same in [
            "2026-11-26T09:20:51Z",
            "2026-11-26t09:20:51z",
            "2026-11-26T10:50:51+01:30",
            "2026-11-26T04:20:51.25-05:00",
        ] {
            assert_eq!(read_internet_date(same), Some(time_ms), "{same}");
        }
        for wrong in [
            "2026-11-26",
            "2026-11-26T09:20:51",
            "2026-02-30T09:20:51Z",
            "2026-11-26T24:20:51Z",
            "2026-11-26T09:20:51.Z",
            "2026-11-26T09:20:51+1:00",
            "2026-11-26 09:20:51Z",
            "é026-11-26T09:20:51Z",
        ] {
            assert_eq!(read_internet_date(wrong), None, "{wrong}");
        }
    }
}
