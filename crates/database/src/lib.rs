//! Databases of JSON documents: revisions, attachments, changes, folders, unread marks.
//!
//! A database is a range of keys of the store, so that a server may have a hundred thousand of them.
//! Documents follow CouchDB 3's model: a tree of revisions with a winner that every replica finds,
//! conflicts that are kept until somebody settles them, tombstones, attachments, and a feed of changes.
//!
//! It knows nothing of protocols and nothing of mail.

pub mod access;
mod attachment;
mod changed;
mod changes;
pub mod collation;
pub mod compaction_record;
pub mod conflict_counts;
pub mod context;
mod damage;
mod database;
mod deletion;
mod designs;
mod edit;
mod edit_mode;
mod error;
pub mod figures;
mod flags;
mod flags_field;
pub mod folder;
mod guard;
pub mod head;
pub mod header;
pub mod history;
pub mod hold;
pub mod keys;
pub mod leaf;
pub mod local;
mod named;
pub mod outline;
mod passed_over;
mod properties;
mod quota;
pub mod read;
mod rendering;
pub mod rows;
mod sizes;
mod source_facts;
mod task_state;
#[cfg(test)]
mod testing;
pub mod undelete;
mod unread;
mod update;
mod validation;
mod within_quota;
pub mod writer;

pub use access::domain::{CONFINED, domain_members};
pub use access::identity::{GROUPS_MAX, Identity, VIEWER_ROLE};
pub use access::initial::InitialAccess;
pub use access::list::AccessList;
pub use access::{Access, Level};
pub use attachment::AttachmentReader;
pub use changed::{DatabaseEvent, DatabaseEventKind, DatabaseEvents};
pub use changes::{Change, Changes, ChangesFilter, ChangesQuery, Since};
#[doc(hidden)]
pub use collation::Collation;
pub use compaction_record::PurgedDocument;
pub use context::DatabaseOptions;
pub use damage::Damage;
pub use database::{Database, DatabaseInfo, header_at, read_header, size_in};
pub use deletion::{
    DeletedKey, DeletedMessage, DeletedPage, DeletedSums, UndeleteChoice, UndeleteLimits, Undeleted,
};
pub use designs::{
    DatabaseObserver, DesignInterpreter, EditFunction, EditToValidate, FunctionLanguage, Verdict,
};
pub use edit::{Edit, NO_LOCAL_ATTACHMENTS, NewAttachment, new_id};
pub use edit_mode::EditMode;
pub use error::{DatabaseError, InvalidInput, Oversized, Result};
pub use flags::{FlagsChange, FlagsChanged};
pub use flags_field::{FLAGS, MAX_FLAG_BYTES, MAX_FLAGS, MAX_KEYWORDS, flag_name};
pub use folder::members::{
    FolderChanges, FolderFeed, FolderMember, FolderMemberChange, FolderMembers, FolderPlace,
    MAX_MEMBERS_AT_ONCE,
};
pub use folder::record::{FolderKind, SpecialUse};
pub use folder::{
    FolderChange, FolderInfo, FolderUse, MAX_FOLDER_PROPERTIES_BYTES, MoveWatcher, MovedDocument, Placed,
};
pub use guard::{ClearSecret, Guard, Guarded, Secret, SecretChange, Submission};
pub use history::HistoryLimits;
pub use hold::{HeldRevision, LegalHold};
pub use named::{NamedLeaf, NamedLeaves, NamedSearch};
pub use passed_over::PassedOver;
pub use properties::Properties;
pub use quota::{Quota, QuotaState};
pub use read::others::ConflictedDocument;
pub use read::{Document, OpenRevision, OpenRevisions, ReadOptions, RevisionsDifference};
pub use rendering::NewRendering;
pub use rows::{CategoryQuery, Freshness, Row, RowQuery, RowSource, Rows};
pub use sizes::DatabaseSizes;
pub use source_facts::{INTERNAL_DATE, SOURCE_ATTACHMENT, SOURCE_START, WIRE_SIZE};
pub use undelete::LetGo;
pub use unread::{MAX_PERSON_BYTES, MAX_READERS, Marked, MarkedChange, MarkedChanges, Unread};
pub use update::purge::PurgedLeaves;
pub use update::together::{
    Condition, ConditionKind, TRANSACTION_DATABASES_MAX, TRANSACTION_EDITS_MAX, TransactionPart,
    TransactionRefusal, TransactionUpdate, update_together,
};
pub use update::{MAX_EDITS, Update, Updated};
