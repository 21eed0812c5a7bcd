//! The header that a proxy puts before a connection, which says whose connection it is: the PROXY protocol of HAProxy,
//! versions 1 and 2.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

/// A header of version 1, with its end.
const TEXT_MAX_BYTES: usize = 107;

/// What a header of version 2 begins with.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The signature, version and command, family, and length.
const BINARY_HEAD_BYTES: usize = 16;

/// Addresses and additions of a header of version 2. Proxies add certificates' names, which are short.
const BINARY_REST_MAX_BYTES: usize = 4096;

/// Whose connection it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// The proxy's own, as for a health check, or of a kind that has no address.
    Own,
    /// A client's.
    Client {
        /// Where it comes from.
        from: SocketAddr,
        /// Where it wanted to go.
        to: SocketAddr,
    },
}

/// The connection does not begin with such a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the connection does not begin with a header of the PROXY protocol")]
pub struct ProxyError;

/// Reads the header that `buffer` begins with, and the bytes that it takes; `None` if its end has not come. A buffer
/// of 4,112 bytes holds every header that is taken.
///
/// # Errors
/// [`ProxyError`]; the connection is to be closed without an answer.
pub fn proxy_header(buffer: &[u8]) -> Result<Option<(ProxyHeader, usize)>, ProxyError> {
    let common = buffer.len().min(SIGNATURE.len());
    if buffer.get(..common) == SIGNATURE.get(..common) {
        return binary(buffer);
    }
    text(buffer)
}

fn text(buffer: &[u8]) -> Result<Option<(ProxyHeader, usize)>, ProxyError> {
    const WORD: &[u8] = b"PROXY ";
    let common = buffer.len().min(WORD.len());
    if buffer.get(..common) != WORD.get(..common) {
        return Err(ProxyError);
    }
    let seen = buffer.get(..buffer.len().min(TEXT_MAX_BYTES)).unwrap_or_default();
    let Some(end) = seen.windows(2).position(|pair| pair == b"\r\n") else {
        return if seen.len() < TEXT_MAX_BYTES { Ok(None) } else { Err(ProxyError) };
    };
    let line = std::str::from_utf8(seen.get(WORD.len()..end).unwrap_or_default()).map_err(|_| ProxyError)?;
    let mut words = line.split(' ');
    let family = words.next().unwrap_or_default();
    if family == "UNKNOWN" {
        return Ok(Some((ProxyHeader::Own, end + 2)));
    }
    let mut next = || words.next().ok_or(ProxyError);
    let (from, to) = (address(next()?)?, address(next()?)?);
    let (from_port, to_port) = (port(next()?)?, port(next()?)?);
    let fits = match family {
        "TCP4" => from.is_ipv4() && to.is_ipv4(),
        "TCP6" => from.is_ipv6() && to.is_ipv6(),
        _ => false,
    };
    if !fits || words.next().is_some() {
        return Err(ProxyError);
    }
    let client =
        ProxyHeader::Client { from: SocketAddr::new(from, from_port), to: SocketAddr::new(to, to_port) };
    Ok(Some((client, end + 2)))
}

fn address(word: &str) -> Result<IpAddr, ProxyError> {
    word.parse().map_err(|_| ProxyError)
}

fn port(word: &str) -> Result<u16, ProxyError> {
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { word.parse().map_err(|_| ProxyError) } else { Err(ProxyError) }
}

