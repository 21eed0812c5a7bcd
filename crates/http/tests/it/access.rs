//! Access control lists, readers and authors.

use serde_json::{Value, json};

use crate::common::Server;

/// What nobody but ada and the administrator may come to see.
const SECRET: &str = "rosebud";

async fn with_secret() -> Server {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let list = json!({
        "default": {"level": "editor"}, "anonymous": {"level": "no_access"},
        "entries": [{"name": "editor", "kind": "group", "level": "manager"}]
    });
    server.ask("PUT", "/db/_acl", list).await.expect(201);
    let attachment = json!({"rosebud.txt": {"content_type": "text/plain", "data": "cm9zZWJ1ZA=="}});
    let secret = json!({"_id": "s", "Readers": ["ada"], "word": SECRET, "_attachments": attachment});
    server.ask("PUT", "/db/s?folder=Inbox", json!({})).await.expect(404);
    server.ask("PUT", "/db/_folder/Inbox", json!({})).await.expect(201);
    server.ask("PUT", "/db/s?folder=Inbox", secret).await.expect(201);
    server.ask("PUT", "/db/o?folder=Inbox", json!({"word": "open"})).await.expect(201);
    let formula = json!({"language": "formula", "views": {"words": {"columns": [
        {"title": "word", "formula": "word", "category": true}]}}});
    server.ask("PUT", "/db/_design/f", formula).await.expect(201);
    let script = json!({"views": {"words": {"map": "function (doc) { emit(doc.word, doc.word); }"}}});
    server.ask("PUT", "/db/_design/j", script).await.expect(201);
    let index = json!({"index": {"fields": ["word"]}, "ddoc": "m", "name": "words"});
    server.ask("POST", "/db/_index", index).await.expect(200);
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_may_not_read_is_in_no_answer() {
    let server = with_secret().await;
    let revision =
        server.ask("GET", "/db/s", ()).await.expect(200).json()["_rev"].as_str().unwrap().to_owned();
    let get = |path: &str| ("GET", path.to_owned(), Value::Null);
    let post = |path: &str, body: Value| ("POST", path.to_owned(), body);
    let asked = [
        get("/db/s"),
        get(&format!("/db/s?rev={revision}")),
        get("/db/s?open_revs=all"),
        get("/db/s?attachments=true"),
        get("/db/s/rosebud.txt"),
        get(&format!("/db/s/rosebud.txt?rev={revision}")),
        get("/db/_all_docs?include_docs=true"),
        post("/db/_all_docs?include_docs=true", json!({"keys": ["s", "o"]})),
        post("/db/_all_docs/queries", json!({"queries": [{"include_docs": true}]})),
        post("/db/_bulk_get?attachments=true", json!({"docs": [{"id": "s"}]})),
        post("/db/_bulk_get", json!({"docs": [{"id": "s", "rev": revision}]})),
        get("/db/_changes?include_docs=true"),
        get("/db/_changes?include_docs=true&feed=longpoll&style=all_docs"),
        get("/db/_changes?include_docs=true&feed=continuous&timeout=10"),
        post("/db/_changes?include_docs=true&filter=_doc_ids", json!({"doc_ids": ["s"]})),
        post("/db/_changes?include_docs=true&filter=_selector", json!({"selector": {"word": SECRET}})),
        post("/db/_find", json!({"selector": {"word": {"$gt": null}}})),
        post("/db/_find", json!({"selector": {"word": {"$gt": null}}, "fields": ["word"]})),
        post("/db/_find", json!({"selector": {"_id": {"$gt": null}}})),
        get("/db/_design/f/_view/words"),
        get("/db/_design/f/_view/words?group=true"),
        get("/db/_design/f/_view/words?include_docs=true&descending=true"),
        get("/db/_design/f/_view/words?at=s"),
        get("/db/_design/j/_view/words?include_docs=true"),
        post("/db/_design/j/_view/words/queries", json!({"queries": [{}, {"descending": true}]})),
        get("/db/_folder/Inbox?include_docs=true"),
        get("/db/_folder/Inbox/_members"),
        get("/db/_folder/Inbox/_changes"),
        ("COPY", "/db/s".to_owned(), Value::Null),
    ];
    for (method, path, body) in asked {
        // The administrator and ada find it in the same way, so that the question is a good one.
        for (name, finds) in [("admin", true), ("ada", true), ("bob", false)] {
            let answer = match method {
                "COPY" => server.ask_as(name, method, &path, [("Destination", name)]).await,
                _ => server.ask_as(name, method, &path, body.clone()).await,
            };
            let text = answer.text();
            // A request for it by name learns that it may not be read.
            let text = if path.contains("_bulk_get") { text.replace("\"id\":\"s\"", "") } else { text };
            let tells = [SECRET, "cm9zZWJ1ZA", "\"id\":\"s\""].iter().any(|secret| text.contains(secret));
            let tells = tells || method == "COPY" && answer.status == 201;
            assert_eq!(tells, finds, "{name} {method} {path}: {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_takes_the_place_of_security() {
    let server = with_secret().await;
    let list = server.ask("GET", "/db/_acl", ()).await.expect(200).json();
    assert_eq!(list["you"], json!({"level": "manager"}));
    assert_eq!(list["default"]["level"], "editor");
    // What is read can be written.
    server.ask("PUT", "/db/_acl", list).await.expect(201);
    let security = server.ask_as("ada", "GET", "/db/_security", ()).await.expect(200).json();
    assert_eq!(security["admins"], json!({"names": [], "roles": ["editor"]}));
    server.ask("PUT", "/db/_security", json!({})).await.expect(403);
    server.ask_as("", "GET", "/db/o", ()).await.expect(401);
    server.ask_as("ada", "PUT", "/db/_acl", json!({})).await.expect(401);
    let locked = server.ask_as("bob", "PUT", "/db/_acl", json!({"default": {"level": "editor"}})).await;
    assert!(locked.expect(400).json()["reason"].as_str().unwrap().contains("not be a manager"));
    server.ask_as("bob", "DELETE", "/db/_acl", ()).await.expect(401);
    // Without a list the readers of a document are a field like others.
    server.ask("DELETE", "/db/_acl", ()).await.expect(200);
    server.ask("GET", "/db/_acl", ()).await.expect(404);
    server.ask_as("bob", "GET", "/db/s", ()).await.expect(404);
    server.ask("PUT", "/db/_security", json!({})).await.expect(200);
    server.ask_as("bob", "GET", "/db/s", ()).await.expect(200);
    server.ask("GET", "/db/_security", ()).await.expect_text(200, "{}\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn depositors_and_authors_do_what_they_may() {
    let server = with_secret().await;
    let list = json!({
        "default": {"level": "author"},
        "entries": [{"name": "bob", "kind": "person", "level": "depositor"}]
    });
    server.ask("PUT", "/db/_acl", list).await.expect(201);
    server.ask_as("bob", "POST", "/db", json!({"_id": "b"})).await.expect(201);
    server.ask_as("bob", "POST", "/db/_bulk_docs", json!({"docs": [{"_id": "c"}]})).await.expect(201);
    for path in ["/db", "/db/b", "/db/_all_docs", "/db/_changes", "/db/_folder", "/db/_acl"] {
        server.ask_as("bob", "GET", path, ()).await.expect(403);
    }
    let text = json!({"_id": "a", "Authors": ["ada"]});
    let made = server.ask_as("ada", "PUT", "/db/a", text).await.expect(201).json();
    let revision = made["rev"].as_str().unwrap();
    server.ask_as("bob", "PUT", &format!("/db/a?rev={revision}"), json!({})).await.expect(403);
    server.ask_as("bob", "DELETE", &format!("/db/a?rev={revision}"), ()).await.expect(403);
    let attachment = format!("/db/a/x?rev={revision}");
    server.ask_as("bob", "PUT", &attachment, ([("content-type", "text/plain")], "x")).await.expect(403);
    server.ask_as("ada", "PUT", &attachment, ([("content-type", "text/plain")], "x")).await.expect(201);
    let refused = server.ask_as("ada", "PUT", "/db/o", json!({"_rev": "1-x"})).await;
    assert!(refused.status == 409 || refused.status == 400, "{}", refused.text());
    server.ask_as("ada", "PUT", "/db/_folder/Work", json!({})).await.expect(403);
    server.ask_as("ada", "POST", "/db/_folder/Inbox", json!({"add": ["a"]})).await.expect(200);
}
