//! Which days a rule takes: months, days of the month and year, weeks, days of the week.

use scrinium_dav_wire::recurrence::{Frequency, RecurrenceRule};

use crate::civil::{CivilTime, date_of, day_number, month_length, small, weekday_of, year_length};

/// A day, with what rules ask of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DayInfo {
    pub(super) year: i64,
    pub(super) month: u8,
    /// From 1.
    pub(super) day: i64,
    pub(super) month_length: i64,
    /// From Monday, from 0.
    pub(super) weekday: u8,
    /// From 1.
    pub(super) year_day: i64,
    pub(super) year_length: i64,
}

impl DayInfo {
    pub(super) fn new(number: i64) -> Self {
        let (year, month, day) = date_of(number);
        Self {
            year,
            month,
            day: i64::from(day),
            month_length: month_length(year, month),
            weekday: weekday_of(number),
            year_day: number - day_number(year, 1, 1) + 1,
            year_length: year_length(year),
        }
    }
}

/// Numbers from 1 and from the end, as bits: those of a list that are positive, and those that are negative.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    from_start: u64,
    from_end: u64,
}

impl Numbers {
    fn new(list: &[i16]) -> Self {
        let mut numbers = Self::default();
        for number in list.iter().filter(|number| number.unsigned_abs() < 64) {
            let bit = 1 << number.unsigned_abs();
            if *number > 0 { numbers.from_start |= bit } else { numbers.from_end |= bit }
        }
        numbers
    }

    fn is_empty(self) -> bool {
        self.from_start == 0 && self.from_end == 0
    }

    /// Whether number `which` of `count` is meant.
    fn contains(self, which: i64, count: i64) -> bool {
        self.from_start >> which & 1 == 1 || self.from_end >> (count + 1 - which).clamp(0, 63) & 1 == 1
    }
}

/// The parts of a rule that choose days.
#[derive(Clone, Debug)]
pub(super) struct DayFilter {
    /// Bits from 1; all where none is named.
    months: u16,
    month_days: Numbers,
    /// As they stand, for SKIP.
    pub(super) month_day_list: Vec<i16>,
    pub(super) year_day_list: Vec<i16>,
    weeks: Numbers,
    /// Bits; 0 where none is named.
    weekdays: u8,
    /// The second Monday of the month, or of the year.
    numbered_weekdays: Vec<(i16, u8)>,
    is_numbered_in_year: bool,
    pub(super) week_start: u8,
}

impl DayFilter {
    /// The parts, and what the start adds where the rule names no days (RFC 5545, section 3.3.10).
    pub(super) fn new(rule: &RecurrenceRule, start: CivilTime) -> Self {
        let (_, month, day) = start.date();
        let weekday = 1 << weekday_of(start.day());
        let is_numbered =
            matches!(rule.frequency, Frequency::Monthly | Frequency::Yearly) && rule.by_week.is_empty();
        let mut filter = Self {
            months: bits(&rule.by_month),
            month_days: Numbers::new(&rule.by_month_day),
            month_day_list: rule.by_month_day.clone(),
            year_day_list: rule.by_year_day.clone(),
            weeks: Numbers::new(&rule.by_week),
            weekdays: 0,
            numbered_weekdays: Vec::new(),
            is_numbered_in_year: rule.frequency == Frequency::Yearly && rule.by_month.is_empty(),
            week_start: rule.week_start.map_or(0, |day| day.from_monday()),
        };
        for (which, day) in &rule.by_day {
            if *which == 0 || !is_numbered {
                filter.weekdays |= 1 << day.from_monday();
            } else {
                filter.numbered_weekdays.push((*which, day.from_monday()));
            }
        }
        let names_no_day =
            rule.by_day.is_empty() && rule.by_month_day.is_empty() && rule.by_year_day.is_empty();
        match rule.frequency {
            _ if !names_no_day => {}
            Frequency::Weekly => filter.weekdays = weekday,
            // A week of the year without a day is the start's day in it.
            Frequency::Monthly | Frequency::Yearly if !rule.by_week.is_empty() => filter.weekdays = weekday,
            Frequency::Monthly | Frequency::Yearly => {
                if rule.frequency == Frequency::Yearly && rule.by_month.is_empty() {
                    filter.months = 1 << month;
                }
                filter.month_day_list = vec![i16::from(day)];
                filter.month_days = Numbers::new(&filter.month_day_list);
            }
            _ => {}
        }
        filter
    }

