//! The PROXY header of HAProxy's proxy protocol, versions 1 and 2, and a stream that gives back what was read of it.
//!
//! A trusted peer may send it before everything else, TLS too. It is looked for on connections of trusted peers only:
//! from everybody else it would be a request that makes no sense, and is answered as one.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// What version 1 begins with.
const TEXT_START: &[u8] = b"PROXY ";

/// The longest line of version 1 with its end (proxy-protocol.txt §2.1).
const TEXT_BYTES_MOST: usize = 107;

/// What version 2 begins with (§2.2).
const BINARY_START: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Its fixed part.
const BINARY_FIXED_BYTES: usize = 16;

/// The longest variable part that is taken; addresses and what proxies add have some hundred bytes.
const BINARY_BYTES_MOST: usize = 4096;

/// The type of what tells of TLS at the proxy (§2.2.6), and its flag that the client used it.
const TLS_TYPE: u8 = 0x20;
const TLS_USED: u8 = 0x01;

/// What a PROXY header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) address: IpAddr,
    /// Whether the client used TLS towards the proxy; version 1 does not say.
    pub(crate) secure: Option<bool>,
}

/// What a connection of a trusted proxy begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// No PROXY header.
    Other,
    /// One that names no client, as of a proxy's own connection.
    Own,
    /// One that names a client.
    Client(Claim),
}

