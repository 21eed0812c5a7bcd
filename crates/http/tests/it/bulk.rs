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
    let wrong = json!({"docs": [{}, {"id": "a", "rev": "nonsense"}, {"id": "a", "rev": 7}, {"id": 5}, 6, {"id": "_x"},
        {"id": "a", "atts_since": ["nonsense"]}, {"id": "a"}]});
    let answered = server.ask("POST", "/db/_bulk_get", wrong).await.expect(200).json();
    let errors: Vec<&Value> =
        (0..7).map(|place| &answered["results"][place]["docs"][0]["error"]["error"]).collect();
    let bad = &json!("bad_request");
    let illegal = &json!("illegal_docid");
    assert_eq!(errors, [bad, bad, bad, illegal, bad, illegal, bad]);
    let missed = json!({"id": null, "rev": null, "error": "bad_request", "reason": "document id missed"});
    assert_eq!(answered["results"][0], json!({"id": null, "docs": [{"error": missed}]}));
    assert_eq!(answered["results"][7]["docs"][0]["ok"]["x"], 1);
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

/// Documents that are none: what CouchDB says of each.
fn unsound() -> [(Value, u16, &'static str, &'static str); 8] {
    [
        (
            json!({"_id": "_bad"}),
            400,
            "illegal_docid",
            "Only reserved document ids may start with underscore.",
        ),
        (json!({"_id": 7}), 400, "illegal_docid", "Document id must be a string"),
        (json!({"_id": ""}), 400, "illegal_docid", "Document id must not be empty"),
        (json!({"_zing": 4}), 400, "doc_validation", "Bad special document member: _zing"),
        (json!({"_rev": "nonsense"}), 400, "bad_request", "Invalid rev format"),
        (json!({"_rev": 1}), 400, "bad_request", "Invalid rev format"),
        (json!({"_attachments": {"a": {"data": "*"}}}), 400, "bad_request", "Invalid attachment data for a"),
        (
            json!({"_attachments": {"_a": {"data": ""}}}),
            400,
            "bad_request",
            "Attachment name '_a' starts with prohibited character '_'",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_stored_beside_a_document_that_is_none() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let long = "x".repeat(5 << 20);
    let several =
        [json!({"_id": "a", "x": long}), json!({"_id": "b", "x": long}), json!({"_id": "_local/l"})];
    // In one batch, and in several.
    for others in [vec![json!({"_id": "good"})], several.to_vec()] {
        for (document, status, error, reason) in unsound() {
            for at in [0, others.len()] {
                let mut documents = others.clone();
                documents.insert(at, document.clone());
                let body = json!({"docs": documents});
                server.ask("POST", "/db/_bulk_docs", body).await.expect_error(status, error, reason);
            }
        }
    }
    let unnamed = json!({"new_edits": false, "docs": [{"_id": "a", "_rev": "1-a"}, {"_id": "n"}]});
    server.ask("POST", "/db/_bulk_docs", unnamed).await.expect_error(
        400,
        "bad_request",
        "When `new_edits: false`, the document needs `_rev` or `_revisions` specified",
    );
    let info = server.ask("GET", "/db", ()).await.expect(200).json();
    assert_eq!((&info["doc_count"], &info["update_seq"].as_str().unwrap()[..2]), (&json!(0), "0-"));
    server.ask("GET", "/db/_local/l", ()).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_or_nothing_is_refused_and_not_ignored() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let body = json!({"all_or_nothing": true, "docs": [{"_id": "a"}, {"_id": "b", "_rev": "1-x"}]});
    let rows = server.ask("POST", "/db/_bulk_docs", body).await.expect(417).json();
    let row = |id: &str, revision: &str| json!({"id": id, "rev": revision, "error": "not_implemented", "reason": "all_or_nothing is not supported"});
    assert_eq!(rows, json!([row("a", "0-"), row("b", "1-x")]));
    server.ask("GET", "/db/a", ()).await.expect(404);
    let body = json!({"all_or_nothing": false, "docs": [{"_id": "a"}]});
    server.ask("POST", "/db/_bulk_docs", body).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stub_of_another_generation_is_none() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let attached = json!({"_attachments": {"a": {"data": "QQ=="}}});
    let revision = server.ask("PUT", "/db/x", attached).await.expect(201).revision();
    let stub =
        |revpos: u64| json!({"_rev": revision, "_attachments": {"a": {"stub": true, "revpos": revpos}}});
    server.ask("PUT", "/db/x", stub(2)).await.expect_error(
        412,
        "missing_stub",
        "Invalid attachment stub in x for a",
    );
    server.ask("PUT", "/db/x", stub(1)).await.expect(201);
    server.ask("GET", "/db/x/a", ()).await.expect_text(200, "A");
}
