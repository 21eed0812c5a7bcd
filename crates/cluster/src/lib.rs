//! Members that share a log on which an existing engine agrees: who leads, who may write, who may read, and what each applies.
//!
//! A [`Group`] is one member's part in one group: a state machine without a clock, sockets or threads. It hears an [`Input`] with the
//! time, and says by [`Output`]s what is to be done. All decisions between members are one [`Transaction`] of the engine, in
//! etcd's form; no lock, lease or watch of the engine is relied on. Its user makes the calls, applies records to log and
//! store, and takes readers' snapshots.
//!
//! What holds, for whatever order, delay, loss or repetition of calls, and whatever crashes:
//!
//! 1. Each number has one record. A member applies records in order, each after the ones that its writer had.
//! 2. What was answered is applied by every later leader before it writes or answers.
//! 3. In one epoch one member writes. A former leader's entries are refused.
//! 4. A reader of the latest sees all that was answered before it began, as long as clocks run within a tenth of each other; without
//!    leases whatever they do.
//! 5. A submission that was refused is nowhere, and never will be.
//! 6. An engine that loses, repeats, reorders or changes records is named by the chain of digests, or by its revisions, and
//!    what does not fit is not applied.
//!
//! [`simulated`] is an engine in memory, that can also lie; [`history`] checks what clients saw.

#![forbid(unsafe_code)]

mod engine;
mod entry;
mod event;
mod group;
pub mod history;
mod identity;
mod keys;
mod overview;
mod rules;
pub mod simulated;
mod stop;
mod timing;
mod value;

pub use engine::{Compare, Engine, NoAnswer, Operation, Reply, StoredKey, Transaction};
pub use entry::{Entry, EntryError, EntryKind, LARGEST_ENTRY_BYTES, LARGEST_RECORDS_BYTES, MOST_RECORDS};
pub use event::{Control, Freshness, Input, Output, Refusal, Role, SubmissionOutcome};
pub use group::{Group, GroupOptions, MOST_READS, begin};
pub use identity::{CallId, Epoch, Incarnation, MemberId, ReadId, Revision, SubmissionId};
pub use keys::{Keys, LONGEST_NAME, NameError};
pub use overview::{MemberOverview, Overview};
pub use rules::Rules;
pub use stop::StopReason;
pub use timing::{Timing, TimingError};
pub use value::{Leadership, MOST_MEMBERS, Membership, Report, encode_members};
