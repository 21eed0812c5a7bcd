//! Compacting: a database is afterwards what it was, no matter who writes meanwhile; and nothing is purged that somebody who is
//! known has yet to learn of.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use scrinium_catalog::Databases;
use scrinium_database::{
    ChangesQuery, DatabaseError, Edit, EditMode, FolderChange, Freshness, OpenRevision, OpenRevisions,
    ReadOptions, RowQuery, Since,
};
use scrinium_maintenance::{CompactOptions, CompactOrder, CompactStyle, Compactor};
use scrinium_statistics::{Registry, Tasks};
use scrinium_store::IoClass;
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::{SERVER, Server, get, put, replicate};

const STYLES: [CompactStyle; 3] = [CompactStyle::Reclaim, CompactStyle::Shrink, CompactStyle::Copy];

/// One change by a client.
#[derive(Clone, Debug)]
enum Step {
    Put { document: u8, size: usize, attached: u8 },
    Delete { document: u8 },
    Conflict { document: u8, branch: u8 },
    Place { document: u8, there: bool },
    Mark { document: u8, read: bool },
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    let document = 0..30_u8;
    prop_oneof![
        6 => (document.clone(), prop_oneof![4 => 0..200_usize, 1 => 2100..2300_usize], 0..4_u8)
            .prop_map(|(document, size, attached)| Step::Put { document, size, attached }),
        3 => document.clone().prop_map(|document| Step::Delete { document }),
        1 => (document.clone(), 0..5_u8).prop_map(|(document, branch)| Step::Conflict { document, branch }),
        2 => (document.clone(), any::<bool>()).prop_map(|(document, there)| Step::Place { document, there }),
        1 => (document, any::<bool>()).prop_map(|(document, read)| Step::Mark { document, read }),
        1 => Just(Step::Look),
    ]
}

fn design() -> Value {
    json!({"_id": "_design/d", "language": "formula", "views": {"sizes": {"columns": [
        {"title": "Size", "formula": "Size", "sort": "asc"},
        {"title": "Total", "formula": "Size", "total": true}]}}})
}

fn prepare(databases: &Databases, name: &str) -> OpenDatabase {
    let database = databases.create(name, &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&database, &design()).unwrap();
    // Nothing that depends on the time.
    let columns = json!([{"title": "Size", "formula": "Size", "sort": "asc"}]);
    database.define_folder("Inbox", Some(&columns)).unwrap();
    database
}

fn name(document: u8) -> String {
    format!("n{document:02}")
}

/// Does a step; two databases that have done the same steps have the same in them.
fn run(database: &OpenDatabase, step: &Step) {
    let revision = |id: &str| get(database, id).ok().map(|document| document["_rev"].clone());
    match step {
        Step::Put { document, size, attached } => {
            let id = name(*document);
            let text = format!("{id} {size} ").repeat(size / 8 + 1);
            let mut json = json!({"_id": id, "Size": size, "Text": text});
            if *attached > 0 {
                // Texts that several documents share.
                let data = ["QUFBQQ==", "QkJCQg==", "Q0NDQw=="][usize::from(*attached) - 1];
                json["_attachments"] = json!({"a.txt": {"content_type": "text/plain", "data": data}});
            }
            if let Some(revision) = revision(&id) {
                json["_rev"] = revision;
            }
            put(database, &json).unwrap();
        }
        Step::Delete { document } => {
            if let Some(revision) = revision(&name(*document)) {
                put(database, &json!({"_id": name(*document), "_rev": revision, "_deleted": true})).unwrap();
            }
        }
        Step::Conflict { document, branch } => {
            let digests = json!([format!("{branch:02x}"), "aa"]);
            let revision = format!("2-{branch:02x}");
            replicate(
                database,
                &json!({"_id": name(*document), "_rev": revision, "Size": branch,
                    "_revisions": {"start": 2, "ids": digests}}),
            )
            .unwrap();
        }
        Step::Place { document, there } => {
            let folder = "Inbox".to_owned();
            let change = if *there { FolderChange::Add { folder } } else { FolderChange::Remove { folder } };
            let changes = vec![(name(*document), change)];
            drop(database.change_folders(changes, &SERVER).unwrap().wait().unwrap());
        }
        Step::Mark { document, read } => {
            drop(database.mark("ada", vec![name(*document)], *read, &SERVER).unwrap().wait().unwrap());
        }
        Step::Look => drop(rows(database)),
    }
}

