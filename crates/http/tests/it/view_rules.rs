//! Views as CouchDB's users read them: linked documents, options of design documents, orders, ranges, and reductions that
//! go wrong.

use serde_json::{Value, json};

use crate::common::Server;

/// A database with documents and a design document `d` of these views.
async fn with_views(server: &Server, documents: Value, options: Value, views: Value) {
    server.ask("PUT", "/db", ()).await.expect(201);
    server.ask("PUT", "/db/_design/d", json!({"options": options, "views": views})).await.expect(201);
    server.ask("POST", "/db/_bulk_docs", json!({"docs": documents})).await.expect(201);
}

async fn rows(server: &Server, query: &str) -> Value {
    server.ask("GET", &format!("/db/_design/d/_view/{query}"), ()).await.expect(200).json()["rows"].take()
}

/// One member of each row.
fn each(rows: &Value, pointer: &str) -> Value {
    let rows = rows.as_array().unwrap();
    rows.iter().map(|row| row.pointer(pointer).cloned().unwrap_or_else(|| json!("-"))).collect()
}

/// Two leaves of the document `c`, of which `1-bb` wins.
async fn conflict(server: &Server) {
    let docs = json!([{"_id": "c", "_rev": "1-aa", "n": 1}, {"_id": "c", "_rev": "1-bb", "n": 2}]);
    server.ask("POST", "/db/_bulk_docs", json!({"new_edits": false, "docs": docs})).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_brings_the_document_that_its_value_names() {
    let server = Server::start().await;
    let map = "function (doc) { if (doc.links) doc.links.forEach(function (link, n) { emit(n, link) }) }";
    let attachment = json!({"f": {"content_type": "text/plain", "data": "aGk="}});
    let links = json!([
        {"_id": "b"}, {"_id": "nothing"}, {"_id": "gone"}, {"_rev": "1-aa"}, {"_id": "c", "_rev": "1-aa"},
        {"_id": "c"}, {"_id": "c", "_rev": "9-aa"}, {"_id": null}, {"_id": 7}, {"x": {"_id": "b"}}, "b",
        {"_id": "_design/d"}, {"_id": "b", "_rev": "nonsense"}
    ]);
    let docs =
        json!([{"_id": "a", "links": links}, {"_id": "b", "_attachments": attachment}, {"_id": "gone"}]);
    with_views(&server, docs, json!({}), json!({"v": {"map": map}, "r": {"map": map, "reduce": "_count"}}))
        .await;
    let gone = server.ask("GET", "/db/gone", ()).await.json()["_rev"].as_str().unwrap().to_owned();
    server.ask("DELETE", &format!("/db/gone?rev={gone}"), ()).await.expect(200);
    conflict(&server).await;
    let expected = json!(["b", null, null, null, "c", "c", null, null, null, "a", "a", "_design/d", null]);
    let ids = |rows: &Value| {
        let rows = rows.as_array().unwrap();
        rows.iter().map(|row| row["doc"].get("_id").cloned().unwrap_or_default()).collect::<Value>()
    };
    let all = rows(&server, "v?include_docs=true&conflicts=true&attachments=true").await;
    assert_eq!(ids(&all), expected);
    assert_eq!(each(&all, "/id"), json!(vec!["a"; 13]), "the row is the emitting document's");
    assert_eq!((&all[4]["doc"]["_rev"], &all[5]["doc"]["_rev"]), (&json!("1-aa"), &json!("1-bb")));
    assert_eq!(all[5]["doc"]["_conflicts"], json!(["1-aa"]));
    assert_eq!(all[0]["doc"]["_attachments"]["f"]["data"], "aGk=");
    // Every way to read rows brings the same.
    let keys = json!({"keys": [5, 0, 1]});
    let posted = server.ask("POST", "/db/_design/d/_view/v?include_docs=true", keys).await.expect(200).json();
    assert_eq!(ids(&posted["rows"]), json!(["c", "b", null]));
    let some = rows(&server, "r?reduce=false&include_docs=true&descending=true&startkey=5&endkey=4").await;
    assert_eq!(ids(&some), json!(["c", "c"]));
    let queries = json!({"queries": [{"key": 0, "include_docs": true}, {"key": 0}]});
    let several = server.ask("POST", "/db/_design/d/_view/v/queries", queries).await.expect(200).json();
    assert_eq!(ids(&several["results"][0]["rows"]), json!(["b"]));
    assert_eq!(several["results"][1]["rows"][0].get("doc"), None);
    // A tombstone is read by its revision.
    let deleted = json!({"_id": "t", "_rev": "2-cc", "_deleted": true, "_revisions": {"start": 2, "ids": ["cc", "aa"]}});
    server.ask("POST", "/db/_bulk_docs", json!({"new_edits": false, "docs": [deleted]})).await.expect(201);
    let links = json!({"links": [{"_id": "t"}, {"_id": "t", "_rev": "2-cc"}]});
    server.ask("PUT", "/db/z", links).await.expect(201);
    let all = rows(&server, "v?include_docs=true&startkey=0&startkey_docid=z&limit=1").await;
    assert_eq!(all[0]["doc"], Value::Null);
    let all = rows(&server, "v?include_docs=true&startkey=1&startkey_docid=z&limit=1").await;
    assert_eq!(all[0]["doc"]["_deleted"], true, "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_linked_document_is_read_with_the_rights_of_its_reader() {
    let server = Server::start().await;
    let map = "function (doc) { if (doc.links) doc.links.forEach(function (link, n) { emit(n, link) }) }";
    let links =
        json!([{"_id": "secret"}, {"_id": "c"}, {"_id": "c", "_rev": "1-bb"}, {"_id": "c", "_rev": "1-aa"}]);
    let docs = json!([{"_id": "a", "links": links}, {"_id": "secret", "Readers": ["ada"]}]);
    let conflicts = json!({"map": "function (doc) { if (doc._conflicts) emit(doc._conflicts) }"});
    with_views(&server, docs, json!({}), json!({"v": {"map": map}, "conflicts": conflicts})).await;
    let list = json!({"default": {"level": "editor"}, "anonymous": {"level": "no_access"}, "entries": []});
    server.ask("PUT", "/db/_acl", list).await.expect(201);
    let leaves = json!([{"_id": "c", "_rev": "1-aa", "Readers": ["ada"]}, {"_id": "c", "_rev": "1-bb"}]);
    server.ask("POST", "/db/_bulk_docs", json!({"new_edits": false, "docs": leaves})).await.expect(201);
    server.ask("POST", "/db/_index", json!({"index": {"fields": ["_conflicts"]}})).await.expect(200);
    for (person, expected) in
        [("ada", json!(["secret", "c", "c", "c"])), ("bob", json!([null, "c", "c", null]))]
    {
        let path = "/db/_design/d/_view/v?include_docs=true&conflicts=true";
        let answer = server.ask_as(person, "GET", path, ()).await.expect(200).json();
        let ids = answer["rows"].as_array().unwrap().iter();
        let ids: Value = ids.map(|row| row["doc"].get("_id").cloned().unwrap_or_default()).collect();
        assert_eq!(ids, expected, "{person}");
        if person == "bob" {
            assert!(
                !answer.to_string().replace(r#""_rev":"1-aa"},"doc":null"#, "").contains("\"_conflicts\"")
            );
        }
        // What not everybody may read who reads the document is in no index.
        let path = "/db/_design/d/_view/conflicts";
        let answer = server.ask_as(person, "GET", path, ()).await.expect(200).json();
        assert_eq!(answer["rows"], json!([]), "{person}");
    }
    let query = json!({"selector": {"_conflicts": {"$exists": true}}, "use_index": []});
    let found = server.ask_as("bob", "POST", "/db/_find", query).await.expect(200).json();
    assert_eq!(found["docs"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_are_seen_by_map_functions_and_queries() {
    let server = Server::start().await;
    let map = "function (doc) { emit(doc._id, [doc._conflicts || 0, doc._deleted_conflicts || 0]) }";
    with_views(&server, json!([{"_id": "a"}]), json!({}), json!({"v": {"map": map}})).await;
    server.ask("PUT", "/db/c", json!({"_id": "c"})).await.expect(201);
    let first = server.ask("GET", "/db/c", ()).await.json()["_rev"].as_str().unwrap().to_owned();
    server.ask("POST", "/db/_index", json!({"index": {"fields": ["_conflicts"]}})).await.expect(200);
    assert_eq!(each(&rows(&server, "v").await, "/value"), json!([[0, 0], [0, 0]]));
    let find_with = async |selector: Value, conflicts: bool| {
        let query = json!({"selector": selector, "conflicts": conflicts});
        let answer = server.ask("POST", "/db/_find", query).await.expect(200).json();
        each(&answer["docs"], "/_id")
    };
    let find = async |selector: Value| find_with(selector, false).await;
    assert_eq!(find(json!({"_conflicts": {"$exists": true}})).await, json!([]));
    // A leaf that loses changes the entries of the document.
    let leaf = |rev: &str| json!({"new_edits": false, "docs": [{"_id": "c", "_rev": rev}]});
    server.ask("POST", "/db/_bulk_docs", leaf("1-0a")).await.expect(201);
    assert_eq!(each(&rows(&server, "v").await, "/value"), json!([[0, 0], [["1-0a"], 0]]));
    assert_eq!(find(json!({"_conflicts": {"$exists": true}})).await, json!(["c"]));
    assert_eq!(find(json!({"_conflicts": ["1-0a"]})).await, json!(["c"]));
    // Where no index on them is read, they have to be asked for.
    let sized = json!({"$or": [{"_conflicts": {"$size": 1}}, {"x": 1}], "_id": {"$gt": "b"}});
    assert_eq!(find_with(sized.clone(), true).await, json!(["c"]));
    assert_eq!(find_with(sized, false).await, json!([]));
    let sorted =
        json!({"selector": {"_conflicts": {"$gt": null}}, "sort": ["_conflicts"], "fields": ["_id"]});
    let answer = server.ask("POST", "/db/_find", sorted).await.expect(200).json();
    assert_eq!(answer["docs"], json!([{"_id": "c"}]));
    server.ask("DELETE", "/db/c?rev=1-0a", ()).await.expect(200);
    let values = each(&rows(&server, "v").await, "/value");
    assert_eq!(values[1][0], 0);
    assert!(values[1][1][0].as_str().unwrap().starts_with("2-"), "{values}");
    assert_eq!(find(json!({"_conflicts": {"$exists": true}})).await, json!([]));
    assert_ne!(first, "1-0a");
    // A view that is built of documents that have conflicts already sees the same.
    conflict(&server).await;
    let again = json!({"views": {"w": {"map": "function (doc) { emit(doc._conflicts) }"}}});
    server.ask("PUT", "/db/_design/e", again).await.expect(201);
    let built = server.ask("GET", "/db/_design/e/_view/w?startkey=[]", ()).await.expect(200).json();
    assert_eq!(built["rows"].as_array().unwrap().len(), 1, "{built}");
}

#[tokio::test(flavor = "multi_thread")]
async fn design_documents_say_what_their_map_functions_are_given() {
    let server = Server::start().await;
    let map = "function (doc) { emit(doc._id, doc._local_seq || null) }";
    let options = json!({"include_design": true, "local_seq": true});
    with_views(&server, json!([{"_id": "a"}]), options, json!({"v": {"map": map}})).await;
    let all = rows(&server, "v").await;
    assert_eq!(each(&all, "/key"), json!(["_design/d", "a"]));
    assert_eq!(each(&all, "/value"), json!([1, 2]));
    server.ask("PUT", "/db/_design/e", json!({"views": {"v": {"map": map}}})).await.expect(201);
    assert_eq!(each(&rows(&server, "v").await, "/key"), json!(["_design/d", "_design/e", "a"]));
    let plain = server.ask("GET", "/db/_design/e/_view/v", ()).await.expect(200).json();
    assert_eq!(plain["rows"], json!([{"id": "a", "key": "a", "value": null}]));
    let rev = server.ask("GET", "/db/_design/e", ()).await.json()["_rev"].as_str().unwrap().to_owned();
    server.ask("DELETE", &format!("/db/_design/e?rev={rev}"), ()).await.expect(200);
    assert_eq!(each(&rows(&server, "v").await, "/key"), json!(["_design/d", "a"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_one_key_and_document_lie_in_the_order_of_their_values() {
    let server = Server::start().await;
    let values = json!(["b", "B", "a", [2], [1, 0], {"b": 1}, {"a": 2}, true, null, false, 2, -1]);
    let map = "function (doc) { doc.values.forEach(function (value) { emit(1, value) }); emit(0, 'z'); emit(2, 0) }";
    let docs = json!([{"_id": "a", "values": values}, {"_id": "b", "values": ["y", "x"]}]);
    with_views(&server, docs, json!({}), json!({"v": {"map": map}})).await;
    let expected =
        json!([-1, 2, false, null, true, {"a": 2}, {"b": 1}, [1, 0], [2], "B", "a", "b", "x", "y"]);
    assert_eq!(each(&rows(&server, "v?key=1").await, "/value"), expected);
    assert_eq!(each(&rows(&server, "v?keys=[1]&skip=3&limit=2").await, "/value"), json!([null, true]));
    // Backward the documents come the other way round, each with its values in this order.
    let mut backward = expected.as_array().unwrap().clone();
    backward.rotate_right(2);
    let read = each(&rows(&server, "v?startkey=1&endkey=1&descending=true").await, "/value");
    assert_eq!(read, Value::from(backward.clone()));
    for skip in 0..=backward.len() {
        let read = rows(&server, &format!("v?key=1&descending=true&limit=3&skip={skip}")).await;
        assert_eq!(
            each(&read, "/value"),
            backward.iter().skip(skip).take(3).cloned().collect::<Value>(),
            "{skip}"
        );
    }
    // Pages lose none and give none twice.
    let (mut paged, mut from) = (Vec::new(), String::new());
    loop {
        let path = format!("/db/_design/d/_view/v?key=1&descending=true&limit=5&next=true{from}");
        let page = server.ask("GET", &path, ()).await.expect(200).json();
        paged.extend(each(&page["rows"], "/value").as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => from = format!("&from={next}"),
            None => break,
        }
    }
    assert_eq!(paged, backward);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_may_be_in_raw_order() {
    let server = Server::start().await;
    let docs: Value = (0..9).map(|n| json!({"_id": n.to_string()})).collect();
    let keys = r#"["a", "B", 1, null, [1, "b"], [1, "B"], {"k": 1}, true, "Ab"]"#;
    let map = format!("function (doc) {{ emit({keys}[doc._id]) }}");
    let raw = json!({"map": map, "reduce": "_count", "options": {"collation": "raw"}});
    with_views(&server, docs, json!({}), json!({"v": raw, "w": {"map": map}})).await;
    let expected = json!([1, null, true, {"k": 1}, [1, "B"], [1, "b"], "Ab", "B", "a"]);
    assert_eq!(each(&rows(&server, "v?reduce=false").await, "/key"), expected);
    let some = rows(&server, "v?reduce=false&startkey=\"B\"&endkey=\"a\"".replace('"', "%22").as_str()).await;
    assert_eq!(each(&some, "/key"), json!(["B", "a"]));
    assert_eq!(each(&rows(&server, "v?reduce=false&key=%22B%22").await, "/key"), json!(["B"]));
    let groups = rows(&server, "v?group_level=1").await;
    assert_eq!(groups[4], json!({"key": [1], "value": 2}));
    assert_eq!(groups.as_array().unwrap().len(), 8, "{groups}");
    let other = rows(&server, "w").await;
    assert_eq!(each(&other, "/key"), json!([null, true, 1, "a", "Ab", "B", [1, "b"], [1, "B"], {"k": 1}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_the_wrong_way_round_is_refused() {
    let server = Server::start().await;
    let views = json!({"v": {"map": "function (doc) { emit(doc.n) }", "reduce": "_count"}});
    with_views(&server, json!([{"_id": "a", "n": 1}, {"_id": "b", "n": 2}]), json!({}), views).await;
    for (query, turned) in [
        ("startkey=2&endkey=1", "true"),
        ("startkey=2&endkey=1&reduce=false", "true"),
        ("startkey=1&endkey=2&descending=true", "false"),
        ("startkey=[]&endkey=1&limit=0", "true"),
    ] {
        let refused =
            server.ask("GET", &format!("/db/_design/d/_view/v?{query}"), ()).await.expect(400).json();
        let reason = format!(
            "No rows can match your key range, reverse your start_key and end_key or set descending={turned}"
        );
        assert_eq!(refused, json!({"error": "query_parse_error", "reason": reason}), "{query}");
    }
    for query in
        ["startkey=1&endkey=1", "key=3", "startkey=1&endkey=1.0", "startkey=2&endkey=2&inclusive_end=false"]
    {
        server.ask("GET", &format!("/db/_design/d/_view/v?{query}"), ()).await.expect(200);
    }
    let all = server.ask("GET", "/db/_all_docs?startkey=%22b%22&endkey=%22a%22", ()).await.expect(200).json();
    assert_eq!(all["rows"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reduction_that_goes_wrong_costs_its_own_row() {
    let server = Server::start().await;
    let map = "function (doc) { emit(doc.n) }";
    let throws = "function (keys, values) { if (keys && keys[0][0] == 1) return keys.x.y; return 7 }";
    let grows = "function (keys) { var texts = []; for (var n = 0; n < 1000; n++) texts.push('text' + n); return texts }";
    let views = json!({"throws": {"map": map, "reduce": throws}, "grows": {"map": map, "reduce": grows}});
    with_views(&server, json!([{"_id": "a", "n": 1}, {"_id": "b", "n": 2}]), json!({}), views).await;
    let groups = rows(&server, "throws?group=true").await;
    assert_eq!(groups, json!([{"key": 1, "value": null}, {"key": 2, "value": 7}]));
    assert_eq!(rows(&server, "throws").await, json!([{"key": null, "value": null}]));
    let overflown = rows(&server, "grows").await;
    assert_eq!(overflown[0]["error"], "reduce_overflow_error");
    assert_eq!((&overflown[0]["key"], overflown[0].get("value")), (&Value::Null, None));
    assert!(overflown[0]["reason"].as_str().unwrap().starts_with("Reduce output must shrink more rapidly"));
    assert_eq!(rows(&server, "grows?reduce=false").await.as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_count_as_couchdb_counts_them() {
    let server = Server::start().await;
    let views = json!({"v": {"map": "function (doc) { emit(0, doc._id) }", "reduce": "_count"}});
    let docs = json!([{"_id": "a"}, {"_id": "b"}, {"_id": "c"}, {"_id": "d"}]);
    with_views(&server, docs, json!({}), views).await;
    // The address wins over the body, and a query of several over the address.
    for path in
        ["/db/_all_docs?limit=1", "/db/_design/d/_view/v?limit=1&reduce=false", "/db/_design_docs?limit=1"]
    {
        let answer = server.ask("POST", path, json!({"limit": 2})).await.expect(200).json();
        assert_eq!(answer["rows"].as_array().unwrap().len(), 1, "{path}");
    }
    let queries = json!({"queries": [{"limit": 2}, {}]});
    let several = server.ask("POST", "/db/_all_docs/queries?limit=1", queries).await.expect(200).json();
    let lengths = |n: usize| several["results"][n]["rows"].as_array().unwrap().len();
    assert_eq!((lengths(0), lengths(1)), (2, 1));
    // Ids bound the rows of each key.
    let keys = json!({"keys": [0, 0]});
    let path = "/db/_design/d/_view/v?reduce=false&startkey_docid=b&endkey_docid=c";
    let some = server.ask("POST", path, keys.clone()).await.expect(200).json();
    assert_eq!(each(&some["rows"], "/id"), json!(["b", "c", "b", "c"]));
    let path = "/db/_design/d/_view/v?reduce=false&startkey_docid=c&endkey_docid=b&descending=true";
    let some = server.ask("POST", path, json!({"keys": [0]})).await.expect(200).json();
    assert_eq!(each(&some["rows"], "/id"), json!(["c", "b"]));
    let path = "/db/_design/d/_view/v?reduce=false&endkey_docid=b&inclusive_end=false";
    let some = server.ask("POST", path, keys).await.expect(200).json();
    assert_eq!(each(&some["rows"], "/id"), json!(["a", "a"]));
    // Reduced reads say what they reach up to as well.
    for query in ["update_seq=true", "update_seq=true&group=true", "update_seq=true&reduce=false"] {
        let answer =
            server.ask("GET", &format!("/db/_design/d/_view/v?{query}"), ()).await.expect(200).json();
        assert!(answer["update_seq"].is_string(), "{query}: {answer}");
    }
    server.ask("PUT", "/db/_design/e", json!({})).await.expect(201);
    for query in ["", "?limit=0", "?key=%22_design/e%22"] {
        let answer = server.ask("GET", &format!("/db/_design_docs{query}"), ()).await.expect(200).json();
        assert_eq!(answer["total_rows"], 2, "{query}: {answer}");
    }
    let answer =
        server.ask("POST", "/db/_design_docs", json!({"keys": ["_design/e"]})).await.expect(200).json();
    assert_eq!(answer["total_rows"], 2);
    let empty =
        server.ask("POST", "/db/_design/d/_view/v?reduce=false&key=0", json!({"keys": []})).await.expect(200);
    assert_eq!(empty.json()["rows"], json!([]));
    for (path, body, reason) in [
        ("/db/_all_docs", json!({"keys": 1}), "`keys` body member must be an array."),
        ("/db/_design/d/_view/v", json!({"keys": "a"}), "`keys` body member must be an array."),
        ("/db/_design/d/_view/v?keys=1", json!({}), "`keys` must be an array of strings."),
        (
            "/db/_design/d/_view/v?group=false&group_level=1",
            json!({}),
            "Can't specify group=false and group_level>0 at the same time",
        ),
        ("/db/_design/d/_view/v?conflicts=true", json!({}), "`conflicts` is invalid for reduce views."),
        (
            "/db/_design/d/_view/v?group_level=1",
            json!({"keys": [0]}),
            "Multi-key fetches for reduce views must use `group=true`",
        ),
    ] {
        let refused = server.ask("POST", path, body).await.expect(400).json();
        assert_eq!(refused["reason"], reason, "{path}");
    }
    server.ask("POST", "/db/_design/d/_view/v", json!({"queries": []})).await.expect(400);
    let gone =
        server.ask("POST", "/db/_temp_view", json!({"map": "function (doc) {}"})).await.expect(410).json();
    assert_eq!(gone["error"], "gone");
    let info = server.ask("GET", "/db/_design/d/_info", ()).await.expect(200).json();
    assert!(info["view_index"]["collator_versions"][0].is_string(), "{info}");
}
