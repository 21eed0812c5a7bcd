//! One document: written, read, copied and deleted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use scrinium_maintenance::Compactor;
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

    let as_json = [("accept", "application/json")];
    let all = server.ask("GET", "/db/x?open_revs=all", as_json).await.expect(200).json();
    let mut numbers: Vec<&Value> = all.as_array().unwrap().iter().map(|found| &found["ok"]["n"]).collect();
    numbers.sort_by_key(|number| number.as_u64());
    assert_eq!(numbers, [&json!(2), &json!(3)]);
    let path = format!("/db/x?open_revs=[%22{second}%22,%227-abc%22]");
    let some = server.ask("GET", &path, as_json).await.expect(200).json();
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
async fn a_leaf_is_copied_with_its_own_attachments() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    for (revision, text) in [("1-a", "of the loser"), ("1-b", "of the winner")] {
        let data = STANDARD.encode(text);
        let attachments = json!({"a.txt": {"content_type": "text/plain", "data": data}});
        let document = json!({"_rev": revision, "text": text, "_attachments": attachments});
        server.ask("PUT", "/db/x?new_edits=false", document).await.expect(201);
    }
    for (query, text) in [("", "of the winner"), ("?rev=1-a", "of the loser"), ("?rev=1-b", "of the winner")]
    {
        let id = text.replace(' ', "-") + &query.len().to_string();
        server.ask("COPY", &format!("/db/x{query}"), [("destination", id.as_str())]).await.expect(201);
        assert_eq!(server.ask("GET", &format!("/db/{id}"), ()).await.expect(200).json()["text"], text);
        server.ask("GET", &format!("/db/{id}/a.txt"), ()).await.expect_text(200, text);
    }
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
    let stale = json!({"_rev": "0-9", "n": 3});
    assert_eq!(server.ask("PUT", "/db/_local/checkpoint", stale).await.expect(201).revision(), "0-10");
    assert_eq!(
        server.ask("GET", "/db/_local_docs", ()).await.expect(200).json()["rows"][0]["id"],
        "_local/checkpoint"
    );
    assert_eq!(server.ask("GET", "/db/_all_docs", ()).await.expect(200).json()["total_rows"], 0);
    let deleted = server.ask("DELETE", "/db/_local/checkpoint?rev=0-2", ()).await.expect(200).json();
    assert_eq!(deleted["rev"], "0-0");
    server.ask("GET", "/db/_local/checkpoint", ()).await.expect_error(404, "not_found", "missing");
    server.ask("DELETE", "/db/_local/checkpoint", ()).await.expect_error(404, "not_found", "missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_document_is_known_by_what_is_in_it() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let mut tags = Vec::new();
    for n in 1..3 {
        server.ask("PUT", "/db/_local/c", json!({"n": n})).await.expect(201);
        let read = server.ask("GET", "/db/_local/c", ()).await.expect(200);
        assert_eq!((&read.json()["_rev"], &read.json()["n"]), (&json!("0-1"), &json!(n)));
        let tag = read.header("etag").unwrap().to_owned();
        let known = [("if-none-match", tag.as_str())];
        server.ask("GET", "/db/_local/c", known).await.expect_text(304, "");
        tags.push(tag);
        let gone = json!({"_rev": "0-1", "_deleted": true});
        assert_eq!(server.ask("PUT", "/db/_local/c", gone).await.expect(201).revision(), "0-0");
        server.ask("GET", "/db/_local/c", ()).await.expect_error(404, "not_found", "missing");
    }
    assert_ne!(tags[0], tags[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn local_documents_are_the_same_by_every_way_and_have_no_attachments() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let none = "_local documents do not accept attachments.";
    for method in ["GET", "PUT", "DELETE"] {
        server.ask(method, "/db/_local/x/att", ()).await.expect_error(400, "bad_request", none);
        server.ask(method, "/db/_local%2Fx/att", ()).await.expect_error(400, "bad_request", none);
        let empty = "Invalid _local document id.";
        server.ask(method, "/db/_local/", ()).await.expect_error(400, "bad_request", empty);
    }
    let attached = json!({"_id": "_local/x", "_attachments": {"a": {"data": "QQ=="}}});
    server.ask("PUT", "/db/_local/x", attached.clone()).await.expect_error(400, "bad_request", none);
    server.ask("POST", "/db", attached).await.expect_error(400, "bad_request", none);

    let posted = server.ask("POST", "/db", json!({"_id": "_local/a/b", "n": 1})).await.expect(201);
    assert_eq!((posted.revision().as_str(), posted.header("location")), ("0-1", Some("/db/_local/a%2Fb")));
    for path in ["/db/_local/a%2Fb", "/db/_local%2Fa%2Fb"] {
        assert_eq!(server.ask("GET", path, ()).await.expect(200).json()["n"], 1);
    }
    let bulk = json!({"docs": [{"_id": "_local/a/b", "_rev": "0-5", "n": 2}, {"_id": "_local/é +", "n": 3},
        {"_id": "_local/never", "_deleted": true}]});
    let rows = server.ask("POST", "/db/_bulk_docs", bulk).await.expect(201).json();
    let revisions: Vec<_> = rows.as_array().unwrap().iter().map(|row| row["rev"].as_str().unwrap()).collect();
    assert_eq!(revisions, ["0-6", "0-1", "0-0"]);
    let asked =
        json!({"docs": [{"id": "_local/a/b"}, {"id": "_local/é +", "rev": "0-9"}, {"id": "_local/none"}]});
    let found = server.ask("POST", "/db/_bulk_get", asked).await.expect(200).json();
    let documents = [0, 1].map(|place: usize| found["results"][place]["docs"][0]["ok"]["n"].clone());
    assert_eq!(documents, [json!(2), json!(3)]);
    assert_eq!(found["results"][2]["docs"][0]["error"]["error"], "not_found");
    let info = server.ask("GET", "/db", ()).await.expect(200).json();
    assert_eq!((&info["doc_count"], &info["doc_del_count"]), (&json!(0), &json!(0)));
    assert_eq!(server.ask("GET", "/db/_changes", ()).await.expect(200).json()["results"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_are_named_in_one_place_or_agree() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let brought = server.ask("PUT", "/db/x?new_edits=false&rev=1-cc", json!({"n": 1})).await.expect(201);
    assert_eq!(brought.revision(), "1-cc");
    let related = "--b\r\nContent-Type: application/json\r\n\r\n{\"n\":2}\r\n--b--";
    let headers = [("content-type", "multipart/related;boundary=b")];
    let brought = server.ask("PUT", "/db/x?new_edits=false&rev=1-dd", (headers, related)).await.expect(201);
    assert_eq!(brought.revision(), "1-dd");
    server.ask("PUT", "/db/x?new_edits=false", json!({"n": 1})).await.expect(400);
    let differs = "Document rev from request body and query string have different values";
    let body = json!({"_rev": "1-dd"});
    server.ask("PUT", "/db/x?rev=1-cc", body).await.expect_error(400, "bad_request", differs);
    let tagged = (&[("if-match", "1-cc")][..], "{\"_rev\":\"1-dd\"}");
    let differs = "Document rev and etag have different values";
    server.ask("PUT", "/db/x", tagged).await.expect_error(400, "bad_request", differs);
    let tagged = (&[("if-match", "\"1-dd\"")][..], "{\"_rev\":\"1-dd\"}");
    assert!(server.ask("PUT", "/db/x", tagged).await.expect(201).revision().starts_with("2-"));
    let read = server.ask("GET", "/db/x?local_seq=true", ()).await.expect(200).json();
    assert_eq!(read["_local_seq"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lowered_limit_of_revisions_holds_at_once() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let mut revisions: Vec<String> = Vec::new();
    for n in 0..6 {
        let path =
            revisions.last().map_or_else(|| "/db/x".to_owned(), |revision| format!("/db/x?rev={revision}"));
        revisions.push(server.ask("PUT", &path, json!({"n": n})).await.expect(201).revision());
    }
    let told = async || {
        let read = server.ask("GET", "/db/x?revs=true&revs_info=true", ()).await.expect(200).json();
        let length = |value: &Value| value.as_array().unwrap().len();
        (length(&read["_revisions"]["ids"]), length(&read["_revs_info"]), read["_revisions"]["start"].clone())
    };
    assert_eq!(told().await, (6, 6, json!(6)));
    server.ask("PUT", "/db/_revs_limit", json!(3)).await.expect(200);
    assert_eq!(told().await, (3, 3, json!(6)));
    let known = async || {
        let asked = json!({"x": revisions});
        let missing = server.ask("POST", "/db/_revs_diff", asked).await.expect(200).json();
        6 - missing["x"]["missing"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(known().await, 6);
    Compactor::of(&server.databases).compact("db", &scrinium_maintenance::CompactOrder::default()).unwrap();
    assert_eq!(known().await, 3);
    assert_eq!(told().await, (3, 3, json!(6)));
    let next = server.ask("PUT", &format!("/db/x?rev={}", revisions[5]), json!({"n": 7})).await;
    assert!(next.expect(201).revision().starts_with("7-"));
    assert_eq!(told().await, (3, 3, json!(7)));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_identifiers_carry_what_clients_look_for() {
    let server = Server::start().await;
    let numbered = server.ask("GET", "/_up", [("x-couch-request-id", "client-4711")]).await.expect(200);
    assert_eq!(numbered.header("x-couch-request-id"), Some("client-4711"));
    for invented in ["a b", "a\u{e9}", &"x".repeat(37)] {
        let answer = server.ask("GET", "/_up", [("x-couch-request-id", invented)]).await.expect(200);
        assert_eq!(answer.header("x-couch-request-id").unwrap().len(), 10, "{invented}");
    }
    let uuids = async || server.ask("GET", "/_uuids?count=2", ()).await.expect(200);
    let (first, second) = (uuids().await, uuids().await);
    assert_eq!(first.header("expires"), Some("Fri, 01 Jan 1990 00:00:00 GMT"));
    assert!(first.header("etag").is_some() && first.header("etag") != second.header("etag"));
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_are_those_that_a_trusted_proxy_was_asked() {
    let port = scrinium_http::PortOptions {
        trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
        ..crate::common::local_port()
    };
    let server = Server::with(port, scrinium_database::DatabaseOptions::default()).await;
    let plain = Server::start().await;
    let forwarded = [("x-forwarded-host", "db.example"), ("x-forwarded-proto", "https")];
    for (server, expected) in [(&server, "https://db.example"), (&plain, "")] {
        let location = async |method: &str, path: &str| {
            let made = server.ask(method, path, (&forwarded[..], "{}")).await.expect(201);
            made.header("location").unwrap().to_owned()
        };
        assert_eq!(location("PUT", "/db").await, format!("{expected}/db"));
        assert_eq!(location("PUT", "/db/x").await, format!("{expected}/db/x"));
        assert_eq!(location("PUT", "/db/y/a.txt").await, format!("{expected}/db/y/a.txt"));
        assert_eq!(location("PUT", "/db/_design/d/a%2Fb").await, format!("{expected}/db/_design/d/a%2Fb"));
    }
    let ssl = [("x-forwarded-host", "db.example"), ("x-forwarded-ssl", "on")];
    let made = server.ask("PUT", "/db/z", (&ssl[..], "{}")).await.expect(201);
    assert_eq!(made.header("location"), Some("https://db.example/db/z"));
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
