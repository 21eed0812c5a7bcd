//! `WebGet`: what a browser does, as the commands that do the same.
//!
//! Its options are those of the help's page about it. What they stand for runs, and is measured, under the names of
//! the other commands: a server of documents has one interface for browsers and clients.

use crate::arguments::Arguments;
use crate::command::{CalendarKind, Command, Direction, NavigationStep, Stop, UserText};
use crate::error::{Problem, ScriptError};

const OPTIONS: &str = "-url, -mi, -mis, -mir, -mp, -qi, -qis, -qir, -qp, -qt, -qca, -qci, -qmr, -sumonly, -alldata, -walk, -proxy or -holdtime";

/// The commands that a line stands for.
pub(super) fn get(mut arguments: Arguments<'_>) -> Result<Vec<Command>, ScriptError> {
    let mut path = None;
    let mut commands = Vec::new();
    while let Some(word) = arguments.take() {
        match arguments.fixed(word).unwrap_or_default().to_ascii_lowercase().as_str() {
            "-url" => {
                let word = arguments.require("an address")?;
                path = Some(arguments.text(word)?.into_path());
            }
            "-sumonly" | "-alldata" => {}
            "-walk" => skip(&mut arguments, 2)?,
            "-holdtime" => skip(&mut arguments, 3)?,
            "-proxy" => {
                arguments.require("an address")?;
            }
            "-mi" | "-qi" | "-mp" | "-qp" | "-qt" => commands.push(open_inbox()),
            "-mis" | "-qis" => commands.push(send(&mut arguments)?),
            "-mir" | "-qir" => commands.extend(read(&mut arguments)?),
            "-qca" => commands.push(calendar(&mut arguments, CalendarKind::Appointment)?),
            "-qci" => commands.push(calendar(&mut arguments, CalendarKind::Invitation)?),
            "-qmr" => {
                let word = arguments.require("a number of invitations")?;
                let count = arguments.number(word, 1)?.min(100);
                let nth = optional_number(&mut arguments)?.unwrap_or(1);
                commands.extend((0..count).map(|_| Command::Accept { nth }));
            }
            _ => return Err(arguments.error(word, Problem::Choice(OPTIONS))),
        }
    }
    if commands.is_empty() {
        let missing = Problem::Missing {
            command: "WebGet",
            what: "an address or something to do",
            usage: "WebGet -url address [-mir read delete] [-mis bytes recipients nth]",
        };
        let path = path.ok_or_else(|| arguments.at_name(missing))?;
        commands.push(Command::WebGet { path });
    }
    Ok(commands)
}

fn open_inbox() -> Command {
    Command::Open { view: Some(UserText::from("$Inbox")) }
}

fn skip(arguments: &mut Arguments<'_>, count: usize) -> Result<(), ScriptError> {
    for _ in 0..count {
        let word = arguments.require("a number")?;
        arguments.number(word, 0)?;
    }
    Ok(())
}

/// The next word, if it is a number and no option.
fn optional_number(arguments: &mut Arguments<'_>) -> Result<Option<u64>, ScriptError> {
    match arguments.peek() {
        Some(word) if !word.written.starts_with('-') => {
            arguments.take();
            arguments.number(word, 0).map(Some)
        }
        _ => Ok(None),
    }
}

/// `bytes recipients [nth]`
fn send(arguments: &mut Arguments<'_>) -> Result<Command, ScriptError> {
    let word = arguments.require("a size in bytes")?;
    let size = arguments.size(word)?;
    let word = arguments.require("a number of recipients")?;
    let recipients = arguments.number(word, 1)?;
    let nth = optional_number(arguments)?.unwrap_or(1);
    Ok(Command::SendMessage { size, sending: arguments.sending_of(recipients, nth) })
}

/// `read [delete]`: the inbox is opened, and its first messages.
fn read(arguments: &mut Arguments<'_>) -> Result<Vec<Command>, ScriptError> {
    let word = arguments.require("a number of messages")?;
    let count = arguments.number(word, 1)?;
    let delete = optional_number(arguments)?.unwrap_or(0);
    let step = NavigationStep { direction: Direction::Next, stop: Stop::Every, circular: true };
    let mut commands = vec![open_inbox(), Command::Navigate { count, step }];
    if delete > 0 {
        commands.push(Command::Delete { count: delete });
    }
    Ok(commands)
}

/// `bytes minutes days days [recipients] [nth]`: an invitation says to how many people it goes.
fn calendar(arguments: &mut Arguments<'_>, kind: CalendarKind) -> Result<Command, ScriptError> {
    skip(arguments, 4)?;
    let mut recipients = 1;
    if kind == CalendarKind::Invitation {
        let word = arguments.require("a number of recipients")?;
        recipients = arguments.number(word, 1)?;
    }
    let nth = optional_number(arguments)?.unwrap_or(1);
    Ok(Command::Calendar { kind, sending: arguments.sending_of(recipients, nth) })
}
