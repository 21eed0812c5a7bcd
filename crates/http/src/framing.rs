//! How an HTTP/1.1 message is framed, where Hyper is more lenient than RFC 9112: what two programs read differently is
//! what smuggles requests past the first of them.
//!
//! A line of a head ends with CR LF here, never with LF alone (RFC 9112 §2.2 lets a server choose), and there is exactly
//! one `Host` (§3.2). A length beside a transfer coding is refused (§6.3). The rest Hyper refuses: two lengths, other
//! codings, folded lines, bad chunks.

use http::header::{CONTENT_LENGTH, HOST, HeaderMap, TRANSFER_ENCODING};
use http::{Uri, Version};

use crate::error::{HttpError, Result};

/// Lines are looked at up to this; no header that frames a message is longer.
const LINE_BYTES: usize = 256;

/// What no head may hold, so that Hyper refuses the head that it stands in.
const POISON: u8 = 0;

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
        (Some(host), None) if !is_host(host.as_bytes()) => refused("The `Host` header names no host."),
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

/// Follows the bytes of an HTTP/1 connection, and spoils a head that has a line ending with LF alone, or two framings.
pub(crate) struct LineGuard {
    state: GuardState,
    /// The line so far, of a head or a chunk's size.
    line: Vec<u8>,
    previous: u8,
    head: Head,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuardState {
    /// Within a head.
    Head,
    /// Within a body; so many bytes are left.
    Body(u64),
    ChunkSize,
    /// Within a chunk and its line end.
    Chunk(u64),
    Trailers,
    /// What follows is not looked at: another protocol, or a framing that Hyper refuses.
    Blind,
}

/// What of a head says how long the body is.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    begun: bool,
    length: Option<u64>,
    chunked: bool,
    doubtful: bool,
}

impl LineGuard {
    pub(crate) fn new() -> Self {
        Self { state: GuardState::Head, line: Vec::new(), previous: 0, head: Head::default() }
    }

    /// Looks at bytes that have come. They may be changed.
    pub(crate) fn inspect(&mut self, bytes: &mut [u8]) {
        let mut at = 0;
        while let Some(rest) = bytes.get_mut(at..).filter(|rest| !rest.is_empty()) {
            at += match self.state {
                GuardState::Blind => return,
                GuardState::Body(left) => self.pass(left, rest.len(), GuardState::Body),
                GuardState::Chunk(left) => self.pass(left, rest.len(), GuardState::Chunk),
                GuardState::Head | GuardState::ChunkSize | GuardState::Trailers => {
                    rest.first_mut().map_or(1, |byte| {
                        self.take(byte);
                        1
                    })
                }
            };
        }
    }

    /// Passes over bytes whose content does not matter; how many.
    fn pass(&mut self, left: u64, available: usize, state: fn(u64) -> GuardState) -> usize {
        let passed = usize::try_from(left).unwrap_or(usize::MAX).min(available);
        let left = left - passed as u64;
        self.state = match (left, self.state) {
            (0, GuardState::Chunk(_)) => GuardState::ChunkSize,
            (0, _) => GuardState::Head,
            (left, _) => state(left),
        };
        passed
    }

    fn take(&mut self, byte: &mut u8) {
        let previous = std::mem::replace(&mut self.previous, *byte);
        if *byte != b'\n' {
            if self.line.len() < LINE_BYTES {
                self.line.push(*byte);
            }
            return;
        }
        if self.state == GuardState::Head && previous != b'\r' {
            *byte = POISON;
            self.state = GuardState::Blind;
            return;
        }
        self.line.truncate(self.line.strip_suffix(b"\r").map_or(self.line.len(), <[u8]>::len));
        let is_smuggled = self.state == GuardState::Head && self.head.chunked && self.head.length.is_some();
        if is_smuggled && self.line.is_empty() {
            *byte = POISON;
            self.state = GuardState::Blind;
            return;
        }
        self.end_line();
        self.line.clear();
    }

    fn end_line(&mut self) {
        match self.state {
            GuardState::Head if !self.line.is_empty() => self.head_line(),
            // Empty lines before a head do not count (RFC 9112 §2.2).
            GuardState::Head if self.head.begun => {
                let head = std::mem::take(&mut self.head);
                self.state = match (head.doubtful, head.chunked, head.length) {
                    (true, ..) => GuardState::Blind,
                    (_, true, _) => GuardState::ChunkSize,
                    (_, false, Some(length)) if length > 0 => GuardState::Body(length),
                    _ => GuardState::Head,
                };
            }
            GuardState::ChunkSize => {
                let digits = self.line.split(|byte| *byte == b';').next().unwrap_or_default();
                self.state =
                    match std::str::from_utf8(digits).map(|digits| u64::from_str_radix(digits.trim(), 16)) {
                        Ok(Ok(0)) => GuardState::Trailers,
                        // Its own line end comes with it.
                        Ok(Ok(size)) => GuardState::Chunk(size.saturating_add(2)),
                        _ => GuardState::Blind,
                    };
            }
            GuardState::Trailers if self.line.is_empty() => self.state = GuardState::Head,
            _ => {}
        }
    }

    fn head_line(&mut self) {
        if !std::mem::replace(&mut self.head.begun, true) {
            // The request line. HTTP/2 begins like a request, and is none.
            if self.line.starts_with(b"PRI ")
                || !self.line.ends_with(b"HTTP/1.1") && !self.line.ends_with(b"HTTP/1.0")
            {
                self.head.doubtful = self.line.len() < LINE_BYTES;
                if self.head.doubtful {
                    self.state = GuardState::Blind;
                }
            }
            return;
        }
        let Some(colon) = self.line.iter().position(|byte| *byte == b':') else { return };
        let (name, value) = self.line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(CONTENT_LENGTH.as_str().as_bytes()) {
            let length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            self.head.doubtful |= self.head.length.is_some() || length.is_none();
            self.head.length = length;
        } else if name.eq_ignore_ascii_case(TRANSFER_ENCODING.as_str().as_bytes()) {
            self.head.doubtful |= self.head.chunked || !value.eq_ignore_ascii_case(b"chunked");
            self.head.chunked = true;
        } else if name.eq_ignore_ascii_case(b"upgrade") {
            self.head.doubtful = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is left of `text` that comes in pieces of these lengths.
    fn inspected(text: &[u8], cuts: &[usize]) -> Vec<u8> {
        let mut guard = LineGuard::new();
        let (mut bytes, mut at, mut cuts) = (text.to_vec(), 0, cuts.iter().cycle());
        while at < bytes.len() {
            let until = bytes.len().min(at + (*cuts.next().unwrap()).max(1));
            guard.inspect(&mut bytes[at..until]);
            at = until;
        }
        bytes
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
                text.extend_from_slice(b"\r\nPOST /a HTTP/1.1\r\nHost: x\r\nX-Y: z\r\n");
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
            prop_assert_eq!(&inspected(&text, &cuts), &text);
            let clean = text.len();
            text.extend_from_slice(b"GET / HTTP/1.1\r\nHost: x\nX: y\r\n\r\n");
            let left = inspected(&text, &cuts);
            prop_assert_eq!(left.iter().zip(&text).position(|(now, was)| now != was), Some(clean + 23));
        }
    }

    #[test]
    fn what_is_no_http1_is_left_alone() {
        for text in [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\n\n\n"[..], b"nonsense\r\nX\n\n"] {
            assert_eq!(inspected(text, &[3]), text);
        }
        assert_ne!(inspected(b"GET / HTTP/1.1\n\n", &[100]), b"GET / HTTP/1.1\n\n");
    }
}
