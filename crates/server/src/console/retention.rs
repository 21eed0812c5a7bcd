//! `load retention`.

use serde_json::json;

use super::{ConsoleError, Reply, ServerParts};
use crate::upkeep::mail::{RETENTION_KIND, apply_retention, retention_days};

pub(super) const ARGUMENTS: &str = "DATABASE or *";

pub(super) const HELP: &str = "Deletes messages that folders of a mail file, or of all, keep no longer (mail.trash_days, mail.junk_days, keep_days)";

/// Begins, on a thread of its own.
pub(super) fn begin(parts: &dyn ServerParts, database: &str) -> Result<Reply, ConsoleError> {
    let databases =
        parts.databases().ok_or_else(|| ConsoleError::NotFound("the server is about to stop".to_owned()))?;
    if parts.tasks().running().iter().any(|task| task.kind == RETENTION_KIND) {
        let reason = "old messages are being deleted; show tasks shows its progress".to_owned();
        return Err(ConsoleError::NotFound(reason));
    }
    let named = Some(database.to_owned()).filter(|name| name != "*");
    if let Some(name) = &named {
        databases.get(name).map_err(|error| ConsoleError::NotFound(format!("{name}: {error}")))?;
    }
    let (tasks, days) = (parts.tasks().clone(), retention_days(&parts.configuration().settings()));
    let work = move || match apply_retention(&databases, &tasks, (days, named.as_deref()), &|| false) {
        Ok(deleted) => tracing::info!(deleted, "old messages were deleted"),
        Err(error) => tracing::warn!(%error, "not all old messages were deleted"),
    };
    let begun = std::thread::Builder::new().name("retention".to_owned()).spawn(work);
    begun.map_err(|error| ConsoleError::NotFound(format!("cannot start a thread for it: {error}")))?;
    let text = "Deleting old messages; show tasks shows its progress.\n".to_owned();
    Ok(Reply { text, data: json!({"database": database}) })
}
