//! The laboratory alone, for machines that drive a server and do not run one.

use std::process::ExitCode;

use clap::Parser;
use scrinium_lab::{LabArguments, LabError};
use scrinium_terminal::CommandOutcome;

#[derive(Parser)]
#[command(name = "scrinium-lab", version)]
struct Program {
    #[command(flatten)]
    arguments: LabArguments,
}

#[tokio::main]
async fn main() -> ExitCode {
    let program = match Program::try_parse() {
        Ok(program) => program,
        Err(told) => return ended(scrinium_terminal::tell_usage(&told).map_err(LabError::from)),
    };
    ended(scrinium_lab::run(program.arguments).await)
}

fn ended(outcome: Result<CommandOutcome, LabError>) -> ExitCode {
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            if !error.is_silent() {
                scrinium_terminal::say(&error.to_string());
            }
            error.outcome().into()
        }
    }
}
