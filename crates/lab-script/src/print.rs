//! A script as text again: every variable with its value. What is printed parses to the same statements.

use std::fmt::{self, Display, Formatter};

use crate::Script;
use crate::command::{
    CalendarKind, Command, Direction, LoopName, MessageSize, NavigationStep, ReplicationDirection, Sending,
    Stop, TimeRange, UserPiece, UserText,
};
use crate::mail::MailCommand;

impl Display for Script {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        // Where the conditions that are open end.
        let mut ends: Vec<usize> = Vec::new();
        for (index, statement) in self.statements.iter().enumerate() {
            match &statement.command {
                Command::Jump { target } if ends.last() == Some(&(index + 1)) => {
                    ends.pop();
                    ends.push(*target);
                    writeln!(formatter, "@Else")?;
                }
                command => writeln!(formatter, "{command}")?,
            }
            if let Command::SkipUnless { target, .. }
            | Command::SkipUnlessChance { target, .. }
            | Command::SkipUnlessNth { target, .. } = &statement.command
            {
                ends.push(*target);
            }
            while ends.last() == Some(&(index + 1)) {
                ends.pop();
                writeln!(formatter, "@EndIf")?;
            }
        }
        Ok(())
    }
}

impl Display for Command {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pause(range) => write!(formatter, "Pause {range}"),
            Self::ErrorDelay(range) => write!(formatter, "ErrorDelay {range}"),
            Self::Break(errors) => write!(formatter, "Break {}", errors.unwrap_or(0)),
            Self::BeginLoop(LoopName::First) => formatter.write_str("BeginLoop"),
            Self::BeginLoop(LoopName::Second) => formatter.write_str("BeginLoop2"),
            Self::Rewind { name, times, .. } => {
                let name = if *name == LoopName::First { "Rewind" } else { "Rewind2" };
                match times {
                    Some(times) => write!(formatter, "{name} {times}"),
                    None => formatter.write_str(name),
                }
            }
            Self::BeginCritical => formatter.write_str("BeginCrit"),
            Self::EndCritical => formatter.write_str("EndCrit"),
            Self::SkipUnless { holds, .. } => write!(formatter, "@If {}", u8::from(*holds)),
            Self::SkipUnlessChance { percent, .. } => {
                write!(formatter, "@Chance {}", percent.fraction() * 100.0)
            }
            Self::SkipUnlessNth { nth, .. } => write!(formatter, "@Nth {nth}"),
            Self::Jump { .. } => formatter.write_str("@Else"),
            Self::Close => formatter.write_str("Close"),
            Self::CloseCollection => formatter.write_str("CloseColl"),
            Self::CloseDatabase => formatter.write_str("DBClose"),
            Self::Drop => formatter.write_str("Drop"),
            Self::ProfileClose => formatter.write_str("ProfileClose"),
            Self::Known(name) => formatter.write_str(name),
            Self::Mail(command) => write!(formatter, "{command}"),
            Self::ChangeTo { .. }
            | Self::DeleteDatabase { .. }
            | Self::Replicate { .. }
            | Self::Console { .. }
            | Self::WebGet { .. }
            | Self::ModifiedNotes
            | Self::FolderChanges
            | Self::ProfileOpen { .. }
            | Self::ProfileUpdate
            | Self::ColorProfileAdd
            | Self::ColorProfileDelete
            | Self::SetCalendarProfile => self.print_for_database(formatter),
            Self::SendMessage { .. }
            | Self::Answer { .. }
            | Self::Calendar { .. }
            | Self::Accept { .. }
            | Self::CheckForNewMail { .. }
            | Self::NewMail { .. }
            | Self::NewMailPoll
            | Self::Lookup { .. } => self.print_for_mail(formatter),
            _ => self.print_for_documents(formatter),
        }
    }
}

