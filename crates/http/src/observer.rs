//! What a part of the server that keeps a record learns of requests: how long each operation took, and who used which
//! database how much.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use http::Method;
use scrinium_statistics::{Operation, Registry};

use crate::context::Context;
use crate::router::{Special, Target};
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
    /// From its beginning, which may be before the whole body has come, to the head of the answer.
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

/// An operation with the name that `show transactions` prints.
#[derive(Clone)]
pub(crate) struct NamedOperation {
    name: &'static str,
    operation: Operation,
}

impl NamedOperation {
    pub(crate) fn register(registry: &Registry, name: &'static str) -> Self {
        Self { name, operation: registry.operation(name) }
    }

    /// Starts a timer that records, and tells the observer, when it is dropped.
    pub(crate) fn start<'r>(&self, context: &'r Context, database: &'r str) -> OperationTimer<'r> {
        OperationTimer { operation: self.clone(), context, database, started: Instant::now() }
    }
}

/// Measures from its making until it is dropped.
pub(crate) struct OperationTimer<'r> {
    operation: NamedOperation,
    context: &'r Context,
    database: &'r str,
    started: Instant,
}

impl Drop for OperationTimer<'_> {
    fn drop(&mut self) {
        let elapsed = self.started.elapsed();
        self.operation.operation.record(elapsed);
        if let Some(observer) = self.context.state.observer() {
            observer.operated(&Operated {
                operation: self.operation.name,
                database: self.database,
                person: self.context.identity.name(),
                elapsed,
                waited: Duration::from_micros(self.context.waited_us.load(Ordering::Relaxed)),
            });
        }
    }
}

/// Adds up what a request uses, and tells it when it is dropped.
pub(crate) struct Usage {
    state: HttpState,
    database: String,
    person: Option<Arc<str>>,
    writes: bool,
    /// Whether it is told at all.
    pub(crate) counts: bool,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
}

impl Usage {
    /// `None`: nobody wants to know, or it is no request on a database.
    pub(crate) fn of(context: &Context, target: &Target<'_>) -> Option<Box<Self>> {
        context.state.observer()?;
        Some(Box::new(Self {
            state: context.state.clone(),
            database: target.database()?.to_owned(),
            person: context.identity.shared_name(),
            writes: writes(&context.method, target),
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

/// Whether a request is to change something. Some ask by POST, for want of room in an address.
fn writes(method: &Method, target: &Target<'_>) -> bool {
    let asks = match target {
        Target::View { .. } => true,
        Target::Special(_, special) => matches!(
            special,
            Special::AllDocuments { .. }
                | Special::DesignDocuments { .. }
                | Special::LocalDocuments { .. }
                | Special::BulkGet
                | Special::RevisionsDifference
                | Special::MissingRevisions
                | Special::Changes
                | Special::Find
                | Special::Explain
        ),
        _ => false,
    };
    *method != Method::GET && !asks
}
