//! `validate_doc_update` is obeyed in every way of writing.

use scrinium_database::{DatabaseError, Edit, EditMode, FolderChange, Identity, InitialAccess};
use scrinium_views::{OpenDatabase, ScriptLimits, ScriptOptions};
use serde_json::json;

use crate::common::words::Words as _;
use crate::common::{SERVER, Server, edit, get, put, replicate};

const FUNCTION: &str = "function (newDoc, oldDoc, userCtx, secObj) {
    if (newDoc.hang) for (;;);
    if (newDoc.odd) null.x;
    if (newDoc._deleted && oldDoc && oldDoc.keep) throw { forbidden: 'kept' };
    if (newDoc.word === 'evil') throw { forbidden: 'no evil' };
    if (newDoc.text && newDoc.text.length === 5000) throw { forbidden: 'too long' };
    if (oldDoc && oldDoc.locked && !newDoc._deleted) throw { unauthorized: 'locked by ' + oldDoc.locked };
    if (newDoc.user && newDoc.user !== userCtx.db + ' ' + userCtx.roles.join()) throw { forbidden: toJSON(userCtx) };
    if (newDoc._attachments && newDoc._attachments.bad) throw { forbidden: newDoc._attachments.bad.content_type };
    if (newDoc.revisions !== undefined && newDoc._revisions.ids.length !== newDoc.revisions) throw { forbidden: 'revisions' };
}";

fn with_function() -> (Server, OpenDatabase) {
    let server = Server::new();
    let limits = ScriptLimits { call_time_ms: 100, ..ScriptLimits::default() };
    server.databases.set_script_options(ScriptOptions { limits, ..ScriptOptions::default() });
    let database = server.databases.create("db", &InitialAccess::Everybody).unwrap();
    put(&database, &json!({"_id": "_design/guard", "validate_doc_update": FUNCTION})).unwrap();
    (server, database)
}

fn refused<T: std::fmt::Debug>(result: Result<T, DatabaseError>) -> (u16, String) {
    let error = result.unwrap_err();
    (error.status(), error.to_string())
}

fn forbidden(reason: &str) -> (u16, String) {
    (403, reason.to_owned())
}

#[test]
fn every_way_of_writing_is_asked_about() {
    let (server, database) = with_function();
    assert_eq!(refused(put(&database, &json!({"_id": "a", "word": "evil"}))), forbidden("no evil"));
    let revision = put(&database, &json!({"_id": "a", "word": "good"})).unwrap().revision;
    let evil = json!({"_id": "a", "_rev": revision, "word": "evil"});
    assert_eq!(refused(put(&database, &evil)), forbidden("no evil"));
    let brought = json!({"_id": "b", "_rev": "1-b", "word": "evil"});
    assert_eq!(refused(replicate(&database, &brought)), forbidden("no evil"));
    // What is stored apart from the document is in it all the same.
    let long = |length: usize| json!({"_id": "long", "text": "x".repeat(length)});
    assert_eq!(refused(put(&database, &long(5000))), forbidden("too long"));
    put(&database, &long(5001)).unwrap();
    // Several at once have each their own answer.
    let several =
        ["evil", "good", "evil"].map(|word| edit(&json!({"_id": format!("m-{word}"), "word": word})));
    let results = database.update(several.to_vec(), EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true, false]);
    // A document that comes into a folder with an edit.
    database.define_folder("inbox", None).unwrap();
    let into = Edit {
        folders: vec![FolderChange::Add { folder: "inbox".to_owned() }],
        ..edit(&json!({"_id": "f", "word": "evil"}))
    };
    let result =
        database.update(vec![into], EditMode::Interactive, &SERVER).unwrap().wait().unwrap().remove(0);
    assert_eq!(refused(result), forbidden("no evil"));
    assert!(
        get(&database, "f").is_err() && get(&database, "m-evil").is_err() && get(&database, "b").is_err()
    );
    // Attachments, with the document and by themselves.
    let attached = json!({"_id": "c", "_attachments": {"bad": {"content_type": "text/bad", "data": "aGk="}}});
    assert_eq!(refused(put(&database, &attached)), forbidden("text/bad"));
    let attachment = |name: &str| {
        let mut upload = database.upload("text/other");
        upload.write(b"hi").unwrap();
        scrinium_database::NewAttachment {
            name: name.to_owned(),
            content_type: "text/other".to_owned(),
            content: upload.finish().unwrap(),
        }
    };
    let only = |name: &str, revision: &str| Edit {
        id: Some("a".to_owned()),
        revision: Some(revision.to_owned()),
        attachments: vec![attachment(name)],
        attachments_only: true,
        ..Edit::default()
    };
    let result = database
        .update(vec![only("bad", &revision)], EditMode::Interactive, &SERVER)
        .unwrap()
        .wait()
        .unwrap();
    assert_eq!(refused(result.into_iter().next().unwrap()), forbidden("text/other"));
    let result = database
        .update(vec![only("fine", &revision)], EditMode::Interactive, &SERVER)
        .unwrap()
        .wait()
        .unwrap();
    result.into_iter().next().unwrap().unwrap();
    // Neither design documents nor local ones are asked about, as in CouchDB 3.
    put(&database, &json!({"_id": "_design/other", "word": "evil"})).unwrap();
    put(&database, &json!({"_id": "_local/other", "word": "evil"})).unwrap();
    // And so it stays.
    drop(database);
    let server = server.reopen();
    let database = server.databases.get("db").unwrap();
    assert_eq!(refused(put(&database, &json!({"_id": "z", "word": "evil"}))), forbidden("no evil"));
}

