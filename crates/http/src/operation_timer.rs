//! How long the operation of a request takes.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::observer::Operated;
use crate::operations::Operation;

/// Measures from its making until it is dropped; records, and tells the observer, what the request was by then.
pub(crate) struct OperationTimer<'r> {
    context: &'r Context,
    started: Instant,
}

impl<'r> OperationTimer<'r> {
    pub(crate) fn start(context: &'r Context) -> Self {
        Self { context, started: Instant::now() }
    }
}

impl Drop for OperationTimer<'_> {
    fn drop(&mut self) {
        let operation = self.context.operation();
        if operation == Operation::Other {
            return;
        }
        let (state, elapsed) = (&self.context.state, self.started.elapsed());
        state.operations.record(operation, elapsed);
        if let Some(observer) = state.observer() {
            observer.operated(&Operated {
                operation: operation.name(),
                database: self.context.database_name(),
                person: self.context.identity.name(),
                elapsed,
                waited: Duration::from_micros(self.context.waited_us.load(Ordering::Relaxed)),
            });
        }
    }
}
