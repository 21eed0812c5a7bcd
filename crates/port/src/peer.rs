//! The other end of a connection.

use std::net::IpAddr;

use scrinium_accounting::{AddressRange, is_within};

/// The other end of a connection: what the system says, or what a PROXY header says that a trusted peer sent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// An IPv4 address that came as IPv6 is an IPv4 address.
    pub address: IpAddr,
    /// Whether the connection is encrypted from its start, as far as the peer sees it.
    pub secure: bool,
    /// Whether it is a proxy that is believed.
    pub trusted: bool,
}

impl Peer {
    /// The peer at `address`; it is trusted if it is one of `proxies`.
    #[must_use]
    pub fn new(address: IpAddr, secure: bool, proxies: &[AddressRange]) -> Self {
        let address = address.to_canonical();
        Self { address, secure, trusted: is_within(proxies, address) }
    }
}
