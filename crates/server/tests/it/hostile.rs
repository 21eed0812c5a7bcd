//! What no well-meaning client sends, against the whole server: each gets a clear refusal, the server serves
//! on, and its memory stays bounded.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::common::{Answer, Client, SMALL, Server, read_answer};
use serde_json::json;

/// Next to what the databases may use; generous, because allocators keep what they once had.
const MEMORY_BYTES: u64 = 256 << 20;

const CUT_OFF_WITHIN: Duration = Duration::from_secs(15);

fn start(folder: &tempfile::TempDir) -> Server {
    let impatient = [("SCRINIUM_HTTP__READ_TIMEOUT", "1 s"), ("SCRINIUM_HTTP__IDLE_TIMEOUT", "30 s")];
    let settings: Vec<_> = SMALL.into_iter().chain(impatient).collect();
    let server = Server::start(folder.path(), &settings);
    server.client().ask("PUT", "/db", "application/json", &[]).unwrap().expect(201);
    server
}

/// Runs `attack`, after which the server must serve and not have grown.
fn survives(attack: impl FnOnce(&Server)) {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder);
    let before = server.resident_bytes();
    attack(&server);
    let mut client = server.client();
    client.get("/_up").unwrap().expect(200);
    client.json("PUT", "/db/after", &json!({"fine": true})).unwrap().expect(201);
    client.get("/db/after").unwrap().expect(200);
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < MEMORY_BYTES, "the server grew by {} MB", grown >> 20);
    assert!(!server.messages().contains("panicked"), "{}", server.messages());
}

fn put(client: &mut Client, path: &str, body: &str) -> Answer {
    client.ask("PUT", path, "application/json", body.as_bytes()).unwrap()
}

fn post(client: &mut Client, path: &str, body: &str) -> Answer {
    client.ask("POST", path, "application/json", body.as_bytes()).unwrap()
}

/// Bytes as they are, on a connection of their own.
fn raw(server: &Server, bytes: &[u8]) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(CUT_OFF_WITHIN)).unwrap();
    stream.write_all(bytes).unwrap();
    BufReader::new(stream)
}

fn head(server: &Server, method: &str, path: &str, framing: &str) -> Vec<u8> {
    let cookie = server.cookie();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\nContent-Type: application/json\r\n{framing}\r\n\r\n"
    )
    .into_bytes()
}

/// Sends `piece` again and again until the server has enough of it; how many bytes it took.
fn flood(server: &Server, begin: &[u8], piece: &[u8], most_bytes: usize) -> usize {
    let mut stream = raw(server, begin);
    let mut sent = 0;
    while sent < most_bytes && stream.get_mut().write_all(piece).is_ok() {
        sent += piece.len();
    }
    sent
}

#[test]
fn bad_json_and_wrong_revisions_are_refused_in_couchdbs_words() {
    survives(|server| {
        let mut client = server.client();
        let bad = ["", "{", "{\"a\":}", "nonsense", "{\"a\":\"\u{1}\"}", "{\"a\":1}{", "{\"a\":\"\\ud800\"}"];
        for body in bad {
            put(&mut client, "/db/a", body).expect_error(400, "bad_request");
            post(&mut client, "/db", body).expect_error(400, "bad_request");
            post(&mut client, "/db/_bulk_docs", body).expect_error(400, "bad_request");
        }
        let invalid_text = client.ask("PUT", "/db/a", "application/json", b"{\"a\":\"\xff\xfe\"}").unwrap();
        invalid_text.expect_error(400, "bad_request");
        for body in ["[]", "1", "null", "\"text\""] {
            put(&mut client, "/db/a", body).expect_error(400, "bad_request");
        }
        put(&mut client, "/db/a", "{\"_nothing\":1}").expect_error(400, "doc_validation");
        put(&mut client, "/db/_a", "{}").expect_error(400, "illegal_docid");

        let written = put(&mut client, "/db/a", "{}").expect(201).value();
        put(&mut client, "/db/a", "{}").expect_error(409, "conflict");
        put(&mut client, "/db/a?rev=1-00000000000000000000000000000000", "{}").expect_error(409, "conflict");
        for revision in ["x", "1", "-1-a", "1-", "99999999999999999999999-a", "1-../../x"] {
            let refused = put(&mut client, &format!("/db/a?rev={revision}"), "{}");
            assert!(matches!(refused.status, 400 | 409), "{revision}: {}", refused.text());
            refused
                .expect_error(refused.status, if refused.status == 409 { "conflict" } else { "bad_request" });
        }
        let delete = client.ask("DELETE", "/db/a", "application/json", &[]).unwrap();
        delete.expect_error(409, "conflict");
        let found = client.get("/db/a").unwrap().expect(200).value();
        assert_eq!(found["_rev"], written["rev"]);
    });
}

