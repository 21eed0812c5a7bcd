//! What is made of the command line's own description: manual pages, and completions for shells.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::Value;

use super::{Arguments, Failure, Terminal};

/// Writes completions on standard output.
pub(super) fn completions(shell: Shell, terminal: &Terminal) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "scrinium", &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    terminal.data(&text, &Value::String(text.clone()))
}

/// Writes a page for each command into a folder.
pub(super) fn manual(dir: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::Work(format!("cannot write manual pages into {}: {error}", dir.display()));
    clap_mangen::generate_to(Arguments::command(), dir).map_err(failed)
}
