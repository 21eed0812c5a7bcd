//! The head of an HTTP/1.1 request as it came, looked at as a whole before Hyper sees it.
//!
//! Browsers and curl send characters in an address that RFC 3986 wants encoded: `?key="a"`. Hyper refuses them without a
//! word. Here they are encoded, so that whatever routes, logs or matches the address sees one spelling of it, and
//! whatever is refused is refused with a reason. Hyper gets no head that it would read in another way than this does:
//! both parse with `httparse`.

use std::mem::MaybeUninit;

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{StatusCode, Uri};
use httparse::{Header, Request, Status};

use crate::error::{HttpError, Result};

/// Headers of one request.
pub(crate) const MOST_HEADERS: usize = 128;

/// A head that stands for one that is refused.
pub(crate) const SUBSTITUTE: &[u8] = b"GET / HTTP/1.1\r\nHost: refused\r\nConnection: close\r\n\r\n";

/// Hyper's bound of an address (its `Uri` counts with 16 bits).
const MOST_TARGET_BYTES: usize = 65_534;

/// A head that Hyper takes.
#[derive(Debug)]
pub(crate) struct Screened {
    pub(crate) bytes: Vec<u8>,
    pub(crate) body: BodyLength,
}

/// How the body behind a head is framed (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLength {
    Bytes(u64),
    Chunked,
}

