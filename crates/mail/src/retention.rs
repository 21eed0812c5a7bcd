//! Folders whose messages are kept for some days only, such as the trash: what is older is deleted, as its person would delete it.

use scrinium_database::{
    Access, DatabaseError, Edit, EditMode, FolderChange, FolderInfo, ReadOptions, SpecialUse,
};
use scrinium_views::OpenDatabase;
use serde_json::json;

static KEEPER: Access = Access::of_the_server("deleting what folders keep no longer");

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Messages deleted by one batch.
const AT_ONCE: usize = 200;

/// For how many days folders keep their messages that say nothing themselves; 0: for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionDays {
    /// Folders for the trash.
    pub trash: u32,
    /// Folders for junk.
    pub junk: u32,
}

impl RetentionDays {
    /// For how many days a folder keeps its messages; `None`: for ever.
    #[must_use]
    pub fn of(&self, folder: &FolderInfo) -> Option<u32> {
        let days = folder.keep_days.unwrap_or(match folder.special_use {
            Some(SpecialUse::Trash) => self.trash,
            Some(SpecialUse::Junk) => self.junk,
            _ => 0,
        });
        (days > 0).then_some(days)
    }
}

/// Deletes the messages of a mail file that its folders keep no longer, counted from when they came there; how many. Nothing is deleted while
/// the database is under legal hold. `go_on` hears after each batch how many went, and ends the work. Blocks; done twice, it finds nothing more.
///
/// # Errors
/// The database is gone, and what it reports.
pub fn delete_outdated(
    database: &OpenDatabase,
    days: &RetentionDays,
    go_on: &dyn Fn(u64) -> bool,
) -> Result<u64, DatabaseError> {
    let mut deleted = 0;
    if database.is_held() {
        return Ok(deleted);
    }
    for folder in database.folders(None)? {
        let Some(kept_days) = days.of(&folder) else { continue };
        let until_ms = database.now_ms().saturating_sub(u64::from(kept_days) * DAY_MS);
        let mut since_uid = 0;
        loop {
            let page = match database.folder_members(&folder.name, since_uid, AT_ONCE, (None, &KEEPER)) {
                Ok(page) => page,
                // It was dropped or renamed in this moment.
                Err(DatabaseError::NotFound { .. }) => break,
                Err(error) => return Err(error),
            };
            let due: Vec<String> = page
                .members
                .iter()
                .filter(|member| member.added_ms < until_ms)
                .map(|member| member.id.clone())
                .collect();
            // What came later has a higher number.
            let is_last = !page.more || page.members.last().is_some_and(|last| last.added_ms >= until_ms);
            let gone = delete(database, &folder.name, due)?;
            deleted += gone;
            if !go_on(gone) || database.is_held() {
                return Ok(deleted);
            }
            if is_last {
                break;
            }
            since_uid = page.last_uid;
        }
    }
    Ok(deleted)
}

/// Takes documents out of a folder; those that are in no other one are deleted. How many are gone from it.
///
/// # Errors
/// What the database reports; some may be gone then.
pub(crate) fn delete(database: &OpenDatabase, folder: &str, ids: Vec<String>) -> Result<u64, DatabaseError> {
    let snapshot = database.store().snapshot();
    let (mut leaving, mut edits) = (Vec::new(), Vec::new());
    for id in ids {
        if database.count_folders_at(&snapshot, &id)? > 1 {
            leaving.push((id, FolderChange::Remove { folder: folder.to_owned() }));
            continue;
        }
        match database.read(&id, &ReadOptions::default(), &KEEPER) {
            Ok(found) => edits.push(deletion(id, found.revision)),
            Err(DatabaseError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    drop(snapshot);
    let mut gone = 0;
    if !leaving.is_empty() {
        let placed = database.change_folders(leaving, &KEEPER)?.wait()?;
        gone += placed.iter().filter(|placed| placed.is_ok()).count() as u64;
    }
    if !edits.is_empty() {
        let updated = database.update(edits, EditMode::Interactive, &KEEPER)?.wait()?;
        // One that was changed in this moment stays until the next time.
        gone += updated.iter().filter(|updated| updated.is_ok()).count() as u64;
    }
    Ok(gone)
}

/// What deletes a document of this revision.
pub(crate) fn deletion(id: String, revision: String) -> Edit {
    let json = json!({"_deleted": true}).to_string().into();
    Edit { id: Some(id), revision: Some(revision), json, ..Edit::default() }
}
