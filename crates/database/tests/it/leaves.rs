//! What somebody may read of a document with several leaves, what they may put in its place, and what is their own.

use scrinium_database::{
    Access, AccessList, ChangesQuery, DatabaseError, Edit, EditMode, Identity, Level, OpenRevision,
    OpenRevisions, ReadOptions, RowQuery,
};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::access::{designs, store_as};
use crate::common::words::Words as _;
use crate::common::{SERVER, Server, all_rows, edit, put};

/// A database in which everybody is an author, with leaves of the document `a` as they are given.
fn with_leaves(server: &Server, leaves: &[Value]) -> OpenDatabase {
    let database = server.databases.create("memos", &scrinium_database::InitialAccess::Everybody).unwrap();
    database
        .set_access_list(Some(AccessList::parse(&json!({"default": {"level": "author"}})).unwrap()))
        .unwrap();
    for leaf in leaves {
        crate::common::replicate(&database, leaf).unwrap();
    }
    database
}

/// All that somebody learns about the document `a`, or of what it is made of.
fn told(database: &OpenDatabase, access: &Access, revisions: &[&str]) -> String {
    let mut told = String::new();
    for (all_leaves, include_documents) in [(false, false), (true, false), (false, true), (true, true)] {
        let query = ChangesQuery {
            all_leaves,
            include_documents,
            attachments: true,
            conflicts: true,
            ..ChangesQuery::default()
        };
        told += &format!("{:?}", database.changes(query, access).unwrap().next_changes(100).unwrap());
    }
    let options = ReadOptions {
        conflicts: true,
        deleted_conflicts: true,
        attachments: true,
        revisions: true,
        revisions_info: true,
        ..ReadOptions::default()
    };
    let named = revisions.iter().map(|revision| (*revision).to_owned()).collect();
    for which in [OpenRevisions::All, OpenRevisions::These(named)] {
        for revision in database.open_revisions("a", &which, &options, access).unwrap_or_default() {
            if let OpenRevision::Found(document) = revision {
                told += &document.json;
            }
        }
    }
    for revision in revisions.iter().map(|revision| Some((*revision).to_owned())).chain([None]) {
        let found = database.open_attachment("a", "file", revision.as_deref(), access);
        told += &found.map_or(String::new(), |found| found.digest);
        let latest = ReadOptions { revision, latest: true, ..options.clone() };
        told +=
            &database.read("a", &latest, access).map_or(String::new(), |document| document.json.to_string());
    }
    let query = RowQuery { include_documents: true, ..RowQuery::default() };
    let keys = Some(vec![json!("a")]);
    for query in [query.clone(), RowQuery { keys, ..query }] {
        let rows = all_rows(database.all_documents(query, access).unwrap()).into_iter();
        told += &format!("{:?}", rows.filter(|row| row.error.is_none()).collect::<Vec<_>>());
    }
    told
}

fn access_of(database: &OpenDatabase, name: &str) -> Access {
    database.access(&Identity::new(name, Vec::new())).unwrap()
}

const HIGH: &str = "2-ffffffffffffffffffffffffffffffff";
const LOW: &str = "2-00000000000000000000000000000000";

fn attached(text: &str) -> Value {
    use base64::Engine as _;
    let data = base64::engine::general_purpose::STANDARD.encode(text);
    json!({"file": {"content_type": "text/plain", "data": data}})
}

#[test]
fn who_may_read_one_leaf_is_told_nothing_of_the_others() {
    for (hidden, shown) in [(HIGH, LOW), (LOW, HIGH)] {
        let server = Server::quick();
        let secret = json!({"_id": "a", "_rev": hidden, "Readers": ["ada"], "word": "rosebud",
            "_attachments": attached("rosebud")});
        let open = json!({"_id": "a", "_rev": shown, "word": "open"});
        let database = with_leaves(&server, &[secret, open]);
        let all = told(&database, &access_of(&database, "ada"), &[HIGH, LOW]);
        assert!(all.contains("rosebud") && all.contains(hidden) && all.contains(shown), "{all}");
        let some = told(&database, &access_of(&database, "bob"), &[HIGH, LOW]);
        assert!(some.contains("open"), "{some}");
        assert!(!some.contains("rosebud") && !some.contains(hidden) && !some.contains("md5-"), "{some}");
        let wanted = [("a".to_owned(), vec![hidden.to_owned(), shown.to_owned()])];
        let difference = database.revisions_difference(&wanted, &access_of(&database, "bob")).unwrap();
        assert_eq!(difference[0].1.missing, [hidden]);
        // What is hidden is not edited, wins over or deleted, and gives no attachment away.
        let stub = json!({"file": {"stub": true}});
        for json in [
            json!({"_id": "a", "_rev": hidden, "_attachments": stub}),
            json!({"_id": "a", "_rev": hidden, "_deleted": true}),
            json!({"_id": "a"}),
        ] {
            let refused = store_as(&database, "bob", &[], &json);
            assert!(matches!(refused, Err(DatabaseError::Conflict)), "{json} {refused:?}");
        }
        let brought = json!({"_id": "a", "_rev": "3-aa", "_revisions": {"start": 3, "ids": ["aa", &hidden[2..]]},
            "_attachments": stub});
        let bob = access_of(&database, "bob");
        let refused = database
            .update(vec![edit(&brought)], EditMode::Replicated, &bob)
            .unwrap()
            .wait()
            .unwrap()
            .remove(0);
        assert!(matches!(refused, Err(DatabaseError::Forbidden { .. })), "{refused:?}");
    }
}

