//! Making a store of the files of a backup: the log's archive is applied to them, and a new log is begun.

use scrinium_log::{ArchivedGroup, Log, LogError, Sequence};
use std::sync::Arc;

use crate::applier::REPLAY_BYTES;
use crate::budget::Budget;
use crate::folder::Folder;
use crate::store::log_options;
use crate::tree::{Direct, Tree};
use crate::{StoreError, StoreOptions};

/// The position of a store that was rolled forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// The last record of the log whose effect it holds.
    pub sequence: u64,
    /// When the group of that record was written, in milliseconds since 1970; `None` if nothing was applied, or it
    /// does not tell.
    pub time_ms: Option<u64>,
    /// Records that were applied.
    pub records: u64,
}

/// Opens the files of a backup in `options.dir`, applies `groups` up to and including record `last`, syncs, and
/// begins a log in a folder that must be empty. Where the groups end before `last`, so does the store.
///
/// # Errors
/// [`StoreError::ForeignLog`] if the log's folder is in use or a group does not continue the store, what `groups`
/// gives, and errors of the file system. The store is not to be used then.
#[allow(clippy::needless_pass_by_value, reason = "callers make options for this call only")]
pub fn roll_forward(
    options: StoreOptions,
    groups: impl Iterator<Item = Result<ArchivedGroup, LogError>>,
    last: Sequence,
) -> Result<Reached, StoreError> {
    let (folder, _) = Folder::open_without_log(&options)?;
    folder.begin_log_anew()?;
    let mut log_options = log_options(&options, &folder);
    log_options.archive_dir = None;
    let memtable_bytes = options.log_favor.memtable_bytes();
    let (budget, direct) = (Arc::new(Budget::new(options.budget_bytes)), Direct::of(&options, &folder));
    let tree = Tree::open(folder, budget, direct, memtable_bytes)?;
    let reached = apply(&tree, groups, last)?;
    tree.flush()?;
    log_options.first = Sequence(reached.sequence.saturating_add(1));
    let (log, _) = Log::open(log_options)?;
    log.close()?;
    Ok(reached)
}

fn apply(
    tree: &Tree,
    groups: impl Iterator<Item = Result<ArchivedGroup, LogError>>,
    last: Sequence,
) -> Result<Reached, StoreError> {
    let mut reached = Reached { sequence: tree.position()?.0, ..Reached::default() };
    let mut write = tree.start_write();
    for group in groups {
        let group = group?;
        let next = reached.sequence.saturating_add(1);
        if group.first.0 > next {
            return Err(gap(tree, next, group.first.0));
        }
        for (number, record) in (group.first.0..).zip(&group.records) {
            if number < next {
                continue;
            }
            if number > last.0 {
                break;
            }
            write.add(record)?;
            reached.records += 1;
            (reached.sequence, reached.time_ms) = (number, group.time_ms);
        }
        if write.size_bytes() >= REPLAY_BYTES {
            let mut full = std::mem::replace(&mut write, tree.start_write());
            full.reach(Sequence(reached.sequence));
            full.finish()?;
        }
        if reached.sequence >= last.0 {
            break;
        }
    }
    write.reach(Sequence(reached.sequence));
    write.finish()?;
    Ok(reached)
}

fn gap(tree: &Tree, next: u64, found: u64) -> StoreError {
    StoreError::ForeignLog {
        log_dir: tree.folder.log.clone(),
        dir: tree.folder.dir.clone(),
        what: format!("the store needs record {next} next, but the archive continues with {found}"),
    }
}