fn rows(database: &OpenDatabase) -> Vec<String> {
    let query = || RowQuery { freshness: Freshness::UpToDate, ..RowQuery::default() };
    let mut views = vec![database.view("d", "sizes", query(), &SERVER).unwrap()];
    views.push(database.folder_rows("Inbox", query(), (None, &SERVER)).unwrap());
    let row = |row: scrinium_database::Row| format!("{:?} {} {:?}", row.id, row.key, row.value);
    views.into_iter().flat_map(|mut rows| rows.next_rows(usize::MAX).unwrap()).map(row).collect()
}

/// Everything that can be read of a database, but its names.
fn everything(database: &OpenDatabase) -> Vec<String> {
    let mut all = rows(database);
    let query = ChangesQuery { all_leaves: true, ..ChangesQuery::default() };
    let changes = database.changes(query, &SERVER).unwrap().next_changes(usize::MAX).unwrap();
    let options =
        ReadOptions { revisions: true, attachments: true, conflicts: true, ..ReadOptions::default() };
    for change in &changes {
        all.push(format!("{} {} {:?} {}", change.change_number, change.id, change.revisions, change.deleted));
        let leaves = database.open_revisions(&change.id, &OpenRevisions::All, &options, &SERVER).unwrap();
        for leaf in leaves {
            all.push(match leaf {
                OpenRevision::Found(document) => document.json.filled().unwrap().into_string(),
                OpenRevision::Missing(revision) => revision,
            });
        }
    }
    let members = database.folder_members("Inbox", 0, 1000, (Some("ada"), &SERVER)).unwrap();
    all.extend(
        members.members.iter().map(|member| format!("{} {} {:?}", member.uid, member.id, member.read)),
    );
    let folder = database.folder_changes("Inbox", 0, 1000, &SERVER).unwrap();
    all.extend(folder.changes.iter().map(|change| format!("{change:?}")));
    let info = database.info().unwrap();
    let sizes = (info.sizes.external_bytes, info.document_count, info.deleted_count, info.change_number);
    all.push(format!("{sizes:?} {:?}", database.unread("ada").unwrap().database));
    all
}

