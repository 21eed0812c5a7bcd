//! Folders and unread marks against a simple model, through conflicts, deletions and crashes.

mod checks;
mod model;
mod steps;
mod world;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::common::words::Words as _;
use crate::common::{SERVER, Server, edit, get, put};
use proptest::prelude::*;
use scrinium_database::{
    Access, DatabaseError, Edit, EditMode, FlagsChange, FlagsChanged, FolderChange, Identity, Level,
    MAX_KEYWORDS, MAX_READERS, RowQuery,
};
use scrinium_store::Family;
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};
use steps::{columns, step};
use world::World;

/// The server of the last run, for the next one.
static WORLD: Mutex<Option<World>> = Mutex::new(None);

#[test]
fn folders_and_marks_are_what_a_simple_model_says() {
    folders_and_marks();
    drop(WORLD.lock().unwrap().take());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scrinium_fault::cases(48), ..ProptestConfig::default() })]

    fn folders_and_marks(steps in prop::collection::vec(step(), 1..60)) {
        // A run that fails leaves none.
        let mut world = World::new(WORLD.lock().unwrap_or_else(PoisonError::into_inner).take());
        for (place, step) in steps.into_iter().enumerate() {
            world.run(step);
            if place % 7 == 0 {
                world.check();
            }
        }
        world.check();
        // Other columns that mean the same: the collection is rebuilt, and is what it was.
        let folders: Vec<(String, u8)> =
            world.model.folders.values().map(|folder| (folder.name.clone(), folder.variant)).collect();
        for (name, variant) in folders {
            let before = world.rows(&name, &RowQuery::default());
            world.database.define_folder(&name, Some(&columns(variant + 100))).unwrap();
            prop_assert_eq!(&world.rows(&name, &RowQuery::default()), &before);
            prop_assert_eq!(world.database.update_all_views(Some(&name.to_uppercase()), true).unwrap(), 1);
            prop_assert_eq!(world.rows(&name, &RowQuery::default()), before);
        }
        world.database.clean_up_views().unwrap();
        world.crash();
        world.check();
        // The same under another name, as a restore brings it in.
        world.adopt();
        world.check();
        *WORLD.lock().unwrap_or_else(PoisonError::into_inner) = Some(world);
    }
}

/// More documents than one step of following takes, from both feeds at once.
#[test]
fn a_large_folder_follows_in_steps_what_a_small_one_does_in_one() {
    const DOCUMENTS: u32 = 1600;
    let server = Server::quick();
    let database = server.databases.create("mail/ada", &scrinium_database::InitialAccess::Everybody).unwrap();
    database.define_folder("Inbox", Some(&columns(0))).unwrap();
    let document = |n: u32| json!({"_id": format!("{:05}", n * 7919 % DOCUMENTS), "Date": n % 31, "Size": n});
    let edits = |numbers: &mut dyn Iterator<Item = u32>, folders: &[FolderChange]| {
        let edit = |n: u32| Edit { folders: folders.to_vec(), ..edit(&document(n)) };
        let edits: Vec<Edit> = numbers.map(edit).collect();
        database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap().into_iter().for_each(
            |result| {
                result.unwrap();
            },
        );
    };
    let inbox = || "inbox".to_owned();
    edits(&mut (0..DOCUMENTS).step_by(2), &[FolderChange::Add { folder: inbox() }]);
    edits(&mut (1..DOCUMENTS).step_by(2), &[]);
    let ids =
        |numbers: std::ops::Range<u32>| numbers.map(|n| document(n)["_id"].as_str().unwrap().to_owned());
    let add = ids(0..1200).map(|id| (id, FolderChange::Add { folder: inbox() })).collect();
    database.change_folders(add, &SERVER).unwrap().wait().unwrap();
    let check = |expected: &BTreeMap<String, i64>| {
        let mut rows = database.folder_rows("INBOX", RowQuery::default(), (None, &SERVER)).unwrap();
        assert_eq!(rows.total_rows, Some(expected.len() as u64));
        let rows = rows.next_rows(usize::MAX).unwrap();
        let mut wanted: Vec<(i64, &String)> = expected.iter().map(|(id, date)| (-date, id)).collect();
        wanted.sort();
        assert!(rows.iter().map(|row| row.id.as_ref().unwrap()).eq(wanted.into_iter().map(|(_, id)| id)));
    };
    let date = |n: u32| i64::from(n % 31);
    let mut expected: BTreeMap<String, i64> = ids(0..1200).zip((0..1200).map(date)).collect();
    for n in (1200..DOCUMENTS).step_by(2) {
        expected.insert(ids(n..n + 1).next().unwrap(), date(n));
    }
    check(&expected);
    // Deleted, edited and moved out at once, in an order in which each feed is ahead of the other at times.
    for n in 0..DOCUMENTS {
        let id = ids(n..n + 1).next().unwrap();
        match n % 3 {
            0 if n > 700 => {
                let gone = FolderChange::Remove { folder: inbox() };
                drop(database.change_folders(vec![(id.clone(), gone)], &SERVER).unwrap());
                expected.remove(&id);
            }
            1 if n > 400 => {
                let mut known = get(&database, &id).unwrap();
                known["Date"] = json!(100 + n % 7);
                drop(database.update(vec![edit(&known)], EditMode::Interactive, &SERVER).unwrap());
                expected.entry(id).and_modify(|date| *date = i64::from(100 + n % 7));
            }
            2 if n % 2 == 0 => {
                let rev = get(&database, &id).unwrap()["_rev"].clone();
                put(&database, &json!({"_id": id, "_rev": rev, "_deleted": true})).unwrap();
                expected.remove(&id);
            }
            _ => {}
        }
    }
    put(&database, &json!({"_id": "last"})).unwrap();
    check(&expected);
    database.define_folder("Inbox", Some(&columns(2))).unwrap();
    check(&expected);
    let marked = database.mark_folder("ada", "Inbox", true, &SERVER).unwrap();
    assert_eq!(marked, expected.len() as u64);
    let unread = database.unread("ada").unwrap();
    assert_eq!(unread.folders, [("Inbox".to_owned(), 0)]);
    assert_eq!(unread.database, database.info().unwrap().document_count - marked);
}

