//! A server that gets no more memory, threads or files: it refuses what it cannot do, loses nothing, and goes on when there
//! are some again, or says that it must be restarted.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};

use crate::common::control_group::{ControlGroup, Limited};
use crate::common::{Answer, Client, SMALL, Server, noise};

/// A server's budget of memory (`SMALL`), and what it has besides with all that its processes hold.
const BUDGET_BYTES: u64 = 64 << 20;
const BESIDES_BYTES: u64 = 512 << 20;

/// What one attacker sends at a time takes at most so long.
const PATIENCE: Duration = Duration::from_secs(5);

/// However loaded the machine is.
const BACK_WITHIN: Duration = Duration::from_secs(60);

fn send(server: &Server, head: &str, body: &[u8]) -> Option<TcpStream> {
    // A log-in comes from nobody.
    let cookie = match head {
        "POST /_session" => String::new(),
        _ => format!("Cookie: {}\r\n", server.cookie()),
    };
    let mut stream = TcpStream::connect_timeout(&server.address(), PATIENCE).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let head = format!("{head} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{cookie}");
    stream.write_all(head.as_bytes()).ok()?;
    // Who is refused may be cut off.
    drop(stream.write_all(body));
    Some(stream)
}

fn with_length(more: &str, length: usize, body: &[u8]) -> Vec<u8> {
    [format!("{more}Content-Length: {length}\r\n\r\n").as_bytes(), body].concat()
}

/// `start`, then 64 MB of `piece`, compressed to some KB.
fn packed(start: &str, piece: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(start.as_bytes()).unwrap();
    let piece = piece.repeat((64 << 10) / piece.len());
    for _ in 0..1024 {
        encoder.write_all(piece.as_bytes()).unwrap();
    }
    encoder.finish().unwrap()
}

/// The bodies that take most of what reads them.
fn worst_bodies() -> Vec<(&'static str, Vec<u8>)> {
    let worst = [
        ("POST /_session", "{\"a\":[0", ",0"),
        ("POST /db/_find", "{\"selector\":{\"a\":{\"$in\":[0", ",0"),
        ("POST /db/_all_docs", "{\"keys\":[0", ",[]"),
        ("POST /db/_bulk_docs", "{\"docs\":[{}", ",{}"),
        ("PUT /db/x", "{\"a\":[0", ",{\"a\":0}"),
        ("PUT /db/_acl", "{\"entries\":[0", ",{}"),
    ];
    worst.map(|(head, start, piece)| (head, packed(start, piece))).into()
}

/// Does to the server the worst that we know; gives the connections that are left open.
fn attack(server: &Server, worst: &[(&str, Vec<u8>)]) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for (head, body) in worst {
        for _ in 0..3 {
            let body = with_length("Content-Encoding: gzip\r\n", body.len(), body);
            open.extend(send(server, head, &body));
        }
    }
    let slow = vec![b' '; 3 << 20];
    for number in 0..20 {
        open.extend(send(server, &format!("PUT /db/slow{number}"), &with_length("", 60 << 20, &slow)));
    }
    for number in 0..60 {
        let listing = "_all_docs?include_docs=true&attachments=true";
        let path = if number % 2 == 0 { "large?attachments=true" } else { listing };
        open.extend(send(server, &format!("GET /db/{path}"), b"\r\n"));
    }
    for _ in 0..150 {
        open.extend(send(server, "GET /db/_changes?feed=continuous&heartbeat=50", b"\r\n"));
    }
    open
}

