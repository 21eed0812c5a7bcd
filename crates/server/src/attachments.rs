//! Moving attachments on an administrator's word.

use scrinium_database::Databases;
use scrinium_statistics::Tasks;

use crate::console::MoveAttachments;

/// Begins, on a thread of its own.
pub(crate) fn begin(databases: Databases, tasks: &Tasks, order: &MoveAttachments) -> Result<(), String> {
    if tasks.running().iter().any(|task| task.kind == "attachments") {
        return Err("attachments are being moved; show tasks says how far it is".to_owned());
    }
    let database = Some(order.database.clone()).filter(|name| name != "*");
    if let Some(name) = &database {
        databases.get(name).map_err(|error| format!("{name}: {error}"))?;
    }
    let to = order.to;
    let begun = std::thread::Builder::new()
        .name("attachments".to_owned())
        .spawn(move || move_all(&databases, database.as_deref(), to));
    begun.map(drop).map_err(|error| format!("no thread can be had for it: {error}"))
}

fn move_all(databases: &Databases, database: Option<&str>, to: scrinium_database::Relocation) {
    match databases.relocate_attachments(database, to) {
        Ok(done) => tracing::info!(
            examined = done.examined,
            moved = done.moved,
            bytes = done.moved_bytes,
            failed = done.failed,
            stopped = done.stopped,
            "attachments were moved"
        ),
        Err(error) => {
            tracing::warn!(%error, "attachments were not all moved; load attachments goes on with the rest");
        }
    }
}