/// Shows the first difference alone.
fn same(found: &[String], expected: &[String]) -> Result<(), TestCaseError> {
    for (found, expected) in found.iter().zip(expected) {
        prop_assert_eq!(found, expected);
    }
    prop_assert_eq!(found.len(), expected.len());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scrinium_fault::cases(12)))]

    /// A twin that is never compacted has the same in it, at the end, after a crash, and after another start.
    #[test]
    fn a_database_is_the_same_after_compactions_beside_its_writers(
        before in prop::collection::vec(step(), 1..60),
        meanwhile in prop::collection::vec(step(), 1..60),
        orders in prop::collection::vec((0..3_usize, any::<bool>(), any::<bool>()), 1..4),
    ) {
        let (server, beside) = (Server::quick(), Server::quick());
        let (database, twin) = (prepare(&server.databases, "a"), prepare(&beside.databases, "a"));
        before.iter().for_each(|step| run(&database, step));
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // At least once each, and then for as long as somebody writes.
                for (turn, (style, discard_views, bypass_file_cache)) in orders.iter().cycle().enumerate() {
                    if turn >= orders.len() && ended.load(Ordering::Relaxed) {
                        return;
                    }
                    let (style, discard_views) = (STYLES[*style], *discard_views);
                    let order = CompactOrder {
                        style, discard_views, bypass_file_cache: *bypass_file_cache, ..CompactOrder::default()
                    };
                    let compacted = Compactor::of(&server.databases).compact("a", &order).unwrap();
                    assert!(!compacted.skipped && !compacted.stopped);
                }
            });
            meanwhile.iter().for_each(|step| run(&database, step));
            ended.store(true, Ordering::Relaxed);
        });
        before.iter().chain(&meanwhile).for_each(|step| run(&twin, step));
        let expected = everything(&twin);
        same(&everything(&database), &expected)?;
        let after_crash = server.crash();
        same(&everything(&after_crash.databases.get("a").unwrap()), &expected)?;
        drop(database);
        let again = server.reopen();
        same(&everything(&again.databases.get("a").unwrap()), &expected)?;
    }

    /// Whatever is deleted and whenever replicas come: a replica that follows from where it was ends with what is there.
    #[test]
    fn a_replica_that_is_known_learns_of_every_deletion(
        steps in prop::collection::vec((0..20_u8, 0..8_u8), 1..120),
    ) {
        let server = Server::timed();
        Compactor::of(&server.databases).set_options(CompactOptions { purge_after: Duration::from_millis(1) });
        let database = prepare(&server.databases, "a");
        let mut replicas = [Replica::default(), Replica::default()];
        let mut known = BTreeMap::new();
        for (document, what) in steps {
            let id = name(document);
            match what {
                0..=2 => {
                    let mut json = json!({"_id": id, "Size": document});
                    if let Some(revision) = known.get(&id) {
                        json["_rev"] = json!(revision);
                    }
                    known.insert(id, put(&database, &json).unwrap().revision);
                }
                3 | 4 => if let Some(revision) = known.remove(&id) {
                    put(&database, &json!({"_id": id, "_rev": revision, "_deleted": true})).unwrap();
                },
                5 => replicas[usize::from(document % 2)].follow(&database, document % 2),
                6 => drop(rows(&database)),
                _ => {
                    server.pass(Duration::from_millis(2));
                    Compactor::of(&server.databases).compact("a", &CompactOrder::default()).unwrap();
                }
            }
        }
        server.pass(Duration::from_millis(2));
        Compactor::of(&server.databases).compact("a", &CompactOrder::default()).unwrap();
        let there: Vec<String> = known.keys().cloned().collect();
        for (number, replica) in replicas.iter_mut().enumerate() {
            replica.follow(&database, u8::try_from(number).unwrap());
            prop_assert_eq!(&replica.documents, &there);
        }
        let entries = rows(&database);
        prop_assert_eq!(entries.len(), there.len());
        // Now that everybody has seen everything, nothing is left of what is gone.
        Compactor::of(&server.databases).compact("a", &CompactOrder::default()).unwrap();
        let info = database.info().unwrap();
        prop_assert_eq!((info.deleted_count, info.document_count), (0, there.len() as u64 + 1));
        let purged = database.purged_documents().unwrap();
        prop_assert_eq!(purged.len() as u64, info.purged_count);
        prop_assert!(purged.iter().all(|purged| purged.revisions.len() == 1));
    }
}

/// A replica that keeps its checkpoint as CouchDB's or PouchDB's replicator does.
#[derive(Default)]
struct Replica {
    since: String,
    documents: Vec<String>,
}

impl Replica {
    fn follow(&mut self, database: &OpenDatabase, number: u8) {
        let since = if self.since.is_empty() { Since::Beginning } else { Since::At(self.since.clone()) };
        let mut changes =
            database.changes(ChangesQuery { since, ..ChangesQuery::default() }, &SERVER).unwrap();
        for change in changes.next_changes(usize::MAX).unwrap() {
            self.documents.retain(|id| *id != change.id);
            if !change.deleted && !change.id.starts_with('_') {
                self.documents.push(change.id);
            }
        }
        self.documents.sort();
        self.since = changes.last_sequence();
        let checkpoint = if number == 0 {
            json!({"session_id": "s", "source_last_seq": self.since, "history": [{"recorded_seq": self.since}]})
        } else {
            json!({"session_id": "s", "last_seq": self.since, "replicator": "pouchdb", "version": 1})
        };
        let (id, json) = (format!("_local/replica{number}"), checkpoint.to_string());
        drop(database.write_local(&id, json.as_bytes(), false, None, &SERVER).unwrap().wait().unwrap());
    }
}

