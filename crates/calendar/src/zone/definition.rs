//! Zones that a calendar defines itself: VTIMEZONE (RFC 5545, section 3.6.5).
//!
//! A definition is compiled into a table of changes, and rules for the time behind it, in the format that zones have
//! everywhere (TZif, RFC 8536), which jiff reads. Rules that TZif cannot say are written out to the year 2200.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use scrinium_dav_wire::content::Component;
use scrinium_dav_wire::recurrence::{Frequency, RecurrenceRule, RuleEnd};
use scrinium_dav_wire::value::{DateTime, parse_utc_offset};
use thiserror::Error;

use crate::civil::{CivilTime, day_number, month_length};
use crate::rule::Rule;
use crate::time::civil_of_value;

/// Changes of one definition. Two in each year from 1 to 2200 are fewer.
const CHANGES_MAX: usize = 5_000;
/// Parts of one definition.
const OBSERVANCES_MAX: usize = 2_000;
/// Rules are written out up to here; behind it stands what TZif has for it.
const TABLE_YEAR: i64 = 2037;
/// Rules that TZif does not have are written out up to here.
const LAST_YEAR: i64 = 2200;

/// Why a definition cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum DefinitionError {
    #[error("the definition of the zone has no STANDARD or DAYLIGHT part with a start and offsets")]
    Empty,
    #[error("the definition of the zone has too many parts or changes")]
    TooLarge,
    #[error("the rules in the definition of the zone are not valid")]
    Invalid,
}

/// STANDARD or DAYLIGHT.
struct Observance {
    is_daylight: bool,
    start: CivilTime,
    offset_from: i32,
    offset_to: i32,
    rules: Vec<RecurrenceRule>,
    dates: Vec<CivilTime>,
}

impl Observance {
    fn read(component: &Component) -> Option<Self> {
        let value = |name: &str| component.line(name).map(|line| line.value().trim());
        let civil = |text: &str| DateTime::parse(text).ok().and_then(|time| civil_of_value(&time));
        let values = |name: &'static str| {
            component.lines().filter(move |line| line.name() == name).map(|line| line.value().trim())
        };
        // Some programs add the end of a period.
        let date = |text: &str| civil(text.split('/').next().unwrap_or_default());
        Some(Self {
            is_daylight: component.name() == "DAYLIGHT",
            start: civil(value("DTSTART")?)?,
            offset_from: parse_utc_offset(value("TZOFFSETFROM")?).ok()?,
            offset_to: parse_utc_offset(value("TZOFFSETTO")?).ok()?,
            rules: values("RRULE").filter_map(|rule| RecurrenceRule::parse(rule).ok()).take(8).collect(),
            dates: values("RDATE")
                .flat_map(|dates| dates.split(','))
                .filter_map(date)
                .take(CHANGES_MAX)
                .collect(),
        })
    }

    fn change(&self, time: CivilTime) -> (i64, Change) {
        let change =
            Change { offset: self.offset_to, before: self.offset_from, is_daylight: self.is_daylight };
        (time.0 - i64::from(self.offset_from), change)
    }

    fn endless_rule(&self) -> Option<&RecurrenceRule> {
        self.rules.iter().find(|rule| rule.end == RuleEnd::Never)
    }

    /// Writes all changes until the end of a year.
    fn write(&self, last_year: i64, changes: &mut BTreeMap<i64, Change>) -> Result<(), DefinitionError> {
        let end = CivilTime::new(last_year + 1, 1, 1, 0);
        let own = std::iter::once(self.start).chain(self.dates.iter().copied());
        changes.extend(own.map(|time| self.change(time)));
        for rule in &self.rules {
            let compiled = Rule::new(rule, self.start, false).map_err(|_| DefinitionError::Invalid)?;
            let until = match &rule.end {
                RuleEnd::Until(until) => {
                    let until_civil = civil_of_value(until).ok_or(DefinitionError::Invalid)?;
                    // UTC, by the offset before the change (RFC 5545, section 3.6.5).
                    let shift = if until.is_utc() { i64::from(self.offset_from) } else { 0 };
                    let whole_day = if until.second_of_day().is_none() { 86_399 } else { 0 };
                    CivilTime(until_civil.0 + shift + whole_day)
                }
                RuleEnd::Never | RuleEnd::Count(_) => end,
            };
            let count = if let RuleEnd::Count(count) = rule.end { count } else { u32::MAX };
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let mut walk = compiled.walk_from(self.start).take(count).peekable();
            // A rule that never fits takes the longest, and no zone has one.
            walk.peek().ok_or(DefinitionError::Invalid)?;
            for time in walk.take_while(|time| *time <= until.min(end)) {
                if changes.len() >= CHANGES_MAX {
                    return Err(DefinitionError::TooLarge);
                }
                let (instant, change) = self.change(time);
                changes.insert(instant, change);
            }
        }
        Ok(())
    }
}

