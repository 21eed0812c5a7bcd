//! Transactions of several databases: all or none of one, whatever contends and however often the process is killed.
//!
//! `SCRINIUM_SEED=… SCRINIUM_KILLS=… cargo test -p scrinium-database --test it transactions` repeats a run, or makes it longer.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_catalog::Databases;
use scrinium_database::{
    Condition, ConditionKind, Database, DatabaseError, DatabaseOptions, Edit, InitialAccess, ReadOptions,
    TransactionPart, TransactionRefusal, update_together,
};
use scrinium_fault::{Kills, Victim, tell};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use serde_json::{Value, json};

use crate::common::SERVER;

const NAMES: [&str; 3] = ["a", "b", "c"];
const WRITERS: u64 = 3;
/// Most transactions of one child, so that a child that is never killed ends.
const MOST: u64 = 20_000;

fn open(folder: &Path) -> (Store, Databases, Vec<Arc<Database>>) {
    let store = Store::open(StoreOptions::new(folder), &Registry::new()).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    let opened = NAMES.map(|name| {
        let opened = databases.get(name).or_else(|_| databases.create(name, &InitialAccess::Everybody));
        Arc::clone(opened.unwrap().database())
    });
    (store, databases, opened.into())
}

fn stored(database: &Arc<Database>, id: &str) -> Option<Value> {
    let document = database.read(id, &ReadOptions::default(), &SERVER).ok()?;
    serde_json::from_str(&document.json).ok()
}

fn edit(document: &Value) -> Edit {
    Edit { json: document.to_string().into(), ..Edit::default() }
}

fn part(database: &Arc<Database>, conditions: Vec<Condition>, documents: &[Value]) -> TransactionPart {
    let edits = documents.iter().map(edit).collect();
    TransactionPart { database: Arc::clone(database), access: SERVER.clone(), conditions, edits }
}

/// The next value of a counter.
fn counted(database: &Arc<Database>, id: &str, value: u64) -> Value {
    let mut document = json!({"_id": id, "n": value});
    if let Some(stored) = stored(database, id) {
        document["_rev"] = stored["_rev"].clone();
    }
    document
}

fn value_of(database: &Arc<Database>, id: &str) -> u64 {
    stored(database, id).map_or(0, |document| document["n"].as_u64().unwrap())
}

/// One writer's transaction: its own counters in two databases and a document in the third; and, if nobody else is quicker,
/// a counter that all share.
fn write(opened: &[Arc<Database>], writer: u64, value: u64) {
    let (own, entry) = (format!("w{writer}"), format!("w{writer}-{value:05}"));
    for shares in [true, false] {
        let parts = opened.iter().enumerate().map(|(place, database)| {
            let mut documents = match place {
                2 => vec![json!({"_id": entry})],
                _ => vec![counted(database, &own, value)],
            };
            if shares {
                // Value and revision of one reading: another writer may come between two.
                let none = || json!({"_id": "shared", "n": 0});
                let mut shared = stored(database, "shared").unwrap_or_else(none);
                shared["n"] = json!(shared["n"].as_u64().unwrap() + 1);
                // Two writers' edits of one revision are never the same revision, which would be no conflict.
                shared["by"] = json!(entry);
                documents.push(shared);
            }
            part(database, Vec::new(), &documents)
        });
        match update_together(parts.collect()) {
            Ok(update) => return drop(update.wait().unwrap()),
            Err(TransactionRefusal::Edit { error: DatabaseError::Conflict, .. }) if shares => {}
            Err(TransactionRefusal::Whole(DatabaseError::Conflict)) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// Runs until it is killed; only the test below starts it.
#[test]
#[ignore = "a child process of the other test"]
fn child() {
    let Some((folder, _)) = Victim::order() else { return };
    let (_store, _databases, opened) = open(&folder);
    tell("ready");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let opened = &opened;
            scope.spawn(move || {
                let begun = value_of(&opened[0], &format!("w{writer}"));
                for value in begun + 1..begun + MOST {
                    write(opened, writer, value);
                    if value_of(&opened[0], &format!("w{writer}")) == value {
                        tell(format_args!("done {writer} {value}"));
                    }
                }
            });
        }
    });
    std::process::exit(0);
}

fn check(folder: &Path, done: &BTreeMap<u64, u64>) {
    let (store, databases, opened) = open(folder);
    let shared: Vec<u64> = opened.iter().map(|database| value_of(database, "shared")).collect();
    assert!(shared.iter().all(|value| *value == shared[0]), "half of a transaction: {shared:?}");
    for writer in 0..WRITERS {
        let id = format!("w{writer}");
        let value = value_of(&opened[0], &id);
        assert_eq!(value_of(&opened[1], &id), value, "half of a transaction of {id}");
        assert!(value >= done.get(&writer).copied().unwrap_or(0), "a transaction of {id} is lost");
        let there = |number: u64| stored(&opened[2], &format!("w{writer}-{number:05}")).is_some();
        assert!((1..=value).all(there) && !there(value + 1), "half of a transaction of {id}");
    }
    drop((opened, databases));
    store.close().unwrap();
}

