//! The binary `scrinium`.

use std::process::ExitCode;

use scrinium_server::{Scrinium, cli};

/// Gives memory back that a burst of logins or imports took: the system's allocator keeps it, for each of
/// its arenas.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Variables that are not text are nobody's here.
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    cli::run(std::env::args_os(), environment.collect(), &Scrinium)
}
