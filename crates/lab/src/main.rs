//! The laboratory alone, for machines that drive a server and do not run one.

use std::process::ExitCode;

use clap::Parser;
use scrinium_lab::LabArguments;

#[derive(Parser)]
#[command(name = "scrinium-lab", version)]
struct Program {
    #[command(flatten)]
    arguments: LabArguments,
}

#[tokio::main]
async fn main() -> ExitCode {
    let program = Program::parse();
    match scrinium_lab::run(program.arguments).await {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            eprintln!("{error}");
            error.outcome().into()
        }
    }
}
