//! Builds that do not fit into memory, and builds that a crash cuts off.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::sync::Arc;

use scrinium_database::{Edit, EditMode, RowQuery};
use scrinium_statistics::Registry;
use scrinium_store::{Purpose, Store, StoreOptions};
use serde_json::json;

use super::super::environment;
use super::segment::Evaluation;
use super::workplace::Workplace;
use super::{View, Written, build_once};
use crate::open::OpenDatabase;
use crate::testing::{SERVER, TestServer};

/// A few hundred entries of the views below.
const LIMIT_BYTES: usize = 50_000;

/// Several times as many as fit into that memory, and more where tests are to be long. Progress is reported after
/// every 1,024th.
fn document_count() -> u64 {
    if std::env::var_os("SCRINIUM_TIMES").is_some() { 12_288 } else { 4_096 }
}

fn remove_left_builds(server: &TestServer, database: &OpenDatabase) {
    super::remove_left_builds(&server.views, &[Arc::clone(&server.context)], &|name| {
        (name == database.name()).then(|| database.clone())
    });
}

fn put(database: &OpenDatabase, documents: impl Iterator<Item = serde_json::Value>) {
    let edits = documents.map(|json| Edit { json: json.to_string().into(), ..Edit::default() }).collect();
    let results = database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    results.into_iter().for_each(|result| drop(result.unwrap()));
}

fn document(number: u64) -> serde_json::Value {
    let tags: Vec<String> = (0..number % 4).map(|tag| format!("tag {tag}")).collect();
    let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    json!({"_id": format!("{number:05}"), "Key": key, "Tags": tags, "Size": number, "Half": number as f64 / 2.0})
}

fn filled(dir: &std::path::Path) -> (TestServer, OpenDatabase) {
    let store = Store::open(StoreOptions::new(dir), &Registry::new()).unwrap();
    let server = TestServer::new(&store);
    let database = server.create("large");
    put(&database, (0..document_count()).map(document));
    put(
        &database,
        std::iter::once(json!({"_id": "_design/d", "language": "formula", "views": {
            "keys": {"columns": [
                {"title": "Key", "formula": "Key", "sort": "desc"}, {"title": "Size", "formula": "Size", "total": true}]},
            "tags": {"columns": [
                {"title": "Tag", "formula": "Tags", "category": true}, {"title": "Half", "formula": "Half", "total": true}]},
            "unique": {"unique": true, "columns": [
                {"title": "Tag", "formula": "Tags", "category": true}, {"title": "Last", "formula": "@Right(@Text(Size); 2)", "sort": "asc"},
                {"title": "Half", "formula": "Half", "total": true}]},
        }})),
    );
    (server, database)
}

/// All rows and the totals of the views.
fn contents(database: &OpenDatabase) -> Vec<String> {
    let mut all = Vec::new();
    for view in ["keys", "tags", "unique"] {
        let mut rows = database.view("d", view, RowQuery::default(), &SERVER).unwrap();
        while let Some(some) = Some(rows.next_rows(1000).unwrap()).filter(|rows| !rows.is_empty()) {
            all.extend(some.into_iter().map(|row| format!("{} {:?} {:?}", row.key, row.id, row.value)));
        }
        let query = RowQuery { reduce: Some(true), group: true, ..RowQuery::default() };
        let mut totals = database.view("d", view, query, &SERVER).unwrap();
        all.extend(
            totals.next_rows(100_000).unwrap().into_iter().map(|row| format!("{} {:?}", row.key, row.value)),
        );
    }
    all
}

/// What the views hold that were built in memory, in one go.
fn expected(change: impl Fn(&OpenDatabase)) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let (_server, database) = filled(dir.path());
    change(&database);
    contents(&database)
}

