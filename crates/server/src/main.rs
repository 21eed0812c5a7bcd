//! The binary `scrinium`.

use std::process::ExitCode;

use scrinium_server::{Scrinium, cli};

fn main() -> ExitCode {
    // Variables that are not text are nobody's here.
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    cli::run(std::env::args_os(), environment.collect(), &Scrinium)
}
