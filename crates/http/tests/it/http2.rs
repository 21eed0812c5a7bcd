//! What breaks the rules of HTTP/2 (RFC 9113) ends its stream or connection with an error, and nothing else.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::common::{PASSWORD, Server, basic};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Frames (RFC 9113 §6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const WHOLE: u8 = END_STREAM | END_HEADERS;

// Errors (RFC 9113 §7).
const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const FRAME_SIZE_ERROR: u32 = 6;
const COMPRESSION_ERROR: u32 = 9;

/// `GET /_up` with an authority `x`, by the static table and literals (RFC 7541).
const GET_UP: &[u8] = &[0x82, 0x86, 0x04, 0x04, b'/', b'_', b'u', b'p', 0x41, 0x01, b'x'];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A request with further fields that are not indexed.
fn request_with(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = GET_UP.to_vec();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// A request of an administrator.
fn request_of_admin(method: &str, path: &str) -> Vec<u8> {
    let mut block = vec![if method == "POST" { 0x83 } else { 0x82 }, 0x86, 0x04];
    block.push(u8::try_from(path.len()).unwrap());
    block.extend_from_slice(path.as_bytes());
    block.extend_from_slice(&[0x41, 0x01, b'x']);
    let basic = basic("admin", PASSWORD);
    for (name, value) in [("authorization", basic.as_str()), ("content-type", "application/json")] {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// What the server has said.
#[derive(Debug, Default)]
struct Heard {
    /// Streams that were reset.
    reset: Vec<u32>,
    /// Bytes of answers, and the streams whose answers are whole.
    data_bytes: usize,
    ended: Vec<u32>,
    /// Codes of resets, and of the goodbye.
    codes: Vec<u32>,
    /// Streams whose answers have begun.
    answered: Vec<u32>,
    /// The statuses of those that the static table has (RFC 7541 appendix A), or that stand there as texts.
    statuses: Vec<u16>,
}

/// What is said to these frames, up to the first that `is_enough`.
async fn hear(server: &Server, frames: &[u8], is_enough: impl Fn(&Heard) -> bool) -> Heard {
    let mut stream = server.connect().await;
    drop(stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[]), frames].concat()).await);
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    while !is_enough(&parse(&bytes)) {
        match timeout(Duration::from_secs(5), stream.read(&mut piece)).await {
            Ok(Ok(length)) if length > 0 => bytes.extend_from_slice(&piece[..length]),
            _ => break,
        }
    }
    parse(&bytes)
}

fn parse(mut bytes: &[u8]) -> Heard {
    let mut heard = Heard::default();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let number = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let length = (number(0) >> 8) as usize;
        let Some((payload, rest)) = rest.split_at_checked(length) else { break };
        let code = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
        match head[3] {
            RST_STREAM => {
                heard.codes.push(code(0));
                heard.reset.push(number(5));
            }
            DATA => heard.data_bytes += length,
            GOAWAY => heard.codes.push(code(4)),
            HEADERS => {
                heard.answered.push(number(5));
                heard.statuses.extend(status_of(payload));
            }
            _ => {}
        }
        if matches!(head[3], DATA | HEADERS) && head[4] & END_STREAM > 0 {
            heard.ended.push(number(5));
        }
        bytes = rest;
    }
    heard
}

/// The status of an answer: the first field of its head.
fn status_of(block: &[u8]) -> Option<u16> {
    const INDEXED: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
    match block {
        [first @ 0x88..=0x8e, ..] => INDEXED.get(usize::from(first - 0x88)).copied(),
        // By the name of an indexed field, three letters, Huffman coded or not.
        [0x08 | 0x48, 0x03, text @ ..] => std::str::from_utf8(text.get(..3)?).ok()?.parse().ok(),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::too_many_lines, reason = "one entry a rule")]
