//! Who is at the other end: the address and the scheme that a client used, through proxies that are trusted.
//!
//! A connection's peer is what the system says, or what a PROXY header says that a trusted peer sent before all else
//! (see [`Peer`]). If that peer is a trusted proxy, the headers of each request tell who asked it: `Forwarded`
//! (RFC 7239), or else `X-Forwarded-For`, `X-Forwarded-Proto` (or `-Ssl`) and `X-Forwarded-Host`. They are read from the end, since each proxy adds to
//! the end what it knows by itself: the first address that is no trusted proxy's is the client's, and whatever stands
//! before it may be invented. From everybody else these headers are ignored.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName};
use scrinium_accounting::{AddressRange, is_within};
use scrinium_port::Peer;

const FORWARDED: HeaderName = http::header::FORWARDED;
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_SSL: HeaderName = HeaderName::from_static("x-forwarded-ssl");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The longest name of a host with its port (RFC 1035 §2.3.4).
const HOST_BYTES_MAX: usize = 261;

/// Proxies in a row that are looked at.
const HOPS_MOST: usize = 32;

/// Who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) address: IpAddr,
    /// Whether the client used `https`.
    pub(crate) secure: bool,
    /// Whether the request came from a trusted proxy.
    pub(crate) proxied: bool,
}

/// What one proxy says of the one who asked it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hop {
    /// `None`: it does not say, or says nothing that is an address.
    address: Option<IpAddr>,
    secure: Option<bool>,
    /// What it was asked as.
    host: Option<String>,
}

impl Client {
    /// Who sent a request with these headers over a connection of `peer`, and what host they asked, where proxies say.
    pub(crate) fn of(peer: &Peer, headers: &HeaderMap, proxies: &[AddressRange]) -> (Self, Option<String>) {
        let mut client = Self { address: peer.address, secure: peer.secure, proxied: peer.trusted };
        let mut host = None;
        if !peer.trusted {
            return (client, host);
        }
        for hop in hops(headers) {
            client.secure = hop.secure.unwrap_or(client.secure);
            host = hop.host.or(host);
            let Some(address) = hop.address else { break };
            client.address = address;
            if !is_within(proxies, address) {
                break;
            }
        }
        (client, host)
    }
}

/// What proxies say, the nearest one first.
fn hops(headers: &HeaderMap) -> Vec<Hop> {
    if headers.contains_key(FORWARDED) {
        let mut hops = Vec::new();
        // Several headers are one list in their order (RFC 9110 §5.3).
        for value in headers.get_all(FORWARDED).iter().rev() {
            // What cannot be read ends what can be believed.
            let Some(elements) = value.to_str().ok().map(split_quoted(',')) else { break };
            hops.extend(elements.into_iter().rev().map(forwarded_hop));
        }
        hops.truncate(HOPS_MOST);
        return hops;
    }
    let list = |name: HeaderName| -> Vec<&str> {
        let values = headers.get_all(name).iter().rev();
        let texts = values.map_while(|value| value.to_str().ok());
        texts.flat_map(|text| text.rsplit(',').map(str::trim)).take(HOPS_MOST).collect()
    };
    let (addresses, schemes, hosts) = (list(FORWARDED_FOR), list(FORWARDED_PROTO), list(FORWARDED_HOST));
    let encrypted = list(FORWARDED_SSL).first().and_then(|switch| is_on(switch));
    // One value for several addresses is what the nearest proxy knows.
    let of_hop = |values: &[&str], index: usize| {
        let by_hop = values.len() == addresses.len();
        values.get(if by_hop { index } else { 0 }).map(|value| (*value).to_owned())
    };
    let hop = |index: usize| Hop {
        address: addresses.get(index).and_then(|text| node_address(text)),
        secure: of_hop(&schemes, index).and_then(|scheme| is_secure(&scheme)).or(encrypted),
        host: of_hop(&hosts, index).filter(|host| is_host(host)),
    };
    (0..addresses.len().max(1)).map(hop).collect()
}

