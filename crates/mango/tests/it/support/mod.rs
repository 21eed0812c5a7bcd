//! Documents, selectors and indexes at random. Those of one case share a few values, so that they meet.

#![allow(dead_code, reason = "each test file uses some of this")]

use std::cmp::Ordering;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::BoxedStrategy;
use scrinium_document::collation::sort_key;
use scrinium_mango::{Direction, FieldPath, Projection, Query};
use serde_json::{Map, Value, json};

/// A value of any type.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let numbers = select(vec![
        json!(-1),
        json!(0),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(2),
        json!(9_007_199_254_740_993_u64),
        json!(9_007_199_254_740_992_u64),
    ]);
    let others = select(vec![
        json!(null),
        json!(false),
        json!(true),
        json!([]),
        json!([1]),
        json!([1, "a"]),
        json!([["a"]]),
        json!({}),
        json!({ "x": 1 }),
        json!({ "x": "a", "y": null }),
        json!({ "y": null, "x": "a" }),
    ]);
    prop_oneof![3 => numbers, 4 => text().prop_map(Value::from), 2 => others]
}

/// Texts that differ in case, marks, normal form or script; some begin with others.
const TEXTS: [&str; 37] = [
    "",
    "a",
    "A",
    "ab",
    "aB",
    "Ab",
    "abc",
    "a b",
    "a-b",
    "b",
    "B",
    "e",
    "é",
    "e\u{301}",
    "éa",
    "e\u{301}a",
    "z",
    "и",
    "й",
    "и\u{306}",
    "иа",
    "Иван",
    "เก",
    "เ",
    "l·a",
    "l",
    "\u{1}",
    "a\u{1}",
    "a\u{301}\u{316}",
    "a\u{301}",
    "中",
    "中文",
    "😀",
    "ß",
    "ss",
    "1",
    "2",
];

/// Texts that come together: the collation puts them elsewhere than their beginning.
const FAMILIES: [&[&str]; 6] = [
    &["и", "иа", "и\u{306}", "и\u{306}а"],
    &["เ", "เก", "ก"],
    &["a\u{301}", "a\u{301}\u{316}", "a\u{301}b"],
    &["a", "A", "ab", "AB", "aB"],
    &["l", "l·", "la"],
    &["", "\u{1}", "\u{1}a"],
];

fn text() -> impl Strategy<Value = String> {
    select(TEXTS.to_vec()).prop_map(str::to_owned)
}

/// Longer than the sort keys that an index keeps; the first two differ behind that.
fn long_texts() -> Vec<String> {
    vec![format!("{}a", "x".repeat(1500)), format!("{}b", "x".repeat(1500)), "x".repeat(300)]
}

/// The few values of a case.
pub(crate) fn values() -> impl Strategy<Value = Vec<Value>> {
    let families = FAMILIES.map(|family| family.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    let family = prop_oneof![
        4 => Just(Vec::new()),
        4 => select(families.to_vec()),
        1 => Just(long_texts()),
    ];
    (prop::collection::vec(value(), 2..5), family).prop_map(|(mut values, family)| {
        values.extend(family.into_iter().map(Value::from));
        values
    })
}

/// Fields that most documents have, and some that few have.
pub(crate) fn field() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "a", "a", "b", "b", "b", "c", "o.x", "o.y", "o", "o.1", "_id", "_id", "_rev"])
}

/// The fields `a`, `b`, `c` and `o`, each there or not.
fn document(values: &[Value]) -> impl Strategy<Value = Value> + use<> {
    let value = || select(values.to_vec());
    let inner = prop_oneof![
        value(),
        (prop::option::of(value()), prop::option::of(value())).prop_map(|(x, y)| {
            let mut members = Map::new();
            members.extend(x.map(|x| ("x".to_owned(), x)));
            members.extend(y.map(|y| ("y".to_owned(), y)));
            Value::Object(members)
        }),
        prop::collection::vec(value(), 0..3).prop_map(Value::from),
    ];
    let array = prop::collection::vec(value(), 1..3).prop_map(Value::from);
    let value_or_array = prop_oneof![5 => value(), 1 => array];
    let maybe = prop::option::weighted(0.9, value_or_array);
    (maybe.clone(), maybe.clone(), maybe, prop::option::weighted(0.7, inner)).prop_map(|(a, b, c, o)| {
        let mut document = json!({ "_rev": "1-0" });
        for (name, value) in [("a", a), ("b", b), ("c", c), ("o", o)] {
            if let Some(value) = value {
                document[name] = value;
            }
        }
        document
    })
}

/// Ids of documents, some of them of design documents.
const IDS: [&str; 20] = [
    "a",
    "A",
    "B",
    "b",
    "ab",
    "é",
    "e\u{301}",
    "10",
    "9",
    "_design/x",
    "_design/",
    "z",
    "~",
    "й",
    "😀",
    "1",
    "2",
    "3",
    "4",
    "5",
];

