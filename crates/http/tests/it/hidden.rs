//! What somebody may not read is answered as what is not there: documents in every way of asking for them, and design
//! documents with all that they make.

use serde_json::{Value, json};

use crate::common::{Answer, Server};

const REVISION: &str = "1-fadefadefadefadefadefadefadefade";

/// A database in which bob may do what a level lets him, with documents that are ada's alone.
async fn filled(level: &str) -> Server {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let list = json!({"default": {"level": "editor"}, "entries": [{"name": "bob", "level": level}]});
    server.ask("PUT", "/db/_acl", list).await.expect(201);
    let attachments = json!({"a.txt": {"content_type": "text/plain", "data": "YWJj"}});
    let secret = |id: &str| json!({"_id": id, "_rev": REVISION, "Readers": "ada", "word": "rosebud", "_attachments": attachments});
    let large: Vec<u32> = (0..20_000).collect();
    let mut long = secret("hidden-two");
    long["many"] = json!(large);
    let docs = json!([secret("hidden-one"), long, {"_id": "open", "_rev": REVISION}]);
    let body = json!({"docs": docs, "new_edits": false});
    server.ask("POST", "/db/_bulk_docs", body).await.expect(201);
    server
}

/// Status, headers and body, without what is another one each time, and with another id in the place of `id`.
fn told(answer: &Answer, id: &str) -> String {
    let passing = ["date", "x-couch-request-id"];
    let headers = answer.headers.iter().filter(|(name, _)| !passing.contains(&name.as_str()));
    let headers: Vec<String> = headers.map(|(name, value)| format!("{name}: {value:?}")).collect();
    format!("{} {headers:#?} {}", answer.status, answer.text()).replace(id, "ID")
}