fn delete(database: &OpenDatabase, id: &str) {
    let revision = get(database, id).unwrap()["_rev"].clone();
    put(database, &json!({"_id": id, "_rev": revision, "_deleted": true})).unwrap();
}

fn purging(server: &Server) -> impl Fn(&str) -> scrinium_maintenance::Purged + '_ {
    let purge_after = Duration::from_millis(1);
    Compactor::of(&server.databases).set_options(CompactOptions { purge_after });
    |name| {
        server.pass(Duration::from_millis(2));
        Compactor::of(&server.databases).compact(name, &CompactOrder::default()).unwrap().purged
    }
}

/// Anyone who may read can leave a checkpoint: a forged one holds purging back as long as a replica may be away, and no longer.
#[test]
fn a_checkpoint_that_nobody_renews_does_not_hold_purging_for_ever() {
    let server = Server::timed();
    let compact = purging(&server);
    let database = prepare(&server.databases, "a");
    let list = json!({"default": {"level": "reader"}});
    database.set_access_list(Some(scrinium_database::AccessList::parse(&list).unwrap())).unwrap();
    run(&database, &Step::Put { document: 0, size: 10, attached: 1 });
    let rita = database.access(&scrinium_database::Identity::new("rita", Vec::new())).unwrap();
    let forged = json!({"session_id": "s", "history": []}).to_string();
    for access in [&rita, &SERVER] {
        let written = database.write_local("_local/forged", forged.as_bytes(), false, None, access);
        drop(written.unwrap().wait().unwrap());
    }
    delete(&database, "n00");
    rows(&database);
    let purged = compact("a");
    assert_eq!((purged.documents, purged.held_by.unwrap().contains("_local/forged")), (0, true));
    server.pass(Duration::from_hours(24 * 89));
    assert_eq!(compact("a").documents, 0);
    server.pass(Duration::from_hours(24 * 2));
    assert_eq!(compact("a").documents, 1);
}

#[test]
fn an_index_that_is_behind_holds_purging_back_and_so_does_a_replica_and_both_are_named() {
    let server = Server::timed();
    let compact = purging(&server);
    let database = prepare(&server.databases, "a");
    (0..3).for_each(|document| run(&database, &Step::Put { document, size: 10, attached: 1 }));
    assert_eq!(rows(&database).len(), 3);
    delete(&database, "n00");
    let purged = compact("a");
    assert_eq!((purged.documents, purged.held_by.unwrap().contains("index")), (0, true));
    assert_eq!(rows(&database).len(), 2);
    let foreign = json!({"session_id": "s", "source_last_seq": "1-g1AAAA", "history": []});
    let plain = json!({"session_id": "s", "last_seq": 1, "replicator": "pouchdb"});
    for (id, checkpoint) in [("_local/from", &foreign), ("_local/push", &plain), ("_local/notes", &json!({}))]
    {
        drop(
            database
                .write_local(id, checkpoint.to_string().as_bytes(), false, None, &SERVER)
                .unwrap()
                .wait()
                .unwrap(),
        );
    }
    assert_eq!(compact("a").documents, 1);
    delete(&database, "n01");
    rows(&database);
    let begun = json!({"session_id": "s", "history": []}).to_string();
    drop(database.write_local("_local/new", begun.as_bytes(), false, None, &SERVER).unwrap().wait().unwrap());
    let purged = compact("a");
    assert_eq!((purged.documents, purged.held_by.unwrap().contains("_local/new")), (0, true));
    drop(database.write_local("_local/new", b"", true, None, &SERVER).unwrap().wait().unwrap());
    assert_eq!(compact("a").documents, 1);
    // The content that both had is still the third's, and goes with it.
    assert_eq!(server.databases.collect_contents().unwrap().removed, 0);
    delete(&database, "n02");
    rows(&database);
    assert_eq!((compact("a").documents, database.info().unwrap().purged_count), (1, 3));
    assert_eq!(database.info().unwrap().sizes.external_bytes, get_external(&database));
    // A purged document is as if it had never existed.
    assert!(matches!(
        database.read("n00", &ReadOptions::default(), &SERVER),
        Err(DatabaseError::NotFound { .. })
    ));
    assert!(put(&database, &json!({"_id": "n00", "Size": 1})).unwrap().revision.starts_with("1-"));
    assert_eq!(rows(&database).len(), 1);
}

