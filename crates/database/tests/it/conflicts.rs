//! Documents with many leaves: what one update does with them takes no more than several would, comes to the same, and has a
//! limit.

use std::sync::Arc;

use scrinium_database::{
    Access, AccessList, Database, DatabaseError, DatabaseOptions, EditMode, Identity, InitialAccess,
    OpenRevision, OpenRevisions, PurgedLeaves, ReadOptions, Updated,
};
use scrinium_maintenance::{FixupOptions, fixup};
use serde_json::{Value, json};

use crate::common::{SERVER, Server, edit};

/// One update of all `edits`.
fn update(
    database: &Arc<Database>,
    edits: &[Value],
    mode: EditMode,
    access: &Access,
) -> Vec<Result<Updated, DatabaseError>> {
    let update = database.update(edits.iter().map(edit).collect(), mode, access).unwrap();
    update.wait().unwrap()
}

/// A revision of the document `a` that begins a branch.
fn conflict(number: usize) -> Value {
    json!({"_id": "a", "_rev": format!("1-{number:032x}"), "n": number})
}

fn leaves(database: &Database, options: &ReadOptions) -> Vec<Value> {
    let found = database.open_revisions("a", &OpenRevisions::All, options, &SERVER).unwrap_or_default();
    let found = found.into_iter().map(|revision| match revision {
        OpenRevision::Found(document) => serde_json::from_str(&document.json).unwrap(),
        OpenRevision::Missing(revision) => panic!("{revision} is missing"),
    });
    found.collect()
}

fn check_sound(server: &Server) {
    let options = FixupOptions { views: true, ..FixupOptions::default() };
    fixup(&server.databases, None, options, |finding| panic!("{finding:?}")).unwrap();
}

/// Of two who made the same at once, the second was answered before it was durable, and did not find it then.
#[test]
fn what_others_are_just_storing_is_answered_when_it_is_stored() {
    let server = Server::new();
    let database = server.databases.create("db", &InitialAccess::Everybody).unwrap();
    for number in 0..100 {
        let edits = || vec![edit(&conflict(number))];
        let first = database.update(edits(), EditMode::Replicated, &SERVER).unwrap();
        let again = database.update(edits(), EditMode::Replicated, &SERVER).unwrap();
        assert!(again.wait().unwrap().iter().all(Result::is_ok));
        assert_eq!(leaves(&database, &ReadOptions::default()).len(), number + 1);
        drop(first.wait().unwrap());
    }
}

/// The batch of an update had the document's revisions once for each edit, which came to gigabytes.
#[test]
fn an_update_of_hundreds_of_conflicts_of_one_document_is_one_small_batch() {
    const CONFLICTS: usize = 550;
    let server = Server::quick();
    let database = server.databases.create("db", &InitialAccess::Everybody).unwrap();
    database
        .set_access_list(Some(AccessList::parse(&json!({"default": {"level": "editor"}})).unwrap()))
        .unwrap();
    let editor = database.access(&Identity::new("ada", Vec::new())).unwrap();
    for (range, access) in [(0..500, &SERVER as &Access), (500..CONFLICTS, &editor)] {
        let edits: Vec<Value> = range.clone().map(conflict).collect();
        for result in update(&database, &edits, EditMode::Replicated, access) {
            result.unwrap();
        }
        assert_eq!(leaves(&database, &ReadOptions::default()).len(), range.end);
    }
    // All of them but one are resolved at once.
    let resolved = |number: usize| json!({"_id": "a", "_rev": format!("1-{number:032x}"), "_deleted": true});
    let edits: Vec<Value> = (0..CONFLICTS - 1).map(resolved).collect();
    for result in update(&database, &edits, EditMode::Interactive, &editor) {
        result.unwrap();
    }
    let document =
        database.read("a", &ReadOptions { conflicts: true, ..ReadOptions::default() }, &SERVER).unwrap();
    let document: Value = serde_json::from_str(&document.json).unwrap();
    assert_eq!((&document["n"], document.get("_conflicts")), (&json!(CONFLICTS - 1), None));
    let info = database.info().unwrap();
    assert_eq!((info.document_count, info.deleted_count), (1, 0));
    check_sound(&server);
}

/// Edits of one document in one update: branches, branches that go on, tombstones, contents that come, stay and pass.
fn sequence() -> Vec<Value> {
    let attached = |letter: &str| {
        use base64::Engine as _;
        let data = base64::engine::general_purpose::STANDARD.encode(letter.repeat(5000));
        json!({"file": {"content_type": "text/plain", "data": data}})
    };
    let text = |letter: &str| letter.repeat(5000);
    let revision = |generation: u64, digits: &[&str]| json!({"start": generation, "ids": digits});
    vec![
        json!({"_id": "a", "_rev": "1-aa", "_attachments": attached("a"), "text": text("q")}),
        json!({"_id": "a", "_revisions": revision(2, &["bb", "aa"]), "_attachments": attached("b")}),
        json!({"_id": "a", "_rev": "1-cc", "text": text("r")}),
        json!({"_id": "a", "_revisions": revision(3, &["dd", "bb", "aa"]), "_attachments":
            {"file": {"stub": true, "revpos": 2}}}),
        json!({"_id": "a", "_revisions": revision(2, &["ee", "cc"]), "_deleted": true}),
        json!({"_id": "a", "_revisions": revision(2, &["ff", "cc"]), "text": text("s")}),
        json!({"_id": "a", "_revisions": revision(4, &["gg", "dd", "bb"]), "text": text("q")}),
        json!({"_id": "b", "_rev": "1-bb", "text": text("t")}),
        json!({"_id": "a", "_rev": "1-aa"}),
        json!({"_id": "a", "_revisions": revision(3, &["hh", "ff"]), "_deleted": true}),
    ]
}

