//! Periods: where they begin, which one holds a time, and what stands in one.

use scrinium_dav_wire::recurrence::Frequency;

use super::days::{DayInfo, month_days, skipped};
use super::{Rule, Skip};
use crate::civil::{CivilTime, DAY_S, day_number, month_length, small, weekday_of, year_length};

/// What a period gives: times of the clock on each of these days (or within each of these hours ...), or times by themselves
/// where positions were chosen among them.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    bases: Vec<i64>,
    values: Option<Vec<i64>>,
}

impl Batch {
    pub(super) fn len(&self, rule: &Rule) -> usize {
        self.values.as_ref().map_or_else(|| self.bases.len() * rule.clock_len(), Vec::len)
    }

    pub(super) fn get(&self, rule: &Rule, index: usize) -> Option<i64> {
        match &self.values {
            Some(values) => values.get(index).copied(),
            None => rule.nth_time(&self.bases, index),
        }
    }

    /// The first index whose time is not before this one.
    pub(super) fn index_from(&self, rule: &Rule, time: i64) -> usize {
        let (mut low, mut high) = (0, self.len(rule));
        while low < high {
            let middle = low.midpoint(high);
            if self.get(rule, middle).is_some_and(|found| found < time) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

impl Rule {
    fn clock_len(&self) -> usize {
        let (hours, minutes, seconds) = &self.clock;
        hours.len() * minutes.len() * seconds.len()
    }

    /// Number `index` of the times of all bases, in order.
    fn nth_time(&self, bases: &[i64], index: usize) -> Option<i64> {
        let (hours, minutes, seconds) = &self.clock;
        let base = bases.get(index / self.clock_len())?;
        let part = |list: &[u8], index: usize| list.get(index % list.len()).copied().map(i64::from);
        let second = part(seconds, index)?;
        let minute = part(minutes, index / seconds.len())?;
        let hour = part(hours, index / seconds.len() / minutes.len())?;
        Some(base + hour * 3600 + minute * 60 + second)
    }

    /// The unit that holds a time: its year, month, first day of its week, or how many units of the clock there were before it.
    pub(super) fn unit_of(&self, time: CivilTime) -> i64 {
        match (self.unit_s(), self.frequency) {
            (Some(unit), _) => time.0.div_euclid(unit),
            (None, Frequency::Yearly) => time.date().0,
            (None, Frequency::Monthly) => {
                let (year, month, _) = time.date();
                year * 12 + i64::from(month) - 1
            }
            (None, _) => {
                let into_week = i64::from(weekday_of(time.day())) - i64::from(self.days.week_start);
                (time.day() - into_week.rem_euclid(7)).div_euclid(7)
            }
        }
    }

    /// The last period that counts and does not begin after a time.
    pub(super) fn period_of(&self, time: CivilTime) -> i64 {
        (self.unit_of(time) - self.first_unit).div_euclid(self.interval)
    }

    /// The first period that counts and does not begin before a time.
    fn period_from(&self, time: i64) -> i64 {
        let unit = self.unit_s().unwrap_or(DAY_S);
        let units = -(-time).div_euclid(unit) - self.first_unit;
        -(-units).div_euclid(self.interval)
    }

    fn unit(&self, period: i64) -> i64 {
        self.first_unit + period * self.interval
    }

    /// When a period begins.
    pub(super) fn period_start(&self, period: i64) -> i64 {
        let unit = self.unit(period);
        match (self.unit_s(), self.frequency) {
            (Some(unit_s), _) => unit * unit_s,
            (None, Frequency::Yearly) => day_number(unit, 1, 1) * DAY_S,
            (None, Frequency::Monthly) => day_number(unit.div_euclid(12), month_of(unit), 1) * DAY_S,
            (None, _) => self.week_day(unit) * DAY_S,
        }
    }

    /// The first day of a week. Weeks that begin on Thursday begin with the day that is counted from.
    fn week_day(&self, week: i64) -> i64 {
        let start = self.start.day();
        let into_week = (i64::from(weekday_of(start)) - i64::from(self.days.week_start)).rem_euclid(7);
        start - into_week + (week - self.first_unit) * 7
    }

    /// How many days a period may have.
    pub(super) fn period_days(&self) -> i64 {
        match self.frequency {
            Frequency::Yearly => 366,
            Frequency::Monthly => 31,
            Frequency::Weekly => 7,
            _ => 1,
        }
    }

    /// This period, or the next that may have an occurrence: those whose day or hour does not fit are not looked at one by
    /// one. The second number counts the days and hours that were looked at. `None` behind the last year, or after `steps`.
    pub(super) fn next_period(&self, period: i64, steps: i64) -> (Option<i64>, i64) {
        let Some(unit_s) = self.unit_s() else {
            let is_in_time = self.period_start(period) <= CivilTime::MAX.0;
            return (is_in_time.then_some(period), 0);
        };
        let mut period = period;
        for step in 0..steps {
            let time = CivilTime(self.unit(period).saturating_mul(unit_s));
            if time > CivilTime::MAX {
                return (None, step);
            }
            match self.later(time) {
                None => return (Some(period), step),
                Some(target) => period = self.period_from(target).max(period + 1),
            }
        }
        (None, steps)
    }

    /// The first time behind this one at which its day, hour, minute or second may fit; `None` if they do.
    fn later(&self, time: CivilTime) -> Option<i64> {
        let day = DayInfo::new(time.day());
        if !self.days.has_month(day.month) {
            return Some((time.day() + day.month_length - day.day + 1) * DAY_S);
        }
        if !self.days.matches(&day) {
            return Some((time.day() + 1) * DAY_S);
        }
        if self.frequency >= Frequency::Daily {
            return None;
        }
        let (hours, minutes, seconds) = self.limits;
        let second = time.second_of_day();
        let limits = [
            (u64::from(hours), second / 3600, 3600, 24),
            (minutes, second / 60 % 60, 60, 60),
            (seconds, second % 60, 1, 60),
        ];
        for (bits, value, unit, count) in limits {
            if bits >> value & 1 == 0 {
                let behind = bits >> value;
                // The next that is allowed, or the beginning of what is coarser.
                let next = (value + i64::from(behind.trailing_zeros())).min(count);
                return Some(time.0 - time.0.rem_euclid(unit) + (next - value) * unit);
            }
        }
        None
    }

    /// Whether the period that holds a time gives it.
    pub(super) fn is_in_its_period(&self, time: CivilTime) -> bool {
        let period = self.period_of(time);
        if let Some(unit_s) = self.unit_s() {
            let begin = CivilTime(self.unit(period) * unit_s);
            if self.later(begin).is_some() {
                return false;
            }
        }
        let batch = self.batch(period);
        batch.get(self, batch.index_from(self, time.0)) == Some(time.0)
    }

    /// What a period gives.
    pub(super) fn batch(&self, period: i64) -> Batch {
        if self.skip == Skip::Omit || self.frequency < Frequency::Monthly {
            let bases = self.bases(period);
            let values = (!self.positions.is_empty()).then(|| self.chosen(&bases));
            return Batch { bases, values };
        }
        // A day that was moved may lie in the period before or behind; a period takes what lies in it.
        let (begin, end) = (self.period_start(period), self.period_start(period + 1));
        let mut all = Vec::new();
        for near in period - 1..=period + 1 {
            let bases = if near < 0 { Vec::new() } else { self.bases(near) };
            all.extend(if self.positions.is_empty() { bases } else { self.chosen(&bases) });
        }
        all.retain(|time| (begin..end).contains(time));
        all.sort_unstable();
        all.dedup();
        if self.positions.is_empty() {
            Batch { bases: all, values: None }
        } else {
            Batch { bases: Vec::new(), values: Some(all) }
        }
    }

    /// BYSETPOS (RFC 5545, section 3.3.10).
    fn chosen(&self, bases: &[i64]) -> Vec<i64> {
        let count = i64::try_from(bases.len() * self.clock_len()).unwrap_or(i64::MAX);
        let index = |position: &i16| {
            let position = i64::from(*position);
            usize::try_from(if position > 0 { position - 1 } else { count + position }).ok()
        };
        let mut chosen: Vec<i64> =
            self.positions.iter().filter_map(|position| self.nth_time(bases, index(position)?)).collect();
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }

    /// Where the clock's times count from: the days of a period that fit, or the period itself where it is a day or less, in
    /// order and as seconds.
    fn bases(&self, period: i64) -> Vec<i64> {
        let unit = self.unit(period);
        let mut days: Vec<i64> = match self.frequency {
            Frequency::Yearly => self.year_days(unit),
            Frequency::Monthly => self.month_bases(unit),
            Frequency::Weekly => {
                let first = self.week_day(unit);
                (first..first + 7).filter(|day| self.days.matches(&DayInfo::new(*day))).collect()
            }
            _ => return vec![self.period_start(period)],
        };
        days.iter_mut().for_each(|day| *day *= DAY_S);
        days
    }

    fn year_days(&self, year: i64) -> Vec<i64> {
        if self.skip == Skip::Omit
            || (self.days.month_day_list.is_empty() && self.days.year_day_list.is_empty())
        {
            let months = (1..=12).filter(|month| self.days.has_month(*month));
            return months.flat_map(|month| self.matching_days(year, month)).collect();
        }
        let mut days: Vec<i64> = if self.days.month_day_list.is_empty() {
            let (first, length) = (day_number(year, 1, 1), year_length(year));
            let days = skipped(&self.days.year_day_list, first, length, self.skip);
            days.filter(|day| self.takes_moved(*day) && self.days.has_month(DayInfo::new(*day).month))
                .collect()
        } else {
            (1..=12)
                .filter(|month| self.days.has_month(*month))
                .flat_map(|month| self.moved_days(year, month))
                .collect()
        };
        days.sort_unstable();
        days.dedup();
        days
    }

    fn month_bases(&self, unit: i64) -> Vec<i64> {
        let (year, month) = (unit.div_euclid(12), month_of(unit));
        if !self.days.has_month(month) {
            return Vec::new();
        }
        if self.skip == Skip::Omit || self.days.month_day_list.is_empty() {
            return self.matching_days(year, month);
        }
        let mut days = self.moved_days(year, month);
        days.sort_unstable();
        days.dedup();
        days
    }

    fn matching_days(&self, year: i64, month: u8) -> Vec<i64> {
        month_days(year, month).filter(|(_, info)| self.days.matches(info)).map(|(day, _)| day).collect()
    }

    /// Days of a month that are named, moved where it does not have them.
    fn moved_days(&self, year: i64, month: u8) -> Vec<i64> {
        let (first, length) = (day_number(year, month, 1), month_length(year, month));
        let days = skipped(&self.days.month_day_list, first, length, self.skip);
        days.filter(|day| self.takes_moved(*day) && self.days.has_year_day(&DayInfo::new(*day))).collect()
    }

    fn takes_moved(&self, day: i64) -> bool {
        self.days.has_week_and_weekday(&DayInfo::new(day))
    }
}

/// The month, from 1, of months since the year 0.
fn month_of(unit: i64) -> u8 {
    small(unit.rem_euclid(12) + 1)
}