#[test]
fn paths_lead_nowhere_but_to_databases() {
    survives(|server| {
        let mut client = server.client();
        for name in [
            "..%2F..%2Fetc%2Fpasswd",
            "%2e%2e%2f",
            "%2e%2e",
            "..%5c..%5cx",
            "db%00",
            "%00",
            "a%2F..%2F..%2Fb",
            "UPPER",
            "a%20b",
            "_system",
            "%C3%A9",
            "a%2F..",
        ] {
            client
                .ask("PUT", &format!("/{name}"), "application/json", &[])
                .unwrap()
                .expect_error(400, "illegal_database_name");
        }
        let refused = client.ask("PUT", "/../../etc", "application/json", b"x").unwrap();
        refused.expect_error(404, "not_found");
        client.get("/%ff").unwrap().expect_error(400, "bad_request");
        client.get("/db/..%2f..%2fetc%2fpasswd").unwrap().expect_error(404, "not_found");
        let long = "a".repeat(10_000);
        let refused = client.ask("PUT", &format!("/{long}"), "application/json", &[]).unwrap();
        assert!((400..500).contains(&refused.status), "{}", refused.text());
        refused.expect_error(refused.status, refused.value()["error"].as_str().unwrap());
        // Within a document's id or an attachment's name such a text is only a text.
        put(&mut client, "/db/..%2F..%2Fx", "{}").expect(201);
        let attached = client.ask("PUT", "/db/with/..%2F..%2Fx", "text/plain", b"x").unwrap();
        attached.expect(201);
        let all = client.get("/_all_dbs").unwrap().expect(200).text();
        assert!(!all.contains(".."), "{all}");
    });
}

#[test]
fn depth_and_huge_numbers_harm_nothing() {
    survives(|server| {
        let mut client = server.client();
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            for depth in [10_000, 1_000_000] {
                let nested = format!("{}1{}", open.repeat(depth), close.repeat(depth));
                let body = format!("{{\"a\":{nested}}}");
                let refused = put(&mut client, "/db/deep", &body);
                assert!(matches!(refused.status, 400 | 413), "{}", refused.status);
                let bulk = post(&mut client, "/db/_bulk_docs", &format!("{{\"docs\":[{body}]}}"));
                let rows = bulk.value();
                let refused = bulk.status == 400 || rows[0]["error"].is_string();
                assert!(refused || bulk.status == 413, "{}", bulk.text());
                let keys = post(&mut client, "/db/_all_docs", &format!("{{\"keys\":{nested}}}"));
                assert!(matches!(keys.status, 400 | 413), "{}", keys.text());
            }
        }
        put(&mut client, "/db/a", "{}").expect(201);
        let huge = "9".repeat(5_000);
        client.get(&format!("/db/_all_docs?limit={huge}&skip={huge}")).unwrap().expect(200);
        client.get(&format!("/db/_changes?limit={huge}&timeout={huge}")).unwrap().expect(200);
        for query in
            ["_all_docs?limit=x", "_all_docs?skip=-1", "_all_docs?limit=1e3", "_all_docs?descending=7"]
        {
            client.get(&format!("/db/{query}")).unwrap().expect_error(400, "query_parse_error");
        }
        for path in [
            format!("/_uuids?count={huge}"),
            format!("/db/_changes?since={huge}"),
            format!("/db/a?rev={huge}"),
        ] {
            let refused = client.get(&path).unwrap();
            assert_eq!(refused.status, 400, "{}", refused.text());
            refused.expect_error(400, refused.value()["error"].as_str().unwrap());
        }
        let number = format!("{{\"n\":1{},\"m\":1e999999,\"k\":-1e-999999}}", "0".repeat(100_000));
        let answer = put(&mut client, "/db/numbers", &number);
        assert!(matches!(answer.status, 201 | 400 | 413), "{}", answer.text());
    });
}

