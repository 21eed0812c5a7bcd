//! From a line to the commands that send requests.

use crate::ScriptNote;
use crate::arguments::Arguments;
use crate::command::{
    CalendarKind, Command, Direction, MessageSize, NavigationStep, ReplicationDirection, Stop, UserText,
};
use crate::error::{Problem, ScriptError, in_quotes};
use crate::mail::MailCommand;
use crate::table::{CommandInfo, Support};
use crate::web;

/// Options of `Open` that say how Domino is to open a view; here every view is opened in one way.
const OPEN_OPTIONS: &[&str] = &[
    "noupdate",
    "rebuild",
    "invalidate",
    "verify",
    "do_not_create",
    "verify_shared_view_note",
    "reopen_collection",
    "associate_unread",
    "getname_list",
    "noupdateunread",
    "namespace",
    "update",
];

/// The most times that `NewMail` asks.
const MOST_POLLS: u64 = 1000;

type Parsed = Result<Command, ScriptError>;

/// A file that a message is to carry has this many bytes, as the smaller of the two that Server.Load's profile attaches,
/// unless `AttachmentBytes` says otherwise.
const USUAL_ATTACHMENT_BYTES: u64 = 50_000;

/// What one line sends. Of commands that cannot be run the words are not looked at.
pub(super) fn action(
    info: &'static CommandInfo,
    mut arguments: Arguments<'_>,
    notes: &mut Vec<ScriptNote>,
) -> Result<Vec<Command>, ScriptError> {
    if info.support == Support::Known {
        return Ok(vec![Command::Known(info.name)]);
    }
    if info.name == "WebGet" {
        return web::get(arguments);
    }
    if let Some(command) = MailCommand::parse(info.name, &mut arguments)? {
        arguments.finish()?;
        return Ok(vec![command]);
    }
    let command = match info.name {
        "Open" | "OpenColl" | "CloseColl" | "GetAll" | "Index" | "SetCollation" | "FindByKey"
        | "ColFindKey" | "Entries" | "Navigate" => view_action(info.name, &mut arguments)?,
        "SendMessage"
        | "SendMessageFromColl"
        | "Cal"
        | "Accept"
        | "CheckForNewMail"
        | "NewMail"
        | "NewMailPoll"
        | "Lookup"
        | "NABLookup" => mail_action(info.name, &mut arguments, notes)?,
        "ChangeTo"
        | "DbDelete"
        | "DBGetModNoteInfo"
        | "GetAllFolderChangesRqst"
        | "Replicate"
        | "Console"
        | "ProfileOpen"
        | "ProfileUpdate"
        | "ColorProfileAdd"
        | "ColorProfileDelete"
        | "SetCalProfile" => database_action(info.name, &mut arguments)?,
        _ => document_action(info.name, &mut arguments)?,
    };
    arguments.finish()?;
    Ok(vec![command])
}

fn view_action(name: &str, arguments: &mut Arguments<'_>) -> Parsed {
    Ok(match name {
        "Open" => {
            let view = arguments.take().map(|word| arguments.text(word)).transpose()?;
            while OPEN_OPTIONS.iter().any(|option| arguments.take_keyword(option)) {}
            Command::Open { view }
        }
        "OpenColl" => {
            let word = arguments.require("a view")?;
            Command::OpenCollection { view: arguments.text(word)? }
        }
        "Index" => Command::Index { view: arguments.take().map(|word| arguments.text(word)).transpose()? },
        "GetAll" => Command::GetAll,
        "SetCollation" => Command::SetCollation { number: arguments.number_or(0, 0)? },
        "FindByKey" => find_by_key(arguments)?,
        "ColFindKey" => {
            client_version(arguments);
            Command::FindPeriod
        }
        "Entries" => {
            let start = arguments.take().map(|word| arguments.number(word, 0)).transpose()?;
            Command::Entries { start: start.map(|start| start.max(1)), count: arguments.number_or(1, 20)? }
        }
        _ => navigate(arguments)?,
    })
}

/// `"item#value" [options]`: the value of the first key is looked for, by its beginning.
fn find_by_key(arguments: &mut Arguments<'_>) -> Parsed {
    const OPTIONS: [&str; 4] = ["NO_ACCENT", "NO_CASE", "PARTIAL", "FIRST_EQUAL"];
    let word = arguments.require("a key")?;
    let mut text = arguments.text(word)?;
    text.keep_first_key();
    while OPTIONS.iter().any(|option| arguments.take_keyword(option)) {}
    Ok(Command::FindByKey { key: text })
}

