//! Attempts: somebody finds the way, connects, and sends.

mod connection;
mod network;
mod outcomes;
mod text;

use scrinium_mail_queue::route::{RouteError, Target, Transport};
use scrinium_mail_queue::{
    AttemptId, ConnectionId, ConnectionUse, Destination, Effect, Network, Outcome, QueueEntry,
};
use scrinium_smtp_wire::Domain;
use std::sync::Arc;
use tokio::sync::oneshot;

use crate::orders::{ChosenEntries, OrderReply};

pub use network::{NetworkCourier, NetworkOptions, Secrets};
pub use text::TextSource;

/// Makes attempts. It must not wait: an [`Event`] says what became of an attempt.
pub trait Courier: Send + Sync + 'static {
    /// Finds the hosts of a destination; answered by [`Event::Way`].
    fn find_way(&self, job: WayJob);
    /// Sends a message; answered by [`Event::Ended`].
    fn send(&self, job: SendJob);
    /// Closes a connection that is idle.
    fn close(&self, connection: ConnectionId);
}

/// A way that is to be found.
#[derive(Clone, Debug)]
pub struct WayJob {
    /// For this attempt.
    pub attempt: AttemptId,
    /// The recipients' domain.
    pub domain: Domain,
    /// What the rules say.
    pub transport: Transport,
    /// What shares the connection.
    pub destination: Arc<Destination>,
}

/// A way: addresses in the order in which they are tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// At least one.
    pub targets: Vec<Target>,
}

/// A message that is to be sent.
pub struct SendJob {
    /// The attempt.
    pub attempt: AttemptId,
    /// The entry, with the attempt written down.
    pub entry: QueueEntry,
    /// What the rules say.
    pub transport: Transport,
    /// Where to; `None` where a connection is to be used.
    pub way: Option<Way>,
    /// An open connection.
    pub connection: Option<ConnectionId>,
    /// The message.
    pub text: TextSource,
}

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptReport {
    /// For each recipient, by place. Who is not among them is tried again.
    pub outcomes: Vec<(u32, Outcome)>,
    /// What the destination's concurrency learns.
    pub effect: Effect,
    /// What becomes of the connection.
    pub connection: ConnectionUse,
}

/// A question for a place at another network, in the middle of an attempt.
#[derive(Debug)]
pub struct Claim {
    /// The attempt.
    pub attempt: AttemptId,
    /// The network.
    pub network: Network,
    /// Whether there is one. If not, the attempt is over.
    pub reply: oneshot::Sender<bool>,
}

/// What happened.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Event {
    /// A way was found, or none.
    Way { attempt: AttemptId, way: Result<Way, RouteError> },
    /// A place at another network is asked for.
    Claim(Claim),
    /// A server has greeted.
    Connected(AttemptId),
    /// An attempt is over.
    Ended { attempt: AttemptId, report: AttemptReport },
    /// A connection that was idle is gone.
    Lost(ConnectionId),
    /// An administrator's order.
    Order { order: ChosenEntries, reply: OrderReply },
}

impl Event {
    /// An order for entries, and where its answer comes.
    #[must_use]
    pub fn order(
        ids: Vec<Arc<str>>,
        command: scrinium_mail_queue::show::QueueCommand,
        by: &str,
    ) -> (Self, oneshot::Receiver<crate::Ordered>) {
        let (reply, answer) = oneshot::channel();
        (Self::Order { order: ChosenEntries { ids, command, by: by.to_owned() }, reply }, answer)
    }
}
