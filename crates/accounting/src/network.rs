//! Networks: the part of an address that names one customer, and ranges of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// How many leading bits of an address name its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkPrefixes {
    /// Of IPv4, 0 to 32.
    pub ipv4_bits: u8,
    /// Of IPv6, 0 to 128. A provider gives a customer at least a /64 (RFC 6177).
    pub ipv6_bits: u8,
}

impl Default for NetworkPrefixes {
    fn default() -> Self {
        Self { ipv4_bits: 32, ipv6_bits: 64 }
    }
}

/// Where somebody comes from: an address without the bits that its owner chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// The network of `address`. An IPv4 address that is written as one of IPv6 is one of IPv4.
    #[must_use]
    pub fn of(address: IpAddr, prefixes: NetworkPrefixes) -> Self {
        let address = address.to_canonical();
        let bits = match address {
            IpAddr::V4(_) => prefixes.ipv4_bits.min(32),
            IpAddr::V6(_) => prefixes.ipv6_bits.min(128),
        };
        Self { address: masked(address, bits), bits }
    }

    /// Its first address.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }
}

/// `192.0.2.1`, `2001:db8::/64`.
impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = if self.address.is_ipv4() { 32 } else { 128 };
        if self.bits == whole {
            write!(formatter, "{}", self.address)
        } else {
            write!(formatter, "{}/{}", self.address, self.bits)
        }
    }
}

/// A range of addresses that somebody has written down: `10.0.0.0/8`, `::1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    address: IpAddr,
    bits: u8,
}

/// Why a text is no range of addresses.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0:?} is no network: write it like 10.0.0.0/8, 192.0.2.1 or 2001:db8::/32")]
pub struct RangeError(String);

impl FromStr for AddressRange {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        let wrong = || RangeError(text.chars().take(80).collect());
        let (address, bits) = match text.trim().split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text.trim(), None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let whole = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse::<u8>().ok().filter(|bits| *bits <= whole).ok_or_else(wrong)?,
            None => whole,
        };
        Ok(Self { address: masked(address, bits), bits })
    }
}

impl AddressRange {
    /// Whether `address` lies in it.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.bits) == self.address
    }
}

/// Whether `address` lies in one of `ranges`.
#[must_use]
pub fn is_within(ranges: &[AddressRange], address: IpAddr) -> bool {
    ranges.iter().any(|range| range.holds(address))
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}
