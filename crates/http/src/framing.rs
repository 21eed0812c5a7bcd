//! How an HTTP/1.1 message is framed, where Hyper is more lenient than RFC 9112: what two programs read differently is
//! what smuggles requests past the first of them.
//!
//! A line of a head ends with CR LF here, never with LF alone (RFC 9112 §2.2 lets a server choose), and there is exactly
//! one `Host` (§3.2). [`crate::head`] says what else is refused. Bad chunks Hyper refuses.

use http::header::{HOST, HeaderMap};
use http::{Uri, Version};

use crate::error::{HttpError, Result};
use crate::head::{self, BodyLength, Screened};

/// Lines within bodies are looked at up to this; no chunk's size is longer.
const LINE_BYTES: usize = 256;

/// Room that a head gets before more than this of it is there.
const HEAD_ROOM_BYTES: usize = 2048;

/// What an HTTP/2 connection begins with (RFC 9113 §3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// No other request has this method.
const HTTP2_METHOD: &[u8] = b"PRI ";

/// Holds a request against RFC 9112 §3.2: one `Host` in HTTP/1.1, at most one in other versions, and none that differs
/// from what HTTP/2 names.
///
/// # Errors
/// 400.
pub(crate) fn check_host(version: Version, uri: &Uri, headers: &HeaderMap) -> Result<()> {
    let mut hosts = headers.get_all(HOST).iter();
    let refused = |reason: &'static str| Err(HttpError::bad_request(reason));
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => refused("The request has two `Host` headers."),
        (None, None) if version == Version::HTTP_11 => refused("The request has no `Host` header."),
        (Some(host), None) if !is_host(host.as_bytes()) => refused("The `Host` header is empty or invalid."),
        (Some(host), None) if version >= Version::HTTP_2 => match uri.authority() {
            Some(authority) if !host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes()) => {
                refused("`Host` and `:authority` differ.")
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Characters of `uri-host [":" port]` (RFC 3986 §3.2.2); an empty one is allowed.
fn is_host(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:[]".contains(byte))
}

/// Follows the bytes of an HTTP/1 connection. A head is held back until all of it is there and found good; what is behind
/// a head that is refused never comes through.
pub(crate) struct HeadGuard {
    state: GuardState,
    most_head_bytes: usize,
    /// A head so far; or the beginning of a line within a body.
    held: Vec<u8>,
    /// Where its last line begins.
    line_start: usize,
    /// What may be read, from `given` on.
    ready: Vec<u8>,
    given: usize,
    /// Heads that came through, with the one that stands for what was refused.
    heads: u64,
    refusal: Option<HttpError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuardState {
    /// Within a head, or before it.
    Head,
    /// Within a body; this many bytes are left.
    Body(u64),
    ChunkSize,
    /// Within a chunk and its line end.
    Chunk(u64),
    Trailers,
    /// What follows is not looked at: HTTP/2, or a chunk that Hyper refuses.
    Blind,
    /// What follows is thrown away.
    Refused,
}

impl HeadGuard {
    pub(crate) fn new(most_head_bytes: usize) -> Self {
        Self {
            state: GuardState::Head,
            most_head_bytes,
            held: Vec::new(),
            line_start: 0,
            ready: Vec::new(),
            given: 0,
            heads: 0,
            refusal: None,
        }
    }

    /// Whether a head was refused: nothing that comes is looked at.
    pub(crate) fn is_at_end(&self) -> bool {
        self.state == GuardState::Refused
    }

    /// The number of a head that was refused, counted from one, and why.
    pub(crate) fn take_refusal(&mut self) -> Option<(u64, HttpError)> {
        Some((self.heads, self.refusal.take()?))
    }

    /// What may be read now.
    pub(crate) fn ready(&self) -> &[u8] {
        self.ready.get(self.given..).unwrap_or_default()
    }

    /// So much of what was ready has been read.
    pub(crate) fn give(&mut self, bytes: usize) {
        self.given += bytes;
        if self.given >= self.ready.len() {
            self.ready = Vec::new();
            self.given = 0;
        }
    }

    /// Whether bytes that come now are a body's, so that they need not go through here as far as [`pass`](Self::pass)
    /// says.
    pub(crate) fn is_within_body(&self) -> bool {
        self.ready.is_empty()
            && matches!(self.state, GuardState::Body(_) | GuardState::Chunk(_) | GuardState::Blind)
    }

    /// Passes over bytes of a body; how many of them are the body's.
    pub(crate) fn pass(&mut self, available: usize) -> usize {
        let left = match self.state {
            GuardState::Blind => return available,
            GuardState::Body(left) | GuardState::Chunk(left) => left,
            _ => return 0,
        };
        let passed = usize::try_from(left).unwrap_or(usize::MAX).min(available);
        let left = left - passed as u64;
        self.state = match (left, self.state) {
            (0, GuardState::Chunk(_)) => GuardState::ChunkSize,
            (0, _) => GuardState::Head,
            (left, GuardState::Chunk(_)) => GuardState::Chunk(left),
            (left, _) => GuardState::Body(left),
        };
        passed
    }

    /// Takes bytes that have come; what may be read of them becomes ready.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let taken = match self.state {
                GuardState::Refused => return,
                GuardState::Head => self.take_head(bytes),
                GuardState::ChunkSize | GuardState::Trailers => self.take_line(bytes),
                GuardState::Blind | GuardState::Body(_) | GuardState::Chunk(_) => {
                    let passed = self.pass(bytes.len());
                    self.ready.extend_from_slice(bytes.get(..passed).unwrap_or_default());
                    passed
                }
            };
            bytes = bytes.get(taken..).unwrap_or_default();
        }
    }

    /// Takes what belongs to the current line of a head; how much that is.
    fn take_head(&mut self, bytes: &[u8]) -> usize {
        let line = bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        if self.held.is_empty() {
            // Most heads come at once: room for all of it, instead of more with each line.
            self.held.reserve(bytes.len().min(self.most_head_bytes).min(HEAD_ROOM_BYTES));
        }
        self.held.extend_from_slice(line);
        if self.held.len() >= self.most_head_bytes {
            self.refuse(head::too_large(self.most_head_bytes));
        } else if self.heads == 0 && HTTP2_PREFACE.starts_with(&self.held) {
            if self.held.len() == HTTP2_PREFACE.len() {
                self.ready.append(&mut self.held);
                self.state = GuardState::Blind;
            }
        } else if self.held.starts_with(HTTP2_METHOD) || !self.begins_like_a_request() {
            self.refuse(head::no_request());
        } else if line.ends_with(b"\n") {
            self.end_head_line();
        }
        line.len()
    }

    fn begins_like_a_request(&self) -> bool {
        self.held.first().is_some_and(|byte| *byte == b'\r' || head::begins_method(*byte))
    }

    fn end_head_line(&mut self) {
        match self.held.get(self.line_start..).unwrap_or_default() {
            // Empty lines before a head do not count (RFC 9112 §2.2).
            b"\r\n" if self.line_start == 0 => self.held.clear(),
            b"\r\n" => self.end_head(),
            line if !line.ends_with(b"\r\n") => self.refuse(head::bare_line_feed()),
            _ => self.line_start = self.held.len(),
        }
    }

    fn end_head(&mut self) {
        match head::screen(std::mem::take(&mut self.held)) {
            Err(refusal) => self.refuse(refusal),
            // What is encoded is longer, and Hyper counts that.
            Ok(screened) if screened.bytes.len() >= self.most_head_bytes => {
                self.refuse(head::too_large(self.most_head_bytes));
            }
            Ok(Screened { mut bytes, body }) => {
                self.heads += 1;
                self.line_start = 0;
                if self.ready.is_empty() {
                    self.ready = bytes;
                } else {
                    self.ready.append(&mut bytes);
                }
                self.state = match body {
                    BodyLength::Chunked => GuardState::ChunkSize,
                    BodyLength::Bytes(0) => GuardState::Head,
                    BodyLength::Bytes(length) => GuardState::Body(length),
                };
            }
        }
    }

    /// Lets a head through that stands for the one that is refused, so that the refusal is an answer like any other.
    fn refuse(&mut self, refusal: HttpError) {
        self.held = Vec::new();
        self.heads += 1;
        self.ready.extend_from_slice(head::SUBSTITUTE);
        self.refusal = Some(refusal);
        self.state = GuardState::Refused;
    }

    /// Takes what belongs to the line of a chunk's size, or to one of the trailers; how much that is.
    fn take_line(&mut self, bytes: &[u8]) -> usize {
        let line = bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        self.ready.extend_from_slice(line);
        let room = LINE_BYTES.saturating_sub(self.held.len());
        self.held.extend_from_slice(line.get(..room).unwrap_or(line));
        if line.ends_with(b"\n") {
            self.state = self.behind_line();
            self.held = Vec::new();
        }
        line.len()
    }

    /// What follows a line within a body.
    fn behind_line(&self) -> GuardState {
        let line = self.held.trim_ascii_end();
        match self.state {
            GuardState::Trailers if line.is_empty() => GuardState::Head,
            GuardState::ChunkSize => {
                let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
                match std::str::from_utf8(digits).map(|digits| u64::from_str_radix(digits.trim(), 16)) {
                    Ok(Ok(0)) => GuardState::Trailers,
                    // Its own line end comes with it.
                    Ok(Ok(size)) => GuardState::Chunk(size.saturating_add(2)),
                    _ => GuardState::Blind,
                }
            }
            state => state,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What of `text` comes through, in pieces of these lengths, and why the rest does not.
    fn passed(text: &[u8], cuts: &[usize]) -> (Vec<u8>, Option<HttpError>) {
        let mut guard = HeadGuard::new(16 << 10);
        let (mut through, mut at, mut cuts) = (Vec::new(), 0, cuts.iter().cycle());
        while at < text.len() {
            let until = text.len().min(at + (*cuts.next().unwrap()).max(1));
            let mut piece = &text[at..until];
            if guard.is_within_body() {
                let (body, rest) = piece.split_at(guard.pass(piece.len()));
                through.extend_from_slice(body);
                piece = rest;
            }
            guard.take(piece);
            through.extend_from_slice(guard.ready());
            guard.give(guard.ready().len());
            at = until;
        }
        (through, guard.take_refusal().map(|(_, refusal)| refusal))
    }

    proptest! {
        #[test]
        fn bodies_are_never_changed_and_every_head_is_looked_at(
            bodies in proptest::collection::vec((any::<bool>(), proptest::collection::vec(
                prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), any::<u8>()], 0..60)), 0..5),
            cuts in proptest::collection::vec(1_usize..30, 1..5),
        ) {
            let mut text = Vec::new();
            for (chunked, body) in &bodies {
                text.extend_from_slice(b"POST /a HTTP/1.1\r\nHost: x\r\nX-Y: z\r\n");
                if *chunked {
                    text.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
                    for piece in body.chunks(7) {
                        text.extend_from_slice(format!("{:X};a=\"b\"\r\n", piece.len()).as_bytes());
                        text.extend_from_slice(piece);
                        text.extend_from_slice(b"\r\n");
                    }
                    text.extend_from_slice(b"0\r\nTrailer: 1\r\n\r\n");
                } else {
                    text.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
                    text.extend_from_slice(body);
                }
            }
            let (through, refusal) = passed(&text, &cuts);
            prop_assert_eq!(&through, &text);
            prop_assert!(refusal.is_none());
            let behind = [&text, &b"\r\nGET / HTTP/1.1\r\nHost: x\nX: y\r\n\r\nGET /b HTTP/1.1\r\n\r\n"[..]].concat();
            let (through, refusal) = passed(&behind, &cuts);
            prop_assert_eq!(through, [&text, head::SUBSTITUTE].concat());
            prop_assert!(refusal.is_some());
        }

        #[test]
        fn whatever_comes_is_refused_or_comes_through(
            bytes in proptest::collection::vec(prop_oneof![
                Just(b"GET /".to_vec()), Just(b" HTTP/1.1\r\n".to_vec()), Just(b"\r\n".to_vec()),
                Just(b"Content-Length: 3\r\n".to_vec()), Just(b"Transfer-Encoding: chunked\r\n".to_vec()),
                Just(b"PRI * HTTP/2.0\r\n\r\n".to_vec()), proptest::collection::vec(any::<u8>(), 1..6),
            ], 0..12).prop_map(|parts| parts.concat()),
            cuts in proptest::collection::vec(1_usize..9, 1..4),
        ) {
            // In whatever pieces it comes.
            let (through, refusal) = passed(&bytes, &cuts);
            let (whole, why) = passed(&bytes, &[usize::MAX / 2]);
            prop_assert_eq!(through, whole);
            prop_assert_eq!(refusal.map(|refusal| refusal.to_string()), why.map(|refusal| refusal.to_string()));
        }
    }

    #[test]
    fn what_is_no_http1_is_left_alone_or_refused() {
        let greeting = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\n\n\n";
        assert_eq!(passed(greeting, &[3]).0, greeting);
        for text in
            [&b"\x16\x03\x01"[..], b"nonsense\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nX", b"GET / HTTP/1.1\n\n"]
        {
            let (through, refusal) = passed(text, &[100]);
            assert_eq!(through, head::SUBSTITUTE);
            assert!(refusal.is_some());
        }
        assert!(passed(&[&b"GET / HTTP/1.1\r\nA: "[..], &[b'x'; 17 << 10]].concat(), &[100]).1.is_some());
    }
}
