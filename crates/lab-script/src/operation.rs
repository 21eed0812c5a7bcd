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
    ReplicatePull,
    ReplicateAdd,
    ReplicatePush,
    DeleteDatabase,
    Console,
    WebGet,
    ImailHelp,
    ImailLogin,
    ImailListMailboxes,
    ImailOpenMailbox,
    ImailGetLastEntries,
    ImailFetchOld,
    ImailAskNewMail,
    ImailGetNewMail,
    ImailDeleteFetch,
    ImailDeleteStore,
    ImailDeleteEntry,
    ImailFetchEntry,
    ImailSetSeen,
    ImailCloseMailbox,
    ImailLogout,
    SendSmtpMessage,
    Pop3Login,
    Pop3List,
    Pop3Retrieve,
    Pop3Delete,
    Pop3Quit,
    AppointmentEvent,
    InvitationEvent,
    CalOpen,
    CalRead,
    CalUpdate,
    CalDelete,
}

impl Operation {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 88] = [
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
        Self::ReplicatePull,
        Self::ReplicateAdd,
        Self::ReplicatePush,
        Self::DeleteDatabase,
        Self::Console,
        Self::WebGet,
        Self::ImailHelp,
        Self::ImailLogin,
        Self::ImailListMailboxes,
        Self::ImailOpenMailbox,
        Self::ImailGetLastEntries,
        Self::ImailFetchOld,
        Self::ImailAskNewMail,
        Self::ImailGetNewMail,
        Self::ImailDeleteFetch,
        Self::ImailDeleteStore,
        Self::ImailDeleteEntry,
        Self::ImailFetchEntry,
        Self::ImailSetSeen,
        Self::ImailCloseMailbox,
        Self::ImailLogout,
        Self::SendSmtpMessage,
        Self::Pop3Login,
        Self::Pop3List,
        Self::Pop3Retrieve,
        Self::Pop3Delete,
        Self::Pop3Quit,
        Self::AppointmentEvent,
        Self::InvitationEvent,
        Self::CalOpen,
        Self::CalRead,
        Self::CalUpdate,
        Self::CalDelete,
    ];

    /// The script's command.
    #[allow(clippy::too_many_lines, reason = "one line an operation")]
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
            | Self::ReplicateCheckpoint
            | Self::ReplicatePull
            | Self::ReplicateAdd
            | Self::ReplicatePush => "Replicate",
            Self::DeleteDatabase => "DbDelete",
            Self::Console => "Console",
            Self::WebGet => "WebGet",
            Self::ImailHelp => "ImailHelp",
            Self::ImailLogin => "ImailLogin",
            Self::ImailListMailboxes => "ImailListMailboxes",
            Self::ImailOpenMailbox => "ImailOpenMailbox",
            Self::ImailGetLastEntries => "ImailGetLastEntries",
            Self::ImailFetchOld => "ImailFetchOld",
            Self::ImailAskNewMail => "ImailGetNewMail",
            Self::ImailGetNewMail => "ImailGetNewMail",
            Self::ImailDeleteFetch => "ImailDeleteEntry",
            Self::ImailDeleteStore => "ImailDeleteEntry",
            Self::ImailDeleteEntry => "ImailDeleteEntry",
            Self::ImailFetchEntry => "ImailFetchEntry",
            Self::ImailSetSeen => "ImailSetSeen",
            Self::ImailCloseMailbox => "ImailCloseMailbox",
            Self::ImailLogout => "ImailLogout",
            Self::SendSmtpMessage => "SendSMTPMessage",
            Self::Pop3Login => "RetrievePOP3Mail",
            Self::Pop3List => "RetrievePOP3Mail",
            Self::Pop3Retrieve => "RetrievePOP3Mail",
            Self::Pop3Delete => "RetrievePOP3Mail",
            Self::Pop3Quit => "RetrievePOP3Mail",
            Self::AppointmentEvent => "Cal Appointment",
            Self::InvitationEvent => "Cal Invitation",
            Self::CalOpen => "CalOpen",
            Self::CalRead => "CalRead",
            Self::CalUpdate => "CalUpdate",
            Self::CalDelete => "CalDelete",
        }
    }

    /// The name under which Domino's server counts such a transaction; for protocols other than HTTP, the protocol and
    /// what it calls it.
    #[allow(clippy::too_many_lines, reason = "one line an operation")]
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
            | Self::ReplicateWrite
            | Self::ReplicateAdd => "UPDATE_NOTE",
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
            Self::ReplicatePull => "REPLICATE_FROM",
            Self::ReplicatePush => "REPLICATE_TO",
            Self::DeleteDatabase => "DELETE_DB",
            Self::Console => "REMOTE_CONSOLE",
            Self::WebGet => "HTTP_GET",
            Self::ImailHelp => "IMAP CAPABILITY",
            Self::ImailLogin => "IMAP LOGIN",
            Self::ImailListMailboxes => "IMAP LIST",
            Self::ImailOpenMailbox => "IMAP SELECT",
            Self::ImailGetLastEntries => "IMAP FETCH page",
            Self::ImailFetchOld => "IMAP FETCH message",
            Self::ImailAskNewMail => "IMAP FETCH new",
            Self::ImailGetNewMail => "IMAP FETCH message",
            Self::ImailDeleteFetch => "IMAP FETCH message",
            Self::ImailDeleteStore => "IMAP STORE",
            Self::ImailDeleteEntry => "IMAP EXPUNGE",
            Self::ImailFetchEntry => "IMAP FETCH message",
            Self::ImailSetSeen => "IMAP STORE",
            Self::ImailCloseMailbox => "IMAP CLOSE",
            Self::ImailLogout => "IMAP LOGOUT",
            Self::SendSmtpMessage => "SMTP message",
            Self::Pop3Login => "POP3 PASS",
            Self::Pop3List => "POP3 LIST",
            Self::Pop3Retrieve => "POP3 RETR",
            Self::Pop3Delete => "POP3 DELE",
            Self::Pop3Quit => "POP3 QUIT",
            Self::AppointmentEvent => "CALDAV PUT",
            Self::InvitationEvent => "CALDAV PUT",
            Self::CalOpen => "CALDAV REPORT",
            Self::CalRead => "CALDAV GET",
            Self::CalUpdate => "CALDAV PUT",
            Self::CalDelete => "CALDAV DELETE",
        }
    }

    /// Where its numbers stand in a table of all operations.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }
}

impl Serialize for Operation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{} {}", self.command(), self.transaction()))
    }
}
