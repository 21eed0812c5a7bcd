//! Indexes that are gone from a home which others still use. Their lists go with the next change of each document, whose
//! record is rewritten then, and all of them when the database is compacted.
//!
//! | family | key | value |
//! |---|---|---|
//! | DerivedPoint | number `FFFFFFFF` `d` home | numbers of indexes that are gone from it (4 bytes each) |

use std::collections::BTreeSet;

use parking_lot::{Mutex, MutexGuard};
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_store::{Batch, Direction, Family, KeyRange, ScanOptions, Store};

use crate::lists::{Lists, home_prefix};
use crate::open::OpenDatabase;
use crate::registry::{NO_INDEX, index_id};

/// Records looked at while others who change lists of the home wait.
const RECORDS_AT_ONCE: usize = 500;

/// Held by the one who changes what is noted here, removes a home, or frees lists in one: none is written into a home that has
/// been removed.
static ALONE: Mutex<()> = Mutex::new(());

pub(super) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock()
}

/// Where it is noted which indexes are gone from a home.
pub(super) fn key(database: u32, home: u32) -> Vec<u8> {
    [&database.to_be_bytes()[..], &NO_INDEX.to_be_bytes(), b"d", &home.to_be_bytes()].concat()
}

/// The indexes in a note; none if there is no note.
pub(super) fn decode(note: Option<&[u8]>) -> Vec<u32> {
    let (numbers, _) = note.unwrap_or_default().as_chunks::<4>();
    numbers.iter().map(|number| u32::from_be_bytes(*number)).collect()
}

fn put(batch: &mut Batch, database: u32, home: u32, gone: &BTreeSet<u32>) {
    let key = key(database, home);
    if gone.is_empty() {
        batch.delete(Family::DerivedPoint, &key);
    } else {
        let note: Vec<u8> = gone.iter().flat_map(|index| index.to_be_bytes()).collect();
        batch.put(Family::DerivedPoint, &key, &note);
    }
}

fn noted(store: &Store, database: u32, home: u32) -> Result<BTreeSet<u32>> {
    let note = store.get(Family::DerivedPoint, &key(database, home))?;
    Ok(decode(note.as_deref()).into_iter().collect())
}

/// Notes that indexes, given after their homes, are gone from these.
pub(super) fn note(store: &Store, database: u32, gone: &[(u32, u32)]) -> Result<()> {
    if gone.is_empty() {
        return Ok(());
    }
    let _alone = alone();
    let mut batch = Batch::new();
    let homes: BTreeSet<u32> = gone.iter().map(|(home, _)| *home).collect();
    for home in homes {
        let mut all = noted(store, database, home)?;
        all.extend(gone.iter().filter(|(of, _)| *of == home).map(|(_, index)| *index));
        put(&mut batch, database, home, &all);
    }
    Ok(store.derived().write(batch)?)
}

impl OpenDatabase {
    /// Takes the lists of indexes that are gone out of all records. Reads through the homes that have such, if any;
    /// `go_on` is asked between some records and the next.
    ///
    /// # Errors
    /// What the store reports, and what `go_on` says.
    pub fn free_lists<E: From<DatabaseError>>(
        &self,
        go_on: &mut dyn FnMut() -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        for (home, gone) in self.homes_with_gone()? {
            let mut from = Some(home_prefix(self.number(), home).to_vec());
            while let Some(next) = from {
                go_on()?;
                from = self.free_some(home, &gone, &next)?;
            }
        }
        Ok(())
    }

    fn homes_with_gone(&self) -> Result<Vec<(u32, BTreeSet<u32>)>> {
        let from = key(self.number(), 0);
        let prefix = from.get(..from.len() - 4).unwrap_or_default();
        let to = keys::successor(prefix);
        let snapshot = self.store().snapshot();
        let range = KeyRange { from: prefix, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::DerivedPoint, range, Direction::Forward);
        let mut found = Vec::new();
        while let Some((key, note)) = cursor.next()? {
            if let Some(home) = key.last_chunk() {
                found.push((u32::from_be_bytes(*home), decode(Some(note)).into_iter().collect()));
            }
        }
        Ok(found)
    }

