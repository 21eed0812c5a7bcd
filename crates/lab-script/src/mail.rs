//! The commands for mail and calendars, of protocols other than HTTP.

use crate::arguments::Arguments;
use crate::command::{Command, MessageSize, Sending};
use crate::error::ScriptError;
use crate::estimate::number;
use crate::{Ability, Operation};

/// Which message of the page a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailEntry {
    /// The one that was opened last, or the first.
    Current,
    /// The one behind it; behind the last comes the first.
    Next,
    /// The next one that has not been read.
    NextUnseen,
    /// The first one.
    First,
}

impl MailEntry {
    /// As a script has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Current => "CURRENT",
            Self::Next => "NEXT",
            Self::NextUnseen => "NEXT_UNSEEN",
            Self::First => "FIRST",
        }
    }
}

/// A command that speaks IMAP, SMTP, POP3 or CalDAV.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table of commands describes each")]
pub enum MailCommand {
    ImapHelp,
    ImapLogin,
    ImapList,
    ImapOpen {
        mailbox: String,
    },
    ImapLastEntries {
        count: u64,
    },
    ImapFetch {
        count: u64,
        next: bool,
    },
    ImapFetchEntry {
        entry: MailEntry,
    },
    ImapNewMail {
        count: u64,
    },
    ImapSetSeen {
        entry: MailEntry,
    },
    ImapDelete {
        count: u64,
    },
    ImapClose,
    ImapLogout,
    Send {
        size: MessageSize,
        sending: Sending,
    },
    /// `None`: all that there are.
    Retrieve {
        count: Option<u64>,
        keep: bool,
    },
    CalendarOpen {
        days: u64,
    },
    CalendarRead {
        count: u64,
    },
    CalendarUpdate {
        count: u64,
    },
    CalendarDelete {
        count: u64,
    },
}

/// Messages of one page of a mailbox.
const PAGE: u64 = 20;

/// Days of a calendar that are looked at.
const DAYS: u64 = 28;

impl MailCommand {
    /// The command of that name; `None` when it is not one of these.
    pub(super) fn parse(name: &str, arguments: &mut Arguments<'_>) -> Result<Option<Command>, ScriptError> {
        let command = match name {
            "ImailHelp" => Self::ImapHelp,
            "ImailLogin" => {
                // Host, name and password: who a user is and where the servers are stands on the command line.
                ignore(arguments, 3)?;
                Self::ImapLogin
            }
            "ImailListMailboxes" => {
                // Root, mailbox and whether only those that are subscribed: all are listed.
                ignore(arguments, 3)?;
                Self::ImapList
            }
            "ImailOpenMailbox" => {
                let mailbox = arguments.take().map(|word| arguments.fixed(word)).transpose()?;
                Self::ImapOpen { mailbox: mailbox.unwrap_or_else(|| "INBOX".to_owned()) }
            }
            "ImailGetLastEntries" => Self::ImapLastEntries { count: arguments.number_or(1, PAGE)? },
            "ImailFetchOld" => {
                let next = !arguments.take_keyword("CURRENT");
                if next {
                    arguments.take_keyword("NEXT");
                }
                Self::ImapFetch { count: arguments.number_or(1, 1)?, next }
            }
            "ImailFetchEntry" => Self::ImapFetchEntry { entry: entry(arguments) },
            "ImailSetSeen" => Self::ImapSetSeen { entry: entry(arguments) },
            "ImailCloseMailbox" => Self::ImapClose,
            "ImailLogout" => Self::ImapLogout,
            "ImailGetNewMail" => Self::ImapNewMail { count: arguments.number_or(1, PAGE)? },
            "ImailDeleteEntry" => Self::ImapDelete { count: arguments.number_or(1, 1)? },
            "SendSMTPMessage" => send(arguments)?,
            "RetrievePOP3Mail" => retrieve(arguments)?,
            "CalOpen" => Self::CalendarOpen { days: arguments.number_or(1, DAYS)? },
            "CalRead" => Self::CalendarRead { count: arguments.number_or(1, 1)? },
            "CalUpdate" => Self::CalendarUpdate { count: arguments.number_or(1, 1)? },
            "CalDelete" => Self::CalendarDelete { count: arguments.number_or(1, 1)? },
            _ => return Ok(None),
        };
        Ok(Some(Command::Mail(command)))
    }

    /// What it needs a server for.
    #[must_use]
    pub fn needs(&self) -> Ability {
        match self {
            Self::Send { .. } => Ability::SendMail,
            Self::Retrieve { .. } => Ability::Pop3,
            Self::CalendarOpen { .. }
            | Self::CalendarRead { .. }
            | Self::CalendarUpdate { .. }
            | Self::CalendarDelete { .. } => Ability::Calendar,
            _ => Ability::Imap,
        }
    }

