//! Documents at all limits: whatever is stored, every answer parses and every listing continues over all others; what can
//! be written can be deleted, and nothing of what was deleted can be read.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use scrinium_document::json::parse_value;
use serde_json::{Value, json};

use crate::common::{Answer, Server};

/// What is in every generated document, and in nothing else.
const SECRET: &str = "xyzzy-secret";

/// Documents, as deep as they may be, lie within the members of an answer.
const NESTING_MAX: usize = 600;

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// A document's address; the prefix of a design document stands for itself.
fn address(id: &str) -> String {
    match id.strip_prefix("_design/") {
        Some(name) => format!("/db/_design/{}", encoded(name)),
        None => format!("/db/{}", encoded(id)),
    }
}

#[track_caller]
fn parsed(answer: &Answer, asked: &str) -> Value {
    let text = std::str::from_utf8(&answer.body).unwrap_or_else(|error| panic!("{asked}: {error}"));
    parse_value(text, NESTING_MAX).unwrap_or_else(|error| panic!("{asked}: {error}: {text:.500}"))
}

/// What is sent, and how.
struct Sent {
    id: String,
    json: String,
    replicated: bool,
    in_bulk: bool,
}

struct Generator(StdRng);

impl Generator {
    fn pick<T: Clone>(&mut self, among: &[T]) -> T {
        among.choose(&mut self.0).unwrap().clone()
    }

    fn nested(&mut self, depth: usize) -> String {
        let (open, close) = self.pick(&[("[", "]"), ("{\"a\":", "}")]);
        // The document itself is one level.
        let levels = depth.saturating_sub(1);
        format!("{}{}{}", open.repeat(levels), "1", close.repeat(levels))
    }

    fn id(&mut self, number: usize) -> String {
        let text =
            self.pick(&["plain", "\"'<\u{1b}[31m", "a\r\nb", "\u{2028}\u{202e}", "ä/ö?&#%", "\u{0}\u{7f}"]);
        let length = self.pick(&[0, 0, 0, 1500]);
        let prefix = self.pick(&["", "", "", "", "_design/"]);
        format!("{prefix}{number}{text}{}", "x".repeat(length))
    }

    fn revision(&mut self) -> String {
        let digest = self.pick(&[
            "a",
            "x~._-Z",
            "\"",
            "a\"},\"Readers\":[\"ada\"],\"x\":{\"y\":\"",
            "a\r\nb",
            "ä",
            "\u{0}",
        ]);
        let generation = self.pick(&[
            "1",
            "2",
            "9007199254740990",
            "9007199254740991",
            "9007199254740992",
            "18446744073709551615",
            "0",
            "-1",
            "",
        ]);
        let length = self.pick(&[0, 0, 0, 100, 127, 128]);
        format!("{generation}-{digest}{}", "f".repeat(length))
    }

    fn readers(&mut self) -> String {
        let deep = self.pick(&[3, 127, 128, 129, 300, 511]);
        let deep = self.nested(deep);
        let many = json!(vec!["eve"; 1100]).to_string();
        self.pick(
            &[
                "\"ada\"",
                "[\"ada\",\"\\ud83d\\ude00\"]",
                "[[\"ada\"]]",
                "5",
                "{}",
                "null",
                "true",
                "\"\"",
                "[]",
                "[\"*\"]",
                "{\"a\":\"ada\"}",
                "1e308",
                &deep,
                &many,
            ]
            .map(str::to_owned),
        )
    }

    fn attachments(&mut self) -> Value {
        let name = self.pick(&[
            "a.txt",
            "a/b \"c\"",
            "x\r\nX-Forged: yes",
            "\u{1b}[2J",
            "ä.txt",
            "",
            "_a",
            "\u{85}",
        ]);
        let kind = self.pick(&[
            "text/plain",
            "text/plain; charset=\"utf-8\"",
            "text/html\r\nX-Forged: yes",
            "text",
            "",
            "a/b;c",
            "a/b\u{0}",
            "image/svg+xml;",
            "\u{e4}/b",
        ]);
        let data =
            base64::Engine::encode(&base64::engine::general_purpose::STANDARD, format!("{SECRET} attached"));
        json!({name: {"content_type": kind, "data": data}})
    }

    fn design(&mut self) -> Value {
        let map = self.pick(&["function (doc) { emit(doc._id, doc) }", "function (", "5", "", "throw 1"]);
        let formula = self.pick(&["SELECT @All", "SELECT (", "@If(", ""]);
        let depth = self.pick(&[2, 100, 130, 400]);
        let deep: Value = parse_value(&self.nested(depth), NESTING_MAX).unwrap();
        self.pick(&[
            json!({"views": {"v": {"map": map}}}),
            json!({"views": {"v": {"map": map, "reduce": "function ("}, "lib": {"a": deep}}}),
            json!({"views": {"v": 5}}),
            json!({"views": [1]}),
            json!({"views": {"v": {"map": 5}}}),
            json!({"language": 5, "views": {"v": {"map": map}}}),
            json!({"language": "formula", "views": {"v": {"selection": formula, "columns": [{"formula": "Subject"}]}}}),
            json!({"language": "query", "views": {"v": {"map": {"fields": deep}, "options": {"def": deep}}}}),
            json!({"autoupdate": deep, "policy": deep, "options": deep}),
        ])
    }

