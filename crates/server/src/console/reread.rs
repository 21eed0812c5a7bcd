//! `load reread`: its option, and its answer.

use serde_json::json;

use super::command::Command;
use super::{ConsoleError, Reply, ServerParts};

pub(super) const ARGUMENTS: &str = "[DATABASE or *]";

pub(super) const HELP: &str = "Reads the messages of mail files again, for what an earlier release read otherwise; resumes where it was stopped";

/// Reads what follows the words.
pub(super) fn parse(rest: &str) -> Option<Command> {
    let mut words = rest.split_whitespace();
    let database = words.next().unwrap_or("*").to_owned();
    words.next().is_none().then_some(Command::Reread { database })
}

pub(super) fn begin(parts: &dyn ServerParts, database: &str) -> Result<Reply, ConsoleError> {
    parts.reread(database).map_err(ConsoleError::NotFound)?;
    let text = "Messages are being read again; show tasks shows its progress.\n".to_owned();
    Ok(Reply { text, data: json!({ "database": database }) })
}
