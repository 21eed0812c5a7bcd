//! Rules by themselves: entered anywhere they give what they give from their start; those that never fit are found.

use proptest::prelude::*;
use scrinium_calendar::civil::{CivilTime, DAY_S};
use scrinium_calendar::rule::{Rule, RuleError};
use scrinium_dav_wire::recurrence::RecurrenceRule;

use crate::generator::{horizon_days, rule};

fn compiled(rule: &str, start: CivilTime) -> Result<Rule, RuleError> {
    Rule::new(&RecurrenceRule::parse(rule).unwrap(), start, false)
}

fn first(rule: &str, start: CivilTime, from: CivilTime) -> Option<CivilTime> {
    compiled(rule, start).unwrap().walk_from(from).next()
}

fn at(year: i64, month: u8, day: u8) -> CivilTime {
    CivilTime::new(year, month, day, 9 * 3600)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::support::cases(60)))]
    #[test]
    fn a_rule_is_entered_anywhere(
        rule in rule(),
        skip in prop_oneof![3 => Just(""), 1 => Just("FORWARD"), 1 => Just("BACKWARD")],
        start in CivilTime::MIN.0..CivilTime::MAX.0,
        part in 0_i64..1_000,
    ) {
        let mut rule = rule;
        if !skip.is_empty() {
            rule.other = vec![("RSCALE".to_owned(), "GREGORIAN".to_owned()), ("SKIP".to_owned(), skip.to_owned())];
        }
        let compiled = Rule::new(&rule, CivilTime(start), false).unwrap();
        let from = CivilTime(start + horizon_days(rule.frequency) * DAY_S / 1_000 * part);
        let walked: Vec<CivilTime> =
            compiled.walk_from(CivilTime::MIN).take(50_000).skip_while(|time| *time < from).take(8).collect();
        let entered: Vec<CivilTime> = compiled.walk_from(from).take(walked.len()).collect();
        prop_assert_eq!(&walked, &entered, "{} {:?}", rule, from);
        prop_assert!(entered.is_sorted_by(|one, next| one < next));
        for time in entered {
            prop_assert!(time >= CivilTime(start) && compiled.contains(time));
        }
        prop_assert_eq!(compiled.contains(from), compiled.walk_from(from).next() == Some(from));
    }
}

#[test]
fn a_series_of_nine_thousand_years_is_entered_at_its_end() {
    let start = at(1, 1, 1);
    assert_eq!(first("FREQ=SECONDLY", start, at(9999, 12, 31)), Some(at(9999, 12, 31)));
    assert_eq!(first("FREQ=DAILY;INTERVAL=3", start, at(9999, 12, 27)), Some(at(9999, 12, 29)));
    assert_eq!(first("FREQ=WEEKLY;BYDAY=FR", start, at(9999, 12, 1)), Some(at(9999, 12, 3)));
    assert_eq!(first("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", start, at(2097, 1, 1)), Some(at(2104, 2, 29)));
    assert_eq!(first("FREQ=YEARLY;INTERVAL=400;BYDAY=FR;BYMONTHDAY=13", start, at(9602, 1, 1)), None);
    for rule in ["FREQ=DAILY", "FREQ=MONTHLY;BYMONTHDAY=-1", "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=31"] {
        let end = compiled(rule, start).unwrap().walk_from(at(9999, 12, 31)).collect::<Vec<_>>();
        assert_eq!(end, [at(9999, 12, 31)], "{rule}");
    }
    let one = CivilTime::new(1, 1, 1, 0);
    assert_eq!(first("FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO", one, one), Some(one));
}

#[test]
fn rules_that_never_fit_are_found() {
    for rule in [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;BYMONTH=4;BYMONTHDAY=31",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=WEEKLY;BYMONTH=2;BYMONTHDAY=30;BYDAY=MO",
        "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30;BYHOUR=1",
        "FREQ=DAILY;INTERVAL=7;BYDAY=MO",
        "FREQ=WEEKLY;BYSETPOS=366",
        "FREQ=SECONDLY;BYSETPOS=2",
        "FREQ=SECONDLY;INTERVAL=60;BYSECOND=30",
        "FREQ=SECONDLY;INTERVAL=7200;BYHOUR=10",
        "FREQ=HOURLY;INTERVAL=24;BYHOUR=1",
        "FREQ=MINUTELY;INTERVAL=1440;BYMINUTE=1",
        "FREQ=YEARLY;INTERVAL=4294967295",
        "FREQ=SECONDLY;INTERVAL=4294967295;BYYEARDAY=366;BYDAY=MO;BYHOUR=3;BYMINUTE=59;BYSECOND=59",
    ] {
        let start = at(2026, 12, 1);
        let found: Vec<CivilTime> =
            compiled(rule, start).unwrap().walk_from(CivilTime(start.0 + 1)).take(2).collect();
        assert_eq!(found, [], "{rule}");
    }
    // Once in 400 years, and with the widest steps.
    let start = at(2024, 1, 1);
    let rule = "FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;BYWEEKNO=9";
    assert!(first(rule, start, start).is_some());
    assert_eq!(first("FREQ=DAILY;INTERVAL=146097;BYDAY=MO", start, at(2025, 1, 1)), Some(at(2424, 1, 1)));
}

#[test]
fn a_rule_with_every_time_of_the_day_costs_no_more() {
    let all = |most: u8| (0..=most).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let rule = format!(
        "FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYHOUR={};BYMINUTE={};BYSECOND={}",
        all(23),
        all(59),
        all(60)
    );
    let rule = compiled(&rule, at(2000, 1, 1)).unwrap();
    let from = CivilTime(at(5000, 7, 1).0 + 12_345);
    let found: Vec<CivilTime> = rule.walk_from(from).take(3).collect();
    assert_eq!(found, [from, CivilTime(from.0 + 1), CivilTime(from.0 + 2)]);
    // Out of 31 million times of a year the first and the last.
    let rule = format!(
        "FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYHOUR={};BYMINUTE={};BYSECOND={};BYSETPOS=1,-1",
        all(23),
        all(59),
        all(59)
    );
    let rule = compiled(&rule, at(2000, 1, 1)).unwrap();
    let found: Vec<CivilTime> = rule.walk_from(from).take(2).collect();
    assert_eq!(found, [CivilTime::new(5000, 12, 31, DAY_S - 1), CivilTime::new(5001, 1, 1, 0)]);
}

#[test]
fn what_is_not_known_says_so() {
    let error = |rule: &str| compiled(rule, at(2026, 1, 1)).map(|_| ()).unwrap_err();
    assert_eq!(error("RSCALE=CHINESE;FREQ=YEARLY"), RuleError::OtherCalendar("CHINESE".to_owned()));
    assert_eq!(error("RSCALE=gregorian;FREQ=YEARLY;SKIP=SOME"), RuleError::UnknownSkip("SOME".to_owned()));
    assert_eq!(error("FREQ=YEARLY;SKIP=OMIT"), RuleError::SkipAlone);
    assert_eq!(error("FREQ=YEARLY;BYEASTER=1"), RuleError::UnknownPart("BYEASTER".to_owned()));
    assert!(compiled("FREQ=YEARLY;X-NOTE=1", at(2026, 1, 1)).is_ok());
    let hourly = RecurrenceRule::parse("FREQ=HOURLY").unwrap();
    assert_eq!(Rule::new(&hourly, at(2026, 1, 1), true).unwrap_err(), RuleError::FinerThanADay);
    assert_eq!(
        Rule::new(&hourly, CivilTime(CivilTime::MIN.0 - 1), false).unwrap_err(),
        RuleError::OutOfRange
    );
}
