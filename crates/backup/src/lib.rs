//! Backups of a server: made while it runs, kept in a repository, verified, pruned, restored.
//!
//! A backup is a checkpoint of the store's files with what else lies in the data folder. In the repository
//! each file is kept once, so that a backup costs what changed since the one before:
//!
//! ```text
//! repository.json      what this is, and its format
//! repository.lock      locked while a backup is made or pruned; shared by those who read
//! backups/ID.json      one for each backup, written last: without it there is no backup (see `manifest`)
//! backups/ID.age       the rest of it, where backups are encrypted
//! files/ab/abcd...     files, named by their print (see `plan`)
//! ```
//!
//! Backups that are encrypted (see `age`, `protection`) can be made, looked at and let go without the private key: what
//! is left readable is in `manifest`.
//!
//! A backup stands for the store as it was when it was made. With the log's archive, restoring continues from there
//! to any record, or any moment.

mod age;
mod aligned;
mod attachments;
mod create;
mod digests;
mod error;
mod local;
mod manifest;
mod pace;
mod place;
mod plan;
mod protection;
mod prune;
mod remote;
mod repository;
mod restore;
mod sealed;
mod stream;
mod target;
mod verify;
mod verify_objects;

pub use age::{CipherError, Identities, Identity, KeyError, Recipient};
pub use attachments::{Moment, ObjectLister};
pub use create::{Created, Source, Stores, WhileStill, create};
pub use error::BackupError;
pub use manifest::{FileEntry, Manifest, ObjectsEntry, StoredEntry, VolumeEntry};
pub use pace::{Progress, Quiet};
pub use protection::{Protection, read_identities};
pub use prune::{Pruned, prune, prune_archive};
pub use repository::{Listed, Repository};
pub use restore::{Order, RESTORING, Restored, restore};
pub use scrinium_store::RESTORED_VOLUME;
pub use target::Target;
pub use verify::{Verified, verify, verify_archive};
pub use verify_objects::verify_objects;
