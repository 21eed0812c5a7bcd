//! Removing what dropped folders held. Their numbers are never used again, so that nothing is in the way meanwhile.

use scrinium_store::{Batch, Direction, Family, KeyRange, Store};

use super::record::Member;
use crate::error::Result;
use crate::keys;

/// Keys removed by one batch when a dropped database or folder is cleared away.
pub const PURGE_AT_ONCE: usize = 1000;

/// Clears away what the dropped folders of all databases held.
pub fn purge_dropped(store: &Store) -> Result<()> {
    let (from, to) = keys::DROPPED_FOLDER_RANGE;
    let snapshot = store.snapshot();
    let mut cursor = snapshot.cursor(Family::Meta, KeyRange { from, to: Some(to) }, Direction::Forward);
    let mut dropped = Vec::new();
    while let Some((key, _)) = cursor.next()? {
        dropped.extend(keys::dropped_folder_of(key));
    }
    drop(cursor);
    dropped.into_iter().try_for_each(|(database, folder)| purge(store, database, folder))
}

fn purge(store: &Store, database: u32, folder: u32) -> Result<()> {
    let (members, changes) = (keys::members(database, folder), keys::member_changes(database, folder));
    let (members_end, changes_end) = (keys::successor(&members), keys::successor(&changes));
    let snapshot = store.snapshot();
    let range = KeyRange { from: &members, to: Some(&members_end) };
    let mut cursor = snapshot.cursor(Family::Scan, range, Direction::Forward);
    let mut batch = Batch::for_removing();
    let mut noted = 0;
    while let Some((_, stored)) = cursor.next()? {
        // A membership that it would name is left: it means nothing, since no other folder gets the number.
        let Some(member) = Member::decode(stored) else { continue };
        batch.delete(Family::Point, &keys::membership(database, &member.id, folder));
        noted += 1;
        if noted >= PURGE_AT_ONCE {
            store.commit(std::mem::replace(&mut batch, Batch::for_removing()))?;
            noted = 0;
        }
    }
    batch.delete_range(Family::Scan, &members, &members_end);
    batch.delete_range(Family::Churn, &changes, &changes_end);
    batch.delete(Family::Meta, &keys::dropped_folder(database, folder));
    Ok(store.commit(batch)?)
}
