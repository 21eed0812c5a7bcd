//! Which index of words belongs to which definition.
//!
//! | family | key | value |
//! |---|---|---|
//! | DerivedPoint | number `FFFFFFFF` `t` identity | number of the index (4 bytes) |
//!
//! The numbers come from a range of their own, so that none is that of a view's index.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_fulltext::{FullTextError, FullTextIndex};
use scrinium_store::{Batch, Direction, Family, KeyRange, Store};

use super::definition::TextDefinition;
use crate::open::OpenDatabase;
use crate::registry::{NO_INDEX, index_id};

/// The first number of an index of words, and the first that none has.
const NUMBERS: std::ops::Range<u32> = 0x8000_0000..0xF000_0000;

/// An index of words that is open. It is keys in the store: there is no more of it in memory than this.
pub(crate) struct TextIndex {
    pub(crate) id: u64,
    pub(crate) definition: TextDefinition,
    pub(crate) index: FullTextIndex,
    /// Held by the one who brings it up to date.
    pub(crate) updater: Mutex<()>,
}

fn identity_key(database: u32, identity: &[u8]) -> Vec<u8> {
    [&database.to_be_bytes()[..], &NO_INDEX.to_be_bytes(), b"t", identity].concat()
}

/// Identities and numbers of all indexes of words of a database.
fn stored(store: &Store, database: u32) -> Result<Vec<([u8; 16], u32)>> {
    let from = identity_key(database, &[]);
    let to = keys::successor(&from);
    let snapshot = store.snapshot();
    let mut cursor =
        snapshot.cursor(Family::DerivedPoint, KeyRange { from: &from, to: Some(&to) }, Direction::Forward);
    let mut indexes = Vec::new();
    while let Some((key, value)) = cursor.next()? {
        let identity = key.get(from.len()..).and_then(|identity| identity.try_into().ok());
        let number = value.try_into().ok().map(u32::from_be_bytes);
        indexes.extend(identity.zip(number));
    }
    Ok(indexes)
}

/// The number of an index; given out now if it has none.
fn number_of(database: &OpenDatabase, identity: &[u8; 16]) -> Result<u32> {
    let key = identity_key(database.number(), identity);
    let known = database.store().get(Family::DerivedPoint, &key)?;
    if let Some(number) = known.and_then(|value| value.as_ref().try_into().ok()).map(u32::from_be_bytes)
        && NUMBERS.contains(&number)
    {
        return Ok(number);
    }
    let last = stored(database.store(), database.number())?.into_iter().map(|(_, number)| number).max();
    let number = last.map_or(NUMBERS.start, |last| last.saturating_add(1).max(NUMBERS.start));
    if !NUMBERS.contains(&number) {
        let reason = "The database has used up the numbers of its text indexes; compact it.".to_owned();
        return Err(DatabaseError::Unavailable { reason });
    }
    let mut batch = Batch::new();
    batch.put(Family::DerivedPoint, &key, &number.to_be_bytes());
    database.store().derived().write(batch)?;
    Ok(number)
}

/// Opens an index, or begins it; one that cannot be used any more is emptied.
pub(super) fn open(database: &OpenDatabase, definition: TextDefinition) -> Result<Arc<TextIndex>> {
    let mut texts = database.views.texts.lock();
    if let Some(text) = texts.get(&definition.identity) {
        return Ok(Arc::clone(text));
    }
    let store = database.store();
    let id = index_id(database.number(), number_of(database, &definition.identity)?);
    let index = match FullTextIndex::open(store, id, definition.options) {
        Err(error) if error.needs_rebuild() => {
            tracing::warn!(database = database.name(), index = definition.name, %error, "rebuilding a text index");
            FullTextIndex::reset(store, id).map_err(text_error)?;
            FullTextIndex::open(store, id, definition.options)
        }
        opened => opened,
    };
    let index = index.map_err(text_error)?;
    let identity = definition.identity;
    let text = Arc::new(TextIndex { id, definition, index, updater: Mutex::new(()) });
    texts.insert(identity, Arc::clone(&text));
    Ok(text)
}

/// Removes the indexes of words but those in `used`. Returns how many.
pub(crate) fn drop_unused(database: &OpenDatabase, used: &HashSet<[u8; 16]>) -> Result<usize> {
    let mut texts = database.views.texts.lock();
    let mut dropped = 0;
    for (identity, number) in stored(database.store(), database.number())? {
        // Somebody may be reading it still; the next call finds it again.
        let is_held = texts.get(&identity).is_some_and(|text| Arc::strong_count(text) > 1);
        if used.contains(&identity) || is_held {
            continue;
        }
        texts.remove(&identity);
        FullTextIndex::reset(database.store(), index_id(database.number(), number)).map_err(text_error)?;
        let mut batch = Batch::new();
        batch.delete(Family::DerivedPoint, &identity_key(database.number(), &identity));
        database.store().derived().write(batch)?;
        dropped += 1;
    }
    Ok(dropped)
}

/// Bytes on disk, about.
pub(super) fn size_bytes(store: &Store, id: u64) -> u64 {
    let (from, to) = (id.to_be_bytes(), (id + 1).to_be_bytes());
    keys::DERIVED_FAMILIES.iter().map(|family| store.admin().size_of(*family, &from, &to)).sum()
}

/// What goes wrong with an index of words, as a database says it.
pub(crate) fn text_error(error: FullTextError) -> DatabaseError {
    match error {
        FullTextError::Store(error) => error.into(),
        FullTextError::Fault(fault) => DatabaseError::Fault(fault),
        FullTextError::Syntax { .. } | FullTextError::TooBroad { .. } | FullTextError::Bookmark => {
            DatabaseError::bad_request(error.to_string())
        }
        other => DatabaseError::Internal { reason: other.to_string() },
    }
}
