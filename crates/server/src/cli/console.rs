//! `scrinium console`: one command, or line by line.

use std::io::{self, BufRead, IsTerminal, Read};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::arguments::{ConnectionArguments, ConsoleArguments, MailTraceArguments, QuarantineCommand};
use super::connect::connect;
use super::mail_arguments::MailUndeleteArguments;
use super::{Failure, Terminal};
use crate::client::ClientError;
use crate::config::Configuration;

/// How often it is looked whether a search has ended, and said how far it is.
const LOOK_EVERY: Duration = Duration::from_millis(300);
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// A longer line is no command.
const LINE_LIMIT_BYTES: u64 = 65_536;

pub(super) fn console(
    configuration: &Configuration,
    arguments: &ConsoleArguments,
    environment: &[(String, String)],
    terminal: &Terminal,
) -> Result<(), Failure> {
    if arguments.command.is_empty() {
        let client = connect(&configuration.settings(), &arguments.connection, environment, terminal)?;
        let runtime = runtime()?;
        return converse(|command: &str| runtime.block_on(client.send(command)), terminal);
    }
    let command = arguments.command.join(" ");
    one(configuration, &arguments.connection, environment, terminal, &command)
}

/// `scrinium mail trace`
pub(super) fn trace(
    configuration: &Configuration,
    arguments: &MailTraceArguments,
    environment: &[(String, String)],
    terminal: &Terminal,
) -> Result<(), Failure> {
    let command = format!("show message {}", arguments.message_id);
    one(configuration, &arguments.connection, environment, terminal, &command)
}

/// `scrinium mail undelete`
pub(super) fn undelete(
    configuration: &Configuration,
    arguments: &MailUndeleteArguments,
    environment: &[(String, String)],
    terminal: &Terminal,
) -> Result<(), Failure> {
    one(configuration, &arguments.connection, environment, terminal, &arguments.command())
}

/// `scrinium mail search`, `move` and `purge`: begun on the server, and waited for.
pub(super) fn search_mail(
    (configuration, connection, environment, terminal): (
        &Configuration,
        &ConnectionArguments,
        &[(String, String)],
        &Terminal,
    ),
    command: &str,
) -> Result<(), Failure> {
    let client = connect(&configuration.settings(), connection, environment, terminal)?;
    let runtime = runtime()?;
    let send = |command: &str| runtime.block_on(client.send(command)).map_err(Failure::work);
    let begun = send(command)?;
    let number = begun.data.get("search").and_then(Value::as_u64);
    let number = number.ok_or_else(|| Failure::Work("the server names no search".to_owned()))?;
    let mut told_at = Instant::now();
    // The server bounds it; anyone who waits no longer cancels this, and not the search.
    let reply = loop {
        let reply = send(&format!("show mailsearch {number}"))?;
        if reply.data.get("running") != Some(&Value::Bool(true)) {
            break reply;
        }
        if told_at.elapsed() >= TOLD_EVERY {
            told_at = Instant::now();
            terminal.say(send("show tasks")?.text.trim_end());
        }
        std::thread::sleep(LOOK_EVERY);
    };
    terminal.data(&reply.text, &reply.data)?;
    let is_whole = reply.data.get("stopped") == Some(&Value::Bool(false))
        && reply.data.get("failed").and_then(Value::as_array).is_none_or(Vec::is_empty);
    if is_whole { Ok(()) } else { Err(Failure::Found) }
}

/// `scrinium mail quarantine`
pub(super) fn quarantine(
    configuration: &Configuration,
    command: &QuarantineCommand,
    environment: &[(String, String)],
    terminal: &Terminal,
) -> Result<(), Failure> {
    let (connection, command) = match command {
        QuarantineCommand::List(asked) => (&asked.connection, "show quarantine".to_owned()),
        QuarantineCommand::Release(asked) => {
            (&asked.connection, format!("tell quarantine release {}", asked.id))
        }
        QuarantineCommand::Delete(asked) => {
            (&asked.connection, format!("tell quarantine delete {}", asked.id))
        }
    };
    one(configuration, connection, environment, terminal, &command)
}

/// One command, and its answer.
fn one(
    configuration: &Configuration,
    connection: &ConnectionArguments,
    environment: &[(String, String)],
    terminal: &Terminal,
    command: &str,
) -> Result<(), Failure> {
    let client = connect(&configuration.settings(), connection, environment, terminal)?;
    let reply = runtime()?.block_on(client.send(command)).map_err(Failure::work)?;
    terminal.data(&reply.text, &reply.data)
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::work)
}

/// Reads commands until the input ends, `exit` or `quit`. On a terminal a wrong command is reported and the
/// next one read; in a script it ends the reading.
fn converse(
    send: impl Fn(&str) -> Result<crate::console::Reply, ClientError>,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let mut input = io::stdin().lock();
    let interactive = input.is_terminal();
    loop {
        if interactive {
            terminal.prompt("scrinium> ");
        }
        let mut line = String::new();
        let read = input.by_ref().take(LINE_LIMIT_BYTES).read_line(&mut line).map_err(Failure::work)?;
        if read == 0 {
            return Ok(());
        }
        let command = line.trim();
        if ["exit", "quit"].contains(&command) {
            return Ok(());
        }
        if command.is_empty() {
            continue;
        }
        match send(command) {
            Ok(reply) => terminal.data(&reply.text, &reply.data)?,
            Err(ClientError::Refused(reason)) if interactive => terminal.complain(&reason),
            Err(error) => return Err(Failure::work(error)),
        }
    }
}