#[test]
fn heads_and_bodies_that_do_not_end_are_cut_off() {
    survives(|server| {
        let two_gigabytes = 2 << 30;
        let piece = [b'a'; 64 << 10];
        let sent = flood(server, b"GET / HTTP/1.1\r\nX-Long: ", &piece, two_gigabytes);
        assert!(sent < 64 << 20, "{sent} bytes of a header were taken");
        let sent = flood(server, b"GET / HTTP/1.1\r\n", &b"X-Many: 1\r\n".repeat(1000), two_gigabytes);
        assert!(sent < 64 << 20, "{sent} bytes of headers were taken");
        let sent = flood(server, b"GET /", &piece, two_gigabytes);
        assert!(sent < 64 << 20, "{sent} bytes of a path were taken");
        let chunked = head(server, "PUT", "/db/endless", "Transfer-Encoding: chunked");
        let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
        let sent = flood(server, &chunked, &chunk, two_gigabytes);
        assert!(sent < 128 << 20, "{sent} bytes of a body were taken");
        let declared = head(server, "PUT", "/db/declared", "Content-Length: 99999999999999");
        read_answer(&mut raw(server, &declared)).unwrap().expect_error(413, "too_large");
        let long = "x".repeat(100_000);
        let mut stream = raw(server, format!("GET / HTTP/1.1\r\nX-Long: {long}\r\n\r\n").as_bytes());
        let answer = read_answer(&mut stream);
        assert!(answer.is_err() || answer.is_ok_and(|answer| answer.status == 431));
    });
}

#[test]
fn whoever_is_slow_is_cut_off_and_nobody_else_waits() {
    survives(|server| {
        let begin = b"GET /_up HTTP/1.1\r\nHost: x\r\nX-Slow: ".as_slice();
        let mut slow: Vec<_> = (0..200).map(|_| raw(server, begin)).collect();
        let began = Instant::now();
        while !slow.is_empty() {
            assert!(began.elapsed() < CUT_OFF_WITHIN, "{} slow ones are still served", slow.len());
            slow.retain_mut(|stream| stream.get_mut().write_all(b"x").is_ok());
            server.client().get("/_up").unwrap().expect(200);
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut drops = raw(server, &head(server, "PUT", "/db/slow", "Content-Length: 1000"));
        drops.get_mut().write_all(b"{").unwrap();
        let answer = read_answer(&mut drops).unwrap();
        answer.expect_error(408, "timeout");
    });
}

#[test]
fn broken_framing_is_refused() {
    survives(|server| {
        let send = |method: &str, framing: &str, body: &str| {
            let mut bytes = head(server, method, "/db/framed", framing);
            bytes.extend_from_slice(body.as_bytes());
            let mut stream = raw(server, &bytes);
            // Anyone who sends less than was said and closes is not waited for.
            let _ = stream.get_mut().shutdown(std::net::Shutdown::Write);
            read_answer(&mut stream)
        };
        // A body that is longer than was said ends where it should; the rest is no request.
        send("PUT", "Content-Length: 2", "{} and more\r\n\r\n").unwrap().expect(201);
        for (framing, body) in [
            ("Content-Length: 100", "{}"),
            ("Content-Length: -1", "{}"),
            ("Content-Length: 2\r\nContent-Length: 3", "{}"),
            ("Content-Length: 99999999999999999999999999", "{}"),
            ("Transfer-Encoding: chunked", "zz\r\n{}\r\n0\r\n\r\n"),
            ("Transfer-Encoding: chunked", "ffffffffffffffffffff\r\n{}"),
            ("Transfer-Encoding: chunked", "2\r\n{}garbage"),
            ("Transfer-Encoding: gzip", "{}"),
            ("Content-Length: 2\r\nTransfer-Encoding: chunked", "zz"),
            ("X\u{0}Y: 1", ""),
            ("X: \u{0}", ""),
        ] {
            // Some are not requests to HTTP itself, which has no JSON for them.
            if let Ok(answer) = send("PUT", framing, body) {
                // A coding that the server does not know is 501 (RFC 9112 §6.1).
                let expected = if framing.ends_with("gzip") { 501..502 } else { 400..500 };
                assert!(expected.contains(&answer.status), "{framing}: {} {}", answer.status, answer.text());
            }
        }
        for garbage in [
            "nonsense\r\n\r\n",
            "GET / HTTP/9.9\r\n\r\n",
            "\u{16}\u{3}\u{1}\r\n\r\n",
            "GET /\u{0} HTTP/1.1\r\n\r\n",
        ] {
            if let Ok(answer) = read_answer(&mut raw(server, garbage.as_bytes())) {
                assert_eq!(answer.status, 400, "{garbage:?}");
            }
        }
        for method in ["BREW", "PATCH", "TRACE", "M-SEARCH"] {
            for path in ["/", "/db", "/db/a", "/db/_all_docs", "/_all_dbs"] {
                let refused = server.client().ask(method, path, "application/json", &[]).unwrap();
                refused.expect_error(405, "method_not_allowed");
            }
        }
    });
}
