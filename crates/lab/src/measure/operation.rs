//! The operations that are measured: what a command of the script asks of the server.

use serde::Serialize;

/// One kind of request, sent for one command. Its samples stand in one row of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "command and transaction describe each")]
pub enum Operation {
    ChangeTo,
    Open,
    Entries,
    Navigate,
    Read,
    StampFetch,
    Stamp,
    UpdateFetch,
    Update,
    Add,
    DeleteFetch,
    Delete,
    SendMessage,
    Appointment,
    Invitation,
    CheckForNewMail,
    Populate,
    OpenCollection,
    GetAll,
    GetAllUnread,
    Index,
    SetCollation,
    FindByKey,
    FindPeriod,
    MarkRead,
    Unread,
    Move,
    MoveFetch,
    DeleteEntryFetch,
    DeleteEntry,
    KeepMessage,
    AnswerFetch,
    Answer,
    AcceptFind,
    AcceptFetch,
    Accept,
    NewMail,
    NewMailPoll,
    NewMailRefresh,
    ModifiedNotes,
    FolderChanges,
    Lookup,
    ProfileOpen,
    ProfileUpdate,
    ColorProfileFetch,
    ColorProfileAdd,
    ColorProfileDeleteFetch,
    ColorProfileDelete,
    CalendarProfileFetch,
    CalendarProfile,
    ReplicateChanges,
    ReplicateRead,
    ReplicateCompare,
    ReplicateWrite,
    ReplicateCheckpoint,
    DeleteDatabase,
    Console,
    WebGet,
}

