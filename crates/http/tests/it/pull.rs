//! What CouchDB 3.5's replicator asks of a source that it pulls from, and what it needs of the answers. The transcript
//! follows its code (`couch_replicator_api_wrap`): `_bulk_get` for documents without attachments, and for the others
//! `open_revs` as `multipart/mixed`, in which attachments are always there but for what `atts_since` leaves out.

use base64::Engine;
use md5::Digest;
use serde_json::{Value, json};

use crate::common::{Answer, Server};

const AGENT: (&str, &str) = ("user-agent", "CouchDB-Replicator/3.5.0");

/// A revision as it came: its JSON, and the contents that followed.
#[derive(Debug)]
struct Pulled {
    json: Value,
    contents: Vec<Vec<u8>>,
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// The parts of a multipart body, each with its head, as CouchDB's parser takes them apart.
fn parts_of(body: &[u8], content_type: &str) -> Vec<(String, Vec<u8>)> {
    let boundary = content_type.split_once("boundary=").unwrap().1.trim_matches('"');
    let (first, delimiter) = (format!("--{boundary}"), format!("\r\n--{boundary}"));
    let at = find(body, first.as_bytes()).unwrap();
    let mut rest = &body[at + first.len()..];
    let mut parts = Vec::new();
    while !rest.starts_with(b"--") {
        let rest_of_part = rest.strip_prefix(b"\r\n").unwrap();
        let end = find(rest_of_part, delimiter.as_bytes()).unwrap();
        let (part, behind) = rest_of_part.split_at(end);
        let head = find(part, b"\r\n\r\n").unwrap();
        parts.push((String::from_utf8(part[..head].to_vec()).unwrap(), part[head + 4..].to_vec()));
        rest = &behind[delimiter.len()..];
    }
    parts
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// One revision, checked as CouchDB checks what it receives: by lengths and digests of the stubs, in their order.
fn pulled(head: &str, body: &[u8]) -> Pulled {
    let kind = header(head, "Content-Type").unwrap();
    if !kind.starts_with("multipart/related") {
        assert_eq!(kind, "application/json");
        let json: Value = serde_json::from_slice(body).unwrap();
        return Pulled { json, contents: Vec::new() };
    }
    let mut parts = parts_of(body, kind).into_iter();
    let (head, json) = parts.next().unwrap();
    assert_eq!(header(&head, "Content-Type"), Some("application/json"));
    let json: Value = serde_json::from_slice(&json).unwrap();
    let mut contents = Vec::new();
    for (name, stub) in json["_attachments"].as_object().unwrap() {
        if stub["follows"] != true {
            assert_eq!(stub["stub"], true);
            continue;
        }
        assert!(stub.get("stub").is_none() && stub.get("encoding").is_none(), "{stub}");
        let (head, content) = parts.next().unwrap();
        let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
        let disposition = format!("attachment; filename=\"{quoted}\"");
        assert_eq!(header(&head, "Content-Disposition"), Some(disposition.as_str()));
        assert_eq!(header(&head, "Content-Length"), Some(content.len().to_string().as_str()));
        assert_eq!(stub["length"], content.len());
        let digest = base64::engine::general_purpose::STANDARD.encode(md5::Md5::digest(&content));
        assert_eq!(stub["digest"], format!("md5-{digest}"));
        contents.push(content);
    }
    assert!(parts.next().is_none());
    Pulled { json, contents }
}

struct Replicator<'s>(&'s Server);

impl Replicator<'_> {
    async fn get(&self, path: &str, accept: &str) -> Answer {
        self.0.ask("GET", path, [AGENT, ("accept", accept)]).await
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let headers = [AGENT, ("accept", "application/json"), ("content-type", "application/json")];
        let answer = self.0.ask("POST", path, (headers, body.to_string())).await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text());
        answer.json()
    }

    async fn open_revisions(&self, id: &str, revisions: &[Value], known: &[&str]) -> Vec<Pulled> {
        let encoded =
            |list: Value| list.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
        let since =
            if known.is_empty() { String::new() } else { format!("&atts_since={}", encoded(json!(known))) };
        let path =
            format!("/db/{id}?revs=true&open_revs={}{since}&latest=true", encoded(Value::from(revisions)));
        let answer = self.get(&path, "multipart/mixed").await.expect(200);
        let kind = answer.header("content-type").unwrap().to_owned();
        assert!(kind.starts_with("multipart/mixed; boundary=\""), "{kind}");
        parts_of(&answer.body, &kind).iter().map(|(head, body)| pulled(head, body)).collect()
    }

    /// All changes since a sequence, with their leaves.
    async fn changes(&self, since: &Value) -> (Vec<(String, Vec<Value>)>, Value) {
        let since = since.as_str().unwrap_or("0");
        let path = format!("/db/_changes?feed=normal&style=all_docs&since={since}&timeout=10000");
        let answer = self.get(&path, "application/json").await.expect(200).json();
        let changes = answer["results"].as_array().unwrap().iter().map(|change| {
            let leaves = change["changes"].as_array().unwrap().iter().map(|leaf| leaf["rev"].clone());
            (change["id"].as_str().unwrap().to_owned(), leaves.collect())
        });
        (changes.collect(), answer["last_seq"].clone())
    }
}