#[test]
fn a_deleted_conflict_gives_its_document_away_to_nobody() {
    let server = Server::quick();
    let secret = json!({"_id": "a", "_rev": LOW, "Readers": ["ada"], "word": "rosebud"});
    let gone = json!({"_id": "a", "_rev": HIGH, "_deleted": true, "note": "settled"});
    let database = with_leaves(&server, &[secret, gone]);
    let some = told(&database, &access_of(&database, "bob"), &[HIGH, LOW]);
    assert!(!some.contains("rosebud") && !some.contains("settled"), "{some}");
    assert!(!some.contains("\"a\"") && !some.contains(HIGH), "{some}");
    // Nor can it be built on, to win over the document that it belongs to.
    let refused = store_as(&database, "bob", &[], &json!({"_id": "a", "_rev": HIGH}));
    assert!(matches!(refused, Err(DatabaseError::Conflict)), "{refused:?}");
    let all = told(&database, &access_of(&database, "ada"), &[HIGH, LOW]);
    assert!(all.contains("rosebud") && all.contains("settled"), "{all}");
}

#[test]
fn a_tombstone_that_may_not_be_read_is_not_built_on() {
    let server = Server::quick();
    let gone = json!({"_id": "a", "_rev": HIGH, "_deleted": true, "Readers": ["ada"], "word": "rosebud",
        "_attachments": attached("rosebud")});
    let database = with_leaves(&server, &[gone]);
    let some = told(&database, &access_of(&database, "bob"), &[HIGH]);
    assert!(!some.contains("rosebud") && !some.contains(HIGH) && !some.contains("md5-"), "{some}");
    let stub = json!({"file": {"stub": true}});
    for json in [
        json!({"_id": "a", "_attachments": stub}),
        json!({"_id": "a", "_rev": HIGH, "_attachments": stub}),
        json!({"_id": "a", "_rev": HIGH}),
        json!({"_id": "a"}),
    ] {
        let refused = store_as(&database, "bob", &[], &json);
        assert!(matches!(refused, Err(DatabaseError::Conflict)), "{json} {refused:?}");
    }
    let only = Edit {
        id: Some("a".to_owned()),
        revision: Some(HIGH.to_owned()),
        attachments_only: true,
        ..Edit::default()
    };
    let bob = access_of(&database, "bob");
    let refused = database.update(vec![only], EditMode::Interactive, &bob).unwrap().wait().unwrap().remove(0);
    assert!(matches!(refused, Err(DatabaseError::Conflict)), "{refused:?}");
    store_as(&database, "ada", &[], &json!({"_id": "a", "_attachments": stub})).unwrap();
}

#[test]
fn a_leaf_that_lost_does_not_win_over_one_that_its_editor_may_not_edit() {
    for winner in [
        json!({"_id": "a", "_rev": "3-ee", "Authors": ["ada"]}),
        json!({"_id": "a", "_rev": "3-ee", "Authors": ["ada"], "Readers": ["ada"]}),
    ] {
        let server = Server::quick();
        let lost = json!({"_id": "a", "_rev": "1-11", "Authors": ["bob"]});
        let database = with_leaves(&server, &[winner, lost]);
        let mine = |revision: &str| json!({"_id": "a", "_rev": revision, "Authors": ["bob"]});
        let second = store_as(&database, "bob", &[], &mine("1-11")).unwrap();
        let mut last = store_as(&database, "bob", &[], &mine(&second));
        // The third generation may lose by its digest; the fourth wins.
        if let Ok(third) = &last {
            last = store_as(&database, "bob", &[], &mine(third));
        }
        assert!(matches!(last, Err(DatabaseError::Forbidden { .. } | DatabaseError::Conflict)), "{last:?}");
        assert_eq!(crate::common::get(&database, "a").unwrap()["_rev"], "3-ee");
    }
}