#[test]
fn what_is_refused_changes_nothing() {
    let server = Server::quick();
    let database = server.databases.create("db", &scrinium_database::InitialAccess::Everybody).unwrap();
    database.define_folder("Inbox", None).unwrap();
    let add = |folder: &str| FolderChange::Add { folder: folder.to_owned() };
    let with = |json: Value, folders: Vec<FolderChange>| {
        let edit = Edit { folders, ..edit(&json) };
        database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap().wait().unwrap().remove(0)
    };
    let refused = with(json!({"_id": "a"}), vec![add("Inbox"), add("Nowhere")]).unwrap_err();
    assert_eq!(refused.reason(), "There is no folder `Nowhere`.");
    assert_eq!(get(&database, "a").unwrap_err().reason(), "missing");
    let columns = Some(Arc::new(json!([{"formula": "@Nothing("}])));
    let make = FolderChange::Make { folder: "New".to_owned(), columns, special_use: None };
    let refused = with(json!({"_id": "a"}), vec![make, add("New")]).unwrap_err();
    assert_eq!(refused.error(), "compilation_error");
    let name = FolderChange::Make { folder: "a\\".to_owned(), columns: None, special_use: None };
    assert_eq!(with(json!({"_id": "a"}), vec![name]).unwrap_err().error(), "illegal_folder_name");
    with(json!({"_id": "a"}), vec![add("Inbox")]).unwrap();
    assert_eq!(with(json!({"_id": "a"}), vec![add("Inbox")]).unwrap_err().error(), "conflict");
    let design = json!({"_id": "_design/x", "views": {}});
    assert_eq!(with(design, vec![add("Inbox")]).unwrap_err().status(), 400);
    let info = database.folder("Inbox", None).unwrap();
    assert_eq!((info.total, info.next_uid), (1, 2));

    let mark = |person: &str, id: &str| {
        database
            .mark(person, vec![id.to_owned()], true, &SERVER)
            .map(|update| update.wait().unwrap().remove(0))
    };
    assert_eq!(mark("ada", "nothing").unwrap().unwrap_err().status(), 404);
    assert_eq!(mark("ada", "_design/x").unwrap().unwrap_err().status(), 400);
    assert_eq!(mark("", "a").map(drop).unwrap_err().status(), 400);
    assert_eq!(mark(&"x".repeat(257), "a").map(drop).unwrap_err().status(), 400);
    assert_eq!(database.rename_folder("Inbox", "Other\\").unwrap_err().error(), "illegal_folder_name");
    let missing = database.folder_rows("Outbox", RowQuery::default(), (None, &SERVER)).map(drop).unwrap_err();
    assert_eq!(missing.status(), 404);
    assert_eq!(database.folders(None).unwrap().len(), 1);
}

