//! Descriptions of databases and folders as wholes, for those who may see them.

use scrinium_database::{DatabaseSizes, FolderKind, SpecialUse};
use serde_json::Value;

/// What somebody may know of a database as a whole.
#[derive(Clone, Debug)]
pub struct DatabaseDescription {
    /// Its name.
    pub name: String,
    /// 32 hexadecimal digits, another when a database of the same name is made again.
    pub uuid: String,
    /// The last change, as it goes over the wire.
    pub update_sequence: String,
    /// What it holds; `None` for those who do not see all documents.
    pub contents: Option<DatabaseContents>,
    /// When it was made, in microseconds since 1970.
    pub instance_start_time_us: u64,
    /// How many revisions a branch keeps.
    pub revision_limit: u64,
    /// The name of the volume that it is on.
    pub volume: String,
}

/// What a database holds.
#[derive(Clone, Debug)]
pub struct DatabaseContents {
    /// Documents that are there.
    pub document_count: u64,
    /// Documents of which only a tombstone is left.
    pub deleted_count: u64,
    /// Tombstones that were purged.
    pub purged_count: u64,
    /// How large it is.
    pub sizes: DatabaseSizes,
}

/// What somebody may know of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderDescription {
    /// Its name, as it was given.
    pub name: String,
    /// Changes when uids of an earlier folder of this name say nothing any more.
    pub uid_validity: u32,
    /// The uid of the next document that is added.
    pub next_uid: u64,
    /// The last change of what is in it, as it goes over the wire.
    pub update_sequence: String,
    /// Documents that are in it; `None` for those who do not see all documents.
    pub total: Option<u64>,
    /// Those of them that the person has not read; `None` where nobody asks, or as for `total`.
    pub unread: Option<u64>,
    /// Its columns, as in a view's definition.
    pub columns: Value,
    /// What its documents are.
    pub kind: FolderKind,
    /// What a mail client does with it.
    pub special_use: Option<SpecialUse>,
    /// For how many days it keeps its documents, 0 for ever; `None`: it does not say.
    pub keep_days: Option<u32>,
}
