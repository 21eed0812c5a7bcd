//! Reduce functions give what CouchDB gives, however rows are split.

use std::cell::RefCell;

use proptest::prelude::*;
use scrinium_javascript::{Limits, Pool, PoolOptions, ReduceEngine, Reducer, Row, ScriptError};
use serde_json::{Value, json};

fn engine(source: &str) -> ReduceEngine {
    ReduceEngine::new(&Pool::default(), [1; 16], Reducer::parse(source).unwrap())
}

/// Whatever the reduction has of what went into it.
fn unlimited(source: &str) -> ReduceEngine {
    let limits = Limits { reduce_limit: false, ..Limits::default() };
    let pool = Pool::new(PoolOptions { limits, ..PoolOptions::default() });
    ReduceEngine::new(&pool, [1; 16], Reducer::parse(source).unwrap())
}

fn check_reduce(source: &str) -> Result<(), ScriptError> {
    ReduceEngine::new(&Pool::default(), [1; 16], Reducer::parse(source)?).check()
}

fn rows(values: &[String]) -> Vec<Row<'_>> {
    values.iter().map(|value| Row { key_json: "null", id: "a", value_json: value, order: b"" }).collect()
}

/// What a reducer shows of values that are all in one reduction.
fn reduced(source: &str, values: &[&str]) -> Result<Value, ScriptError> {
    let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
    let mut engine = engine(source);
    let state = engine.reduce(&rows(&values))?;
    Ok(serde_json::from_str(&engine.finish(&state)?).unwrap())
}

/// The error that `_sum` gives as its value.
fn sum_error(values: &[&str]) -> Value {
    let value = reduced("_sum", values).unwrap();
    assert_eq!(value["error"], "builtin_reduce_error", "{values:?} gave {value}");
    assert!(
        value["reason"]
            .as_str()
            .unwrap()
            .starts_with("The _sum function requires that map values be numbers")
    );
    value["caused_by"].clone()
}

#[test]
fn sources_name_what_reduces() {
    assert_eq!(Reducer::parse("_sum"), Ok(Reducer::Sum));
    assert_eq!(Reducer::parse("_count\n"), Ok(Reducer::Count));
    assert_eq!(Reducer::parse("_stats"), Ok(Reducer::Stats));
    assert_eq!(Reducer::parse("_approx_count_distinct"), Ok(Reducer::ApproximateCountDistinct));
    assert_eq!(Reducer::parse("(k, v) => 1"), Ok(Reducer::Function("(k, v) => 1".to_owned())));
    let unknown = Reducer::parse("_median").unwrap_err();
    assert_eq!(unknown.to_string(), "`_median` is not a supported reduce function.");
    assert_eq!(unknown.error(), "invalid_design_doc");
    assert_eq!(check_reduce("function (keys, values) { return sum(values); }"), Ok(()));
    assert!(matches!(check_reduce("function ("), Err(ScriptError::Syntax { line: 1, .. })));
    assert_eq!(check_reduce("_median"), Err(unknown));
}