fn navigate(arguments: &mut Arguments<'_>) -> Parsed {
    let mut count = 1;
    let mut step = NavigationStep { direction: Direction::Next, stop: Stop::Every, circular: false };
    while let Some(word) = arguments.take() {
        for option in word.written.split('|') {
            match option.to_ascii_uppercase().as_str() {
                "CIRCULAR" => step.circular = true,
                // Documents are opened one after the other, whichever of them is answered first.
                "ASYNC" | "CONTINUE" => {}
                _ if option.starts_with(|first: char| first.is_ascii_digit() || first == '[') => {
                    count = arguments.number(word, 1)?;
                }
                option => match navigation(option) {
                    Some((direction, stop)) => (step.direction, step.stop) = (direction, stop),
                    None => return Err(arguments.error(word, Problem::Choice(NAVIGATION))),
                },
            }
        }
    }
    Ok(Command::Navigate { count, step })
}

const NAVIGATION: &str = "NEXT, PREV or CURRENT, alone or with _UNREAD, _MAIN, _UNREAD_MAIN, _PEER, \
     _EXPANDED or _NONCATEGORY, PARENT, CHILD, FIRST_PEER, LAST_PEER, CIRCULAR, ASYNC or a number; \
     the laboratory selects, searches and collapses nothing";

/// What an option of `Navigate` means where nothing is collapsed and categories are no entries.
fn navigation(option: &str) -> Option<(Direction, Stop)> {
    let alone = match option {
        "PARENT" => Some(Direction::Parent),
        "CHILD" => Some(Direction::Child),
        "FIRST_PEER" => Some(Direction::First),
        "LAST_PEER" => Some(Direction::Last),
        _ => None,
    };
    if let Some(direction) = alone {
        return Some((direction, Stop::Every));
    }
    let (direction, stop) = option.split_once('_').unwrap_or((option, ""));
    let direction = match direction {
        "NEXT" => Direction::Next,
        "PREV" => Direction::Previous,
        "CURRENT" => Direction::Current,
        _ => return None,
    };
    let stop = match stop {
        "" | "EXPANDED" | "NONCATEGORY" | "EXP_NONCATEGORY" => Stop::Every,
        "UNREAD" | "EXPANDED_UNREAD" => Stop::Unread,
        "MAIN" | "MAIN_ALWAYS" => Stop::Main,
        "UNREAD_MAIN" => Stop::UnreadMain,
        "PEER" => Stop::Peer,
        _ => return None,
    };
    Some((direction, stop))
}

fn document_action(name: &str, arguments: &mut Arguments<'_>) -> Parsed {
    Ok(match name {
        "Read" => Command::Read { count: arguments.number_or(1, 1)? },
        "Add" => add(arguments)?,
        "Stamp" | "Update" => Command::Update { count: arguments.number_or(1, 1)?, stamp: name == "Stamp" },
        "Delete" => Command::Delete { count: arguments.number_or(0, 1)? },
        "Unread" => Command::Unread { count: arguments.number_or(1, 1)? },
        "DeleteFromColl" => delete_from_collection(arguments)?,
        "MoveToFolder" => {
            let word = arguments.require("a number of documents")?;
            let count = arguments.number(word, 1)?;
            let word = arguments.require("a folder")?;
            Command::MoveToFolder { count, folder: arguments.text(word)? }
        }
        _ => populate(arguments)?,
    })
}

/// `[view] count [N7|N8]`; the view is the one that was opened.
fn delete_from_collection(arguments: &mut Arguments<'_>) -> Parsed {
    let word = arguments.require("a number of documents")?;
    let count = match arguments.number(word, 0) {
        Ok(count) => count,
        Err(_) => {
            let word = arguments.require("a number of documents")?;
            arguments.number(word, 0)?
        }
    };
    client_version(arguments);
    Ok(Command::DeleteFromCollection { count })
}