async fn filled(server: &Server) -> String {
    server.fill("db", &[json!({"_id": "plain", "n": 1}), json!({"_id": "gone", "n": 2})]).await;
    let gone = server.ask("GET", "/db/gone", ()).await.json()["_rev"].as_str().unwrap().to_owned();
    server.ask("DELETE", &format!("/db/gone?rev={gone}"), ()).await.expect(200);
    let large: Vec<u8> = (0..700_000_u32).map(|number| (number % 253) as u8).collect();
    let mut revision = String::new();
    for (name, content) in
        [("a.txt", b"one\r\n--two".to_vec()), ("q%22uo%20t%C3%A9", Vec::new()), ("large", large.clone())]
    {
        let rev = if revision.is_empty() { String::new() } else { format!("?rev={revision}") };
        let headers = [("content-type", "text/plain")];
        let put = server.ask("PUT", &format!("/db/att/{name}{rev}"), (headers, content)).await;
        revision = put.expect(201).revision();
    }
    // A leaf that lost, with another attachment.
    let other = json!({"_id": "att", "_rev": "1-00", "_attachments": {"b": {"data": "Qg=="}}});
    server.ask("PUT", "/db/att?new_edits=false", other).await.expect(201);
    revision
}

#[tokio::test(flavor = "multi_thread")]
async fn couchdb_pulls_documents_with_their_attachments() {
    let server = Server::start().await;
    let winner = filled(&server).await;
    let couch = Replicator(&server);
    // Who is the source, and how far was it read?
    let info = couch.get("/db", "application/json").await.expect(200).json();
    assert!(info["instance_start_time"].is_string() && info["update_seq"].is_string());
    let checkpoint = "/db/_local/0a81b645497e6270611ec3419767a584";
    couch.get(checkpoint, "application/json").await.expect_error(404, "not_found", "missing");

    let (changes, last) = couch.changes(&Value::Null).await;
    let ids: Vec<&str> = changes.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["plain", "gone", "att"]);
    assert_eq!(changes[2].1, [json!(winner), json!("1-00")]);
    let docs: Vec<Value> = changes
        .iter()
        .flat_map(|(id, leaves)| leaves.iter().map(move |leaf| json!({"id": id, "rev": leaf})))
        .collect();
    let bulk = couch.post("/db/_bulk_get?latest=true&revs=true", json!({"docs": docs})).await;
    let results = bulk["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    assert_eq!(
        (&results[0]["docs"][0]["ok"]["n"], &results[1]["docs"][0]["ok"]["_deleted"]),
        (&json!(1), &json!(true))
    );
    // These have attachments, and are asked for one by one.
    assert!(results[2..].iter().all(|result| result["docs"][0]["ok"].get("_attachments").is_some()));

    let leaves = couch.open_revisions("att", &changes[2].1, &[]).await;
    let [first, second] = &leaves[..] else { panic!("{} leaves", leaves.len()) };
    assert_eq!((&first.json["_rev"], first.contents.len()), (&json!(winner), 3));
    assert_eq!(first.json["_revisions"]["start"], 3);
    assert!(first.contents.iter().any(|content| content == b"one\r\n--two"));
    assert!(first.contents.iter().any(|content| content.len() == 700_000));
    assert_eq!((&second.json["_rev"], &second.contents), (&json!("1-00"), &vec![b"B".to_vec()]));
    // A tombstone, and a revision that is not there.
    let gone = couch.open_revisions("gone", &changes[1].1, &[]).await;
    assert_eq!((&gone[0].json["_deleted"], gone.len()), (&json!(true), 1));
    let missing =
        couch.get("/db/att?revs=true&open_revs=%5B%229-zz%22%5D&latest=true", "multipart/mixed").await;
    let parts = parts_of(&missing.body, missing.header("content-type").unwrap());
    assert_eq!(parts[0].0, "Content-Type: application/json; error=\"true\"");
    assert_eq!(parts[0].1, b"{\"missing\":\"9-zz\"}");

    couch.post("/db/_ensure_full_commit", json!({})).await;
    let history = json!({"source_last_seq": last, "session_id": "1", "history": []});
    server.ask("PUT", checkpoint, history).await.expect(201);

    // An edit later only what is new comes, since the replicator says what it has.
    let next = format!("/db/att/new?rev={winner}");
    server.ask("PUT", &next, (&[][..], "new")).await.expect(201);
    let kept = couch.get(checkpoint, "application/json").await.expect(200).json();
    let (changes, _) = couch.changes(&kept["source_last_seq"]).await;
    assert_eq!(changes.len(), 1);
    let newer = couch.open_revisions("att", &changes[0].1[..1], &[&winner]).await;
    assert_eq!((newer.len(), &newer[0].contents), (1, &vec![b"new".to_vec()]));
    let stub = |name: &str| newer[0].json["_attachments"][name]["stub"].clone();
    assert_eq!((stub("a.txt"), stub("new")), (json!(true), Value::Null));
    // By a revision that was superseded `latest` leads to the one that is there.
    let followed = couch.open_revisions("att", &[json!(winner)], &[]).await;
    assert_eq!((followed.len(), followed[0].contents.len()), (1, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_couchdb_pulls_it_can_push_again() {
    let server = Server::start().await;
    let winner = filled(&server).await;
    server.ask("PUT", "/copy", ()).await.expect(201);
    let couch = Replicator(&server);
    let path = format!("/db/att?revs=true&open_revs=%5B%22{winner}%22%5D&latest=true");
    let answer = couch.get(&path, "multipart/mixed").await.expect(200);
    let parts = parts_of(&answer.body, answer.header("content-type").unwrap());
    let kind = header(&parts[0].0, "Content-Type").unwrap().to_owned();
    let pushed = ([AGENT, ("content-type", kind.as_str())], parts[0].1.clone());
    assert_eq!(server.ask("PUT", "/copy/att?new_edits=false", pushed).await.expect(201).revision(), winner);
    for name in ["a.txt", "q%22uo%20t%C3%A9", "large"] {
        let [from, to] = ["db", "copy"].map(|database| format!("/{database}/att/{name}"));
        let (from, to) = (server.ask("GET", &from, ()).await, server.ask("GET", &to, ()).await);
        assert!(from.status == 200 && to.status == 200 && from.body == to.body, "{name}");
    }
}
