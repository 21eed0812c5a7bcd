//! Moving attachments on an administrator's word.

use scrinium_catalog::Databases;
use scrinium_contents::Relocation;
use scrinium_statistics::Tasks;

use crate::console::MoveAttachments;

/// Begins, on a thread of its own.
pub(crate) fn begin(databases: Databases, tasks: &Tasks, order: &MoveAttachments) -> Result<(), String> {
    if tasks.running().iter().any(|task| task.kind == "attachments") {
        return Err("attachments are being moved; show tasks shows its progress".to_owned());
    }
    let database = Some(order.database.clone()).filter(|name| name != "*");
    if let Some(name) = &database {
        databases.get(name).map_err(|error| format!("{name}: {error}"))?;
    }
    let (to, again) = (order.to, order.again);
    let begun = std::thread::Builder::new()
        .name("attachments".to_owned())
        .spawn(move || move_all(&databases, database.as_deref(), to, again));
    begun.map(drop).map_err(|error| format!("cannot start a thread for it: {error}"))
}

/// Tells of a move that was ended before its time, by a restart perhaps.
pub(crate) fn report_unfinished(databases: &Databases) {
    match databases.has_attachments_to_relocate() {
        Ok(false) => {}
        Ok(true) => {
            tracing::info!("not all attachments were moved; load attachments resumes where it was stopped");
        }
        Err(error) => tracing::warn!(%error, "cannot read whether attachments are still to be moved"),
    }
}

fn move_all(databases: &Databases, database: Option<&str>, to: Relocation, again: bool) {
    match databases.relocate_attachments(database, to, again) {
        Ok(done) => tracing::info!(
            examined = done.examined,
            examined_before = done.examined_before,
            moved = done.moved,
            bytes = done.moved_bytes,
            failed = done.failed,
            stopped = done.stopped,
            "attachments were moved"
        ),
        Err(error) => {
            tracing::warn!(%error, "not all attachments were moved; load attachments continues with the rest");
        }
    }
}
