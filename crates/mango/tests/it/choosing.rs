//! Which index is chosen, what is read of it, and what `_explain` tells: as CouchDB 3.4 does.

use std::sync::Arc;

use scrinium_mango::{IndexDefinition, MangoError, Plan, Query, Reading, explain, plan};
use serde_json::{Value, json};

/// Indexes by the names of their design documents.
fn indexes(definitions: &[(&str, Value)]) -> Vec<Arc<IndexDefinition>> {
    let parse = |(name, definition): &(&str, Value)| {
        let index = if definition.is_array() { json!({ "fields": definition }) } else { definition.clone() };
        let body = json!({ "index": index, "ddoc": name, "name": name });
        Arc::new(IndexDefinition::parse(&body).unwrap_or_else(|error| panic!("{body}: {error}")))
    };
    definitions.iter().map(parse).collect()
}

/// Indexes of a staff directory.
fn users() -> Vec<Arc<IndexDefinition>> {
    indexes(&[
        ("age", json!(["age"])),
        ("office-head", json!(["office", "head"])),
        ("head", json!(["head"])),
        ("name", json!(["name.last", "name.first"])),
        ("state", json!(["place.land", "place.town"])),
        ("alias", json!(["alias"])),
        ("filtered", json!({ "fields": ["age"], "partial_filter_selector": { "age": { "$gt": 10 } } })),
    ])
}

fn planned(body: &Value, indexes: &[Arc<IndexDefinition>]) -> Result<Plan, MangoError> {
    plan(&Query::parse(body).unwrap_or_else(|error| panic!("{body}: {error}")), indexes)
}

fn chosen(body: &Value, indexes: &[Arc<IndexDefinition>]) -> String {
    let plan = planned(body, indexes);
    plan.map_or_else(
        |error| error.error().to_owned(),
        |plan| plan.index().map_or_else(|| "_all_docs".to_owned(), |index| index.name().to_owned()),
    )
}

#[test]
fn the_index_is_the_one_that_couchdb_chooses() {
    let users = users();
    for (body, name) in [
        (json!({ "selector": { "age": 123 } }), "age"),
        (json!({ "selector": { "name.first": "Ann", "name.last": "Oak" } }), "name"),
        (json!({ "selector": { "name": { "first": { "$gt": "a" }, "last": "Oak" } } }), "name"),
        (json!({ "selector": { "head": { "$exists": true } } }), "head"),
        (json!({ "selector": { "$not": { "age": { "$gt": 5 } } } }), "age"),
        // Not all fields are asked for, so that documents may be missing.
        (json!({ "selector": { "office": "Oak" } }), "_all_docs"),
        (json!({ "selector": { "alias": { "$exists": false } } }), "_all_docs"),
        (json!({ "selector": { "$or": [{ "age": 1 }, { "head": true }] } }), "_all_docs"),
        (json!({ "selector": { "$or": [] } }), "_all_docs"),
        (json!({ "selector": {} }), "_all_docs"),
        (
            json!({ "selector": { "office": { "$gt": "a" }, "$or": [{ "head": 1 }, { "head": 2 }] } }),
            "office-head",
        ),
        // A field that is sorted by must be there.
        (json!({ "selector": { "office": "Oak" }, "sort": ["office", "head"] }), "office-head"),
        (json!({ "selector": { "office": "Oak" }, "sort": [{ "head": "desc" }] }), "office-head"),
        (json!({ "selector": { "office": { "$gt": "Oak" } }, "sort": ["head"] }), "head"),
        (json!({ "selector": {}, "sort": ["age"] }), "age"),
        (json!({ "selector": { "_id": { "$gt": 0 }, "age": 5 }, "sort": ["_id"] }), "_all_docs"),
        (json!({ "selector": { "age": 5 }, "sort": ["_id"] }), "no_usable_index"),
        (json!({ "selector": { "office": { "$lt": "M" } }, "sort": ["name.first"] }), "no_usable_index"),
        (
            json!({ "selector": { "office": { "$gt": null } }, "sort": [{ "office": "desc" }], "use_index": "office-head" }),
            "no_usable_index",
        ),
        // Partial indexes only by name.
        (json!({ "selector": { "age": { "$gt": 20 } }, "use_index": "filtered" }), "filtered"),
        (
            json!({ "selector": { "age": { "$gt": 20 } }, "use_index": ["_design/filtered", "filtered"] }),
            "filtered",
        ),
        (json!({ "selector": { "age": { "$gt": 20 } }, "use_index": ["filtered", "other"] }), "age"),
        (json!({ "selector": { "age": { "$gt": 20 }, "head": true }, "use_index": "head" }), "head"),
        (json!({ "selector": { "age": { "$gt": 20 } }, "use_index": "_design/alias" }), "age"),
        (json!({ "selector": { "age": 1 }, "use_index": "alias", "allow_fallback": false }), "invalid_index"),
        (json!({ "selector": { "age": 1 }, "use_index": "age", "allow_fallback": false }), "age"),
        (json!({ "selector": { "age": 1 }, "allow_fallback": false }), "age"),
        (json!({ "selector": { "x": 1 }, "allow_fallback": false }), "no_usable_index"),
    ] {
        assert_eq!(chosen(&body, &users), name, "{body}");
    }
}