/// One element of `Forwarded` (RFC 7239 §4): pairs with semicolons between them.
fn forwarded_hop(element: &str) -> Hop {
    let mut hop = Hop::default();
    for pair in split_quoted(';')(element) {
        let Some((name, value)) = pair.split_once('=') else { continue };
        let value = unquoted(value.trim());
        match name.trim().to_ascii_lowercase().as_str() {
            "for" => hop.address = node_address(&value),
            "proto" => hop.secure = is_secure(&value),
            "host" => hop.host = Some(value).filter(|host| is_host(host)),
            _ => {}
        }
    }
    hop
}

fn is_secure(scheme: &str) -> Option<bool> {
    match scheme.to_ascii_lowercase().as_str() {
        "https" | "wss" => Some(true),
        "http" | "ws" => Some(false),
        _ => None,
    }
}

fn is_on(switch: &str) -> Option<bool> {
    match switch.to_ascii_lowercase().as_str() {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// Whether it may stand in an address (RFC 3986 §3.2.2): a name or an address, and a port.
fn is_host(host: &str) -> bool {
    let may_stand = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:[]".contains(&byte);
    !host.is_empty() && host.len() <= HOST_BYTES_MAX && host.bytes().all(may_stand)
}

/// The address of a node (RFC 7239 §6), with or without a port. `unknown` and names that mean nothing are none.
fn node_address(node: &str) -> Option<IpAddr> {
    let node = node.trim();
    if let Ok(address) = node.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    if let Ok(address) = node.parse::<SocketAddr>() {
        return Some(address.ip().to_canonical());
    }
    let bracketed = node.strip_prefix('[')?.split_once(']')?.0;
    bracketed.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

/// Splits at `mark` where it stands outside of a quoted string (RFC 9110 §5.6.4).
fn split_quoted(mark: char) -> impl Fn(&str) -> Vec<&str> {
    move |text| {
        let (mut quoted, mut escaped) = (false, false);
        text.split(|letter: char| {
            if escaped {
                escaped = false;
                return false;
            }
            match letter {
                '\\' => escaped = quoted,
                '"' => quoted = !quoted,
                _ => return letter == mark && !quoted,
            }
            false
        })
        .map(str::trim)
        .collect()
    }
}

fn unquoted(value: &str) -> String {
    let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    inner.map_or_else(|| value.to_owned(), |inner| inner.replace('\\', ""))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use http::HeaderValue;

    use super::*;

    fn proxies() -> Vec<AddressRange> {
        ["10.0.0.0/8", "2001:db8::/32"].iter().map(|text| text.parse().unwrap()).collect()
    }

    fn seen(peer: &str, headers: &[(&str, &str)]) -> (String, bool) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        let (client, _) = Client::of(&Peer::new(peer.parse().unwrap(), false, &proxies()), &map, &proxies());
        (client.address.to_string(), client.secure)
    }

    fn host(peer: &str, headers: &[(&'static str, &'static str)]) -> Option<String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        Client::of(&Peer::new(peer.parse().unwrap(), false, &proxies()), &map, &proxies()).1
    }

    #[test]
    fn the_host_that_was_asked_is_what_the_first_trusted_proxy_says() {
        let one = Some("db.example:8443".to_owned());
        let named = ("x-forwarded-host", "db.example:8443");
        assert_eq!(host("10.1.1.1", &[named]), one);
        assert_eq!(host("198.51.100.1", &[named]), None);
        assert_eq!(host("10.1.1.1", &[("forwarded", "for=192.0.2.9;host=\"db.example:8443\"")]), one);
        // Two proxies: the outer one knows, and what stands before may be invented.
        let inner = "for=192.0.2.9;host=evil.example, for=192.0.2.7;host=\"db.example:8443\", for=10.2.2.2;host=inner";
        assert_eq!(host("10.1.1.1", &[("forwarded", inner)]), one);
        let lists = [
            ("x-forwarded-for", "192.0.2.9, 192.0.2.7, 10.2.2.2"),
            ("x-forwarded-host", "evil.example, db.example:8443, inner"),
        ];
        assert_eq!(host("10.1.1.1", &lists), one);
        for invented in ["a/b", "a b", "user@a", "", "a\"b"] {
            assert_eq!(host("10.1.1.1", &[("x-forwarded-host", invented)]), None, "{invented}");
        }
        assert!(seen("10.1.1.1", &[("x-forwarded-ssl", "on")]).1);
        assert!(!seen("10.1.1.1", &[("x-forwarded-ssl", "on"), ("x-forwarded-proto", "http")]).1);
    }

    #[test]
    fn only_trusted_proxies_say_who_asks() {
        let forged = [("x-forwarded-for", "192.0.2.9"), ("x-forwarded-proto", "https")];
        assert_eq!(seen("198.51.100.1", &forged), ("198.51.100.1".to_owned(), false));
        assert_eq!(seen("10.1.1.1", &forged), ("192.0.2.9".to_owned(), true));
        assert_eq!(seen("::ffff:10.1.1.1", &forged), ("192.0.2.9".to_owned(), true));
        let forwarded = [("forwarded", "for=192.0.2.9;proto=https")];
        assert_eq!(seen("198.51.100.1", &forwarded), ("198.51.100.1".to_owned(), false));
        assert_eq!(seen("10.1.1.1", &[]), ("10.1.1.1".to_owned(), false));
    }

    #[test]
    fn what_a_client_invents_before_the_proxy_adds_its_address_is_not_believed() {
        for (name, value) in [
            ("x-forwarded-for", "127.0.0.1, 10.9.9.9, 192.0.2.9"),
            ("x-forwarded-for", "127.0.0.1, 192.0.2.9, 10.2.2.2"),
            ("forwarded", "for=127.0.0.1, for=\"192.0.2.9:4711\""),
            ("forwarded", "for=127.0.0.1;by=x, for=192.0.2.9, for=10.2.2.2"),
            ("forwarded", "for=\"a, for=127.0.0.1\", for=192.0.2.9"),
        ] {
            assert_eq!(seen("10.1.1.1", &[(name, value)]).0, "192.0.2.9", "{value}");
        }
        // Several headers are one list.
        let twice = [("x-forwarded-for", "127.0.0.1"), ("x-forwarded-for", "192.0.2.9")];
        assert_eq!(seen("10.1.1.1", &twice).0, "192.0.2.9");
        // `Forwarded` counts alone.
        let both = [("forwarded", "for=192.0.2.9"), ("x-forwarded-for", "127.0.0.1")];
        assert_eq!(seen("10.1.1.1", &both).0, "192.0.2.9");
    }

    #[test]
    fn a_hop_without_an_address_ends_what_is_believed() {
        for value in
            ["for=127.0.0.1, for=unknown", "for=127.0.0.1, for=_hidden;proto=http", "for=127.0.0.1, ="]
        {
            assert_eq!(seen("10.1.1.1", &[("forwarded", value)]).0, "10.1.1.1", "{value}");
        }
        assert_eq!(seen("10.1.1.1", &[("x-forwarded-for", "127.0.0.1, nonsense")]).0, "10.1.1.1");
    }

    #[test]
    fn addresses_and_schemes_are_read_as_the_rfc_writes_them() {
        let six = "for=\"[2001:db8:cafe::17]:4711\";proto=https";
        // That one is a trusted proxy, which says no more.
        assert_eq!(seen("10.1.1.1", &[("forwarded", six)]), ("2001:db8:cafe::17".to_owned(), true));
        let six = "For=\"[2001:dead::17]\";Proto=HTTPS;by=203.0.113.43";
        assert_eq!(seen("10.1.1.1", &[("forwarded", six)]), ("2001:dead::17".to_owned(), true));
        let by_hop = [("x-forwarded-for", "192.0.2.9, 10.2.2.2"), ("x-forwarded-proto", "https, http")];
        assert_eq!(seen("10.1.1.1", &by_hop), ("192.0.2.9".to_owned(), true));
        assert_eq!(seen("10.1.1.1", &[("x-forwarded-proto", "https")]), ("10.1.1.1".to_owned(), true));
    }
}
