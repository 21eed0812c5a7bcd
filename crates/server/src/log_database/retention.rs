//! Removing what was kept for long enough: whole ranges of ids, which are ranges of time, and then their tombstones.

use std::time::Duration;

use jiff::Timestamp;
use scrinium_catalog::Databases;
use scrinium_database::{DatabaseError, Edit, EditMode, RowQuery};
use scrinium_maintenance::{Compactor, Purged};
use scrinium_views::OpenDatabase;
use serde_json::Value;

use super::Class;
use super::design::KEEPER;
use super::record::time_text;

/// Documents that are removed by one batch.
const REMOVED_AT_ONCE: usize = 500;

/// Left to others between two batches.
const REST: Duration = Duration::from_millis(20);

/// Nobody learns of what is removed here, so tombstones go as soon as indexes and replicas have seen them.
const PURGE_AFTER: Duration = Duration::from_millis(1);

/// How long documents are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    /// All but those below.
    pub(crate) documents: Duration,
    /// What became of memos and outgoing mail.
    pub(crate) mail: Duration,
    /// The statistics of each hour.
    pub(crate) hourly: Duration,
    /// The audit.
    pub(crate) audit: Duration,
}

/// What was removed.
#[derive(Clone, Debug, Default)]
pub(super) struct Removed {
    pub(super) documents: u64,
    pub(super) purged: Purged,
}

/// Removes documents that are older than they are to be kept at `now`, has the indexes that there are follow, and purges
/// the tombstones. Costs what is removed. `go_on` is asked between two batches.
///
/// # Errors
/// What the store reports; the next call continues.
pub(super) fn remove_old(
    databases: &Databases,
    database: &OpenDatabase,
    keep: Keep,
    now: Timestamp,
    go_on: &dyn Fn() -> bool,
) -> Result<Removed, DatabaseError> {
    let mut removed = Removed::default();
    for class in Class::ALL {
        let kept = match class {
            Class::Mail | Class::Outgoing => keep.mail,
            Class::Hourly => keep.hourly,
            Class::Audit => keep.audit,
            _ => keep.documents,
        };
        let Ok(oldest) = now.checked_sub(kept) else { continue };
        let end = format!("{}{}", class.prefix(), time_text(oldest));
        loop {
            let count = remove_some(database, class.prefix(), &end)?;
            removed.documents += count as u64;
            if !go_on() {
                return Ok(removed);
            }
            if count == 0 {
                break;
            }
            std::thread::sleep(REST);
        }
    }
    if database.info()?.deleted_count > 0 {
        database.update_built_views()?;
        removed.purged = Compactor::of(databases).purge_tombstones_after(database.name(), PURGE_AFTER)?;
    }
    Ok(removed)
}

/// Removes some documents with ids from `from`, before `end`; how many.
fn remove_some(database: &OpenDatabase, from: &str, end: &str) -> Result<usize, DatabaseError> {
    let query = RowQuery {
        start_key: Some(Value::from(from)),
        end_key: Some(Value::from(end)),
        inclusive_end: false,
        ..RowQuery::default()
    };
    let rows = database.all_documents(query, &KEEPER)?.next_rows(REMOVED_AT_ONCE)?;
    let edits: Vec<Edit> = rows
        .into_iter()
        .map(|row| {
            let value: Value =
                row.value.and_then(|value| serde_json::from_str(&value).ok()).unwrap_or_default();
            Edit {
                id: row.id,
                revision: value.get("rev").and_then(Value::as_str).map(str::to_owned),
                json: br#"{"_deleted":true}"#.as_slice().into(),
                ..Edit::default()
            }
        })
        .collect();
    if edits.is_empty() {
        return Ok(0);
    }
    let results = database.update_in_parts(edits, EditMode::Interactive, &KEEPER)?.wait()?;
    // Somebody has edited one just now: it is seen to the next time, with the others.
    Ok(results.iter().filter(|result| result.is_ok()).count())
}
