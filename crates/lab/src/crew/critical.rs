//! The region between `BeginCrit` and `EndCrit`: one user at a time is in it, of all users of the run.
//!
//! The users of one process take turns; the one whose turn it is asks the controller for the region if there
//! are several drivers. So a process never asks for more than one user.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// What a process tells the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Enter,
    Leave,
}

/// One user has the turn: at most a leave, an entry and a leave wait to be sent.
const WAITING: usize = 4;

pub(crate) struct CriticalRegion {
    here: Arc<Semaphore>,
    shared: Option<SharedRegion>,
}

/// The region of several processes, as one of them sees it.
struct SharedRegion {
    ask: mpsc::Sender<Asked>,
    granted: Arc<Semaphore>,
}

/// The user is in the region as long as this lives.
pub(crate) struct InCritical {
    _turn: OwnedSemaphorePermit,
    ask: Option<mpsc::Sender<Asked>>,
}

impl CriticalRegion {
    /// The region of this process alone.
    pub(crate) fn here() -> Self {
        Self { here: Arc::new(Semaphore::new(1)), shared: None }
    }

    /// The region of several processes: what is asked comes out of the receiver, and each entry that the
    /// controller grants is a permit of the semaphore.
    pub(crate) fn shared() -> (Self, mpsc::Receiver<Asked>, Arc<Semaphore>) {
        let (ask, asked) = mpsc::channel(WAITING);
        let granted = Arc::new(Semaphore::new(0));
        let shared = Some(SharedRegion { ask, granted: Arc::clone(&granted) });
        (Self { here: Arc::new(Semaphore::new(1)), shared }, asked, granted)
    }

    /// Waits until nobody else is in the region. `None` when the run is over.
    pub(crate) async fn enter(&self) -> Option<InCritical> {
        let turn = Arc::clone(&self.here).acquire_owned().await.ok()?;
        let Some(shared) = &self.shared else { return Some(InCritical { _turn: turn, ask: None }) };
        shared.ask.send(Asked::Enter).await.ok()?;
        let inside = InCritical { _turn: turn, ask: Some(shared.ask.clone()) };
        shared.granted.acquire().await.ok()?.forget();
        Some(inside)
    }
}

impl Drop for InCritical {
    fn drop(&mut self) {
        if let Some(ask) = &self.ask {
            // There is room, since this process asks for one user at a time.
            let _ = ask.try_send(Asked::Leave);
        }
    }
}
