//! Rules, made up.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use scrinium_dav_wire::recurrence::{Frequency, RecurrenceRule, Weekday};

pub(crate) const FREQUENCIES: [Frequency; 7] = [
    Frequency::Secondly,
    Frequency::Minutely,
    Frequency::Hourly,
    Frequency::Daily,
    Frequency::Weekly,
    Frequency::Monthly,
    Frequency::Yearly,
];

const WEEKDAYS: [Weekday; 7] = [
    Weekday::Monday,
    Weekday::Tuesday,
    Weekday::Wednesday,
    Weekday::Thursday,
    Weekday::Friday,
    Weekday::Saturday,
    Weekday::Sunday,
];

/// A list that is mostly empty.
fn list(numbers: impl Strategy<Value = i16>, most: usize) -> impl Strategy<Value = Vec<i16>> {
    prop_oneof![3 => Just(Vec::new()), 2 => vec(numbers, 1..=most)]
}

fn signed(most: i16) -> impl Strategy<Value = i16> {
    (1..=most, any::<bool>()).prop_map(|(number, negative)| if negative { -number } else { number })
}

/// A rule without an end.
pub(crate) fn rule() -> impl Strategy<Value = RecurrenceRule> {
    let days = vec((prop_oneof![3 => Just(0), 1 => signed(5), 1 => signed(53)], select(&WEEKDAYS[..])), 1..4);
    let days = prop_oneof![1 => Just(Vec::new()), 1 => days];
    let interval = prop_oneof![3 => Just(1_u32), 2 => 2_u32..6, 1 => 6_u32..100];
    (
        (select(&FREQUENCIES[..]), interval, days, prop::option::of(select(&WEEKDAYS[..]))),
        (list(1..=12_i16, 3), list(signed(31), 4), list(signed(366), 3), list(signed(53), 3)),
        (list(0..=23_i16, 3), list(0..=59_i16, 3), list(0..=59_i16, 3), list(signed(5), 2)),
    )
        .prop_map(|((frequency, interval, by_day, week_start), days, times)| {
            let (by_month, by_month_day, by_year_day, by_week) = days;
            let (by_hour, by_minute, by_second, by_position) = times;
            RecurrenceRule {
                interval,
                by_day,
                week_start,
                by_month,
                by_month_day,
                by_year_day,
                by_week,
                by_hour,
                by_minute,
                by_second,
                by_position,
                ..RecurrenceRule::every(frequency)
            }
        })
}

/// How many days of a rule are looked at: what is finer is looked at for a shorter time.
pub(crate) fn horizon_days(frequency: Frequency) -> i64 {
    match frequency {
        Frequency::Secondly => 1,
        Frequency::Minutely => 20,
        Frequency::Hourly => 200,
        Frequency::Daily => 1_000,
        Frequency::Weekly => 1_500,
        Frequency::Monthly => 2_500,
        Frequency::Yearly => 5_000,
    }
}