#[test]
fn the_closest_narrowest_first_index_wins() {
    let three =
        [("aaa", json!(["name", "age", "user"])), ("bbb", json!(["name", "age"])), ("zzz", json!(["name"]))];
    let all = indexes(&three);
    let found = |selector: Value| chosen(&json!({ "selector": selector }), &all);
    assert_eq!(found(json!({ "name": "Ed" })), "zzz");
    assert_eq!(found(json!({ "name": "Ed", "age": { "$gte": 12 } })), "bbb");
    assert_eq!(found(json!({ "name": "Ed", "age": { "$gte": 12 }, "user": { "$exists": true } })), "bbb");
    assert_eq!(found(json!({ "name": "Ed", "age": { "$gte": 12 }, "user": { "$gt": 0 } })), "aaa");
    assert_eq!(found(json!({ "name": "Ed", "number": 1 })), "zzz");
    let same = indexes(&[("zzz", json!(["name"])), ("aaa", json!(["name"])), ("bbb", json!(["name"]))]);
    assert_eq!(chosen(&json!({ "selector": { "name": "Ed" } }), &same), "aaa");
    let with_id = indexes(&[("aaa", json!(["name", "_id"]))]);
    assert_eq!(chosen(&json!({ "selector": { "name": "Ed" } }), &with_id), "aaa");
}

/// Ranges as texts: `[` where the keys that begin so belong to them, `(` where not.
fn ranges(plan: &Plan) -> Vec<String> {
    match &plan.reading {
        Reading::Documents { ranges } => {
            ranges.iter().map(|range| format!("{:?} {:?}", range.start, range.end)).collect()
        }
        Reading::Index { ranges, .. } => {
            let keys = |values: &[Value]| json!(values).to_string();
            let text = |range: &scrinium_mango::KeyRange| {
                format!(
                    "{:?} {} {:?} {}",
                    range.start.edge,
                    keys(&range.start.values),
                    range.end.edge,
                    keys(&range.end.values)
                )
            };
            ranges.iter().map(text).collect()
        }
    }
}

