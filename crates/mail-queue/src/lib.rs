//! The queue of outgoing mail: what waits, where it goes, when it is tried, and what its sender hears of it.
//!
//! A message is [split](NewMessage::split) by destination into [`QueueEntry`]s, which change by [`Record`]s alone. A record
//! is written before the effect that it announces, so that after a crash [`rebuild`] gives the state again and
//! [`QueueEntry::step`] says what comes next. The [`Scheduler`] chooses among entries that are due; it holds a bounded
//! window of them and asks a [`DueIndex`] for more. [`route`] says where a message goes, [`outcome`] what an answer means,
//! [`report`] writes and reads delivery reports, [`show`] puts all of it into words.
//!
//! *Invariant*: pure: no sockets, storage or clock; times are milliseconds since 1970 in UTC and come with the call, chance
//! comes from a seed. A recipient's end is recorded once, each notice has one id, and nobody is notified of a notice.

#![forbid(unsafe_code)]

mod due;
mod encoded;
mod entry;
mod message;
mod notice;
pub mod outcome;
mod policy;
mod random;
mod record;
pub mod report;
pub mod route;
mod scheduler;
pub mod show;
mod verp;

pub use due::{DueIndex, DueRow, Lane, MemoryDueIndex, SenderLane};
pub use entry::{
    AttemptMark, ENTRY_RECIPIENTS_MAX, HoldMark, Queue, QueueEntry, Recipient, RecipientState, Step,
};
pub use message::{
    Destination, Envelope, ID_MAX_BYTES, Language, MESSAGE_RECIPIENTS_MAX, NewMessage, NewRecipient,
    Priority, ReleaseError, SplitError, Transaction, release_time_ms,
};
pub use notice::{NoticeKind, NoticePlan};
pub use outcome::{Cause, Ending, Outcome};
pub use policy::QueuePolicy;
pub use random::Random;
pub use record::{
    Change, RECORD_MAX_BYTES, RebuildError, RecipientOutcome, Record, RecordError, rebuild, rebuild_queue,
};
pub use scheduler::{
    AttemptId, Concurrency, ConnectionId, ConnectionUse, DestinationStatus, Dispatch, Effect, Network,
    Scheduler, SchedulerOptions,
};
pub use verp::{verp_decode, verp_encode};
