//! Calendars from text, and what they give, as text.

use scrinium_calendar::civil::CivilTime;
use scrinium_calendar::series::{InstantRange, Occurrence, Series};
use scrinium_calendar::zone::{Instant, Zone};
use scrinium_dav_wire::content::{Component, ContentLimits};

pub(crate) fn zone(name: &str) -> Zone {
    Zone::named(name).unwrap()
}

/// A calendar whose lines are these; lines that begin with `+` begin another event with the same UID.
pub(crate) fn calendar(lines: &str) -> Component {
    let mut text = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\n".to_owned();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let line = match line.strip_prefix('+') {
            Some(line) => {
                text.push_str("END:VEVENT\r\nBEGIN:VEVENT\r\nUID:1\r\n");
                line
            }
            None => line,
        };
        text.push_str(line);
        text.push_str("\r\n");
    }
    text.push_str("END:VEVENT\r\nEND:VCALENDAR\r\n");
    Component::parse(text.as_bytes(), ContentLimits::default()).unwrap()
}

pub(crate) fn series(lines: &str) -> Series {
    let mut all = Series::read_all(&calendar(lines), &zone("Europe/Berlin"));
    assert_eq!(all.len(), 1, "{lines}");
    all.pop().unwrap()
}

/// All of time.
pub(crate) const EVER: InstantRange = InstantRange { from: Instant(i64::MIN / 4), to: Instant(i64::MAX / 4) };

/// From one day to another, in UTC.
pub(crate) fn days(from: (i64, u8, u8), to: (i64, u8, u8)) -> InstantRange {
    let instant = |(year, month, day)| Instant(CivilTime::new(year, month, day, 0).0);
    InstantRange { from: instant(from), to: instant(to) }
}

/// What clocks show at the start: `19970902T090000`.
pub(crate) fn start(occurrence: &Occurrence) -> String {
    occurrence.start.value().unwrap().to_string()
}

pub(crate) fn starts(series: &Series, range: InstantRange, most: usize) -> Vec<String> {
    series.occurrences(range, &zone("Europe/Berlin"), most).occurrences.iter().map(start).collect()
}

/// How many cases a property tries: `SCRINIUM_TIMES` multiplies them.
pub(crate) fn cases(usual: u32) -> u32 {
    let times = std::env::var("SCRINIUM_TIMES").ok().and_then(|times| times.parse::<u32>().ok());
    usual.saturating_mul(times.unwrap_or(1).max(1))
}
