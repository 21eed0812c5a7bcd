//! `load compact`: its options, and its answer.

use scrinium_maintenance::{CompactOrder, CompactStyle};
use serde_json::json;

use super::command::Command;
use super::{ConsoleError, Reply, ServerParts};

pub(super) const ARGUMENTS: &str = "DATABASE or * [-b|-B|-c] [-D] [-S PERCENT] [-Q] [-R]";

pub(super) const HELP: &str = "Gives back the space of what is dead: -b where there is garbage, -B also of contents, \
     -c all files; -D discards indexes, -S only with this much garbage, -Q past the file cache, -R upgrades the format";

/// Reads what follows the words.
pub(super) fn parse(rest: &str) -> Option<Command> {
    let (mut order, mut database, mut upgrade) = (CompactOrder::default(), None, false);
    let mut words = rest.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "-b" => order.style = CompactStyle::Reclaim,
            "-B" => order.style = CompactStyle::Shrink,
            "-c" | "-C" => order.style = CompactStyle::Copy,
            "-D" | "-d" => order.discard_views = true,
            "-Q" | "-q" => order.bypass_file_cache = true,
            "-R" | "--upgrade" => upgrade = true,
            "-S" | "-s" => {
                let percent = words.next()?.trim_end_matches('%').parse().ok()?;
                order.least_garbage_percent = Some(percent).filter(|percent| *percent <= 100)?;
            }
            name if !name.starts_with('-') && database.is_none() => database = Some(name.to_owned()),
            _ => return None,
        }
    }
    let database = database?;
    Some(if upgrade { Command::UpgradeFormat { database } } else { Command::Compact { database, order } })
}

pub(super) fn begin(
    parts: &dyn ServerParts,
    database: &str,
    order: &CompactOrder,
) -> Result<Reply, ConsoleError> {
    let databases = parts.compact(database, order).map_err(ConsoleError::NotFound)?;
    let text = match databases {
        1 => "Compacting 1 database; show tasks shows its progress.\n".to_owned(),
        more => format!("Compacting {more} databases, one after the other; show tasks shows its progress.\n"),
    };
    Ok(Reply { text, data: json!({"databases": databases}) })
}

/// Records of every earlier version are read as they are, and rewritten when they change.
pub(super) fn upgrade(database: &str) -> Reply {
    let text = format!(
        "There is nothing to upgrade: {database} has the newest format that this server knows. Records of earlier \
         versions are read as they are and rewritten as they change.\n"
    );
    Reply { text, data: json!({"database": database, "upgraded": false}) }
}