/// Bytes of what is left, which is the design document.
fn get_external(database: &OpenDatabase) -> u64 {
    let twin = Server::quick();
    let other = twin.databases.create("b", &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&other, &design()).unwrap();
    assert_eq!(database.info().unwrap().document_count, 1);
    other.info().unwrap().sizes.external_bytes
}

#[test]
fn what_left_a_folder_is_purged_and_clients_from_before_are_told() {
    let server = Server::timed();
    let compact = purging(&server);
    let database = prepare(&server.databases, "a");
    for document in 0..3 {
        run(&database, &Step::Put { document, size: 10, attached: 0 });
        run(&database, &Step::Place { document, there: true });
    }
    let everything = SERVER.clone();
    let changes = |since| database.folder_changes("Inbox", since, 100, &everything).unwrap();
    let seen = changes(0).last;
    run(&database, &Step::Place { document: 0, there: false });
    delete(&database, "n01");
    assert_eq!(changes(seen).changes.iter().filter(|change| change.has_left()).count(), 2);
    // A later document, so that it is known that what was before is old.
    run(&database, &Step::Put { document: 9, size: 10, attached: 0 });
    rows(&database);
    let purged = compact("a");
    assert_eq!((purged.memberships, purged.documents), (2, 1));
    let now = changes(seen);
    assert!(now.incomplete && now.changes.is_empty());
    assert!(!changes(now.last).incomplete && !changes(0).incomplete);
    assert_eq!(rows(&database).len(), 3 + 1);
}

#[test]
fn an_update_that_read_a_tombstone_before_it_was_purged_builds_on_nothing() {
    let server = Server::timed();
    let compact = purging(&server);
    let database = prepare(&server.databases, "a");
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (database, ended) = (&database, &ended);
            scope.spawn(move || {
                for turn in 0..150 {
                    let id = format!("w{writer}-{}", turn % 5);
                    let current = get(database, &id).ok();
                    let mut json = json!({"_id": id, "turn": turn});
                    if let Some(current) = &current {
                        json["_rev"] = current["_rev"].clone();
                        json["_deleted"] = json!(true);
                    }
                    put(database, &json).unwrap();
                }
                ended.store(true, Ordering::Relaxed);
            });
        }
        while !ended.load(Ordering::Relaxed) {
            compact("a");
        }
    });
    let there =
        database.all_documents(RowQuery::default(), &SERVER).unwrap().next_rows(100).unwrap().len() as u64;
    let info = database.info().unwrap();
    assert_eq!(info.document_count, there);
    compact("a");
    assert_eq!(database.info().unwrap().deleted_count, 0);
    let feed = database.changes(ChangesQuery::default(), &SERVER).unwrap().next_changes(1000).unwrap();
    assert_eq!(feed.len() as u64, there);
}

