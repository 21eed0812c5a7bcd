//! Whatever is sent is answered or refused, within bounds.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::select;
use scrinium_mango::{
    Bookmark, IndexDefinition, MAX_CONDITIONS, MAX_FIELDS, MAX_NESTING, MAX_PATTERNS, MAX_RANGES, MangoError,
    Query, Reading, Selector, explain, plan,
};
use serde_json::{Value, json};

/// Runs where values nested ever so deep can be dropped.
fn with_room(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 20).spawn(run).unwrap();
    thread.join().unwrap();
}

fn nested(levels: usize, innermost: Value, around: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(innermost, |inner, _| around(inner))
}

/// `json!` would copy what is within.
fn object(name: &str, inner: Value) -> Value {
    Value::Object([(name.to_owned(), inner)].into_iter().collect())
}

fn array(inner: Value) -> Value {
    Value::Array(vec![inner])
}

#[test]
fn deep_nesting_is_refused_before_anything_goes_into_it() {
    with_room(|| {
        let refused = MangoError::TooDeep { limit: MAX_NESTING };
        for around in [
            array,
            |inner| object("$not", inner),
            |inner| object("$and", array(inner)),
            |inner| object("a", inner),
            |inner| object("a", object("$elemMatch", inner)),
        ] {
            let deep = nested(10_000, json!(1), around);
            assert_eq!(Selector::parse(&deep).unwrap_err(), refused);
            assert_eq!(Query::parse(&object("selector", deep.clone())).unwrap_err(), refused);
            assert_eq!(IndexDefinition::parse(&object("index", deep.clone())).unwrap_err(), refused);
            assert_eq!(IndexDefinition::from_view("d", "n", &object("map", deep)).unwrap_err(), refused);
        }
    });
}

/// On the stack that tests and workers have.
#[test]
fn the_deepest_nesting_that_is_taken_is_evaluated() {
    let matches = |selector: &Value, document: &Value| {
        let selector = Selector::parse(selector).unwrap();
        assert_eq!(
            Selector::parse(&selector.to_json()).unwrap().matches(document),
            selector.matches(document)
        );
        selector.matches(document)
    };
    let nots = nested(MAX_NESTING - 1, json!({ "a": 1 }), |inner| object("$not", inner));
    assert_ne!(matches(&nots, &json!({ "a": 1 })), matches(&nots, &json!({ "a": 2 })));
    let levels = MAX_NESTING / 2 - 1;
    let ands = nested(levels, json!({ "b": 1 }), |inner| json!({ "$and": [{ "a": 1 }, inner] }));
    assert!(matches(&ands, &json!({ "a": 1, "b": 1 })));
    assert!(!matches(&ands, &json!({ "a": 1, "b": 2 })));
    // The normal form names the element, which is a level more.
    let elements = nested(MAX_NESTING - 3, json!({ "$eq": 1 }), |inner| object("$elemMatch", inner));
    let Ok(elements) = Selector::parse(&object("a", elements)) else {
        panic!("{MAX_NESTING} levels are taken")
    };
    assert!(elements.matches(&object("a", nested(MAX_NESTING - 3, json!(1), array))));
    assert!(!elements.matches(&object("a", nested(MAX_NESTING - 4, json!(1), array))));
}

#[test]
fn conditions_patterns_and_fields_are_counted() {
    let conditions =
        |count: usize| json!({ "$or": (0..count).map(|number| json!({ "a": number })).collect::<Vec<_>>() });
    assert!(Selector::parse(&conditions(MAX_CONDITIONS)).is_ok());
    assert!(matches!(Selector::parse(&conditions(MAX_CONDITIONS + 1)), Err(MangoError::TooMany { .. })));
    let patterns = |count: usize| {
        let pattern = |number: usize| json!({ "a": { "$regex": format!("x{number}") } });
        json!({ "$or": (0..count).map(pattern).collect::<Vec<_>>() })
    };
    assert!(Selector::parse(&patterns(MAX_PATTERNS)).is_ok());
    assert!(matches!(Selector::parse(&patterns(MAX_PATTERNS + 1)), Err(MangoError::TooMany { .. })));
    let names = |count: usize| (0..count).map(|number| json!(format!("f{number}"))).collect::<Value>();
    for member in ["fields", "sort"] {
        assert!(Query::parse(&json!({ "selector": {}, member: names(MAX_FIELDS) })).is_ok());
        let refused = Query::parse(&json!({ "selector": {}, member: names(MAX_FIELDS + 1) }));
        assert!(matches!(refused, Err(MangoError::TooMany { .. })));
    }
}

