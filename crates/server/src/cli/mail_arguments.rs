//! What `scrinium mail undelete`, `search`, `move` and `purge` are given.

use clap::Args;

use super::arguments::ConnectionArguments;
use crate::console::quoted;

/// Arguments of `mail undelete`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Deleted and expunged messages are kept for mail.undelete_days. A message comes back into the folders that it was in, which are made
if they are gone, with its flags, the date when it came, and who had read it. On the console: show deleted, undelete.")]
pub struct MailUndeleteArguments {
    /// Whose mail: a person, or database=NAME
    #[arg(value_name = "PERSON")]
    pub person: String,
    /// The message, as the list names it; without one and without --all, messages are listed
    #[arg(value_name = "ID", conflicts_with = "all")]
    pub id: Option<String>,
    /// Restore all that are meant, at most 1,000 at a time
    #[arg(long)]
    pub all: bool,
    /// Those that were in this folder
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<String>,
    /// Those that were deleted since this time (2026-11-22, 2026-11-22T10:00) or in this time (3d)
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Those that were deleted until this time, or before this time ago
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// The one with this Message-ID
    #[arg(long, value_name = "MESSAGE-ID")]
    pub message_id: Option<String>,
    /// Restore into this folder
    #[arg(long, value_name = "FOLDER")]
    pub to: Option<String>,
    /// Show this many, 100 unless said
    #[arg(long, value_name = "NUMBER")]
    pub count: Option<usize>,
    /// Show those from this one on, as the list before has ended
    #[arg(long, value_name = "ID")]
    pub from: Option<String>,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

impl MailUndeleteArguments {
    /// The command of the console that does it.
    pub(crate) fn command(&self) -> String {
        let restores = self.all || self.id.is_some();
        let mut command = match (&self.id, self.all) {
            (Some(id), _) => format!("undelete {} {}", quoted(&self.person), quoted(id)),
            (None, true) => format!("undelete {} all", quoted(&self.person)),
            (None, false) => format!("show deleted {}", quoted(&self.person)),
        };
        let count = self.count.map(|count| count.to_string());
        let pairs = [
            ("folder", &self.folder, true),
            ("since", &self.since, true),
            ("until", &self.until, true),
            ("message", &self.message_id, true),
            ("to", &self.to, restores),
            ("count", &count, !restores),
            ("from", &self.from, !restores),
        ];
        for (name, value, is_known) in pairs {
            if let Some(value) = value.as_ref().filter(|_| is_known) {
                command.push_str(&format!(" {name}={}", quoted(value)));
            }
        }
        command
    }
}

/// Arguments of `mail search`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Messages are found that are all of what is given; texts are looked for whatever their case. Nothing changes: `mail move` and
`mail purge` take the number of the search. On the console: search mail, show mailsearch. Exit codes: 0, or 1 if it was stopped or failed.")]
pub struct MailSearchArguments {
    /// The Message-ID, with or without its angle brackets
    #[arg(long, value_name = "MESSAGE-ID")]
    pub message_id: Option<String>,
    /// A part of who the message says that it is from
    #[arg(long, value_name = "TEXT")]
    pub from: Option<String>,
    /// A part of the subject
    #[arg(long, value_name = "TEXT")]
    pub subject: Option<String>,
    /// A part of the name of a file in it
    #[arg(long, value_name = "NAME")]
    pub attachment: Option<String>,
    /// It came since this time (2026-11-22, 2026-11-22T10:00) or in this time (3d)
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// It came until this time, or before this time ago
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

impl MailSearchArguments {
    /// The command of the console that does it.
    pub(crate) fn command(&self) -> String {
        let pairs = [
            ("message", &self.message_id),
            ("from", &self.from),
            ("subject", &self.subject),
            ("attachment", &self.attachment),
            ("since", &self.since),
            ("until", &self.until),
        ];
        let mut command = "search mail".to_owned();
        for (name, value) in pairs {
            if let Some(value) = value {
                command.push_str(&format!(" {name}={}", quoted(value)));
            }
        }
        command
    }
}

/// Arguments of `mail move`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The folder is made where it is missing; messages leave all others. Given again, it finds nothing more to do. On the console: move mail.")]
pub struct MailMoveArguments {
    /// The search that has found them, as `mail search` names it
    #[arg(value_name = "SEARCH")]
    pub search: u64,
    /// The folder
    #[arg(value_name = "FOLDER")]
    pub folder: String,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// Arguments of `mail purge`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The messages are gone for their people; `mail undelete` brings them back while they are kept. On the console: purge mail.")]
pub struct MailPurgeArguments {
    /// The search that has found them, as `mail search` names it
    #[arg(value_name = "SEARCH")]
    pub search: u64,
    /// The server, and the administrator.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}