#[test]
fn what_is_read_is_narrow_and_what_remains_is_little() {
    let all = indexes(&[("abc", json!(["a", "b", "c"])), ("s", json!(["s"]))]);
    let there = json!({ "a": { "$exists": true }, "b": { "$exists": true }, "c": { "$exists": true } });
    let case = |conditions: Value| {
        let plan = planned(&json!({ "selector": { "$and": [there, conditions] } }), &all).unwrap();
        (ranges(&plan), plan.residual.to_json())
    };
    let nothing = json!({});
    assert_eq!(
        case(json!({})).1,
        json!({ "": { "$eq": {} } }),
        "an empty selector within another is an empty object"
    );
    assert_eq!(
        case(json!({ "a": { "$type": "number" } })),
        (vec!["Before [] After []".into()], json!({ "a": { "$type": "number" } }))
    );
    assert_eq!(case(json!({ "a": 1 })), (vec!["Before [1] After [1]".into()], nothing.clone()));
    assert_eq!(case(json!({ "a": { "$gt": 1 } })), (vec!["After [1] After []".into()], nothing.clone()));
    assert_eq!(
        case(json!({ "a": { "$gte": 1, "$lt": "x" } })),
        (vec!["Before [1] Before [\"x\"]".into()], nothing.clone())
    );
    assert_eq!(
        case(json!({ "a": 1, "b": { "$lte": 5 } })),
        (vec!["Before [1] After [1,5]".into()], nothing.clone())
    );
    assert_eq!(
        case(json!({ "a": { "$gt": 1 }, "b": 2 })),
        (vec!["After [1] After []".into()], json!({ "b": { "$eq": 2 } })),
        "only a field after single values narrows further"
    );
    assert_eq!(
        case(json!({ "a": { "$in": [2, 1, 2.0] }, "c": 5 })),
        (
            vec![
                "Before [1] After [1]".into(),
                "Before [2] After [2]".into(),
                "Before [[]] Before [{}]".into()
            ],
            json!({ "$and": [{ "a": { "$in": [2, 1, 2.0] } }, { "c": { "$eq": 5 } }] })
        )
    );
    assert_eq!(case(json!({ "a": { "$gt": 2, "$lt": 1 } })), (Vec::new(), nothing));
    assert_eq!(
        case(json!({ "a": 1, "$or": [{ "x": 1 }, { "y": 1 }] })).1,
        json!({ "$or": [{ "x": { "$eq": 1 } }, { "y": { "$eq": 1 } }] })
    );
    let prefix = |prefix: &str| {
        let plan = planned(&json!({ "selector": { "s": { "$beginsWith": prefix } } }), &all).unwrap();
        assert_eq!(plan.residual.to_json(), json!({ "s": { "$beginsWith": prefix } }));
        ranges(&plan)
    };
    assert_eq!(prefix("Ab"), ["Before [\"Ab\"] After [\"Ab\u{ffff}\"]"]);
    assert_eq!(prefix("Иван"), ["Before [\"Ива\"] After [\"Ива\u{ffff}\"]"]);
    assert_eq!(prefix("e\u{301}x"), ["Before [\"e\"] After [\"e\u{ffff}\"]"]);
    assert_eq!(prefix("เก"), ["Before [\"\"] Before [[]]"]);
}

#[test]
fn ids_are_read_byte_by_byte_and_without_design_documents() {
    let case = |selector: Value| {
        let plan = planned(&json!({ "selector": selector }), &[]).unwrap();
        (ranges(&plan), plan.residual.to_json())
    };
    let nothing = json!({});
    assert_eq!(case(json!({})).0, ["Unbounded Excluded(\"_design/\")", "Included(\"_design0\") Unbounded"]);
    assert_eq!(
        case(json!({ "_id": "x" })),
        (vec!["Included(\"x\") Included(\"x\")".into()], nothing.clone())
    );
    assert_eq!(case(json!({ "_id": "_design/x" })), (Vec::new(), nothing.clone()));
    assert_eq!(
        case(json!({ "_id": { "$gt": "a", "$lt": "c", "$lte": "c", "$gte": "a" }, "b": 1 })),
        (vec!["Excluded(\"a\") Excluded(\"c\")".into()], json!({ "b": { "$eq": 1 } }))
    );
    assert_eq!(
        case(json!({ "_id": { "$gt": null, "$lt": "Z" } })),
        (vec!["Unbounded Excluded(\"Z\")".into()], nothing.clone())
    );
    assert_eq!(case(json!({ "_id": { "$lt": {} } })), (Vec::new(), nothing.clone()));
    assert_eq!(
        case(json!({ "_id": { "$in": ["b", "a", 5, "_design/x"] } })),
        (
            vec!["Included(\"a\") Included(\"a\")".into(), "Included(\"b\") Included(\"b\")".into()],
            nothing.clone()
        )
    );
    assert_eq!(
        case(json!({ "_id": { "$beginsWith": "a\u{10ffff}" } })),
        (vec!["Included(\"a\\u{10ffff}\") Excluded(\"b\")".into()], nothing)
    );
}

