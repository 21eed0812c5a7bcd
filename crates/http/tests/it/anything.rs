//! Whatever is sent to a port: requests of every route with parameters, headers and bodies that are nearly right, and bytes
//! that are nearly requests. No answer tells of a defect (500), each can be read, and the server continues.

use std::time::Duration;

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use scrinium_database::DatabaseOptions;
use scrinium_document::json::parse_value;
use scrinium_http::{HttpOptions, MethodRoute, PortOptions, Route, routes};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::common::{PASSWORD, Server, basic, local_port};

/// Feeds go on for longer than is waited for.
const PATIENCE: Duration = Duration::from_millis(500);

/// Requests at the same time.
const AT_ONCE: usize = 16;

/// Answers hold documents, as deep as they may be, within members.
const NESTING_MAX: usize = 600;

/// A seed that is printed, and how many cases are tried.
fn begin(usual: u32) -> (Anything, u32) {
    let seed = std::env::var("SCRINIUM_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(rand::random);
    println!("SCRINIUM_SEED={seed}");
    (Anything(StdRng::seed_from_u64(seed)), scrinium_fault::cases(usual))
}

async fn server() -> Server {
    let port = PortOptions {
        read_timeout_ms: 1_000,
        max_request_bytes: 1 << 20,
        max_header_bytes: 256 << 10,
        ..local_port()
    };
    let http = HttpOptions { changes_timeout_ms: 50, ..HttpOptions::default() };
    let server = Server::with_http(port, DatabaseOptions::default(), http).await;
    fill(&server).await;
    server
}

/// The database that requests are about, with something of each kind; whatever of it is missing comes back.
async fn fill(server: &Server) {
    server.ask("PUT", "/db", ()).await;
    let list = json!({"default": {"level": "manager"}, "entries": [{"name": "bob", "level": "author"}]});
    server.ask("PUT", "/db/_acl", list).await;
    let attached = json!({"a": {"content_type": "text/plain", "data": "YWJj"}});
    server.ask("PUT", "/db/x", json!({"n": 1, "_attachments": attached})).await;
    server.ask("PUT", "/db/x?new_edits=false", json!({"_rev": "1-b", "n": [1, {"a": null}]})).await;
    server.ask("PUT", "/db/_folder/Inbox", json!({})).await;
    server.ask("POST", "/db/_folder/Inbox", json!({"add": ["x"]})).await;
    server.ask("PUT", "/db/_local/x", json!({"n": 1})).await;
    server.ask("PUT", "/db/_design/d", design("Form")).await;
    let index = json!({"index": {"fields": ["n"]}, "ddoc": "i", "name": "i"});
    server.ask("POST", "/db/_index", index).await;
    server.ask("PUT", "/db/_properties", json!({"full_text": true})).await;
    let texts = json!({"t": {"index": "function (doc) { index('text', 'default', doc.a, {store: true}); }"}});
    server.ask("PUT", "/db/_design/w", json!({"nouveau": texts})).await;
}

fn design(column: &str) -> Value {
    json!({"language": "formula", "views": {"v": {"selection": "SELECT @All",
        "columns": [{"title": "A", "formula": column, "sort": "asc", "category": true}]}}})
}

/// Makes requests that are nearly right.
struct Anything(StdRng);

const TEXTS: [&str; 24] = [
    "",
    "x",
    "0",
    "-1",
    "1",
    "true",
    "null",
    "\"\"",
    "\"x\"",
    "[]",
    "{}",
    "[\"x\"]",
    "[[]]",
    "{\"a\":1}",
    "1-b",
    "a",
    "99999999999999999999999",
    "-0.0",
    "1e999",
    "\u{0}",
    "\"\u{fffd}\u{10ffff}\"",
    "_design/d",
    "now",
    "../..",
];

impl Anything {
    fn pick<T: Clone>(&mut self, among: &[T]) -> T {
        among.choose(&mut self.0).unwrap().clone()
    }

    fn chance(&mut self, of: f64) -> bool {
        self.0.random_bool(of)
    }

    fn text(&mut self) -> String {
        match self.0.random_range(0..20) {
            0 => "x".repeat(60_000),
            1 => "[".repeat(600),
            2 => format!("\"{}\"", "y".repeat(60_000)),
            3 => String::from_utf8_lossy(&self.bytes(40)).into_owned(),
            _ => self.pick(&TEXTS).to_owned(),
        }
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.0.random_range(0..=most);
        (0..length).map(|_| self.0.random()).collect()
    }

    fn value(&mut self) -> Value {
        let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        match self.0.random_range(0..16) {
            0 => nested(130),
            1 => Value::from("z".repeat(70_000)),
            2 => json!(u64::MAX),
            3 => json!(i64::MIN),
            4 => json!(f64::MAX),
            5 => Value::from(vec![Value::Null; 300]),
            6 => json!({"$gt": null, "$regex": "(", "a": {"b": []}}),
            7 => self.text().into(),
            _ => {
                self.pick(&[json!(null), json!(true), json!(-1), json!(""), json!([]), json!({}), json!("x")])
            }
        }
    }

    /// Puts something else somewhere into `value`, or takes something away.
    fn spoil(&mut self, value: &mut Value) {
        match value {
            Value::Array(items) if !items.is_empty() && self.chance(0.8) => {
                let place = self.0.random_range(0..items.len());
                if self.chance(0.1) {
                    items.remove(place);
                } else if self.chance(0.1) {
                    items.push(items[place].clone());
                } else {
                    self.spoil(&mut items[place]);
                }
            }
            Value::Object(members) if !members.is_empty() && self.chance(0.8) => {
                let names: Vec<String> = members.keys().cloned().collect();
                let name = self.pick(&names);
                let mut member = members.remove(&name).unwrap();
                if self.chance(0.15) {
                    return;
                }
                let kept = if self.chance(0.1) { self.text() } else { name };
                self.spoil(&mut member);
                members.insert(kept, member);
            }
            other => *other = self.value(),
        }
    }

    /// An address of the route, most often of what is there.
    fn path(&mut self, route: &Route) -> String {
        let mut path = String::new();
        for segment in route.path.split('/').skip(1) {
            let usual = match segment.trim_matches(['{', '}', '.']) {
                "db" => "db",
                "ddoc" if route.path.contains("_nouveau") => "w",
                "textindex" => "t",
                "ddoc" | "index_ddoc" => "d",
                "view" => "v",
                "docid" | "localid" => "x",
                "attname" => "a",
                "number" => "0",
                "folder" => "Inbox",
                "special" | "function" => "_x",
                "type" => "json",
                name if segment.starts_with('{') => name,
                _ => segment,
            };
            let given = if self.chance(0.1) { self.text() } else { usual.to_owned() };
            path.push('/');
            path.push_str(&encoded(&given));
        }
        path
    }

    fn query(&mut self, entry: &MethodRoute) -> String {
        let mut query = String::new();
        for _ in 0..self.pick(&[0, 0, 1, 1, 2, 4]) {
            let name = match entry.parameters {
                [] => self.text(),
                parameters => self.pick(parameters).to_owned(),
            };
            let value = self.text();
            query.push(if query.is_empty() { '?' } else { '&' });
            query.push_str(&encoded(&name));
            if self.chance(0.95) {
                query.push('=');
                query.push_str(&encoded(&value));
            }
        }
        query
    }

    fn headers(&mut self) -> String {
        let mut headers = String::new();
        let values = [
            "",
            "x",
            "*",
            "\"1-b\"",
            "W/\"x\"",
            "bytes=0-1",
            "bytes=99999999999999999999-",
            "bytes=-0",
            "text/plain;q=x",
            "multipart/mixed",
            "application/json",
            "gzip",
            "https://a.example",
            "Basic",
            "Basic ====",
            "=;=;==",
            "AuthSession=x; __Host-AuthSession=",
            "for=\"[::1\";proto=",
            "1",
            "Thu, 01 Jan 1970 00:00:00 GMT",
        ];
        let names = [
            "If-Match",
            "If-None-Match",
            "Range",
            "Accept",
            "Cookie",
            "Origin",
            "Destination",
            "Content-Encoding",
            "Accept-Encoding",
            "X-Forwarded-For",
            "Forwarded",
            "X-HTTP-Method-Override",
            "Last-Event-ID",
            "Referer",
            "Content-MD5",
            "Sec-Fetch-Site",
            "Access-Control-Request-Method",
            "Content-Disposition",
        ];
        for _ in 0..self.pick(&[0, 0, 0, 1, 2]) {
            let (name, value) = (self.pick(&names), self.pick(&values));
            headers.push_str(&format!("{name}: {value}\r\n"));
        }
        headers
    }

    /// A content type and a body, most often nearly what the route takes.
    fn body(&mut self, method: &str, path: &str) -> (String, Vec<u8>) {
        let mut value = usual_body(method, path);
        if self.chance(0.1) {
            return (
                self.pick(&["application/json", "", "text/plain", "a/b; c=\"", "\u{e4}"]).to_owned(),
                self.bytes(300),
            );
        }
        if path.ends_with("{docid}") && self.chance(0.3) {
            return self.related();
        }
        for _ in 0..self.pick(&[0, 1, 1, 2, 3]) {
            self.spoil(&mut value);
        }
        let mut body = value.to_string().into_bytes();
        if self.chance(0.1) {
            self.spoil_bytes(&mut body);
        }
        ("application/json".to_owned(), body)
    }

    fn related(&mut self) -> (String, Vec<u8>) {
        let document = json!({"_attachments": {"a": {"follows": true, "length": 3, "content_type": "a/b"},
            "b": {"follows": true, "length": 0}}});
        let mut body = format!(
            "--one\r\nContent-Type: application/json\r\n\r\n{document}\r\n--one\r\n\r\nabc\r\n\
             --one\r\nContent-Disposition: attachment; filename=\"b\"\r\n\r\n\r\n--one--"
        )
        .into_bytes();
        if self.chance(0.8) {
            self.spoil_bytes(&mut body);
        }
        let boundary = self.pick(&["one", "one", "one", "\"one\"", "", "--", "\"", "o"]);
        (format!("multipart/related; boundary={boundary}"), body)
    }

    fn spoil_bytes(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..self.pick(&[1, 1, 2, 5]) {
            let place = self.0.random_range(0..=bytes.len());
            let behind = (place + self.0.random_range(0..30)).min(bytes.len());
            match self.0.random_range(0..6) {
                0 => bytes.truncate(place),
                1 => drop(bytes.drain(place..behind)),
                2 => {
                    let copy = bytes[place..behind].to_vec();
                    bytes.splice(place..place, copy);
                }
                3 => {
                    let more = self.bytes(8);
                    bytes.splice(place..place, more);
                }
                4 => {
                    let mark = self.pick(&[
                        "\r\n",
                        "\r\n\r\n",
                        "\n",
                        "--",
                        "\0",
                        ":",
                        " ",
                        "0\r\n\r\n",
                        "\"",
                        "%",
                        "ffffffff\r\n",
                    ]);
                    bytes.splice(place..place, mark.bytes());
                }
                _ => {
                    if let Some(byte) = bytes.get_mut(place) {
                        *byte ^= 1 << self.0.random_range(0..8);
                    }
                }
            }
        }
    }

    /// A whole request, and words that say what it is.
    fn request(&mut self) -> (String, Vec<u8>) {
        let route = self.0.random_range(0..routes().len());
        let route = &routes()[route];
        let entry = &route.methods[self.0.random_range(0..route.methods.len())];
        let method = if self.chance(0.05) {
            self.pick(&["OPTIONS", "HEAD", "PATCH", "PUT", "COPY"])
        } else {
            entry.method
        };
        let method = if method == "*" { "GET" } else { method };
        let target = format!("{}{}", self.path(route), self.query(entry));
        let who = self.pick(&["admin", "admin", "admin", "ada", "bob", ""]);
        let who = if who.is_empty() {
            String::new()
        } else {
            format!("Authorization: {}\r\n", basic(who, PASSWORD))
        };
        let headers = self.headers();
        let has_body = method != "GET" || self.chance(0.05);
        let (kind, body) = if has_body { self.body(method, route.path) } else { (String::new(), Vec::new()) };
        let copied = if method == "COPY" { "Destination: y\r\n" } else { "" };
        let head =
            format!("{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{who}{copied}{headers}");
        let head = format!("{head}Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
        let shown = format!("{head:.3000}{:.3000}", String::from_utf8_lossy(&body));
        (shown, [head.into_bytes(), body].concat())
    }
}

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// What a client means to send.
fn usual_body(method: &str, path: &str) -> Value {
    let page = json!({"startkey": ["x"], "endkey": {}, "limit": 3, "include_docs": true, "keys": ["x"]});
    match (method, path) {
        (_, "/_session") => json!({"name": "ada", "password": PASSWORD}),
        (_, "/_console") => json!({"command": "show who"}),
        (_, "/_dbs_info") => json!({"keys": ["db"]}),
        (_, path) if path.ends_with("/queries") => json!({"queries": [{"limit": 2}, page]}),
        (_, path) if path.ends_with("_docs") && !path.ends_with("_bulk_docs") => page,
        (_, path) if path.ends_with("{view}") => page,
        (_, "/{db}/_bulk_docs") => json!({"new_edits": false, "docs": [
            {"_id": "x", "_rev": "2-c", "_revisions": {"start": 2, "ids": ["c", "b"]}, "Readers": ["ada"],
             "_attachments": {"a": {"stub": true}, "b": {"data": "YWJj", "content_type": "a/b", "digest": "md5-x"}}},
            {"_id": "y", "_deleted": true}, {"_id": "_local/z"}, {"_id": "_design/e", "views": {}}]}),
        (_, "/{db}/_bulk_get") => {
            json!({"docs": [{"id": "x", "rev": "1-b", "atts_since": ["1-b"]}, {"id": "y"}]})
        }
        (_, "/{db}/_revs_diff" | "/{db}/_missing_revs" | "/{db}/_purge") => {
            json!({"x": ["1-b", "9-z"], "y": []})
        }
        (_, "/{db}/_changes") => json!({"doc_ids": ["x"], "selector": {"n": {"$gt": null}}}),
        (_, "/{db}/_find" | "/{db}/_explain") => {
            json!({"selector": {"n": {"$gt": 0}, "$or": [{"a": 1}, {"b": {"$in": [2]}}]},
            "fields": ["_id", "n"], "sort": [{"n": "asc"}], "limit": 2, "skip": 0, "use_index": "i", "bookmark": "nil",
            "execution_stats": true, "conflicts": true, "r": 1, "update": true, "stable": false})
        }
        (_, "/{db}/_fulltext" | "/{db}/_design/{ddoc}/_nouveau/{textindex}") => {
            json!({"q": "+a:b -(\"x y\"~2 OR z*) n:[1 TO 3}", "sort": ["-n<double>", "a"], "limit": 2, "counts": ["a"],
            "ranges": {"n": [{"label": "few", "min": 0, "max": 3, "max_inclusive": false}]}, "top_n": 3, "snippets": true,
            "include_docs": true, "bookmark": "nil", "update": true, "all_words": true, "exact_total": true})
        }
        (_, "/_nouveau_analyze") => json!({"analyzer": "english", "text": "Red roses"}),
        (_, "/{db}/_index") => {
            json!({"index": {"fields": [{"a": "asc"}, "b"], "partial_filter_selector": {"a": 1}},
            "ddoc": "j", "name": "j", "type": "json"})
        }
        (_, "/{db}/_index/_bulk_delete") => json!({"docids": ["_design/j"]}),
        (_, "/{db}/_revs_limit") => json!(1000),
        (_, "/{db}/_security") => {
            json!({"admins": {"names": ["a"], "roles": []}, "members": {"names": [], "roles": ["b"]}})
        }
        (_, "/_mail_rules" | "/_mail_rules/server") => {
            json!({"rules": [{"name": "n", "when": "Subject = \"x\"", "actions": [{"move": "A"}, {"mark": ["read"]}],
            "stop": true}]})
        }
        (_, "/_mail_scripts") => json!({"active": "a", "scripts": {"a": "keep;"}, "version": "0"}),
        (_, "/{db}/_properties") => json!({"logged": true}),
        (_, "/{db}/_acl") => {
            json!({"default": {"level": "manager"}, "anonymous": {"level": "no_access"}, "entries": [
            {"name": "bob", "kind": "person", "level": "author", "create": true, "delete": false, "roles": ["HR"]}]})
        }
        ("POST", "/{db}/_folder/{folder}") => {
            json!({"add": ["x"], "remove": ["y"], "move": {"to": "Inbox", "ids": ["x"]}})
        }
        ("PUT", "/{db}/_folder/{folder}") => {
            json!({"name": "Other", "columns": [{"title": "A", "formula": "n"}], "kind": "mail", "special_use": "sent", "keep_days": 30})
        }
        (_, "/{db}/_unread") => json!({"read": ["x"], "unread": ["y"]}),
        (_, "/{db}/_design/{ddoc}") => design("@Subset(Form; 1)"),
        _ => {
            json!({"_id": "x", "_rev": "1-b", "n": 1, "Readers": ["ada"], "_attachments": {"a": {"stub": true}}})
        }
    }
}

/// Everything that comes back within a moment. What may not be a whole request ends after another one.
async fn answered(server: &Server, request: &[u8], is_whole: bool) -> Vec<u8> {
    let mut stream = server.connect().await;
    // Who is refused may be cut off.
    drop(timeout(PATIENCE * 10, stream.write_all(request)).await);
    let mut answer = Vec::new();
    let mut piece = vec![0; 64 << 10];
    let mut has_ended = is_whole;
    while answer.len() < 4 << 20 {
        // A whole request is answered, however loaded the machine is.
        let patience = if is_whole && answer.is_empty() { PATIENCE * 20 } else { PATIENCE };
        match timeout(patience, stream.read(&mut piece)).await {
            Ok(Ok(length)) if length > 0 => answer.extend_from_slice(&piece[..length]),
            Err(_) if !has_ended => {
                drop(stream.shutdown().await);
                has_ended = true;
            }
            _ => break,
        }
    }
    answer
}

/// What comes back for each of several requests at the same time.
async fn all_answered(server: &Server, requests: &[Vec<u8>], are_whole: bool) -> Vec<Vec<u8>> {
    join_all(requests.iter().map(|request| answered(server, request, are_whole))).await
}

/// The statuses of all answers in `bytes`.
fn statuses(bytes: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(bytes);
    let heads = text.split("HTTP/1.1 ").skip(1);
    heads.filter_map(|head| head.get(..3)?.parse().ok()).collect()
}

fn check(asked: &str, answer: &[u8]) {
    let shown = String::from_utf8_lossy(answer);
    for status in statuses(answer) {
        assert!(!(status >= 500 && status != 501 && status != 503), "{asked}\n---\n{shown:.2000}");
    }
}

/// An answer in JSON that has arrived whole can be read.
fn check_json(asked: &str, answer: &[u8]) {
    let shown = String::from_utf8_lossy(answer);
    let Some((head, body)) = shown.split_once("\r\n\r\n") else { return };
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let is_whole = length.is_some_and(|length| length.parse() == Ok(body.len()));
    if is_whole && !body.is_empty() && head.contains("\r\ncontent-type: application/json") {
        let parsed = parse_value(body, NESTING_MAX);
        assert!(parsed.is_ok(), "{asked}\n---\n{shown:.2000}");
    }
}

async fn check_server(server: &Server) {
    server.ask_as("", "GET", "/_up", ()).await.expect(200);
    let counted = server.statistics.snapshot();
    assert_eq!(counted.counters["Server.Pool.Panics"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_of_any_route_tells_of_a_defect() {
    let (mut anything, rounds) = begin(60);
    let server = server().await;
    for _ in 0..rounds {
        fill(&server).await;
        let (shown, requests): (Vec<_>, Vec<_>) = (0..AT_ONCE).map(|_| anything.request()).unzip();
        for (shown, answer) in shown.iter().zip(all_answered(&server, &requests, true).await) {
            // A feed may wait for as long as the client says.
            assert!(!answer.is_empty() || shown.contains("_changes"), "no answer to {shown}");
            check(shown, &answer);
            check_json(shown, &answer);
        }
    }
    check_server(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_bytes_that_are_nearly_requests_do_harm() {
    let (mut anything, rounds) = begin(12);
    let server = server().await;
    for _ in 0..rounds {
        let mut nearly = || {
            let mut bytes = Vec::new();
            for _ in 0..anything.pick(&[1, 1, 2]) {
                let mut request = anything.request().1;
                // Where the changes would most often be in the text of one parameter.
                request.truncate(5_000);
                bytes.append(&mut request);
            }
            anything.spoil_bytes(&mut bytes);
            bytes
        };
        let requests: Vec<_> = (0..2 * AT_ONCE).map(|_| nearly()).collect();
        for (bytes, answer) in requests.iter().zip(all_answered(&server, &requests, false).await) {
            check(&String::from_utf8_lossy(bytes), &answer);
        }
    }
    check_server(&server).await;
}

/// A frame of HTTP/2 (RFC 9113 §4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// `GET /_up` and `PUT /db/x`, by the static table and literals (RFC 7541).
const GET_UP: &[u8] = &[0x82, 0x86, 0x04, 0x04, b'/', b'_', b'u', b'p', 0x41, 0x01, b'x'];
const PUT_DOCUMENT: &[u8] =
    &[0x02, 0x03, b'P', b'U', b'T', 0x86, 0x04, 0x05, b'/', b'd', b'b', b'/', b'x', 0x41, 0x01, b'x'];

impl Anything {
    /// A connection of HTTP/2 with some frames, and what goes wrong with them.
    fn frames(&mut self) -> Vec<u8> {
        let mut bytes = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, 0, &[])].concat();
        for number in 0..self.pick(&[1_u32, 2, 5]) {
            let stream = 2 * number + 1;
            let payload = self.bytes(40);
            let next = match self.0.random_range(0..4) {
                0 => frame(1, 5, stream, GET_UP),
                1 => [frame(1, 4, stream, PUT_DOCUMENT), frame(0, 1, stream, b"{}")].concat(),
                // Any frame, of any stream.
                2 => {
                    let of_stream = self.pick(&[0, 1, stream]);
                    frame(self.0.random_range(0..12), self.0.random(), of_stream, &payload)
                }
                _ => frame(1, 5, stream, &payload),
            };
            bytes.extend(next);
        }
        if self.chance(0.5) {
            self.spoil_bytes(&mut bytes);
        }
        bytes
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_frames_of_http2_do_harm() {
    let (mut anything, rounds) = begin(6);
    let server = server().await;
    for _ in 0..rounds {
        let connections: Vec<_> = (0..2 * AT_ONCE).map(|_| anything.frames()).collect();
        all_answered(&server, &connections, false).await;
    }
    check_server(&server).await;
}
