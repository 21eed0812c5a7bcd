//! Definitions of indexes: as clients send them, as design documents have them, the names that CouchDB makes.

use crate::support::{documents, index, values};
use proptest::prelude::*;
use scrinium_mango::{IndexDefinition, MangoError};
use serde_json::{Value, json};

fn parse(body: &Value) -> IndexDefinition {
    IndexDefinition::parse(body).unwrap_or_else(|error| panic!("{body}: {error}"))
}

/// As CouchDB 3 named them, by the answers that were recorded for Fauxton's tests.
#[test]
fn indexes_without_a_name_are_named_as_couchdb_names_them() {
    for (fields, name, design) in [
        (json!(["foo"]), "foo-json-index", "428a2f2506db4e77001bfe08fa0b79ea9eaf0279"),
        (json!(["test"]), "test-json-index", "9389a767083b391afff6311ca0bc203b9becc80a"),
        (json!(["foo", "test"]), "foo-test-json-index", "43919ae9a7c472f6bdda0caa86ea8f139a3aaf14"),
    ] {
        let index = parse(&json!({ "index": { "fields": fields }, "name": name }));
        assert_eq!((index.design(), index.name()), (format!("_design/{design}").as_str(), name));
    }
    let unnamed = parse(&json!({ "index": { "fields": ["foo"] }, "type": "json" }));
    assert_eq!(unnamed.design(), format!("_design/{}", unnamed.name()));
    let other = parse(&json!({ "index": { "fields": [{ "foo": "asc" }] } }));
    assert_ne!(unnamed.name(), other.name(), "the name is that of what was sent");
}

#[test]
fn an_index_goes_into_a_design_document_and_comes_back() {
    let sent = json!({
        "fields": ["type", { "o.year": "asc" }],
        "partial_filter_selector": { "status": { "$not": { "$eq": "archived" } } },
    });
    let index = parse(&json!({ "index": sent, "ddoc": "types", "name": "by-type", "w": 3 }));
    let filter = json!({ "status": { "$ne": "archived" } });
    let view = json!({
        "map": { "fields": { "type": "asc", "o.year": "asc" }, "partial_filter_selector": filter },
        "reduce": "_count",
        "options": { "def": sent },
    });
    let design = index.put_into_design(None).unwrap().unwrap();
    assert_eq!(design, json!({ "_id": "_design/types", "language": "query", "views": { "by-type": view } }));
    assert_eq!(index.put_into_design(Some(&design)).unwrap(), None, "it exists");
    let shown = json!({
        "ddoc": "_design/types",
        "name": "by-type",
        "type": "json",
        "partitioned": false,
        "def": {
            "fields": [{ "type": "asc" }, { "o.year": "asc" }],
            "partial_filter_selector": filter,
        },
    });
    assert_eq!(index.to_json(), shown);
    let found = IndexDefinition::of_design(&design);
    assert_eq!(found.iter().map(IndexDefinition::to_json).collect::<Vec<_>>(), [shown]);

    let second =
        parse(&json!({ "index": { "fields": [{ "a": "desc" }] }, "ddoc": "_design/types", "name": "a" }));
    let both = second.put_into_design(Some(&design)).unwrap().unwrap();
    assert_eq!(
        both["views"]["a"]["map"],
        json!({ "fields": { "a": "desc" }, "partial_filter_selector": {} })
    );
    assert_eq!(second.to_json()["def"], json!({ "fields": [{ "a": "desc" }] }));
    assert_eq!(IndexDefinition::remove_from_design(&both, "a").unwrap(), Some(design.clone()));
    assert_eq!(IndexDefinition::remove_from_design(&design, "by-type").unwrap(), None, "nothing is left");
    let missing = IndexDefinition::remove_from_design(&design, "a").unwrap_err();
    assert_eq!((missing.error(), missing.status()), ("invalid_index", 404));
}

#[test]
fn design_documents_of_others_are_left_alone() {
    let index = parse(&json!({ "index": { "fields": ["a"] }, "ddoc": "d", "name": "a" }));
    let formulas = json!({ "_id": "_design/d", "language": "formula", "views": {} });
    let refused = index.put_into_design(Some(&formulas)).unwrap_err();
    assert_eq!(refused, MangoError::InvalidDesignLanguage("\"formula\"".to_owned()));
    assert!(IndexDefinition::of_design(&formulas).is_empty());

    let partitioned = json!({ "_id": "_design/d", "language": "query", "options": { "partitioned": false } });
    let refused = index.put_into_design(Some(&partitioned)).unwrap_err();
    assert_eq!(refused.error(), "invalid_partitioned_option");
    let same =
        parse(&json!({ "index": { "fields": ["a"] }, "ddoc": "d", "name": "a", "partitioned": false }));
    assert!(same.put_into_design(Some(&partitioned)).unwrap().is_some());

    // As old versions wrote them, and as somebody's own; of these two only the first is an index.
    let mixed = json!({
        "_id": "_design/old",
        "language": "query",
        "views": {
            "old": {
                "map": { "fields": { "location": "asc" }, "selector": { "location": { "$gte": "FRA" } } },
                "reduce": "_count",
                "options": { "def": { "fields": ["location"] }, "w": 2 },
            },
            "map": { "map": "function (doc) { emit(doc.a); }" },
        },
    });
    let found = IndexDefinition::of_design(&mixed);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].keys(&json!({ "location": "GHA" })), Some(vec![json!("GHA")]));
    assert_eq!(found[0].keys(&json!({ "location": "AUS" })), None);
    assert_eq!(found[0].view()["map"], mixed["views"]["old"]["map"]);
}