/// Calls `work` with an evaluation of the views that may hold little memory.
fn with_evaluation<T>(database: &OpenDatabase, work: impl FnOnce(&Evaluation<'_>, Workplace) -> T) -> T {
    let group = database.view_group("d").unwrap();
    let views: Vec<&View> = group.views.iter().collect();
    let snapshot = database.store().snapshot();
    let environment = environment(database);
    let evaluation = Evaluation {
        database,
        views: &views,
        snapshot: &snapshot,
        environment: &environment,
        task: None,
        documents: document_count(),
        limit_bytes: LIMIT_BYTES,
        memory: &database.store().admin().reserve(Purpose::ViewBuilds, 0),
    };
    let reached = database.visible_change_number();
    work(&evaluation, Workplace::open(database, &views, reached, LIMIT_BYTES))
}

#[test]
fn what_does_not_fit_into_memory_is_sorted_in_files() {
    let dir = tempfile::tempdir().unwrap();
    let (_server, database) = filled(dir.path());
    with_evaluation(&database, |evaluation, mut workplace| {
        build_once(&mut workplace, evaluation).unwrap();
        assert!(workplace.files() >= 4, "{}", workplace.files());
        workplace.remove();
    });
    assert_eq!(contents(&database), expected(|_| {}));
}

/// Documents change between the crash and the second attempt, on both sides of the place where it continues.
#[test]
fn a_build_goes_on_where_a_crash_cut_it_off() {
    let change = |database: &OpenDatabase| {
        let rewrite = |number: u64| {
            let id = format!("{number:05}");
            let revision =
                database.read(&id, &scrinium_database::ReadOptions::default(), &SERVER).unwrap().revision;
            let mut document = document(number + 7);
            document["_id"] = json!(id);
            document["_rev"] = json!(revision);
            if number.is_multiple_of(3) {
                document["_deleted"] = json!(true);
            }
            document
        };
        let count = document_count();
        put(database, (0..count).step_by(11).map(rewrite));
        put(database, (count..count + 50).map(document));
    };
    let dir = tempfile::tempdir().unwrap();
    let (_server, database) = filled(dir.path());
    with_evaluation(&database, |evaluation, mut workplace| {
        for _ in 0..2 {
            let segment = evaluation.segment(workplace.after()).unwrap();
            workplace.spill(segment, &[1, 1, 1]).unwrap();
        }
    });
    change(&database);
    with_evaluation(&database, |_, workplace| {
        let after = workplace.after().unwrap();
        let last = format!("{:05}", document_count() - 100);
        assert!(("00100"..last.as_str()).contains(&after), "{after}");
        assert!(workplace.reached() < database.visible_change_number());
    });
    assert_eq!(contents(&database), expected(change));
}

/// A file that is damaged costs the work that was done, and nothing else.
#[test]
fn damaged_files_of_a_build_are_thrown_away() {
    let dir = tempfile::tempdir().unwrap();
    let (_server, database) = filled(dir.path());
    with_evaluation(&database, |evaluation, mut workplace| {
        let segment = evaluation.segment(workplace.after()).unwrap();
        workplace.spill(segment, &[1, 1, 1]).unwrap();
        let path = workplace.path().join("0.run");
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        std::fs::write(path, bytes).unwrap();
    });
    assert_eq!(contents(&database), expected(|_| {}));
}

fn spill_some(database: &OpenDatabase) -> Workplace {
    with_evaluation(database, |evaluation, mut workplace| {
        let segment = evaluation.segment(workplace.after()).unwrap();
        workplace.spill(segment, &[1, 1, 1]).unwrap();
        workplace
    })
}

/// Servers may share the folder of builds, also one and a restored copy of it.
#[test]
fn what_a_killed_server_has_left_of_builds_goes_and_what_another_one_works_on_stays() {
    let (dir, other_dir, rebuild) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (server, database) = filled(dir.path());
    let (others, other) = filled(other_dir.path());
    server.views.set_rebuild_dir(rebuild.path().into());
    others.views.set_rebuild_dir(rebuild.path().into());
    let living = spill_some(&other);
    // What will be resumed stays.
    let left = spill_some(&database).path().to_owned();
    remove_left_builds(&server, &database);
    assert!(left.exists() && living.path().exists());
    with_evaluation(&database, |_, workplace| assert!(workplace.is_resumed()));
    // While another one works in it, it is not resumed, and not removed.
    let working = spill_some(&database);
    with_evaluation(&database, |_, mut workplace| {
        assert!(!workplace.is_resumed() && workplace.path() != left);
        workplace.remove();
    });
    remove_left_builds(&server, &database);
    assert!(left.exists());
    // One that another history of the same store has left tells of other documents.
    drop(working);
    let owner = std::fs::read_to_string(left.join("owner")).unwrap();
    std::fs::write(left.join("owner"), format!("{}-0123456789abcdef", &owner[..32])).unwrap();
    with_evaluation(&database, |_, workplace| assert!(!workplace.is_resumed()));
    assert!(!left.exists());
    // Of views that are built meanwhile nothing is of use.
    let left = spill_some(&database).path().to_owned();
    let kept = rebuild.path().join("kept");
    std::fs::rename(&left, &kept).unwrap();
    assert_eq!(contents(&database), expected(|_| {}));
    std::fs::rename(&kept, &left).unwrap();
    remove_left_builds(&server, &database);
    assert!(!left.exists() && living.path().exists());
    let path = living.path().to_owned();
    drop(living);
    remove_left_builds(&server, &database);
    assert!(path.exists(), "it is the other one's to go on with");
}

/// Writing the files is half of the work, and is counted.
#[test]
fn a_build_tells_how_far_the_writing_is() {
    let dir = tempfile::tempdir().unwrap();
    let (_server, database) = filled(dir.path());
    let tasks = scrinium_statistics::Tasks::new();
    let task = tasks.start("indexer", None, Some(2 * document_count()));
    with_evaluation(&database, |evaluation, mut workplace| {
        let evaluation = Evaluation {
            database: evaluation.database,
            views: evaluation.views,
            snapshot: evaluation.snapshot,
            environment: evaluation.environment,
            task: Some(&task),
            documents: document_count(),
            limit_bytes: LIMIT_BYTES,
            memory: evaluation.memory,
        };
        let written = Written::new(&evaluation, 3 * document_count());
        assert_eq!(tasks.running()[0].percent(), Some(50));
        (0..2 * document_count()).for_each(|_| written.one_more().unwrap());
        assert!((74..=75).contains(&tasks.running()[0].percent().unwrap()));
        build_once(&mut workplace, &evaluation).unwrap();
        workplace.remove();
    });
    assert!(tasks.running()[0].percent().unwrap() >= 98, "{:?}", tasks.running());
}
