//! Any text as a rule: entered anywhere it gives what it gives from its start.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_calendar::civil::CivilTime;
use scrinium_calendar::rule::Rule;
use scrinium_dav_wire::recurrence::RecurrenceRule;

fuzz_target!(|input: (i64, u32, &str)| {
    let (start, later, text) = input;
    let Ok(rule) = RecurrenceRule::parse(text) else { return };
    let Ok(rule) = Rule::new(&rule, CivilTime(start), false) else { return };
    let from = CivilTime(start.saturating_add(i64::from(later)));
    let walked: Vec<CivilTime> =
        rule.walk_from(CivilTime(start)).take(2_000).skip_while(|time| *time < from).take(4).collect();
    let entered: Vec<CivilTime> = rule.walk_from(from).take(walked.len()).collect();
    assert_eq!(walked, entered);
    assert!(entered.iter().all(|time| rule.contains(*time)));
});
