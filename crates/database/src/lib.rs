//! Databases of JSON documents: revisions, attachments, changes, views, folders, unread marks.
//!
//! A database is a range of keys of the store, so that a server may have a hundred thousand of them.
//! Documents follow CouchDB 3's model: a tree of revisions with a winner that every replica finds,
//! conflicts that are kept until somebody settles them, tombstones, attachments, and a feed of changes.
//!
//! It knows nothing of protocols and nothing of mail.

mod access;
mod adopt;
mod attachment;
mod changes;
mod collation;
mod compact;
mod damage;
mod database;
mod databases;
mod dropped;
mod edit;
mod error;
mod fixup;
mod folder;
#[cfg(test)]
mod formats;
mod guard;
mod head;
mod header;
mod inspect;
mod keys;
mod leaf;
mod local;
mod memory;
mod names;
mod opened;
mod passed_over;
mod properties;
mod query;
mod read;
mod relocate;
mod rows;
mod session;
mod stored_contents;
mod task_state;
mod transfer;
mod unread;
mod update;
mod validation;
mod view;
mod volumes;
mod writer;

pub use access::identity::{GROUPS_MAX, Identity};
pub use access::initial::InitialAccess;
pub use access::list::AccessList;
pub use access::{Access, Level};
pub use attachment::AttachmentReader;
pub use changes::{Change, Changes, ChangesQuery, Since};
#[doc(hidden)]
pub use collation::Collation;
pub use compact::{
    CompactOptions, CompactOrder, CompactStyle, Compacted, DatabaseSizes, Purged, PurgedDocument,
};
pub use database::{Database, DatabaseInfo};
pub use databases::{DatabaseOptions, Databases, NameRange};
pub use edit::{Edit, EditMode, NO_LOCAL_ATTACHMENTS, NewAttachment, new_id};
pub use error::{DatabaseError, InvalidInput, Oversized, Result};
pub use fixup::{Finding, FindingKind, FixupOptions, FixupReport, Outcome, SetAside};
pub use folder::members::{
    FolderChanges, FolderMember, FolderMemberChange, FolderMembers, MAX_MEMBERS_AT_ONCE, Place,
};
pub use folder::{FolderChange, FolderInfo, Placed};
pub use guard::{ClearSecret, Guard, Guarded, Secret, SecretChange, Submission};
pub use inspect::{Inspection, RawRecord};
pub use memory::{DatabaseActivity, DatabaseSpace};
pub use names::{is_mail_file, is_mailbox, validate as validate_name};
pub use properties::Properties;
pub use query::{ExecutionStatistics, Find};
pub use read::{Document, OpenRevision, OpenRevisions, ReadOptions, RevisionsDifference};
pub use relocate::Relocated;
pub use rows::{CategoryQuery, Freshness, Row, RowQuery, Rows};
pub use scrinium_javascript::{Limits as ScriptLimits, PoolOptions as ScriptOptions};
pub use session::{DatabaseContents, DatabaseDescription, DatabaseSession, FolderDescription};
pub use unread::{MAX_PERSON_BYTES, MAX_READERS, Marked, MarkedChange, MarkedChanges, Unread};
pub use update::purge::PurgedLeaves;
pub use update::{MAX_EDITS, Update, Updated};
pub use view::{Reading, ViewUpdate};
pub use volumes::{FIRST_VOLUME, Placement, StillCatalog, VolumeInfo};