fn binary(buffer: &[u8]) -> Result<Option<(ProxyHeader, usize)>, ProxyError> {
    let Some(head) = buffer.get(SIGNATURE.len()..BINARY_HEAD_BYTES) else { return Ok(None) };
    let [command, family, high, low] = *head else { return Err(ProxyError) };
    let rest_bytes = usize::from(u16::from_be_bytes([high, low]));
    // The version is 2; the command is LOCAL or PROXY.
    if !matches!(command, 0x20 | 0x21) || rest_bytes > BINARY_REST_MAX_BYTES {
        return Err(ProxyError);
    }
    let whole_bytes = BINARY_HEAD_BYTES + rest_bytes;
    let Some(rest) = buffer.get(BINARY_HEAD_BYTES..whole_bytes) else { return Ok(None) };
    let header = match (command, family) {
        (0x21, 0x11) => addresses::<4>(rest, |bytes| IpAddr::V4(Ipv4Addr::from(bytes)))?,
        (0x21, 0x21) => addresses::<16>(rest, |bytes| IpAddr::V6(Ipv6Addr::from(bytes)))?,
        // LOCAL, and sockets of files and datagrams.
        _ => ProxyHeader::Own,
    };
    Ok(Some((header, whole_bytes)))
}

/// Two addresses and two ports.
fn addresses<const N: usize>(rest: &[u8], of: impl Fn([u8; N]) -> IpAddr) -> Result<ProxyHeader, ProxyError> {
    let (from, rest) = rest.split_first_chunk::<N>().ok_or(ProxyError)?;
    let (to, rest) = rest.split_first_chunk::<N>().ok_or(ProxyError)?;
    let (from_port, rest) = rest.split_first_chunk::<2>().ok_or(ProxyError)?;
    let (to_port, _) = rest.split_first_chunk::<2>().ok_or(ProxyError)?;
    Ok(ProxyHeader::Client {
        from: SocketAddr::new(of(*from), u16::from_be_bytes(*from_port)),
        to: SocketAddr::new(of(*to), u16::from_be_bytes(*to_port)),
    })
}

#[cfg(test)]
mod tests {
    use super::{ProxyError, ProxyHeader, SIGNATURE, proxy_header};

    fn client(from: &str, to: &str) -> ProxyHeader {
        ProxyHeader::Client { from: from.parse().expect("an address"), to: to.parse().expect("an address") }
    }

    fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).expect("short").to_be_bytes();
        [SIGNATURE.as_slice(), &[command, family], &length, rest].concat()
    }

    #[test]
    fn headers_say_whose_connection_it_is() {
        let four = binary(0x21, 0x11, &[192, 0, 2, 1, 192, 0, 2, 2, 0x10, 0, 0, 25, 9, 9]);
        let mut six = [0_u8; 36];
        (six[15], six[31], six[33], six[35]) = (1, 2, 3, 4);
        let all = [
            (
                b"PROXY TCP4 192.0.2.1 192.0.2.2 4096 25\r\n".to_vec(),
                client("192.0.2.1:4096", "192.0.2.2:25"),
            ),
            (b"PROXY TCP6 ::1 ::2 3 4\r\n".to_vec(), client("[::1]:3", "[::2]:4")),
            (b"PROXY UNKNOWN\r\n".to_vec(), ProxyHeader::Own),
            (four, client("192.0.2.1:4096", "192.0.2.2:25")),
            (binary(0x21, 0x21, &six), client("[::1]:3", "[::2]:4")),
            (binary(0x20, 0x00, b""), ProxyHeader::Own),
        ];
        for (header, meant) in all {
            for cut in 0..header.len() {
                assert_eq!(proxy_header(&header[..cut]), Ok(None), "{cut} bytes");
            }
            let more = [header.as_slice(), b"EHLO a\r\n"].concat();
            assert_eq!(proxy_header(&more), Ok(Some((meant, header.len()))));
        }
    }

    #[test]
    fn what_is_no_header_is_refused_at_once() {
        let long = format!("PROXY TCP4 {}", "1".repeat(107));
        let wrong: [&[u8]; 8] = [
            b"EHLO",
            b"PROXY TCP4 ::1 ::2 3 4\r\n",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 +1 25\r\n",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1 25 9\r\n",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 65536 25\r\n",
            long.as_bytes(),
            b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\0",
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x04abcd",
        ];
        for header in wrong {
            assert_eq!(proxy_header(header), Err(ProxyError), "{header:?}");
        }
        let huge = binary(0x21, 0x11, &[0; 5000]);
        assert_eq!(proxy_header(&huge[..16]), Err(ProxyError));
    }
}