#[test]
fn warnings_are_couchdbs() {
    let users = users();
    let warning = |body: Value, examined, results| planned(&body, &users).unwrap().warning(examined, results);
    let scan = "No matching index found, create an index to optimize query time.";
    let much = "The number of documents examined is high in proportion to the number of results returned. \
                Consider adding a more specific index to improve this.";
    let unused = "_design/age was not used because it does not contain a valid index for this query.";
    assert_eq!(warning(json!({ "selector": { "age": 1 } }), 10, 1), None);
    assert_eq!(warning(json!({ "selector": { "age": 1 } }), 11, 1).unwrap(), much);
    assert_eq!(warning(json!({ "selector": { "age": 1 } }), 10, 0), None);
    assert_eq!(
        warning(json!({ "selector": {}, "use_index": "age" }), 11, 0).unwrap(),
        format!("{unused}\n{scan}\n{much}")
    );
    assert_eq!(
        warning(json!({ "selector": { "office": "x" }, "use_index": ["_design/office-head", "x"] }), 0, 0)
            .unwrap(),
        format!(
            "_design/office-head, x was not used because it is not a valid index for this query.\n{scan}"
        )
    );
}

/// With the members that CouchDB documents, and their values where nothing is asked for.
#[test]
fn explaining_is_couchdbs() {
    let body = json!({ "index": { "fields": ["printed"] }, "ddoc": "printings", "name": "printings" });
    let index = Arc::new(IndexDefinition::parse(&body).unwrap());
    let query = json!({
        "selector": { "printed": { "$gt": 1500 } },
        "fields": ["_id", "_rev", "printed", "title"],
        "limit": 2,
        "skip": 0,
    });
    let told = explain("library", &Query::parse(&query).unwrap(), &[index]).unwrap();
    let golden: Value = serde_json::from_str(include_str!("../golden/explain.json")).unwrap();
    assert_eq!(told, golden);
}

/// As in CouchDB's own tests and in Fauxton's recorded answers.
#[test]
fn candidates_are_told_with_the_reasons_that_couchdb_has() {
    let told = |body: Value, indexes: &[Arc<IndexDefinition>]| {
        let told = explain("d", &Query::parse(&body).unwrap(), indexes).unwrap();
        let candidates = told["index_candidates"].as_array().unwrap().iter().map(|candidate| {
            let analysis = &candidate["analysis"];
            let reason = analysis["reasons"][0]["name"].as_str().unwrap();
            let name = candidate["index"]["name"].as_str().unwrap();
            format!("{name} {reason} {} {} {}", analysis["usable"], analysis["ranking"], analysis["covering"])
        });
        (told["index"]["name"].clone(), candidates.collect::<Vec<_>>())
    };
    let users = users();
    let (name, candidates) = told(json!({ "selector": { "age": 23 } }), &users);
    assert_eq!(name, json!("age"));
    assert_eq!(
        candidates,
        [
            "state field_mismatch false 2 false",
            "office-head field_mismatch false 2 false",
            "name field_mismatch false 2 false",
            "head field_mismatch false 2 false",
            "filtered is_partial false 3 false",
            "alias field_mismatch false 2 false",
            "_all_docs unfavored_type true 1 null",
        ]
    );
    let several = indexes(&[
        ("bbed", json!(["bar", "foo"])),
        ("9389", json!(["test"])),
        ("4391", json!(["foo", "test"])),
        ("428a", json!(["foo"])),
    ]);
    let body =
        json!({ "selector": { "foo": { "$gt": 0 }, "other": { "$gt": 0 }, "test": { "$exists": true } } });
    let (name, candidates) = told(body, &several);
    assert_eq!(name, json!("428a"));
    assert_eq!(
        candidates,
        [
            "bbed field_mismatch false 4 false",
            "9389 less_overlap true 2 false",
            "4391 less_overlap true 1 false",
            "_all_docs unfavored_type true 3 null",
        ]
    );
    let (name, candidates) = told(json!({ "selector": { "age": 23 }, "sort": ["office"] }), &[]);
    assert_eq!((name, candidates), (Value::Null, vec!["_all_docs field_mismatch false 1 null".to_owned()]));
    let (_, candidates) = told(json!({ "selector": { "_id": "x" }, "sort": ["office"] }), &[]);
    assert_eq!(candidates, ["_all_docs sort_order_mismatch false 1 null"]);
    let body = json!({ "selector": { "age": 2, "head": 1 }, "use_index": "age", "fields": ["head"] });
    let (name, candidates) = told(body, &users);
    assert_eq!(name, json!("age"));
    assert!(candidates.contains(&"head excluded_by_user true 1 true".to_owned()), "{candidates:?}");
}

