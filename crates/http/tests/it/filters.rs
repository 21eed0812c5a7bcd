//! Filter functions and views as filters of `_changes`, in all feeds, and update functions.

use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::common::Server;

fn ids(changes: &Value) -> Vec<&str> {
    changes["results"].as_array().unwrap().iter().map(|change| change["id"].as_str().unwrap()).collect()
}

/// Documents of two kinds, one with two leaves of different kinds, one that ada alone may read, and one that is gone.
async fn filled() -> Server {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let list = json!({"default": {"level": "author"}, "entries": []});
    server.ask("PUT", "/db/_acl", list).await.expect(201);
    let design = json!({
        "lib": {"kinds": "exports.of = function (doc) { return doc.kind; };"},
        "filters": {
            "kind": "function (doc, req) {
                return doc._deleted || require('lib/kinds').of(doc) === (req.query.kind || JSON.parse(req.body).kind);
            }",
            "mine": "function (doc, req) { return doc.owner === req.userCtx.name; }",
            "broken": "function (doc) { if (doc.kind === 'memo') throw new Error('no memos'); return true; }",
            "jealous": "function (doc) { if (doc.Readers) throw new Error('for ' + doc.Readers); return true; }",
        },
        "views": {"tasks": {"map": "function (doc) { if (doc.kind === 'task') emit(null); else doc.no.where; }"}},
        "updates": {
            "bump": "function (doc, req) {
                if (!doc) return [{_id: req.id || req.uuid, n: 1, by: req.userCtx.name}, 'made'];
                doc.n = (doc.n || 0) + Number(req.form.by || 1);
                return [doc, {json: {n: doc.n}, headers: {'X-Was': doc._rev, 'Set-Cookie': 'AuthSession=mine'}}];
            }",
            "show": "function (doc, req) { return [null, {code: 203, body: JSON.stringify([doc, req])}]; }",
            "move": "function (doc, req) { return [{_id: req.query.to, _rev: req.query.rev, moved: true}, 'moved']; }",
            "odd": "function (doc, req) { return [{_id: 'odd'}, JSON.parse(req.body)]; }",
            "refuse": "function (doc, req) { throw { forbidden: 'not today' }; }",
            "image": "function () { return [null, {base64: 'AAEC', headers: {'Content-Type': 'image/png'}}]; }",
        },
    });
    server.ask("PUT", "/db/_design/d", design).await.expect(201);
    let formula = json!({"language": "formula", "views": {"memos": {
        "selection": "SELECT kind = \"memo\"", "columns": [{"title": "kind", "formula": "kind"}]}}});
    server.ask("PUT", "/db/_design/f", formula).await.expect(201);
    let docs = json!([
        {"_id": "task-1", "_rev": "1-a", "kind": "task", "owner": "bob"},
        {"_id": "memo-1", "_rev": "1-a", "kind": "memo", "owner": "ada"},
        {"_id": "hidden", "_rev": "1-a", "kind": "task", "Readers": "ada", "owner": "bob"},
        {"_id": "both", "_rev": "1-a", "kind": "memo"},
        {"_id": "both", "_rev": "1-b", "kind": "task"},
        {"_id": "gone", "_rev": "1-a", "_deleted": true},
    ]);
    let body = json!({"docs": docs, "new_edits": false});
    server.ask("POST", "/db/_bulk_docs", body).await.expect(201);
    server
}

