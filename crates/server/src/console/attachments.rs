//! `load attachments`: its options, and its answer.

use scrinium_contents::Relocation;
use serde_json::json;

use super::command::Command;
use super::{ConsoleError, Reply, ServerParts};

pub(super) const ARGUMENTS: &str = "[DATABASE or *] [--to-store|--to-volume] [--anew]";

pub(super) const HELP: &str = "Moves attachments to where attachment.store and attachment.threshold want them; \
     --to-volume all of them back to the documents. Resumes where an earlier one was stopped; --anew looks at all again";

/// `load attachments`: which, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveAttachments {
    /// The database, or `*` for all of them.
    pub database: String,
    /// Where to.
    pub to: Relocation,
    /// Look at all of them, also where an earlier one has been.
    pub again: bool,
}

/// Reads what follows the words.
pub(super) fn parse(rest: &str) -> Option<Command> {
    let (mut options, names): (Vec<&str>, Vec<&str>) =
        rest.split_whitespace().partition(|word| word.starts_with('-'));
    let given = options.len();
    options.retain(|option| *option != "--anew");
    let again = options.len() < given;
    let to = match options.as_slice() {
        [] | ["--to-store"] => Relocation::AsSet,
        ["--to-volume"] => Relocation::ToVolume,
        _ => return None,
    };
    let database = match names.as_slice() {
        [] => "*",
        [database] => database,
        _ => return None,
    };
    Some(Command::MoveAttachments(MoveAttachments { database: database.to_owned(), to, again }))
}

pub(super) fn begin(parts: &dyn ServerParts, order: &MoveAttachments) -> Result<Reply, ConsoleError> {
    parts.move_attachments(order).map_err(ConsoleError::NotFound)?;
    let text = "Attachments are being moved; show tasks shows its progress.\n".to_owned();
    Ok(Reply { text, data: json!({"database": order.database}) })
}
