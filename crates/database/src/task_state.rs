//! How far tasks of the server have come in a database: out of reach of the one who writes documents.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use scrinium_store::{Batch, Family};

use crate::database::Database;
use crate::error::Result;
use crate::keys;

impl Database {
    /// What a task has kept here, if it has kept anything.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn task_state(&self, task: &str) -> Result<Option<Bytes>> {
        self.check_there()?;
        let stored = self.store().get(Family::Point, &keys::task_state(self.number(), task))?;
        Ok(stored.map(|stored| Bytes::copy_from_slice(&stored)))
    }

    /// Keeps what a task has to remember in the place of what it kept before; durable when this returns.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn set_task_state(self: &Arc<Self>, task: &str, state: &[u8]) -> Result<()> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.set_task_state(task, state),
        };
        let mut batch = Batch::new();
        batch.put(Family::Point, &keys::task_state(self.number(), task), state);
        let writer = self.lock_writer(self.ahead.load(Ordering::Acquire))?;
        let commit = self.submit(&writer, batch, (), |_| {})?;
        drop(writer);
        Ok(commit.wait()?)
    }
}
