//! The server as its HTTP port shows and commands it.

use std::sync::Arc;

use scrinium_http::{Administration, ConsoleAnswer, Identity};
use scrinium_statistics::{couchdb_stats, prometheus_text};
use serde_json::Value;

use crate::console::{Console, ServerParts};
use crate::ground::Ground;

/// What administrators see of a server, and tell it.
pub(crate) struct Administrated {
    ground: Arc<Ground>,
    console: Console,
}

impl Administrated {
    pub(crate) fn new(ground: &Arc<Ground>) -> Self {
        Self { ground: Arc::clone(ground), console: ground.console() }
    }
}

impl Administration for Administrated {
    fn console(&self, command: &str, by: &Identity) -> Result<ConsoleAnswer, String> {
        tracing::info!(command, by = by.name(), "console");
        let reply = self.console.execute(command).map_err(|error| error.to_string())?;
        Ok(ConsoleAnswer { text: reply.text, data: Some(reply.data) })
    }

    fn statistics(&self) -> Value {
        couchdb_stats(&ServerParts::statistics(self.ground.as_ref()))
    }

    fn prometheus(&self) -> String {
        prometheus_text(&ServerParts::statistics(self.ground.as_ref()))
    }

    fn active_tasks(&self) -> Value {
        ServerParts::tasks(self.ground.as_ref()).active_tasks()
    }
}