/// Everything that one asks of the document `ID`.
fn requests() -> Vec<(&'static str, String, Value)> {
    let rev = format!("rev={REVISION}");
    let revs = format!("open_revs=%5B%22{REVISION}%22%5D");
    let mut asked = Vec::new();
    for query in [
        "",
        "?revs=true",
        "?revs_info=true",
        "?conflicts=true",
        "?meta=true",
        "?open_revs=all",
        "?attachments=true",
        "?latest=true",
        "?local_seq=true",
        &format!("?{rev}"),
        &format!("?{rev}&latest=true&revs=true"),
        &format!("?{revs}"),
        &format!("?{revs}&latest=true"),
        "?atts_since=%5B%5D",
    ] {
        asked.push(("GET", format!("/db/ID{query}"), Value::Null));
        asked.push(("HEAD", format!("/db/ID{query}"), Value::Null));
    }
    for query in ["", &format!("?{rev}")] {
        for method in ["GET", "HEAD", "DELETE"] {
            asked.push((method, format!("/db/ID/a.txt{query}"), Value::Null));
        }
        asked.push(("GET", format!("/db/ID/none.txt{query}"), Value::Null));
        asked.push(("DELETE", format!("/db/ID{query}"), Value::Null));
        asked.push(("COPY", format!("/db/ID{query}"), Value::Null));
    }
    // Who builds on a revision that they cannot have read.
    asked.push(("PUT", format!("/db/ID?{rev}"), json!({"mine": true})));
    asked.push(("PUT", format!("/db/ID/b.txt?{rev}"), json!("mine")));
    asked.push(("POST", "/db/_bulk_docs".to_owned(), json!({"docs": [{"_id": "ID", "_rev": REVISION}]})));
    asked.push((
        "POST",
        "/db/_bulk_get".to_owned(),
        json!({"docs": [{"id": "ID"}, {"id": "ID", "rev": REVISION}]}),
    ));
    asked.push(("POST", "/db/_revs_diff".to_owned(), json!({"ID": [REVISION, "9-a"]})));
    asked.push(("POST", "/db/_missing_revs".to_owned(), json!({"ID": [REVISION, "9-a"]})));
    asked.push(("POST", "/db/_all_docs".to_owned(), json!({"keys": ["ID"], "include_docs": true})));
    asked.push(("POST", "/db/_find".to_owned(), json!({"selector": {"_id": "ID"}})));
    asked.push(("GET", "/db/_all_docs?key=%22ID%22".to_owned(), Value::Null));
    asked.push(("POST", "/db/_changes?filter=_doc_ids".to_owned(), json!({"doc_ids": ["ID"]})));
    asked.push(("POST", "/db/_folder/none".to_owned(), json!({"add": ["ID"]})));
    asked.push(("POST", "/db/_unread".to_owned(), json!({"read": ["ID"]})));
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_is_hidden_is_answered_as_one_that_is_not_there() {
    let mut differing = Vec::new();
    for level in ["depositor", "reader", "author", "editor", "designer", "manager"] {
        let server = filled(level).await;
        for (method, path, body) in requests() {
            let mut answers = Vec::new();
            for id in ["hidden-one", "hidden-two", "nothing-it"] {
                let (path, body) = (path.replace("ID", id), body.to_string().replace("ID", id));
                let headers: &[(&str, &str)] = match method {
                    "COPY" => &[("destination", "copied?rev=1-a")],
                    "PUT" | "POST" => &[("content-type", "application/json")],
                    // One document, and no parts with a boundary of their own.
                    _ => &[("accept", "application/json")],
                };
                let body = if body == "null" { String::new() } else { body };
                answers.push(told(&server.ask_as("bob", method, &path, (headers, body)).await, id));
            }
            for hidden in &answers[..2] {
                if *hidden != answers[2] {
                    let asked = format!("{level}: {method} {path} {body}");
                    differing.push(format!(
                        "{asked}
  hidden {hidden}
  absent {}",
                        answers[2]
                    ));
                }
            }
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// Design documents that are ada's alone, with an index, a view of formulas and one in JavaScript.
async fn with_hidden_designs() -> Server {
    let server = filled("designer").await;
    let index = json!({"index": {"fields": ["word"]}, "ddoc": "hid-index", "name": "rosebud"});
    server.ask("POST", "/db/_index", index).await.expect(200);
    let mut index = server.ask("GET", "/db/_design/hid-index", ()).await.expect(200).json();
    index["Readers"] = "ada".into();
    server.ask("PUT", "/db/_design/hid-index", index).await.expect(201);
    let columns = json!([{"title": "A", "formula": "word", "sort": "asc"}]);
    let formula = json!({"language": "formula", "Readers": ["ada"], "views": {"v": {"selection": "SELECT @All", "columns": columns}}});
    server.ask("PUT", "/db/_design/hid-forms", formula).await.expect(201);
    let script = json!({"Readers": ["ada"], "views": {"v": {"map": "function (doc) { emit(doc.word); }"}}});
    server.ask("PUT", "/db/_design/hid-codes", script).await.expect(201);
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn views_and_indexes_of_hidden_design_documents_are_not_there() {
    let server = with_hidden_designs().await;
    for design in ["hid-forms", "hid-codes", "hid-index"] {
        for below in [
            "",
            "/_info",
            "/_view/v",
            "/_view/v?limit=0",
            "/_view/v?update=false",
            "/a.txt",
            "/_view/v/queries",
        ] {
            let method = if below.ends_with("queries") { "POST" } else { "GET" };
            let mut answers = Vec::new();
            for design in [design, "not-there"] {
                let path = format!("/db/_design/{design}{below}");
                let body = json!({"queries": [{}]});
                let answer = match method {
                    "POST" => server.ask_as("bob", method, &path, body).await,
                    _ => server.ask_as("bob", method, &path, ()).await,
                };
                answers.push(told(&answer, design));
            }
            assert_eq!(answers[0], answers[1], "{design}{below}");
        }
    }
    let as_bob = server.ask_as("bob", "GET", "/db/_index", ()).await.expect(200).json();
    assert_eq!(
        (&as_bob["total_rows"], as_bob["indexes"].as_array().unwrap().len()),
        (&json!(1), 1),
        "{as_bob}"
    );
    let query = json!({"selector": {"word": {"$gt": null}}});
    let mut named = query.clone();
    named["use_index"] = json!(["hid-index", "rosebud"]);
    let mut unknown = query.clone();
    unknown["use_index"] = json!(["not-there", "rosebud"]);
    for path in ["/db/_find", "/db/_explain"] {
        let plain = server.ask_as("bob", "POST", path, query.clone()).await.expect(200).text();
        assert!(!plain.contains("hid-index") && !plain.contains("rosebud"), "{plain}");
        let named = server.ask_as("bob", "POST", path, named.clone()).await;
        let unknown = server.ask_as("bob", "POST", path, unknown.clone()).await;
        assert_eq!(told(&named, "hid-index"), told(&unknown, "not-there"), "{path}");
    }
    let listed = server.ask_as("bob", "GET", "/db/_design_docs", ()).await.expect(200).text();
    assert!(!listed.contains("hid-"), "{listed}");
    for (method, path, body) in [
        ("DELETE", "/db/_index/hid-index/json/rosebud", Value::Null),
        ("POST", "/db/_index/_bulk_delete", json!({"docids": ["hid-index"]})),
    ] {
        let told_of = |path: &str, body: &Value| {
            (path.replace("hid-index", "not-there"), body.to_string().replace("hid-index", "not-there"))
        };
        let (other, other_body) = told_of(path, &body);
        let headers: &[(&str, &str)] = &[("content-type", "application/json")];
        let refused = server.ask_as("bob", method, path, (headers, body.to_string())).await;
        let absent = server.ask_as("bob", method, &other, (headers, other_body)).await;
        assert_eq!(told(&refused, "hid-index"), told(&absent, "not-there"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_a_design_document_has_its_views_and_indexes() {
    let server = with_hidden_designs().await;
    for name in ["ada", "admin"] {
        let listed = server.ask_as(name, "GET", "/db/_index", ()).await.expect(200).json();
        assert_eq!(listed["total_rows"], 2, "{listed}");
        let query = json!({"selector": {"word": {"$gt": null}}});
        let explained = server.ask_as(name, "POST", "/db/_explain", query.clone()).await.expect(200).json();
        assert_eq!(explained["index"]["name"], "rosebud", "{explained}");
        let found = server.ask_as(name, "POST", "/db/_find", query).await.expect(200).json();
        assert_eq!(found["docs"].as_array().unwrap().len(), 2, "{found}");
        for design in ["hid-forms", "hid-codes"] {
            let rows =
                server.ask_as(name, "GET", &format!("/db/_design/{design}/_view/v"), ()).await.expect(200);
            assert!(rows.text().contains("rosebud"), "{}", rows.text());
            server.ask_as(name, "GET", &format!("/db/_design/{design}/_info"), ()).await.expect(200);
        }
    }
}
