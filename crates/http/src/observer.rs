//! What a part of the server that keeps a record learns of requests: how long each operation took, and who used which
//! database how much.

use std::sync::Arc;
use std::time::Duration;

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
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) database: String,
    pub(crate) person: Option<Arc<str>>,
    pub(crate) writes: bool,
    /// Whether it is reported at all.
    pub(crate) counts: bool,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
}

impl Drop for Usage {
    fn drop(&mut self) {
        if self.counts {
            self.observer.used(&Used {
                database: &self.database,
                person: self.person.as_deref(),
                writes: self.writes,
                received_bytes: self.received_bytes,
                sent_bytes: self.sent_bytes,
            });
        }
    }
}