fn add(arguments: &mut Arguments<'_>) -> Parsed {
    let word = arguments.require("a number of documents")?;
    let count = arguments.number(word, 1)?;
    let mut folder = arguments.take_keyword("-f");
    let mut size = None;
    if !folder {
        arguments.number_or(0, 0)?;
        folder = arguments.take_keyword("-f");
        if !folder {
            size = Some(arguments.size_or_normal()?);
            folder = arguments.take_keyword("-f");
        }
    }
    let folder = if folder {
        let word = arguments.require("a folder")?;
        folder_named(arguments.text(word)?)
    } else {
        None
    };
    let size = match size {
        Some(size) => size,
        None => arguments.size_or_normal()?,
    };
    Ok(Command::Add { count, size, folder })
}

fn populate(arguments: &mut Arguments<'_>) -> Parsed {
    let word = arguments.require("a number of documents")?;
    let count = arguments.number(word, 0)?;
    let folder = arguments.take().map(|word| arguments.text(word)).transpose()?;
    arguments.number_or(0, 0)?;
    Ok(Command::Populate { count, size: arguments.size_or_normal()?, folder: folder.and_then(folder_named) })
}

/// The inbox is where documents stand anyway.
fn folder_named(folder: UserText) -> Option<UserText> {
    let inbox = ["$Inbox", "($Inbox)"].iter().any(|name| folder.is(name));
    (!inbox).then_some(folder)
}

/// `N7` or `N8`: which client's calls Domino's own driver sends. There is one kind here.
fn client_version(arguments: &mut Arguments<'_>) {
    while ["N6", "N7", "N8", "N85", "init"].iter().any(|version| arguments.take_keyword(version)) {}
}

fn mail_action(name: &str, arguments: &mut Arguments<'_>, notes: &mut Vec<ScriptNote>) -> Parsed {
    Ok(match name {
        "SendMessage" => {
            let (size, sending) = message(arguments, notes)?;
            Command::SendMessage { size, sending }
        }
        "SendMessageFromColl" => {
            let (size, sending) = message(arguments, notes)?;
            Command::Answer { size, sending }
        }
        "Cal" => calendar(arguments)?,
        "Accept" => Command::Accept { nth: arguments.number_or(1, 1)? },
        "CheckForNewMail" => {
            let database = arguments.take().map(|word| arguments.text(word)).transpose()?;
            arguments.take_keyword("pushlocal");
            Command::CheckForNewMail { database }
        }
        "NewMail" => new_mail(arguments)?,
        "NewMailPoll" => {
            client_version(arguments);
            Command::NewMailPoll
        }
        "NABLookup" => Command::Lookup { name: None, count: arguments.number_or(1, 1)? },
        _ => {
            // Server, namespace, names.
            let mut values = arguments.values()?.into_iter();
            let missing = Problem::Missing {
                command: "Lookup",
                what: "a name",
                usage: "Lookup (server, namespace, name)",
            };
            let mut name = values.nth(2).ok_or_else(|| arguments.at_name(missing))?;
            for more in values {
                name.push(" ");
                name.append(more);
            }
            Command::Lookup { name: Some(name), count: 1 }
        }
    })
}

/// `bytes|profile [recipients] [nth] [attachment] [N7|N8]`
fn message(
    arguments: &mut Arguments<'_>,
    notes: &mut Vec<ScriptNote>,
) -> Result<(MessageSize, super::command::Sending), ScriptError> {
    let word = arguments.require("a size in bytes, or profile,")?;
    let mut size = arguments.size(word)?;
    let sending = arguments.sending()?;
    client_version(arguments);
    if let MessageSize::Bytes { attachment, .. } = &mut size {
        *attachment = usize::try_from(attachment_bytes(arguments, notes)?).unwrap_or(usize::MAX);
        client_version(arguments);
    }
    Ok((size, sending))
}

/// The name of a file, as in Server.Load, or a number of bytes. A file is not read: it may lie on another machine, and
/// each of a run's messages is to be the same, no matter who sends it.
fn attachment_bytes(arguments: &mut Arguments<'_>, notes: &mut Vec<ScriptNote>) -> Result<u64, ScriptError> {
    let Some(word) = arguments.take() else { return Ok(0) };
    let text = arguments.text(word)?;
    let is_number = text.is_of(|character| character.is_ascii_digit()) || word.written.starts_with('-');
    if text.is("") {
        return Ok(0);
    }
    if is_number {
        return arguments.number(word, 0);
    }
    let usual = arguments.variable_as_number("AttachmentBytes").unwrap_or(USUAL_ATTACHMENT_BYTES);
    notes.push(ScriptNote {
        line: arguments.line_number(),
        text: format!(
            "{} is not read: messages carry {usual} bytes in its place; write its size in bytes there, or set AttachmentBytes",
            in_quotes(&word.written)
        ),
    });
    Ok(usual)
}