async fn what_breaks_the_rules_of_http2_ends_with_an_error() {
    let server = Server::start().await;
    let fine = hear(&server, &frame(HEADERS, WHOLE, 1, GET_UP), |heard| !heard.answered.is_empty()).await;
    assert_eq!((fine.codes.as_slice(), fine.answered.as_slice()), (&[][..], &[1][..]));
    let open = frame(HEADERS, END_HEADERS, 1, GET_UP);
    let long = vec![0; 16_385];
    let window = |by: u32| by.to_be_bytes();
    let mut wrong = Vec::new();
    let setting = |name: u16, value: u32| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
    for (what, frames, allowed) in [
        ("DATA of no stream (§6.1)", frame(DATA, 0, 0, b"x"), vec![PROTOCOL_ERROR]),
        ("DATA of an idle stream (§5.1)", frame(DATA, 0, 1, b"x"), vec![PROTOCOL_ERROR, STREAM_CLOSED]),
        (
            "padding that is longer than its frame (§6.1)",
            [open.clone(), frame(DATA, 8, 1, &[9, 1])].concat(),
            vec![PROTOCOL_ERROR],
        ),
        ("HEADERS of no stream (§6.2)", frame(HEADERS, WHOLE, 0, GET_UP), vec![PROTOCOL_ERROR]),
        ("a stream of the server's (§5.1.1)", frame(HEADERS, WHOLE, 2, GET_UP), vec![PROTOCOL_ERROR]),
        ("PRIORITY that is too short (§6.3)", frame(PRIORITY, 0, 1, &[0; 4]), vec![FRAME_SIZE_ERROR]),
        ("RST_STREAM of an idle stream (§6.4)", frame(RST_STREAM, 0, 1, &[0; 4]), vec![PROTOCOL_ERROR]),
        (
            "RST_STREAM that is too short (§6.4)",
            [open.clone(), frame(RST_STREAM, 0, 1, &[0; 3])].concat(),
            vec![FRAME_SIZE_ERROR],
        ),
        ("SETTINGS of a stream (§6.5)", frame(SETTINGS, 0, 1, &[]), vec![PROTOCOL_ERROR]),
        ("SETTINGS that are cut (§6.5)", frame(SETTINGS, 0, 0, &[0; 5]), vec![FRAME_SIZE_ERROR]),
        (
            "SETTINGS acknowledged with something (§6.5)",
            frame(SETTINGS, 1, 0, &[0; 6]),
            vec![FRAME_SIZE_ERROR],
        ),
        ("a window of 2^31 (§6.5.2)", frame(SETTINGS, 0, 0, &setting(4, 1 << 31)), vec![FLOW_CONTROL_ERROR]),
        ("frames of 100 bytes (§6.5.2)", frame(SETTINGS, 0, 0, &setting(5, 100)), vec![PROTOCOL_ERROR]),
        (
            "PUSH_PROMISE of a client (§8.4)",
            [open.clone(), frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2])].concat(),
            vec![PROTOCOL_ERROR],
        ),
        ("PING of a stream (§6.7)", frame(PING, 0, 1, &[0; 8]), vec![PROTOCOL_ERROR]),
        ("PING that is too short (§6.7)", frame(PING, 0, 0, &[0; 7]), vec![FRAME_SIZE_ERROR]),
        ("GOAWAY of a stream (§6.8)", frame(GOAWAY, 0, 1, &[0; 8]), vec![PROTOCOL_ERROR]),
        (
            "a window that grows by nothing (§6.9)",
            frame(WINDOW_UPDATE, 0, 0, &window(0)),
            vec![PROTOCOL_ERROR],
        ),
        (
            "a window that grows too far (§6.9.1)",
            frame(WINDOW_UPDATE, 0, 0, &window(0x7fff_ffff)),
            vec![FLOW_CONTROL_ERROR],
        ),
        ("a window of another length (§6.9)", frame(WINDOW_UPDATE, 0, 0, &[0; 3]), vec![FRAME_SIZE_ERROR]),
        (
            "CONTINUATION of nothing (§6.10)",
            frame(CONTINUATION, END_HEADERS, 1, GET_UP),
            vec![PROTOCOL_ERROR],
        ),
        (
            "a frame within a head (§6.10)",
            [frame(HEADERS, END_STREAM, 1, GET_UP), frame(PING, 0, 0, &[0; 8])].concat(),
            vec![PROTOCOL_ERROR],
        ),
        (
            "a frame that is too long (§4.2)",
            [open.clone(), frame(DATA, 0, 1, &long)].concat(),
            vec![FRAME_SIZE_ERROR],
        ),
        (
            "a head that cannot be decoded (§4.3)",
            frame(HEADERS, WHOLE, 1, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            vec![COMPRESSION_ERROR],
        ),
        (
            "a field of a table that is not there (§4.3)",
            frame(HEADERS, WHOLE, 1, &[0xbe]),
            vec![COMPRESSION_ERROR],
        ),
        (
            "a name in capitals (§8.2.1)",
            frame(HEADERS, WHOLE, 1, &request_with(&[("Accept", "x")])),
            vec![PROTOCOL_ERROR],
        ),
        (
            "a field of connections (§8.2.2)",
            frame(HEADERS, WHOLE, 1, &request_with(&[("connection", "close")])),
            vec![PROTOCOL_ERROR],
        ),
        (
            "a pseudo-field that is unknown (§8.3)",
            frame(HEADERS, WHOLE, 1, &request_with(&[(":x", "y")])),
            vec![PROTOCOL_ERROR],
        ),
        (
            "a pseudo-field behind others (§8.3)",
            frame(HEADERS, WHOLE, 1, &request_with(&[("a", "b"), (":path", "/")])),
            vec![PROTOCOL_ERROR],
        ),
        ("no path (§8.3.1)", frame(HEADERS, WHOLE, 1, &[0x82, 0x86, 0x41, 0x01, b'x']), vec![PROTOCOL_ERROR]),
        (
            "a length that does not hold (§8.1.1)",
            [
                frame(HEADERS, END_HEADERS, 1, &request_with(&[("content-length", "5")])),
                frame(DATA, END_STREAM, 1, b"x"),
            ]
            .concat(),
            vec![PROTOCOL_ERROR],
        ),
    ] {
        let heard = hear(&server, &frames, |heard| !heard.codes.is_empty()).await;
        // The library often says only that it is a breach, where the RFC names which.
        if !heard.codes.iter().any(|code| allowed.contains(code) || *code == PROTOCOL_ERROR) {
            wrong.push(format!("{what}: {heard:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    server.ask_as("", "GET", "/_up", ()).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_begins_like_http2_is_closed() {
    let server = Server::start().await;
    for preface in [
        &b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n",
        b"PRI / HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut stream = server.connect().await;
        stream.write_all(preface).await.unwrap();
        let mut answer = Vec::new();
        // Its end, a reset too.
        drop(timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await.unwrap());
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
    }
    server.ask_as("", "GET", "/_up", ()).await.expect(200);
}

/// Sends frames to a server that may have enough of them at any time; everything that it says until it is silent.
async fn flood(server: &Server, opening: &[u8], frames: impl Iterator<Item = Vec<u8>>) -> Heard {
    let mut stream = server.connect().await;
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, opening)].concat()).await.unwrap();
    let (mut reading, mut writing) = stream.split();
    let mut bytes = Vec::new();
    let write = async {
        for frame in frames {
            // A client that is cut off has no more to say.
            if !matches!(timeout(Duration::from_secs(2), writing.write_all(&frame)).await, Ok(Ok(()))) {
                break;
            }
        }
    };
    let read = async {
        let mut piece = [0; 16_384];
        while let Ok(Ok(length @ 1..)) = timeout(Duration::from_secs(2), reading.read(&mut piece)).await {
            bytes.extend_from_slice(&piece[..length]);
        }
    };
    tokio::join!(write, read);
    parse(&bytes)
}