pub(crate) fn documents(values: &[Value]) -> impl Strategy<Value = Vec<Value>> + use<> {
    let ids = subsequence(IDS.to_vec(), 0..=IDS.len());
    (ids, prop::collection::vec(document(values), IDS.len())).prop_map(|(ids, documents)| {
        let with_id = |(id, mut document): (&str, Value)| {
            document["_id"] = json!(id);
            document
        };
        ids.into_iter().zip(documents).map(with_id).collect()
    })
}

/// A condition on some field that often holds.
pub(crate) fn condition(values: &[Value]) -> impl Strategy<Value = Value> + use<> {
    let values = values.to_vec();
    field().prop_flat_map(move |field| condition_on(field.to_owned(), &values))
}

pub(crate) fn condition_on(field: String, values: &[Value]) -> impl Strategy<Value = Value> + use<> {
    let ids = select(IDS[..6].to_vec()).prop_map(Value::from);
    let values = select(values.to_vec());
    let operand = match field.as_str() {
        "_id" => prop_oneof![5 => ids, 1 => values].boxed(),
        _ => values.boxed(),
    };
    condition_with(operand).prop_map(move |condition| json!({ &field: condition }))
}

fn condition_with(operand: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
    let comparison = select(vec!["$lt", "$lte", "$eq", "$eq", "$ne", "$gte", "$gt"]);
    let values = prop::collection::vec(operand.clone(), 0..4);
    let prefix = (operand.clone(), 1..3_usize).prop_map(|(value, length)| match value {
        Value::String(text) => text.chars().take(length).collect(),
        _ => String::new(),
    });
    prop_oneof![
        8 => (comparison, operand.clone()).prop_map(|(operator, value)| json!({ operator: value })),
        3 => (operand.clone(), operand.clone()).prop_map(|(low, high)| json!({ "$gte": low, "$lt": high })),
        3 => values.clone().prop_map(|values| json!({ "$in": values })),
        1 => values.clone().prop_map(|values| json!({ "$nin": values })),
        3 => prefix.prop_map(|prefix| json!({ "$beginsWith": prefix })),
        2 => any::<bool>().prop_map(|exists| json!({ "$exists": exists })),
        1 => select(vec!["null", "number", "string", "array"]).prop_map(|name| json!({ "$type": name })),
        1 => values.prop_map(|values| json!({ "$all": values })),
        1 => operand.clone().prop_map(|value| json!({ "$elemMatch": { "$gte": value } })),
        1 => select(vec!["^a", "b$", "[é]"]).prop_map(|pattern| json!({ "$regex": pattern })),
        1 => operand.clone(),
        1 => operand.prop_map(|value| json!({ "$not": { "$gt": value } })),
    ]
}

/// A selector of any form.
pub(crate) fn selector(values: &[Value]) -> impl Strategy<Value = Value> + use<> {
    let tree = condition(values).prop_recursive(3, 10, 3, |inner| {
        let some = prop::collection::vec(inner.clone(), 1..4);
        let any = prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            4 => some.prop_map(|nodes| json!({ "$and": nodes })),
            3 => any.clone().prop_map(|nodes| json!({ "$or": nodes })),
            1 => any.prop_map(|nodes| json!({ "$nor": nodes })),
            1 => inner.prop_map(|node| json!({ "$not": node })),
        ]
    });
    prop_oneof![12 => tree, 1 => Just(json!({}))]
}

/// The body of `POST /{db}/_index`, without names.
pub(crate) fn index(values: &[Value]) -> impl Strategy<Value = Value> + use<> {
    let fields = prop_oneof![prop::collection::vec(field(), 1), prop::collection::vec(field(), 2..4)];
    let filter = prop::option::weighted(0.2, selector(values));
    (fields, any::<bool>(), filter).prop_map(|(fields, descending, filter)| {
        let direction = if descending { "desc" } else { "asc" };
        let fields: Vec<Value> = fields.iter().map(|field| json!({ *field: direction })).collect();
        let mut index = json!({ "fields": fields });
        if let Some(filter) = filter {
            index["partial_filter_selector"] = filter;
        }
        json!({ "index": index })
    })
}

/// What a document has at a path.
pub(crate) fn lies_at(document: &Value, path: &FieldPath) -> Option<Value> {
    let projected = Projection::Fields(vec![path.clone()]).project(document);
    path.names().iter().try_fold(projected, |value, name| value.get(name).cloned())
}

/// By the sort of a query, in its direction; of a key only this many bytes count.
pub(crate) fn compare(query: &Query, left: &Value, right: &Value, cut_bytes: usize) -> Ordering {
    for field in &query.sort {
        let key = |document: &Value| {
            let mut key = sort_key(&lies_at(document, &field.path).unwrap());
            key.truncate(cut_bytes);
            key
        };
        // Ids come in the order of their bytes where all documents are read.
        let ordering = match field.path.text() {
            "_id" if query.sort.len() == 1 => Ordering::Equal,
            _ => key(left).cmp(&key(right)),
        };
        let ordering = if field.direction == Direction::Descending { ordering.reverse() } else { ordering };
        if ordering.is_ne() {
            return ordering;
        }
    }
    Ordering::Equal
}