/// What holds from an instant on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    offset: i32,
    before: i32,
    is_daylight: bool,
}

/// The rules of a VTIMEZONE.
pub(super) fn compile(name: &str, definition: &Component) -> Result<TimeZone, DefinitionError> {
    let observances = observances(definition)?;
    let is_endless = observances.iter().any(|observance| observance.endless_rule().is_some());
    let footer = footer(&observances);
    let last_year = if is_endless && footer.is_none() { LAST_YEAR } else { TABLE_YEAR };
    let mut changes = BTreeMap::new();
    for observance in &observances {
        observance.write(last_year, &mut changes)?;
    }
    let last = changes.values().next_back().ok_or(DefinitionError::Empty)?;
    let footer = footer.unwrap_or_else(|| posix_offset(last.offset));
    let bytes = tzif(&changes, &footer).ok_or(DefinitionError::TooLarge)?;
    TimeZone::tzif(name, &bytes).map_err(|_| DefinitionError::Invalid)
}

fn observances(definition: &Component) -> Result<Vec<Observance>, DefinitionError> {
    let parts = definition.components().filter(|part| matches!(part.name(), "STANDARD" | "DAYLIGHT"));
    let observances: Vec<Observance> = parts.take(OBSERVANCES_MAX + 1).filter_map(Observance::read).collect();
    if observances.len() > OBSERVANCES_MAX {
        return Err(DefinitionError::TooLarge);
    }
    if observances.is_empty() { Err(DefinitionError::Empty) } else { Ok(observances) }
}

/// All offsets that a definition has, in seconds.
pub(super) fn offsets(definition: &Component) -> Vec<i32> {
    let observances = observances(definition).unwrap_or_default();
    observances.iter().map(|observance| observance.offset_to).collect()
}

/// The rules behind the table, as TZif ends with them, where it can say them: a standard and a daylight time that change each
/// year for ever, and no other one.
fn footer(observances: &[Observance]) -> Option<String> {
    let endless = |daylight: bool| {
        observances.iter().filter(move |part| part.is_daylight == daylight && part.endless_rule().is_some())
    };
    let mut standards = endless(false);
    let mut daylights = endless(true);
    let (standard, daylight) = (standards.next()?, daylights.next()?);
    if standards.next().is_some() || daylights.next().is_some() {
        return None;
    }
    Some(format!(
        "{}{},{},{}",
        posix_offset(standard.offset_to),
        posix_offset(daylight.offset_to),
        posix_rule(daylight)?,
        posix_rule(standard)?
    ))
}

/// An offset with a name: `<+01>-1:00:00`. POSIX counts to the west.
fn posix_offset(offset: i32) -> String {
    let posix_sign = if offset < 0 { "" } else { "-" };
    let size = offset.unsigned_abs();
    let (hours, minutes, seconds) = (size / 3600, size / 60 % 60, size % 60);
    format!("<{}>{posix_sign}{hours}:{minutes:02}:{seconds:02}", designation(offset))
}

/// What an offset is called: `+0100`. Table and rules must use the same words.
fn designation(offset: i32) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let size = offset.unsigned_abs();
    format!("{sign}{:02}{:02}", size / 3600, size / 60 % 60)
}

/// The day of the year on which a change happens: `M3.5.0/2:00:00`, the last Sunday of March at two.
fn posix_rule(observance: &Observance) -> Option<String> {
    let rule = observance.endless_rule()?;
    if rule.frequency != Frequency::Yearly || rule.interval != 1 || observance.rules.len() != 1 {
        return None;
    }
    let other_parts = [
        &rule.by_year_day,
        &rule.by_week,
        &rule.by_hour,
        &rule.by_minute,
        &rule.by_second,
        &rule.by_position,
    ];
    if other_parts.iter().any(|part| !part.is_empty()) || !rule.other.is_empty() {
        return None;
    }
    let (_, start_month, start_day) = observance.start.date();
    let month = match rule.by_month.as_slice() {
        [] if rule.by_day.is_empty() && rule.by_month_day.is_empty() => i16::from(start_month),
        [month] => *month,
        _ => return None,
    };
    let second = observance.start.second_of_day();
    let time = format!("{}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    let fixed = |day: i64| {
        // The day of a year without 29 February, which POSIX counts so.
        let month = u8::try_from(month).ok()?;
        (1..=month_length(1970, month)).contains(&day).then(|| {
            let number = day_number(1970, month, 1) - day_number(1970, 1, 1) + day;
            format!("J{number}/{time}")
        })
    };
    match (rule.by_day.as_slice(), rule.by_month_day.as_slice()) {
        ([], []) => fixed(i64::from(start_day)),
        ([], [day]) if month != 2 || *day < 29 => fixed(i64::from(*day)),
        ([(which, weekday)], days) => {
            let week = match (*which, days) {
                (-1, []) => 5,
                (1..=4, []) => *which,
                // Sunday from the 8th to the 14th.
                (0, [first, ..]) if is_week(days) => (first - 1) / 7 + 1,
                _ => return None,
            };
            let weekday = (weekday.from_monday() + 1) % 7;
            Some(format!("M{month}.{week}.{weekday}/{time}"))
        }
        _ => None,
    }
}