/// A field of 4,000 bytes that is kept in the table of fields, then named again and again: 16 KB on the wire, 64 MB once
/// it is taken apart.
fn header_bomb() -> Vec<u8> {
    let mut block = GET_UP.to_vec();
    // Kept, a new name of one letter; 4,000 is 127 + 3,873 (RFC 7541 §5.1).
    block.extend_from_slice(&[0x40, 1, b'a', 0x7f, 0xa1, 0x1e]);
    block.extend_from_slice(&[b'x'; 4000]);
    block.resize(16_384, 0xbe);
    block
}

/// The frame with this number in a flood of them.
type FrameOf = fn(u32) -> Vec<u8>;

/// None of these does harm to others; what is too much gets no answer of the page that it asks for.
#[tokio::test(flavor = "multi_thread")]
async fn heads_that_swell_are_refused_and_floods_stop_nobody() {
    let server = Server::start().await;
    for _ in 0..20 {
        let bomb = std::iter::once(frame(HEADERS, WHOLE, 1, &header_bomb()));
        let heard = Box::pin(flood(&server, &[], bomb)).await;
        assert!(heard.statuses.iter().all(|status| *status != 200), "{heard:?}");
        assert!(!heard.codes.is_empty() || !heard.statuses.is_empty(), "a head of 64 MB is no head");
    }
    let list = |stream: u32| {
        let long = "y".repeat(120);
        let fields: Vec<(&str, &str)> = (0..110).map(|_| ("cookie-x", long.as_str())).collect();
        frame(HEADERS, WHOLE, stream, &request_with(&fields))
    };
    let heard = Box::pin(flood(&server, &[], (0..50).map(|number| list(2 * number + 1)))).await;
    assert!(heard.statuses.iter().all(|status| matches!(status, 200 | 400 | 431)), "{heard:?}");
    let floods: [(&str, FrameOf); 6] = [
        ("empty DATA (CVE-2019-9518)", |number| match number {
            0 => frame(HEADERS, END_HEADERS, 1, GET_UP),
            _ => frame(DATA, 0, 1, &[]),
        }),
        ("PRIORITY (CVE-2019-9513)", |number| frame(PRIORITY, 0, 2 * number + 1, &[0, 0, 0, 0, 1])),
        ("WINDOW_UPDATE", |_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        ("SETTINGS (CVE-2019-9515)", |_| frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])),
        ("PING (CVE-2019-9512)", |_| frame(PING, 0, 0, &[7; 8])),
        ("streams that are opened and broken (CVE-2019-9514)", |number| {
            let stream = 2 * number + 1;
            let broken = frame(WINDOW_UPDATE, 0, stream, &[0; 4]);
            [frame(HEADERS, END_HEADERS, stream, GET_UP), broken].concat()
        }),
    ];
    for (what, next) in floods {
        Box::pin(flood(&server, &[], (0..5_000).map(next))).await;
        let up = timeout(Duration::from_secs(20), server.ask_as("", "GET", "/_up", ())).await;
        assert_eq!(up.unwrap_or_else(|_| panic!("{what} stop others")).status, 200, "{what}");
    }
}