/// Told to wait before it begins, then to go on; another one is stopped instead.
fn a_compaction_pauses_and_stops(databases: &Databases, tasks: &Tasks, number: u32) {
    databases.io_limits().set_rate(IoClass::Compact, 1 << 20);
    std::thread::scope(|scope| {
        let compacting =
            scope.spawn(move || Compactor::of(databases).compact("a", &CompactOrder::default()).unwrap());
        let status = loop {
            if let Some(status) = tasks.running().into_iter().find(|task| task.done > 0) {
                break status;
            }
        };
        assert_eq!((status.kind.as_str(), status.database.as_deref()), ("database_compaction", Some("a")));
        assert!(Compactor::of(databases).is_compacting(number));
        assert!(
            Compactor::of(databases).compact("a", &CompactOrder::default()).unwrap().skipped,
            "it is under way"
        );
        tasks.pause(status.id, true).unwrap();
        std::thread::sleep(Duration::from_millis(150));
        let done = tasks.running()[0].done;
        std::thread::sleep(Duration::from_millis(150));
        assert_eq!(tasks.running()[0].done, done, "it waits");
        assert!(tasks.cancel(status.id));
        assert!(compacting.join().unwrap().stopped);
    });
}

#[test]
fn garbage_is_told_reclaimed_and_counted_and_a_task_pauses_and_stops() {
    let server = Server::quick();
    let (tasks, registry) = (Tasks::new(), Registry::new());
    server.databases.set_tasks(&tasks);
    Compactor::of(&server.databases).register_statistics(&registry);
    let database = server.databases.create("a", &scrinium_database::InitialAccess::Everybody).unwrap();
    let text = |number: u64| {
        (0..40_u64)
            .map(|part| format!("{:x}", (number * 41 + part).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect()
    };
    let mut revisions: BTreeMap<u64, String> = BTreeMap::new();
    for round in 0..3 {
        for start in (0..8_000).step_by(1000) {
            let edits = (start..start + 1000).map(|number| {
                let body: String = text(number + round * 10_000);
                let mut json = json!({"_id": format!("{number:06}"), "Body": body});
                if let Some(revision) = revisions.get(&number) {
                    json["_rev"] = json!(revision);
                    json["_deleted"] = json!(round == 2 && number % 2 == 0);
                }
                Edit { json: json.to_string().into(), ..Edit::default() }
            });
            let updated =
                database.update(edits.collect(), EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
            for (number, updated) in (start..).zip(updated) {
                revisions.insert(number, updated.unwrap().revision);
            }
        }
        server.store.as_ref().unwrap().admin().checkpoint().unwrap();
        if round == 0 {
            // Only when all was rewritten is it known how well these texts compress.
            Compactor::of(&server.databases)
                .compact("a", &CompactOrder { style: CompactStyle::Copy, ..CompactOrder::default() })
                .unwrap();
        }
    }
    let before = database.sizes().unwrap();
    assert!(before.garbage_percent() > 40, "{before:?}");

    let order = CompactOrder { least_garbage_percent: 99, ..CompactOrder::default() };
    assert!(Compactor::of(&server.databases).compact("a", &order).unwrap().skipped);
    assert_eq!(Compactor::of(&server.databases).with_garbage(100).unwrap(), Vec::<String>::new());

    a_compaction_pauses_and_stops(&server.databases, &tasks, database.number());
    server.databases.io_limits().set_rate(IoClass::Compact, 0);
    let compacted = Compactor::of(&server.databases).compact("a", &CompactOrder::default()).unwrap();
    let after = compacted.after;
    let away = after.file_bytes.abs_diff(before.active_bytes) as f64 / after.file_bytes as f64;
    assert!(away < 0.06, "told {} before, {} after", before.active_bytes, after.file_bytes);
    assert!(after.garbage_percent() < 3, "{after:?}");
    let snapshot = registry.snapshot();
    let figure = |name: &str| snapshot.gauges.get(name).copied().unwrap();
    assert_eq!((figure("Database.Compact.Completed"), figure("Database.Compact.Stopped")), (2.0, 1.0));
    assert!(figure("Database.Compact.Slices") >= 3.0);
}