/// An edit by somebody else is unread for everybody; a bounded number of them.
#[test]
fn as_many_people_as_are_kept_read_a_document() {
    let server = Server::quick();
    let database = server.databases.create("db", &scrinium_database::InitialAccess::Everybody).unwrap();
    database.define_folder("All", None).unwrap();
    let folders = vec![FolderChange::Add { folder: "All".to_owned() }];
    let first = Edit { folders, ..edit(&json!({"_id": "a"})) };
    drop(database.update(vec![first], EditMode::Interactive, &SERVER).unwrap());
    let person = |number: u64| format!("person {number}");
    let updates: Vec<_> = (0..=MAX_READERS)
        .map(|number| database.mark(&person(number), vec!["a".to_owned()], true, &SERVER).unwrap())
        .collect();
    let refused: Vec<DatabaseError> =
        updates.into_iter().filter_map(|update| update.wait().unwrap().remove(0).err()).collect();
    assert_eq!(refused.iter().map(DatabaseError::error).collect::<Vec<_>>(), ["too_many_readers"]);
    let unread = |number: u64| database.unread(&person(number)).unwrap();
    assert_eq!((unread(0).database, unread(MAX_READERS).database), (0, 1));
    let mut known = get(&database, "a").unwrap();
    known["n"] = json!(1);
    let edit = Edit { editor: Some(person(7).into()), ..edit(&known) };
    drop(database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap().wait().unwrap());
    assert_eq!((unread(0).database, unread(7).database), (1, 0));
    assert_eq!(unread(MAX_READERS - 1).folders, [("All".to_owned(), 1)]);
    put(&database, &json!({"_id": "a", "_rev": get(&database, "a").unwrap()["_rev"], "_deleted": true}))
        .unwrap();
    assert_eq!((unread(7).database, unread(0).database), (0, 0));
}

/// The kinds of the keys that work changes in a database, each as often as keys of it were changed.
fn kinds_written(database: &OpenDatabase, work: impl FnOnce()) -> String {
    let watch = database.store().admin().watch_keys(database.number(), 1000);
    work();
    let touched = watch.take();
    assert!(!touched.lost_track);
    let mut kinds: Vec<char> = touched
        .keys
        .iter()
        .filter(|(family, _)| *family != Family::Meta)
        .map(|(_, key)| char::from(key[4]))
        .collect();
    kinds.sort_unstable();
    kinds.into_iter().collect()
}

fn flag(database: &OpenDatabase, id: &str, change: FlagsChange) -> Result<FlagsChanged, DatabaseError> {
    database.change_flags(&[(id.to_owned(), change)], &SERVER).unwrap().remove(0)
}

fn adding(flags: &[&str]) -> FlagsChange {
    FlagsChange { add: flags.iter().map(|flag| (*flag).to_owned()).collect(), ..FlagsChange::default() }
}

#[test]
fn what_is_in_no_folder_writes_nothing_for_folders() {
    let server = Server::quick();
    let database = server.databases.create("db", &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&database, &json!({"_id": "a", "n": 1})).unwrap();
    let edit_of = |id: &str| {
        let known = get(&database, id).unwrap();
        kinds_written(&database, || drop(put(&database, &known).unwrap()))
    };
    let without_folders = edit_of("a");
    assert_eq!(without_folders, "bhss");
    database.define_folder("Inbox", None).unwrap();
    let folders = vec![FolderChange::Add { folder: "Inbox".to_owned() }];
    let b = Edit { folders, ..edit(&json!({"_id": "b", "n": 1})) };
    drop(database.update(vec![b], EditMode::Interactive, &SERVER).unwrap().wait().unwrap());
    database.mark("ada", vec!["b".to_owned()], true, &SERVER).unwrap().wait().unwrap().remove(0).unwrap();
    assert_eq!(edit_of("a"), without_folders);
    // A change of flags: the document, and what its folder says of it. Nobody's mark is touched.
    let written = kinds_written(&database, || drop(flag(&database, "b", adding(&["\\Flagged"])).unwrap()));
    assert_eq!(written, "Gbffhmssu");
    // What is of the folder alone makes no revision.
    let deleted = FolderChange::SetDeleted { folder: "Inbox".to_owned(), deleted: true };
    let delete = || FlagsChange { folders: vec![deleted.clone()], ..FlagsChange::default() };
    assert_eq!(kinds_written(&database, || drop(flag(&database, "b", delete()).unwrap())), "Gffmu");
    assert_eq!(kinds_written(&database, || drop(flag(&database, "b", delete()).unwrap())), "");
    assert_eq!(kinds_written(&database, || drop(flag(&database, "b", adding(&["\\FLAGGED"])).unwrap())), "");
    assert_eq!(database.unread("ada").unwrap().folders, [("Inbox".to_owned(), 0)]);
}

