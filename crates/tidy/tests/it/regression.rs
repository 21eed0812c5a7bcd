//! Rows of two commits are compared by name, and one that became worse is seen.

use std::fmt::Write;

use scrinium_tidy::regression::{Comparison, Verdict};

/// The lines of a row, one for each round.
fn lines(case: &str, unit: &str, values: &[f64]) -> String {
    values.iter().fold(String::new(), |mut lines, value| {
        let line = serde_json::json!({"name": "bench", "case": case, "value": value, "unit": unit,
            "against": "another store", "against_value": 1.0, "ratio": value, "runs": 1, "spread": 0.0});
        writeln!(lines, "{line}").unwrap();
        lines
    })
}

/// The verdict on one row, and how much worse it is.
fn verdict(case: &str, unit: &str, base: &[f64], present: &[f64]) -> (Verdict, f64) {
    let compared = Comparison::of(&lines(case, unit, base), &lines(case, unit, present)).unwrap();
    let row = compared.rows.first().unwrap();
    assert_eq!(compared.holds(), row.verdict != Verdict::Worse);
    (row.verdict, (row.worse * 1000.0).round() / 1000.0)
}

#[test]
fn a_row_that_became_worse_is_seen_whichever_way_its_unit_points() {
    let five = [100.0, 99.0, 101.0, 100.0, 102.0];
    let times = |factor: f64| five.map(|value| value * factor);
    for (unit, slower) in [("us", 1.12), ("MB", 1.12), ("", 1.12), ("commits/s", 1.0 / 1.12)] {
        assert_eq!(verdict("a", unit, &five, &times(slower)), (Verdict::Worse, 1.12), "{unit}");
        assert_eq!(verdict("a", unit, &five, &times(1.0 / slower)), (Verdict::Holds, 0.893), "{unit}");
        assert_eq!(verdict("a", unit, &five, &five), (Verdict::Holds, 1.0), "{unit}");
    }
    assert_eq!(verdict("a", "us", &five, &times(1.08)).0, Verdict::Holds);
    // One round of five that something else disturbed.
    assert_eq!(verdict("a", "us", &five, &[100.0, 100.0, 500.0, 101.0, 99.0]).0, Verdict::Holds);
    assert_eq!(verdict("in JavaScript", "s", &five, &times(1.2)).0, Verdict::Holds);
    assert_eq!(verdict("in JavaScript", "s", &five, &times(1.3)).0, Verdict::Worse);
    // Nothing measured is nothing known.
    assert_eq!(verdict("a", "us", &[0.0], &[5.0]).0, Verdict::Worse);
}

#[test]
fn two_rows_are_left_out_for_their_spread_and_no_third() {
    let wide = |from: f64| [from, from * 1.3, from * 1.6];
    let (mut base, mut present) = (String::new(), String::new());
    for (number, case) in ["a", "b"].into_iter().enumerate() {
        base += &lines(case, "us", &wide(100.0));
        present += &lines(case, "us", &wide(120.0));
        let compared = Comparison::of(&base, &present).unwrap();
        assert!(compared.holds(), "{} rows: {compared}", number + 1);
        assert!(
            compared.to_string().contains(&format!("bench: {case}  left out for its spread")),
            "{compared}"
        );
    }
    base += &lines("c", "us", &wide(100.0));
    present += &lines("c", "us", &wide(120.0));
    let compared = Comparison::of(&base, &present).unwrap();
    assert!(!compared.holds(), "{compared}");
    assert!(
        compared.to_string().ends_with("3 rows: 0 hold, 1 are worse, 2 left out, 0 missing"),
        "{compared}"
    );
}

#[test]
fn rows_are_matched_by_name_and_one_that_is_gone_is_told() {
    let base = lines("a", "us", &[1.0]) + &lines("gone", "us", &[1.0]);
    let present = lines("new", "us", &[9.0]) + &lines("a", "us", &[1.0]);
    let compared = Comparison::of(&base, &present).unwrap();
    assert!(!compared.holds());
    assert_eq!(
        (compared.missing.as_slice(), compared.new.as_slice()),
        (&["bench: gone".to_owned()][..], &["bench: new".to_owned()][..])
    );
    assert!(Comparison::of(&present, &(present.clone() + &base)).unwrap().holds());
    assert!(!Comparison::of("", "").unwrap().holds(), "nothing was compared");
    assert!(Comparison::of("Compiling\n", "").is_err());
}

/// What a benchmark compares its larger sizes with is a row too.
#[test]
fn the_smallest_size_is_compared_too() {
    let line = |least: f64| {
        let line = serde_json::json!({"name": "page-depth", "case": "a document, 80000 documents", "value": 70.0,
            "unit": "us", "against": "the same at 1000 documents", "against_value": least, "ratio": 1.0});
        line.to_string()
    };
    let compared = Comparison::of(&line(60.0), &line(80.0)).unwrap();
    let [largest, smallest] = compared.rows.as_slice() else { panic!("{compared}") };
    assert_eq!((largest.verdict, smallest.verdict), (Verdict::Holds, Verdict::Worse));
    assert_eq!(smallest.name, "page-depth: a document, the same at 1000 documents");
}