impl Command {
    fn print_for_database(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChangeTo { database, template, keep_open } => {
                write!(formatter, "ChangeTo {database}")?;
                if let Some(template) = template {
                    write!(formatter, " {template}")?;
                }
                formatter.write_str(if *keep_open { " -KeepOpen" } else { "" })
            }
            Self::DeleteDatabase { database } => write!(formatter, "DbDelete {database}"),
            Self::Replicate { direction, databases } => {
                let direction = match direction {
                    ReplicationDirection::Pull => "PULL",
                    ReplicationDirection::Push => "PUSH",
                    ReplicationDirection::Both => "BOTH",
                };
                write!(formatter, "Replicate server {direction}")?;
                databases.iter().try_for_each(|database| write!(formatter, " {database}"))
            }
            Self::Console { command } => write!(formatter, "Console server {command}"),
            Self::WebGet { path } => write!(formatter, "WebGet -url {path}"),
            Self::ModifiedNotes => formatter.write_str("DBGetModNoteInfo"),
            Self::FolderChanges => formatter.write_str("GetAllFolderChangesRqst"),
            Self::ProfileOpen { name } => write!(formatter, "ProfileOpen {name}"),
            Self::ProfileUpdate => formatter.write_str("ProfileUpdate"),
            Self::ColorProfileAdd => formatter.write_str("ColorProfileAdd"),
            Self::ColorProfileDelete => formatter.write_str("ColorProfileDelete"),
            _ => formatter.write_str("SetCalProfile"),
        }
    }

    fn print_for_mail(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::SendMessage { size, sending } => print_message(formatter, "SendMessage", size, *sending),
            Self::Answer { size, sending } => print_message(formatter, "SendMessageFromColl", size, *sending),
            Self::Calendar { kind, sending } => {
                let kind = if *kind == CalendarKind::Appointment { "Appointment" } else { "Invitation" };
                write!(formatter, "Cal {kind} {} {}", sending.recipients, sending.nth)
            }
            Self::Accept { nth } => write!(formatter, "Accept {nth}"),
            Self::CheckForNewMail { database } => {
                formatter.write_str("CheckForNewMail")?;
                print_optional(formatter, database.as_ref())
            }
            Self::NewMail { database: None, polls, delay } => {
                write!(formatter, "NewMail (,{polls},{})", delay.as_millis())
            }
            Self::NewMail { database: Some(database), polls, delay } => {
                write!(formatter, "NewMail {database} {polls} {}", delay.as_millis())
            }
            Self::Lookup { name: Some(name), .. } => write!(formatter, "Lookup server $Users {name}"),
            Self::Lookup { name: None, count } => write!(formatter, "NABLookup {count}"),
            _ => formatter.write_str("NewMailPoll"),
        }
    }

    fn print_for_documents(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { view } => {
                formatter.write_str("Open")?;
                print_optional(formatter, view.as_ref())
            }
            Self::OpenCollection { view } => write!(formatter, "OpenColl {view}"),
            Self::GetAll => formatter.write_str("GetAll"),
            Self::Index { view } => {
                formatter.write_str("Index")?;
                print_optional(formatter, view.as_ref())
            }
            Self::SetCollation { number } => write!(formatter, "SetCollation {number}"),
            Self::FindByKey { key } => write!(formatter, "FindByKey {key}"),
            Self::Entries { start: None, .. } => formatter.write_str("Entries"),
            Self::Entries { start: Some(start), count } => write!(formatter, "Entries {start} {count}"),
            Self::Navigate { count, step } => write!(formatter, "Navigate {count} {step}"),
            Self::Read { count } => write!(formatter, "Read {count}"),
            Self::Add { count, size, folder } => {
                write!(formatter, "Add {count} 0 {size}")?;
                folder.iter().try_for_each(|folder| write!(formatter, " -f {folder}"))
            }
            Self::Populate { count, size, folder } => match folder {
                Some(folder) => write!(formatter, "Populate {count} {folder} 0 {size}"),
                None => write!(formatter, "Populate {count} $Inbox 0 {size}"),
            },
            Self::Update { count, stamp } => {
                write!(formatter, "{} {count}", if *stamp { "Stamp" } else { "Update" })
            }
            Self::Delete { count } => write!(formatter, "Delete {count}"),
            Self::DeleteFromCollection { count } => write!(formatter, "DeleteFromColl {count}"),
            Self::Unread { count } => write!(formatter, "Unread {count}"),
            Self::MoveToFolder { count, folder } => write!(formatter, "MoveToFolder {count} {folder}"),
            _ => formatter.write_str("ColFindKey"),
        }
    }
}

