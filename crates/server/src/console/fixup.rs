//! `load fixup`: its options.

use serde_json::json;

use super::{ConsoleError, Reply, ServerParts};

/// `load fixup`: which databases, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixupOrder {
    /// The database, or `*` for all of them.
    pub database: String,
    /// Also hold indexes of views and folders against their documents (`-V`).
    pub views: bool,
    /// Do not read the bytes of attachments (`-Q`).
    pub quick: bool,
    /// Change nothing (`-N`).
    pub look: bool,
    /// Tell every finding in the server's messages (`-L`).
    pub log: bool,
}

impl FixupOrder {
    /// What follows `load fixup`. `None`: it is not as it must be.
    pub(super) fn parse(rest: &str) -> Option<Self> {
        let (options, names): (Vec<&str>, Vec<&str>) =
            rest.split_whitespace().partition(|word| word.starts_with('-'));
        let database = match names.as_slice() {
            [] => "*",
            [database] => database,
            _ => return None,
        };
        let mut order =
            Self { database: database.to_owned(), views: false, quick: false, look: false, log: false };
        for option in options {
            match option.to_ascii_uppercase().as_str() {
                "-V" => order.views = true,
                "-Q" => order.quick = true,
                "-N" => order.look = true,
                "-L" => order.log = true,
                // In Domino it means all documents, and not only those changed since the last time: always so here.
                "-F" => {}
                _ => return None,
            }
        }
        Some(order)
    }
}

pub(super) fn begin(parts: &dyn ServerParts, order: &FixupOrder) -> Result<Reply, ConsoleError> {
    parts.fixup(order).map_err(ConsoleError::NotFound)?;
    let text = "Fixup has started; show tasks shows its progress, show fixup what it found.\n".to_owned();
    Ok(Reply { text, data: json!({"database": order.database}) })
}
