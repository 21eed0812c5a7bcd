//! Words are found: of a database as a whole, by the functions of a design document, and by a Mango query.

use serde_json::{Value, json};

use crate::common::Server;

async fn with_full_text(name: &str) -> Server {
    let server = Server::start().await;
    server.ask("PUT", &format!("/{name}"), ()).await.expect(201);
    let kept = server.ask("PUT", &format!("/{name}/_properties"), json!({"full_text": true})).await;
    assert_eq!(kept.expect(200).json()["full_text"], true);
    server
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["hits"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect()
}

async fn found(server: &Server, query: &Value) -> Value {
    server.ask("POST", "/db/_fulltext", query.clone()).await.expect(200).json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_found_at_once_after_each_write() {
    let server = with_full_text("db").await;
    let asked = json!({"q": "granite"});
    for round in 0..5 {
        let revision = if round == 0 {
            String::new()
        } else {
            let document = server.ask("GET", "/db/one", ()).await.expect(200).json();
            format!("?rev={}", document["_rev"].as_str().unwrap())
        };
        let path = format!("/db/one{revision}");
        let body = json!({"Subject": "Quarry", "Body": "A block of granite"});
        server.ask("PUT", &path, body).await.expect(201);
        assert_eq!(ids(&found(&server, &asked).await), ["one"], "written");
        let document = server.ask("GET", "/db/one", ()).await.expect(200).json();
        let path = format!("/db/one?rev={}", document["_rev"].as_str().unwrap());
        server.ask("PUT", &path, json!({"Body": "A block of marble"})).await.expect(201);
        assert!(ids(&found(&server, &asked).await).is_empty(), "changed");
        assert_eq!(ids(&found(&server, &json!({"q": "marble"})).await), ["one"]);
    }
    let document = server.ask("GET", "/db/one", ()).await.expect(200).json();
    let path = format!("/db/one?rev={}", document["_rev"].as_str().unwrap());
    server.ask("DELETE", &path, ()).await.expect(200);
    assert!(ids(&found(&server, &json!({"q": "marble"})).await).is_empty(), "deleted");
    server.ask("POST", "/db/_purge", json!({"one": [document["_rev"]]})).await.expect(201);
    assert!(ids(&found(&server, &json!({"q": "*:*"})).await).is_empty(), "purged");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_are_found_by_field_phrase_range_and_language() {
    let server = with_full_text("db").await;
    let attachment = json!({"n.txt": {"content_type": "text/plain", "data": "b2JzaWRpYW4="}});
    let documents = json!({"docs": [
        {"_id": "a", "Subject": "Invoices for March", "PostedDate": "2026-03-02T10:00:00Z", "amount": 12.5, "Form": "Memo"},
        {"_id": "b", "Subject": "The invoice you asked for", "PostedDate": "2026-04-02", "amount": 99, "_attachments": attachment},
        {"_id": "c", "Subject": "Rechnung", "Body": "<html><body><p>Grüße aus <b>Köln</b></p></body></html>",
         "tags": ["red", "green"], "person": {"name": "Zoë"}},
    ]});
    server.ask("POST", "/db/_bulk_docs", documents).await.expect(201);
    let cases: [(&str, &[&str]); 12] = [
        ("invoice", &["a", "b"]),
        ("Subject:invoices", &["a", "b"]),
        ("\"invoice you asked\"", &["b"]),
        ("\"asked invoice\"~4", &["b"]),
        ("grusse AND koln", &["c"]),
        ("amount:[10 TO 50]", &["a"]),
        ("invoi*", &["a", "b"]),
        ("invoice -march", &["b"]),
        ("tags:green", &["c"]),
        ("person.name:zoe", &["c"]),
        ("Form:Memo", &["a"]),
        ("n.txt", &["b"]),
    ];
    for (query, wanted) in cases {
        let answer = found(&server, &json!({"q": query, "all_words": true})).await;
        let mut ids = ids(&answer);
        ids.sort_unstable();
        assert_eq!(ids, wanted, "{query}");
    }
    let by_date = found(&server, &json!({"q": "invoice", "sort": "-PostedDate", "include_docs": true})).await;
    assert_eq!(ids(&by_date), ["b", "a"]);
    assert_eq!(by_date["hits"][1]["doc"]["amount"], 12.5);
    let snippet = found(&server, &json!({"q": "march", "snippets": true})).await;
    let words = snippet["hits"][0]["snippet"].as_array().unwrap();
    assert!(words.iter().any(|part| part["match"] == true && part["text"] == "March"), "{words:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nouveau_answers_as_couchdb_does() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let function = "function (doc) {\n  if (!doc.title) return;\n  index('text', 'default', doc.title, {store: true});\n  \
        index('string', 'kind', doc.kind);\n  index('double', 'price', doc.price, {store: true});\n}";
    let design = json!({"nouveau": {"things": {"default_analyzer": "english", "index": function}}});
    server.ask("PUT", "/db/_design/search", design).await.expect(201);
    let documents: Vec<Value> = (0..60)
        .map(|n| json!({"_id": format!("t{n:02}"), "title": format!("Thing number {n}"), "kind": if n % 3 == 0 { "red" } else { "blue" }, "price": n}))
        .chain([json!({"_id": "none"}), json!({"_id": "odd", "title": {"a": 1}, "price": "x"})])
        .collect();
    server.ask("POST", "/db/_bulk_docs", json!({"docs": documents})).await.expect(201);
    let path = "/db/_design/search/_nouveau/things";
    let first =
        server.ask("GET", &format!("{path}?q=things&sort=%22-price%3Cdouble%3E%22&limit=40"), ()).await;
    let first = first.expect(200).json();
    assert_eq!(ids(&first)[..2], ["t59", "t58"]);
    assert_eq!(first["hits"][0]["fields"], json!({"default": "Thing number 59", "price": 59}));
    assert_eq!(
        first["hits"][0]["order"],
        json!([{"@type": "double", "value": 59.0}, {"@type": "string", "value": "t59"}])
    );
    let next = json!({"q": "things", "sort": ["-price<double>"], "limit": 40, "bookmark": first["bookmark"]});
    let next = server.ask("POST", path, next).await.expect(200).json();
    assert_eq!((ids(&next).len(), ids(&next)[0], ids(&next)[19]), (20, "t19", "t00"));
    let facets = json!({"q": "thing*", "counts": ["kind"], "exact_total": true, "ranges": {"price": [
        {"label": "cheap", "min": 0, "max": 10, "max_inclusive": false}, {"label": "dear", "min": 50}]}});
    let answer = server.ask("POST", path, facets).await.expect(200).json();
    assert_eq!(answer["counts"], json!({"kind": {"blue": 40, "red": 20}}));
    assert_eq!(answer["ranges"], json!({"price": {"cheap": 10, "dear": 10}}));
    assert_eq!((&answer["total_hits"], &answer["total_hits_relation"]), (&json!(60), &json!("EQUAL_TO")));
    let info = server.ask("GET", "/db/_design/search/_nouveau_info/things", ()).await.expect(200).json();
    assert_eq!(info["name"], "_design/search/things");
    assert_eq!(
        (&info["search_index"]["num_docs"], &info["search_index"]["pending_changes"]),
        (&json!(60), &json!(0))
    );
    server.ask("POST", "/db/_nouveau_cleanup", json!({})).await.expect(202);
    server.ask("GET", &format!("{path}?q=number"), ()).await.expect(200);
    server.ask("GET", path, ()).await.expect(400);
    server.ask("GET", &format!("{path}?q=%28"), ()).await.expect(400);
    server.ask("GET", &format!("{path}?q=a&limit=201"), ()).await.expect(400);
    server.ask("GET", "/db/_design/search/_nouveau/none?q=a", ()).await.expect(404);
    server.ask("GET", "/db/_design/none/_nouveau/things?q=a", ()).await.expect(404);
    server.ask("GET", "/db/_fulltext?q=a", ()).await.expect(404);
    let wrong = json!({"nouveau": {"w": {"index": "function ("}}});
    server.ask("PUT", "/db/_design/wrong", wrong).await.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_find_and_count_what_they_may_read() {
    let server = with_full_text("db").await;
    let list = json!({"default": {"level": "reader"}, "entries": []});
    server.ask("PUT", "/db/_acl", list).await.expect(201);
    let documents: Vec<Value> = (0..30)
        .map(|n| {
            let readers = if n % 3 == 0 { json!(["ada"]) } else { json!([]) };
            json!({"_id": format!("d{n}"), "word": "slate", "kind": if n % 3 == 0 { "secret" } else { "open" }, "Readers": readers})
        })
        .collect();
    server.ask("POST", "/db/_bulk_docs", json!({"docs": documents})).await.expect(201);
    let asked = json!({"q": "slate", "exact_total": true, "counts": ["kind"], "limit": 100});
    for (name, total, counts) in
        [("ada", 30, json!({"open": 20, "secret": 10})), ("bob", 20, json!({"open": 20}))]
    {
        let answer = server.ask_as(name, "POST", "/db/_fulltext", asked.clone()).await.expect(200).json();
        assert_eq!((ids(&answer).len(), &answer["total_hits"]), (total, &json!(total)), "{name}");
        assert_eq!(answer["counts"]["kind"], counts, "{name}");
    }
    // Names that change count at once.
    let document = server.ask("GET", "/db/d1", ()).await.expect(200).json();
    let path = format!("/db/d1?rev={}", document["_rev"].as_str().unwrap());
    server.ask("PUT", &path, json!({"word": "slate", "Readers": ["ada"]})).await.expect(201);
    let stale = json!({"q": "slate", "update": false, "limit": 100});
    for query in [stale, asked] {
        let answer = server.ask_as("bob", "POST", "/db/_fulltext", query).await.expect(200).json();
        assert!(!ids(&answer).contains(&"d1"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mango_query_finds_words_and_checks_the_rest() {
    let server = with_full_text("db").await;
    let documents: Vec<Value> = (0..250)
        .map(|n| json!({"_id": format!("m{n:03}"), "word": "basalt column", "n": n, "even": n % 2 == 0}))
        .collect();
    server.ask("POST", "/db/_bulk_docs", json!({"docs": documents})).await.expect(201);
    let mut seen = Vec::new();
    let mut bookmark = json!("nil");
    loop {
        let query = json!({"selector": {"$text": "column basalt", "even": true}, "fields": ["_id"], "limit": 30, "bookmark": bookmark});
        let answer = server.ask("POST", "/db/_find", query).await.expect(200).json();
        let docs = answer["docs"].as_array().unwrap().clone();
        if docs.is_empty() {
            break;
        }
        seen.extend(docs.iter().map(|doc| doc["_id"].as_str().unwrap().to_owned()));
        bookmark = answer["bookmark"].clone();
    }
    seen.sort();
    let wanted: Vec<String> = (0..250).step_by(2).map(|n| format!("m{n:03}")).collect();
    assert_eq!(seen, wanted);
    let sorted = json!({"selector": {"$and": [{"$text": "basalt"}, {"n": {"$lt": 100}}]}, "sort": [{"n": "desc"}], "limit": 2});
    let answer = server.ask("POST", "/db/_find", sorted.clone()).await.expect(200).json();
    assert_eq!(answer["docs"][0]["n"], 99);
    let explained = server.ask("POST", "/db/_explain", sorted).await.expect(200).json();
    assert_eq!(explained["index"]["type"], "text");
    server.ask("POST", "/db/_find", json!({"selector": {"$text": 7}})).await.expect(400);
    server.ask("PUT", "/plain", ()).await.expect(201);
    server.ask("POST", "/plain/_find", json!({"selector": {"$text": "x"}})).await.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn analyzers_show_what_they_make_of_a_text() {
    let server = Server::start().await;
    for (analyzer, text, tokens) in [
        ("standard", "Red Roses, ÄPFEL", json!(["red", "roses", "apfel"])),
        ("english", "red roses", json!(["red", "roses", "rose"])),
        ("keyword", "Red Roses", json!(["Red Roses"])),
        ("whitespace", "", json!([])),
    ] {
        let asked = json!({"analyzer": analyzer, "text": text});
        let answer = server.ask("POST", "/_nouveau_analyze", asked).await.expect(200).json();
        assert_eq!(answer, json!({"tokens": tokens}), "{analyzer}");
    }
    for wrong in [json!({"analyzer": "klingon", "text": "a"}), json!({"analyzer": "english"}), json!([])] {
        server.ask("POST", "/_nouveau_analyze", wrong).await.expect(400);
    }
    let asked = json!({"analyzer": "english", "text": "a"});
    let answer = server.ask_as("", "POST", "/_nouveau_analyze", asked).await;
    assert_eq!(answer.status, 401);
}
