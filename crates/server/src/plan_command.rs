//! `scrinium plan`: the planner, which reads its own command line.

use std::ffi::OsString;

use clap::Parser;
use scrinium_planner::PlanArguments as Planner;
use scrinium_terminal::CommandOutcome;

use crate::cli::{Failure, PlanArguments, Terminal};

/// The planner's command line as one of its own.
#[derive(Parser)]
#[command(
    name = "scrinium plan",
    bin_name = "scrinium plan",
    about = "What machines an organisation needs: processors, memory, disk, settings, response, each with its range and source",
    max_term_width = 100
)]
struct CommandLine {
    #[command(flatten)]
    planner: Planner,
}

/// Carries out the command. The switch --json for every command may stand before what the planner reads itself.
pub(crate) fn run(arguments: &PlanArguments, terminal: &Terminal) -> Result<(), Failure> {
    if terminal.is_colourless() {
        scrinium_terminal::leave_colours_out();
    }
    let name = [OsString::from("scrinium plan")].into_iter();
    let switch = terminal.wants_json().then(|| OsString::from("--json"));
    let words = name.chain(arguments.arguments.iter().cloned()).chain(switch);
    let parsed = match CommandLine::try_parse_from(words) {
        Ok(parsed) => parsed,
        Err(told) => return terminal.tell_usage(&told),
    };
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::work)?;
    let outcome = runtime.block_on(scrinium_planner::run(parsed.planner)).map_err(|error| {
        if error.is_silent() { Failure::OutputClosed } else { Failure::of(error.outcome(), error) }
    })?;
    let why = match outcome {
        CommandOutcome::Done => return Ok(()),
        CommandOutcome::Missed => {
            "an objective or a limit is not held, or a run was not valid; what was printed says which"
        }
        _ => "the plan could not be made",
    };
    Err(Failure::of(outcome, why))
}
