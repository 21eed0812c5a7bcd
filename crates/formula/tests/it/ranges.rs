//! Date-time ranges: how they are written, what functions and operators make of them, and what bounds them.

use crate::support::Document;
use crate::support::{check, compiled, environment, environment_at, error_of, value_for, value_of};
use jiff::ToSpan;
use jiff::civil::Date;
use proptest::prelude::*;
use scrinium_formula::{EvaluationError, Formula, Value};
use serde_json::json;

#[test]
fn ranges_are_written_in_every_form_that_their_ends_have() {
    check(&[
        ("[11/21/2026-11/23/2026]", "[2026-11-21 - 2026-11-23]"),
        ("[11-21-26 - 11-23-26]", "[2026-11-21 - 2026-11-23]"),
        ("[11-21-26-11-23-26]", "[2026-11-21 - 2026-11-23]"),
        ("[2026/11/21 - 2026/11/23]", "[2026-11-21 - 2026-11-23]"),
        ("[2026-11-21-2026-11-23]", "[2026-11-21 - 2026-11-23]"),
        ("[2026-11-21/2026-11-23]", "[2026-11-21 - 2026-11-23]"),
        ("[ 2026-11-21 -2026-11-23 ]", "[2026-11-21 - 2026-11-23]"),
        ("[9:00 AM - 5 PM]", "[09:00-17:00]"),
        ("[11/21/2026 09:00 AM - 11/21/2026 5 PM]", "[2026-11-21 09:00 - 17:00]"),
        (
            "[2026-11-21T09:00:00-05:00 - 2026-11-21T17:00:00-05:00]",
            "[2026-11-21T14:00:00Z/2026-11-21T22:00:00Z]",
        ),
        (r#"@TextToTime("2026-11-21" + "-" + "2026-11-23")"#, "[2026-11-21 - 2026-11-23]"),
        (r#"@TextToTime("01/02/2026 10:00 AM - 01/02/2026 11:00 AM")"#, "[2026-01-02 10:00-11:00]"),
        (
            r#"@TextToTime("2026-11-21 - 2026-11-23":"10:00 - 11:00")"#,
            "[2026-11-21 - 2026-11-23]:[10:00 - 11:00]",
        ),
        // A date or an offset from UTC has the sign of a range too.
        ("[2026-11-21]", "[11-21-2026]"),
        ("[2026-11-21T10:00:00-11:00]", "[2026-11-21T21:00:00Z]"),
    ]);
}

#[test]
fn what_is_no_range_is_refused_with_the_reason() {
    for (source, reason) in [
        ("[2026-11-23 - 2026-11-21]", "ends before it starts"),
        ("[2026-11-23T10:00:00Z - 2026-11-23T09:00:00Z]", "ends before it starts"),
        ("[2026-11-21 - 10:00]", "from date to date"),
        ("[10:00 - 2026-11-21]", "from date to date"),
        ("[2026-11-21 - 2026-11-23 - 2026-11-25]", "neither a date nor a keyword"),
        ("[2026-11-21 - ]", "neither a date nor a keyword"),
        ("[ - 2026-11-21]", "neither a date nor a keyword"),
        ("[2026-11-21 - soon]", "neither a date nor a keyword"),
        ("[2026-02-28 - 2026-02-30]", "neither a date nor a keyword"),
    ] {
        let error = Formula::compile(source).unwrap_err().to_string();
        assert!(error.contains(reason), "{source}: {error}");
    }
    assert!(error_of("[2026-11-23 10:00 - 2026-11-23 09:00]").contains("ends before it starts"));
    assert!(error_of(r#"@TextToTime("2026-11-23 - 2026-11-21")"#).contains("ends before it starts"));
    assert!(error_of(r#"@TextToTime("2026-11-21 - soon")"#).contains("is not a date"));
    let hyphens = "-".repeat(100_000);
    let many = value_for("@IsError(@TextToTime(Text))", json!({ "Text": hyphens }));
    assert_eq!(many, Value::truth(true));
}

#[test]
fn exploding_gives_the_days_of_every_kind_of_time() {
    check(&[
        ("@Explode([2028-02-28 - 2028-03-01])", r#""2028-02-28":"2028-02-29":"2028-03-01""#),
        ("@Explode([2026-11-21 - 2026-11-21])", r#""2026-11-21""#),
        ("@Explode([2026-11-21])", r#""2026-11-21""#),
        ("@Explode([2026-11-21 10:00])", r#""2026-11-21""#),
        ("@Explode([2026-11-21 10:00 - 11:00])", r#""2026-11-21""#),
        ("@Explode([2026-11-21 - 2026-11-22]:[2026-12-24])", r#""2026-11-21":"2026-11-22":"2026-12-24""#),
        ("@Explode([10:00])", r#""10:00:00""#),
        ("@Explode([10:00 - 11:30])", r#""10:00:00 - 11:30:00""#),
        (r#"@Explode([2026-11-21 - 2026-11-22]; ",")"#, r#""2026-11-21":"2026-11-22""#),
        // As calendars are searched: the days of an entry among those of a range.
        (r#"@Explode([2026-11-22 10:00]) *= @Explode(@TextToTime("11/21/2026-11/30/2026"))"#, "1"),
        (r#"@Explode([2026-12-01 10:00]) *= @Explode(@TextToTime("11/21/2026-11/30/2026"))"#, "0"),
        (
            "@TextToTime(@Explode(@TextToTime(@Text([2026-11-21]) + \"-\" + @Text([2026-11-22]))))",
            "[2026-11-21]:[2026-11-22]",
        ),
    ]);
    // The days are those of the time zone.
    let late = compiled("@Explode([2026-11-21T22:00:00Z - 2026-11-21T23:30:00Z])");
    let days = |hours| late.evaluate(&Document::default(), &environment_at(hours)).unwrap();
    assert_eq!(days(0), Value::text("2026-11-21"));
    assert_eq!(days(1), Value::texts(vec!["2026-11-21".into(), "2026-11-22".into()]));
    assert_eq!(days(2), Value::text("2026-11-22"));
}

#[test]
fn a_long_range_is_stopped_and_a_long_list_of_dates_is_not() {
    let explode = |source: &str| compiled(source).evaluate(&Document::default(), &environment());
    let centuries = explode("@Explode([1000-01-01 - 1999-12-31])");
    assert!(matches!(centuries, Err(EvaluationError::ListTooLong { .. })), "{centuries:?}");
    let holidays = explode("@BusinessDays([2026-01-01]; [2026-12-31]; 1:7; [1000-01-01 - 1999-12-31])");
    assert!(matches!(holidays, Err(EvaluationError::ListTooLong { .. })), "{holidays:?}");
    let dates = json!({ "Dates": vec!["2026-11-21"; 50_000] });
    assert_eq!(value_for("@Elements(@Explode(@TextToTime(Dates)))", dates), Value::number(50_000.0));
}

#[test]
fn ranges_are_elements_of_lists() {
    check(&[
        ("@Elements([2026-11-21 - 2026-11-23])", "1"),
        ("@Elements([2026-11-21 - 2026-11-23]:[2026-12-24]:[10:00-11:00])", "3"),
        ("@Subset([2026-11-21 - 2026-11-23]:[2026-12-24]; 1)", "[2026-11-21 - 2026-11-23]"),
        ("([2026-11-21 - 2026-11-23]:[2026-12-24])[2]", "[2026-12-24]"),
        ("@IsMember([2026-11-21 - 2026-11-23]; [2026-12-24]:[11/21/2026-11/23/2026])", "1"),
        ("@Unique([2026-11-21 - 2026-11-23]:[11/21/2026-11/23/2026])", "[2026-11-21 - 2026-11-23]"),
        (
            "@Sort([2026-11-23]:[2026-11-21 - 2026-11-24]:[2026-11-21 - 2026-11-22]:[2026-11-21])",
            "[2026-11-21]:[2026-11-21 - 2026-11-22]:[2026-11-21 - 2026-11-24]:[2026-11-23]",
        ),
        ("@IsTime([2026-11-21 - 2026-11-23])", "1"),
    ]);
}

#[test]
fn ranges_compare_by_their_start_and_then_by_their_end() {
    check(&[
        ("[2026-11-21 - 2026-11-23] = [11/21/2026-11/23/2026]", "1"),
        ("[2026-11-21 - 2026-11-23] = [2026-11-21 - 2026-11-24]", "0"),
        ("[2026-11-21 - 2026-11-23] < [2026-11-21 - 2026-11-24]", "1"),
        ("[2026-11-21 - 2026-11-23] < [2026-11-22]", "1"),
        ("[2026-11-21 - 2026-11-23] > [2026-11-21]", "1"),
        ("[2026-11-21 - 2026-11-21] = [2026-11-21]", "1"),
        ("[2026-11-21 08:00 - 17:00] = @Today", "1"),
        ("[22:00 - 02:00] <> [22:00 - 03:00]", "1"),
        ("[2026-11-21 - 2026-11-23]:[2026-12-24] = [2026-11-22]:[2026-11-21 - 2026-11-23]", "0"),
        ("[2026-11-21 - 2026-11-23]:[2026-12-24] *= [2026-11-22]:[2026-11-21 - 2026-11-23]", "1"),
        ("@IsError([2026-11-21 - 2026-11-23] < [10:00 - 11:00])", "1"),
    ]);
}

#[test]
fn functions_of_times_take_both_ends_or_the_start() {
    check(&[
        ("[2026-11-21 10:00 - 11:00] + 1800", "[2026-11-21 10:30 - 11:30]"),
        ("[2026-11-21 10:00 - 11:00] - 1800", "[2026-11-21 09:30 - 10:30]"),
        ("[2026-11-21 - 2026-11-22] + 60", "[2026-11-21 00:01 - 2026-11-22 00:01]"),
        ("[23:30 - 23:45] + 1800", "[00:00 - 00:15]"),
        ("@Adjust([2026-01-31 - 2026-02-01]; 0; 1; 0; 0; 0; 0)", "[2026-02-28 - 2026-03-01]"),
        ("@Date([2026-11-21 10:00 - 2026-11-22 09:00])", "[2026-11-21 - 2026-11-22]"),
        ("@Time([2026-11-21 10:00 - 2026-11-22 09:00])", "[10:00 - 09:00]"),
        ("@Year([2026-12-31 - 2027-01-01]):@Day([2026-12-31 - 2027-01-01])", "2026:31"),
        ("@Weekday([2026-11-21 - 2026-11-23])", "7"),
        ("@Hour([10:00 - 11:30])", "10"),
        ("@BusinessDays([2026-11-23 - 2026-11-24]; [2026-11-26 - 2026-11-27])", "5"),
        (r#"@Text([2026-11-21 10:00 - 11:30]; "T1")"#, r#""2026-11-21 10:00 - 2026-11-21 11:30""#),
        (r#"@Text([2026-11-21 10:00 - 11:30]; "T1S1")"#, r#""10:00 - 11:30""#),
        (
            r#"@TimeToTextInZone([2026-11-21 10:00 - 11:30]; "Z=5$DO=0"; "T1S1")"#,
            r#""05:00-05:00 - 06:30-05:00""#,
        ),
    ]);
    assert!(error_of("[2026-11-21 - 2026-11-23] - [2026-11-20]").contains("@BusinessDays"));
    assert!(error_of("[2026-11-24] - [2026-11-21 - 2026-11-23]").contains("@BusinessDays"));
    assert!(error_of("@TimeMerge([2026-11-21 - 2026-11-23]; [10:00])").contains("not ranges"));
    assert!(error_of("@Date([10:00 - 11:00])").contains("has no date"));
}

#[test]
fn documents_and_indexes_hold_ranges_as_intervals() {
    assert_eq!(value_of("[11/21/2026 - 11/23/2026]").to_json(), json!("2026-11-21/2026-11-23"));
    let moments = value_of("[2026-11-21 10:00 - 11:30]").to_json();
    assert_eq!(moments, json!("2026-11-21T10:00:00Z/2026-11-21T11:30:00Z"));
    let entry = |source: &str| value_for(source, json!({ "When": moments }));
    assert_eq!(entry("When = [2026-11-21 10:00 - 11:30]"), Value::truth(true));
    assert_eq!(entry("@Hour(When)"), Value::number(10.0));
    assert_eq!(entry("@IsTime(When)"), Value::truth(true));
    assert_eq!(entry("@Explode(@TextToTime(When))"), Value::text("2026-11-21"));
    for wrong in ["2026-11-23/2026-11-21", "2026-11-21/", "2026-11-21 / 2026-11-23", "10:00/11:00"] {
        assert!(value_for("@Year(When)", json!({ "When": wrong })).is_error(), "{wrong}");
    }
}

proptest! {
    /// Days counted one by one, and the texts of ranges read back.
    #[test]
    fn any_two_days_make_a_range_of_the_days_between(day in 0_i32..80_000, length in 0_i32..400) {
        let start = Date::constant(1900, 1, 1).checked_add(day.days()).unwrap();
        let end = start.checked_add(length.days()).unwrap();
        let mut days = Vec::new();
        let mut next = start;
        while next <= end {
            days.push(next.to_string().into());
            next = next.tomorrow().unwrap();
        }
        let fields = json!({ "Range": format!("{start}/{end}"), "Written": format!("{start} - {end}") });
        let check = |source: &str| value_for(source, fields.clone());
        prop_assert_eq!(check("@Explode(@TextToTime(Range))"), Value::texts(days));
        prop_assert_eq!(check("@TextToTime(Written) = Range"), Value::truth(true));
        prop_assert_eq!(check("@TextToTime(@Text(@TextToTime(Range))) = Range"), Value::truth(true));
        prop_assert_eq!(check("@BusinessDays(Range; Range)"), Value::number(f64::from(length + 1)));
    }
}
