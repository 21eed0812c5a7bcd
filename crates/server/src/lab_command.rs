//! `scrinium lab`: the laboratory, which reads its own command line.

use std::ffi::OsString;

use clap::Parser;
use scrinium_lab::LabArguments as Laboratory;
use scrinium_terminal::CommandOutcome;

use crate::cli::{Failure, LabArguments, Terminal};

/// The laboratory's command line as one of its own.
#[derive(Parser)]
#[command(name = "scrinium lab", bin_name = "scrinium lab")]
struct CommandLine {
    #[command(flatten)]
    laboratory: Laboratory,
}

/// Carries out the command.
pub(crate) fn run(arguments: &LabArguments, terminal: &Terminal) -> Result<(), Failure> {
    if terminal.is_colourless() {
        scrinium_terminal::leave_colours_out();
    }
    // A driver must not be late because a server next to it comes first; the servers that it starts begin alike.
    scrinium_store::come_before_others();
    let words = [OsString::from("scrinium lab")].into_iter().chain(arguments.arguments.iter().cloned());
    let parsed = match CommandLine::try_parse_from(words) {
        Ok(parsed) => parsed,
        Err(told) => return terminal.tell_usage(&told),
    };
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::work)?;
    let outcome = runtime.block_on(scrinium_lab::run(parsed.laboratory)).map_err(|error| {
        if error.is_silent() { Failure::OutputClosed } else { Failure::of(error.outcome(), error) }
    })?;
    let why = match outcome {
        CommandOutcome::Done => return Ok(()),
        CommandOutcome::Missed => "the run is not valid or missed an objective; the report says why",
        _ => "the run failed; the report says why",
    };
    Err(Failure::of(outcome, why))
}
