//! The end of the server: asked for by a signal or by the program, seen by everybody.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Exit code of a process that was told twice to stop: as a shell tells of SIGINT.
const TOLD_TWICE: i32 = 130;

/// Whether the server is to stop. Clones share it.
#[derive(Clone, Debug)]
pub struct Shutdown {
    requested: Arc<watch::Sender<bool>>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { requested: Arc::new(watch::Sender::new(false)) }
    }
}

impl Shutdown {
    /// Asks the server to stop. Asking twice is asking once.
    pub fn request(&self) {
        self.requested.send_replace(true);
    }

    /// Whether it is to stop.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *self.requested.borrow()
    }

    /// Waits until it is to stop.
    pub async fn wait(&self) {
        // The sender lives as long as this, so waiting ends by the request only.
        drop(self.requested.subscribe().wait_for(|requested| *requested).await);
    }

    /// From now on SIGTERM and SIGINT ask the server to stop. A second one ends the process at once, which
    /// loses nothing that was acknowledged. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// If the system does not let us listen to signals.
    pub fn on_signals(&self) -> io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let shutdown = self.clone();
        tokio::spawn(async move {
            loop {
                let name = tokio::select! {
                    _ = terminate.recv() => "SIGTERM",
                    _ = interrupt.recv() => "SIGINT",
                };
                if shutdown.is_requested() {
                    tracing::warn!(signal = name, "asked to stop a second time: ending at once");
                    std::process::exit(TOLD_TWICE);
                }
                tracing::info!(signal = name, "stopping");
                shutdown.request();
            }
        });
        Ok(())
    }
}