    fn document(&mut self, number: usize) -> Sent {
        let id = self.id(number);
        let mut members = vec![format!("\"_id\":{}", json!(id)), format!("\"Secret\":\"{SECRET}\"")];
        let replicated = self.0.random_bool(0.5);
        if replicated {
            members.push(format!("\"_rev\":{}", json!(self.revision())));
        }
        if self.0.random_bool(0.6) {
            members.push(format!("\"Readers\":{}", self.readers()));
        }
        if self.0.random_bool(0.4) {
            let depth = self.pick(&[1, 2, 127, 128, 129, 511, 512, 513]);
            members.push(format!("\"deep\":{}", self.nested(depth)));
        }
        if self.0.random_bool(0.4) {
            members.push(format!("\"_attachments\":{}", self.attachments()));
        }
        if self.0.random_bool(0.2) {
            members.push(format!("\"long\":\"{}\"", "y".repeat(3000)));
        }
        if id.starts_with("_design/") {
            let design = self.design();
            members.extend(
                design.as_object().unwrap().iter().map(|(name, value)| format!("{}:{value}", json!(name))),
            );
        }
        Sent { id, json: format!("{{{}}}", members.join(",")), replicated, in_bulk: self.0.random_bool(0.5) }
    }
}

/// Whether it was taken.
async fn send(server: &Server, sent: &Sent) -> bool {
    let answer = if sent.in_bulk {
        let body = format!("{{\"new_edits\":{},\"docs\":[{}]}}", !sent.replicated, sent.json);
        server.ask("POST", "/db/_bulk_docs", (JSON, body)).await
    } else {
        let path = format!("{}?new_edits={}", address(&sent.id), !sent.replicated);
        server.ask("PUT", &path, (JSON, sent.json.clone())).await
    };
    assert!(answer.status.as_u16() < 500, "{}: {}", sent.json, answer.text());
    let answered = parsed(&answer, &sent.json);
    let refused = |row: &Value| row.get("error").is_some();
    !(refused(&answered) || answered.as_array().into_iter().flatten().any(refused))
}

async fn prepare(server: &Server) {
    server.ask("PUT", "/db", ()).await.expect(201);
    let list = json!({"default": {"level": "reader"}, "entries": [{"name": "bob", "level": "manager"}]});
    server.ask("PUT", "/db/_acl", list).await.expect(201);
    for (id, design) in [
        (
            "good",
            json!({"language": "formula", "views": {"all": {"selection": "SELECT @All", "columns": [{"title": "Form", "formula": "Form", "sort": "asc"}]}}}),
        ),
        (
            "script",
            json!({"views": {"all": {"map": "function (doc) { emit(doc._id, doc.deep) }", "reduce": "_count"}}}),
        ),
    ] {
        server.ask("PUT", &format!("/db/_design/{id}"), design).await.expect(201);
    }
    let index = json!({"index": {"fields": ["Form", "deep"]}, "name": "forms", "ddoc": "forms"});
    server.ask("POST", "/db/_index", index).await.expect(200);
    for number in 0..3 {
        server.ask("PUT", &format!("/db/good{number}"), json!({"Form": "Good"})).await.expect(201);
    }
}

/// Everything that lists documents, with the number of good ones that must be in it.
async fn listings(server: &Server, person: &str, ids: &[String]) -> String {
    let good = ["good0", "good1", "good2"];
    let all_ids: Vec<&str> = good.into_iter().chain(ids.iter().map(String::as_str)).collect();
    let by_id: Vec<Value> = all_ids.iter().map(|id| json!({"id": id})).collect();
    let asked: Vec<(&str, String, Value)> = vec![
        ("GET", "_all_docs".into(), Value::Null),
        ("GET", "_all_docs?include_docs=true&conflicts=true&attachments=true".into(), Value::Null),
        ("POST", "_all_docs?include_docs=true".into(), json!({"keys": all_ids})),
        ("GET", "_changes?include_docs=true&style=all_docs&conflicts=true".into(), Value::Null),
        ("GET", "_changes?descending=true".into(), Value::Null),
        ("GET", "_changes?feed=longpoll&since=0&include_docs=true&attachments=true".into(), Value::Null),
        (
            "POST",
            "_changes?filter=_selector&include_docs=true".into(),
            json!({"selector": {"_id": {"$gt": null}}}),
        ),
        ("POST", "_find".into(), json!({"selector": {"_id": {"$gt": null}}, "limit": 1000})),
        ("POST", "_find".into(), json!({"selector": {"Form": "Good"}, "limit": 1000})),
        ("GET", "_design/good/_view/all?include_docs=true".into(), Value::Null),
        ("GET", "_design/script/_view/all?reduce=false&include_docs=true".into(), Value::Null),
        ("POST", "_bulk_get?revs=true&attachments=true".into(), json!({"docs": by_id})),
    ];
    let mut all = String::new();
    for (method, path, body) in asked {
        let asked = format!("{person} {method} {path}");
        let path = format!("/db/{path}");
        let answer = match body {
            Value::Null => server.ask_as(person, method, &path, ()).await,
            body => server.ask_as(person, method, &path, body).await,
        };
        assert_eq!(answer.status, 200, "{asked}: {}", answer.text());
        parsed(&answer, &asked);
        let text = answer.text();
        for good in good {
            assert!(text.contains(good), "{asked} leaves {good} out: {text:.2000}");
        }
        all.push_str(&text);
    }
    for path in [
        "_design_docs?include_docs=true",
        "_local_docs?include_docs=true",
        "_index",
        "_design/script/_view/all?group=true",
    ] {
        let answer = server.ask_as(person, "GET", &format!("/db/{path}"), ()).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        parsed(&answer, path);
    }
    all
}