    /// As the script has it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::ImapHelp => "ImailHelp",
            Self::ImapLogin => "ImailLogin",
            Self::ImapList => "ImailListMailboxes",
            Self::ImapOpen { .. } => "ImailOpenMailbox",
            Self::ImapLastEntries { .. } => "ImailGetLastEntries",
            Self::ImapFetch { .. } => "ImailFetchOld",
            Self::ImapNewMail { .. } => "ImailGetNewMail",
            Self::ImapDelete { .. } => "ImailDeleteEntry",
            Self::ImapFetchEntry { .. } => "ImailFetchEntry",
            Self::ImapSetSeen { .. } => "ImailSetSeen",
            Self::ImapClose => "ImailCloseMailbox",
            Self::ImapLogout => "ImailLogout",
            Self::Send { .. } => "SendSMTPMessage",
            Self::Retrieve { .. } => "RetrievePOP3Mail",
            Self::CalendarOpen { .. } => "CalOpen",
            Self::CalendarRead { .. } => "CalRead",
            Self::CalendarUpdate { .. } => "CalUpdate",
            Self::CalendarDelete { .. } => "CalDelete",
        }
    }

    /// The requests of one run of it, as far as they do not depend on what there is to fetch.
    pub(super) fn requests(&self) -> Vec<(Operation, f64)> {
        match self {
            Self::ImapHelp => vec![(Operation::ImailHelp, 1.0)],
            Self::ImapLogin => vec![(Operation::ImailLogin, 1.0)],
            Self::ImapList => vec![(Operation::ImailListMailboxes, 1.0)],
            Self::ImapOpen { .. } => vec![(Operation::ImailOpenMailbox, 1.0)],
            Self::ImapLastEntries { .. } => vec![(Operation::ImailGetLastEntries, 1.0)],
            Self::ImapFetch { count, .. } => vec![(Operation::ImailFetchOld, number(*count))],
            Self::ImapNewMail { .. } => vec![(Operation::ImailAskNewMail, 1.0)],
            Self::ImapDelete { count } => {
                let all =
                    [Operation::ImailDeleteFetch, Operation::ImailDeleteStore, Operation::ImailDeleteEntry];
                all.map(|operation| (operation, number(*count))).to_vec()
            }
            Self::ImapFetchEntry { .. } => vec![(Operation::ImailFetchEntry, 1.0)],
            Self::ImapSetSeen { .. } => vec![(Operation::ImailSetSeen, 1.0)],
            Self::ImapClose => vec![(Operation::ImailCloseMailbox, 1.0)],
            Self::ImapLogout => vec![(Operation::ImailLogout, 1.0)],
            Self::Send { sending, .. } => vec![(Operation::SendSmtpMessage, 1.0 / number(sending.nth))],
            Self::Retrieve { .. } => [Operation::Pop3Login, Operation::Pop3List, Operation::Pop3Quit]
                .map(|each| (each, 1.0))
                .to_vec(),
            Self::CalendarOpen { .. } => vec![(Operation::CalOpen, 1.0)],
            Self::CalendarRead { count } => vec![(Operation::CalRead, number(*count))],
            Self::CalendarUpdate { count } => vec![(Operation::CalUpdate, number(*count))],
            Self::CalendarDelete { count } => vec![(Operation::CalDelete, number(*count))],
        }
    }
}

/// Reads words that say nothing here, as many as there are.
fn ignore(arguments: &mut Arguments<'_>, most: usize) -> Result<(), ScriptError> {
    for _ in 0..most {
        let Some(word) = arguments.take() else { break };
        arguments.text(word)?;
    }
    Ok(())
}

/// `[CURRENT|NEXT|NEXT_UNSEEN|FIRST]`
fn entry(arguments: &mut Arguments<'_>) -> MailEntry {
    let entries = [MailEntry::Current, MailEntry::Next, MailEntry::NextUnseen, MailEntry::First];
    entries.into_iter().find(|entry| arguments.take_keyword(entry.name())).unwrap_or(MailEntry::Current)
}

/// `bytes|profile [line bytes] [recipients] [host] [domain] [client] [nth]`. Lines have the length that the
/// laboratory's text has; host and domain stand on the command line.
fn send(arguments: &mut Arguments<'_>) -> Result<MailCommand, ScriptError> {
    let word = arguments.require("a size in bytes, or profile,")?;
    let size = arguments.size(word)?;
    arguments.number_or(0, 0)?;
    let recipients = arguments.number_or(1, 1)?;
    ignore(arguments, 3)?;
    let nth = arguments.number_or(1, 1)?;
    Ok(MailCommand::Send { size, sending: arguments.sending_of(recipients, nth) })
}

/// `[user] [password] [count] [host] [LEAVE_ON_SERVER] [USE_SSL]`; a count of -1 is all. Whether a connection is
/// encrypted says its target; -Keep is another word for LEAVE_ON_SERVER.
fn retrieve(arguments: &mut Arguments<'_>) -> Result<MailCommand, ScriptError> {
    let mut keep = arguments.take_keyword("-Keep");
    if !keep {
        ignore(arguments, 2)?;
    }
    let mut count = None;
    if let Some(word) = arguments.take() {
        count = if arguments.fixed(word)?.trim() == "-1" { None } else { Some(arguments.number(word, 1)?) };
        ignore(arguments, usize::from(!keep))?;
        loop {
            let leaves = ["-Keep", "LEAVE_ON_SERVER"].iter().any(|word| arguments.take_keyword(word));
            if !leaves && !arguments.take_keyword("USE_SSL") {
                break;
            }
            keep |= leaves;
        }
    }
    Ok(MailCommand::Retrieve { count, keep })
}

impl Command {
    /// What this command needs a server for, any of these; nothing if it only steers the script.
    #[must_use]
    pub fn needs(&self) -> &'static [Ability] {
        match self {
            Self::Mail(command) => match command.needs() {
                Ability::SendMail => &[Ability::SendMail],
                Ability::Imap => &[Ability::Imap],
                Ability::Pop3 => &[Ability::Pop3],
                Ability::Calendar => &[Ability::Calendar],
                Ability::Documents => &[Ability::Documents],
            },
            Self::Calendar { .. } => &[Ability::Calendar, Ability::Documents],
            command if super::estimate::acts(command) => &[Ability::Documents],
            _ => &[],
        }
    }

    /// Recipients of a message that it sends.
    #[must_use]
    pub fn recipients(&self) -> usize {
        match self {
            Self::Mail(MailCommand::Send { sending, .. })
            | Self::SendMessage { sending, .. }
            | Self::Answer { sending, .. }
            | Self::Calendar { sending, .. } => sending.recipients,
            _ => 0,
        }
    }
}
