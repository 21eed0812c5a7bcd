//! Legal holds: what is held outlives edits, deletions, purges and compactions, and goes when the hold is lifted.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::time::Duration;

use scrinium_catalog::Databases;
use scrinium_clock::{Clock, ManualClock};
use scrinium_database::{
    Access, DatabaseError, DatabaseOptions, Edit, EditMode, HistoryLimits, InitialAccess, LegalHold,
    NewAttachment, Properties, PurgedLeaves, ReadOptions,
};
use scrinium_fault::noise;
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::{CompactOrder, Compactor, FixupOptions, fixup};

static SERVER: Access = Access::of_the_server("a test");

struct World {
    store: Store,
    databases: Databases,
    database: OpenDatabase,
    clock: ManualClock,
    _folder: tempfile::TempDir,
}

fn hold(matter: &str) -> LegalHold {
    LegalHold { matter: matter.to_owned(), person: None, by: "admin".to_owned(), since_ms: 7 }
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::manual(1_790_000_000_000);
        let options = StoreOptions { clock: clock.clock(), ..StoreOptions::new(folder.path()) };
        let store = Store::open(options, &Registry::new()).unwrap();
        let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
        let database = databases.create("mail/ada", &InitialAccess::Everybody).unwrap();
        Self { store, databases, database, clock, _folder: folder }
    }

    /// Puts documents, each with an attachment like no other; their revisions.
    fn put(&self, documents: &[Value]) -> Vec<String> {
        let edit = |document: &Value| {
            let mut attachments = Vec::new();
            if document["_deleted"] != true {
                let seed = seed_of(&document.to_string());
                let mut upload = self.database.upload("application/zip");
                upload.write(&noise(seed, 5000)).unwrap();
                let content = upload.finish().unwrap();
                let content_type = "application/zip".to_owned();
                attachments.push(NewAttachment { name: "a".to_owned(), content_type, content });
            }
            Edit { json: document.to_string().into(), attachments, ..Edit::default() }
        };
        let edits = documents.iter().map(edit).collect();
        let done = self.database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
        done.into_iter().map(|result| result.unwrap().revision).collect()
    }

    /// Held revisions: id, text and whether the attachment can be read.
    fn held(&self) -> Vec<(String, String)> {
        let held = self.database.held_revisions(None, 100).unwrap();
        let look = |revision: &scrinium_database::HeldRevision| {
            let whole = self.database.held_revision(&revision.id, &revision.revision).unwrap();
            assert!(whole.json.has_contents(), "{} has lost its attachment", revision.id);
            let document = revision.json.to_object().unwrap();
            (revision.id.clone(), document["text"].as_str().unwrap_or_default().to_owned())
        };
        held.iter().map(look).collect()
    }

    fn contents(&self) -> usize {
        let (from, to) = (b"c".as_slice(), b"d".as_slice());
        let snapshot = self.store.snapshot();
        let range = scrinium_store::KeyRange { from, to: Some(to) };
        let mut cursor =
            snapshot.cursor(scrinium_store::Family::Blob, range, scrinium_store::Direction::Forward);
        let mut count = 0;
        while cursor.next().unwrap().is_some() {
            count += 1;
        }
        count
    }

    /// Everything that takes away what nobody needs.
    fn clean(&self) {
        self.clock.advance(Duration::from_secs(3600));
        Compactor::of(&self.databases)
            .purge_tombstones_after(self.database.name(), Duration::from_millis(1))
            .unwrap();
        self.databases.collect_contents().unwrap();
    }
}

fn seed_of(text: &str) -> u64 {
    text.bytes().fold(7, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)))
}

fn is_forbidden<T: std::fmt::Debug>(result: Result<T, DatabaseError>) {
    let reason = result.unwrap_err().to_string();
    assert!(reason.contains("legal hold"), "{reason}");
}

#[test]
fn what_is_replaced_or_deleted_under_a_hold_can_be_read_until_it_is_lifted() {
    let world = World::new();
    let before = world.put(&[json!({"_id": "a", "text": "before the hold"})]).remove(0);
    let first = world.put(&[json!({"_id": "a", "_rev": before, "text": "one"})]).remove(0);
    assert!(world.database.set_legal_hold(hold("case 1")).unwrap());
    assert!(!world.database.set_legal_hold(hold("case 1")).unwrap(), "it is set");
    assert!(world.database.set_legal_hold(hold("case 2")).unwrap());
    let second = world.put(&[json!({"_id": "a", "_rev": first, "text": "two"})]).remove(0);
    world.put(&[json!({"_id": "a", "_rev": second, "_deleted": true}), json!({"_id": "b", "text": "b"})]);
    let expected = [("a".to_owned(), "one".to_owned()), ("a".to_owned(), "two".to_owned())];
    assert_eq!(world.held(), expected);
    world.clean();
    assert_eq!(world.held(), expected, "the collector leaves what is held");
    assert_eq!(world.database.info().unwrap().deleted_count, 1, "no tombstone is purged");
    is_forbidden(world.database.purge_leaves(vec![PurgedLeaves { id: "b".to_owned(), revisions: vec![] }]));
    is_forbidden(world.databases.delete("mail/ada"));
    let all = FixupOptions { views: true, contents: true, repair: true };
    let report = fixup(&world.databases, None, all, |_| {}).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(world.held(), expected);
    assert_eq!(world.databases.legal_holds().unwrap().len(), 1);

    assert!(world.database.lift_legal_hold("case 1").unwrap());
    assert!(!world.database.lift_legal_hold("case 1").unwrap());
    assert_eq!(world.held(), expected, "the other case holds on");
    let contents = world.contents();
    assert!(world.database.lift_legal_hold("case 2").unwrap());
    assert!(world.held().is_empty() && !world.database.is_held());
    world.clean();
    assert!(world.contents() <= contents - 2, "their attachments go");
    assert_eq!(world.database.info().unwrap().deleted_count, 0);
    let report = fixup(&world.databases, None, all, |_| {}).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    world.databases.delete("mail/ada").unwrap();
    assert!(world.databases.legal_holds().unwrap().is_empty());
}