    pub(super) fn has_month(&self, month: u8) -> bool {
        self.months == 0 || self.months >> month & 1 == 1
    }

    /// Whether the rule takes the day.
    pub(super) fn matches(&self, day: &DayInfo) -> bool {
        self.has_month(day.month)
            && (self.month_days.is_empty() || self.month_days.contains(day.day, day.month_length))
            && self.has_year_day(day)
            && self.has_week_and_weekday(day)
    }

    pub(super) fn has_year_day(&self, day: &DayInfo) -> bool {
        let from_end = day.year_day - day.year_length - 1;
        self.year_day_list.is_empty()
            || self.year_day_list.iter().any(|which| [day.year_day, from_end].contains(&i64::from(*which)))
    }

    /// Whether its week and its day of the week are taken, which SKIP does not move.
    pub(super) fn has_week_and_weekday(&self, day: &DayInfo) -> bool {
        if !self.weeks.is_empty() {
            let (week, count) = week_of(day, self.week_start);
            if !self.weeks.contains(week, count) {
                return false;
            }
        }
        if self.weekdays == 0 && self.numbered_weekdays.is_empty() {
            return true;
        }
        self.weekdays >> day.weekday & 1 == 1
            || self.numbered_weekdays.iter().any(|numbered| self.is_numbered(*numbered, day))
    }

    fn is_numbered(&self, (which, weekday): (i16, u8), day: &DayInfo) -> bool {
        let (place, length) = match self.is_numbered_in_year {
            true => (day.year_day, day.year_length),
            false => (day.day, day.month_length),
        };
        let which = i64::from(which);
        weekday == day.weekday && (which == (place - 1) / 7 + 1 || -which == (length - place) / 7 + 1)
    }
}

fn bits(list: &[i16]) -> u16 {
    list.iter().filter(|number| (1..=12).contains(*number)).fold(0, |bits, number| bits | 1 << number)
}

/// The week's number, and how many weeks its year has. The first one has at least four days of the year (RFC 5545, section
/// 3.3.10); the first and last days of a year may lie in a week of another one.
fn week_of(day: &DayInfo, week_start: u8) -> (i64, i64) {
    let new_year = i64::from(day.weekday) - (day.year_day - 1);
    let begins = first_week(new_year, week_start);
    let next_begins = first_week(new_year + day.year_length, week_start);
    let count = (day.year_length + next_begins - begins) / 7;
    let week = (day.year_day - 1 - begins).div_euclid(7) + 1;
    if week < 1 {
        let length = year_length(day.year - 1);
        let before_begins = first_week(new_year - length, week_start);
        let count = (length + begins - before_begins) / 7;
        return (count, count);
    }
    if week > count {
        let length = year_length(day.year + 1);
        let after_begins = first_week(new_year + day.year_length + length, week_start);
        return (1, (length + after_begins - next_begins) / 7);
    }
    (week, count)
}

/// Where the first week of a year begins, in days from its first day, which is this day of the week (any number of weeks
/// added).
fn first_week(new_year: i64, week_start: u8) -> i64 {
    let into_week = (new_year - i64::from(week_start)).rem_euclid(7);
    if into_week <= 3 { -into_week } else { 7 - into_week }
}

/// Days from a list of days of the month or year, of which one that does not exist is moved or left out (RFC 7529).
pub(super) fn skipped(list: &[i16], first: i64, length: i64, skip: super::Skip) -> impl Iterator<Item = i64> {
    list.iter().filter_map(move |which| {
        let which = i64::from(*which);
        let place = if which > 0 { which - 1 } else { length + which };
        let exists = (0..length).contains(&place);
        let moved = match skip {
            _ if exists => Some(place),
            super::Skip::Omit => None,
            // Before the first day or behind the last one.
            super::Skip::Backward => Some(if place < 0 { -1 } else { length - 1 }),
            super::Skip::Forward => Some(if place < 0 { 0 } else { length }),
        };
        moved.map(|place| first + place)
    })
}

/// The days of a month, with what rules ask of them.
pub(super) fn month_days(year: i64, month: u8) -> impl Iterator<Item = (i64, DayInfo)> {
    let first = day_number(year, month, 1);
    let length = month_length(year, month);
    let info = DayInfo::new(first);
    (0..length).map(move |offset| {
        let weekday = small((i64::from(info.weekday) + offset) % 7);
        (first + offset, DayInfo { day: offset + 1, year_day: info.year_day + offset, weekday, ..info })
    })
}
