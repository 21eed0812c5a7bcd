//! What earlier versions stored and is refused now: it is read, listed, edited, deleted and purged.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::sync::Arc;

use scrinium_document::json::parse_value;
use scrinium_document::{FieldsBuf, Revision};
use scrinium_store::{Store, StoreOptions};
use serde_json::{Value, json};

use super::{Edit, EditMode, Prepared, PreparedAttachment, Secret, SideEffects};
use crate::access::SERVER;
use crate::testing::{REFUSED, TestServer};
use crate::{
    ChangesQuery, Database, DatabaseError, OpenRevision, OpenRevisions, PurgedLeaves, ReadOptions, RowQuery,
};

/// The status by which CouchDB's clients know a refusal.
trait Status {
    fn status(&self) -> u16;
}

impl Status for DatabaseError {
    fn status(&self) -> u16 {
        match self {
            Self::Invalid { .. } => 400,
            Self::NotFound { .. } => 404,
            Self::Conflict => 409,
            _ => 500,
        }
    }
}

const DEEP: usize = 300;

fn world() -> (tempfile::TempDir, Arc<Database>) {
    let dir = tempfile::tempdir().unwrap();
    let mut options = StoreOptions::new(dir.path());
    options.budget_bytes = Some(16 << 20);
    options.log_extent_bytes = 1 << 20;
    let store = Store::open(options, &scrinium_statistics::Registry::new()).unwrap();
    (dir, TestServer::new(&store).create("db"))
}

/// Stores a document as a version did that checked nothing.
fn store_unchecked(database: &Arc<Database>, id: &str, revision: &str, fields: &[(&str, &str)]) {
    let revision = Revision::parse(revision).unwrap();
    let content = database.store_content(b"attached", "text/plain").unwrap();
    let attachment = PreparedAttachment::New {
        name: "a\r\nX: y".to_owned(),
        content_type: "text/plain\r\nX: y".to_owned(),
        revpos: None,
        content,
    };
    let prepared = Prepared {
        id: id.to_owned(),
        deleted: false,
        revision: Some(revision.clone()),
        path: vec![revision],
        fields: Some(FieldsBuf::from_json(fields)),
        outside: Vec::new(),
        attachments: vec![attachment],
        remove_attachments: Vec::new(),
        effects: SideEffects::default(),
        access: SERVER.clone(),
        secret: Secret::Keep,
        members: None,
        validated: None,
    };
    let update = database.store_prepared(vec![Ok(prepared)], EditMode::Replicated).unwrap();
    update.wait().unwrap().remove(0).unwrap();
}

fn ids(database: &Arc<Database>) -> Vec<String> {
    let query = RowQuery { include_documents: true, attachments: true, ..RowQuery::default() };
    let rows = database.all_documents(query, &SERVER).unwrap().next_rows(100).unwrap();
    rows.iter().for_each(|row| {
        parse_value(row.value.as_ref().unwrap(), 600).unwrap();
        parse_value(row.document.as_ref().unwrap(), 600).unwrap();
    });
    rows.into_iter().filter_map(|row| row.id).collect()
}

fn delete(database: &Arc<Database>, id: &str, revision: &str) -> crate::Result<crate::Updated> {
    let json = json!({"_id": id, "_rev": revision, "_deleted": true}).to_string().into();
    let edit = Edit { json, ..Edit::default() };
    database.update(vec![edit], EditMode::Interactive, &SERVER)?.wait()?.remove(0)
}

#[test]
fn what_earlier_versions_stored_is_read_listed_and_deleted() {
    let (_dir, database) = world();
    let deep = format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP));
    let old = ["1-\"", "1-a\r\nb", "9007199254740992-x", "18446744073709551614-\"},{"];
    for (number, revision) in old.iter().enumerate() {
        store_unchecked(&database, &number.to_string(), revision, &[("Readers", deep.as_str()), ("n", "1")]);
    }
    assert_eq!(ids(&database), ["0", "1", "2", "3"]);
    let query = ChangesQuery { include_documents: true, all_leaves: true, ..ChangesQuery::default() };
    let changes = database.changes(query, &SERVER).unwrap().next_changes(100).unwrap();
    assert_eq!(changes.len(), old.len());
    for (number, revision) in old.iter().enumerate() {
        let id = number.to_string();
        let options = ReadOptions {
            revisions: true,
            revisions_info: true,
            attachments: true,
            ..ReadOptions::default()
        };
        let document = database.read(&id, &options, &SERVER).unwrap();
        let read = parse_value(&document.json, 600).unwrap();
        assert_eq!((&read["_rev"], &read["n"]), (&json!(revision), &json!(1)));
        let found =
            database.open_revisions(&id, &OpenRevisions::All, &ReadOptions::default(), &SERVER).unwrap();
        assert!(matches!(&found[..], [OpenRevision::Found(_)]));
        // One that is copied or sent on as an attachment is so under a name that may be stored.
        let shared = database.share_attachment(&id, "a\r\nX: y", None, &SERVER).unwrap();
        assert_eq!(
            (shared.name.as_str(), shared.content_type.as_str()),
            ("a  X: y", "application/octet-stream")
        );
        delete(&database, &id, revision).unwrap();
    }
    assert!(ids(&database).is_empty());
}

