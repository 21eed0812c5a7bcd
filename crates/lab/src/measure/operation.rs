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
}

impl Operation {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 17] = [
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
        }
    }

    /// The name under which Domino's server counts such a transaction.
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