#[test]
fn view_arguments_are_couchdbs() {
    let all = indexes(&[
        ("place", json!(["place"])),
        ("name", json!(["name", "place"])),
        ("rooms", json!(["rooms", "age"])),
    ]);
    let told = |body: Value| {
        let told = explain("d", &Query::parse(&body).unwrap(), &all).unwrap();
        let arguments = &told["mrargs"];
        json!([
            arguments["start_key"],
            arguments["end_key"],
            arguments["direction"],
            arguments["include_docs"]
        ])
    };
    for (body, expected) in [
        (
            json!({ "selector": { "place": { "$beginsWith": "A" } } }),
            json!([["A"], ["A\u{ffff}", "<MAX>"], "fwd", true]),
        ),
        (
            json!({ "selector": { "name": "Ed", "place": { "$beginsWith": "A" } } }),
            json!([["Ed", "A"], ["Ed", "A\u{ffff}", "<MAX>"], "fwd", true]),
        ),
        (
            json!({ "selector": { "place": { "$beginsWith": "A" } }, "sort": [{ "place": "desc" }] }),
            json!([["A\u{ffff}", "<MAX>"], ["A"], "rev", true]),
        ),
        (
            json!({ "selector": { "place": { "$lt": 5 } }, "fields": ["_id"] }),
            json!([[], [5, "<MAX>"], "fwd", false]),
        ),
        (
            json!({ "selector": { "rooms": "2", "age": { "$gt": 10 } }, "sort": ["age"] }),
            json!([["2", 10], ["2", "<MAX>"], "fwd", true]),
        ),
        (json!({ "selector": { "place": { "$exists": true } } }), json!([[], ["<MAX>"], "fwd", true])),
        (
            json!({ "selector": { "$and": [{ "place": { "$gt": 0 } }, { "place": { "$lt": 0 } }] } }),
            json!([null, null, "fwd", true]),
        ),
        (json!({ "selector": { "_id": { "$beginsWith": "a" } } }), json!(["a", "a\u{ffff}", "fwd", true])),
        (json!({ "selector": { "_id": "x" } }), json!(["x", "x", "fwd", true])),
        (json!({ "selector": { "_id": { "$lt": "x" } } }), json!(["", "x", "fwd", true])),
        (json!({ "selector": { "foo": { "$beginsWith": "a" } } }), json!([null, "<MAX>", "fwd", true])),
        (json!({ "selector": { "$or": [] } }), json!([null, null, "fwd", true])),
    ] {
        assert_eq!(told(body.clone()), expected, "{body}");
    }
}
