//! Keys in which case or accents do not count, against folded texts and against the collator's own comparison.

use icu_collator::options::{CaseLevel, CollatorOptions, Strength};
use icu_collator::{Collator, CollatorBorrowed, CollatorPreferences};
use proptest::prelude::*;
use scrinium_document::collation::{
    Sensitivity, descending, sort_key, value_of_key, write_sort_key, write_sort_key_with,
};
use serde_json::{Value, json};

fn key(value: &Value, sensitivity: Sensitivity) -> Vec<u8> {
    let mut key = Vec::new();
    write_sort_key_with(&mut key, value, sensitivity);
    key
}

fn all() -> [Sensitivity; 4] {
    [(true, true), (true, false), (false, true), (false, false)]
        .map(|(case, accent)| Sensitivity { case, accent })
}

fn collator(sensitivity: Sensitivity) -> CollatorBorrowed<'static> {
    let mut options = CollatorOptions::default();
    options.strength = Some(match (sensitivity.case, sensitivity.accent) {
        (true, true) => Strength::Tertiary,
        (false, true) => Strength::Secondary,
        (_, false) => Strength::Primary,
    });
    if sensitivity.case && !sensitivity.accent {
        options.case_level = Some(CaseLevel::On);
    }
    Collator::try_new(CollatorPreferences::default(), options).unwrap()
}

/// The text without what does not count.
fn folded(text: &str, sensitivity: Sensitivity) -> String {
    let without_accent = |letter: char| match letter {
        'ä' | 'å' | 'á' => 'a',
        'Ä' | 'Å' | 'Á' => 'A',
        'é' | 'è' => 'e',
        'É' | 'È' => 'E',
        'ö' | 'ô' => 'o',
        'Ö' | 'Ô' => 'O',
        other => other,
    };
    let text: String = if sensitivity.accent {
        text.to_owned()
    } else {
        text.chars().filter(|letter| *letter != '\u{301}').map(without_accent).collect()
    };
    if sensitivity.case { text } else { text.to_lowercase() }
}

fn folded_value(value: &Value, sensitivity: Sensitivity) -> Value {
    match value {
        Value::String(text) => Value::from(folded(text, sensitivity)),
        Value::Array(elements) => elements.iter().map(|element| folded_value(element, sensitivity)).collect(),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, value)| (folded(name, sensitivity), folded_value(value, sensitivity)))
                .collect(),
        ),
        other => other.clone(),
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-cA-CäÄåÅáÁéÉèÈöÖôÔ\u{301}]{0,4}", "[ -~]{0,6}", "[a-bA-B]{0,120}"]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3i64..3).prop_map(Value::from),
        text().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            (text(), inner).prop_map(|member| Value::Object([member].into_iter().collect())),
        ]
    })
}

#[test]
fn names_differ_in_what_counts() {
    let same = |left: &str, right: &str| {
        all().map(|sensitivity| key(&json!(left), sensitivity) == key(&json!(right), sensitivity))
    };
    assert_eq!(same("Ada", "ada"), [false, false, true, true]);
    assert_eq!(same("Zoë", "Zoe"), [false, true, false, true]);
    assert_eq!(same("ZOË", "zoe"), [false, false, false, true]);
    assert_eq!(same("Straße", "STRASSE"), [false, false, false, true]);
    assert_eq!(same("résumé", "re\u{301}sume\u{301}"), [true; 4]);
    assert_eq!(same("a", "b"), [false; 4]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// As the full keys of values from which what does not count was taken out.
    #[test]
    fn keys_order_as_those_of_folded_values(left in value(), right in value()) {
        for sensitivity in all() {
            let keys = (key(&left, sensitivity), key(&right, sensitivity));
            let model = |value: &Value| sort_key(&folded_value(value, sensitivity));
            prop_assert_eq!(keys.0.cmp(&keys.1), model(&left).cmp(&model(&right)), "{:?}", sensitivity);
        }
    }

    /// Whatever the script: in the collator's order, each ending itself, with no zero where it begins.
    #[test]
    fn keys_order_as_the_collator_compares(
        left in prop_oneof![any::<String>(), "[a-déäßÅåñ̈\u{0}\u{ad}一二ｶあアǆǅǄ-]{0,6}"],
        right in prop_oneof![any::<String>(), "[a-déäßÅåñ̈\u{0}\u{ad}一二ｶあアǆǅǄ-]{0,6}"],
        down: bool,
    ) {
        for sensitivity in all() {
            let order = collator(sensitivity).compare(&left, &right);
            let key = |text: &str| {
                let mut key = key(&json!(text), sensitivity);
                if down {
                    descending(&mut key);
                }
                key
            };
            let (left_key, right_key) = (key(&left), key(&right));
            let expected = if down { order.reverse() } else { order };
            prop_assert_eq!(left_key.cmp(&right_key), expected, "{:?}", sensitivity);
            if left_key != right_key {
                prop_assert!(!left_key.starts_with(&right_key) && !right_key.starts_with(&left_key));
            }
            prop_assert_ne!(left_key.first(), Some(&0));
            prop_assert_eq!(left_key.iter().filter(|byte| **byte == if down { 255 } else { 0 }).count(), 1);
        }
    }

    /// ASCII text takes a shorter way to the very same key.
    #[test]
    fn keys_of_ascii_are_the_collators(text in "[\\x00-\\x7f]{0,200}") {
        for sensitivity in all() {
            let mut theirs = vec![6];
            let Ok(()) = collator(sensitivity).write_sort_key_to(&text, &mut theirs);
            theirs.push(0);
            prop_assert_eq!(key(&json!(text), sensitivity), theirs, "{:?}", sensitivity);
        }
    }

    /// A key that leaves something out tells no text, and no other number than its own.
    #[test]
    fn only_full_keys_tell_texts(text in text(), number: i32) {
        for sensitivity in all().into_iter().skip(1) {
            prop_assert_eq!(value_of_key(&key(&json!(text), sensitivity)), None);
            prop_assert_eq!(value_of_key(&key(&json!(number), sensitivity)), Some(json!(number)));
        }
        let mut full = Vec::new();
        write_sort_key(&mut full, &json!(text));
        prop_assert_eq!(full, key(&json!(text), Sensitivity::default()));
    }
}