    /// Frees lists in some records from `from` on; where to go on, if that is not the end.
    fn free_some(&self, home: u32, gone: &BTreeSet<u32>, from: &[u8]) -> Result<Option<Vec<u8>>> {
        let (store, database) = (self.store(), self.number());
        let _held = self.views.homes.hold(std::iter::once(index_id(database, home)));
        let _alone = alone();
        let noted = noted(store, database, home)?;
        if noted.is_disjoint(gone) {
            // The home is no more.
            return Ok(None);
        }
        let numbers: Vec<u32> = gone.iter().copied().collect();
        let to = home_prefix(database, home.saturating_add(1));
        let (snapshot, mut batch, mut next) = (store.snapshot(), Batch::new(), None);
        let range = KeyRange { from, to: Some(&to) };
        let options = ScanOptions::long(Direction::Forward);
        let mut cursor = snapshot.cursor_with(Family::DerivedPoint, range, options);
        for _ in 0..RECORDS_AT_ONCE {
            let Some((key, record)) = cursor.next()? else {
                next = None;
                break;
            };
            next = Some(keys::next(key));
            let damaged = || DatabaseError::damaged("list of entries", self.name());
            let lists = Lists::decode(record).ok_or_else(damaged)?;
            match lists.with(&[], &numbers) {
                Some(left) if left == record => {}
                Some(left) => batch.put(Family::DerivedPoint, key, &left),
                None => batch.delete(Family::DerivedPoint, key),
            }
        }
        if next.is_none() {
            put(&mut batch, database, home, &noted.difference(gone).copied().collect());
        }
        store.derived().write(batch)?;
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

    use scrinium_statistics::Registry;
    use scrinium_store::StoreOptions;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::SERVER;
    use crate::testing::TestServer;
    use scrinium_database::{Edit, EditMode, ReadOptions, RowQuery};

    const DOCUMENTS: usize = 1200;

    fn put(database: &OpenDatabase, mut documents: Vec<Value>) {
        for document in &mut documents {
            let id = document["_id"].as_str().unwrap().to_owned();
            if let Ok(stored) = database.read(&id, &ReadOptions::default(), &SERVER) {
                document["_rev"] = json!(stored.revision);
            }
        }
        let edit = |json: Value| Edit { json: json.to_string().into(), ..Edit::default() };
        let edits = documents.into_iter().map(edit).collect();
        let done = database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
        done.into_iter().for_each(|result| drop(result.unwrap()));
    }

    fn design(names: &[&str]) -> Value {
        let views: serde_json::Map<String, Value> = names
            .iter()
            .map(|name| {
                (
                    (*name).to_owned(),
                    json!({"columns": [{"formula": format!("N + {}", name.len()), "sort": "asc"}]}),
                )
            })
            .collect();
        json!({"_id": "_design/d", "language": "formula", "views": views})
    }

    fn document(number: usize, n: usize) -> Value {
        json!({"_id": format!("{number:04}"), "N": n})
    }

    fn keys_of(database: &OpenDatabase, view: &str) -> Vec<String> {
        let mut rows = database.view("d", view, RowQuery::default(), &SERVER).unwrap();
        let mut keys = Vec::new();
        while let Some(some) = Some(rows.next_rows(1000).unwrap()).filter(|rows| !rows.is_empty()) {
            keys.extend(some.into_iter().map(|row| format!("{} {:?}", row.key, row.id)));
        }
        keys
    }

    /// How many lists the records of all homes have.
    fn lists(database: &OpenDatabase) -> usize {
        let (from, to) = (home_prefix(database.number(), 0), home_prefix(database.number(), u32::MAX));
        let snapshot = database.store().snapshot();
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::DerivedPoint, range, Direction::Forward);
        let mut count = 0;
        while let Some((_, record)) = cursor.next().unwrap() {
            count += (1..100).filter(|index| Lists::decode(record).unwrap().of(*index).is_some()).count();
        }
        count
    }

    #[test]
    fn lists_of_a_view_that_was_discarded_alone_are_freed() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(StoreOptions::new(dir.path()), &Registry::new()).unwrap();
        let database = TestServer::new(&store).create("db");
        put(&database, (0..DOCUMENTS).map(|number| document(number, number)).collect());
        put(&database, vec![design(&["a", "bb", "ccc"])]);
        let before = keys_of(&database, "a");
        assert_eq!(lists(&database), 3 * DOCUMENTS);
        put(&database, vec![design(&["a", "ccc"])]);
        keys_of(&database, "a");
        assert_eq!(database.clean_up_views().unwrap(), 1);
        assert_eq!(lists(&database), 3 * DOCUMENTS, "the others have their lists in the same records");
        // A document that changes frees its own, and an index of the same number is another one.
        put(&database, (0..100).map(|number| document(number, number + 5)).collect());
        put(&database, vec![design(&["a", "ccc", "dddd"])]);
        let added = keys_of(&database, "dddd");
        keys_of(&database, "a");
        assert_eq!(lists(&database), 4 * DOCUMENTS - 100);
        database.free_lists::<DatabaseError>(&mut || Ok(())).unwrap();
        assert_eq!(lists(&database), 3 * DOCUMENTS);
        assert!(database.homes_with_gone().unwrap().is_empty());
        put(&database, (0..100).map(|number| document(number, number)).collect());
        assert_eq!(keys_of(&database, "a"), before);
        assert_ne!(keys_of(&database, "dddd"), added);
        assert_eq!(keys_of(&database, "dddd").len(), DOCUMENTS);
        put(&database, (0..DOCUMENTS).map(|n| json!({"_id": format!("{n:04}"), "_deleted": true})).collect());
        assert!(keys_of(&database, "a").is_empty() && keys_of(&database, "dddd").is_empty());
        assert!(keys_of(&database, "ccc").is_empty());
        assert_eq!(lists(&database), 0);
    }
}
