//! Sort keys against CouchDB's documented order and against a comparison written out by its rules.

use std::cmp::Ordering;

use icu_collator::options::CollatorOptions;
use icu_collator::{Collator, CollatorBorrowed, CollatorPreferences};
use proptest::prelude::*;
use scrinium_document::collation::{self, sort_key, value_of_key};
use serde_json::{Value, json};

fn collator() -> CollatorBorrowed<'static> {
    Collator::try_new(CollatorPreferences::default(), CollatorOptions::default()).unwrap()
}

/// The list in CouchDB's documentation of view collation, in its order.
#[test]
fn couchdb_documented_order() {
    let ordered = json!([
        null, false, true,
        1, 2, 3.0, 4,
        "a", "A", "aa", "b", "B", "ba", "bb",
        ["a"], ["b"], ["b", "c"], ["b", "c", "a"], ["b", "d"], ["b", "d", "e"],
        {"a": 1}, {"a": 2}, {"b": 1}, {"b": 2}, {"b": 2, "a": 1}, {"b": 2, "c": 2}
    ]);
    let keys: Vec<Vec<u8>> = ordered.as_array().unwrap().iter().map(sort_key).collect();
    for (at, pair) in keys.windows(2).enumerate() {
        assert!(pair[0] < pair[1], "{} before {}", ordered[at], ordered[at + 1]);
    }
}

/// The printable ASCII characters in the order that CouchDB's documentation gives them.
#[test]
fn couchdb_documented_ascii_order() {
    let order = "` ^ _ - , ; : ! ? . ' \" ( ) [ ] { } @ * / \\ & # % + < = > | ~ $ 0 1 2 3 4 5 6 7 8 9 \
                 a A b B c C d D e E f F g G h H i I j J k K l L m M n N o O p P q Q r R s S t T u U v V w W x X y Y z Z";
    // The documentation's list is of ICU 4; since CLDR 1.9 punctuation stands in the order of the root collation, which
    // CouchDB 3 takes from the ICU it is linked with.
    let of_root = "_ - , ; : ! ? . ' \" ( ) [ ] { } @ * / \\ & # % ` ^ + < = > | ~ $ 0 1 2 3 4 5 6 7 8 9 \
                   a A b B c C d D e E f F g G h H i I j J k K l L m M n N o O p P q Q r R s S t T u U v V w W x X y Y z Z";
    let sorted = |list: &str| {
        let mut characters: Vec<&str> = list.split_whitespace().collect();
        characters.sort_by_key(|character| sort_key(&json!(character)));
        characters.join(" ")
    };
    assert_eq!(sorted(order), of_root.split_whitespace().collect::<Vec<_>>().join(" "));
}

#[test]
fn numbers_sort_by_value_however_written() {
    let ordered = [
        "-1e308",
        "-9223372036854775808",
        "-9007199254740993",
        "-9007199254740992",
        "-1.5",
        "-1",
        "-1e-300",
        "0",
        "1e-300",
        "0.1",
        "1",
        "9007199254740991",
        "9007199254740992",
        "9007199254740993",
        "9007199254740994",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551614",
        "18446744073709551615",
        "1e20",
        "1e308",
    ];
    let key = |text: &str| sort_key(&serde_json::from_str(text).unwrap());
    for pair in ordered.windows(2) {
        assert!(key(pair[0]) < key(pair[1]), "{} before {}", pair[0], pair[1]);
    }
    for (left, right) in
        [("1", "1.0"), ("0", "-0.0"), ("100", "1e2"), ("9007199254740992", "9007199254740992.0")]
    {
        assert_eq!(key(left), key(right));
    }
    let mut not_a_number = Vec::new();
    collation::write_number_key(&mut not_a_number, f64::NAN);
    let mut infinite = Vec::new();
    collation::write_number_key(&mut infinite, f64::INFINITY);
    assert!(key("1e308") < infinite && infinite < not_a_number && not_a_number < sort_key(&json!("")));
}

fn value() -> impl Strategy<Value = Value> {
    let text =
        prop_oneof!["[ -~]{0,8}", "[a-cA-C]{0,3}", "[a-déäßÅåñ̈\u{0}\u{ad}一二ｶあ-]{0,6}", any::<String>(),];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ((1u64 << 53) - 3..(1u64 << 53) + 6).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn class(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(false) => 1,
        Value::Bool(true) => 2,
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    }
}

fn exact(value: &Value) -> (f64, i128) {
    match value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from)) {
        Some(integer) => (integer as f64, integer - integer as f64 as i128),
        None => (value.as_f64().unwrap(), 0),
    }
}

