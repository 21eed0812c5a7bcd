//! The body of `_find`: what is taken, what is refused and how, which fields are answered, bookmarks.

use proptest::prelude::*;
use scrinium_mango::{Bookmark, Direction, Projection, Query};
use serde_json::{Value, json};

fn parse(body: &Value) -> Query {
    Query::parse(body).unwrap_or_else(|error| panic!("{body}: {error}"))
}

#[test]
fn what_is_not_said_is_as_in_couchdb() {
    let query = parse(&json!({ "selector": {} }));
    assert_eq!((query.limit, query.skip, query.read_quorum), (25, 0, 1));
    assert!(query.update && query.allow_fallback && query.selector.is_empty());
    assert!(!query.stable && !query.conflicts && !query.execution_stats);
    assert!(query.sort.is_empty() && query.use_index.is_none() && query.bookmark.is_none());
    assert_eq!(query.fields, Projection::All);
    let stale = parse(&json!({ "selector": {}, "stale": "ok" }));
    assert!(stale.stable && !stale.update);
    let sorted = parse(&json!({ "selector": {}, "sort": [{ "a.b": "desc" }, { "c": "desc" }] }));
    assert_eq!(
        (sorted.direction(), sorted.sort[0].path.names()),
        (Direction::Descending, &["a".to_owned(), "b".to_owned()][..])
    );
    for (sent, design, name) in [
        (json!("d"), "_design/d", None),
        (json!("_design/d"), "_design/d", None),
        (json!("d/n"), "_design/d", Some("n")),
        (json!("_design/d/n"), "_design/d", Some("n")),
        (json!(["d"]), "_design/d", None),
        (json!(["_design/d", "n"]), "_design/d", Some("n")),
    ] {
        let query = parse(&json!({ "selector": {}, "use_index": sent }));
        let index = query.use_index.unwrap();
        assert_eq!((index.design.as_str(), index.name.as_deref()), (design, name), "{sent}");
    }
    for none in [json!(null), json!([])] {
        assert_eq!(parse(&json!({ "selector": {}, "use_index": none })).use_index, None);
    }
    for none in [json!(null), json!(""), json!("nil")] {
        assert_eq!(parse(&json!({ "selector": {}, "bookmark": none })).bookmark, None);
    }
}

#[test]
fn what_couchdb_refuses_is_refused_in_its_words() {
    for (member, value, error, reason) in [
        ("selector", json!(null), "invalid_selector_json", "Selector must be a JSON object, not: null"),
        ("limit", json!(-1), "invalid_non_neg_integer", "-1 is not an integer greater than or equal to zero"),
        (
            "limit",
            json!(1.2),
            "invalid_non_neg_integer",
            "1.2 is not an integer greater than or equal to zero",
        ),
        (
            "limit",
            json!(null),
            "invalid_non_neg_integer",
            "null is not an integer greater than or equal to zero",
        ),
        (
            "skip",
            json!("no"),
            "invalid_non_neg_integer",
            "\"no\" is not an integer greater than or equal to zero",
        ),
        ("sort", json!("a"), "invalid_sort_json", "Sort must be an array of sort specs, not: \"a\""),
        ("sort", json!([2]), "invalid_sort_field", "Invalid sort field: 2"),
        ("sort", json!([{ "a": "up" }]), "invalid_sort_field", "Invalid sort field: {\"a\":\"up\"}"),
        (
            "sort",
            json!([{ "a": "asc" }, { "b": "desc" }]),
            "unsupported_mixed_sort",
            "Sorts currently only support a single direction for all fields.",
        ),
        ("fields", json!("a"), "invalid_fields", "Fields must be an array of strings, not: \"a\""),
        ("fields", json!(["a", 2.0]), "invalid_field", "Invalid JSON for field spec: 2.0"),
        (
            "fields",
            json!(["a."]),
            "invalid_field_name",
            "Invalid field name: a. (a part between two dots is empty)",
        ),
        ("use_index", json!(5), "invalid_index_name", "Invalid index name: 5"),
        ("use_index", json!("a/b/c"), "invalid_index_name", "Invalid index name: \"a/b/c\""),
        ("use_index", json!(["a", 1]), "invalid_index_name", "Invalid index name: [\"a\",1]"),
        ("bookmark", json!("bad-bookmark"), "invalid_bookmark", "Invalid bookmark value: \"bad-bookmark\""),
        ("bookmark", json!(1), "invalid_bookmark", "Invalid bookmark value: 1"),
        ("r", json!(0), "invalid_pos_integer", "0 is not an integer greater than zero"),
        ("conflicts", json!("yes"), "invalid_boolean", "Invalid boolean value: \"yes\""),
        ("update", json!("False"), "invalid_boolean", "Invalid boolean value: \"False\""),
        ("stale", json!(true), "invalid_value", "Invalid value for stale: true"),
        ("partition", json!("p"), "bad_request", "The database has no partitions to ask for."),
        ("foo", json!(1), "invalid_key", "Invalid key foo for this request."),
    ] {
        let mut body = json!({ "selector": {} });
        body[member] = value;
        let refused = Query::parse(&body).expect_err("refused");
        assert_eq!(
            (refused.error(), refused.reason().as_str(), refused.status()),
            (error, reason, 400),
            "{body}"
        );
    }
    assert_eq!(Query::parse(&json!({})).unwrap_err().reason(), "Missing required key: selector");
    assert_eq!(Query::parse(&json!([])).unwrap_err().error(), "bad_request");
    let two = json!({ "limit": -1, "selector": { "a": { "$x": 1 } }, "foo": 1 });
    assert_eq!(Query::parse(&two).unwrap_err().error(), "invalid_operator", "the first in CouchDB's order");
}

#[test]
fn the_fields_asked_for_lie_as_in_the_document() {
    let document = json!({ "_id": "x", "a": { "b": [1, { "c": 2 }], "d": 3 }, "e.f": 4, "g": null });
    for (fields, projected) in [
        (json!([]), document.clone()),
        (json!(["_id", "g", "missing"]), json!({ "_id": "x", "g": null })),
        (json!(["a.b", "a.missing", "g.x"]), json!({ "a": { "b": [1, { "c": 2 }] } })),
        (json!(["a.d", "a"]), json!({ "a": { "b": [1, { "c": 2 }], "d": 3 } })),
        (json!(["a", "a.d", "a.b.1.c"]), json!({ "a": { "b": [1, { "c": 2 }], "d": 3 } })),
        (json!(["a.b.1.c"]), json!({ "a": { "b": { "1": { "c": 2 } } } })),
        (json!(["e\\.f", "e.f"]), json!({ "e.f": 4 })),
    ] {
        let query = parse(&json!({ "selector": {}, "fields": fields }));
        assert_eq!(query.fields.project(&document), projected, "{fields}");
    }
}

proptest! {
    #[test]
    fn bookmarks_come_back_whole(key in prop::collection::vec(".*", 0..3), number in any::<i64>(), id in ".*") {
        let mut key: Vec<Value> = key.into_iter().map(Value::from).collect();
        key.push(json!({ "n": [number] }));
        let bookmark = Bookmark { key, id };
        let text = bookmark.encode();
        prop_assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'));
        prop_assert_eq!(Bookmark::decode(&text).unwrap(), Some(bookmark));
    }

    #[test]
    fn other_texts_are_no_bookmarks(text in "[A-Za-z0-9_=+/-]{1,40}") {
        prop_assume!(text != "nil");
        prop_assert!(Bookmark::decode(&text).is_err());
    }
}
