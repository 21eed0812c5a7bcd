//! How many files the process may have open, and who gets how many of them: the stores, connections, and the rest.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files of the process besides those of stores and connections: the log, ports, pipes, a backup, and files that are open
/// for a moment.
const RESERVE: u64 = 64;

/// The fewest files that the stores can work with together, and the most that are of use.
const STORES_LEAST: u64 = 64;
const STORES_MOST: u64 = 4096;

/// Fewer connections than this are no server.
const CONNECTIONS_LEAST: u64 = 8;

/// Who gets how many files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileShares {
    /// Of each store.
    pub(crate) each_store: u32,
    /// Connections of all ports together.
    pub(crate) connections: usize,
}

/// Raises the limit as far as the system lets this process, and says what it is then.
pub(crate) fn raise() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // A system that refuses what it allows leaves the limit as it was.
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
            tracing::warn!(%error, "the limit of open files could not be raised");
        }
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Divides `limit` between `stores` and no more than `connections`.
pub(crate) fn divide(limit: u64, stores: usize, connections: usize) -> FileShares {
    let stores = u64::try_from(stores).unwrap_or(u64::MAX).max(1);
    let for_stores = (limit / 2).clamp(STORES_LEAST, STORES_MOST.saturating_mul(stores));
    let each_store = (for_stores / stores).clamp(16, STORES_MOST);
    let left = limit.saturating_sub(each_store.saturating_mul(stores)).saturating_sub(RESERVE);
    let left = usize::try_from(left.max(CONNECTIONS_LEAST)).unwrap_or(usize::MAX);
    FileShares {
        each_store: u32::try_from(each_store).unwrap_or(u32::MAX),
        connections: left.min(connections),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stores_and_connections_get_stays_within_the_limit() {
        for limit in [256, 1024, 4096, 65_536, 1 << 20, u64::MAX] {
            for stores in 1..4_usize {
                let FileShares { each_store, connections } = divide(limit, stores, 20_000);
                let all = u64::from(each_store) * stores as u64 + connections as u64 + RESERVE;
                assert!(all <= limit, "{limit} {stores}: {each_store} and {connections}");
                assert!(connections >= 60, "{limit} {stores}: {connections}");
            }
        }
        assert_eq!(divide(1 << 20, 1, 20_000).connections, 20_000);
        assert!(divide(64, 1, 20_000).connections >= 8, "less than is needed: it tries");
    }
}