/// CouchDB's rules, one by one.
fn compare(left: &Value, right: &Value) -> Ordering {
    class(left).cmp(&class(right)).then_with(|| match (left, right) {
        (Value::Number(_), Value::Number(_)) => exact(left).partial_cmp(&exact(right)).unwrap(),
        (Value::String(left), Value::String(right)) => collator().compare(left, right),
        (Value::Array(left), Value::Array(right)) => {
            let unequal =
                left.iter().zip(right).map(|(left, right)| compare(left, right)).find(|order| order.is_ne());
            unequal.unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let unequal = left.iter().zip(right).map(|(left, right)| {
                collator().compare(left.0, right.0).then_with(|| compare(left.1, right.1))
            });
            unequal.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        _ => Ordering::Equal,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn keys_order_as_the_rules_do(left in value(), right in value()) {
        let (left_key, right_key) = (sort_key(&left), sort_key(&right));
        prop_assert_eq!(left_key.cmp(&right_key), compare(&left, &right), "{} {}", left, right);
        if left_key != right_key {
            prop_assert!(!left_key.starts_with(&right_key) && !right_key.starts_with(&left_key));
        }
    }

    #[test]
    fn joined_and_inverted_components_sort_one_after_the_other(
        left in (value(), value()), right in (value(), value()), first_down: bool, second_down: bool,
    ) {
        let key = |pair: &(Value, Value)| {
            let mut key = sort_key(&pair.0);
            if first_down { collation::descending(&mut key); }
            let from = key.len();
            collation::write_sort_key(&mut key, &pair.1);
            if second_down { collation::descending(&mut key[from..]); }
            key
        };
        let turn = |order: Ordering, down: bool| if down { order.reverse() } else { order };
        let expected = turn(compare(&left.0, &right.0), first_down)
            .then(turn(compare(&left.1, &right.1), second_down));
        prop_assert_eq!(key(&left).cmp(&key(&right)), expected);
    }
}

/// ASCII text takes a shorter way to the very same key.
#[test]
fn ascii_keys_are_the_collators() {
    let collator = collator();
    let check = |text: &str| {
        let mut theirs = vec![6];
        let Ok(()) = collator.write_sort_key_to(text, &mut theirs);
        theirs.push(0);
        assert_eq!(sort_key(&json!(text)), theirs, "{text:?}");
    };
    for first in 0..128u8 {
        for second in 0..128u8 {
            check(&format!("{}{}", char::from(first), char::from(second)));
            check(&format!("a{}{}B", char::from(first), char::from(second)));
        }
    }
    for length in 0..400 {
        check(&"a".repeat(length));
        check(&format!("{}A", "b".repeat(length)));
        check(&format!("{}A{}", "b".repeat(length), "-".repeat(length / 2)));
    }
}

proptest! {
    #[test]
    fn ascii_texts_have_the_collators_keys(text in "[\\x00-\\x7f]{0,200}") {
        let mut theirs = vec![6];
        let Ok(()) = collator().write_sort_key_to(&text, &mut theirs);
        theirs.push(0);
        prop_assert_eq!(sort_key(&json!(text)), theirs);
    }
}

proptest! {
    /// A key tells its value, or says that it cannot; it never tells another printable text or number.
    #[test]
    fn scalars_can_be_read_back_from_their_keys(text in "[ -~\\t\n]{0,300}", integer: i64, double: f64) {
        prop_assert_eq!(value_of_key(&sort_key(&json!(text))), Some(json!(text)));
        let small = integer >> 12;
        prop_assert_eq!(value_of_key(&sort_key(&json!(small))), Some(json!(small)));
        let read = value_of_key(&sort_key(&json!(double))).and_then(|value| value.as_f64());
        if double.is_finite() && double.abs() < 9e15 {
            prop_assert_eq!(read, Some(double));
        }
    }

    /// Whatever is not a key is refused or read as something, without harm.
    #[test]
    fn any_bytes_can_be_tried_as_a_key(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let framed = [&[6][..], &bytes, &[0]].concat();
        drop((value_of_key(&bytes), value_of_key(&framed)));
    }
}

#[test]
fn nesting_does_not_overflow_the_stack() {
    let mut value = Value::Null;
    for _ in 0..5_000 {
        value = Value::Array(vec![value]);
    }
    assert_eq!(sort_key(&value).len(), 10_001);
}

/// The stored form. A change here must come with a new `COLLATION_VERSION`.
#[test]
fn golden_bytes() {
    let hex = |value: Value| sort_key(&value).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(json!(null)), "02");
    assert_eq!(hex(json!([false, true])), "07030400");
    assert_eq!(hex(json!(0)), "058000000000000000");
    assert_eq!(hex(json!(-1)), "05400fffffffffffff");
    assert_eq!(hex(json!(1.5)), "05bff8000000000000");
    assert_eq!(hex(json!(9007199254740993u64)), "05c3400000000000008001");
    assert_eq!(hex(json!("")), "06010100");
    assert_eq!(hex(json!("a")), "062b0105010500");
    let of_object = "0806374d474f4f33014396700601dcc3e0d305000705bff00000000000000000";
    assert_eq!(hex(json!({"Größe": [1]})), of_object);
}
