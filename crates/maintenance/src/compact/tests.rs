//! What compacting does under the surface: what it costs, and what it comes back to.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::time::Duration;

use scrinium_catalog::Databases;
use scrinium_clock::{Clock, ManualClock};
use scrinium_database::writer::PrefetchedHeads;
use scrinium_database::{Access, DatabaseOptions, Edit, EditMode, FolderChange};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use super::{Compactor, Purged};

static SERVER: Access = Access::of_the_server("a test");

struct World {
    databases: Databases,
    database: OpenDatabase,
    registry: Registry,
    clock: ManualClock,
    _dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::new();
        let clock = Clock::manual(1_790_000_000_000);
        let options = StoreOptions { clock: clock.clock(), ..StoreOptions::new(dir.path()) };
        let store = Store::open(options, &registry).unwrap();
        let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
        let database = databases.create("db", &scrinium_database::InitialAccess::Everybody).unwrap();
        Self { databases, database, registry, clock, _dir: dir }
    }

    fn purge(&self) -> Purged {
        self.clock.advance(Duration::from_millis(2));
        Compactor::of(&self.databases)
            .subject(&self.database)
            .purge_tombstones(Duration::from_millis(1), &mut || Ok(()))
            .unwrap()
    }

    /// Their revisions.
    fn put(&self, documents: Vec<Value>) -> Vec<String> {
        let edit = |json: Value| Edit { json: json.to_string().into(), ..Edit::default() };
        let edits = documents.into_iter().map(edit).collect();
        let done = self.database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
        done.into_iter().map(|result| result.unwrap().revision).collect()
    }

    fn log_records(&self) -> u64 {
        self.registry.counter("Log.Records").value()
    }
}

#[test]
fn a_tombstone_that_updates_on_their_way_keep_is_purged_by_a_later_compaction() {
    let world = World::new();
    let revision = world.put(vec![json!({"_id": "a"})]).remove(0);
    // Another update has read its documents, and does not get on.
    let on_its_way = PrefetchedHeads::read(&world.database, ["b"].into_iter()).unwrap();
    world.put(vec![json!({"_id": "a", "_rev": revision, "_deleted": true})]);
    world.put(vec![json!({"_id": "c"})]);
    assert_eq!(world.purge().documents, 0, "the update on its way would build on it");
    drop(on_its_way);
    assert_eq!(world.purge().documents, 1);
    assert_eq!(world.database.info().unwrap().deleted_count, 0);
}

#[test]
fn a_tombstone_that_is_held_back_hides_nothing_that_left_a_folder_behind_it() {
    let world = World::new();
    let everything = SERVER.clone();
    let changes = |since| world.database.folder_changes("Inbox", since, 100, &everything).unwrap();
    let change = |change: fn(String) -> FolderChange| {
        let changes = vec![("m".to_owned(), change("Inbox".to_owned()))];
        drop(world.database.change_folders(changes, &everything).unwrap().wait().unwrap());
    };
    world.database.define_folder("Inbox", None).unwrap();
    let revision = world.put(vec![json!({"_id": "a"}), json!({"_id": "m"})]).remove(0);
    change(|folder| FolderChange::Add { folder });
    let seen = changes(0).last;
    let on_its_way = PrefetchedHeads::read(&world.database, ["b"].into_iter()).unwrap();
    world.put(vec![json!({"_id": "a", "_rev": revision, "_deleted": true})]);
    change(|folder| FolderChange::Remove { folder });
    world.put(vec![json!({"_id": "c"})]);
    world.purge();
    let told = changes(seen);
    assert!(told.incomplete || told.changes.iter().any(|change| change.has_left()), "{told:?}");
    drop(on_its_way);
    assert_eq!(world.purge().memberships, 1);
    assert!(changes(seen).incomplete);
}

#[test]
fn superseded_contents_are_collected_many_by_a_commit_and_held_ones_are_left() {
    const DOCUMENTS: usize = 900;
    let world = World::new();
    let text = |number: usize, turn: usize| format!("{number:04} {turn} ").repeat(500);
    let document = |number: usize, turn| json!({"_id": number.to_string(), "Body": text(number, turn)});
    let revisions = world.put((0..DOCUMENTS).map(|number| document(number, 1)).collect());
    let contents = world.database.context.contents.clone();
    // A field's content is its JSON.
    let hold = |number| {
        contents.hold(blake3::hash(json!(text(number, 1)).to_string().as_bytes()).as_bytes()).unwrap()
    };
    let held = hold(0).unwrap();
    let later = revisions.into_iter().enumerate().map(|(number, revision)| {
        // The last one goes back to what its neighbour had, which is needed again.
        let (from, turn) = if number == DOCUMENTS - 1 { (1, 1) } else { (number, 2) };
        json!({"_id": number.to_string(), "_rev": revision, "Body": text(from, turn)})
    });
    world.put(later.collect());
    let before = world.log_records();
    let collected = world.databases.collect_contents().unwrap();
    let gone = DOCUMENTS as u64 - 2;
    assert_eq!((collected.examined, collected.removed), (gone + 2, gone));
    let commits = world.log_records() - before;
    assert!((1..10).contains(&commits), "{commits} commits");
    assert!(hold(1).is_some() && hold(2).is_none());
    drop(held);
    let collected = world.databases.collect_contents().unwrap();
    assert_eq!(
        (collected.examined, collected.removed),
        (1, 1),
        "the one that was held; the other's note is gone"
    );
}
