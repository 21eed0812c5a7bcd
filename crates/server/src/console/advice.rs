//! `show advice`: what `scrinium advise` would say of the time since the start.

use scrinium_advise::{AskError, Moment, Observation, Source, judge};
use scrinium_clock::Clock;
use serde_json::Value;

use super::{Console, ConsoleError, Reply};

pub(super) const HELP: &str =
    "What to change, going by what has happened since the start; scrinium advise looks at a time of its own";

/// The console itself, as rules ask a server.
struct Asked<'c>(&'c Console);

impl Source for Asked<'_> {
    fn ask(&mut self, command: &str) -> Result<Value, AskError> {
        let reply = self.0.execute(command);
        reply.map(|reply| reply.data).map_err(|error| AskError::Refused(error.to_string()))
    }
}

pub(super) fn show(console: &Console) -> Result<Reply, ConsoleError> {
    let mut server = Asked(console);
    let last = Moment::read(&mut server).map_err(|error| ConsoleError::NotFound(error.to_string()))?;
    let now_s = Clock::system().timestamp().as_duration().as_secs_f64();
    let observation = Observation::between(None, last, (0.0, now_s), &mut server)
        .map_err(|error| ConsoleError::NotFound(error.to_string()))?;
    let report = judge(&observation);
    Ok(Reply { text: report.to_text(false, &str::to_owned), data: report.to_json() })
}
