//! Operators on lists, held against a naive model of them.

use crate::support::{Document, check, error_of};
use proptest::prelude::*;
use scrinium_formula::{Environment, Formula, Value};

#[test]
fn pairwise_operators_take_elements_in_pairs_and_the_shorter_list_repeats_its_last() {
    check(&[
        (r#""A":"B":"C"+"1":"2":"3""#, r#""A1":"B2":"C3""#),
        (r#""A":"B":"C"+"1":"2""#, r#""A1":"B2":"C2""#),
        (r#""A":"B":"C"+"1""#, r#""A1":"B1":"C1""#),
        (r#""A"+"1":"2":"3""#, r#""A1":"A2":"A3""#),
        ("1:2:3+10:20:30", "11:22:33"),
        ("1:2:3+10:20", "11:22:23"),
        ("10:20-1:2:3", "9:18:17"),
        ("1:2*3:4", "3:8"),
        ("8:9/2:3", "4:3"),
    ]);
}

#[test]
fn permuted_operators_take_each_element_with_each() {
    check(&[
        (r#""A":"B":"C"*+"1":"2""#, r#""A1":"A2":"B1":"B2":"C1":"C2""#),
        ("1:2:3*+10:20", "11:21:12:22:13:23"),
        ("1:2*-10:20", "(-9):(-19):(-8):(-18)"),
        ("1:2**3:4", "3:4:6:8"),
        ("8:4*/2:4", "4:2:2:1"),
        ("1:9*>5:10", "1"),
        ("1:9>5:10", "0"),
        ("1:9*<=0:1", "1"),
        ("7:8*=8:9", "1"),
        ("7:7*<>7:7", "0"),
    ]);
}

#[test]
fn a_comparison_holds_if_any_pair_fulfils_it() {
    check(&[
        (r#""A":"B":"C"="B":"C":"A""#, "0"),
        (r#""A":"B":"C"="A":"X""#, "1"),
        (r#""A":"B":"C"="X":"C""#, "1"),
        (r#""A":"B":"C"="B":"C""#, "1"),
        (r#""A":"B":"C"*="B":"C":"A""#, "1"),
        (r#""B":"B":"C"*="D":"E""#, "0"),
        ("2:3:3=3:1", "0"),
        ("[1-1-90]:[2-2-90]:[3-3-90]=[3-3-90]:[2-2-90]:[1-1-90]", "1"),
        ("[1-1-90]:[2-2-90]*=[4-4-90]:[5-5-90]", "0"),
        (r#""a":"b" <> "a":"c""#, "1"),
        (r#""a":"b" <> "a":"b""#, "0"),
        ("1:2 = 2:2 & 1:2 <> 2:2", "1"),
        ("!(1:2 = 2:2)", "0"),
        ("5:1 < 3", "1"),
        ("5:1 >= 6", "0"),
    ]);
}

#[test]
fn subscripts_count_from_1() {
    check(&[
        ("(4:5:6)[1]", "4"),
        ("(4:5:6)[3]", "6"),
        ("(4:5:6)[2.9]", "5"),
        ("x := 7; x[1]", "7"),
        (r#"Missing[1]"#, r#""""#),
        ("@IsError((1:2)[0])", "1"),
        ("@IsError((1:2)[-1])", "1"),
        ("@IsError((1:2)[3])", "1"),
    ]);
}

#[test]
fn a_list_has_one_type() {
    assert!(error_of(r#""a":1"#).contains("does not go with"));
    assert!(error_of(r#"[2026-11-21]:"a""#).contains("does not go with"));
}

type Operator = (&'static str, fn(f64, f64) -> f64);

const OPERATORS: [Operator; 9] = [
    ("+", |left, right| left + right),
    ("-", |left, right| left - right),
    ("*", |left, right| left * right),
    ("=", |left, right| truth(left == right)),
    ("<>", |left, right| truth(left != right)),
    ("<", |left, right| truth(left < right)),
    (">", |left, right| truth(left > right)),
    ("<=", |left, right| truth(left <= right)),
    (">=", |left, right| truth(left >= right)),
];

fn truth(truth: bool) -> f64 {
    f64::from(u8::from(truth))
}

/// What an operator must answer, written as plainly as possible.
fn model(operator: usize, permuted: bool, left: &[f64], right: &[f64]) -> Vec<f64> {
    let apply = OPERATORS[operator].1;
    let mut results = Vec::new();
    if permuted {
        for a in left {
            for b in right {
                results.push(apply(*a, *b));
            }
        }
    } else {
        for place in 0..left.len().max(right.len()) {
            results.push(apply(left[place.min(left.len() - 1)], right[place.min(right.len() - 1)]));
        }
    }
    if operator >= 3 { vec![truth(results.contains(&1.0))] } else { results }
}

fn numbers() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-3_i8..4).prop_map(f64::from), 1..5)
}

fn evaluated(source: &str, json: serde_json::Value) -> Value {
    Formula::compile(source).unwrap().evaluate(&Document::new(json), &Environment::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn operators_agree_with_the_model(
        operator in 0..OPERATORS.len(), permuted: bool, left in numbers(), right in numbers()
    ) {
        let symbol = OPERATORS[operator].0;
        let source = format!("l {}{symbol} r", if permuted { "*" } else { "" });
        let expected = Value::numbers(model(operator, permuted, &left, &right));
        let found = evaluated(&source, serde_json::json!({ "l": left, "r": right }));
        prop_assert_eq!(&found, &expected, "{}", source);
        // The same as constants, which are reckoned when the formula is compiled.
        let list = |numbers: &[f64]| numbers.iter().map(|number| format!("({number})")).collect::<Vec<_>>().join(":");
        let constant = format!("{} {}{symbol} {}", list(&left), if permuted { "*" } else { "" }, list(&right));
        prop_assert_eq!(evaluated(&constant, serde_json::json!({})), expected, "{}", constant);
    }

    #[test]
    fn texts_join_as_numbers_add(left in prop::collection::vec("[a-c]{0,3}", 1..4), right in prop::collection::vec("[x-z]{0,30}", 1..4), permuted: bool) {
        let source = if permuted { "l *+ r" } else { "l + r" };
        let mut expected: Vec<String> = Vec::new();
        if permuted {
            for a in &left {
                expected.extend(right.iter().map(|b| format!("{a}{b}")));
            }
        } else {
            for place in 0..left.len().max(right.len()) {
                expected.push(format!("{}{}", left[place.min(left.len() - 1)], right[place.min(right.len() - 1)]));
            }
        }
        let found = evaluated(source, serde_json::json!({ "l": left, "r": right }));
        prop_assert_eq!(found, Value::texts(expected.into_iter().map(Into::into).collect()));
    }

    #[test]
    fn sorting_sorts_and_keeps_every_element(texts in prop::collection::vec("[a-cA-C]{0,3}", 1..12)) {
        let json = serde_json::json!({ "l": texts });
        let mut expected = texts;
        // Without regard to case first; then small letters before capital ones.
        expected.sort_by_key(|text| (text.to_lowercase(), std::cmp::Reverse(text.clone())));
        let plain = evaluated("@Sort(l)", json.clone());
        prop_assert_eq!(&plain, &Value::texts(expected.iter().map(Into::into).collect()));
        prop_assert_eq!(&evaluated("@Sort(l; [CUSTOMSORT]; $A > $B)", json.clone()), &plain);
        expected.reverse();
        let descending = evaluated("@Sort(l; [DESCENDING])", json.clone());
        prop_assert_eq!(&descending, &Value::texts(expected.iter().map(Into::into).collect()));
        // Whatever the expression answers, no element is lost.
        let senseless = evaluated("@Sort(@Sort(l; [CUSTOMSORT]; 1))", json);
        prop_assert_eq!(&senseless, &plain);
    }
}
