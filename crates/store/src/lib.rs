//! Ordered keys and bytes: atomic batches through the transaction log into RocksDB.
//!
//! A [`Batch`] of changes to logged families is written to the log, synced together with all others that
//! wait, applied to the tree, and only then answered. The tree itself writes no log: what it has reached
//! is recorded in it with every change, and after a crash the log is read from there. Derived families skip
//! the log; what they hold can be rebuilt from the others.
//!
//! It knows nothing of documents, and no other crate knows that there is a RocksDB.

mod account;
mod applier;
mod batch;
mod budget;
mod commit;
mod cursor;
mod error;
mod family;
mod figures;
mod folder;
mod health;
mod ingest;
mod keeper;
mod memory;
mod options;
mod pool;
mod progress;
mod purpose;
mod slice;
mod snapshot;
mod store;
mod syncs;
mod tree;
mod tuning;

pub use account::Usage;
pub use batch::{Batch, Operation, Operations};
pub use commit::Commit;
pub use cursor::{Cursor, Entry};
pub use error::StoreError;
pub use family::Family;
pub use ingest::SortedFiles;
pub use memory::available_bytes;
pub use options::{Direction, KeyRange, MAX_BATCH_BYTES, ScanOptions, StoreOptions, prefix_end};
pub use purpose::{Purpose, Reservation};
pub use slice::Slice;
pub use snapshot::Snapshot;
pub use store::Store;
