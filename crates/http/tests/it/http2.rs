//! What breaks the rules of HTTP/2 (RFC 9113) ends its stream or connection with an error, and nothing else.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::common::Server;

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

/// What the server has said.
#[derive(Debug, Default)]
struct Heard {
    /// Codes of resets, and of the goodbye.
    codes: Vec<u32>,
    /// Streams whose answers have begun.
    answered: Vec<u32>,
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
            RST_STREAM => heard.codes.push(code(0)),
            GOAWAY => heard.codes.push(code(4)),
            HEADERS => heard.answered.push(number(5)),
            _ => {}
        }
        bytes = rest;
    }
    heard
}

#[tokio::test(flavor = "multi_thread")]
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
