//! What a part of the server that keeps a record learns of requests: how long each operation took, and who used which
//! database how much.

use std::sync::Arc;
use std::time::Duration;

use crate::context::Context;
use crate::state::HttpState;

/// Told of requests while they are answered; it must not wait.
pub trait Observer: Send + Sync + 'static {
    /// An operation has ended, well or not.
    fn operated(&self, operated: &Operated<'_>);

    /// A request on a database was answered, and its answer taken by the client or given up.
    fn used(&self, used: &Used<'_>);
}

/// One operation of a request.
#[derive(Clone, Copy, Debug)]
pub struct Operated<'r> {
    /// Its name in `show transactions`.
    pub operation: &'static str,
    /// The database.
    pub database: &'r str,
    /// Who asked; `None`: somebody without a name.
    pub person: Option<&'r str>,
    /// From its beginning, which may be before the whole body has arrived, to the head of the answer.
    pub elapsed: Duration,
    /// Of this, the wait for a place in the worker pool.
    pub waited: Duration,
}

/// What one request has used.
#[derive(Clone, Copy, Debug)]
pub struct Used<'r> {
    /// The database.
    pub database: &'r str,
    /// Who asked; `None`: somebody without a name.
    pub person: Option<&'r str>,
    /// Whether it was to change something.
    pub writes: bool,
    /// Bytes of the request's body.
    pub received_bytes: u64,
    /// Bytes of the answer's body that were sent, before any encryption.
    pub sent_bytes: u64,
}

/// Adds up what a request uses, and tells it when it is dropped.
pub(crate) struct Usage {
    state: HttpState,
    database: String,
    person: Option<Arc<str>>,
    writes: bool,
    /// Whether it is reported at all.
    pub(crate) counts: bool,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
}

impl Usage {
    /// `None`: nobody wants to know, or it is no request on a database.
    pub(crate) fn of(context: &Context) -> Option<Box<Self>> {
        context.state.observer()?;
        Some(Box::new(Self {
            state: context.state.clone(),
            database: context.address.get("db")?.to_owned(),
            person: context.identity.shared_name(),
            writes: context.entry.writes,
            counts: false,
            received_bytes: 0,
            sent_bytes: 0,
        }))
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        if let Some(observer) = self.state.observer().filter(|_| self.counts) {
            observer.used(&Used {
                database: &self.database,
                person: self.person.as_deref(),
                writes: self.writes,
                received_bytes: self.received_bytes,
                sent_bytes: self.sent_bytes,
            });
        }
    }
}
