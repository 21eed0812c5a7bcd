//! The operations of the interface, under the names that `show transactions`, the log database and the operation log
//! have for them.

use std::time::Duration;

use scrinium_catalog::is_mailbox;
use scrinium_statistics::Registry;

use crate::query::Query;

/// Declares the operations: a variant, and the name that the seeds have for it.
macro_rules! operations {
    ($($(#[$comment:meta])* $variant:ident = $name:literal,)*) => {
        /// What a request does, as statistics and logs name it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Operation {
            $($(#[$comment])* $variant,)*
        }

        impl Operation {
            /// All of them, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

operations! {
    /// A database's description is read.
    OpenDatabase = "OPEN_DB",
    /// A database is made.
    CreateDatabase = "CREATE_DB",
    /// A database is dropped.
    DeleteDatabase = "DELETE_DB",
    /// A document is read.
    OpenNote = "OPEN_NOTE",
    /// Several documents are read by their ids.
    OpenNotes = "OPEN_NOTES",
    /// A document is written; the operation log says `CREATE_NOTE` where it is the first revision.
    UpdateNote = "UPDATE_NOTE",
    /// Several documents are written.
    UpdateNotes = "UPDATE_NOTES",
    /// Documents are written into a mailbox.
    MailDeposit = "MAIL_DEPOSIT",
    /// A document is deleted.
    DeleteNote = "DELETE_NOTE",
    /// A design document, or an index that lies in one, is read or written.
    DesignNote = "DESIGN_NOTE",
    /// A document that is not replicated is read or written: a replicator's checkpoint.
    ReplicationHistory = "REPLICATION_HISTORY",
    /// The first page of a view or folder is read. The table of routes says this of all pages: a request that asks for
    /// another page is [`Operation::ReadEntries`] or [`Operation::FindByKey`].
    OpenCollection = "OPEN_COLLECTION",
    /// Another page of a view or folder, or rows of documents, are read.
    ReadEntries = "READ_ENTRIES",
    /// A page of a view or folder is read that begins at a key.
    FindByKey = "FIND_BY_KEY",
    /// Documents that match a selector are read.
    Search = "SEARCH",
    /// Changes of documents are read.
    ModifiedNotes = "GET_MODIFIED_NOTES",
    /// An attachment is read.
    ReadObject = "READ_OBJECT",
    /// An attachment is written or removed.
    WriteObject = "WRITE_OBJECT",
    /// The folders of a database are listed.
    FolderList = "FOLDER_LIST",
    /// A folder is made or changed.
    FolderDefine = "FOLDER_DEFINE",
    /// A folder is dropped.
    FolderDelete = "FOLDER_DELETE",
    /// Documents are put into a folder.
    FolderAdd = "FOLDER_ADD",
    /// Documents are taken out of a folder.
    FolderRemove = "FOLDER_REMOVE",
    /// Documents are moved from one folder to another. The table of routes says this of all changes of what is in a
    /// folder; what most of a request is, is recorded.
    FolderMove = "FOLDER_MOVE",
    /// The members of a folder, or the changes of them, are read.
    FolderChanges = "GET_ALLFOLDERCHANGES",
    /// The marks of a person are read.
    UnreadTable = "GET_UNREAD_NOTE_TABLE",
    /// The marks of a person are changed.
    ReceiveUnread = "RCV_UNREAD",
    /// Everything else: about the server, or settings of a database. It is not timed.
    Other = "OTHER",
}

/// Parameters that say where a page begins.
const PAGE_STARTS: [&str; 6] = ["startkey", "start_key", "skip", "start", "from", "at"];

impl Operation {
    /// What this request is, where the table of routes cannot know.
    pub(crate) fn of(self, query: &Query, database: &str) -> Self {
        let given = |names: &[&str]| names.iter().any(|name| query.get(name).is_some());
        match self {
            Self::OpenCollection if given(&["find", "key"]) => Self::FindByKey,
            Self::OpenCollection if given(&PAGE_STARTS) => Self::ReadEntries,
            Self::UpdateNote | Self::UpdateNotes if is_mailbox(database) => Self::MailDeposit,
            other => other,
        }
    }
}

/// Histograms under the names that `show transactions` prints.
pub(crate) struct Operations(Vec<scrinium_statistics::Operation>);

impl Operations {
    pub(crate) fn register(registry: &Registry) -> Self {
        let timed = Operation::ALL.iter().filter(|operation| **operation != Operation::Other);
        Self(timed.map(|operation| registry.operation(operation.name())).collect())
    }

    pub(crate) fn record(&self, operation: Operation, elapsed: Duration) {
        // The numbers of an enum without fields count up from 0 in the order of `ALL`, of which `Other` is the last.
        if let Some(histogram) = self.0.get(operation as usize) {
            histogram.record(elapsed);
        }
    }
}
