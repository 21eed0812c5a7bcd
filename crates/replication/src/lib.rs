//! Replication of databases by CouchDB's protocol.
//!
//! [`Replication`] moves what one end has and the other has not. An [`End`] is a database: of this server ([`LocalEnd`]), with
//! what a person may do there, or of another one ([`RemoteEnd`]), over HTTP. No end has to be CouchDB: any server that speaks
//! its protocol is an end. [`Replicator`] carries out what was ordered ([`Order`]), by `_replicate` or by documents of
//! the database `_replicator`, tries again what failed, and shows all of it.
//!
//! What does not wait for anybody costs nothing: a continuous replication at rest is a task that waits for a change of
//! its source.

mod checkpoint;
mod content;
mod count;
mod document;
mod end;
mod engine;
mod error;
mod filter;
mod follow;
mod job;
mod local;
mod name;
mod order;
mod remote;
mod replicator;
mod schedule;
mod secret;
mod settle;
mod transfer;

pub use checkpoint::{History, Session};
pub use count::{Counts, Place};
pub use document::{SourceDocument, Stub};
pub use end::{
    AttachmentPlace, Change, ChangesPage, ChangesRequest, ContentStream, End, EndInfo, IncomingAttachment,
    Missing, Refusal, Work,
};
pub use engine::{Ended, EngineOptions, Replication, Turns};
pub use error::{ErrorKind, ReplicationError, Result};
pub use filter::Filter;
pub use follow::prepare_document;
pub use job::{BackOff, Job, JobState, JobStatus};
pub use local::{LocalEnd, People};
pub use order::{EndOrder, Order};
pub use remote::{AddressRules, RemoteEnd, RemoteOptions, Transport};
pub use replicator::{Replicator, ReplicatorOptions};
pub use schedule::{Priority, Schedule};
pub use scrinium_catalog::REPLICATOR_DATABASE;
pub use secret::merged as merged_secret;
pub use settle::{SettleRule, settle};
