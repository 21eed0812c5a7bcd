//! The engine against a model that is slow and simple: each day (hour, minute, second) is asked whether the rule's text takes
//! it, and nothing is computed ahead.

use jiff::civil::{Date, DateTime, Weekday as Day, date};
use jiff::{Span, ToSpan};
use proptest::prelude::*;
use scrinium_calendar::civil::CivilTime;
use scrinium_calendar::rule::Rule;
use scrinium_dav_wire::recurrence::{Frequency, RecurrenceRule, Weekday};

use crate::generator::{horizon_days, rule};

fn day_of(weekday: Weekday) -> Day {
    Day::from_monday_zero_offset(i8::try_from(weekday.from_monday()).unwrap()).unwrap()
}

fn civil(time: DateTime) -> CivilTime {
    let second = i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second());
    let small = |number: i8| u8::try_from(number).unwrap();
    CivilTime::new(i64::from(time.year()), small(time.month()), small(time.day()), second)
}

fn days_between(from: Date, to: Date) -> i64 {
    i64::from(from.until(to).unwrap().get_days())
}

fn week_begin(day: Date, week_start: Day) -> Date {
    (0..7).map(|back| day - back.days()).find(|day| day.weekday() == week_start).unwrap()
}

/// Whether `which` is the place of a day among days, from the start or from the end.
fn is_place(which: i16, among: &[Date], day: Date) -> bool {
    let place =
        if which > 0 { i64::from(which) - 1 } else { i64::try_from(among.len()).unwrap() + i64::from(which) };
    usize::try_from(place).ok().and_then(|place| among.get(place)) == Some(&day)
}

fn all_days(from: Date, span: Span) -> Vec<Date> {
    let end = from + span;
    std::iter::successors(Some(from), |day| day.tomorrow().ok()).take_while(|day| *day < end).collect()
}

struct Model<'a> {
    rule: &'a RecurrenceRule,
    start: DateTime,
    week_start: Day,
}

