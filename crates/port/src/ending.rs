//! The server's end, as those learn of it who have something under way.

use tokio::sync::{mpsc, watch};

/// What a connection needs to know of the server's end.
#[derive(Clone)]
pub struct Ending {
    /// True: finish what is under way.
    pub stopping: watch::Receiver<bool>,
    /// True: drop what is still under way.
    pub aborting: watch::Receiver<bool>,
    /// Dropped with the connection, so that the server knows when the last has gone.
    _alive: mpsc::Sender<()>,
}

impl Ending {
    pub(crate) const fn new(
        stopping: watch::Receiver<bool>,
        aborting: watch::Receiver<bool>,
        alive: mpsc::Sender<()>,
    ) -> Self {
        Self { stopping, aborting, _alive: alive }
    }
}

/// Completes when `signal` is true, or nobody can make it so any more.
pub async fn raised(signal: &mut watch::Receiver<bool>) {
    // The guard that it gives may not be held across a wait.
    drop(signal.wait_for(|raised| *raised).await);
}