async fn found(server: &Server, name: &str, query: &str) -> Vec<String> {
    let answer = server.ask_as(name, "GET", &format!("/db/_changes?{query}"), ()).await.expect(200);
    ids(&answer.json()).into_iter().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_and_views_filter_changes_for_each_reader() {
    let server = filled().await;
    let tasks = "filter=d/kind&kind=task";
    assert_eq!(found(&server, "ada", tasks).await, ["task-1", "hidden", "both", "gone"]);
    assert_eq!(found(&server, "bob", tasks).await, ["task-1", "both", "gone"]);
    assert_eq!(found(&server, "bob", "filter=d/mine").await, ["task-1"]);
    let encoded = format!("{tasks}&limit=1&include_docs=true");
    assert_eq!(found(&server, "bob", &encoded.replace("d/kind", "d%2Fkind")).await, ["task-1"]);
    let page = server.ask_as("bob", "GET", &format!("/db/_changes?{encoded}"), ()).await.json();
    let rest = format!("{tasks}&since={}", page["last_seq"].as_str().unwrap());
    assert_eq!(found(&server, "bob", &rest).await, ["both", "gone"]);
    assert_eq!(found(&server, "bob", &format!("{tasks}&descending=true")).await, ["gone", "both", "task-1"]);
    // Of the leaves, only those that pass.
    let memos = "/db/_changes?filter=d/kind&kind=memo&style=all_docs";
    let memos = server.ask_as("bob", "GET", memos, ()).await.expect(200).json();
    assert_eq!(ids(&memos), ["memo-1", "both", "gone"]);
    assert_eq!(memos["results"][1]["changes"], json!([{"rev": "1-a"}]));
    let posted = server.ask_as("bob", "POST", "/db/_changes?filter=d/kind", json!({"kind": "memo"})).await;
    assert_eq!(ids(&posted.expect(200).json()), ["memo-1", "gone"]);
    assert_eq!(found(&server, "bob", "filter=_view&view=d/tasks").await, ["task-1", "both"]);
    assert_eq!(found(&server, "ada", "filter=_view&view=d/tasks").await, ["task-1", "hidden", "both"]);
    assert_eq!(found(&server, "bob", "filter=_view&view=f/memos").await, ["memo-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_that_stay_open_are_filtered_too() {
    let server = filled().await;
    for feed in ["longpoll", "continuous", "eventsource"] {
        let path = format!("/db/_changes?filter=d/mine&feed={feed}&since=now&timeout=20000&limit=1");
        let (id, other) = (format!("mine-{feed}"), format!("other-{feed}"));
        let feed = async {
            let response = server.open_as("bob", "GET", &path, ()).await;
            let text = response.into_body().collect().await.unwrap().to_bytes();
            String::from_utf8(text.to_vec()).unwrap()
        };
        let (text, ()) = tokio::join!(feed, async {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            server.ask("PUT", &format!("/db/{other}"), json!({"owner": "ada"})).await.expect(201);
            server.ask("PUT", &format!("/db/{id}"), json!({"owner": "bob"})).await.expect(201);
        });
        assert!(text.contains(&id) && !text.contains(&other), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_filter_is_said() {
    let server = filled().await;
    let refused = async |query: &str| server.ask("GET", &format!("/db/_changes?{query}"), ()).await;
    refused("filter=_view").await.expect_error(
        400,
        "bad_request",
        "`view` filter parameter is not provided.",
    );
    let form = "`view` must be of the form `designname/viewname`";
    refused("filter=_view&view=x").await.expect_error(400, "bad_request", form);
    refused("filter=_view&view=d/none").await.expect_error(404, "not_found", "missing_named_view");
    refused("filter=nothing").await.expect(400);
    refused("filter=_nothing").await.expect(400);
    refused("filter=none/x").await.expect_error(404, "not_found", "missing");
    refused("filter=d/none").await.expect_error(404, "not_found", "missing json key: none");
    refused("filter=f/none").await.expect(404);
    let broken = refused("filter=d/broken").await.expect(400);
    assert!(broken.text().contains("no memos") && broken.text().contains("memo-1"), "{}", broken.text());
    // Who may not read the document does not learn that the function fails on it.
    refused("filter=d/jealous").await.expect(400);
    assert_eq!(found(&server, "bob", "filter=d/jealous").await.len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_gets_the_request_without_what_its_sender_logs_in_with() {
    let server = filled().await;
    let headers = [
        ("cookie", "AuthSession=abc; theme=dark"),
        ("content-type", "application/x-www-form-urlencoded"),
        ("x-auth-couchdb-token", "abc"),
    ];
    let path = "/db/_design/d/_update/show/memo-1?a=1";
    let answer = server.ask_as("bob", "POST", path, (&headers[..], "b=2&c=%20".to_owned())).await.expect(203);
    assert_eq!(answer.header("content-security-policy"), Some("sandbox"));
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    let told = answer.json();
    assert_eq!((&told[0]["_id"], &told[0]["kind"]), (&json!("memo-1"), &json!("memo")));
    let request = &told[1];
    assert_eq!(request["id"], "memo-1");
    assert_eq!((&request["method"], &request["peer"]), (&json!("POST"), &json!("127.0.0.1")));
    assert_eq!(request["path"], json!(["db", "_design", "d", "_update", "show", "memo-1"]));
    assert_eq!(request["raw_path"], path);
    assert_eq!((&request["query"], &request["form"]), (&json!({"a": "1"}), &json!({"b": "2", "c": " "})));
    assert_eq!((&request["body"], &request["cookie"]), (&json!("b=2&c=%20"), &json!({"theme": "dark"})));
    assert_eq!(request["userCtx"], json!({"db": "db", "name": "bob", "roles": request["userCtx"]["roles"]}));
    assert_eq!(request["info"]["db_name"], "db");
    assert!(request["info"]["doc_count"].is_null(), "bob does not see all documents");
    let names: Vec<&String> = request["headers"].as_object().unwrap().keys().collect();
    assert!(names.iter().any(|name| *name == "Content-Type") && names.iter().any(|name| *name == "Host"));
    let secret =
        |name: &&&String| ["Authorization", "Cookie", "X-Auth-Couchdb-Token"].contains(&name.as_str());
    assert_eq!(names.iter().find(secret), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_function_stores_as_its_caller_may() {
    let server = filled().await;
    let bump = "/db/_design/d/_update/bump";
    let made = server.ask_as("bob", "PUT", &format!("{bump}/new/one"), json!({})).await.expect(201);
    assert_eq!((made.text().as_str(), made.header("x-couch-id")), ("made", Some("new%2Fone")));
    let revision = made.header("x-couch-update-newrev").unwrap().to_owned();
    let read = server.ask("GET", "/db/new%2Fone", ()).await.expect(200).json();
    assert_eq!((&read["_rev"], &read["by"]), (&json!(revision), &json!("bob")));
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let bumped = server.ask_as("bob", "POST", &format!("{bump}/new/one"), (form, "by=4")).await;
    // bob is an author: without `Authors` naming him he edits nothing that is there, by a function as by PUT.
    let put = json!({"_rev": revision, "n": 5});
    let by_put = server.ask_as("bob", "PUT", "/db/new%2Fone", put).await;
    assert_eq!((bumped.status, bumped.text()), (by_put.status, by_put.text()));
    let bumped = server.ask("POST", &format!("{bump}/new/one"), (form, "by=4")).await.expect(201);
    assert_eq!(bumped.json(), json!({"n": 5}));
    assert_eq!((bumped.header("x-was"), bumped.header("set-cookie")), (Some(revision.as_str()), None));
    server.ask_as("bob", "POST", bump, ()).await.expect(201);

    // What bob may not read is not there for his functions, and is not written over.
    let shown =
        server.ask_as("bob", "POST", "/db/_design/d/_update/show/hidden", ()).await.expect(203).json();
    assert_eq!(shown[0], Value::Null);
    let before = server.ask("GET", "/db/hidden", ()).await.expect(200).text();
    server.ask_as("bob", "PUT", &format!("{bump}/hidden"), ()).await.expect(409);
    assert_eq!(server.ask("GET", "/db/hidden", ()).await.text(), before);

    let to = |id: &str| format!("/db/_design/d/_update/move?to={id}");
    server.ask_as("bob", "POST", &to("_design/mine"), ()).await.expect(401);
    server.ask("POST", &to("_local/x"), ()).await.expect(201);
    server.ask("GET", "/db/_local/x", ()).await.expect(200);
    server.ask("POST", &to("_x"), ()).await.expect(400);
    server.ask("POST", &to("memo-1"), ()).await.expect(409);
    server.ask("POST", &to("moved"), ()).await.expect_text(201, "moved");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_sent_stores_nothing() {
    let server = filled().await;
    let odd = "/db/_design/d/_update/odd";
    for answer in [
        json!(7),
        json!({"code": 99}),
        json!({"code": "x"}),
        json!({"body": 7}),
        json!({"base64": "!"}),
        json!({"other": 1}),
        json!({"headers": {"x-split": "a\r\nSet-Cookie: b"}}),
    ] {
        server.ask("POST", odd, answer).await.expect(500);
    }
    server.ask("GET", "/db/odd", ()).await.expect(404);
    let stopped = server.ask("POST", odd, json!({"code": 202, "json": [1], "stop": true})).await;
    assert_eq!(stopped.expect(202).json(), json!([1]));
    let refused = server.ask("POST", "/db/_design/d/_update/refuse", ()).await;
    refused.expect_error(403, "forbidden", "not today");
    let image = server.ask("POST", "/db/_design/d/_update/image", ()).await.expect(200);
    assert_eq!((image.header("content-type"), &image.body[..]), (Some("image/png"), &[0, 1, 2][..]));
    server.ask("GET", odd, ()).await.expect(405);
    server.ask("POST", "/db/_design/d/_update/none", ()).await.expect(404);
    server.ask("POST", "/db/_design/none/_update/odd", ()).await.expect(404);
    server.ask("POST", "/db/_design/d/_update", ()).await.expect(404);
    let bytes = server.ask("POST", odd, ([("content-type", "text/plain")], vec![0xff, 0xfe])).await;
    bytes.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_offered_says_so() {
    let server = filled().await;
    for path in ["_show/x", "_list/x/y", "_rewrite/x", "_show/x/memo-1"] {
        let answer = server.ask("GET", &format!("/db/_design/d/{path}"), ()).await;
        answer.expect(501);
    }
    server.ask("GET", "/db/_partition/x/_all_docs", ()).await.expect(501);
    server.ask("PUT", "/parts?partitioned=true", ()).await.expect(501);
    server.ask("GET", "/parts", ()).await.expect(404);
}
