//! One document: written, read, copied and deleted.

use serde_json::{Value, json};

use crate::common::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_document_lives_through_its_revisions() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let made = server.ask("PUT", "/db/a%2Fb", json!({"name": "Ada"})).await.expect(201);
    let first = made.revision();
    assert_eq!(made.text(), format!("{{\"ok\":true,\"id\":\"a/b\",\"rev\":\"{first}\"}}\n"));
    assert_eq!(made.header("etag"), Some(format!("\"{first}\"").as_str()));
    assert_eq!(made.header("location"), Some("/db/a%2Fb"));

    let read = server.ask("GET", "/db/a%2Fb", ()).await;
    let read = read.expect_text(200, &format!("{{\"_id\":\"a/b\",\"_rev\":\"{first}\",\"name\":\"Ada\"}}\n"));
    assert_eq!(read.header("etag"), Some(format!("\"{first}\"").as_str()));
    assert_eq!(read.header("content-type"), Some("application/json"));
    let known = [("if-none-match", format!("\"{first}\""))];
    let known = [(known[0].0, known[0].1.as_str())];
    server.ask("GET", "/db/a%2Fb", known).await.expect_text(304, "");
    server.ask("HEAD", "/db/a%2Fb", ()).await.expect_text(200, "");

    let conflict = "Document update conflict.";
    server.ask("PUT", "/db/a%2Fb", json!({"x": 1})).await.expect_error(409, "conflict", conflict);
    let second =
        server.ask("PUT", &format!("/db/a%2Fb?rev={first}"), json!({"x": 1})).await.expect(201).revision();
    assert!(second.starts_with("2-"));
    let body = (&[("if-match", first.as_str())][..], "{}");
    server.ask("PUT", "/db/a%2Fb", body).await.expect_error(409, "conflict", conflict);
    let both = (&[("if-match", first.as_str())][..], "{}");
    server.ask("PUT", &format!("/db/a%2Fb?rev={second}"), both).await.expect_error(
        400,
        "bad_request",
        "Document rev and etag have different values",
    );
    let body = (&[("if-match", second.as_str())][..], r#"{"x":2}"#);
    let third = server.ask("PUT", "/db/a%2Fb", body).await.expect(201).revision();
    server.ask("DELETE", "/db/a%2Fb", ()).await.expect_error(409, "conflict", conflict);
    let deleted = server.ask("DELETE", &format!("/db/a%2Fb?rev={third}"), ()).await.expect(200).revision();
    assert!(deleted.starts_with("4-"));
    server.ask("GET", "/db/a%2Fb", ()).await.expect_error(404, "not_found", "deleted");
    server.ask("DELETE", &format!("/db/a%2Fb?rev={deleted}"), ()).await.expect_error(
        404,
        "not_found",
        "deleted",
    );
    server.ask("GET", "/db/none", ()).await.expect_error(404, "not_found", "missing");
    server.ask("DELETE", "/db/none?rev=1-a", ()).await.expect_error(404, "not_found", "missing");
    server.ask("PUT", "/none/x", json!({})).await.expect_error(404, "not_found", "Database does not exist.");
    let again = server.ask("PUT", "/db/a%2Fb", json!({})).await.expect(201).revision();
    assert!(again.starts_with("5-"), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_without_an_id_gets_one() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let made = server.ask("POST", "/db", json!({"x": 1})).await.expect(201).json();
    let id = made["id"].as_str().unwrap();
    assert_eq!(id.len(), 32);
    assert_eq!(server.ask("GET", &format!("/db/{id}"), ()).await.expect(200).json()["x"], 1);
    let named = server.ask("POST", "/db", json!({"_id": "named"})).await.expect(201).json();
    assert_eq!(named["id"], "named");
    server.ask("POST", "/db", json!({"_id": "named"})).await.expect(409);
    server.ask("POST", "/db", ([("content-type", "text/plain")], "{}")).await.expect_error(
        415,
        "bad_content_type",
        "Content-Type must be application/json",
    );
    server.ask("PUT", "/db/x?batch=ok", json!({})).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_document_is_refused_with_couchdbs_words() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let put = async |path: &str, body: &'static str| server.ask("PUT", path, (&[][..], body)).await;
    put("/db/x", "[1]").await.expect_error(400, "bad_request", "Document must be a JSON object");
    put("/db/x", "{").await.expect_error(400, "bad_request", "invalid UTF-8 JSON");
    put("/db/x", "").await.expect(400);
    put("/db/x", "{\"_foo\":1}").await.expect_error(
        400,
        "doc_validation",
        "Bad special document member: _foo",
    );
    put("/db/_x", "{}").await.expect_error(
        400,
        "illegal_docid",
        "Only reserved document ids may start with underscore.",
    );
    put("/db/x?rev=nonsense", "{}").await.expect_error(400, "bad_request", "Invalid rev format");
    server.ask("GET", "/db/x?rev=nonsense", ()).await.expect(404);
    let illegal = put("/Db", "").await.expect(400).json();
    assert_eq!(illegal["error"], "illegal_database_name");
    assert!(
        illegal["reason"]
            .as_str()
            .unwrap()
            .starts_with("Name: 'Db'. Only lowercase characters (a-z), digits")
    );
    let refused = server.ask("POST", "/db/x/", json!({})).await;
    assert_eq!(refused.header("allow"), Some("DELETE,GET,HEAD,PUT,COPY"));
    refused.expect_error(405, "method_not_allowed", "Only DELETE,GET,HEAD,PUT,COPY allowed");
    let refused = server.ask("DELETE", "/_all_dbs", ()).await;
    assert_eq!(refused.header("allow"), Some("GET,HEAD"));
    refused.expect_error(405, "method_not_allowed", "Only GET,HEAD allowed");
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_and_conflicts_are_told() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let first = server.ask("PUT", "/db/x", json!({"n": 1})).await.expect(201).revision();
    let second = server.ask("PUT", "/db/x", json!({"_rev": first, "n": 2})).await.expect(201).revision();
    let other = json!({"_rev": "2-00000000000000000000000000000000", "n": 3,
        "_revisions": {"start": 2, "ids": ["00000000000000000000000000000000", first[2..]]}});
    server.ask("PUT", "/db/x?new_edits=false", other).await.expect(201);

    let meta = server.ask("GET", "/db/x?meta=true&revs=true", ()).await.expect(200);
    assert_eq!(meta.header("etag"), None);
    let meta = meta.json();
    assert_eq!(meta["_rev"], json!(second));
    assert_eq!(meta["_conflicts"], json!(["2-00000000000000000000000000000000"]));
    assert_eq!(meta["_revisions"], json!({"start": 2, "ids": [second[2..], first[2..]]}));
    assert_eq!(meta["_revs_info"][0], json!({"rev": second, "status": "available"}));

    let all = server.ask("GET", "/db/x?open_revs=all", ()).await.expect(200).json();
    let mut numbers: Vec<&Value> = all.as_array().unwrap().iter().map(|found| &found["ok"]["n"]).collect();
    numbers.sort_by_key(|number| number.as_u64());
    assert_eq!(numbers, [&json!(2), &json!(3)]);
    let path = format!("/db/x?open_revs=[%22{second}%22,%227-abc%22]");
    let some = server.ask("GET", &path, ()).await.expect(200).json();
    assert_eq!((&some[0]["ok"]["n"], &some[1]), (&json!(2), &json!({"missing": "7-abc"})));
    let latest = server.ask("GET", &format!("/db/x?rev={first}&latest=true"), ()).await.expect(200).json();
    assert_eq!(latest["_rev"], json!(second));
    server.ask("GET", &format!("/db/x?rev={first}"), ()).await.expect_error(404, "not_found", "missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_copied() {
    let server = Server::start().await;
    server.fill("db", &[json!({"_id": "a", "x": 1}), json!({"_id": "c", "x": 3})]).await;
    let copied = server.ask("COPY", "/db/a", [("destination", "b")]).await.expect(201).json();
    assert_eq!(copied["id"], "b");
    assert_eq!(server.ask("GET", "/db/b", ()).await.expect(200).json()["x"], 1);
    server.ask("COPY", "/db/a", [("destination", "c")]).await.expect(409);
    let revision = server.ask("GET", "/db/c", ()).await.json()["_rev"].as_str().unwrap().to_owned();
    let destination = format!("c?rev={revision}");
    server.ask("COPY", "/db/a", [("destination", destination.as_str())]).await.expect(201);
    assert_eq!(server.ask("GET", "/db/c", ()).await.expect(200).json()["x"], 1);
    server.ask("COPY", "/db/a", ()).await.expect_error(
        400,
        "bad_request",
        "Destination header is mandatory for COPY.",
    );
    server.ask("COPY", "/db/none", [("destination", "d")]).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn local_documents_stay_here() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let made = server.ask("PUT", "/db/_local/checkpoint", json!({"n": 1})).await.expect(201).json();
    assert_eq!(made, json!({"ok": true, "id": "_local/checkpoint", "rev": "0-1"}));
    let read = server.ask("GET", "/db/_local/checkpoint", ()).await.expect(200).json();
    assert_eq!(read, json!({"_id": "_local/checkpoint", "_rev": "0-1", "n": 1}));
    let again = json!({"_rev": "0-1", "n": 2});
    assert_eq!(server.ask("PUT", "/db/_local/checkpoint", again).await.expect(201).revision(), "0-2");
    assert_eq!(
        server.ask("GET", "/db/_local_docs", ()).await.expect(200).json()["rows"][0]["id"],
        "_local/checkpoint"
    );
    assert_eq!(server.ask("GET", "/db/_all_docs", ()).await.expect(200).json()["total_rows"], 0);
    server.ask("DELETE", "/db/_local/checkpoint?rev=0-2", ()).await.expect(200);
    server.ask("GET", "/db/_local/checkpoint", ()).await.expect_error(404, "not_found", "missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_takes_leaves_away_as_if_they_had_never_been() {
    let server = Server::start().await;
    server.fill("db", &[json!({"_id": "x", "secret": 1}), json!({"_id": "y"})]).await;
    let views = json!({"language": "formula", "views": {"all": {"selection": "SELECT @All", "columns": []}}});
    server.ask("PUT", "/db/_design/d", views).await.expect(201);
    let rows = || async {
        server.ask("GET", "/db/_design/d/_view/all", ()).await.expect(200).json()["total_rows"].clone()
    };
    assert_eq!(rows().await, 2);
    let revision = server.ask("GET", "/db/x", ()).await.expect(200).json()["_rev"].clone();
    let wanted = json!({"x": [revision, "1-never"], "never": ["1-a"]});
    server.ask_as("ada", "POST", "/db/_purge", wanted.clone()).await.expect(401);
    let purged = server.ask("POST", "/db/_purge", wanted).await.expect(201).json();
    assert_eq!(purged, json!({"purge_seq": null, "purged": {"x": [revision], "never": []}}));
    server.ask("GET", "/db/x", ()).await.expect(404);
    let old = format!("/db/x?rev={}", revision.as_str().unwrap());
    server.ask("GET", &old, ()).await.expect_error(404, "not_found", "missing");
    assert_eq!(rows().await, 1);
    server.ask("POST", "/db/_purge", json!({"x": "1-a"})).await.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_of_writing_takes_and_refuses_the_same() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let json_type = [("content-type", "application/json")];
    let document = |depth: usize| {
        let levels = depth - 1;
        format!("{{\"_id\":\"d\",\"v\":{}1{}}}", "[".repeat(levels), "]".repeat(levels))
    };
    for (depth, is_taken) in [(127, true), (128, true), (129, true), (512, true), (513, false)] {
        let database = format!("/d{depth}");
        let related = [
            b"--b\r\nContent-Type: application/json\r\n\r\n".to_vec(),
            document(depth).into_bytes(),
            b"\r\n--b--".to_vec(),
        ]
        .concat();
        let bulk = format!("{{\"new_edits\":true,\"docs\":[{}]}}", document(depth));
        for (method, path, headers, body) in [
            ("PUT", "/d", json_type, document(depth).into_bytes()),
            ("POST", "", json_type, document(depth).into_bytes()),
            ("POST", "/_bulk_docs", json_type, bulk.into_bytes()),
            ("PUT", "/d", [("content-type", "multipart/related;boundary=b")], related),
        ] {
            server.ask("PUT", &database, ()).await.expect(201);
            let answer = server.ask(method, &format!("{database}{path}"), (headers, body)).await;
            let answered = answer.status == 201 && !answer.text().contains("\"error\"");
            assert_eq!(answered, is_taken, "{method} {path} {depth}: {}", answer.text());
            assert_eq!(server.ask("GET", &format!("{database}/d"), ()).await.status == 200, is_taken);
            server.ask("DELETE", &database, ()).await.expect(200);
        }
    }
    let bulk = json!({"docs": [{"_id": "a"}, {"_id": "_local/x", "n": 1}, {"_id": "b"}]});
    let rows = server.ask("POST", "/db/_bulk_docs", bulk).await.expect(201).json();
    let ids: Vec<_> = rows.as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
    assert_eq!((ids, &rows[1]["rev"]), (vec![json!("a"), json!("_local/x"), json!("b")], &json!("0-1")));
    assert_eq!(server.ask("GET", "/db/_local/x", ()).await.expect(200).json()["n"], 1);
    let listed = server.ask("GET", "/db/_all_docs", ()).await.expect(200).json();
    assert_eq!(listed["rows"].as_array().unwrap().len(), 2);
    server.ask("DELETE", "/db/_local/x?rev=0-1", ()).await.expect(200);
    let long = "x".repeat(7169);
    server.ask("PUT", &format!("/db/{long}/file"), (&[][..], "x")).await.expect(400);
}
