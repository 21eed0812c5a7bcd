//! Databases that are not logged.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::{SERVER, Server, get, put};
use scrinium_database::{ChangesQuery, HistoryLimits, Properties, Quota, UndeleteChoice};
use serde_json::json;

const LOGGED: Properties = Properties {
    logged: true,
    full_text: false,
    quota: Quota::NONE,
    history: HistoryLimits::NONE,
    undelete: UndeleteChoice::NONE,
};
const UNLOGGED: Properties = Properties { logged: false, ..LOGGED };

const fn kept(revisions: u32) -> Properties {
    Properties { history: HistoryLimits { revisions, days: 0 }, ..LOGGED }
}

/// Writers go on while the database is taken out of the log and put back. What the feed gives is durable, has no gaps
/// and is there after a crash.
#[test]
fn logging_is_changed_while_a_database_is_written_to() {
    let server = Server::quick();
    let database = server.databases.create("test", &scrinium_database::InitialAccess::Everybody).unwrap();
    let done = AtomicBool::new(false);
    // Odd while the database is being changed.
    let steps = AtomicU64::new(0);
    let mut given = 0;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let database = &database;
                scope.spawn(move || {
                    for number in 0..60 {
                        put(database, &json!({"_id": format!("{writer}-{number}"), "n": number})).unwrap();
                    }
                })
            })
            .collect();
        let changing = scope.spawn(|| {
            for round in 0.. {
                steps.fetch_add(1, Ordering::SeqCst);
                database.set_properties(if round % 2 == 0 { UNLOGGED } else { LOGGED }).unwrap();
                steps.fetch_add(1, Ordering::SeqCst);
                assert_eq!(database.is_logged(), round % 2 == 1);
                if done.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            let (step, logged) = (steps.load(Ordering::SeqCst), database.is_logged());
            let mut changes = database.changes(ChangesQuery::default(), &SERVER).unwrap();
            let numbers: Vec<u64> =
                changes.next_changes(1000).unwrap().iter().map(|change| change.change_number).collect();
            let visible = database.visible_change_number();
            // Each document changes once.
            assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{numbers:?}");
            let was_unlogged = !logged && step % 2 == 0 && step == steps.load(Ordering::SeqCst);
            assert!(
                !was_unlogged || numbers.last().is_none_or(|last| *last <= visible),
                "{numbers:?}, {visible}"
            );
            assert!(numbers.len() >= given);
            given = numbers.len();
        }
        done.store(true, Ordering::Relaxed);
        changing.join().unwrap();
    });
    let crashed = server.crash();
    let recovered = crashed.databases.get("test").unwrap();
    assert_eq!(recovered.properties(), database.properties());
    let info = recovered.info().unwrap();
    assert_eq!((info.document_count, info.change_number), (240, 240));
}

#[test]
fn properties_go_with_their_database() {
    let server = Server::quick();
    let database = server.databases.create("test", &scrinium_database::InitialAccess::Everybody).unwrap();
    assert_eq!(database.properties(), LOGGED);
    database.set_properties(UNLOGGED).unwrap();
    put(&database, &json!({"_id": "a", "n": 1})).unwrap();
    drop(database);
    let server = server.reopen();
    let database = server.databases.get("test").unwrap();
    assert_eq!(database.properties(), UNLOGGED);
    assert_eq!(get(&database, "a").unwrap()["n"], 1);
    put(&database, &json!({"_id": "b", "n": 2})).unwrap();
    drop(database);
    server.databases.delete("test").unwrap();
    server.databases.purge_dropped().unwrap();
    assert_eq!(
        server.databases.create("test", &scrinium_database::InitialAccess::Everybody).unwrap().properties(),
        LOGGED
    );
    let crashed = server.crash();
    let database = crashed.databases.get("test").unwrap();
    assert_eq!((database.properties(), database.info().unwrap().document_count), (LOGGED, 0));
    for (wish, accepted) in [
        (json!({}), Some(LOGGED)),
        (json!({"logged": false}), Some(UNLOGGED)),
        (json!({"logged": "false"}), None),
        (json!({"logged": false, "other": 1}), None),
        (json!({"history_revisions": 20, "history_days": 0}), Some(kept(20))),
        (json!({"history_revisions": 1001}), None),
        (json!({"history_days": -1}), None),
        (json!({"history_days": true}), None),
    ] {
        assert_eq!(LOGGED.changed(wish.as_object().unwrap()).ok(), accepted);
    }
}
