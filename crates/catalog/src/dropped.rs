//! Clearing away what nobody has any more: contents, dropped databases and folders, what moved databases have left.

use scrinium_contents::Collected;
use scrinium_database::context::StoreContext;
use scrinium_database::folder::purge::PURGE_AT_ONCE;
use scrinium_database::head::Head;
use scrinium_database::{Result, folder, keys};
use scrinium_store::{Batch, Direction, Family, KeyRange, Store};

use crate::databases::{Databases, number_of};

impl Databases {
    /// Removes contents that no document refers to any more; at most a thousand a call and volume.
    ///
    /// # Errors
    /// What the stores report.
    pub fn collect_contents(&self) -> Result<Collected> {
        let mut sum = Collected::default();
        for context in self.contexts() {
            sum.add(context.contents.collect()?);
        }
        Ok(sum)
    }

    /// Clears away what dropped databases and dropped folders held, and what databases that were moved have left. Returns
    /// how many databases were cleared.
    ///
    /// # Errors
    /// What the stores report; the rest is done by the next call.
    pub fn purge_dropped(&self) -> Result<usize> {
        let mut purged = 0;
        for context in self.contexts() {
            let mut cleared = Vec::new();
            for number in marked(&context.store)? {
                if self.is_nobodys(&context, number)? {
                    purge(&context, number)?;
                    cleared.push(number);
                }
            }
            if !cleared.is_empty() {
                forget(&context.store, &cleared)?;
                purged += cleared.len();
            }
            folder::purge::purge_dropped(&context.store)?;
        }
        Ok(purged)
    }

    /// Whether what is marked may be cleared away. The mark of a database that the catalogue has there goes.
    fn is_nobodys(&self, context: &StoreContext, number: u32) -> Result<bool> {
        let _catalog = self.shared().catalog.lock();
        // First the one, then the other: what was brought in meanwhile is not dropped any more.
        if self.shared().adopting.lock().contains(&number)
            || self.is_read(number)
            || !context.store.contains(Family::Meta, &keys::dropped(number))?
        {
            return Ok(false);
        }
        if self.is_entered(context, number)? {
            unmark(context, number);
            return Ok(false);
        }
        Ok(true)
    }
}

/// The numbers that may be of nobody.
fn marked(store: &Store) -> Result<Vec<u32>> {
    let (from, to) = keys::DROPPED_RANGE;
    let snapshot = store.snapshot();
    let mut cursor = snapshot.cursor(Family::Meta, KeyRange { from, to: Some(to) }, Direction::Forward);
    let mut numbers = Vec::new();
    while let Some((key, _)) = cursor.next()? {
        numbers.extend(key.get(1..).and_then(number_of));
    }
    Ok(numbers)
}

/// Removes the mark of a database that the catalogue has; one that stays is looked at again.
pub(crate) fn unmark(context: &StoreContext, number: u32) {
    let mut batch = Batch::for_removing();
    batch.delete(Family::Meta, &keys::dropped(number));
    if let Err(error) = context.store.commit(batch) {
        tracing::warn!(number, volume = context.volume, %error, "a mark stays, and is looked at again");
    }
}

/// Removes the marks of databases that were cleared away. That of what is derived is in no log, so a crash would bring it
/// back: the marks stay until it is in files.
fn forget(store: &Store, numbers: &[u32]) -> Result<()> {
    store.admin().checkpoint()?;
    let mut batch = Batch::for_removing();
    for number in numbers {
        batch.delete(Family::Meta, &keys::dropped(*number));
    }
    Ok(store.commit(batch)?)
}

/// Notes the contents of a database that is no more as collectable, then removes its ranges. The mark stays.
fn purge(context: &StoreContext, number: u32) -> Result<()> {
    let store = &context.store;
    let snapshot = store.snapshot();
    let (from, to) = keys::head_range(number);
    let mut cursor =
        snapshot.cursor(Family::Point, KeyRange { from: &from, to: Some(&to) }, Direction::Forward);
    let mut batch = Batch::for_removing();
    let mut noted = 0;
    while let Some((key, value)) = cursor.next()? {
        let (Some(id), Some(head)) = (keys::id_of(key), Head::decode(value)) else {
            continue;
        };
        for digest in &head.contents {
            batch.delete(Family::Point, &keys::reference(digest, number, id));
            batch.put(Family::Point, &keys::collectable(digest), &[]);
            noted += 1;
        }
        if noted >= PURGE_AT_ONCE {
            store.commit(std::mem::replace(&mut batch, Batch::for_removing()))?;
            noted = 0;
        }
    }
    let (from, to) = keys::database_range(number);
    for family in keys::FAMILIES {
        batch.delete_range(family, &from, &to);
    }
    // One that was brought in only in part, or moved away, has these as well.
    for key in keys::APART.into_iter().chain([keys::header as fn(u32) -> Vec<u8>]) {
        batch.delete(Family::Meta, &key(number));
    }
    store.commit(batch)?;
    scrinium_views::drop_all(store, number)
}
