//! Times as documents have them (RFC 3339), and as calendars do.

use scrinium_dav_wire::Parameter;
use scrinium_dav_wire::content::ContentLine;
use scrinium_dav_wire::value::DateTime;

use crate::civil::{CivilTime, day_number, month_length};
use crate::time::{CalendarTime, TimeKind, civil_of_value};
use crate::zone::{Instant, Zone};

/// `2026-01-05T08:00:00Z`, in UTC; a day `2026-01-05`; a floating time without `Z`.
pub(super) fn text(time: &CalendarTime) -> String {
    let (civil, suffix) = match time.kind() {
        TimeKind::Day => return date_text(time.civil()),
        TimeKind::Floating => (time.civil(), ""),
        TimeKind::Zoned(_) => (CivilTime(time.key()), "Z"),
    };
    let second = civil.second_of_day();
    format!("{}T{:02}:{:02}:{:02}{suffix}", date_text(civil), second / 3600, second / 60 % 60, second % 60)
}

fn date_text(civil: CivilTime) -> String {
    let (year, month, day) = civil.date();
    format!("{year:04}-{month:02}-{day:02}")
}

/// The same of a value that is in UTC, or floats.
pub(super) fn of_value(value: &str) -> Option<String> {
    let value = DateTime::parse(value.trim()).ok()?;
    let civil = civil_of_value(&value)?;
    let kind = match (value.second_of_day(), value.is_utc()) {
        (None, _) => TimeKind::Day,
        (Some(_), true) => TimeKind::Zoned(Zone::utc()),
        (Some(_), false) => TimeKind::Floating,
    };
    Some(text(&CalendarTime::new(civil, kind)))
}

/// What a document says: a day, a time of a clock, or a moment.
pub(super) enum DocumentTime {
    Day(CivilTime),
    Clock(CivilTime),
    Moment(Instant),
}

/// Reads `2026-01-05`, `2026-01-05T09:00:00`, `2026-01-05T09:00:00Z` or `2026-01-05T09:00:00+01:00`.
pub(super) fn parse(text: &str) -> Option<DocumentTime> {
    let number = |text: &str| -> Option<i64> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
    };
    let (date, time) = text.split_once(['T', 't']).map_or((text, None), |(date, time)| (date, Some(time)));
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if year.len() != 4 || month.len() != 2 || day.len() != 2 || parts.next().is_some() {
        return None;
    }
    let (year, month, day) =
        (number(year)?, u8::try_from(number(month)?).ok()?, u8::try_from(number(day)?).ok()?);
    let is_date =
        year >= 1 && (1..=12).contains(&month) && day >= 1 && i64::from(day) <= month_length(year, month);
    let midnight = CivilTime(is_date.then(|| day_number(year, month, day))? * crate::civil::DAY_S);
    let Some(time) = time else { return Some(DocumentTime::Day(midnight)) };
    let (clock, offset) = match time.find(['Z', 'z', '+', '-']) {
        Some(place) => {
            let (clock, offset) = time.split_at(place);
            (clock, Some(offset_s(offset)?))
        }
        None => (time, None),
    };
    let clock = clock.split_once('.').map_or(clock, |(clock, _)| clock);
    let mut parts = clock.split(':');
    let mut part = |most: i64| number(parts.next()?).filter(|number| *number <= most);
    let (hour, minute, second) = (part(23)?, part(59)?, part(59)?);
    if clock.len() != 8 {
        return None;
    }
    let civil = CivilTime(midnight.0 + hour * 3600 + minute * 60 + second);
    Some(offset.map_or(DocumentTime::Clock(civil), |offset| DocumentTime::Moment(Instant(civil.0 - offset))))
}

fn offset_s(text: &str) -> Option<i64> {
    if text.eq_ignore_ascii_case("Z") {
        return Some(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let number = |text: &str, most: i64| {
        text.parse::<i64>().ok().filter(|number| text.len() == 2 && (0..=most).contains(number))
    };
    Some(sign * (number(hours, 23)? * 3600 + number(minutes, 59)? * 60))
}

impl DocumentTime {
    /// The time as the calendar has it, on the clocks of a zone where there is one.
    pub(super) fn in_zone(self, zone: Option<&Zone>) -> CalendarTime {
        match (self, zone) {
            (Self::Day(civil), _) => CalendarTime::new(civil, TimeKind::Day),
            (Self::Clock(civil), None) => CalendarTime::new(civil, TimeKind::Floating),
            (Self::Clock(civil), Some(zone)) => CalendarTime::new(civil, TimeKind::Zoned(zone.clone())),
            (Self::Moment(instant), None) => CalendarTime::from_instant(instant),
            (Self::Moment(instant), Some(zone)) => {
                CalendarTime::new(zone.civil_of(instant), TimeKind::Zoned(zone.clone()))
            }
        }
    }
}

/// A line for a time. The zone keeps the name that the line has it by now, if it is the same zone.
pub(crate) fn line(name: &str, time: &CalendarTime, tzid: Option<&str>) -> Option<ContentLine> {
    let value = time.value()?.to_string();
    let parameters = match time.kind() {
        TimeKind::Day => vec![Parameter::new("VALUE", "DATE")],
        TimeKind::Zoned(zone) if !zone.is_utc() => {
            vec![Parameter::new("TZID", tzid.unwrap_or_else(|| zone.name()))]
        }
        TimeKind::Floating | TimeKind::Zoned(_) => Vec::new(),
    };
    ContentLine::new(name, parameters, &value)
}
