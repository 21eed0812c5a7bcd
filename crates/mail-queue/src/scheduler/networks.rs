//! Connections to each network: many domains have their mail with one host.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use crate::message::Destination;

/// The network of an address: 24 bits of IPv4, 48 of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network(u128);

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            // As an address of IPv6 (RFC 4291, section 2.5.5.2), so that the two never meet.
            IpAddr::V4(address) => Self(address.to_ipv6_mapped().to_bits() >> 8 << 8),
            IpAddr::V6(address) => Self(address.to_bits() >> 80 << 80),
        }
    }
}

#[derive(Debug, Default)]
struct NetworkUse {
    open: usize,
    waiting: VecDeque<Arc<Destination>>,
    /// The same, to be looked up: thousands of domains may have their mail with one host.
    waits: HashSet<Arc<Destination>>,
}

#[derive(Debug)]
pub(super) struct Networks {
    most: usize,
    networks: HashMap<Network, NetworkUse>,
}

impl Networks {
    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(1), networks: HashMap::new() }
    }

    /// Claims a place, or remembers that the destination waits for one.
    pub(super) fn claim(&mut self, network: Network, destination: &Arc<Destination>) -> bool {
        let used = self.networks.entry(network).or_default();
        let is_free = used.open < self.most;
        if is_free {
            used.open += 1;
        } else if used.waits.insert(Arc::clone(destination)) {
            used.waiting.push_back(Arc::clone(destination));
        }
        is_free
    }

    /// Frees a place, and gives the destination that waits longest for one.
    pub(super) fn release(&mut self, network: Network) -> Option<Arc<Destination>> {
        let used = self.networks.get_mut(&network)?;
        used.open = used.open.saturating_sub(1);
        let next = used.waiting.pop_front();
        if let Some(next) = &next {
            used.waits.remove(next);
        }
        if used.open == 0 && used.waiting.is_empty() {
            self.networks.remove(&network);
        }
        next
    }
}
