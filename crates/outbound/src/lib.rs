//! Mail that leaves: the queue of outgoing mail on the disk, when which message is tried, and SMTP to other servers.
//!
//! The queue's entries are documents of `smtp.box` ([`scrinium_mail::OutgoingQueue`]). An [`Outbound`] follows their changes in an
//! index by due time (`index`), asks the [`Scheduler`](scrinium_mail_queue::Scheduler) what comes next, writes that an attempt
//! begins, has a [`Courier`] make it, and writes how it ended; all of it in rounds, whose records share the log's syncs. What
//! senders must hear is put into a mail.box under an id of its own.
//!
//! *Invariant*: a record precedes its effect; each notice comes once; what waits takes no memory; no thread waits for a
//! stranger, and what a stranger says is bounded and escaped before anybody reads it.

mod courier;
mod index;
mod manager;
mod orders;
mod questions;
mod resolve;
mod rules;
mod running;
mod signing;
mod sts;
mod tls;

pub use courier::{
    AttemptReport, Claim, Courier, Event, NetworkCourier, NetworkOptions, Secrets, SendJob, TextSource, Way,
    WayJob,
};
pub use index::{DiskDueIndex, IndexedEntry, Position};
pub use manager::{ManagerOptions, QueueManager, RoundReport, Told};
pub use orders::{Ordered, QueueOrder, QueueReport, queue_report};
pub use questions::ServiceAnswer;
pub use resolve::{Dns, DnsSetupError};
pub use rules::{RuleFileError, read_rewrites, read_transports};
pub use running::{Outbound, OutboundControls, OutboundHandle};
pub use signing::{KeyFolder, KeyKeeper, PublishedKey, Signing};
pub use sts::{POLICY_PORT, StsPolicies};
pub use tls::{TlsClient, TlsSetupError};