#[test]
fn a_document_that_no_edit_can_follow_is_purged() {
    let (_dir, database) = world();
    store_unchecked(&database, "last", "18446744073709551615-x", &[("n", "1")]);
    store_unchecked(&database, "two", "1-a", &[("n", "1")]);
    store_unchecked(&database, "two", "2-b", &[("n", "2")]);
    assert_eq!(delete(&database, "last", "18446744073709551615-x").unwrap_err().status(), 400);
    let purge = |id: &str, revision: &str| {
        let wanted = PurgedLeaves { id: id.to_owned(), revisions: vec![revision.to_owned()] };
        database.purge_leaves(vec![wanted]).unwrap().remove(0).revisions
    };
    assert_eq!(purge("last", "18446744073709551615-x"), ["18446744073709551615-x"]);
    assert_eq!(purge("last", "18446744073709551615-x"), [""; 0]);
    assert_eq!(purge("never", "1-a"), [""; 0]);
    assert_eq!(ids(&database), ["two"]);
    assert_eq!(database.info().unwrap().document_count, 1);
    assert_eq!(database.read("last", &ReadOptions::default(), &SERVER).unwrap_err().status(), 404);
    // The other leaf wins then.
    assert_eq!(purge("two", "2-b"), ["2-b"]);
    let left: Value =
        serde_json::from_str(&database.read("two", &ReadOptions::default(), &SERVER).unwrap().json).unwrap();
    assert_eq!((&left["_rev"], &left["n"]), (&json!("1-a"), &json!(1)));
    // The id is free again.
    let edit = Edit { json: json!({"_id": "last", "n": 3}).to_string().into(), ..Edit::default() };
    database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap().wait().unwrap().remove(0).unwrap();
    assert_eq!(ids(&database), ["last", "two"]);
}

#[test]
fn what_comes_in_is_held_against_the_same_rules_in_every_way_of_writing() {
    let (_dir, database) = world();
    let update = |json: &Value, mode: EditMode| {
        let edit = Edit { json: json.to_string().into(), ..Edit::default() };
        database.update(vec![edit], mode, &SERVER).unwrap().wait().unwrap().remove(0)
    };
    for revision in ["1-\"", "0-a", "9007199254740992-x", "18446744073709551615-x", "1-ä"] {
        let refused = update(&json!({"_id": "a", "_rev": revision}), EditMode::Replicated).unwrap_err();
        assert_eq!(refused.status(), 400, "{revision}");
        let refused = update(&json!({"_id": "a", "_rev": revision}), EditMode::Interactive).unwrap_err();
        assert!([400, 409].contains(&refused.status()), "{revision}");
        let history = json!({"start": 2, "ids": ["b", revision.split_once('-').unwrap().1]});
        let refused = update(&json!({"_id": "a", "_revisions": history}), EditMode::Replicated);
        assert_eq!(refused.is_err(), !revision.ends_with(['a', 'x']), "{revision}");
    }
    // The highest generation can be deleted, and its tombstone comes back from a replica.
    let highest = "9007199254740991-x";
    update(&json!({"_id": "high", "_rev": highest}), EditMode::Replicated).unwrap();
    let tombstone = delete(&database, "high", highest).unwrap().revision;
    update(&json!({"_id": "other", "_rev": tombstone, "_deleted": true}), EditMode::Replicated).unwrap();
    for mode in [EditMode::Interactive, EditMode::Replicated] {
        let design = json!({"_id": "_design/d", "_rev": "1-a", REFUSED: true});
        assert_eq!(update(&design, mode).unwrap_err().status(), 400);
        let attachment = json!({"_id": "b", "_rev": "1-b", "_attachments": {"x\r\ny": {"data": ""}}});
        assert_eq!(update(&attachment, mode).unwrap_err().status(), 400);
        let attachment =
            json!({"_id": "b", "_rev": "1-b", "_attachments": {"x": {"data": "", "content_type": "a\nb"}}});
        assert_eq!(update(&attachment, mode).unwrap_err().status(), 400);
    }
    let named = |id: String| {
        let content = database.store_content(b"x", "text/plain").unwrap();
        let attachments =
            vec![crate::NewAttachment { name: "a".into(), content_type: "text/plain".into(), content }];
        let edit = Edit { id: Some(id), attachments_only: true, attachments, ..Edit::default() };
        database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap().wait().unwrap().remove(0)
    };
    for id in ["x".repeat(60_000), "_local/x".into(), "_x".into(), String::new()] {
        assert_eq!(named(id).unwrap_err().status(), 400);
    }
    // A local document is one, however it is written.
    let local = update(&json!({"_id": "_local/x", "n": 1}), EditMode::Interactive).unwrap();
    assert_eq!(local.revision, "0-1");
    assert!(database.read_local("_local/x", &SERVER).unwrap().json.contains("\"n\":1"));
    update(&json!({"_id": "_local/x", "_rev": "0-1", "_deleted": true}), EditMode::Replicated).unwrap();
    assert_eq!(database.read_local("_local/x", &SERVER).unwrap_err().status(), 404);
}