impl Model<'_> {
    fn takes_day(&self, day: Date) -> bool {
        let rule = self.rule;
        let month = all_days(day.first_of_month(), 1.month());
        let year = all_days(day.first_of_year(), 1.year());
        let of_weekday = |days: &[Date]| -> Vec<Date> {
            days.iter().copied().filter(|other| other.weekday() == day.weekday()).collect()
        };
        let names_no_day =
            rule.by_day.is_empty() && rule.by_month_day.is_empty() && rule.by_year_day.is_empty();
        let is_coarse = rule.frequency >= Frequency::Weekly;
        let same_weekday = day.weekday() == self.start.weekday();
        let by_start = match rule.frequency {
            _ if !names_no_day || !is_coarse => true,
            Frequency::Weekly => same_weekday,
            _ if !rule.by_week.is_empty() => same_weekday,
            Frequency::Yearly if rule.by_month.is_empty() => {
                day.day() == self.start.day() && day.month() == self.start.month()
            }
            _ => day.day() == self.start.day(),
        };
        let takes_weekday = |(which, weekday): &(i16, Weekday)| {
            let is_numbered = *which != 0 && rule.frequency >= Frequency::Monthly && rule.by_week.is_empty();
            let in_year = rule.frequency == Frequency::Yearly && rule.by_month.is_empty();
            day_of(*weekday) == day.weekday()
                && (!is_numbered || is_place(*which, &of_weekday(if in_year { &year } else { &month }), day))
        };
        by_start
            && (rule.by_month.is_empty() || rule.by_month.contains(&i16::from(day.month())))
            && (rule.by_month_day.is_empty()
                || rule.by_month_day.iter().any(|which| is_place(*which, &month, day)))
            && (rule.by_year_day.is_empty()
                || rule.by_year_day.iter().any(|which| is_place(*which, &year, day)))
            && (rule.by_day.is_empty() || rule.by_day.iter().any(takes_weekday))
            && (rule.by_week.is_empty() || self.takes_week(day))
    }

    /// The first week of a year is the one with 4 January.
    fn takes_week(&self, day: Date) -> bool {
        let first = |year: i16| week_begin(date(year, 1, 4), self.week_start);
        let own = week_begin(day, self.week_start);
        let year = (day.year() - 1..=day.year() + 1).rev().find(|year| first(*year) <= own).unwrap();
        let weeks: Vec<Date> = std::iter::successors(Some(first(year)), |week| Some(*week + 7.days()))
            .take_while(|week| *week < first(year + 1))
            .collect();
        self.rule.by_week.iter().any(|which| is_place(*which, &weeks, own))
    }

    /// The period of a time: its number among those that begin with the start's.
    fn period(&self, time: DateTime) -> i64 {
        let day = time.date();
        let whole = days_between(self.start.date(), day);
        let hours = whole * 24 + i64::from(time.hour()) - i64::from(self.start.hour());
        let minutes = hours * 60 + i64::from(time.minute()) - i64::from(self.start.minute());
        let years = i64::from(time.year()) - i64::from(self.start.year());
        match self.rule.frequency {
            Frequency::Yearly => years,
            Frequency::Monthly => years * 12 + i64::from(time.month()) - i64::from(self.start.month()),
            Frequency::Weekly => {
                days_between(week_begin(self.start.date(), self.week_start), week_begin(day, self.week_start))
                    / 7
            }
            Frequency::Daily => whole,
            Frequency::Hourly => hours,
            Frequency::Minutely => minutes,
            Frequency::Secondly => minutes * 60 + i64::from(time.second()) - i64::from(self.start.second()),
        }
    }

    /// Numbers of the clock that may be: those of the list, else the start's, or all where the frequency is as fine.
    fn clock(&self, list: &[i16], own: i8, frequency: Frequency, most: i8) -> Vec<i8> {
        let all = (0..=most).filter(|number| match list.is_empty() {
            false => list.contains(&i16::from(*number)),
            true => self.rule.frequency <= frequency || *number == own,
        });
        all.collect()
    }

    fn occurrences(&self, days: i64) -> Vec<CivilTime> {
        let rule = self.rule;
        let hours = self.clock(&rule.by_hour, self.start.hour(), Frequency::Hourly, 23);
        let minutes = self.clock(&rule.by_minute, self.start.minute(), Frequency::Minutely, 59);
        let seconds = self.clock(&rule.by_second, self.start.second(), Frequency::Secondly, 59);
        let mut periods: Vec<(i64, Vec<DateTime>)> = Vec::new();
        // The whole period of the start counts for BYSETPOS.
        let first = self.start.date() - 366.days();
        for day in all_days(first, (days + 366).days()) {
            let at_start = day.at(23, 59, 59, 0);
            if self.period(at_start) < 0 || !self.takes_day(day) {
                continue;
            }
            for hour in &hours {
                for minute in &minutes {
                    for second in &seconds {
                        let time = day.at(*hour, *minute, *second, 0);
                        let period = self.period(time);
                        if period < 0 || period % i64::from(rule.interval) != 0 {
                            continue;
                        }
                        match periods.last_mut().filter(|(last, _)| *last == period) {
                            Some((_, times)) => times.push(time),
                            None => periods.push((period, vec![time])),
                        }
                    }
                }
            }
        }
        let mut found: Vec<CivilTime> =
            periods.iter().flat_map(|(_, times)| self.chosen(times)).map(civil).collect();
        found.retain(|time| *time >= civil(self.start));
        found
    }

    fn chosen(&self, times: &[DateTime]) -> Vec<DateTime> {
        let count = i64::try_from(times.len()).unwrap();
        let is_chosen = |place: i64| {
            let positions = &self.rule.by_position;
            positions.is_empty()
                || positions.iter().any(|which| [place + 1, place - count].contains(&i64::from(*which)))
        };
        (0..).zip(times).filter(|(place, _)| is_chosen(*place)).map(|(_, time)| *time).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::support::cases(5)))]
    #[test]
    fn a_rule_gives_what_the_model_gives(rule in rule(), day in 0_i64..20_000, second in 0_i64..86_400) {
        let start = date(1990, 1, 1) + day.days();
        let start = start.at(0, 0, 0, 0) + second.seconds();
        let horizon = horizon_days(rule.frequency) / 2;
        let week_start = rule.week_start.map_or(Day::Monday, day_of);
        let model = Model { rule: &rule, start, week_start };
        let mut expected = model.occurrences(horizon);
        let end = civil(start + horizon.days());
        // A period that the horizon cuts is not whole in the model.
        let cut = expected.iter().position(|time| *time >= civil(start + (horizon - 366).max(horizon / 2).days()));
        expected.truncate(cut.unwrap_or(expected.len()));
        let compiled = Rule::new(&rule, civil(start), false).unwrap();
        let found: Vec<CivilTime> =
            compiled.walk_from(civil(start)).take_while(|time| *time < end).take(expected.len()).collect();
        prop_assert_eq!(&found, &expected, "{} from {}", rule, start);
        if cut.is_none() {
            let bound = civil(start + (horizon - 366).max(horizon / 2).days());
            prop_assert_eq!(compiled.walk_from(civil(start)).take_while(|time| *time < bound).count(), expected.len());
        }
    }
}