impl Operation {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 58] = [
        Self::ChangeTo,
        Self::Open,
        Self::Entries,
        Self::Navigate,
        Self::Read,
        Self::StampFetch,
        Self::Stamp,
        Self::UpdateFetch,
        Self::Update,
        Self::Add,
        Self::DeleteFetch,
        Self::Delete,
        Self::SendMessage,
        Self::Appointment,
        Self::Invitation,
        Self::CheckForNewMail,
        Self::Populate,
        Self::OpenCollection,
        Self::GetAll,
        Self::GetAllUnread,
        Self::Index,
        Self::SetCollation,
        Self::FindByKey,
        Self::FindPeriod,
        Self::MarkRead,
        Self::Unread,
        Self::Move,
        Self::MoveFetch,
        Self::DeleteEntryFetch,
        Self::DeleteEntry,
        Self::KeepMessage,
        Self::AnswerFetch,
        Self::Answer,
        Self::AcceptFind,
        Self::AcceptFetch,
        Self::Accept,
        Self::NewMail,
        Self::NewMailPoll,
        Self::NewMailRefresh,
        Self::ModifiedNotes,
        Self::FolderChanges,
        Self::Lookup,
        Self::ProfileOpen,
        Self::ProfileUpdate,
        Self::ColorProfileFetch,
        Self::ColorProfileAdd,
        Self::ColorProfileDeleteFetch,
        Self::ColorProfileDelete,
        Self::CalendarProfileFetch,
        Self::CalendarProfile,
        Self::ReplicateChanges,
        Self::ReplicateRead,
        Self::ReplicateCompare,
        Self::ReplicateWrite,
        Self::ReplicateCheckpoint,
        Self::DeleteDatabase,
        Self::Console,
        Self::WebGet,
    ];

    /// The script's command.
    #[must_use]
    pub fn command(self) -> &'static str {
        match self {
            Self::ChangeTo => "ChangeTo",
            Self::Open => "Open",
            Self::Entries => "Entries",
            Self::Navigate | Self::MarkRead => "Navigate",
            Self::Read => "Read",
            Self::StampFetch | Self::Stamp => "Stamp",
            Self::UpdateFetch | Self::Update => "Update",
            Self::Add => "Add",
            Self::DeleteFetch | Self::Delete => "Delete",
            Self::SendMessage | Self::KeepMessage => "SendMessage",
            Self::Appointment => "Cal Appointment",
            Self::Invitation => "Cal Invitation",
            Self::CheckForNewMail => "CheckForNewMail",
            Self::Populate => "Populate",
            Self::OpenCollection => "OpenColl",
            Self::GetAll | Self::GetAllUnread => "GetAll",
            Self::Index => "Index",
            Self::SetCollation => "SetCollation",
            Self::FindByKey => "FindByKey",
            Self::FindPeriod => "ColFindKey",
            Self::Unread => "Unread",
            Self::Move | Self::MoveFetch => "MoveToFolder",
            Self::DeleteEntryFetch | Self::DeleteEntry => "DeleteFromColl",
            Self::AnswerFetch | Self::Answer => "SendMessageFromColl",
            Self::AcceptFind | Self::AcceptFetch | Self::Accept => "Accept",
            Self::NewMail => "NewMail",
            Self::NewMailPoll | Self::NewMailRefresh => "NewMailPoll",
            Self::ModifiedNotes => "DBGetModNoteInfo",
            Self::FolderChanges => "GetAllFolderChangesRqst",
            Self::Lookup => "Lookup",
            Self::ProfileOpen => "ProfileOpen",
            Self::ProfileUpdate => "ProfileUpdate",
            Self::ColorProfileFetch | Self::ColorProfileAdd => "ColorProfileAdd",
            Self::ColorProfileDeleteFetch | Self::ColorProfileDelete => "ColorProfileDelete",
            Self::CalendarProfileFetch | Self::CalendarProfile => "SetCalProfile",
            Self::ReplicateChanges
            | Self::ReplicateRead
            | Self::ReplicateCompare
            | Self::ReplicateWrite
            | Self::ReplicateCheckpoint => "Replicate",
            Self::DeleteDatabase => "DbDelete",
            Self::Console => "Console",
            Self::WebGet => "WebGet",
        }
    }

    /// The name under which Domino's server counts such a transaction.
    #[must_use]
    pub fn transaction(self) -> &'static str {
        match self {
            Self::ChangeTo => "OPEN_DB",
            Self::Open | Self::OpenCollection => "OPEN_COLLECTION",
            Self::Entries | Self::GetAll | Self::NewMailRefresh => "READ_ENTRIES",
            Self::Navigate
            | Self::Read
            | Self::StampFetch
            | Self::UpdateFetch
            | Self::DeleteFetch
            | Self::MoveFetch
            | Self::DeleteEntryFetch
            | Self::AnswerFetch
            | Self::AcceptFetch
            | Self::ProfileOpen
            | Self::ColorProfileFetch
            | Self::ColorProfileDeleteFetch
            | Self::CalendarProfileFetch
            | Self::ReplicateRead => "OPEN_NOTE",
            Self::Stamp
            | Self::Update
            | Self::Add
            | Self::Populate
            | Self::KeepMessage
            | Self::ProfileUpdate
            | Self::ColorProfileAdd
            | Self::CalendarProfile
            | Self::ReplicateWrite => "UPDATE_NOTE",
            Self::Delete | Self::DeleteEntry | Self::ColorProfileDelete => "DELETE_NOTE",
            Self::SendMessage | Self::Appointment | Self::Invitation | Self::Answer | Self::Accept => {
                "MAIL_DEPOSIT"
            }
            Self::CheckForNewMail | Self::NewMail | Self::NewMailPoll => "DB_MODIFIED_TIME",
            Self::GetAllUnread => "GET_UNREAD_NOTE_TABLE",
            Self::Index => "UPDATE_COLLECTION",
            Self::SetCollation => "SET_COLLATION",
            Self::FindByKey | Self::FindPeriod | Self::AcceptFind => "FIND_BY_KEY",
            Self::MarkRead | Self::Unread => "RCV_UNREAD",
            Self::Move => "FOLDER_MOVE",
            Self::ModifiedNotes | Self::ReplicateChanges => "GET_MODIFIED_NOTES",
            Self::FolderChanges => "GET_ALLFOLDERCHANGES",
            Self::Lookup => "NAME_LOOKUP",
            Self::ReplicateCompare => "GET_NOTE_INFO",
            Self::ReplicateCheckpoint => "REPLICATION_HISTORY",
            Self::DeleteDatabase => "DELETE_DB",
            Self::Console => "REMOTE_CONSOLE",
            Self::WebGet => "HTTP_GET",
        }
    }

    /// Where its numbers stand in a table of all operations.
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

impl Serialize for Operation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{} {}", self.command(), self.transaction()))
    }
}
