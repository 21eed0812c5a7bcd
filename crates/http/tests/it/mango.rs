//! Mango: indexes, queries and changes by a selector, as CouchDB answers them.

use serde_json::{Value, json};

use crate::common::{Answer, Server};

const DESIGN: &str = "_design/films";

async fn films() -> Server {
    let server = Server::start().await;
    let film = |id: &str, title: &str, year: u32| json!({"_id": id, "title": title, "year": year});
    let films = [
        film("a", "Alien", 1979),
        film("b", "Brazil", 1985),
        film("c", "Contact", 1997),
        film("d", "Dune", 1984),
        film("e", "Europa", 1991),
        json!({"_id": "untimed", "title": "Solaris"}),
    ];
    server.fill("db", &films).await;
    let index = json!({"index": {"fields": ["year"]}, "ddoc": "films", "name": "years"});
    server
        .ask("POST", "/db/_index", index)
        .await
        .expect_text(200, "{\"result\":\"created\",\"id\":\"_design/films\",\"name\":\"years\"}\n");
    server
}

async fn find(server: &Server, body: Value) -> Answer {
    server.ask("POST", "/db/_find", body).await
}

fn titles(answer: &Value) -> Vec<&str> {
    answer["docs"].as_array().unwrap().iter().map(|film| film["title"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn indexes_are_made_listed_and_deleted() {
    let server = films().await;
    let index = json!({"index": {"fields": ["year"]}, "ddoc": "_design/films", "name": "years"});
    let exists = server.ask("POST", "/db/_index", index).await.expect(200).json();
    assert_eq!(exists["result"], "exists");
    let several =
        json!({"index": {"fields": [{"title": "desc"}, {"year": "desc"}]}, "ddoc": "films", "name": "t"});
    server.ask("POST", "/db/_index", several).await.expect(200);
    let partial = json!({"index": {"fields": ["year"], "partial_filter_selector": {"year": {"$gt": 1980}}}});
    let named = server.ask("POST", "/db/_index", partial).await.expect(200).json();
    assert_eq!(named["id"].as_str().unwrap(), format!("_design/{}", named["name"].as_str().unwrap()));

    let listed = server.ask("GET", "/db/_index", ()).await.expect(200).json();
    assert_eq!(listed["total_rows"], 4);
    let special =
        json!({"ddoc": null, "name": "_all_docs", "type": "special", "def": {"fields": [{"_id": "asc"}]}});
    assert_eq!(listed["indexes"][0], special);
    let names = |listed: &Value| -> Vec<String> {
        let indexes = listed["indexes"].as_array().unwrap();
        indexes.iter().map(|index| index["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&listed)[2..], ["t", "years"]);
    let years = json!({"ddoc": DESIGN, "name": "years", "type": "json", "partitioned": false,
        "def": {"fields": [{"year": "asc"}]}});
    assert_eq!(listed["indexes"][3], years);
    let page = server.ask("GET", "/db/_index?skip=2&limit=1", ()).await.expect(200).json();
    assert_eq!((names(&page), &page["total_rows"]), (vec!["t".to_owned()], &json!(4)));
    let design = server.ask("GET", "/db/_design/films", ()).await.expect(200).json();
    assert_eq!(design["language"], "query");
    assert_eq!(design["views"]["years"]["map"]["fields"], json!({"year": "asc"}));

    server.ask("DELETE", "/db/_index/films/json/none", ()).await.expect_error(404, "not_found", "missing");
    server.ask("DELETE", "/db/_index/films/text/t", ()).await.expect_error(404, "not_found", "missing");
    server.ask("DELETE", "/db/_index/films/json/t", ()).await.expect_text(200, "{\"ok\":true}\n");
    server.ask("DELETE", "/db/_index/_design/films/json/years", ()).await.expect_text(200, "{\"ok\":true}\n");
    server.ask("GET", "/db/_design/films", ()).await.expect_error(404, "not_found", "deleted");
    let bulk = json!({"docids": [named["id"], "none"]});
    let deleted = server.ask("POST", "/db/_index/_bulk_delete", bulk).await.expect(200).json();
    assert_eq!(deleted["success"], json!([{"id": named["id"], "ok": true}]));
    assert_eq!(deleted["fail"], json!([{"id": "_design/none", "error": "not_found"}]));
    assert_eq!(server.ask("GET", "/db/_index", ()).await.json()["total_rows"], 1);
    server.ask("POST", "/db/_index/_bulk_delete", json!({"docids": 1})).await.expect_error(
        400,
        "invalid_bulk_docs",
        "Bulk Delete requires an array of non-null docids.",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_found_by_an_index() {
    let server = films().await;
    let eighties = json!({"year": {"$gte": 1980, "$lt": 1990}});
    let found = find(&server, json!({"selector": eighties, "fields": ["title"]})).await.expect(200);
    let text = found.text();
    let (documents, bookmark) = text.split_once("\"bookmark\": \"").unwrap();
    assert_eq!(documents, "{\"docs\":[\n{\"title\":\"Dune\"},\n{\"title\":\"Brazil\"}\n],\n");
    assert!(bookmark.ends_with("\"}\n") && !bookmark.starts_with("nil"), "{bookmark}");

    let sort = json!({"selector": {"year": {"$gt": 0}}, "sort": [{"year": "desc"}], "limit": 2});
    assert_eq!(titles(&find(&server, sort).await.expect(200).json()), ["Contact", "Europa"]);
    let whole = find(&server, json!({"selector": {"year": 1979}})).await.expect(200).json();
    assert_eq!(whole["docs"], json!([server.ask("GET", "/db/a", ()).await.json()]));
    assert_eq!(whole.get("warning"), None);

    let covering = json!({"selector": eighties, "fields": ["_id", "year"], "execution_stats": true});
    let covered = find(&server, covering.clone()).await.expect(200).json();
    assert_eq!(covered["docs"], json!([{"_id": "d", "year": 1984}, {"_id": "b", "year": 1985}]));
    let mut statistics = covered["execution_stats"].clone();
    assert!(statistics["execution_time_ms"].as_f64().unwrap() > 0.0);
    statistics.as_object_mut().unwrap().remove("execution_time_ms");
    let expected = json!({"total_keys_examined": 2, "total_docs_examined": 0,
        "total_quorum_docs_examined": 0, "results_returned": 2});
    assert_eq!(statistics, expected);
    let explained = server.ask("POST", "/db/_explain", covering).await.expect(200).json();
    assert_eq!((&explained["index"]["name"], &explained["covering"]), (&json!("years"), &json!(true)));
    assert_eq!((&explained["dbname"], &explained["limit"]), (&json!("db"), &json!(25)));

    let info = server.ask("GET", "/db/_design/films/_info", ()).await.expect(200).json();
    assert_eq!(
        (&info["view_index"]["language"], &info["view_index"]["entries"]),
        (&json!("query"), &json!(5))
    );
    let unindexed = json!({"selector": {"title": {"$regex": "^[AS]"}}, "fields": ["title"]});
    let unindexed = find(&server, unindexed).await.expect(200).json();
    assert_eq!(titles(&unindexed), ["Alien", "Solaris"]);
    assert_eq!(unindexed["warning"], "No matching index found, create an index to optimize query time.");
    let nothing = find(&server, json!({"selector": {"year": 2000}})).await;
    nothing.expect_text(200, "{\"docs\":[\n],\n\"bookmark\": \"nil\"}\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_follow_each_other_by_bookmark() {
    let server = films().await;
    let documents: Vec<Value> = (0..3000)
        .map(|number| json!({"_id": format!("n{number:04}"), "title": format!("{number:04}"), "year": 2000 + number}))
        .collect();
    server.ask("POST", "/db/_bulk_docs", json!({"docs": documents})).await.expect(201);
    for selector in [json!({"year": {"$gte": 2000}}), json!({"title": {"$lt": "9"}})] {
        let mut query = json!({"selector": selector, "limit": 1100, "fields": ["title"]});
        let mut all = Vec::new();
        loop {
            let page = find(&server, query.clone()).await.expect(200).json();
            if page["docs"] == json!([]) {
                assert_eq!(page["bookmark"], query["bookmark"]);
                break;
            }
            all.extend(titles(&page).into_iter().map(str::to_owned));
            query["bookmark"] = page["bookmark"].clone();
        }
        assert_eq!(all, (0..3000).map(|number| format!("{number:04}")).collect::<Vec<_>>());
    }
    let skipped = json!({"selector": {"year": {"$gte": 2000}}, "skip": 2999, "execution_stats": true});
    let skipped = find(&server, skipped).await.expect(200).json();
    assert_eq!(
        (titles(&skipped), &skipped["execution_stats"]["total_keys_examined"]),
        (vec!["2999"], &json!(1))
    );
    // More is looked at than one piece may hold, and nothing found.
    let nothing = json!({"selector": {"title": {"$regex": "none"}}, "execution_stats": true});
    let nothing = find(&server, nothing).await.expect(200).json();
    assert_eq!(
        (&nothing["docs"], &nothing["execution_stats"]["total_docs_examined"]),
        (&json!([]), &json!(3006))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_query_is_told() {
    let server = films().await;
    let refused = async |body: Value, status: u16, error: &str, reason: &str| {
        find(&server, body).await.expect_error(status, error, reason);
    };
    refused(json!({}), 400, "missing_required_key", "Missing required key: selector").await;
    refused(json!({"selector": {"a": {"$foo": 1}}}), 400, "invalid_operator", "Invalid operator: $foo").await;
    refused(
        json!({"selector": {"title": "x"}, "sort": ["title"]}),
        400,
        "no_usable_index",
        "No index exists for this sort, try indexing by the sort fields.",
    )
    .await;
    let bookmark = json!({"selector": {"year": 1}, "bookmark": "x"});
    refused(bookmark, 400, "invalid_bookmark", "Invalid bookmark value: \"x\"").await;
    refused(json!([]), 400, "bad_request", "Request body must be a JSON object").await;
    let deep = (0..140).fold(json!({"a": 1}), |selector, _| json!({"$and": [selector]}));
    let deep = find(&server, json!({"selector": deep})).await.expect(400).json();
    assert_eq!(deep["error"], "invalid_selector");
    server.ask("POST", "/db/_find", (&[][..], "{}")).await.expect(415);
    server.ask("GET", "/db/_find", ()).await.expect_error(405, "method_not_allowed", "Only POST allowed");
    server.ask("PUT", "/db/_index", json!({})).await.expect_error(
        405,
        "method_not_allowed",
        "Only GET,HEAD,POST allowed",
    );
    server.ask("POST", "/none/_find", json!({"selector": {}})).await.expect(404);
    let text = json!({"index": {"fields": ["a"]}, "type": "text"});
    server.ask("POST", "/db/_index", text).await.expect(503);
    let wide: Vec<String> = (0..57).map(|number| format!("f{number}")).collect();
    let wide = server.ask("POST", "/db/_index", json!({"index": {"fields": wide}})).await.expect(400).json();
    assert_eq!(wide["error"], "compilation_error");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_ask_and_administrators_index() {
    let server = films().await;
    let security =
        json!({"admins": {"names": ["bob"], "roles": []}, "members": {"names": ["ada"], "roles": []}});
    server.ask("PUT", "/db/_security", security).await.expect(200);
    let selector = json!({"selector": {"year": 1979}});
    let index = json!({"index": {"fields": ["title"]}, "ddoc": "d", "name": "n"});
    for path in ["/db/_find", "/db/_explain"] {
        server.ask_as("ada", "POST", path, selector.clone()).await.expect(200);
        server.ask_as("", "POST", path, selector.clone()).await.expect(401);
    }
    server.ask_as("ada", "GET", "/db/_index", ()).await.expect(200);
    let bulk = json!({"docids": ["d"]});
    for (method, path, body) in [
        ("POST", "/db/_index", index.clone()),
        ("DELETE", "/db/_index/films/json/years", json!({})),
        ("POST", "/db/_index/_bulk_delete", bulk.clone()),
    ] {
        server.ask_as("ada", method, path, body).await.expect_error(
            401,
            "unauthorized",
            "You are not a db or server admin.",
        );
    }
    server.ask_as("bob", "POST", "/db/_index", index).await.expect(200);
    server.ask_as("bob", "POST", "/db/_index/_bulk_delete", bulk).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_filtered_by_a_selector() {
    let server = films().await;
    let ids = |changes: &Value| -> Vec<String> {
        let changes = changes["results"].as_array().unwrap();
        changes.iter().map(|change| change["id"].as_str().unwrap().to_owned()).collect()
    };
    let ask = async |path: &str, selector: Value| {
        server
            .ask("POST", &format!("/db/_changes?filter=_selector{path}"), json!({"selector": selector}))
            .await
    };
    let eighties = json!({"year": {"$gte": 1980, "$lt": 1990}});
    let changes = ask("", eighties.clone()).await.expect(200).json();
    assert_eq!(ids(&changes), ["b", "d"]);
    assert_eq!(changes["pending"], 0);
    let limited = ask("&limit=1&include_docs=true", eighties).await.expect(200).json();
    assert_eq!(
        (ids(&limited), &limited["results"][0]["doc"]["title"]),
        (vec!["b".to_owned()], &json!("Brazil"))
    );
    let revision = server.ask("GET", "/db/a", ()).await.json()["_rev"].as_str().unwrap().to_owned();
    server.ask("DELETE", &format!("/db/a?rev={revision}"), ()).await.expect(200);
    let deleted = ask("", json!({"_deleted": true})).await.expect(200).json();
    assert_eq!((ids(&deleted), &deleted["results"][0]["deleted"]), (vec!["a".to_owned()], &json!(true)));
    let none = ask("&feed=longpoll&timeout=50", json!({"year": 1})).await.expect(200).json();
    assert!(ids(&none).is_empty());
    let many: Vec<Value> =
        (0..2500).map(|_| json!({"none": 1})).chain([json!({"_id": "one", "year": 1})]).collect();
    server.ask("POST", "/db/_bulk_docs", json!({"docs": many})).await.expect(201);
    for feed in ["", "&feed=longpoll&timeout=5000"] {
        assert_eq!(ids(&ask(feed, json!({"year": 1})).await.expect(200).json()), ["one"]);
    }

    ask("", json!({"a": {"$foo": 1}})).await.expect_error(400, "bad_request", "Invalid operator: $foo");
    let get = server.ask("GET", "/db/_changes?filter=_selector", ()).await;
    get.expect_error(400, "bad_request", "Selector must be passed in POST payload");
    let missing = server.ask("POST", "/db/_changes?filter=_selector", json!({})).await;
    missing.expect_error(400, "bad_request", "Selector must be specified in POST payload");
}