#[test]
fn a_transaction_is_whole_or_not_there_whenever_the_process_is_killed() {
    let kills = Kills::from_environment(6);
    println!("{kills}");
    let mut random = StdRng::seed_from_u64(kills.seed);
    let folder = tempfile::tempdir().unwrap();
    let mut done = BTreeMap::new();
    for _ in 0..kills.count {
        let child = Victim::start(module_path!(), folder.path(), random.random()).unwrap();
        child.wait_until_ready().unwrap();
        std::thread::sleep(Duration::from_millis(random.random_range(5..250)));
        for line in child.kill().unwrap() {
            let words: Vec<&str> = line.split(' ').collect();
            let [_, writer, value] = words.as_slice() else { continue };
            done.insert(writer.parse().unwrap(), value.parse().unwrap());
        }
        check(folder.path(), &done);
    }
    assert!(!done.is_empty(), "nothing was done before the kills");
}

fn condition(id: &str, kind: ConditionKind) -> Condition {
    Condition { id: id.to_owned(), kind }
}

#[test]
fn a_refused_transaction_leaves_everything_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (_store, _databases, opened) = open(folder.path());
    let make = part(&opened[0], Vec::new(), &[json!({"_id": "x", "n": 1})]);
    let made = update_together(vec![make]).unwrap().wait().unwrap();
    let revision = made[0][0].revision.clone();
    let counts = || opened.iter().map(|database| database.info().unwrap().change_number).collect::<Vec<_>>();
    let before = counts();
    let refused = |conditions: Vec<Condition>, documents: &[Value]| {
        let parts = vec![
            part(&opened[1], Vec::new(), &[json!({"_id": "y"})]),
            part(&opened[0], conditions, documents),
        ];
        update_together(parts).map(|_| ()).unwrap_err()
    };
    let x = json!({"_id": "x", "_rev": revision, "n": 2});
    assert!(matches!(
        refused(Vec::new(), &[x.clone(), json!({"_id": "x", "_rev": revision})]),
        TransactionRefusal::Edit { place: 1, error: DatabaseError::Conflict, .. }
    ));
    for kind in [ConditionKind::Exists(false), ConditionKind::Revision("1-abc".to_owned())] {
        let refusal = refused(vec![condition("x", kind)], std::slice::from_ref(&x));
        assert!(matches!(refusal, TransactionRefusal::Condition { place: 0, .. }), "{refusal}");
    }
    let refusal = refused(vec![condition("none", ConditionKind::Exists(true))], std::slice::from_ref(&x));
    assert!(matches!(refusal, TransactionRefusal::Condition { .. }), "{refusal}");
    assert!(matches!(
        refused(Vec::new(), &[json!({"_id": "_local/x"})]),
        TransactionRefusal::Edit { place: 0, .. }
    ));
    let twice =
        vec![part(&opened[0], Vec::new(), &[]), part(&opened[0], Vec::new(), std::slice::from_ref(&x))];
    assert!(update_together(twice).is_err());
    assert_eq!(counts(), before);
    assert!(stored(&opened[1], "y").is_none());

    let holds = vec![
        condition("x", ConditionKind::Revision(revision)),
        condition("x", ConditionKind::Exists(true)),
        condition("none", ConditionKind::Exists(false)),
    ];
    let parts = vec![part(&opened[1], Vec::new(), &[json!({"_id": "y"})]), part(&opened[0], holds, &[x])];
    let stored_now = update_together(parts).unwrap().wait().unwrap();
    assert_eq!(stored_now.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
    assert!(stored(&opened[1], "y").is_some() && value_of(&opened[0], "x") == 2);
}

/// Money goes from one account to another, in two databases, by many at once; nothing of it is lost or made.
#[test]
fn transfers_that_contend_keep_their_sum() {
    const ACCOUNTS: u64 = 4;
    let folder = tempfile::tempdir().unwrap();
    let (_store, _databases, opened) = open(folder.path());
    for database in &opened[..2] {
        let accounts: Vec<Value> =
            (0..ACCOUNTS).map(|id| json!({"_id": format!("{id}"), "n": 100})).collect();
        update_together(vec![part(database, Vec::new(), &accounts)]).unwrap().wait().unwrap();
    }
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let opened = &opened;
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed);
                for _ in 0..60 {
                    let (from, to) = (random.random_range(0..2_usize), random.random_range(0..2_usize));
                    let (giver, taker) = (
                        random.random_range(0..ACCOUNTS).to_string(),
                        random.random_range(0..ACCOUNTS).to_string(),
                    );
                    if from == to {
                        continue;
                    }
                    let (Some(mut one), Some(mut other)) =
                        (stored(&opened[from], &giver), stored(&opened[to], &taker))
                    else {
                        panic!("an account is gone")
                    };
                    let Some(left) = one["n"].as_u64().unwrap().checked_sub(7) else { continue };
                    one["n"] = left.into();
                    other["n"] = (other["n"].as_u64().unwrap() + 7).into();
                    let parts = vec![
                        part(&opened[from], Vec::new(), &[one]),
                        part(&opened[to], Vec::new(), &[other]),
                    ];
                    // Who comes second has read what holds no more.
                    drop(update_together(parts).map(|update| update.wait().unwrap()));
                }
            });
        }
    });
    let sum: u64 = opened[..2]
        .iter()
        .flat_map(|database| (0..ACCOUNTS).map(|id| value_of(database, &id.to_string())))
        .sum();
    assert_eq!(sum, 2 * ACCOUNTS * 100);
}
