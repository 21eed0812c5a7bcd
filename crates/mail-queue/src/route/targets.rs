//! The addresses that are connected to, in their order.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use scrinium_smtp_wire::AddressLiteral;

use super::exchangers::{Exchanger, OwnHosts, RouteError};

/// What DNS says of the addresses of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressAnswer {
    /// Some of either kind; none if the host has none.
    Addresses(Vec<IpAddr>),
    /// There is no such name.
    NoSuchName,
    /// No answer, with the reason.
    Failed(String),
}

/// Which kind of address of a host comes first. The other kind follows in turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum AddressOrder {
    #[default]
    V6First,
    V4First,
    V6Only,
    V4Only,
}

/// How addresses are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetOptions {
    /// Which kind comes first.
    pub order: AddressOrder,
    /// At most this many in one round.
    pub most: usize,
    /// Loopback is connected to: in tests, and to a filter on this host.
    pub allow_loopback: bool,
    /// Addresses of private networks are connected to: where this server's mail stays in one's own network.
    pub allow_private: bool,
}

impl Default for TargetOptions {
    fn default() -> Self {
        Self { order: AddressOrder::default(), most: 5, allow_loopback: false, allow_private: false }
    }
}

/// An address of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The host's name, for its certificate; for an address in brackets the address.
    pub host: String,
    /// Where to connect to.
    pub address: IpAddr,
}

/// The addresses of hosts in the order in which they are tried: the hosts' order, and the two kinds in turn, so that a broken
/// route of one kind costs one time-out (RFC 8305, section 4).
///
/// # Errors
/// [`RouteError`] if there is none. A host whose look-up failed makes it temporary.
pub fn targets(
    domain: &str,
    hosts: &[Exchanger],
    own: &OwnHosts,
    options: &TargetOptions,
    mut address_of: impl FnMut(&str) -> AddressAnswer,
) -> Result<Vec<Target>, RouteError> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut failed = None;
    let mut was_refused = false;
    for host in hosts {
        if found.len() >= options.most {
            break;
        }
        let addresses = match address_of(&host.name) {
            AddressAnswer::Addresses(addresses) => addresses,
            AddressAnswer::NoSuchName => continue,
            AddressAnswer::Failed(reason) => {
                failed = Some(RouteError::LookupFailed { name: host.name.clone(), reason });
                continue;
            }
        };
        let (allowed, refused): (Vec<IpAddr>, Vec<IpAddr>) =
            addresses.into_iter().partition(|address| may_connect(*address, own, options));
        was_refused |= !refused.is_empty();
        for address in ordered(&allowed, options.order) {
            if seen.insert(address) {
                found.push(Target { host: host.name.clone(), address });
            }
        }
    }
    found.truncate(options.most.max(1));
    match (found.is_empty(), failed, was_refused) {
        (false, ..) => Ok(found),
        (true, Some(error), _) => Err(error),
        (true, None, true) => Err(RouteError::OwnAddresses(domain.to_owned())),
        (true, None, false) => Err(RouteError::NoAddresses(domain.to_owned())),
    }
}

/// The address that a recipient's domain in brackets is.
///
/// # Errors
/// [`RouteError::Literal`] and [`RouteError::OwnAddresses`]
pub fn literal_target(
    literal: &AddressLiteral,
    own: &OwnHosts,
    options: &TargetOptions,
) -> Result<Target, RouteError> {
    let address = match literal {
        AddressLiteral::V4(address) => IpAddr::V4(*address),
        AddressLiteral::V6(address) => IpAddr::V6(*address),
        AddressLiteral::General(inside) => return Err(RouteError::Literal(format!("[{inside}]"))),
    };
    if !may_connect(address, own, options) {
        return Err(RouteError::OwnAddresses(format!("[{address}]")));
    }
    Ok(Target { host: address.to_string(), address })
}

/// A stranger's DNS must not lead the server to itself, or to what only its own host may reach.
fn may_connect(address: IpAddr, own: &OwnHosts, options: &TargetOptions) -> bool {
    let canonical = address.to_canonical();
    let is_own = own.addresses.contains(&address) || own.addresses.contains(&canonical);
    let is_odd = canonical.is_unspecified()
        || canonical.is_multicast()
        || matches!(canonical, IpAddr::V4(address) if address.is_broadcast());
    let is_loopback = canonical.is_loopback() && !options.allow_loopback;
    let is_private = is_private(canonical) && !options.allow_private;
    !(is_own || is_odd || is_loopback || is_private)
}

/// Whether an address means something else in each network, so that a stranger's DNS has no business with it (RFC 6890).
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) if address.is_loopback() => false,
        IpAddr::V6(address) => {
            let is_local = address.is_unique_local() || address.is_unicast_link_local();
            // Loopback is a matter of its own.
            is_local || embedded(address).is_some_and(|inside| is_private_v4(inside) || inside.is_loopback())
        }
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    address.is_private() || address.is_link_local() || is_shared || first == 0 || first >= 240
}

/// The address of IPv4 that a gateway would make of one of IPv6: NAT64 (RFC 6052), 6to4 (RFC 3056), or the old form `::a.b.c.d`.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match (a, b, [c, d, e, f]) {
        (0x64, 0xff9b, [0, 0, 0, 0]) | (0, 0, [0, 0, 0, 0]) => Some(of(g, h)),
        (0x2002, ..) => Some(of(b, c)),
        _ => None,
    }
}

fn ordered(addresses: &[IpAddr], order: AddressOrder) -> Vec<IpAddr> {
    let of_kind = |is_v6: bool| addresses.iter().copied().filter(move |address| address.is_ipv6() == is_v6);
    let (first, second): (Vec<IpAddr>, Vec<IpAddr>) = match order {
        AddressOrder::V6First => (of_kind(true).collect(), of_kind(false).collect()),
        AddressOrder::V4First => (of_kind(false).collect(), of_kind(true).collect()),
        AddressOrder::V6Only => (of_kind(true).collect(), Vec::new()),
        AddressOrder::V4Only => (of_kind(false).collect(), Vec::new()),
    };
    let mut second = second.into_iter();
    let mut mixed = Vec::with_capacity(addresses.len());
    for address in first {
        mixed.push(address);
        mixed.extend(second.next());
    }
    mixed.extend(second);
    mixed
}
