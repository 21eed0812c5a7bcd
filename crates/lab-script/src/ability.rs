//! What commands need servers for.

/// What a command needs a server for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Ability {
    Documents,
    SendMail,
    Imap,
    Pop3,
    Calendar,
}

impl Ability {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Documents => "documents",
            Self::SendMail => "sending mail",
            Self::Imap => "IMAP",
            Self::Pop3 => "POP3",
            Self::Calendar => "calendars",
        }
    }
}
