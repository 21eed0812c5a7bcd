//! `settle conflicts`: the conflicts of a database settled by a rule, as a task.

use scrinium_catalog::Databases;
use scrinium_database::{DatabaseError, Identity};
use scrinium_replication::{SettleRule, settle};
use scrinium_statistics::{Task, Tasks};
use scrinium_views::{DatabaseSession, OpenDatabase};
use serde_json::Value;

use crate::console::SettleOrder;

/// The task, by its kind.
const KIND: &str = "settle_conflicts";

/// Documents that are looked up at a time.
const DOCUMENTS_AT_ONCE: usize = 500;

/// As whom conflicts are settled.
const CONSOLE: &str = "console";

/// Begins, on a thread of its own; one at a time. Returns the task's number.
///
/// # Errors
/// In words: the rule makes no sense, there is no such database, others are being settled, or no thread can be had.
pub(crate) fn begin(databases: &Databases, tasks: &Tasks, order: &SettleOrder) -> Result<u64, String> {
    let rule: Value =
        serde_json::from_str(&order.rule).map_err(|error| format!("the rule is no JSON: {error}"))?;
    let rule = SettleRule::parse(&rule).map_err(|error| error.reason)?;
    let name = &order.database;
    let database = databases.get(name).map_err(|error| format!("{name}: {error}"))?;
    let identity = Identity::new(CONSOLE, vec!["_admin".to_owned()]);
    let session =
        DatabaseSession::open(database.clone(), &identity).map_err(|error| format!("{name}: {error}"))?;
    if tasks.running().iter().any(|task| task.kind == KIND) {
        return Err("conflicts are being settled; show tasks shows the progress".to_owned());
    }
    let task = tasks.start(KIND, Some(name), None);
    let number = task.id();
    let work = move || match settle_all(&database, &session, &rule, &task) {
        // Dropped, it counts as cancelled.
        Ok(_) if task.is_cancelled() => {}
        Ok(_) => task.finish(),
        Err(error) => task.fail(error.to_string()),
    };
    let begun = std::thread::Builder::new().name("settle".to_owned()).spawn(work);
    begun.map(|_| number).map_err(|error| format!("cannot start a thread for it: {error}"))
}

/// Settles what there is, until somebody stops it; how many documents were in conflict and are not any more. What comes
/// meanwhile may be seen to or not.
fn settle_all(
    database: &OpenDatabase,
    session: &DatabaseSession,
    rule: &SettleRule,
    task: &Task,
) -> Result<u64, DatabaseError> {
    let (mut after, mut settled): (Option<String>, u64) = (None, 0);
    loop {
        let (found, has_more) = database.conflicted_documents(after.as_deref(), DOCUMENTS_AT_ONCE)?;
        for document in found {
            if task.is_cancelled() {
                return Ok(settled);
            }
            settled += u64::from(settle(session, &document.id, rule)?);
            task.advance(1);
            after = Some(document.id);
        }
        task.detail("settled", settled);
        if !has_more {
            return Ok(settled);
        }
    }
}
