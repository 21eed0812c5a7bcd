//! The server's transaction log: records become durable here before anyone learns of it.
//!
//! Records go into preallocated files of fixed size, the *extents*, in groups: all records that wait are
//! written with one write and made durable with one sync, then applied in order, then answered. The log
//! does not know what a record means.
//!
//! - [`Log`] is the opened directory with its single writer: append, read, release.
//! - [`Committer`] owns a [`Log`] on its thread and joins what many threads or tasks submit.
//! - [`Survey`] reads a log that cannot be opened: what is damaged, and what can still be read.
//! - [`system::System`] is the seam below: what the log takes from the operating system.
//!
//! What holds, whatever happens:
//!
//! 1. A record that was acknowledged, or that was read after an opening, is on the device: in the log, or,
//!    if it was to stay out of the log, where its applier has made it durable.
//! 2. Records are numbered without gaps; a group is there as a whole or not at all.
//! 3. At most one group is not yet synced. So bytes that are not what was written are either that group, at
//!    the very end, which is cut; or damage, which is an error that names the place.
//! 4. A failed write or sync is never repeated; the log takes nothing more until it is reopened. A full
//!    disk is no failure: extents are made whole before they are used, so nothing can be lost by it.
//!
//! Where several servers [agree](Agree) on records, a group is agreed on first, then written, synced, applied and answered; a
//! [`Chain`] of digests over all records shows whether two logs are the same.
//!
//! `FORMAT.md` next to this crate's sources describes every byte on disk.

mod agree;
mod apply;
mod archive;
mod buffer;
mod chain;
mod committer;
mod control;
mod error;
mod extent;
mod frame;
mod group;
mod keeper;
mod log;
mod measures;
mod options;
mod reader;
mod recovery;
mod survey;
pub mod system;
mod walk;
mod writer;

pub use agree::{Agree, NotAgreed};
pub use apply::{Apply, FailureEpoch};
pub use archive::folder::{ArchivedGroup, ArchivedGroups, ArchivedLog, Segment, mark_break};
pub use archive::{Archive, ArchiveStatus};
pub use chain::Chain;
pub use committer::Committer;
pub use control::format_of;
pub use error::{Cause, LogError};
pub use group::Commit;
pub use log::{Log, Recovery, Sequence, TornTail};
pub use options::{DirectIo, LogOptions};
pub use reader::{Reader, Record};
pub use survey::{Damage, Frame, Missing, Survey, Surveyed};