#[test]
fn keys_are_the_values_of_all_fields() {
    let index = parse(&json!({
        "index": { "fields": ["a", "o.x", "l.1"], "partial_filter_selector": { "kind": { "$ne": "x" } } },
    }));
    for (document, key) in [
        (
            json!({ "kind": "y", "a": null, "o": { "x": [1] }, "l": [0, {}] }),
            Some(vec![json!(null), json!([1]), json!({})]),
        ),
        (json!({ "kind": "y", "a": 1, "o": { "y": 1 }, "l": [0, 1] }), None),
        (json!({ "kind": "y", "a": 1, "o": 5, "l": [0, 1] }), None),
        (json!({ "kind": "y", "a": 1, "o": { "x": 1 }, "l": [0] }), None),
        (json!({ "kind": "x", "a": 1, "o": { "x": 1 }, "l": [0, 1] }), None),
        (json!({ "a": 1, "o": { "x": 1 }, "l": [0, 1] }), None),
        (json!({ "_id": "_design/d", "kind": "y", "a": 1, "o": { "x": 1 }, "l": [0, 1] }), None),
    ] {
        assert_eq!(index.keys(&document), key, "{document}");
    }
}

#[test]
fn what_couchdb_refuses_is_refused_in_its_words() {
    let index = json!({ "fields": ["a"] });
    for (body, status, error, reason) in [
        (json!([]), 400, "bad_request", "Request body must be a JSON object"),
        (json!({}), 400, "missing_required_key", "Missing required key: index"),
        (json!({ "index": "a" }), 400, "invalid_index", "JSON indexes must be an object, not: \"a\""),
        (json!({ "index": {} }), 400, "missing_required_key", "Missing required key: fields"),
        (
            json!({ "index": { "fields": "a" } }),
            400,
            "invalid_sort_json",
            "Sort must be an array of sort specs, not: \"a\"",
        ),
        (
            json!({ "index": { "fields": [{ "a": 2 }] } }),
            400,
            "invalid_sort_field",
            "Invalid sort field: {\"a\":2}",
        ),
        (
            json!({ "index": { "fields": [{ "a": "asc", "b": "asc" }] } }),
            400,
            "invalid_sort_field",
            "Invalid sort field: {\"a\":\"asc\",\"b\":\"asc\"}",
        ),
        (json!({ "index": { "fields": [""] } }), 400, "invalid_sort_field", "Invalid sort field: \"\""),
        (
            json!({ "index": { "fields": [{ "a": "asc" }, { "b": "desc" }] } }),
            400,
            "unsupported_mixed_sort",
            "Sorts currently only support a single direction for all fields.",
        ),
        (
            json!({ "index": { "fields": ["a"], "selector": {} } }),
            400,
            "invalid_key",
            "Invalid key selector for this request.",
        ),
        (
            json!({ "index": { "fields": ["a"], "partial_filter_selector": 1 } }),
            400,
            "invalid_selector_json",
            "Selector must be a JSON object, not: 1",
        ),
        (json!({ "index": index, "type": "text" }), 503, "required index service unavailable", "text"),
        (json!({ "index": index, "type": "geo" }), 400, "invalid_index", "Invalid type for index: geo"),
        (json!({ "index": index, "type": 1.5 }), 400, "invalid_string", "Invalid string: 1.5"),
        (json!({ "index": index, "name": true }), 400, "invalid_string", "Invalid string: true"),
        (json!({ "index": index, "name": "" }), 400, "invalid_string", "Invalid string: \"\""),
        (json!({ "index": index, "ddoc": ["x"] }), 400, "invalid_string", "Invalid string: [\"x\"]"),
        (
            json!({ "index": index, "w": 0 }),
            400,
            "invalid_pos_integer",
            "0 is not an integer greater than zero",
        ),
        (json!({ "index": index, "fields": [] }), 400, "invalid_key", "Invalid key fields for this request."),
    ] {
        let refused = IndexDefinition::parse(&body).expect_err("refused");
        assert_eq!(
            (refused.status(), refused.error(), refused.reason().as_str()),
            (status, error, reason),
            "{body}"
        );
    }
}

proptest! {
    #[test]
    fn an_index_from_its_design_document_is_the_same(
        (body, documents) in values().prop_flat_map(|values| (index(&values), documents(&values))),
    ) {
        let index = IndexDefinition::parse(&body).unwrap();
        let design = index.put_into_design(None).unwrap().unwrap();
        let [again] = <[IndexDefinition; 1]>::try_from(IndexDefinition::of_design(&design)).unwrap();
        prop_assert_eq!(again.to_json(), index.to_json());
        prop_assert_eq!(again.view(), index.view());
        for document in &documents {
            prop_assert_eq!(again.keys(document), index.keys(document));
        }
    }
}