/// Who lets the server send nothing holds no thread, and nobody else waits.
#[tokio::test(flavor = "multi_thread")]
async fn who_opens_no_window_stops_nobody() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    server.ask("PUT", "/db/large/file", (&[][..], vec![7; 1 << 20])).await.expect(201);
    let block = request_of_admin("GET", "/db/large/file");
    let mut stalled = Vec::new();
    for _ in 0..4 {
        let mut stream = server.connect().await;
        // A window of nothing for each stream (RFC 9113 §6.5.2).
        let mut frames = [PREFACE, &frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])].concat();
        for number in 0..32 {
            frames.extend(frame(HEADERS, WHOLE, 2 * number + 1, &block));
        }
        stream.write_all(&frames).await.unwrap();
        stalled.push(stream);
    }
    for number in 0..20 {
        server.ask("PUT", &format!("/db/{number}"), serde_json::json!({})).await.expect(201);
    }
    // Nothing of them is at work any more.
    let is_idle = async {
        while server.statistics.snapshot().gauges["Server.Pool.Running"] > 0.0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(20), is_idle).await.unwrap();
    drop(stalled);
    server.ask("GET", "/db/large/file", ()).await.expect(200);
}

/// A connection whose client reads all frames, and opens windows only as it likes.
struct Stingy {
    stream: tokio::net::TcpStream,
    bytes: Vec<u8>,
}

