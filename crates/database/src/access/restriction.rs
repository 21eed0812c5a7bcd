//! Whether some document of a database is hidden from somebody who reads there, so that not everybody learns how many
//! there are.
//!
//! A number of documents tells of those that somebody may not read. As long as no leaf names anybody in `Readers`, all who
//! read see all of them. That is noted when a database is made, and the note changes in the batch that brings the first
//! such leaf, for good. A database of an earlier version has no note: those who ask look through its leaves bit by bit.

#![allow(missing_docs, reason = "the names say it")]

use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;
use scrinium_document::Fields;
use scrinium_store::{Batch, Direction, Family, KeyRange, Store};

use super::readers::names_somebody;
use super::{Access, Level};
use crate::database::Database;
use crate::error::Result;
use crate::keys;
use crate::leaf::Leaf;

/// Leaves looked at for one question.
const LEAVES_AT_ONCE: usize = 5000;

const OPEN: u8 = 0;
const RESTRICTED: u8 = 1;
const UNKNOWN: u8 = 2;

/// What is known of it in memory.
pub struct Restriction {
    state: AtomicU8,
    /// Where the next look begins, while nothing is known; `None`: at the beginning.
    looked_up_to: Mutex<Option<Vec<u8>>>,
}

impl Restriction {
    pub fn read(store: &Store, number: u32) -> Result<Self> {
        let stored = store.get(Family::Meta, &keys::restriction(number))?;
        let state = match stored.as_deref() {
            Some([OPEN]) => OPEN,
            Some(_) => RESTRICTED,
            None => UNKNOWN,
        };
        Ok(Self { state: AtomicU8::new(state), looked_up_to: Mutex::default() })
    }

    /// Adds to the batch that makes a database that nothing is hidden there.
    pub fn write_open(batch: &mut Batch, number: u32) {
        batch.put(Family::Meta, &keys::restriction(number), &[OPEN]);
    }

    /// Adds to a batch with a leaf that names somebody that something is hidden. It counts from now on, before the leaf
    /// can be read, and also if the batch is not stored.
    pub fn restrict(&self, batch: &mut Batch, number: u32) {
        self.state.store(RESTRICTED, Ordering::Release);
        batch.put(Family::Meta, &keys::restriction(number), &[RESTRICTED]);
    }

    fn is_unknown(&self) -> bool {
        self.state.load(Ordering::Acquire) == UNKNOWN
    }
}

/// Whether a leaf with these fields is hidden from somebody.
pub fn restricts(fields: &[u8]) -> Result<bool> {
    Ok(names_somebody(&Fields::decode(fields)?))
}

impl Database {
    /// Whether the caller sees all documents, and may learn how many there are. Ask after counting: a document that
    /// was counted is known here.
    ///
    /// # Errors
    /// What the store reports.
    pub fn shows_all(&self, access: &Access) -> Result<bool> {
        if access.level() < Level::Reader {
            return Ok(false);
        }
        Ok(access.reads_everything() || self.is_open_to_readers()?)
    }

    fn is_open_to_readers(&self) -> Result<bool> {
        match self.restriction.state.load(Ordering::Acquire) {
            OPEN => Ok(true),
            RESTRICTED => Ok(false),
            _ => self.look_for_readers(),
        }
    }

    /// Looks at some more leaves of a database of an earlier version; true if it was looked through, and none names
    /// anybody. What is written meanwhile is noted by itself.
    fn look_for_readers(&self) -> Result<bool> {
        // Somebody else is looking.
        let Some(mut looked_up_to) = self.restriction.looked_up_to.try_lock() else { return Ok(false) };
        let (first, _) = keys::winner_range(self.number());
        let end = keys::loser_range(self.number()).1;
        let from = looked_up_to.take().unwrap_or(first);
        let snapshot = self.store().snapshot();
        let range = KeyRange { from: &from, to: Some(&end) };
        let mut cursor = snapshot.cursor(Family::Scan, range, Direction::Forward);
        for _ in 0..LEAVES_AT_ONCE {
            let Some((key, stored)) = cursor.next()? else { return self.note_open() };
            *looked_up_to = Some(key.to_vec());
            // What cannot be read may name anybody.
            let names = Leaf::decode(self.name(), stored).and_then(|leaf| restricts(leaf.field_bytes()));
            if names.unwrap_or(true) {
                self.restriction.state.store(RESTRICTED, Ordering::Release);
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Notes for good that no leaf names anybody, unless one came meanwhile.
    fn note_open(&self) -> Result<bool> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.is_open_to_readers(),
        };
        let _writer = self.hold_writer();
        if !self.restriction.is_unknown() {
            return Ok(false);
        }
        self.check_there()?;
        let mut batch = Batch::new();
        Restriction::write_open(&mut batch, self.number());
        self.store().commit(batch)?;
        self.restriction.state.store(OPEN, Ordering::Release);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use scrinium_statistics::Registry;
    use scrinium_store::StoreOptions;
    use serde_json::json;

    use super::*;
    use crate::access::SERVER;
    use crate::testing::TestServer;
    use crate::{AccessList, Edit, EditMode, Identity};

    fn put(database: &Arc<Database>, documents: &[serde_json::Value]) {
        let edit = |json: &serde_json::Value| Edit { json: json.to_string().into(), ..Edit::default() };
        let edits = documents.iter().map(edit).collect();
        let done = database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
        done.into_iter().for_each(|result| drop(result.unwrap()));
    }

    /// The database as a start finds it; of an earlier version, if its note is taken away.
    fn started(database: &Database, is_earlier: bool) -> Database {
        if is_earlier {
            let mut batch = Batch::new();
            batch.delete(Family::Meta, &keys::restriction(database.number()));
            database.store().commit(batch).unwrap();
        }
        crate::testing::load(&database.context, database.number()).unwrap()
    }

    #[test]
    fn who_sees_all_documents_is_known_after_a_start_and_found_out_after_an_upgrade() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(StoreOptions::new(dir.path()), &Registry::new()).unwrap();
        let database = TestServer::new(&store).create("db");
        let list =
            json!({"default": {"level": "reader"}, "entries": [{"name": "post", "level": "depositor"}]});
        database.set_access_list(Some(AccessList::parse(&list).unwrap())).unwrap();
        let access = |name: &str| database.access(&Identity::new(name, Vec::new())).unwrap();
        let (rita, post) = (access("rita"), access("post"));
        let shows = |database: &Database| database.shows_all(&rita).unwrap();
        let many: Vec<_> =
            (0..=LEAVES_AT_ONCE).map(|number| json!({"_id": format!("{number:05}")})).collect();
        put(&database, &many);
        assert!(shows(&database) && shows(&started(&database, false)));
        assert!(!database.shows_all(&post).unwrap() && database.shows_all(&SERVER).unwrap());
        // Looked through bit by bit, and then known.
        let earlier = started(&database, true);
        assert_eq!([(); 3].map(|()| shows(&earlier)), [false, true, true]);
        assert!(shows(&started(&database, false)));
        // What comes while it is looked through is noted by itself.
        let earlier = Arc::new(started(&database, true));
        assert!(!shows(&earlier));
        put(&earlier, &[json!({"_id": "00000a", "Readers": "ada"})]);
        assert_eq!([(); 3].map(|()| shows(&earlier)), [false; 3]);
        assert!(!shows(&started(&database, false)));
        let earlier = started(&database, true);
        assert_eq!([(); 4].map(|()| shows(&earlier)), [false; 4]);
    }
}
