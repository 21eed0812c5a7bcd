//! What a protocol's ports count.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use scrinium_statistics::{Counter, Registry};

/// The counters of one protocol's ports. Clones share them.
#[derive(Clone)]
pub struct PortCounters {
    /// Connections that were accepted.
    pub(crate) accepted: Counter,
    /// Of these, those that greeted by TLS.
    pub(crate) greetings: Counter,
    /// Connections that were closed at once, since their network had as many busy ones as it may.
    pub(crate) refused: Counter,
    /// Connections that the system could not give us.
    pub(crate) unaccepted: Counter,
    open: Arc<AtomicU64>,
}

impl PortCounters {
    /// Registers `PROTOCOL.Connections`, `.Handshakes`, `.Connections.Refused` and `.Connections.Failed`. `open` counts the
    /// connections that are open, of this protocol and of all others that share it.
    #[must_use]
    pub fn register(registry: &Registry, protocol: &str, open: Arc<AtomicU64>) -> Self {
        Self {
            accepted: registry.counter(&format!("{protocol}.Connections")),
            greetings: registry.counter(&format!("{protocol}.Handshakes")),
            refused: registry.counter(&format!("{protocol}.Connections.Refused")),
            unaccepted: registry.counter(&format!("{protocol}.Connections.Failed")),
            open,
        }
    }

    /// What counts the connections that are open, for other protocols to share.
    #[must_use]
    pub fn open_connections(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.open)
    }

    /// Counts a connection until what it returns is dropped.
    pub(crate) fn open(&self) -> OpenConnection {
        self.accepted.add(1);
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(&self.open))
    }
}

pub(crate) struct OpenConnection(Arc<AtomicU64>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