impl Stingy {
    /// Sends these frames after settings that open `window` bytes for each stream (RFC 9113 §6.5.2).
    async fn connect(server: &Server, window: u32, frames: &[u8]) -> Self {
        let mut stream = server.connect().await;
        let settings = frame(SETTINGS, 0, 0, &[&[0, 4][..], &window.to_be_bytes()].concat());
        stream.write_all(&[PREFACE, &settings, frames].concat()).await.unwrap();
        Self { stream, bytes: Vec::new() }
    }

    async fn send(&mut self, frames: &[u8]) {
        self.stream.write_all(frames).await.unwrap();
    }

    /// Reads until what was heard is enough.
    async fn hear(&mut self, is_enough: impl Fn(&Heard) -> bool) -> Heard {
        let mut piece = vec![0; 65_536];
        while !is_enough(&parse(&self.bytes)) {
            let read = timeout(Duration::from_secs(20), self.stream.read(&mut piece)).await;
            let length = read.expect("the server is silent").unwrap();
            assert!(length > 0, "the connection ended: {:?}", parse(&self.bytes));
            self.bytes.extend_from_slice(&piece[..length]);
        }
        parse(&self.bytes)
    }
}

/// A request, with its body where there is one.
fn asked(stream: u32, path: &str, body: &[u8]) -> Vec<u8> {
    if body.is_empty() {
        return frame(HEADERS, WHOLE, stream, &request_of_admin("GET", path));
    }
    let head = frame(HEADERS, END_HEADERS, stream, &request_of_admin("POST", path));
    [head, frame(DATA, END_STREAM, stream, body)].concat()
}

async fn holds_nothing(server: &Server) {
    let given_back = async {
        while server.body_bytes() > 0 || server.requests_of_admin() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(20), given_back).await.expect("memory and requests are given back");
}