/// Whether these are the first, second, third or fourth seven days of a month, in order.
fn is_week(days: &[i16]) -> bool {
    matches!(days.first(), Some(1 | 8 | 15 | 22))
        && days.len() == 7
        && days.iter().zip(days.iter().skip(1)).all(|(one, next)| one + 1 == *next)
}

/// `+0100` and a NUL.
const DESIGNATION_BYTES: usize = 6;

/// TZif of version 2 (RFC 8536, section 3); `None` if there are too many different offsets.
fn tzif(changes: &BTreeMap<i64, Change>, footer: &str) -> Option<Vec<u8>> {
    let first = changes.values().next()?;
    let mut types = vec![(first.before, false)];
    let mut indexes = Vec::with_capacity(changes.len());
    for change in changes.values() {
        let kind = (change.offset, change.is_daylight);
        let index = types.iter().position(|known| *known == kind).unwrap_or_else(|| {
            types.push(kind);
            types.len() - 1
        });
        indexes.push(u8::try_from(index).ok()?);
    }
    let header = |times: usize, types: usize| {
        let mut header = b"TZif2".to_vec();
        header.extend([0; 15]);
        for count in [0, 0, 0, times, types, types * DESIGNATION_BYTES] {
            header.extend(u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
        }
        header
    };
    // The first block is for readers of version 1, of which there are none here.
    let mut bytes = header(0, 1);
    bytes.extend([0, 0, 0, 0, 0, 0]);
    bytes.extend(b"+0000\0");
    bytes.extend(header(changes.len(), types.len()));
    changes.keys().for_each(|instant| bytes.extend(instant.to_be_bytes()));
    bytes.extend(indexes);
    for (index, (offset, is_daylight)) in types.iter().enumerate() {
        bytes.extend(offset.to_be_bytes());
        bytes.extend([u8::from(*is_daylight), u8::try_from(index * DESIGNATION_BYTES).ok()?]);
    }
    for (offset, _) in &types {
        bytes.extend(designation(*offset).as_bytes());
        bytes.push(0);
    }
    bytes.push(b'\n');
    bytes.extend(footer.as_bytes());
    bytes.push(b'\n');
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use scrinium_dav_wire::content::ContentLimits;

    use super::*;
    use crate::civil::weekday_of;
    use crate::zone::{CivilOrigin, Instant, Zone};

    fn zone(parts: &str) -> Zone {
        let text = format!("BEGIN:VTIMEZONE\nTZID:own\n{parts}END:VTIMEZONE\n");
        let definition = Component::parse(text.as_bytes(), ContentLimits::default()).unwrap();
        Zone::from_rules("own", compile("own", &definition).unwrap())
    }

    fn part(name: &str, start: &str, from: &str, to: &str, more: &str) -> String {
        format!("BEGIN:{name}\nDTSTART:{start}\nTZOFFSETFROM:{from}\nTZOFFSETTO:{to}\n{more}END:{name}\n")
    }

    #[test]
    fn a_definition_of_a_zone_is_the_zone() {
        let berlin = Zone::named("Europe/Berlin").unwrap();
        let by_last = part(
            "STANDARD",
            "19961027T030000",
            "+0200",
            "+0100",
            "RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\n",
        ) + &part(
            "DAYLIGHT",
            "19810329T020000",
            "+0100",
            "+0200",
            "RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\n",
        );
        // What TZif cannot say: the last Sunday as the one of the last seven days.
        let by_days = by_last
            .replace("BYDAY=-1SU;BYMONTH=10", "BYMONTH=10;BYDAY=SU;BYMONTHDAY=25,26,27,28,29,30,31")
            .replace("BYDAY=-1SU;BYMONTH=3", "BYMONTH=3;BYDAY=SU;BYMONTHDAY=-1,-2,-3,-4,-5,-6,-7");
        for (parts, last) in [(by_last, 9998), (by_days, 2199)] {
            let own = zone(&parts);
            for year in (1997..2040).chain([2099, 2100, 2199]).chain([last]) {
                for month in 1..=12 {
                    for day in [1, 15, 24, 25, 26, 27, 28, 29, 30] {
                        if i64::from(day) <= month_length(year, month) {
                            let instant = Instant(CivilTime::new(year, month, day, 3600).0);
                            assert_eq!(
                                own.offset_s(instant),
                                berlin.offset_s(instant),
                                "{year} {month} {day}"
                            );
                        }
                    }
                }
            }
            let gap = CivilTime::new(2100, 3, 28, 9000);
            assert_eq!(own.instant_of(gap, CivilOrigin::Generated), None);
            assert_eq!(own.instant_of(gap, CivilOrigin::Written), Some(Instant(gap.0 - 3600)));
        }
    }

    #[test]
    fn before_the_first_change_and_behind_the_last_one_there_is_an_offset() {
        let parts =
            part("STANDARD", "20000101T000000", "+0130", "+0200", "RDATE:20100101T000000,20110101T000000\n")
                + &part(
                    "DAYLIGHT",
                    "20050101T000000",
                    "+0200",
                    "+0300",
                    "RRULE:FREQ=YEARLY;UNTIL=20061231T210000Z\n",
                );
        let own = zone(&parts);
        let offset = |year| own.offset_s(Instant(CivilTime::new(year, 6, 1, 0).0));
        assert_eq!(
            [1, 1999, 2001, 2005, 2009, 2012, 9990].map(offset),
            [5400, 5400, 7200, 10_800, 10_800, 7200, 7200]
        );
        let west = zone(&part("STANDARD", "16010101T000000", "-0330", "-0330", ""));
        assert_eq!(west.offset_s(Instant(0)), -12_600);
    }

    #[test]
    fn weeks_of_a_month_are_said_by_their_number() {
        let new_york = Zone::named("America/New_York").unwrap();
        let days = |first: u8| (first..first + 7).map(|day| day.to_string()).collect::<Vec<_>>().join(",");
        let rule = |month: u8, first: u8| {
            format!("RRULE:FREQ=YEARLY;BYMONTH={month};BYMONTHDAY={};BYDAY=SU\n", days(first))
        };
        let parts = part("STANDARD", "20071104T020000", "-0400", "-0500", &rule(11, 1))
            + &part("DAYLIGHT", "20070311T020000", "-0500", "-0400", &rule(3, 8));
        let definition = format!("BEGIN:VTIMEZONE\n{parts}END:VTIMEZONE\n");
        let definition = Component::parse(definition.as_bytes(), ContentLimits::default()).unwrap();
        let footer = footer(&observances(&definition).unwrap()).unwrap();
        assert_eq!(footer, "<-0500>5:00:00<-0400>4:00:00,M3.2.0/2:00:00,M11.1.0/2:00:00");
        let own = zone(&parts);
        for hour in 0..20_000 {
            let instant = Instant(CivilTime::new(2098, 1, 1, 0).0 + hour * 3600);
            assert_eq!(own.offset_s(instant), new_york.offset_s(instant));
        }
        assert_eq!(weekday_of(day_number(2007, 3, 11)), 6);
    }

    #[test]
    fn what_is_no_definition_says_so() {
        let compile = |parts: &str| {
            let text = format!("BEGIN:VTIMEZONE\n{parts}END:VTIMEZONE\n");
            let definition = Component::parse(text.as_bytes(), ContentLimits::default()).unwrap();
            compile("own", &definition).map(|_| ())
        };
        assert_eq!(compile(""), Err(DefinitionError::Empty));
        assert_eq!(compile(&part("STANDARD", "x", "+0100", "+0100", "")), Err(DefinitionError::Empty));
        let secondly = "RRULE:FREQ=SECONDLY\n";
        assert_eq!(
            compile(&part("STANDARD", "19700101T000000", "+0100", "+0100", secondly)),
            Err(DefinitionError::TooLarge)
        );
        let many = part("STANDARD", "19700101T000000", "+0100", "+0100", "").repeat(OBSERVANCES_MAX + 1);
        assert_eq!(compile(&many), Err(DefinitionError::TooLarge));
    }
}