#[test]
fn in_a_group_with_little_memory_a_server_is_attacked_and_not_killed() {
    let group = match ControlGroup::new(Limited::MemoryBytes) {
        Ok(group) => group,
        Err(reason) => return scrinium_fault::skip(reason),
    };
    group.set_limit(BUDGET_BYTES + BESIDES_BYTES).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::spawn(folder.path(), &SMALL);
    group.add(server.id()).unwrap();
    server.wait_until_up();
    let mut client = server.client();
    client.json("PUT", "/db", &Value::Null).unwrap().expect(201);
    client.ask("PUT", "/db/large/file", "a/b", &noise(1, 24 << 20)).unwrap().expect(201);
    let worst = worst_bodies();
    let (is_over, answers, highest) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                server.client().get("/_up").unwrap().expect(200);
                answers.fetch_add(1, Ordering::Relaxed);
                highest.fetch_max(server.resident_bytes(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        for _ in 0..scrinium_fault::cases(1) {
            let open = attack(&server, &worst);
            std::thread::sleep(Duration::from_millis(500));
            drop(open);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(answers.load(Ordering::Relaxed) > 0);
    accepted(|| server.client().json("PUT", "/db/after", &json!({"fine": true})));
    let highest = highest.load(Ordering::Relaxed);
    assert!(highest < BUDGET_BYTES + BESIDES_BYTES / 2, "the server had {} MB", highest >> 20);
    assert!(!server.messages().contains("panicked"), "{}", server.messages());
}

/// Asks until it is not refused for a while.
fn accepted(mut ask: impl FnMut() -> std::io::Result<Answer>) -> Answer {
    let began = Instant::now();
    loop {
        let answer = ask().unwrap();
        if !matches!(answer.status, 429 | 503) || began.elapsed() > BACK_WITHIN {
            assert!(answer.status < 300, "{}: {}", answer.status, answer.text());
            return answer;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A database with a view of each kind.
fn make_views(client: &mut Client) {
    client.json("PUT", "/db", &Value::Null).unwrap().expect(201);
    let script = "function (doc) { emit(doc._id, 1) }";
    let script = json!({"views": {"v": {"map": script, "reduce": "_sum"}}});
    client.json("PUT", "/db/_design/script", &script).unwrap().expect(201);
    let columns = json!([{"title": "A", "formula": "n", "sort": "asc"}]);
    let formula =
        json!({"language": "formula", "views": {"v": {"selection": "SELECT @All", "columns": columns}}});
    client.json("PUT", "/db/_design/formula", &formula).unwrap().expect(201);
}

/// Several clients write and read views, and are answered or told to come again; gives the documents that were taken.
fn work(server: &Server, rounds: u32, document: &Value) -> Vec<String> {
    let mut taken = Vec::new();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..12)
            .map(|number| {
                scope.spawn(move || {
                    let mut taken = Vec::new();
                    let mut client = server.client();
                    for round in 0..rounds {
                        let id = format!("{number}-{round}");
                        let written = client.json("PUT", &format!("/db/{id}"), document).unwrap();
                        assert!(matches!(written.status, 201 | 503), "{}", written.text());
                        taken.extend((written.status == 201).then_some(id));
                        for view in ["formula", "script"] {
                            let read = client.get(&format!("/db/_design/{view}/_view/v?limit=1")).unwrap();
                            assert!(matches!(read.status, 200 | 503), "{view}: {}", read.text());
                        }
                        client.get("/_up").unwrap().expect(200);
                    }
                    taken
                })
            })
            .collect();
        taken = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    });
    taken
}

/// The server takes writes and builds views, and nothing that it took is lost.
fn check_all_is_well(server: &Server, taken: &[String]) {
    accepted(|| server.client().json("PUT", "/db/after", &json!({"fine": true})));
    let found = accepted(|| server.client().get("/db/_design/script/_view/v")).value();
    let counted = accepted(|| server.client().get("/db/_design/formula/_view/v?limit=0")).value();
    assert_eq!(found["rows"][0]["value"], counted["total_rows"], "{found} {counted}");
    check_all_is_there(server, taken);
    assert!(!server.messages().contains("panicked"), "{}", server.messages());
}

fn check_all_is_there(server: &Server, taken: &[String]) {
    let mut client = server.client();
    for id in taken {
        client.get(&format!("/db/{id}")).unwrap().expect(200);
    }
}

#[test]
fn a_server_that_gets_no_more_threads_answers_all_and_has_more_again() {
    let group = match ControlGroup::new(Limited::Threads) {
        Ok(group) => group,
        Err(reason) => return scrinium_fault::skip(reason),
    };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    group.add(server.id()).unwrap();
    make_views(&mut server.client());
    // Not one more.
    group.set_limit(group.threads()).unwrap();
    let taken = work(&server, scrinium_fault::cases(5), &json!({"n": 1}));
    group.set_limit(100_000).unwrap();
    check_all_is_well(&server, &taken);
}

/// Sets how many files the process may have open; gives what it was.
fn limit_files(server: &Server, files: Option<u64>) -> Rlimit {
    let most = getrlimit(Resource::Nofile).maximum;
    let current = files.or(most);
    prlimit(Some(server.pid()), Resource::Nofile, Rlimit { current, maximum: most }).unwrap()
}

/// A text that does not compress to nothing.
fn text(seed: u64) -> Value {
    let letters = noise(seed, 30_000).into_iter().map(|byte| char::from(b'a' + byte % 26));
    letters.collect::<String>().into()
}

/// Writes and reads while no file can be opened; gives the documents that were taken.
fn work_without_files(server: &Server, round: u32) -> Vec<String> {
    // It is there before there are no more.
    let mut client = server.client();
    client.get("/_up").unwrap().expect(200);
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().count() as u64;
    let usual = limit_files(server, Some(open));
    let mut taken = Vec::new();
    // More than an extent of the log and a part of the tree hold, so that both want files.
    for number in 0..80 {
        let id = format!("held-{round}-{number}");
        let document = json!({"n": number, "text": text(u64::from(round * 100 + number))});
        let written = client.json("PUT", &format!("/db/{id}"), &document).unwrap();
        assert!(matches!(written.status, 201 | 503), "{}", written.text());
        taken.extend((written.status == 201).then_some(id));
        if number % 20 == 0 {
            for view in ["formula", "script"] {
                let read = client.get(&format!("/db/_design/{view}/_view/v?limit=1")).unwrap();
                assert!(matches!(read.status, 200 | 503), "{view}: {}", read.text());
            }
        }
    }
    limit_files(server, usual.current);
    taken
}

/// Whether the server takes writes again by itself. Where RocksDB could not open a file for what it had to write, it takes
/// none until it is opened again; then that is what the server says.
fn is_back(server: &Server, round: u32) -> bool {
    let mut client = server.client();
    let began = Instant::now();
    for number in 0.. {
        // Always another document: of one that is there, a server says so without writing.
        let answer = client.json("PUT", &format!("/db/again-{round}-{number}"), &json!({})).unwrap();
        let text = answer.text();
        if answer.status != 503 || began.elapsed() > BACK_WITHIN {
            assert_eq!(answer.status, 201, "{text}");
            return true;
        }
        if text.contains("until it is opened again") {
            assert!(text.contains("Too many open files") && text.contains("restart"), "{text}");
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    unreachable!("the loop ends by itself")
}

#[test]
fn a_server_that_may_open_no_more_files_loses_nothing_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &SMALL);
    make_views(&mut server.client());
    let mut taken = work(&server, 1, &json!({"n": 1}));
    for round in 0..scrinium_fault::cases(2) {
        taken.extend(work_without_files(&server, round));
        if !is_back(&server, round) {
            check_all_is_there(&server, &taken);
            server.terminate(BACK_WITHIN);
            server = Server::start(folder.path(), &SMALL);
        }
    }
    check_all_is_well(&server, &taken);
}