#[test]
fn a_hold_and_what_it_keeps_outlive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    for run in 0..2 {
        let store = Store::open(StoreOptions::new(folder.path()), &Registry::new()).unwrap();
        let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
        let name = "mail/ada";
        if run == 0 {
            let database = databases.create(name, &InitialAccess::Everybody).unwrap();
            database.set_legal_hold(hold("case")).unwrap();
            let put = |json: Value| {
                let edit = Edit { json: json.to_string().into(), ..Edit::default() };
                database.update_one(edit, EditMode::Interactive, &SERVER).unwrap().revision
            };
            let revision = put(json!({"_id": "a", "n": 1}));
            put(json!({"_id": "a", "_rev": revision, "_deleted": true}));
        } else {
            let database = databases.get(name).unwrap();
            assert_eq!(database.legal_holds().unwrap(), [hold("case")]);
            assert!(database.is_held());
            assert_eq!(database.held_revisions(None, 10).unwrap().len(), 1);
            is_forbidden(databases.delete(name));
        }
        drop(databases);
        store.close().unwrap();
    }
}

#[test]
fn a_matter_has_a_name_and_holds_are_bounded() {
    let world = World::new();
    for matter in ["", " ", &"m".repeat(300)] {
        assert!(matches!(world.database.set_legal_hold(hold(matter)), Err(DatabaseError::Invalid { .. })));
    }
    assert!(!world.database.is_held());
    for number in 0..100 {
        world.database.set_legal_hold(hold(&format!("case {number}"))).unwrap();
    }
    assert!(world.database.set_legal_hold(hold("one more")).is_err());
}

#[test]
fn history_lets_nothing_go_while_its_database_is_held() {
    let world = World::new();
    let keep = |revisions: u32| {
        let history = HistoryLimits { revisions, days: 0 };
        world.database.set_properties(Properties { history, ..world.database.properties() }).unwrap();
    };
    let is_there = |id: &str, revision: &str| {
        let options = ReadOptions { revision: Some(revision.to_owned()), ..ReadOptions::default() };
        let found = world.database.read(id, &options, &SERVER).is_ok();
        assert_eq!(world.database.open_attachment(id, "a", Some(revision), &SERVER).is_ok(), found);
        found
    };
    let compact = || {
        Compactor::of(&world.databases).compact("mail/ada", &CompactOrder::default()).unwrap();
        world.clean();
    };
    keep(1);
    let (a, b) = (json!({"_id": "a", "text": "a0"}), json!({"_id": "b", "text": "b0"}));
    let first = world.put(&[a, b]);
    let next = |id: usize, revision: &str, text: &str| json!({"_id": (["a", "b"][id]), "_rev": revision, "text": text});
    let second = world.put(&[next(0, &first[0], "a1"), next(1, &first[1], "b1")]);
    assert!(world.database.set_legal_hold(hold("case")).unwrap());
    let third = world.put(&[next(0, &second[0], "a2")]);
    assert!(!is_there("a", &first[0]), "there is room for one");
    assert!(is_there("a", &second[0]) && is_there("b", &first[1]));
    let held = || world.held().into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    assert_eq!(held(), ["a0", "a1"]);
    keep(0);
    compact();
    keep(1);
    assert!(is_there("b", &first[1]), "a compaction lets nothing go");
    keep(0);
    world.put(&[next(0, &third[0], "a3")]);
    assert_eq!(held(), ["a0", "a1", "a2"]);
    let all = FixupOptions { views: true, contents: true, repair: true };
    fixup(&world.databases, None, all, |finding| panic!("{finding:?}")).unwrap();

    assert!(world.database.lift_legal_hold("case").unwrap());
    let before = world.contents();
    compact();
    keep(1);
    assert!(held().is_empty() && !is_there("b", &first[1]));
    assert!(world.contents() < before, "its attachment goes");
    fixup(&world.databases, None, all, |finding| panic!("{finding:?}")).unwrap();
}