#[test]
fn sums_are_those_of_couchdb() {
    let sum = |values: &[&str]| reduced("_sum", values).unwrap();
    assert_eq!(sum(&[]), json!(0));
    assert_eq!(sum(&["1", "2", "-4"]), json!(-1));
    assert_eq!(sum(&["1", "2.5"]), json!(3.5));
    assert_eq!(sum(&["[3, 2, 4]", "[0, 3, 3]"]), json!([3, 5, 7]));
    assert_eq!(sum(&["1", "[1, 4, 6]"]), json!([2, 4, 6]));
    assert_eq!(sum(&["[1, 4, 6]", "1", "[]", "[0, 0, 0, 9]"]), json!([2, 4, 6, 9]));
    let (left, right) =
        (r#"{"a": 1, "b": [1, 2], "c": {"d": 3}, "g": 1}"#, r#"{"a":2,"b":3,"c":{"e":5},"f":1,"g":1}"#);
    let both = json!({"a": 3, "b": [4, 2], "c": {"d": 3, "e": 5}, "f": 1, "g": 2});
    assert_eq!(sum(&[left, right]), both);
    assert_eq!(sum(&[right, left]), both);
    // A single object is not looked into, and what one list has more is not either.
    assert_eq!(sum(&[r#"{"a": "text"}"#]), json!({"a": "text"}));
    assert_eq!(sum(&["[1]", r#"[2, "text"]"#]), json!([3, "text"]));
    let mut engine = engine("_sum");
    let large = ["9007199254740993".to_owned(), "9007199254740993".to_owned()];
    assert_eq!(engine.reduce(&rows(&large)).as_deref(), Ok("18014398509481986"));
    assert_eq!(engine.rereduce(&["2".to_owned(), "1e3".to_owned()]).as_deref(), Ok("1002.0"));
}

#[test]
fn what_cannot_be_summed_is_told_as_in_couchdb() {
    assert_eq!(sum_error(&["1", r#""text""#]), json!("text"));
    assert_eq!(sum_error(&["null"]), json!(null));
    assert_eq!(sum_error(&["1", "true", r#""not this""#]), json!(true));
    assert_eq!(sum_error(&["[1, 2]", r#"["a", 1]"#]), json!([1, 2]));
    assert_eq!(sum_error(&[r#"{"a": 1}"#, "5"]), json!(5));
    assert_eq!(sum_error(&["5", r#"{"a": 1}"#]), json!({"a": 1}));
    assert_eq!(sum_error(&[r#"{"a": 1}"#, r#"{"a": "x"}"#]), json!("x"));
    assert_eq!(sum_error(&[r#"{"a": {"b": 1}}"#, r#"{"a": 1}"#]), json!(1));
    // The error of a part is that of the whole.
    let mut engine = engine("_sum");
    let part = engine.reduce(&rows(&["null".to_owned()])).unwrap();
    for states in [["0".to_owned(), part.clone()], [part.clone(), "[1]".to_owned()]] {
        assert_eq!(engine.rereduce(&states), Ok(part.clone()));
    }
    assert!(matches!(reduced("_sum", &["1", "[1"]), Err(ScriptError::Json { .. })));
}

#[test]
fn sums_that_do_not_shrink_are_refused() {
    let object: String = (0..500).map(|number| format!("\"member-{number}\":1,")).collect();
    let object = format!("{{{}\"last\":1}}", object);
    let refused = reduced("_sum", &[&object]).unwrap();
    assert_eq!(refused["error"], "builtin_reduce_error");
    assert!(
        refused["reason"]
            .as_str()
            .unwrap()
            .starts_with("Reduce output must shrink more rapidly: input size: ")
    );
    assert_eq!(reduced("_sum", &[&object, &object, &object]).unwrap()["last"], 3);
    let mut unlimited = unlimited("_sum");
    let state = unlimited.reduce(&rows(std::slice::from_ref(&object))).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&state).unwrap()["last"], 1);
}

#[test]
fn statistics_are_those_of_couchdb() {
    let stats = |values: &[&str]| as_doubles(&reduced("_stats", values).unwrap());
    let of = |[sum, count, min, max, sumsqr]: [f64; 5]| json!({"sum": sum, "count": count, "min": min, "max": max, "sumsqr": sumsqr});
    assert_eq!(stats(&[]), of([0.0; 5]));
    assert_eq!(stats(&["2"]), of([2.0, 1.0, 2.0, 2.0, 4.0]));
    assert_eq!(stats(&["1", "10", "-2.5"]), of([8.5, 3.0, -2.5, 10.0, 107.25]));
    assert_eq!(
        stats(&["[2, 3, 5]", "[7, 11, 13]"]),
        json!([
            of([9.0, 2.0, 2.0, 7.0, 53.0]),
            of([14.0, 2.0, 3.0, 11.0, 130.0]),
            of([18.0, 2.0, 5.0, 13.0, 194.0])
        ])
    );
    let packed = r#"{"sum": 10, "count": 4, "min": 1, "max": 4, "sumsqr": 30, "note": "x"}"#;
    assert_eq!(stats(&[packed]), of([10.0, 4.0, 1.0, 4.0, 30.0]));
    assert_eq!(stats(&["0", packed, "9"]), of([19.0, 6.0, 0.0, 9.0, 111.0]));
    // Squares of milliseconds do not fit into 64 bits; they are exact.
    let state = engine("_stats").reduce(&rows(&["1795219200001".to_owned()])).unwrap();
    assert!(state.ends_with(&format!("\"sumsqr\":{}}}", 1_795_219_200_001_i128.pow(2))), "{state}");
    for (values, reason) in [
        (
            &["1", "\"x\""][..],
            "The _stats function requires that map values be numbers or arrays of numbers, not '\"x\"'",
        ),
        (&["null"], "non-numeric _stats input: null"),
        (
            &["[1]", "[1, 2]"],
            "The _stats function requires that map values be numbers or arrays of numbers, not '[1,2]'",
        ),
        (
            &["[1]", "1"],
            "The _stats function requires that map values be numbers or arrays of numbers, not '1'",
        ),
        (&[r#"{"sum": 1}"#], "user _stats input missing required field count ({\"sum\":1})"),
        (&[r#"{"sum": "x"}"#], "non-numeric _stats input received for sum: \"x\""),
    ] {
        let error = reduced("_stats", values).unwrap_err();
        assert_eq!((error.error(), error.to_string().as_str()), ("invalid_value", reason));
    }
}

/// Reduces the parts and then their states, two by two, as a tree of an index does.
fn in_parts(engine: &mut ReduceEngine, values: &[String], part_rows: usize) -> String {
    let parts: Vec<_> = values.chunks(part_rows).map(|part| engine.reduce(&rows(part)).unwrap()).collect();
    let mut states = if parts.is_empty() { vec![engine.reduce(&[]).unwrap()] } else { parts };
    while states.len() > 1 {
        states = states.chunks(2).map(|pair| engine.rereduce(pair).unwrap()).collect();
    }
    engine.finish(&states[0]).unwrap()
}

/// Numbers that add without rounding.
fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-1_000_000_i64..1_000_000).prop_map(Value::from),
        (-1_000_000_i32..1_000_000).prop_map(|number| json!(f64::from(number) / 8.0)),
    ]
}

fn members() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-d]", number(), 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

#[test]
fn parts_make_the_whole() {
    let kinds = prop_oneof![
        prop::collection::vec(number(), 0..60),
        prop::collection::vec(prop::collection::vec(number(), 3).prop_map(Value::from), 1..60),
    ];
    let objects = prop::collection::vec(
        (members(), members()).prop_map(|(outer, inner)| json!({"n": outer, "m": {"i": inner}})),
        1..40,
    );
    let lists = prop::collection::vec(prop::collection::vec(number(), 0..5).prop_map(Value::from), 1..40);
    let own = "function (keys, values, rereduce) {
        if (rereduce !== (keys === null)) throw 'keys';
        return { n: rereduce ? sum(values.map(v => v.n)) : keys.length };
    }";
    let mut engine_of_own = Some(engine(own));
    let mut run = |values: &[Value], part_rows: usize, sources: &[&str]| -> Result<(), TestCaseError> {
        let texts: Vec<String> = values.iter().map(Value::to_string).collect();
        let parse = |json: String| serde_json::from_str::<Value>(&json).unwrap();
        for source in sources {
            let mut engine = engine(source);
            let whole = engine.reduce(&rows(&texts)).unwrap();
            let whole = parse(engine.finish(&whole).unwrap());
            let parts = parse(in_parts(&mut engine, &texts, part_rows));
            prop_assert_eq!(as_doubles(&whole), as_doubles(&parts), "{} in parts of {}", source, part_rows);
            if *source == "_count" {
                prop_assert_eq!(whole, json!(values.len()));
            }
        }
        let counted = parse(in_parts(engine_of_own.as_mut().unwrap(), &texts, part_rows));
        prop_assert_eq!(counted, json!({"n": values.len()}));
        Ok(())
    };
    let run = RefCell::new(&mut run);
    proptest!(ProptestConfig::with_cases(64), |(values in kinds, part_rows in 1_usize..9)| {
        run.borrow_mut()(&values, part_rows, &["_sum", "_count", "_stats"])?;
        // The independent sum.
        if values.iter().all(Value::is_number) {
            let sum: f64 = values.iter().map(|value| value.as_f64().unwrap()).sum();
            let texts: Vec<String> = values.iter().map(Value::to_string).collect();
            let state = engine("_stats").reduce(&rows(&texts)).unwrap();
            let stats: Value = serde_json::from_str(&state).unwrap();
            prop_assert_eq!(stats["sum"].as_f64(), Some(sum));
            let squares: f64 = values.iter().map(|value| value.as_f64().unwrap().powi(2)).sum();
            prop_assert_eq!(stats["sumsqr"].as_f64(), Some(squares));
        }
    });
    proptest!(ProptestConfig::with_cases(64), |(values in prop_oneof![objects, lists], part_rows in 1_usize..9)| {
        run.borrow_mut()(&values, part_rows, &["_sum", "_count"])?;
    });
}

/// Whole numbers as they come out of a sum of floats and integers.
fn as_doubles(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(list) => list.iter().map(as_doubles).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), as_doubles(value))).collect())
        }
        other => other.clone(),
    }
}

#[test]
fn distinct_keys_are_counted_within_bounds() {
    let mut engine = engine("_approx_count_distinct");
    let mut estimate = |keys: &[String]| -> f64 {
        let rows: Vec<_> =
            keys.iter().map(|key| Row { key_json: key, id: "a", value_json: "null", order: b"" }).collect();
        let whole = engine.reduce(&rows).unwrap();
        let mut states: Vec<String> =
            rows.chunks(1 + rows.len() / 7).map(|part| engine.reduce(part).unwrap()).collect();
        states.push(engine.reduce(rows.get(..rows.len() / 2).unwrap_or_default()).unwrap());
        assert_eq!(engine.rereduce(&states).as_ref(), Ok(&whole));
        engine.finish(&whole).unwrap().parse().unwrap()
    };
    assert_eq!(estimate(&[]), 0.0);
    for distinct in [1, 2, 5, 20, 100, 500, 2_000, 10_000, 100_000] {
        let keys: Vec<String> = (0..distinct).map(|number| format!("[\"key\",{number}]")).collect();
        let counted = estimate(&keys);
        // Four standard errors, or one key where there are few.
        let allowed = (f64::from(distinct) * 0.092).max(1.0);
        assert!((counted - f64::from(distinct)).abs() <= allowed, "{distinct} keys are counted as {counted}");
        let again: Vec<String> = keys.iter().chain(&keys).cloned().collect();
        assert_eq!(estimate(&again), counted);
    }
    for state in ["", "5", "\"0\"", "\"!!!\"", "null", "\"zzz", "{}"] {
        assert!(matches!(engine.finish(state), Err(ScriptError::Json { .. })), "{state}");
    }
    assert_eq!(engine.finish("\"zzzzzzzzz\"").map(|count| count.parse::<u64>().is_ok()), Ok(true));
}

#[test]
fn functions_reduce_as_in_couchdb() {
    let source = "function (keys, values, rereduce) {
        log(rereduce);
        if (rereduce) return { all: [].concat.apply([], values.map(v => v.all)) };
        return { all: keys.map((key, place) => [key, values[place]]) };
    }";
    let mut engine = engine(source);
    let row = |id, value_json| Row { key_json: r#"["k",1]"#, id, value_json, order: b"" };
    let state = engine.reduce(&[row("a\"ü", "1"), row("b", r#"{"x":null}"#)]).unwrap();
    assert_eq!(state, r#"{"all":[[[["k",1],"a\"ü"],1],[[["k",1],"b"],{"x":null}]]}"#);
    let both = engine.rereduce(&[state.clone(), r#"{"all":[]}"#.to_owned()]).unwrap();
    assert_eq!(engine.finish(&both), Ok(state));
    assert_eq!(engine.take_log(), ["false", "true"]);
    assert_eq!(reduced("() => undefined", &["1"]), Ok(json!(null)));
    assert_eq!(reduced("() => '\\ud800'", &["1"]), Ok(json!("\u{fffd}")));
    assert!(matches!(reduced("(k, v) => v", &["1", "x"]), Err(ScriptError::Thrown { .. })));
    let thrown = reduced("(k, v) => k.x.y", &["1"]).unwrap_err();
    assert_eq!(thrown.error(), "map_runtime_error");
    assert!(thrown.to_string().contains("line 1"), "{thrown}");
}

#[test]
fn functions_have_to_shrink_what_they_reduce() {
    let values: Vec<String> = (0..2_000).map(|number| number.to_string()).collect();
    let source = "(keys, values, again) => values";
    let error = engine(source).rereduce(&values).unwrap_err();
    assert_eq!(error.error(), "reduce_overflow_error");
    let reason = error.to_string();
    assert!(
        reason.starts_with("Reduce output must shrink more rapidly: Current output: '[0,1,2,"),
        "{reason}"
    );
    let mut unlimited = unlimited(source);
    assert_eq!(unlimited.rereduce(&values), Ok(format!("[{}]", values.join(","))));
    // What is small is let pass, however little it shrinks.
    assert_eq!(reduced(source, &["1"]), Ok(json!([1])));
}

#[test]
fn the_highest_and_lowest_values_are_kept_and_those_of_the_outermost_rows() {
    assert_eq!(Reducer::parse("_top_5"), Ok(Reducer::Top(5)));
    assert_eq!(Reducer::parse("_bottom_100\n"), Ok(Reducer::Bottom(100)));
    assert_eq!(Reducer::parse("_first"), Ok(Reducer::First));
    assert_eq!(Reducer::parse("_last"), Ok(Reducer::Last));
    for wrong in ["_top_", "_top_0", "_top_101", "_top_+5", "_top_5x", "_top", "_bottom_a"] {
        assert!(Reducer::parse(wrong).is_err(), "{wrong}");
    }
    let values = ["3", "1.5", "\"b\"", "null", "10", "\"a\"", "[1]", "3", "true", "{\"a\":1}", "[1,0]"];
    let rows: Vec<Row<'_>> =
        values.iter().map(|value| Row { key_json: "1", id: "a", value_json: value, order: b"" }).collect();
    for (source, expected) in [
        ("_top_3", "[{\"a\":1},[1,0],[1]]"),
        ("_bottom_4", "[null,true,1.5,3]"),
        ("_top_100", "[{\"a\":1},[1,0],[1],\"b\",\"a\",10,3,3,1.5,true,null]"),
    ] {
        let mut engine = engine(source);
        assert_eq!(engine.reduce(&rows).unwrap(), expected, "{source}");
        // However it is cut.
        for cut in 1..rows.len() {
            let states = [engine.reduce(&rows[..cut]).unwrap(), engine.reduce(&rows[cut..]).unwrap()];
            let state = engine.rereduce(&states).unwrap();
            assert_eq!(engine.finish(&state).unwrap(), expected, "{source} cut at {cut}");
        }
    }
    let rows: Vec<Row<'_>> = ["2", "0", "3", "1"]
        .iter()
        .map(|value| Row { key_json: "1", id: "a", value_json: value, order: value.as_bytes() })
        .collect();
    for (source, expected) in [("_first", "0"), ("_last", "3")] {
        let mut engine = engine(source);
        for cut in 1..rows.len() {
            let states = [engine.reduce(&rows[cut..]).unwrap(), engine.reduce(&rows[..cut]).unwrap()];
            let state = engine.rereduce(&states).unwrap();
            assert_eq!(engine.finish(&state).unwrap(), expected, "{source} cut at {cut}");
        }
    }
}
