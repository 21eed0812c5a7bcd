//! Making the record again of what is known of a database as a whole, where it cannot be read.

use scrinium_catalog::Databases;
use scrinium_contents::hex;
use scrinium_database::header::{DEFAULT_REVISION_LIMIT, Header};
use scrinium_database::{Result, keys};
use scrinium_store::{Batch, Direction, Family, KeyRange, Snapshot};

use super::aside::Aside;
use super::documents::LEAP;

/// Writes a header that names the database and counts nothing; the check that follows counts. Its uuid is a new one, so
/// that readers of changes start over. False: it cannot be done.
pub(super) fn mend(databases: &Databases, name: &str) -> Result<bool> {
    let Ok((number, context)) = databases.place_of(name) else { return Ok(false) };
    let store = &context.store;
    let snapshot = store.snapshot();
    let key = keys::header(number);
    let mut batch = Batch::new();
    if let Ok(Some(stored)) = snapshot.get(Family::Meta, &key) {
        if Header::decode(&stored).is_some() {
            return Ok(false);
        }
        let mut aside = Aside::open(&snapshot, number, name, store.clock())?;
        let reason = "the record of what is known of the database as a whole";
        aside.keep(&mut batch, Family::Meta, &key, &stored, reason);
    }
    let now_ms = store.clock().now_ms();
    let mut header = Header::new(name, rand::random(), now_ms);
    header.revision_limit = DEFAULT_REVISION_LIMIT;
    // The check raises it to whatever folders and marks had reached.
    header.change_number = last_change(&snapshot, number)? + LEAP;
    header.last_uid_validity = now_ms / 1000;
    batch.put(Family::Meta, &key, &header.encode());
    store.commit(batch)?;
    tracing::warn!(database = name, uuid = hex(&header.uuid), "the header of a database was rebuilt");
    Ok(true)
}

fn last_change(snapshot: &Snapshot, number: u32) -> Result<u64> {
    let (from, to) = keys::change_range(number);
    let range = KeyRange { from: &from, to: Some(&to) };
    let mut cursor = snapshot.cursor(Family::Churn, range, Direction::Backward);
    Ok(cursor.next()?.and_then(|(key, _)| keys::change_number_of(key)).unwrap_or(0))
}
