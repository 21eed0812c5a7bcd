//! Which addresses this server connects to for a replication.
//!
//! Who orders a replication makes the server connect to what they name, so what only the server itself can reach must not
//! be reached through it: its own machine, and addresses that mean something on the wire alone, such as those where
//! machines in a cloud find their keys. Names are resolved here, and the same addresses that were looked at are connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use scrinium_accounting::{AddressRange, is_within};

/// Addresses that are allowed although they are of this machine or of its wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressRules {
    allowed: Vec<AddressRange>,
    own_ports: Vec<u16>,
}

impl AddressRules {
    /// Rules that allow these networks, and this server's own ports on its own machine.
    #[must_use]
    pub fn new(allowed: Vec<AddressRange>, own_ports: Vec<u16>) -> Self {
        Self { allowed, own_ports }
    }

    /// Whether a port is one of this server.
    #[must_use]
    pub fn is_own_port(&self, port: u16) -> bool {
        self.own_ports.contains(&port)
    }

    /// Looks at an address that somebody wants to be connected to; at a port of this server, or not.
    ///
    /// # Errors
    /// Why nobody connects there.
    pub fn check(&self, address: IpAddr, at_own_port: bool) -> std::result::Result<(), String> {
        let address = plain(address);
        if is_within(&self.allowed, address) {
            return Ok(());
        }
        let kind = match address {
            address if address.is_loopback() && at_own_port => return Ok(()),
            address if address.is_loopback() => "is an address of this machine",
            address if address.is_unspecified() => "is no address of a server",
            address if address.is_multicast() => "is an address of many",
            IpAddr::V4(address) if address.is_link_local() || address == Ipv4Addr::BROADCAST => {
                "is good on one wire only"
            }
            IpAddr::V4(address) if address.octets().starts_with(&[0]) => "is no address of a server",
            IpAddr::V6(address) if address.is_unicast_link_local() => "is good on one wire only",
            _ => return Ok(()),
        };
        Err(format!(
            "{address} {kind}, and replications do not go there; the administrator can allow it by the key \
             `replication.allowed_networks`."
        ))
    }
}

/// What an address of version 6 that stands for one of version 4 means.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else { return address };
    if let Some(four) = six.to_ipv4_mapped() {
        return four.into();
    }
    let segments = six.segments();
    // NAT64 (RFC 6052), 6to4 (RFC 3056) and the old compatible form (RFC 4291).
    let four = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    match segments {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => four(high, low).into(),
        [0x2002, high, low, ..] => four(high, low).into(),
        [0, 0, 0, 0, 0, 0, high, low] if six != Ipv6Addr::LOCALHOST && six != Ipv6Addr::UNSPECIFIED => {
            four(high, low).into()
        }
        _ => address,
    }
}

/// Looks names up for connections, and leaves out what is not allowed.
pub(crate) struct CheckedNames {
    pub(crate) rules: Arc<AddressRules>,
    /// All connections are to ports of this server.
    pub(crate) at_own_port: bool,
}

impl Resolve for CheckedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let (rules, at_own_port) = (Arc::clone(&self.rules), self.at_own_port);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let mut refused = None;
            let allowed: Vec<SocketAddr> = found
                .filter(|address| match rules.check(address.ip(), at_own_port) {
                    Ok(()) => true,
                    Err(reason) => {
                        refused = Some(reason);
                        false
                    }
                })
                .collect();
            match refused {
                Some(reason) if allowed.is_empty() => Err(reason.into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn allowed(rules: &AddressRules, address: &str, port: u16) -> bool {
        rules.check(address.parse().unwrap(), rules.is_own_port(port)).is_ok()
    }

    #[test]
    fn what_only_this_machine_reaches_is_not_reached_through_it() {
        let rules = AddressRules::new(Vec::new(), vec![5984]);
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "0.0.0.0",
            "0.1.2.3",
            "::",
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "fe80::1",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
        ] {
            assert!(!allowed(&rules, address, 80), "{address}");
        }
        for address in ["10.1.2.3", "192.168.1.1", "192.0.2.7", "2001:db8::1", "fd00::1", "64:ff9b::a01:203"]
        {
            assert!(allowed(&rules, address, 80), "{address}");
        }
        // The server's own port is itself, with its own log-in.
        assert!(allowed(&rules, "127.0.0.1", 5984));
        assert!(!allowed(&rules, "169.254.169.254", 5984));
    }

    #[test]
    fn networks_are_allowed_by_their_bits() {
        let networks = ["127.0.0.0/8", "fe80::/64", "169.254.1.7"].map(|text| text.parse().unwrap());
        let rules = AddressRules::new(networks.to_vec(), Vec::new());
        for (address, is_allowed) in [
            ("127.3.3.3", true),
            ("::ffff:127.0.0.1", true),
            ("fe80::1", true),
            ("fe80:0:0:1::1", false),
            ("169.254.1.7", true),
            ("169.254.1.8", false),
            ("::1", false),
        ] {
            assert_eq!(allowed(&rules, address, 1), is_allowed, "{address}");
        }
        let everything = AddressRules::new(vec!["0.0.0.0/0".parse().unwrap()], Vec::new());
        assert!(allowed(&everything, "169.254.169.254", 1));
    }
}