fn calendar(arguments: &mut Arguments<'_>) -> Parsed {
    let word = arguments.require("Appointment or Invitation")?;
    let kind = match arguments.fixed(word)?.to_ascii_lowercase().as_str() {
        "appointment" => CalendarKind::Appointment,
        "invitation" => CalendarKind::Invitation,
        _ => return Err(arguments.error(word, Problem::Choice("Appointment or Invitation"))),
    };
    Ok(Command::Calendar { kind, sending: arguments.sending()? })
}

/// `NewMail(database, polls, milliseconds between them)`
fn new_mail(arguments: &mut Arguments<'_>) -> Parsed {
    let mut values = arguments.values()?.into_iter();
    let database = values.next().filter(|name| !name.is(""));
    let polls = match values.next() {
        Some(value) => arguments.value_as_number(&value, 1)?.min(MOST_POLLS),
        None => 1,
    };
    let delay_ms = match values.next() {
        Some(value) => arguments.value_as_number(&value, 0)?,
        None => 1000,
    };
    Ok(Command::NewMail { database, polls, delay: std::time::Duration::from_millis(delay_ms) })
}

fn database_action(name: &str, arguments: &mut Arguments<'_>) -> Parsed {
    Ok(match name {
        "ChangeTo" => change_to(arguments)?,
        "DbDelete" => {
            let word = arguments.require("a database")?;
            Command::DeleteDatabase { database: arguments.text(word)? }
        }
        "DBGetModNoteInfo" => {
            client_version(arguments);
            Command::ModifiedNotes
        }
        "GetAllFolderChangesRqst" => Command::FolderChanges,
        "Replicate" => replicate(arguments)?,
        "Console" => {
            arguments.require("a server")?;
            let mut words = arguments.values()?.into_iter();
            let mut command = words.next().ok_or_else(|| {
                arguments.at_name(Problem::Missing {
                    command: "Console",
                    what: "a command of the console",
                    usage: "Console server command",
                })
            })?;
            for word in words {
                command.push(" ");
                command.append(word);
            }
            Command::Console { command }
        }
        "ProfileOpen" => Command::ProfileOpen {
            name: match arguments.take() {
                Some(word) => arguments.text(word)?,
                None => UserText::from("CalendarProfile"),
            },
        },
        "ProfileUpdate" => {
            arguments.take();
            Command::ProfileUpdate
        }
        "ColorProfileAdd" => Command::ColorProfileAdd,
        "ColorProfileDelete" => Command::ColorProfileDelete,
        _ => Command::SetCalendarProfile,
    })
}

fn change_to(arguments: &mut Arguments<'_>) -> Parsed {
    let word = arguments.require("a database")?;
    let database = arguments.text(word)?;
    let mut keep_open = arguments.take_keyword("-KeepOpen");
    let mut template = None;
    if !keep_open {
        if let Some(word) = arguments.take() {
            template = Some(arguments.text(word)?).filter(|template| !template.is(""));
        }
        keep_open = arguments.take_keyword("-KeepOpen");
    }
    Ok(Command::ChangeTo { database, template, keep_open })
}

/// `server [PUSH|PULL|BOTH] [database|database] [options]`
fn replicate(arguments: &mut Arguments<'_>) -> Parsed {
    const OPTIONS: [&str; 8] = [
        "UPDATE_COLL",
        "CLOSE_SESSION",
        "SUMMARY_ONLY",
        "TRUNCATE",
        "PRI_LOW",
        "PRI_MED",
        "PRI_HI",
        "WORKSTATION",
    ];
    arguments.require("a server")?;
    let mut direction = ReplicationDirection::Both;
    for (keyword, meant) in
        [("PUSH", ReplicationDirection::Push), ("PULL", ReplicationDirection::Pull), ("BOTH", direction)]
    {
        if arguments.take_keyword(keyword) {
            direction = meant;
        }
    }
    let mut databases = Vec::new();
    while let Some(word) = arguments.take() {
        let option = word
            .written
            .split('|')
            .all(|part| OPTIONS.iter().any(|option| option.eq_ignore_ascii_case(part)));
        if !option {
            databases.extend(arguments.text(word)?.split('|'));
        }
    }
    Ok(Command::Replicate { direction, databases })
}
