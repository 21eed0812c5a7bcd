//! Many documents in one request.

use serde_json::{Value, json};

use crate::common::Server;

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_stored_in_bulk_with_a_row_each() {
    let server = Server::start().await;
    server.fill("db", &[json!({"_id": "a"})]).await;
    let body = json!({"docs": [{"_id": "a"}, {"_id": "b", "x": 1}, {"x": 2}]});
    let rows = server.ask("POST", "/db/_bulk_docs", body).await.expect(201).json();
    assert_eq!(rows[0], json!({"id": "a", "error": "conflict", "reason": "Document update conflict."}));
    assert_eq!((&rows[1]["ok"], &rows[1]["id"]), (&json!(true), &json!("b")));
    assert_eq!(rows[2]["id"].as_str().unwrap().len(), 32);

    let replicated = json!({"new_edits": false, "docs": [
        {"_id": "r", "_rev": "3-cc", "_revisions": {"start": 3, "ids": ["cc", "bb", "aa"]}, "x": 1}]});
    server.ask("POST", "/db/_bulk_docs", replicated).await.expect_text(201, "[]\n");
    assert_eq!(
        server.ask("GET", "/db/r?revs=true", ()).await.json()["_revisions"]["ids"],
        json!(["cc", "bb", "aa"])
    );

    let many: Vec<Value> = (0..1200).map(|number| json!({"_id": format!("m{number:04}")})).collect();
    let rows = server.ask("POST", "/db/_bulk_docs", json!({"docs": many})).await.expect(201).json();
    let ids: Vec<&Value> = rows.as_array().unwrap().iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, many.iter().map(|document| &document["_id"]).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_request_that_is_none_is_refused() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    for (body, reason) in [
        (json!({}), "POST body must include `docs` parameter."),
        (json!({"docs": 1}), "`docs` parameter must be an array."),
        (json!({"docs": [], "new_edits": 1}), "`new_edits` parameter must be a boolean."),
        (json!({"docs": [1]}), "Document must be a JSON object"),
        (json!([]), "Request body must be a JSON object"),
    ] {
        server.ask("POST", "/db/_bulk_docs", body).await.expect_error(400, "bad_request", reason);
    }
    let plain = ([("content-type", "text/plain")], "{}");
    server.ask("POST", "/db/_bulk_docs", plain).await.expect(415);
    server.ask("POST", "/db/_bulk_docs", json!({"docs": []})).await.expect_text(201, "[]\n");
    server.ask("GET", "/db/_bulk_docs", ()).await.expect_error(
        405,
        "method_not_allowed",
        "Only POST allowed",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replicator_finds_what_is_missing() {
    let server = Server::start().await;
    server.fill("db", &[json!({"_id": "a"})]).await;
    let revision = server.ask("GET", "/db/a", ()).await.json()["_rev"].clone();
    let asked = json!({"a": [revision, "2-bb"], "b": ["1-aa"]});
    let missing = server.ask("POST", "/db/_revs_diff", asked.clone()).await.expect(200).json();
    let expected =
        json!({"a": {"missing": ["2-bb"], "possible_ancestors": [revision]}, "b": {"missing": ["1-aa"]}});
    assert_eq!(missing, expected);
    let missing = server.ask("POST", "/db/_missing_revs", asked).await.expect(200).json();
    assert_eq!(missing, json!({"missing_revs": {"a": ["2-bb"], "b": ["1-aa"]}}));
    server.ask("POST", "/db/_revs_diff", json!({"a": [revision]})).await.expect_text(200, "{}\n");
    server.ask("POST", "/db/_revs_diff", json!({"a": 1})).await.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_fetched_in_bulk() {
    let server = Server::start().await;
    server.fill("db", &[json!({"_id": "a", "x": 1})]).await;
    let revision = server.ask("GET", "/db/a", ()).await.json()["_rev"].clone();
    let asked =
        json!({"docs": [{"id": "a"}, {"id": "a", "rev": revision}, {"id": "a", "rev": "5-ee"}, {"id": "z"}]});
    let found = server.ask("POST", "/db/_bulk_get?revs=true", asked).await.expect(200).json();
    let whole = json!({"_id": "a", "_rev": revision, "x": 1,
        "_revisions": {"start": 1, "ids": [&revision.as_str().unwrap()[2..]]}});
    let error = |id: &str, rev: &str| json!({"error": {"id": id, "rev": rev, "error": "not_found", "reason": "missing"}});
    let expected = json!({"results": [
        {"id": "a", "docs": [{"ok": whole}]},
        {"id": "a", "docs": [{"ok": whole}]},
        {"id": "a", "docs": [error("a", "5-ee")]},
        {"id": "z", "docs": [error("z", "undefined")]},
    ]});
    assert_eq!(found, expected);
    server.ask("POST", "/db/_bulk_get", json!({})).await.expect_error(
        400,
        "bad_request",
        "Missing JSON list of 'docs'.",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_are_too_much_for_one_write_are_refused_and_go_in_parts() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    // Each is fine; together they are more than the log of these tests takes at once.
    let documents: Vec<Value> =
        (0..8).map(|number| json!({"_id": number.to_string(), "text": "x".repeat(900_000)})).collect();
    let body = |documents: &[Value]| json!({"docs": documents});
    let refused = server.ask("POST", "/db/_bulk_docs", body(&documents)).await.expect(413).json();
    assert_eq!(refused["error"], "too_large");
    assert!(refused["reason"].as_str().unwrap().contains("in several requests"), "{refused}");
    assert_eq!(server.ask("GET", "/db", ()).await.expect(200).json()["doc_count"], 0);
    for part in documents.chunks(2) {
        server.ask("POST", "/db/_bulk_docs", body(part)).await.expect(201);
    }
    assert_eq!(server.ask("GET", "/db", ()).await.expect(200).json()["doc_count"], 8);
}
