//! `scrinium console`: one command, or line by line.

use std::io::{self, BufRead, IsTerminal, Read};

use super::arguments::ConsoleArguments;
use super::{Failure, Terminal};
use crate::client::{ClientError, ConsoleClient, own_url};
use crate::config::{Configuration, Settings};
use crate::credentials::{Credentials, CredentialsError, PASSWORD_VARIABLE, Wanted};
use crate::tls;

/// A longer line is no command.
const LINE_LIMIT_BYTES: u64 = 65_536;

pub(super) fn console(
    configuration: &Configuration,
    arguments: &ConsoleArguments,
    environment: &[(String, String)],
    terminal: &Terminal,
) -> Result<(), Failure> {
    let client = client(&configuration.settings(), arguments, environment)?;
    if client.exposes_password() {
        terminal.say("warning: the password goes unencrypted to another machine; better is https");
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::work)?;
    let send = |command: &str| runtime.block_on(client.send(command));
    if arguments.command.is_empty() {
        return converse(send, terminal);
    }
    let reply = send(&arguments.command.join(" ")).map_err(Failure::work)?;
    terminal.data(&reply.text, &reply.data)
}

fn client(
    settings: &Settings,
    arguments: &ConsoleArguments,
    environment: &[(String, String)],
) -> Result<ConsoleClient, Failure> {
    let wanted = Wanted {
        name: arguments.user.clone(),
        file: arguments.credentials.clone(),
        environment: environment
            .iter()
            .find(|(name, _)| name == PASSWORD_VARIABLE)
            .map(|(_, password)| password.clone()),
        data_dir: settings.server.data_dir.clone(),
    };
    let credentials = Credentials::find(&wanted).map_err(|error| match error {
        CredentialsError::Missing => Failure::Use(error.to_string()),
        error => Failure::work(error),
    })?;
    let url = arguments.url.clone().or_else(|| own_url(settings)).unwrap_or_default();
    let trusted: Vec<_> =
        [Some(settings.in_data_dir(&settings.http.tls_certificate)), arguments.trust.clone()]
            .into_iter()
            .flatten()
            .collect();
    ConsoleClient::new(&url, credentials, || tls::client(&trusted)).map_err(|error| match error {
        ClientError::Address(_) => Failure::Use(error.to_string()),
        error => Failure::work(error),
    })
}

/// Reads commands until the input ends, `exit` or `quit`. On a terminal a wrong command is told and the
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