/// A server whose clients must take something within a moment, with answers of all kinds: whole ones, short and long, and
/// pieces.
async fn impatient() -> (Server, Vec<(&'static str, Vec<u8>)>) {
    let port = scrinium_http::PortOptions { write_timeout_ms: 1000, ..crate::common::local_port() };
    let server = Server::with(port, scrinium_database::DatabaseOptions::default()).await;
    server.ask("PUT", "/db", ()).await.expect(201);
    server.ask("PUT", "/db/large/file", (&[][..], vec![7; 1 << 20])).await.expect(201);
    server.ask("PUT", "/db/long", serde_json::json!({"text": "y".repeat(300_000)})).await.expect(201);
    let revisions = format!("{{{}}}", vec!["\"x\":[\"1-a\"]"; 300].join(","));
    let answers = vec![
        ("/db/long", Vec::new()),
        ("/_up", Vec::new()),
        ("/db/large/file", Vec::new()),
        ("/db/large?attachments=true", Vec::new()),
        ("/db/_all_docs?include_docs=true", Vec::new()),
        ("/db/_changes?feed=continuous&heartbeat=50", Vec::new()),
        ("/db/_revs_diff", revisions.into_bytes()),
        ("/db/missing", Vec::new()),
    ];
    (server, answers)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_whose_client_takes_nothing_is_reset_and_frees_what_it_held() {
    let (server, answers) = impatient().await;
    for window in [0, 1] {
        let streams: Vec<u32> = (0..answers.len() as u32 * 2).map(|number| 2 * number + 1).collect();
        let paths = answers.iter().cycle();
        let frames: Vec<u8> =
            streams.iter().zip(paths).flat_map(|(stream, (path, body))| asked(*stream, path, body)).collect();
        let mut stingy = Stingy::connect(&server, window, &frames).await;
        // All of a long answer counts while it waits, wherever it does.
        let second = answers.len() as u32 * 2 + 1;
        stingy.hear(|heard| heard.answered.contains(&1) && heard.answered.contains(&second)).await;
        assert!(server.body_bytes() >= 2 * 300_000, "{} bytes are counted", server.body_bytes());
        let heard = stingy.hear(|heard| heard.reset.len() == streams.len()).await;
        assert_eq!((heard.ended.as_slice(), heard.data_bytes <= streams.len()), (&[][..], true), "{heard:?}");
        holds_nothing(&server).await;
        // The connection goes on, and a stream whose window opens is answered.
        let next = streams.len() as u32 * 2 + 1;
        let opened = [asked(next, "/_up", &[]), frame(WINDOW_UPDATE, 0, next, &1000_u32.to_be_bytes())];
        stingy.send(&opened.concat()).await;
        let heard = stingy.hear(|heard| !heard.ended.is_empty()).await;
        assert_eq!(heard.ended, [next]);
    }
    server.ask("GET", "/db/large/file", ()).await.expect(200);
}

/// The window of the whole connection stalls streams that have one of their own (RFC 9113 §6.9.1).
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_whose_window_stays_shut_frees_its_streams() {
    let (server, _) = impatient().await;
    let frames: Vec<u8> = (0..16).flat_map(|number| asked(2 * number + 1, "/db/large/file", &[])).collect();
    let mut stingy = Stingy::connect(&server, 1 << 24, &frames).await;
    let heard = stingy.hear(|heard| heard.reset.len() == 16).await;
    assert_eq!((heard.data_bytes, heard.ended.len()), (65_535, 0));
    holds_nothing(&server).await;
}

/// A slow client is not one who takes nothing: each piece that it takes gives it time for the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_whose_client_is_slow_is_answered_to_its_end() {
    let (server, _) = impatient().await;
    let mut stingy = Stingy::connect(&server, 0, &asked(1, "/db/long", &[])).await;
    let mut opened = 0;
    while opened < 300_000 {
        let window = [0, 1].map(|stream| frame(WINDOW_UPDATE, 0, stream, &33_000_u32.to_be_bytes()));
        stingy.send(&window.concat()).await;
        opened += 33_000;
        let heard = stingy.hear(|heard| heard.data_bytes >= opened || !heard.ended.is_empty()).await;
        assert!(heard.reset.is_empty(), "{heard:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let heard = stingy.hear(|heard| !heard.ended.is_empty()).await;
    assert!(heard.data_bytes > 300_000 && heard.reset.is_empty(), "{heard:?}");
    holds_nothing(&server).await;
}

/// The same memory over HTTP/1.1, where the connection is given up.
#[tokio::test(flavor = "multi_thread")]
async fn a_whole_answer_counts_until_its_client_has_taken_it() {
    let (server, _) = impatient().await;
    let text = "y".repeat(1_900_000);
    server.ask("PUT", "/db/longer", serde_json::json!({"text": text})).await.expect(201);
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    let authorization = basic("admin", PASSWORD);
    let request = format!("GET /db/longer HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n\r\n");
    // More than the system takes of it.
    stream.write_all(request.repeat(6).as_bytes()).await.unwrap();
    let waits = async {
        let mut times = 0;
        while times < 20 {
            times = if server.body_bytes() > 1_900_000 { times + 1 } else { 0 };
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(20), waits).await.expect("an answer that nobody takes counts");
    holds_nothing(&server).await;
    drop(stream);
}
