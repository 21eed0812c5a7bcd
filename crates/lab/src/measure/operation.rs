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
    pub const ALL: [Self; 40] = [
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
    #[must_use]
    pub fn command(self) -> &'static str {
        match self {
            Self::ChangeTo => "ChangeTo",
            Self::Open => "Open",
            Self::Entries => "Entries",
            Self::Navigate => "Navigate",
            Self::Read => "Read",
            Self::StampFetch | Self::Stamp => "Stamp",
            Self::UpdateFetch | Self::Update => "Update",
            Self::Add => "Add",
            Self::DeleteFetch | Self::Delete => "Delete",
            Self::SendMessage => "SendMessage",
            Self::Appointment => "Cal Appointment",
            Self::Invitation => "Cal Invitation",
            Self::CheckForNewMail => "CheckForNewMail",
            Self::Populate => "Populate",
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

    /// The name under which Domino's server counts such a transaction; for protocols beside documents, the protocol and
    /// what it calls it.
    #[must_use]
    pub fn transaction(self) -> &'static str {
        match self {
            Self::ChangeTo => "OPEN_DB",
            Self::Open => "OPEN_COLLECTION",
            Self::Entries => "READ_ENTRIES",
            Self::Navigate | Self::Read | Self::StampFetch | Self::UpdateFetch | Self::DeleteFetch => {
                "OPEN_NOTE"
            }
            Self::Stamp | Self::Update | Self::Add | Self::Populate => "UPDATE_NOTE",
            Self::Delete => "DELETE_NOTE",
            Self::SendMessage | Self::Appointment | Self::Invitation => "MAIL_DEPOSIT",
            Self::CheckForNewMail => "DB_MODIFIED_TIME",
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
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

impl Serialize for Operation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{} {}", self.command(), self.transaction()))
    }
}