fn print_optional(formatter: &mut Formatter<'_>, text: Option<&UserText>) -> fmt::Result {
    text.map_or(Ok(()), |text| write!(formatter, " {text}"))
}

fn print_message(
    formatter: &mut Formatter<'_>,
    name: &str,
    size: &MessageSize,
    sending: Sending,
) -> fmt::Result {
    write!(formatter, "{name} {size} {} {}", sending.recipients, sending.nth)?;
    match size {
        MessageSize::Bytes { attachment, .. } if *attachment > 0 => write!(formatter, " {attachment}"),
        _ => Ok(()),
    }
}

impl Display for MailCommand {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())?;
        match self {
            Self::ImapOpen { mailbox } => write!(formatter, " {}", UserText::from(mailbox.as_str())),
            Self::ImapFetch { count, next } => {
                write!(formatter, " {} {count}", if *next { "NEXT" } else { "CURRENT" })
            }
            Self::ImapLastEntries { count }
            | Self::ImapNewMail { count }
            | Self::ImapDelete { count }
            | Self::CalendarRead { count }
            | Self::CalendarUpdate { count }
            | Self::CalendarDelete { count } => write!(formatter, " {count}"),
            Self::CalendarOpen { days } => write!(formatter, " {days}"),
            Self::Send { size, sending } => {
                let Sending { recipients, nth, .. } = sending;
                write!(formatter, " {size} 80 {recipients} host domain client {nth}")
            }
            Self::Retrieve { count, keep } => {
                let count = count.map_or_else(|| "-1".to_owned(), |count| count.to_string());
                write!(formatter, " user password {count} host{}", if *keep { " -Keep" } else { "" })
            }
            Self::ImapFetchEntry { entry } | Self::ImapSetSeen { entry } => {
                write!(formatter, " {}", entry.name())
            }
            Self::ImapHelp | Self::ImapLogin | Self::ImapList | Self::ImapClose | Self::ImapLogout => Ok(()),
        }
    }
}

impl Display for NavigationStep {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.direction {
            Direction::Next => "NEXT",
            Direction::Previous => "PREV",
            Direction::Current => "CURRENT",
            Direction::Parent => "PARENT",
            Direction::Child => "CHILD",
            Direction::First => "FIRST_PEER",
            Direction::Last => "LAST_PEER",
        })?;
        formatter.write_str(match self.stop {
            Stop::Every => "",
            Stop::Unread => "_UNREAD",
            Stop::Main => "_MAIN",
            Stop::UnreadMain => "_UNREAD_MAIN",
            Stop::Peer => "_PEER",
        })?;
        formatter.write_str(if self.circular { "|CIRCULAR" } else { "" })
    }
}

impl Display for MessageSize {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes { body, .. } => write!(formatter, "{body}"),
            Self::Profile => formatter.write_str("profile"),
            Self::Weighted(choices) => {
                for (index, (size, weight)) in choices.iter().enumerate() {
                    let separator = if index > 0 { "|" } else { "" };
                    write!(formatter, "{separator}{size}:{weight}")?;
                }
                Ok(())
            }
        }
    }
}

/// In milliseconds.
impl Display for TimeRange {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let ms = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
        write!(formatter, "{}-{}", ms(self.low), ms(self.high))
    }
}

impl Display for UserText {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("\"")?;
        for piece in &self.0 {
            match piece {
                // Neither can be written in a script; both come from a variable's value only.
                UserPiece::Text(text) => formatter.write_str(&text.replace(['"', '['], ""))?,
                UserPiece::Number => formatter.write_str("[#]")?,
                UserPiece::Name => formatter.write_str("[user]")?,
            }
        }
        formatter.write_str("\"")
    }
}