/// Reads a PROXY header, if there is one, and gives the stream as it is behind it.
///
/// # Errors
/// The stream's; [`ErrorKind::InvalidData`] for a header that is broken.
pub(crate) async fn read<S: AsyncRead + Unpin>(mut stream: S) -> io::Result<(Rewound<S>, Beginning)> {
    let mut read = BytesMut::with_capacity(256);
    loop {
        match parse(&read)? {
            Parsed::Whole { length, claim } => {
                read.advance(length);
                let beginning = match claim {
                    _ if length == 0 => Beginning::Other,
                    None => Beginning::Own,
                    Some(claim) => Beginning::Client(claim),
                };
                return Ok((Rewound { read: read.freeze(), stream }, beginning));
            }
            Parsed::More => {
                if stream.read_buf(&mut read).await? == 0 {
                    // The client left: anyone who reads next sees it.
                    return Ok((Rewound { read: read.freeze(), stream }, Beginning::Other));
                }
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    /// This many bytes are the header; 0 where there is none.
    Whole {
        length: usize,
        claim: Option<Claim>,
    },
    More,
}

fn parse(read: &[u8]) -> io::Result<Parsed> {
    let may_become = |start: &[u8]| read.len() < start.len() && start.starts_with(read);
    if read.starts_with(BINARY_START) {
        parse_binary(read)
    } else if read.starts_with(TEXT_START) {
        parse_text(read)
    } else if may_become(BINARY_START) || may_become(TEXT_START) {
        Ok(Parsed::More)
    } else {
        Ok(Parsed::Whole { length: 0, claim: None })
    }
}

fn broken(reason: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

fn parse_text(read: &[u8]) -> io::Result<Parsed> {
    let head = read.get(..TEXT_BYTES_MOST).unwrap_or(read);
    let Some(end) = head.windows(2).position(|pair| pair == b"\r\n") else {
        let too_long = read.len() >= TEXT_BYTES_MOST;
        return if too_long { Err(broken("the PROXY header is too long")) } else { Ok(Parsed::More) };
    };
    let line = head.get(..end).and_then(|line| std::str::from_utf8(line).ok());
    let mut words = line.ok_or_else(|| broken("the PROXY header is not text"))?.split(' ').skip(1);
    let claim = match words.next() {
        Some("UNKNOWN") => None,
        Some(family @ ("TCP4" | "TCP6")) => {
            let mut address = || {
                let address: Option<IpAddr> = words.next().and_then(|word| word.parse().ok());
                let fits = address.filter(|address| address.is_ipv4() == (family == "TCP4"));
                fits.ok_or_else(|| broken("the PROXY header names no address"))
            };
            let (source, _destination) = (address()?, address()?);
            if !words.next().is_some_and(is_port)
                || !words.next().is_some_and(is_port)
                || words.next().is_some()
            {
                return Err(broken("the PROXY header does not end with two ports"));
            }
            Some(Claim { address: source.to_canonical(), secure: None })
        }
        _ => return Err(broken("the PROXY header names no protocol")),
    };
    Ok(Parsed::Whole { length: end + 2, claim })
}

/// Digits alone, which a number of Rust's need not be.
fn is_port(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit()) && word.parse::<u16>().is_ok()
}

fn parse_binary(read: &[u8]) -> io::Result<Parsed> {
    let Some(fixed) = read.first_chunk::<BINARY_FIXED_BYTES>() else { return Ok(Parsed::More) };
    let [.., command, family, high, low] = *fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > BINARY_BYTES_MOST {
        return Err(broken("the PROXY header is too long"));
    }
    let Some(variable) = read.get(BINARY_FIXED_BYTES..BINARY_FIXED_BYTES + length) else {
        return Ok(Parsed::More);
    };
    let length = BINARY_FIXED_BYTES + length;
    match command {
        // LOCAL: the proxy's own, such as a health check.
        0x20 => Ok(Parsed::Whole { length, claim: None }),
        0x21 => {
            let (address, more) = binary_address(family, variable)?;
            let claim =
                address.map(|address| Claim { address: address.to_canonical(), secure: uses_tls(more) });
            Ok(Parsed::Whole { length, claim })
        }
        _ => Err(broken("the PROXY header has an unknown version or command")),
    }
}

/// The client's address, and what follows both addresses and ports.
fn binary_address(family: u8, variable: &[u8]) -> io::Result<(Option<IpAddr>, &[u8])> {
    let short = || broken("the PROXY header ends within its addresses");
    match family >> 4 {
        1 => {
            let (source, _) = variable.split_first_chunk::<4>().ok_or_else(short)?;
            Ok((Some(Ipv4Addr::from(*source).into()), variable.get(12..).ok_or_else(short)?))
        }
        2 => {
            let (source, _) = variable.split_first_chunk::<16>().ok_or_else(short)?;
            Ok((Some(Ipv6Addr::from(*source).into()), variable.get(36..).ok_or_else(short)?))
        }
        // A socket of the proxy's machine, or nothing that is known.
        _ => Ok((None, &[])),
    }
}

/// What the extensions say of TLS: types, lengths and values.
fn uses_tls(mut extensions: &[u8]) -> Option<bool> {
    while let Some(([kind, high, low], rest)) = extensions.split_first_chunk::<3>() {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let value = rest.get(..length)?;
        if *kind == TLS_TYPE {
            return value.first().map(|flags| flags & TLS_USED != 0);
        }
        extensions = rest.get(length..)?;
    }
    None
}

/// A stream of which some bytes were read already.
pub struct Rewound<S> {
    read: Bytes,
    stream: S,
}

impl<S> Rewound<S> {
    /// One of which nothing was read.
    #[must_use]
    pub const fn whole(stream: S) -> Self {
        Self { read: Bytes::new(), stream }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let length = self.read.len().min(buffer.remaining());
        buffer.put_slice(&self.read.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;

    fn header(command: u8, family: u8, variable: &[u8]) -> Vec<u8> {
        let length = u16::try_from(variable.len()).unwrap().to_be_bytes();
        [BINARY_START, &[command, family], &length, variable].concat()
    }

    fn claim(read: &[u8]) -> Option<Claim> {
        match parse(read).unwrap() {
            Parsed::Whole { length, claim } => {
                assert_eq!(length, read.len());
                claim
            }
            Parsed::More => panic!("{read:?} is whole"),
        }
    }

    #[test]
    fn both_versions_name_the_client() {
        let text = claim(b"PROXY TCP4 192.0.2.9 10.0.0.1 4711 5984\r\n").unwrap();
        assert_eq!((text.address.to_string(), text.secure), ("192.0.2.9".to_owned(), None));
        let text = claim(b"PROXY TCP6 2001:db8::9 ::1 4711 5984\r\n").unwrap();
        assert_eq!(text.address.to_string(), "2001:db8::9");
        assert_eq!(claim(b"PROXY UNKNOWN\r\n"), None);
        let addresses = [192, 0, 2, 9, 10, 0, 0, 1, 1, 2, 3, 4];
        let plain = claim(&header(0x21, 0x11, &addresses)).unwrap();
        assert_eq!((plain.address.to_string(), plain.secure), ("192.0.2.9".to_owned(), None));
        let with_tls = [&addresses[..], &[0x04, 0, 1, 7], &[0x20, 0, 5, 1, 0, 0, 0, 0]].concat();
        assert_eq!(claim(&header(0x21, 0x11, &with_tls)).unwrap().secure, Some(true));
        assert_eq!(claim(&header(0x20, 0, &[])), None, "a health check");
        assert_eq!(claim(&header(0x21, 0x31, &[0; 216])), None, "a socket of the file system");
    }

    #[test]
    fn broken_headers_are_refused_and_others_are_none() {
        let long = [b"PROXY TCP4 ".as_slice(), &[b'1'; 200]].concat();
        let addresses = [192, 0, 2, 9, 10, 0, 0, 1, 1, 2, 3];
        for wrong in [
            b"PROXY TCP4 2001:db8::9 ::1 1 2\r\n".to_vec(),
            b"PROXY TCP9 1.2.3.4 1.2.3.4 1 2\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.1 ::2 1 25\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.1 192.0.2.2 +1 25\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1 25 9\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.1 192.0.2.2 65536 25\r\n".to_vec(),
            long,
            header(0x31, 0x11, &[0; 12]),
            header(0x21, 0x11, &addresses),
        ] {
            assert!(parse(&wrong).is_err(), "{wrong:?}");
        }
        for none in [b"GET / HTTP/1.1\r\n".as_slice(), b"\x16\x03\x01", b"PRI * HTTP/2.0\r\n"] {
            assert_eq!(parse(none).unwrap(), Parsed::Whole { length: 0, claim: None });
        }
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm_and_a_beginning_is_never_taken_for_the_whole(
            family in any::<u8>(), command in 0x1f..0x23_u8, variable in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let whole = header(command, family, &variable);
            for end in 0..whole.len() {
                if let Ok(parsed) = parse(whole.get(..end).unwrap()) {
                    prop_assert_eq!(parsed, Parsed::More);
                }
            }
            if let Ok(Parsed::Whole { length, .. }) = parse(&whole) {
                prop_assert_eq!(length, whole.len());
            }
        }
    }
}