/// Each way to read one document.
async fn readings(server: &Server, id: &str) {
    let address = address(id);
    for query in [
        "?revs=true&revs_info=true&conflicts=true&deleted_conflicts=true&local_seq=true",
        "?open_revs=all",
        "?attachments=true",
    ] {
        let answer = server.ask("GET", &format!("{address}{query}"), [("accept", "application/json")]).await;
        assert!(answer.status.as_u16() < 500, "{id:?}{query}: {}", answer.text());
        parsed(&answer, id);
    }
    for query in ["?attachments=true", "?open_revs=all&attachments=true"] {
        let accept = if query.starts_with("?open") { "multipart/mixed" } else { "multipart/related" };
        let answer = server.ask("GET", &format!("{address}{query}"), [("accept", accept)]).await;
        assert!(answer.status.as_u16() < 500, "{id:?}{query}: {}", answer.text());
        check_parts(&answer, id);
    }
    let document = server.ask("GET", &address, ()).await;
    let names =
        parsed(&document, id).get("_attachments").and_then(Value::as_object).cloned().unwrap_or_default();
    for name in names.keys() {
        let answer = server.ask("GET", &format!("{address}/{}", encoded(name)), ()).await.expect(200);
        assert!(answer.headers.get("x-forged").is_none(), "{id:?} {name:?}");
    }
}

/// Each part of a multipart body has the headers that the server gives it, and no others.
fn check_parts(answer: &Answer, id: &str) {
    if !answer.header("content-type").is_some_and(|kind| kind.starts_with("multipart/")) {
        parsed(answer, id);
        return;
    }
    let text = answer.text();
    for head in text.split("\r\n\r\n").filter_map(|before| before.rsplit_once("\r\n--").map(|(_, head)| head))
    {
        for line in head.split("\r\n").skip(1) {
            let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
            assert!(
                ["content-type", "content-disposition", "content-length", ""].contains(&name.as_str()),
                "{id:?}: {head}"
            );
        }
    }
    assert!(!text.to_ascii_lowercase().contains("\nx-forged"), "{id:?}: {text}");
}

/// The revisions of a document's leaves, and whether each is a tombstone.
async fn leaves(server: &Server, id: &str) -> Vec<(String, bool)> {
    let as_json = [("accept", "application/json")];
    let answer = server.ask("GET", &format!("{}?open_revs=all", address(id)), as_json).await.expect(200);
    let leaves = parsed(&answer, id);
    let leaves = leaves.as_array().unwrap().iter().map(|leaf| &leaf["ok"]);
    leaves.map(|leaf| (leaf["_rev"].as_str().unwrap().to_owned(), leaf["_deleted"] == true)).collect()
}

async fn delete(server: &Server, id: &str) {
    for (revision, is_deleted) in leaves(server, id).await {
        if !is_deleted {
            let path = format!("{}?rev={}", address(id), encoded(&revision));
            server.ask("DELETE", &path, ()).await.expect(200);
        }
    }
    server.ask("GET", &address(id), ()).await.expect_error(404, "not_found", "deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_stored_every_answer_parses_and_can_be_deleted() {
    let times: usize = std::env::var("SCRINIUM_TIMES").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let seed =
        std::env::var("SCRINIUM_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("SCRINIUM_SEED={seed}");
    let mut generator = Generator(StdRng::seed_from_u64(seed));
    let server = Server::start().await;
    prepare(&server).await;
    for round in 0..times {
        let mut taken = BTreeSet::new();
        let documents: Vec<Sent> = (0..60).map(|number| generator.document(round * 60 + number)).collect();
        for sent in &documents {
            if send(&server, sent).await {
                taken.insert(sent.id.clone());
            }
        }
        let taken: Vec<String> = taken.into_iter().collect();
        assert!(taken.len() > 5, "{} of {}", taken.len(), documents.len());
        for person in ["admin", "ada", "bob"] {
            listings(&server, person, &taken).await;
        }
        for id in &taken {
            readings(&server, id).await;
        }
        server.ask("POST", "/db/_view_cleanup", json!({})).await.expect(202);
        for id in &taken {
            delete(&server, id).await;
        }
        let told = listings(&server, "admin", &taken).await;
        assert!(!told.contains(SECRET), "{told:.3000}");
    }
}