#[test]
fn functions_get_what_couchdb_gives_them() {
    let (_server, database) = with_function();
    database.set_security(&json!({"members": {"roles": ["clerk"]}})).unwrap();
    put(&database, &json!({"_id": "u", "user": "db _admin", "revisions": 0})).unwrap();
    let locked = put(&database, &json!({"_id": "l", "locked": "ada"})).unwrap().revision;
    let next = json!({"_id": "l", "_rev": locked, "revisions": 1});
    assert_eq!(refused(put(&database, &next)), (401, "locked by ada".to_owned()));
    // A replicated edit is held against the nearest ancestor that is here.
    let brought =
        json!({"_id": "l", "_rev": "3-z", "_revisions": {"start": 3, "ids": ["z", "y", locked[2..]]}});
    assert_eq!(refused(replicate(&database, &brought)), (401, "locked by ada".to_owned()));
    replicate(&database, &json!({"_id": "l", "_rev": "1-other"})).unwrap();
    let kept = put(&database, &json!({"_id": "k", "keep": true})).unwrap().revision;
    let removed = json!({"_id": "k", "_rev": kept, "_deleted": true});
    assert_eq!(refused(put(&database, &removed)), forbidden("kept"));
    // Whatever else goes wrong refuses the edit, with words.
    for (document, words) in [
        (json!({"_id": "h", "hang": 1}), "was stopped after 100 ms"),
        (json!({"_id": "o", "odd": 1}), "TypeError"),
    ] {
        let (status, reason) = refused(put(&database, &document));
        assert!(status == 403 && reason.contains("_design/guard") && reason.contains(words), "{reason}");
    }
    put(&database, &json!({"_id": "h"})).unwrap();
}

/// Functions know who edits; and what they say reaches nobody who may not edit anyway.
#[test]
fn functions_are_told_who_edits() {
    let (_server, database) = with_function();
    let by = |person: &str, roles: &[&str], document: serde_json::Value| {
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        let access = database.access(&Identity::new(person, roles)).unwrap();
        database
            .update(vec![edit(&document)], EditMode::Interactive, &access)
            .unwrap()
            .wait()
            .unwrap()
            .remove(0)
    };
    by("ada", &["clerk", "driver"], json!({"_id": "a", "user": "db clerk,driver"})).unwrap();
    by("root", &["_admin"], json!({"_id": "b", "user": "db _admin"})).unwrap();
    let (status, reason) = refused(by("ada", &["clerk"], json!({"_id": "c", "user": "another"})));
    assert_eq!((status, reason.as_str()), (403, r#"{"db":"db","name":"ada","roles":["clerk"]}"#));
    // Administrators are asked about as everybody.
    assert_eq!(refused(by("root", &["_admin"], json!({"_id": "b2", "word": "evil"}))), forbidden("no evil"));
    let locked = put(&database, &json!({"_id": "l", "locked": "a secret"})).unwrap().revision;
    database.set_security(&json!({"members": {"names": ["ada"]}})).unwrap();
    let (_, reason) = refused(by("eve", &[], json!({"_id": "l", "_rev": locked})));
    assert!(!reason.contains("secret"), "{reason}");
    // A conflict is reported before a refusal.
    let (status, _) = refused(by("ada", &[], json!({"_id": "l", "_rev": "1-old", "word": "evil"})));
    assert_eq!(status, 409);
}

#[test]
fn functions_come_and_go_with_their_design_documents() {
    let (_server, database) = with_function();
    let no = |words: &str| format!("function () {{ throw {{ forbidden: '{words}' }}; }}");
    let (error, status) = {
        let broken = json!({"_id": "_design/broken", "validate_doc_update": "function ("});
        let error = put(&database, &broken).unwrap_err();
        (error.error(), error.status())
    };
    assert_eq!((error, status), ("compilation_error", 400));
    let second = json!({"_id": "_design/second", "validate_doc_update": no("second")});
    let revision = put(&database, &second).unwrap().revision;
    assert_eq!(refused(put(&database, &json!({"_id": "a"}))), forbidden("second"));
    // Each of the functions has to let it pass.
    assert_eq!(refused(put(&database, &json!({"_id": "a", "word": "evil"}))), forbidden("no evil"));
    put(&database, &json!({"_id": "_design/second", "_rev": revision, "_deleted": true})).unwrap();
    put(&database, &json!({"_id": "a"})).unwrap();
    // One in another language is a text.
    let other =
        json!({"_id": "_design/erlang", "language": "erlang", "validate_doc_update": "fun () -> ok end."});
    put(&database, &other).unwrap();
    put(&database, &json!({"_id": "b"})).unwrap();
}

/// What an edit replaces may change while it is validated; nobody sees more of that than a conflict.
#[test]
fn edits_at_once_are_validated_against_what_they_replace() {
    let (_server, database) = with_function();
    let guard =
        "function (newDoc, oldDoc) { if (oldDoc && oldDoc.n >= newDoc.n) throw { forbidden: 'back' }; }";
    put(&database, &json!({"_id": "_design/order", "validate_doc_update": guard})).unwrap();
    let results: Vec<Result<String, DatabaseError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..4)
            .map(|thread: u32| {
                let database = &database;
                scope.spawn(move || {
                    let mut results = Vec::new();
                    for round in 0..8 {
                        let made = put(database, &json!({"_id": "x", "n": round * 10 + thread}));
                        if let Ok(made) = &made {
                            let n = round * 10 + thread + 1;
                            let gone = json!({"_id": "x", "_rev": made.revision, "_deleted": true, "n": n});
                            put(database, &gone).unwrap();
                        }
                        results.push(made.map(|made| made.revision));
                    }
                    results
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(results.iter().any(Result::is_ok));
    for error in results.into_iter().filter_map(Result::err) {
        assert!(matches!(error.status(), 403 | 409), "{error:?}");
    }
}