#[test]
fn one_update_of_one_document_comes_to_the_same_as_several() {
    let of_parts = |length: usize| {
        let server = Server::quick();
        let database = server.databases.create("db", &InitialAccess::Everybody).unwrap();
        for edits in sequence().chunks(length) {
            for result in update(&database, edits, EditMode::Replicated, &SERVER) {
                result.unwrap();
            }
        }
        check_sound(&server);
        server.databases.collect_contents().unwrap();
        check_sound(&server);
        let options = ReadOptions {
            revisions: true,
            revisions_info: true,
            attachments: true,
            ..ReadOptions::default()
        };
        let info = database.info().unwrap();
        let sizes = (info.document_count, info.deleted_count, info.change_number, info.sizes.external_bytes);
        (leaves(&database, &options), sizes)
    };
    let one_by_one = of_parts(1);
    assert_eq!(one_by_one.0.len(), 3);
    for length in [2, 3, 4, 100] {
        assert_eq!(of_parts(length), one_by_one, "{length} edits at once");
    }
}

#[test]
fn an_edit_that_fails_leaves_what_others_of_its_update_made_of_the_document() {
    let server = Server::quick();
    let database = server.databases.create("db", &InitialAccess::Everybody).unwrap();
    let edits = [
        json!({"_id": "a", "_rev": "1-aa", "n": 1}),
        json!({"_id": "a", "_rev": "1-bb", "n": 2}),
        json!({"_id": "a", "_rev": "1-cc", "_attachments": {"file": {"stub": true, "revpos": 1}}}),
        json!({"_id": "a", "_rev": "1-dd", "n": 4}),
    ];
    let results = update(&database, &edits, EditMode::Replicated, &SERVER);
    let failed: Vec<bool> = results.iter().map(Result::is_err).collect();
    assert_eq!(failed, [false, false, true, false]);
    let found: Vec<Value> =
        leaves(&database, &ReadOptions::default()).iter().map(|leaf| leaf["n"].clone()).collect();
    assert_eq!(found, [4, 2, 1]);
    check_sound(&server);
}

#[test]
fn a_document_gets_no_more_leaves_than_it_may_and_goes_on_with_those_it_has() {
    let server = Server::with(DatabaseOptions { leaves_max: 5, ..DatabaseOptions::default() });
    let database = server.databases.create("db", &InitialAccess::Everybody).unwrap();
    let edits: Vec<Value> = (0..7).map(conflict).collect();
    let results = update(&database, &edits, EditMode::Replicated, &SERVER);
    let refused: Vec<bool> = results.iter().map(Result::is_err).collect();
    assert_eq!(refused, [false, false, false, false, false, true, true]);
    // A replicator counts the document as one that it could not write, and goes on with others.
    let Err(DatabaseError::Forbidden { reason }) = &results[5] else { panic!("{:?}", results[5]) };
    assert!(reason.contains("at most 5 leaf revisions") && reason.contains("_purge"), "{reason}");
    let continued = json!({"_id": "a", "_revisions": {"start": 2, "ids": ["ff", format!("{:032x}", 3)]}});
    let resolved = json!({"_id": "a", "_revisions": {"start": 2, "ids": ["ee", format!("{:032x}", 2)]}, "_deleted": true});
    for edit in [conflict(1), continued, resolved] {
        update(&database, &[edit], EditMode::Replicated, &SERVER).remove(0).unwrap();
    }
    let edit = json!({"_id": "a", "_rev": "2-ff", "n": 9});
    update(&database, &[edit], EditMode::Interactive, &SERVER).remove(0).unwrap();
    assert!(update(&database, &[conflict(6)], EditMode::Replicated, &SERVER).remove(0).is_err());
    let revisions = vec!["2-ee".to_owned(), format!("1-{:032x}", 4)];
    database.purge_leaves(vec![PurgedLeaves { id: "a".to_owned(), revisions }]).unwrap();
    update(&database, &[conflict(6)], EditMode::Replicated, &SERVER).remove(0).unwrap();
    // Nor more revisions than would fit to those leaves.
    let digests: Vec<String> = (0..120).map(|number| format!("{number:x}")).collect();
    let long = json!({"_id": "a", "_revisions": {"start": 200, "ids": digests}});
    let refused = update(&database, &[long], EditMode::Replicated, &SERVER).remove(0).unwrap_err();
    assert!(refused.to_string().contains("at most 100 revisions"), "{refused}");
    check_sound(&server);
}
