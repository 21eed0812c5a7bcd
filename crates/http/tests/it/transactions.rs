//! `POST /_transaction`: who may do what, what holds, and what a refusal says.

use serde_json::{Value, json};

use crate::common::Server;

/// Stock that everybody may edit, orders that clerks make, and secrets of ada's.
async fn filled() -> (Server, String) {
    let server = Server::start().await;
    for (name, level) in [("stock", "editor"), ("orders", "depositor"), ("closed", "no_access")] {
        server.ask("PUT", &format!("/{name}"), ()).await.expect(201);
        let list = json!({"default": {"level": level}, "entries": []});
        server.ask("PUT", &format!("/{name}/_acl"), list).await.expect(201);
    }
    let hidden = json!({"_id": "hidden", "Readers": "ada", "count": 5});
    server.ask("PUT", "/stock/hidden", hidden).await.expect(201);
    server.ask("PUT", "/orders/_folder/Open", json!({})).await.expect(201);
    let revision = server.ask("PUT", "/stock/nails", json!({"count": 100})).await.expect(201).revision();
    (server, revision)
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_several_databases_are_stored_together() {
    let (server, revision) = filled().await;
    let wanted = json!({
        "conditions": [
            {"db": "stock", "id": "nails", "selector": {"count": {"$gte": 10}}},
            {"db": "stock", "id": "nails", "rev": revision},
            {"db": "stock", "id": "screws", "exists": false},
        ],
        "edits": [
            {"db": "orders", "doc": {"of": "nails", "count": 10}, "folders": {"add": ["Open"]}},
            {"db": "stock", "doc": {"_id": "nails", "_rev": revision, "count": 90}},
            {"db": "stock", "doc": {"_id": "screws", "count": 1e2}},
        ],
    });
    let stored = server.ask("POST", "/_transaction", wanted.clone()).await.expect(201).json();
    assert_eq!(stored["ok"], true);
    let results = stored["results"].as_array().unwrap();
    let databases: Vec<&Value> = results.iter().map(|result| &result["db"]).collect();
    assert_eq!(databases, ["orders", "stock", "stock"]);
    let order = format!("/orders/{}", results[0]["id"].as_str().unwrap());
    assert_eq!(server.ask("GET", &order, ()).await.expect(200).json()["count"], 10);
    let nails = server.ask("GET", "/stock/nails", ()).await.expect(200).json();
    assert_eq!((&nails["count"], &nails["_rev"]), (&json!(90), &results[1]["rev"]));
    let changes = server.ask("GET", "/stock/_changes", ()).await.json();
    let ids: Vec<&Value> =
        changes["results"].as_array().unwrap().iter().map(|change| &change["id"]).collect();
    assert_eq!(ids, ["hidden", "nails", "screws"]);
    assert_eq!(
        server.ask("GET", "/orders/_folder/Open", ()).await.json()["rows"].as_array().unwrap().len(),
        1
    );

    // The same once more meets other documents.
    let again = server.ask("POST", "/_transaction", wanted).await.expect(412).json();
    assert_eq!(again["error"], "precondition_failed");
    assert!(again["reason"].as_str().unwrap().starts_with("condition 1:"), "{again}");
    let conflict = json!({"edits": [
        {"db": "orders", "doc": {"_id": "o"}},
        {"db": "stock", "doc": {"_id": "nails", "_rev": revision}},
    ]});
    let refused = server.ask("POST", "/_transaction", conflict).await.expect(409).json();
    assert!(refused["reason"].as_str().unwrap().starts_with("edit 1:"), "{refused}");
    server.ask("GET", "/orders/o", ()).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_edit_needs_what_a_put_needs_and_conditions_tell_nothing() {
    let (server, _) = filled().await;
    let ask = async |body: Value| server.ask_as("bob", "POST", "/_transaction", body).await;
    let edit = |db: &str, doc: Value| json!({"edits": [{"db": db, "doc": doc}]});
    ask(edit("stock", json!({"_id": "mine"}))).await.expect(201);
    ask(edit("orders", json!({"_id": "mine"}))).await.expect(201);
    ask(edit("closed", json!({"_id": "mine"}))).await.expect(404);
    ask(edit("none", json!({"_id": "mine"}))).await.expect(404);
    ask(edit("stock", json!({"_id": "_design/mine"}))).await.expect(401);
    ask(edit("stock", json!({"_id": "_local/mine"}))).await.expect(400);
    server.ask_as("", "POST", "/_transaction", edit("stock", json!({}))).await.expect(401);
    // One that is refused takes the others with it.
    let mixed = json!({"edits": [
        {"db": "stock", "doc": {"_id": "other"}},
        {"db": "closed", "doc": {"_id": "other"}},
    ]});
    ask(mixed).await.expect(404);
    server.ask("GET", "/stock/other", ()).await.expect(404);
    // What bob may not read is not there for his conditions.
    let with = |condition: Value| json!({"conditions": [condition], "edits": [{"db": "stock", "doc": {}}]});
    for condition in [
        json!({"db": "stock", "id": "hidden", "exists": true}),
        json!({"db": "stock", "id": "hidden", "selector": {"count": 5}}),
        json!({"db": "stock", "id": "none", "exists": true}),
    ] {
        let refused = ask(with(condition)).await.expect(412).text();
        assert!(!refused.contains("count"), "{refused}");
    }
    ask(with(json!({"db": "stock", "id": "hidden", "exists": false}))).await.expect(201);
    // A depositor reads nothing.
    ask(with(json!({"db": "orders", "id": "mine", "exists": true}))).await.expect(403);
    // A design document's function is asked for each.
    let guard = "function (doc) { if (doc.evil) throw { forbidden: 'no evil' }; }";
    server.ask("PUT", "/stock/_design/guard", json!({"validate_doc_update": guard})).await.expect(201);
    let evil =
        json!({"edits": [{"db": "orders", "doc": {"_id": "good"}}, {"db": "stock", "doc": {"evil": true}}]});
    let refused = ask(evil).await.expect(403).json();
    assert_eq!(refused["reason"], "edit 1: no evil");
    server.ask("GET", "/orders/good", ()).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_transaction_is_said() {
    let (server, _) = filled().await;
    for body in [
        json!({}),
        json!({"edits": []}),
        json!({"edits": {}}),
        json!({"edits": [7]}),
        json!({"edits": [{"db": "stock"}]}),
        json!({"edits": [{"doc": {}}]}),
        json!({"edits": [{"db": 7, "doc": {}}]}),
        json!({"edits": [{"db": "stock", "doc": []}]}),
        json!({"edits": [{"db": "stock", "doc": {"_id": 7}}]}),
        json!({"edits": [{"db": "stock", "doc": {}, "other": 1}]}),
        json!({"edits": [{"db": "stock", "doc": {}, "folders": {"put": ["x"]}}]}),
        json!({"other": [], "edits": [{"db": "stock", "doc": {}}]}),
        json!({"conditions": [{"db": "stock", "id": "a"}], "edits": [{"db": "stock", "doc": {}}]}),
        json!({"conditions": [{"db": "stock", "id": "a", "exists": 1}], "edits": [{"db": "stock", "doc": {}}]}),
        json!({"conditions": [{"db": "stock", "id": "a", "exists": true, "rev": "1-a"}], "edits": [{"db": "stock", "doc": {}}]}),
        json!({"conditions": [{"db": "stock", "id": "a", "selector": 7}], "edits": [{"db": "stock", "doc": {}}]}),
    ] {
        let refused = server.ask("POST", "/_transaction", body.clone()).await;
        assert_eq!(refused.status, 400, "{body}: {}", refused.text());
    }
    let many: Vec<Value> = (0..1001).map(|n| json!({"db": "stock", "doc": {"n": n}})).collect();
    server.ask("POST", "/_transaction", json!({ "edits": many })).await.expect(400);
    server.ask("PUT", "/people", ()).await.expect(201);
    server.ask("GET", "/_transaction", ()).await.expect(405);
    server.ask("POST", "/_transaction", (&[][..], "{}")).await.expect(415);
}
