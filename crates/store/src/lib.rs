//! Ordered keys and bytes: atomic batches through the transaction log into RocksDB.
//!
//! A [`Batch`] of changes to logged families is written to the log, synced together with all others that
//! wait, applied to the tree, and only then answered. The tree itself writes no log: what it has reached
//! is recorded in it with every change, and after a crash the log is read from there. Derived families skip
//! the log; what they hold can be rebuilt from the others. So does a batch that is to stay out of the log: it is
//! answered when the tree's files hold it.
//!
//! It knows nothing of documents, and no other crate knows that there is a RocksDB.

mod account;
mod admin;
mod applier;
mod archiving;
mod backup;
mod batch;
mod budget;
mod commit;
mod compact;
mod cursor;
mod damage;
mod derived;
mod error;
mod family;
mod figures;
mod folder;
mod formats;
mod freeze;
mod health;
mod ingest;
mod io;
mod keeper;
mod manifest;
mod memory;
mod options;
mod pool;
mod progress;
mod purpose;
mod raw;
mod redo;
mod returning;
mod rewrite;
mod roll_forward;
mod salvage;
mod scheduling;
mod slice;
mod snapshot;
mod store;
mod style;
mod syncs;
mod tolerant;
mod touched;
mod tree;
mod tuning;

pub use account::Usage;
pub use admin::Admin;
pub use backup::BackupPoint;
pub use batch::{Batch, Operation, Operations};
pub use commit::Commit;
pub use compact::{BlobFigures, CompactSlice, Compression, Room};
pub use cursor::{Cursor, Entry};
pub use damage::DamagedFile;
pub use derived::Derived;
pub use error::StoreError;
pub use family::Family;
pub use folder::RESTORED_VOLUME;
pub use formats::{FoundFormat, StoreFormats, look_at_formats};
pub use freeze::{Freeze, FreezeOptions};
pub use ingest::SortedFiles;
pub use io::{IoClass, IoLimits};
pub use memory::available_bytes;
pub use options::{Direction, KeyRange, LogArchive, MAX_BATCH_BYTES, ScanOptions, StoreOptions, prefix_end};
pub use purpose::{Purpose, Reservation};
pub use raw::RawStore;
pub use rewrite::Rewritten;
pub use roll_forward::{Reached, roll_forward};
pub use salvage::{Plan, plan_salvage, salvage, survey_log};
pub use scheduling::{come_after_others, come_before_others};
pub use scrinium_log::{
    ArchivedGroup, ArchivedLog, Damage, FailureEpoch, LogError, Missing, Segment, Sequence, Surveyed,
};
pub use slice::Slice;
pub use snapshot::Snapshot;
pub use store::Store;
pub use style::{Durability, LogFavor, LogStyle};
pub use tolerant::{Gap, ScanStep, TolerantScan};
pub use touched::{KeyWatch, TouchedKeys};