#[test]
fn readers_that_are_no_names_hide_their_document_and_are_refused() {
    let server = Server::quick();
    let database = server.databases.create("memos", &scrinium_database::InitialAccess::Everybody).unwrap();
    let deep = (0..200).fold(json!("ada"), |inner, _| json!([inner]));
    let wrong =
        [json!([["ada"]]), json!(5), json!({}), json!({"ada": true}), json!(["ada", 5]), json!(true), deep];
    for (number, readers) in wrong.iter().enumerate() {
        put(&database, &json!({"_id": format!("r{number}"), "Readers": readers})).unwrap();
        put(&database, &json!({"_id": format!("a{number}"), "Authors": readers})).unwrap();
    }
    put(&database, &designs()[2]).unwrap();
    put(&database, &json!({"_id": "case", "n": 1, "Readers": [" ADA "], "Authors": ["ada"]})).unwrap();
    let list = json!({"default": {"level": "manager"}, "entries": [{"name": "Ada", "level": "author"}]});
    database.set_access_list(Some(AccessList::parse(&list).unwrap())).unwrap();
    let listed = |access: &Access| {
        let rows = all_rows(database.all_documents(RowQuery::default(), access).unwrap())
            .into_iter()
            .filter_map(|row| row.id);
        rows.filter(|id| !id.starts_with('a') && !id.starts_with('_')).collect::<Vec<_>>()
    };
    let (ada, bob) = (access_of(&database, "aDa"), access_of(&database, "bob"));
    assert_eq!((ada.level(), bob.level()), (Level::Author, Level::Manager));
    assert_eq!((listed(&ada), listed(&bob)), (vec!["case".to_owned()], Vec::new()));
    assert_eq!(listed(&SERVER).len(), wrong.len() + 1);
    let query = RowQuery { reduce: Some(false), ..RowQuery::default() };
    assert_eq!(all_rows(database.view("m", "n", query, &ada).unwrap()).len(), 1);
    let revision = crate::common::get(&database, "case").unwrap()["_rev"].clone();
    store_as(&database, "ADA", &[], &json!({"_id": "case", "_rev": revision, "n": 2})).unwrap();
    let revision = crate::common::get(&database, "a0").unwrap()["_rev"].clone();
    let refused = store_as(&database, "ada", &[], &json!({"_id": "a0", "_rev": revision}));
    assert!(matches!(refused, Err(DatabaseError::Forbidden { .. })), "{refused:?}");
    for readers in wrong {
        for field in ["Readers", "Authors"] {
            let mut json = json!({"_id": "new", "_rev": "1-ab"});
            json[field] = readers.clone();
            for mode in [EditMode::Interactive, EditMode::Replicated] {
                let refused =
                    database.update(vec![edit(&json)], mode, &SERVER).unwrap().wait().unwrap().remove(0);
                assert_eq!(refused.unwrap_err().status(), 400, "{json} {mode:?}");
            }
        }
    }
}

#[test]
fn local_documents_of_readers_are_their_own() {
    let server = Server::quick();
    let database = server.databases.create("memos", &scrinium_database::InitialAccess::Everybody).unwrap();
    let list = json!({"default": {"level": "reader"}, "anonymous": {"level": "reader"},
        "entries": [{"name": "eric", "level": "editor"}, {"name": "post", "level": "depositor"}]});
    database.set_access_list(Some(AccessList::parse(&list).unwrap())).unwrap();
    let write = |name: &str, id: &str, json: &str| {
        let access = access_of(&database, name);
        database
            .write_local(id, json.as_bytes(), false, None, &access)
            .and_then(|update| update.wait()?.remove(0))
    };
    let read = |name: &str| {
        let access = access_of(&database, name);
        database.read_local("_local/x", &access).ok().map(|document| document.json)
    };
    write("eric", "_local/x", "{\"by\":\"eric\"}").unwrap();
    assert_eq!(read("rita"), None);
    write("rita", "_local/x", "{\"by\":\"rita\"}").unwrap();
    write("bob", "_local/x", "{\"by\":\"bob\"}").unwrap();
    for name in ["eric", "rita", "bob"] {
        assert!(read(name).unwrap().contains(name), "{name}");
    }
    let listed = |name: &str| {
        let query = RowQuery { include_documents: true, ..RowQuery::default() };
        let rows = all_rows(database.local_documents(query, &access_of(&database, name)).unwrap());
        rows.into_iter().map(|row| (row.id.unwrap(), row.document.unwrap().to_string())).collect::<Vec<_>>()
    };
    let rows = listed("rita");
    assert!(rows.len() == 1 && rows[0].0 == "_local/x" && rows[0].1.contains("rita"), "{rows:?}");
    let anonymous = database.access(&Identity::anonymous()).unwrap();
    assert_eq!(database.read_local("_local/x", &anonymous).unwrap_err().status(), 404);
    assert!(database.write_local("_local/x", b"{}", false, None, &anonymous).is_err());
    assert_eq!(write("post", "_local/x", "{}").unwrap_err().status(), 403);
    // They are bounded: each, and all of a person's.
    let large = json!({"text": "x".repeat(70_000)}).to_string();
    assert_eq!(write("rita", "_local/y", &large).unwrap_err().status(), 413);
    write("eric", "_local/y", &large).unwrap();
    for number in 1..100 {
        write("rita", &format!("_local/{number}"), "{}").unwrap();
    }
    assert_eq!(write("rita", "_local/more", "{}").unwrap_err().status(), 413);
    write("rita", "_local/x", "{}").unwrap();
    write("bob", "_local/more", "{}").unwrap();
    let rita = access_of(&database, "rita");
    drop(database.write_local("_local/x", b"", true, None, &rita).unwrap().wait().unwrap());
    assert_eq!((read("rita"), read("bob").is_some(), read("eric").is_some()), (None, true, true));
    write("rita", "_local/more", "{}").unwrap();
}