/// Whether a request may begin with this byte (RFC 9110 §5.6.2).
pub(crate) fn begins_method(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Holds a whole head, which ends with an empty line, against RFC 9112, and encodes what may not stand in its address. Most
/// heads have nothing to encode: they are given back as they are.
///
/// # Errors
/// 400, 414, 431 and 501, with what is wrong.
pub(crate) fn screen(head: Vec<u8>) -> Result<Screened> {
    let end = head.windows(2).position(|pair| pair == b"\r\n").unwrap_or(head.len());
    let (line, headers) = head.split_at(end);
    let bytes = match request_line(line)? {
        Some(line) => [&line, headers].concat(),
        None => head,
    };
    let mut fields = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut request = Request::new(&mut []);
    match request.parse_with_uninit_headers(&bytes, &mut fields).map_err(malformed)? {
        Status::Complete(length) if length == bytes.len() => {}
        _ => return Err(no_request()),
    }
    let body = body_length(request.version == Some(1), request.headers)?;
    Ok(Screened { bytes, body })
}

/// The request line with its address encoded (RFC 9112 §3); `None` where it is as it came.
fn request_line(line: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut parts = line.splitn(3, |byte| *byte == b' ');
    let (Some(method), Some(target), Some(version)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(no_request());
    };
    if version.contains(&b' ') {
        return Err(HttpError::bad_request("The address has a space in it; write it as %20."));
    }
    if !matches!(version, b"HTTP/1.1" | b"HTTP/1.0") {
        return Err(HttpError::bad_request("The server supports HTTP 1.0, 1.1 and 2."));
    }
    if target.iter().any(u8::is_ascii_control) {
        return Err(HttpError::bad_request("The address has a control character in it; write it as %XX."));
    }
    if target.len() <= MOST_TARGET_BYTES && target.starts_with(b"/") && target.iter().all(stands_for_itself) {
        return Ok(None);
    }
    let target = encoded(target);
    if target.len() > MOST_TARGET_BYTES {
        let reason = format!(
            "The address may have at most {MOST_TARGET_BYTES} bytes; send keys in the body of a POST."
        );
        return Err(HttpError::new(StatusCode::URI_TOO_LONG, "bad_request", reason));
    }
    // Hyper takes any word for an authority.
    let has_form = target.starts_with(b"/") || target == b"*" || target.windows(3).any(|part| part == b"://");
    if !has_form || Uri::try_from(target.as_slice()).is_err() {
        return Err(HttpError::bad_request("The request names no address: an address begins with `/`."));
    }
    Ok(Some([method, b" ", &target, b" ", version].concat()))
}

/// An address in which what cannot stand for itself is encoded, byte by byte. An authority before the path is left as it
/// is, and a fragment is cut off where the address is read.
fn encoded(target: &[u8]) -> Vec<u8> {
    let scheme = target.windows(3).position(|part| part == b"://").filter(|_| !target.starts_with(b"/"));
    let path = scheme.map_or(0, |at| {
        let behind = target.iter().skip(at + 3).position(|byte| matches!(byte, b'/' | b'?' | b'#'));
        behind.map_or(target.len(), |path| at + 3 + path)
    });
    let (authority, path) = target.split_at(path);
    let mut out = Vec::with_capacity(target.len() + 16);
    out.extend_from_slice(authority);
    for byte in path {
        if stands_for_itself(byte) {
            out.push(*byte);
        } else {
            out.push(b'%');
            out.extend(
                [byte >> 4, byte & 15]
                    .map(|digit| b"0123456789ABCDEF".get(usize::from(digit)).copied().unwrap_or(b'0')),
            );
        }
    }
    out
}

/// Characters of a path, a query and what separates them (RFC 3986 §3.3, §3.4).
fn stands_for_itself(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z')
        || matches!(
            byte,
            b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b','
        )
        || matches!(byte, b';' | b'=' | b':' | b'@' | b'/' | b'?' | b'%' | b'#')
}

/// What two programs could take for different lengths is refused (RFC 9112 §6.3).
fn body_length(is_http11: bool, headers: &[Header<'_>]) -> Result<BodyLength> {
    let (mut length, mut chunked) = (None, false);
    for Header { name, value } in headers {
        if name.eq_ignore_ascii_case(CONTENT_LENGTH.as_str()) {
            let digits =
                std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let Some(bytes) = digits.and_then(|digits| digits.parse::<u64>().ok()) else {
                return Err(HttpError::bad_request("`Content-Length` is not a number."));
            };
            if length.replace(bytes).is_some_and(|other| other != bytes) {
                return Err(HttpError::bad_request("The request has two lengths."));
            }
        } else if name.eq_ignore_ascii_case(TRANSFER_ENCODING.as_str()) {
            if chunked || !is_http11 || !value.eq_ignore_ascii_case(b"chunked") {
                let reason = "The only supported transfer coding is `chunked`, once, and not in HTTP/1.0.";
                return Err(HttpError::not_implemented(reason));
            }
            chunked = true;
        }
    }
    match (chunked, length) {
        (true, Some(_)) => {
            Err(HttpError::bad_request("The request has a length in addition to its transfer coding."))
        }
        (true, None) => Ok(BodyLength::Chunked),
        (false, length) => Ok(BodyLength::Bytes(length.unwrap_or(0))),
    }
}

/// What is no request at all.
pub(crate) fn no_request() -> HttpError {
    HttpError::bad_request(
        "This is not an HTTP request: a request begins with a method, an address and a version.",
    )
}

pub(crate) fn bare_line_feed() -> HttpError {
    HttpError::bad_request("A line of the request's head ends with LF instead of CR LF.")
}

pub(crate) fn too_large(most_bytes: usize) -> HttpError {
    let reason = format!("The address and the headers may have at most {most_bytes} bytes together.");
    HttpError::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "bad_request", reason)
}

fn malformed(error: httparse::Error) -> HttpError {
    match error {
        httparse::Error::TooManyHeaders => {
            let reason = format!("A request may have at most {MOST_HEADERS} headers.");
            HttpError::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "bad_request", reason)
        }
        httparse::Error::HeaderName => {
            HttpError::bad_request("A header's name has an invalid character, or a blank before its colon.")
        }
        httparse::Error::HeaderValue => {
            HttpError::bad_request("A header's value has a control character, or continues on the next line.")
        }
        _ => no_request(),
    }
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode;
    use proptest::prelude::*;

    use super::*;

    fn target(raw: &[u8]) -> Result<Vec<u8>> {
        let screened = screen([b"GET ", raw, b" HTTP/1.1\r\nHost: x\r\n\r\n"].concat())?;
        let line = screened.bytes.split(|byte| *byte == b'\r').next().unwrap();
        Ok(line[4..line.len() - 9].to_vec())
    }

    proptest! {
        #[test]
        fn an_address_means_what_it_did_and_is_one(raw in proptest::collection::vec(prop_oneof![
            33_u8..127, 128_u8..=255, Just(b'%'), Just(b'"'), Just(b'/'), Just(b'2'),
        ], 0..40)) {
            let raw = [b"/", &raw[..]].concat();
            let encoded = target(&raw).unwrap();
            let uri = Uri::try_from(encoded.as_slice()).unwrap();
            let spelled = uri.path_and_query().unwrap().as_str().as_bytes();
            let raw = raw.split(|byte| *byte == b'#').next().unwrap();
            prop_assert_eq!(
                percent_decode(spelled).collect::<Vec<_>>(),
                percent_decode(raw).collect::<Vec<_>>()
            );
            prop_assert!(spelled.iter().all(stands_for_itself));
            prop_assert_eq!(target(&encoded).unwrap(), encoded);
        }

        #[test]
        fn a_head_is_taken_as_hyper_takes_it(head in proptest::collection::vec(prop_oneof![
            Just(b"GET /a HTTP/1.1\r\n".to_vec()), Just(b"Host: x\r\n".to_vec()), Just(b"\r\n".to_vec()),
            Just(b"A: \xff\r\n".to_vec()), proptest::collection::vec(any::<u8>(), 0..5),
        ], 0..8)) {
            let head = head.concat();
            if let Ok(screened) = screen(head) {
                let mut fields = [httparse::EMPTY_HEADER; MOST_HEADERS];
                let mut request = Request::new(&mut fields);
                prop_assert_eq!(request.parse(&screened.bytes), Ok(Status::Complete(screened.bytes.len())));
                prop_assert!(request.path.unwrap().parse::<Uri>().is_ok());
            }
        }
    }

    #[test]
    fn what_an_address_cannot_be_is_said() {
        for (raw, expected) in [
            (&b"/a?key=\"b\""[..], &b"/a?key=%22b%22"[..]),
            (b"/<>`{}|^\\[]", b"/%3C%3E%60%7B%7D%7C%5E%5C%5B%5D"),
            (b"/\xc3\xa4?\xe4", b"/%C3%A4?%E4"),
            (b"http://[::1]:80/[", b"http://[::1]:80/%5B"),
            (b"/a?u=http://[b]", b"/a?u=http://%5Bb%5D"),
            (b"*", b"*"),
        ] {
            assert_eq!(target(raw).unwrap(), expected);
        }
        let refused = |raw: &[u8]| target(raw).unwrap_err().status.as_u16();
        for raw in [&b"/a b"[..], b"/a\tb", b"/\x7f", b"/\0", b"", b"a", b"http://[x/"] {
            assert_eq!(refused(raw), 400, "{raw:?}");
        }
        assert_eq!(refused(&[b'/'; 70_000]), 414);
        assert_eq!(screen(b"GET / HTTP/1.2\r\n\r\n".to_vec()).unwrap_err().status.as_u16(), 400);
    }

    #[test]
    fn lengths_are_clear_or_refused() {
        let of = |headers: &str| {
            screen(format!("POST / HTTP/1.1\r\n{headers}\r\n").into_bytes()).map(|head| head.body)
        };
        assert_eq!(of("").unwrap(), BodyLength::Bytes(0));
        assert_eq!(of("Content-Length: 3\r\ncontent-length: 3\r\n").unwrap(), BodyLength::Bytes(3));
        assert_eq!(of("Transfer-Encoding: Chunked\r\n").unwrap(), BodyLength::Chunked);
        for headers in [
            "Content-Length: 3\r\nContent-Length: 4\r\n",
            "Content-Length: +3\r\n",
            "Content-Length: \r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked, chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        ] {
            assert!(of(headers).is_err(), "{headers}");
        }
        let old = screen(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec());
        assert!(old.is_err());
    }
}
