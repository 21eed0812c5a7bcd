//! `scrinium advise`: asks a running server on its console, twice, and tells what to change.

use std::time::{Duration, Instant};

use scrinium_advise::{AskError, Moment, Observation, Source, judge};
use scrinium_clock::{Clock, milliseconds};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::arguments::AdviseArguments;
use super::connect::connect;
use super::{Failure, Terminal};
use crate::client::{ClientError, ConsoleClient};
use crate::config::Configuration;

/// How often the bar moves.
const MOVE_EVERY: Duration = Duration::from_millis(200);

/// A longer look would be of days that are not alike.
const LONGEST: Duration = Duration::from_secs(7 * 86_400);

/// A server that is asked on its console.
struct Asked {
    client: ConsoleClient,
    runtime: Runtime,
}

impl Source for Asked {
    fn ask(&mut self, command: &str) -> Result<Value, AskError> {
        let reply = self.runtime.block_on(self.client.send(command));
        reply.map(|reply| reply.data).map_err(|error| match error {
            ClientError::Refused(reason) => AskError::Refused(reason),
            error => AskError::Failed(error.to_string()),
        })
    }
}

pub(super) fn advise(
    configuration: &Configuration,
    arguments: &AdviseArguments,
    environment: &[(String, String)],
    terminal: &Terminal,
) -> Result<(), Failure> {
    if arguments.time > LONGEST {
        return Err(Failure::Use("--for: a week is the longest".to_owned()));
    }
    let client = connect(&configuration.settings(), &arguments.connection, environment, terminal)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::work)?;
    let mut server = Asked { client, runtime };
    let mut first = None;
    let began = Instant::now();
    if !arguments.time.is_zero() {
        first = Some(Moment::read(&mut server).map_err(Failure::work)?);
        wait(arguments.time, terminal);
    }
    let waited_s = began.elapsed().as_secs_f64();
    let last = Moment::read(&mut server).map_err(Failure::work)?;
    let now_s = Clock::system().timestamp().as_duration().as_secs_f64();
    let observation =
        Observation::between(first, last, (waited_s, now_s), &mut server).map_err(Failure::work)?;
    let report = judge(&observation);
    let text = report.to_text(arguments.all, &|part| terminal.emphasised(part));
    terminal.data(&text, &report.to_json())?;
    if report.has_advice() { Err(Failure::Found) } else { Ok(()) }
}

/// Waits, and shows on a terminal for how long still.
fn wait(time: Duration, terminal: &Terminal) {
    let bar = terminal.bar(milliseconds(time), "Looking at the server {bar:30} {percent} %  {eta} left");
    let began = Instant::now();
    while let Some(left) = time.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
        bar.set_position(milliseconds(began.elapsed()));
        std::thread::sleep(left.min(MOVE_EVERY));
    }
    bar.finish_and_clear();
}