#[test]
fn a_large_in_is_evaluated_and_read_within_bounds() {
    let values: Vec<Value> = (0..200_000).map(|number| json!(number * 2)).collect();
    let body = json!({ "selector": { "a": { "$in": values }, "b": { "$in": values[..100] }, "_id": { "$in": ["x"] } } });
    let query = Query::parse(&body).unwrap();
    let document = |a: Value| json!({ "_id": "x", "a": a, "b": 2 });
    assert!(query.selector.matches(&document(json!(399_998))));
    assert!(!query.selector.matches(&document(json!(399_997))));
    assert!(query.selector.matches(&document((0..100_000).map(|number| json!(number)).collect())));
    let index =
        |fields: Value| Arc::new(IndexDefinition::parse(&json!({ "index": { "fields": fields } })).unwrap());
    for (fields, all) in [(json!(["a", "b"]), 1), (json!(["b", "a"]), 101), (json!(["b", "_id"]), 101)] {
        let plan = plan(&query, &[index(fields.clone())]).unwrap();
        let Reading::Index { ranges, .. } = plan.reading else { panic!() };
        assert!(ranges.len() <= MAX_RANGES);
        assert_eq!(ranges.len(), all, "{fields}");
    }
    let ids: Vec<String> = (0..2000).map(|number| format!("x{number:04}")).collect();
    let query = Query::parse(&json!({ "selector": { "_id": { "$in": ids } } })).unwrap();
    let plan = plan(&query, &[]).unwrap();
    let Reading::Documents { ranges } = &plan.reading else { panic!() };
    assert!(ranges.len() == 1 && ranges[0].contains("x1999") && !ranges[0].contains("y"));
    assert!(
        plan.residual.matches(&json!({ "_id": "x1000" })) && !plan.residual.matches(&json!({ "_id": "x10" }))
    );

    let all = json!({ "$all": (0..100_000).map(|number| json!(number)).collect::<Vec<_>>() });
    let selector = Selector::parse(&json!({ "a": all })).unwrap();
    assert!(selector.matches(&document((0..100_000).rev().map(|number| json!(number)).collect())));
}

#[test]
fn patterns_are_searched_in_linear_time_or_refused() {
    let long = json!({ "a": "a".repeat(100_000) });
    for pattern in ["(a+)+$", "(a|aa)+b", "(.*)*x", "^(a?){50}a{50}$", "(?i)(é|a)+b", "\\p{Greek}+a*b"] {
        let selector = Selector::parse(&json!({ "a": { "$regex": pattern } })).unwrap();
        assert_eq!(selector.matches(&long), pattern == "(a+)+$", "{pattern}");
    }
    let open = "(".repeat(100_000);
    for pattern in [
        "(",
        "[",
        "a{2,1}",
        "*",
        "\\",
        "(?<=a)b",
        "(?!a)",
        "(a)\\1",
        "(?>a)",
        "(?1)",
        "(a{1000}){1000}",
        "\\p{No}}{",
        &open,
    ] {
        let refused = Selector::parse(&json!({ "a": { "$regex": pattern } }));
        let error = refused.expect_err(pattern);
        assert_eq!(error.error(), "bad_arg");
        assert!(error.reason().len() < 1000, "{error}");
    }
}

/// JSON in which the words of queries are where they belong and where they do not.
fn anything() -> impl Strategy<Value = Value> {
    let words = [
        "a",
        "a.b",
        "a..b",
        "",
        "_id",
        "$and",
        "$or",
        "$nor",
        "$not",
        "$in",
        "$nin",
        "$all",
        "$elemMatch",
        "$allMatch",
        "$keyMapMatch",
        "$eq",
        "$ne",
        "$lt",
        "$gt",
        "$exists",
        "$type",
        "$mod",
        "$regex",
        "$beginsWith",
        "$size",
        "$text",
        "$x",
        "selector",
        "fields",
        "sort",
        "limit",
        "use_index",
        "index",
        "map",
        "options",
        "def",
        "asc",
        "partial_filter_selector",
        "name",
        "ddoc",
        "views",
        "language",
        "query",
        "\\",
        ".",
        "_design/d",
    ];
    let word = move || select(words.to_vec()).prop_map(str::to_owned);
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3..3_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_is_sent_panics(sent in anything(), document in anything(), text in ".*") {
        let index = IndexDefinition::parse(&json!({ "index": sent })).or_else(|_| IndexDefinition::parse(&sent));
        let index = index.or_else(|_| IndexDefinition::from_view("d", "n", &sent));
        let indexes: Vec<_> = index.into_iter().map(Arc::new).collect();
        for index in &indexes {
            let _ = index.keys(&document);
            let _ = index.put_into_design(Some(&document));
        }
        let _ = IndexDefinition::of_design(&document);
        let _ = IndexDefinition::remove_from_design(&document, &text);
        for body in [json!({ "selector": sent }), json!({ "selector": {}, "sort": sent, "fields": sent }), sent] {
            let Ok(query) = Query::parse(&body) else { continue };
            let _ = query.selector.matches(&document);
            let _ = query.fields.project(&document);
            let _ = explain("d", &query, &indexes);
            if let Ok(plan) = plan(&query, &indexes) {
                let _ = plan.residual.matches(&document);
            }
        }
        let _ = Bookmark::decode(&text);
        let _ = Selector::parse(&json!({ "a": { "$regex": text } }));
    }
}