#[test]
fn flags_are_changed_only_as_asked_and_only_where_they_may_be() {
    let server = Server::quick();
    let database = server.databases.create("db", &scrinium_database::InitialAccess::Everybody).unwrap();
    let large = "x".repeat(10_000);
    put(&database, &json!({"_id": "a", "Body": large, "$Flags": ["\\Seen", 7, "no atom", "Later"]})).unwrap();
    let seen = database.info().unwrap().change_number;
    let changed =
        flag(&database, "a", FlagsChange { unchanged_since: Some(seen), ..adding(&["\\Answered"]) });
    assert_eq!(changed.unwrap().flags, ["\\Seen", "Later", "\\Answered"]);
    let after = get(&database, "a").unwrap();
    assert_eq!(
        (after["Body"].as_str(), &after["$Flags"]),
        (Some(large.as_str()), &json!(["\\Seen", "Later", "\\Answered"]))
    );
    // It has changed since: nothing is done, and who asked learns it.
    let changed =
        flag(&database, "a", FlagsChange { unchanged_since: Some(seen), ..adding(&["\\Draft"]) }).unwrap();
    assert!(changed.is_modified && get(&database, "a").unwrap()["_rev"] == after["_rev"]);
    let none = FlagsChange { replace: true, ..FlagsChange::default() };
    assert_eq!(flag(&database, "a", none).unwrap().flags, [""; 0]);
    assert!(get(&database, "a").unwrap().get("$Flags").is_none());
    for refused in ["\\Seen", "\\deleted", "\\Recent", "", "\\", "two words", "a]", &"x".repeat(129)] {
        assert_eq!(flag(&database, "a", adding(&[refused])).unwrap_err().status(), 400, "{refused}");
    }
    let many: Vec<String> = (0..65).map(|number| format!("k{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(flag(&database, "a", adding(&many)).unwrap_err().status(), 413);
    assert_eq!(flag(&database, "nothing", adding(&["\\Draft"])).unwrap_err().status(), 404);
    assert_eq!(flag(&database, "_design/x", adding(&["\\Draft"])).unwrap_err().status(), 400);
    // A reader may not, and a function of a design document may refuse it as any other edit.
    let reader = Access::of_level(&Identity::default(), Level::Reader);
    let change = [("a".to_owned(), adding(&["\\Draft"]))];
    let refused = database.change_flags(&change, &reader).unwrap().remove(0).unwrap_err();
    assert_eq!(refused.status(), 403);
}

/// Keywords beyond those that have numbers stay in their documents.
#[test]
fn a_database_gives_a_bounded_number_of_keywords_a_number() {
    let server = Server::quick();
    let database = server.databases.create("db", &scrinium_database::InitialAccess::Everybody).unwrap();
    database.define_folder("Inbox", None).unwrap();
    let folders = vec![FolderChange::Add { folder: "Inbox".to_owned() }];
    let a = Edit { folders, ..edit(&json!({"_id": "a"})) };
    drop(database.update(vec![a], EditMode::Interactive, &SERVER).unwrap().wait().unwrap());
    for first in (0..u32::from(MAX_KEYWORDS) + 20).step_by(10) {
        let keywords: Vec<String> = (first..first + 10).map(|number| format!("Keyword{number}")).collect();
        flag(&database, "a", FlagsChange { replace: true, add: keywords, ..FlagsChange::default() }).unwrap();
    }
    let keywords = database.keywords().unwrap();
    assert_eq!(keywords.len(), usize::from(MAX_KEYWORDS));
    assert_eq!(keywords[7], (8, "Keyword7".to_owned()));
    flag(&database, "a", FlagsChange { replace: true, ..adding(&["KEYWORD7", "Keyword219"]) }).unwrap();
    let members = database.folder_members("Inbox", 0, 10, (None, &SERVER)).unwrap().members;
    assert_eq!(members[0].keywords, [8]);
    assert_eq!(get(&database, "a").unwrap()["$Flags"], json!(["KEYWORD7", "Keyword219"]));
}
