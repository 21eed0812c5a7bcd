//! Documents as CouchDB's clients see them: revisions, conflicts, tombstones, attachments, changes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use scrinium_database::{
    ChangesQuery, DatabaseError, DatabaseOptions, Edit, EditMode, NewAttachment, OpenRevision, OpenRevisions,
    PurgedLeaves, ReadOptions, RowQuery, Secret, Since,
};
use serde_json::{Value, json};

use crate::common::words::Words as _;
use crate::common::{SERVER, Server, edit, get, get_with, put, replicate};

/// Who got the id later had the secret of who had it before: a person's password, in the directory.
#[test]
fn what_is_purged_leaves_no_secret_to_who_has_its_id_later() {
    let server = Server::new();
    let database = server.databases.create("test", &scrinium_database::InitialAccess::Everybody).unwrap();
    let secret = |text: &'static str| Secret::Set(text.as_bytes().into());
    let write = |json: Value, secret: Secret, mode: EditMode| {
        let edit = Edit { secret, ..edit(&json) };
        database.update(vec![edit], mode, &SERVER).unwrap().wait().unwrap().remove(0).unwrap().revision
    };
    let kept = || database.secret("a").unwrap().map(|secret| secret.to_vec());
    let purge = |revision: &str| {
        let leaves = PurgedLeaves { id: "a".to_owned(), revisions: vec![revision.to_owned()] };
        assert_eq!(database.purge_leaves(vec![leaves]).unwrap()[0].revisions, [revision]);
    };
    let first = write(json!({"_id": "a"}), secret("hers"), EditMode::Interactive);
    let other = "1-ff";
    write(json!({"_id": "a", "_rev": other, "x": 1}), Secret::Keep, EditMode::Replicated);
    purge(&first);
    assert_eq!(kept().unwrap(), b"hers", "the document is still there");
    purge(other);
    assert_eq!(kept(), None);
    let again = write(json!({"_id": "a"}), Secret::Keep, EditMode::Interactive);
    assert_eq!(kept(), None, "{again}");
}

#[test]
fn a_document_lives_and_dies() {
    let server = Server::new();
    let database = server.databases.create("test", &scrinium_database::InitialAccess::Everybody).unwrap();
    let first = put(&database, &json!({"_id": "a", "n": 1})).unwrap();
    assert!(first.revision.starts_with("1-"));
    assert_eq!(get(&database, "a").unwrap(), json!({"_id": "a", "_rev": first.revision, "n": 1}));
    assert_eq!(put(&database, &json!({"_id": "a", "n": 2})).unwrap_err().error(), "conflict");

    let second = put(&database, &json!({"_id": "a", "_rev": first.revision, "n": 2})).unwrap();
    assert!(second.revision.starts_with("2-"));
    assert_eq!(put(&database, &json!({"_id": "a", "_rev": first.revision})).unwrap_err().error(), "conflict");

    let gone = put(&database, &json!({"_id": "a", "_rev": second.revision, "_deleted": true})).unwrap();
    assert_eq!(get(&database, "a").unwrap_err().reason(), "deleted");
    assert_eq!(get(&database, "b").unwrap_err().reason(), "missing");
    let info = database.info().unwrap();
    assert_eq!((info.document_count, info.deleted_count, info.change_number), (0, 1, 3));

    let again = put(&database, &json!({"_id": "a", "n": 3})).unwrap();
    assert!(again.revision.starts_with("4-"), "a new document follows its tombstone {gone:?}");
    drop(database);
    let server = server.reopen();
    let database = server.databases.get("test").unwrap();
    assert_eq!(get(&database, "a").unwrap()["n"], 3);
    assert_eq!(database.info().unwrap().document_count, 1);
}

#[test]
fn replicas_agree_on_the_winner_and_keep_the_loser() {
    let server = Server::new();
    let database = server.databases.create("test", &scrinium_database::InitialAccess::Everybody).unwrap();
    let conflicting = |digest: &str, n: u32| json!({"_id": "a", "_rev": format!("2-{digest}"), "_revisions": {"start": 2, "ids": [digest, "aa"]}, "n": n});
    replicate(&database, &json!({"_id": "a", "_rev": "1-aa", "n": 0})).unwrap();
    replicate(&database, &conflicting("cc", 2)).unwrap();
    replicate(&database, &conflicting("bb", 1)).unwrap();
    replicate(&database, &conflicting("bb", 1)).unwrap();
    let options = ReadOptions { conflicts: true, revisions: true, ..ReadOptions::default() };
    let read = get_with(&database, "a", &options).unwrap();
    assert_eq!((&read["n"], &read["_conflicts"]), (&json!(2), &json!(["2-bb"])));
    assert_eq!(read["_revisions"], json!({"start": 2, "ids": ["cc", "aa"]}));
    let loser = ReadOptions { revision: Some("2-bb".to_owned()), ..ReadOptions::default() };
    assert_eq!(get_with(&database, "a", &loser).unwrap()["n"], 1);

    let settled = put(&database, &json!({"_id": "a", "_rev": "2-cc", "_deleted": true})).unwrap();
    assert_eq!(get(&database, "a").unwrap()["n"], 1, "the loser wins once the winner is deleted");
    let all = database.open_revisions("a", &OpenRevisions::All, &ReadOptions::default(), &SERVER).unwrap();
    assert_eq!(all.len(), 2);
    assert!(all.iter().any(|found| matches!(found, OpenRevision::Found(document)
        if document.deleted && document.revision == settled.revision)));
    let wanted = [("a".to_owned(), vec!["2-bb".to_owned(), "9-zz".to_owned()])];
    let difference = &database.revisions_difference(&wanted, &SERVER).unwrap()[0].1;
    assert_eq!(difference.missing, ["9-zz"]);
    assert_eq!(database.info().unwrap().document_count, 1);
}

#[test]
fn one_update_is_one_batch_with_a_result_for_each_edit() {
    let server = Server::new();
    let database = server.databases.create("test", &scrinium_database::InitialAccess::Everybody).unwrap();
    let edits = [json!({"_id": "a"}), json!({"_id": "a"}), json!({"_id": "_bad"}), json!({"n": 1})];
    let update = database.update(edits.iter().map(edit).collect(), EditMode::Interactive, &SERVER).unwrap();
    let results = update.wait().unwrap();
    let words: Vec<_> =
        results.iter().map(|result| result.as_ref().map_or_else(|error| error.error(), |_| "ok")).collect();
    assert_eq!(words, ["ok", "conflict", "illegal_docid", "ok"]);
    assert_eq!(database.info().unwrap().change_number, 2);
}

#[test]
fn attachments_are_kept_once_and_collected_when_nobody_refers_to_them() {
    let server = Server::new();
    let first = server.databases.create("first", &scrinium_database::InitialAccess::Everybody).unwrap();
    let second = server.databases.create("second", &scrinium_database::InitialAccess::Everybody).unwrap();
    let large: Vec<u8> = (0..2_000_000_u32).flat_map(|n| (n / 7).to_le_bytes()).take(1_500_000).collect();
    let mut upload = first.upload("application/octet-stream");
    large.chunks(100_000).for_each(|piece| upload.write(piece).unwrap());
    let content = upload.finish().unwrap();
    let put_large = |database: &std::sync::Arc<scrinium_database::Database>, id: &str| {
        let attachment = NewAttachment {
            name: "big".to_owned(),
            content_type: "application/octet-stream".to_owned(),
            content: content.clone(),
        };
        let edit = Edit {
            id: Some(id.to_owned()),
            attachments: vec![attachment],
            attachments_only: true,
            ..Edit::default()
        };
        database
            .update(vec![edit], EditMode::Interactive, &SERVER)
            .unwrap()
            .wait()
            .unwrap()
            .remove(0)
            .unwrap()
    };
    let a = put_large(&first, "a");
    put_large(&second, "b");
    drop(content);
    for (database, id) in [(&first, "a"), (&second, "b")] {
        let reader = database.open_attachment(id, "big", None, &SERVER).unwrap();
        assert_eq!(reader.length, large.len() as u64);
        let mut read = Vec::new();
        while read.len() < large.len() {
            read.extend_from_slice(&reader.read(read.len() as u64, 77_777).unwrap());
        }
        assert!(read == large);
        assert_eq!(reader.read(1_000_000, 10).unwrap(), large[1_000_000..1_000_010]);
    }
    let info = get(&first, "a").unwrap();
    assert_eq!(info["_attachments"]["big"]["stub"], true);
    let with_stub = json!({"_id": "a", "_rev": a.revision, "_attachments": {"big": {"stub": true}}, "n": 1});
    let a = put(&first, &with_stub).unwrap();
    assert_eq!(get(&first, "a").unwrap()["_attachments"]["big"]["revpos"], 1);
    let missing = json!({"_id": "a", "_rev": a.revision, "_attachments": {"none": {"stub": true}}});
    assert_eq!(put(&first, &missing).unwrap_err().error(), "missing_stub");

    put(&first, &json!({"_id": "a", "_rev": a.revision})).unwrap();
    assert_eq!(server.databases.collect_contents().unwrap().removed, 0, "the second still refers to it");
    server.databases.delete("second").unwrap();
    server.databases.purge_dropped().unwrap();
    let collected = server.databases.collect_contents().unwrap();
    assert_eq!((collected.removed, collected.removed_bytes), (1, large.len() as u64));
    assert_eq!(server.databases.collect_contents().unwrap().examined, 0);
}

#[test]
fn a_large_field_is_kept_outside_and_read_back_as_it_was() {
    let server = Server::new();
    let database = server.databases.create("test", &scrinium_database::InitialAccess::Everybody).unwrap();
    let body = "All work and no play. ".repeat(1000);
    let sent = json!({"_id": "a", "Subject": "x", "Body": body, "n": 1.50});
    put(&database, &sent).unwrap();
    put(&database, &json!({"_id": "b", "Body": body})).unwrap();
    let read = get(&database, "a").unwrap();
    assert_eq!((&read["Body"], &read["n"]), (&sent["Body"], &sent["n"]));
    assert!(database.info().unwrap().sizes.external_bytes > 2 * body.len() as u64);
    let rev = read["_rev"].as_str().unwrap();
    put(&database, &json!({"_id": "a", "_rev": rev})).unwrap();
    assert_eq!(server.databases.collect_contents().unwrap().removed, 0);
    assert_eq!(get(&database, "b").unwrap()["Body"], body);
}

#[test]
fn limits_are_kept() {
    let options = DatabaseOptions {
        document_max_bytes: 1000,
        attachment_max_bytes: 300_000,
        ..DatabaseOptions::default()
    };
    let server = Server::with(options);
    let database = server.databases.create("test", &scrinium_database::InitialAccess::Everybody).unwrap();
    let large = put(&database, &json!({"_id": "a", "text": "x".repeat(2000)})).unwrap_err();
    assert_eq!((large.status(), large.error()), (413, "document_too_large"));
    let mut upload = database.upload("text/plain");
    let error = (0..10).find_map(|_| upload.write(&[7; 100_000]).err()).unwrap();
    let error = DatabaseError::from(error);
    assert_eq!((error.status(), error.error()), (413, "attachment_too_large"));
    drop(upload);
    put(&database, &json!({"_id": "a"})).unwrap();
}

#[test]
fn changes_come_once_for_each_document_in_order() {
    let server = Server::new();
    let database = server.databases.create("test", &scrinium_database::InitialAccess::Everybody).unwrap();
    let a = put(&database, &json!({"_id": "a"})).unwrap();
    put(&database, &json!({"_id": "b"})).unwrap();
    let since = database.info().unwrap().update_sequence;
    put(&database, &json!({"_id": "a", "_rev": a.revision, "_deleted": true})).unwrap();
    put(&database, &json!({"_id": "_design/x", "views": {}})).unwrap();
    let ids = |query: ChangesQuery| {
        let mut changes = database.changes(query, &SERVER).unwrap();
        let mut all = Vec::new();
        loop {
            let some = changes.next_changes(1).unwrap();
            if some.is_empty() {
                return (all, changes.last_sequence());
            }
            all.extend(some.into_iter().map(|change| (change.id, change.deleted)));
        }
    };
    let named = |ids: &[(&str, bool)]| -> Vec<(String, bool)> {
        ids.iter().map(|(id, deleted)| ((*id).to_owned(), *deleted)).collect()
    };
    let last = database.sequence_text(4);
    let all = ids(ChangesQuery::default());
    assert_eq!(all, (named(&[("b", false), ("a", true), ("_design/x", false)]), last.clone()));
    let later = ids(ChangesQuery { since: Since::At(since), ..ChangesQuery::default() });
    assert_eq!(later.0, named(&[("a", true), ("_design/x", false)]));
    let design = ids(ChangesQuery { design_only: true, ..ChangesQuery::default() });
    assert_eq!(design, (named(&[("_design/x", false)]), last.clone()));
    let some = ids(ChangesQuery { ids: Some(vec!["a".to_owned()]), ..ChangesQuery::default() });
    assert_eq!(some, (named(&[("a", true)]), last.clone()));
    assert_eq!(ids(ChangesQuery { since: Since::Now, ..ChangesQuery::default() }), (vec![], last));
    let other = Since::At("2-00000000".to_owned());
    assert_eq!(
        ids(ChangesQuery { since: other, ..ChangesQuery::default() }).0.len(),
        3,
        "another database's"
    );
}

#[test]
fn rows_by_id() {
    let server = Server::new();
    let database = server.databases.create("test", &scrinium_database::InitialAccess::Everybody).unwrap();
    for id in ["b", "a", "_design/x", "c", "ä"] {
        put(&database, &json!({"_id": id})).unwrap();
    }
    let b = get(&database, "b").unwrap();
    put(&database, &json!({"_id": "b", "_rev": b["_rev"], "_deleted": true})).unwrap();
    let ids = |query: RowQuery| {
        let mut rows = database.all_documents(query, &SERVER).unwrap();
        let mut all = Vec::new();
        loop {
            let some = rows.next_rows(2).unwrap();
            if some.is_empty() {
                return all.join(" ");
            }
            all.extend(some.into_iter().map(|row| row.id.or_else(|| row.error.map(str::to_owned)).unwrap()));
        }
    };
    let query = RowQuery::default;
    assert_eq!(ids(query()), "_design/x a c ä");
    assert_eq!(ids(RowQuery { descending: true, ..query() }), "ä c a _design/x");
    assert_eq!(ids(RowQuery { start_key: Some(json!("a")), end_key: Some(json!("c")), ..query() }), "a c");
    let exclusive =
        RowQuery { start_key: Some(json!("a")), end_key: Some(json!("c")), inclusive_end: false, ..query() };
    assert_eq!(ids(exclusive), "a");
    let backwards =
        RowQuery { descending: true, start_key: Some(json!("c")), end_key: Some(json!("a")), ..query() };
    assert_eq!(ids(backwards), "c a");
    assert_eq!(ids(RowQuery { skip: 1, limit: Some(2), ..query() }), "a c");
    assert_eq!(
        ids(RowQuery { keys: Some(vec![json!("c"), json!("no"), json!("b")]), ..query() }),
        "c not_found b"
    );
    assert_eq!(ids(RowQuery { start_key: Some(json!([])), ..query() }), "");
    let total = database.all_documents(query(), &SERVER).unwrap().total_rows;
    assert_eq!(total, Some(4));
}

#[test]
fn local_documents_stay_out_of_sight() {
    let server = Server::new();
    let database = server.databases.create("test", &scrinium_database::InitialAccess::Everybody).unwrap();
    let write = |json: &str, revision: Option<&str>| {
        database.write_local("_local/x", json.as_bytes(), false, revision, &SERVER)?.wait()?.remove(0)
    };
    assert_eq!(write(r#"{"n":1}"#, None).unwrap().revision, "0-1");
    assert_eq!(write(r#"{"n":2,"_rev":"0-1"}"#, None).unwrap().revision, "0-2");
    assert_eq!(get(&database, "_local/x").unwrap(), json!({"_id": "_local/x", "_rev": "0-2", "n": 2}));
    // Whatever is there, the revision is the next one to what is named.
    assert_eq!(write(r#"{"n":3}"#, Some("0-9")).unwrap().revision, "0-10");
    assert_eq!(write(r#"{"n":4}"#, None).unwrap().revision, "0-1");
    for wrong in ["1-1", "0-x", "0-", "nonsense"] {
        assert_eq!(write("{}", Some(wrong)).unwrap_err().reason(), "Invalid rev format", "{wrong}");
    }
    let attached = r#"{"_attachments":{"a":{"data":"QQ=="}}}"#;
    assert_eq!(write(attached, None).unwrap_err().reason(), "_local documents do not accept attachments.");
    assert_eq!(get(&database, "_local/x").unwrap()["n"], 4);
    assert_eq!(write(r#"{"_rev":"0-1","_deleted":true}"#, None).unwrap().revision, "0-0");
    assert_eq!(get(&database, "_local/x").unwrap_err().error(), "not_found");
    assert_eq!(write(r#"{"_deleted":true}"#, None).unwrap().revision, "0-0");
    write(r#"{"n":5}"#, None).unwrap();
    assert_eq!(database.info().unwrap().change_number, 0);
    database.write_local("_local/x", b"", true, None, &SERVER).unwrap().wait().unwrap();
    assert_eq!(get(&database, "_local/x").unwrap_err().error(), "not_found");
}

#[test]
fn databases_come_and_go() {
    let server = Server::new();
    let names = || server.databases.names(&scrinium_catalog::NameRange::default()).unwrap();
    for name in ["b", "mail/ada", "a"] {
        server.databases.create(name, &scrinium_database::InitialAccess::Everybody).unwrap();
    }
    assert_eq!(
        server
            .databases
            .create("a", &scrinium_database::InitialAccess::Everybody)
            .map(|_| ())
            .unwrap_err()
            .status(),
        412
    );
    assert_eq!(names(), ["a", "b", "mail/ada"]);
    let a = server.databases.get("a").unwrap();
    put(&a, &json!({"_id": "x"})).unwrap();
    server.databases.delete("a").unwrap();
    assert_eq!(get(&a, "x").unwrap_err().reason(), "Database does not exist.");
    assert_eq!(put(&a, &json!({"_id": "y"})).unwrap_err().status(), 404);
    let again = server.databases.create("a", &scrinium_database::InitialAccess::Everybody).unwrap();
    assert_eq!(get(&again, "x").unwrap_err().reason(), "missing");
    assert_ne!(a.info().err().map(|error| error.status()), None);
    assert_eq!(server.databases.purge_dropped().unwrap(), 1);
    drop((a, again));
    let server = server.reopen();
    assert_eq!(server.databases.get("a").unwrap().info().unwrap().document_count, 0);
}

/// The collector once held a lock while its removal was committed, which the committing thread needed to
/// give back the pins of others: nobody was answered any more.
#[test]
fn collecting_contents_and_updates_do_not_wait_for_each_other() {
    let server = Server::new();
    let database = server.databases.create("db", &scrinium_database::InitialAccess::Everybody).unwrap();
    let (ended, waiting) = mpsc::channel();
    let databases = server.databases;
    // Not in a scope: if they wait for each other the test must end all the same.
    let done = Arc::new(AtomicBool::new(false));
    let collecting = Arc::clone(&done);
    let mut threads = vec![std::thread::spawn(move || {
        while !collecting.load(Ordering::Relaxed) {
            databases.collect_contents().unwrap();
        }
    })];
    for writer in 0..4 {
        let (database, ended) = (database.clone(), ended.clone());
        threads.push(std::thread::spawn(move || {
            let mut revision = None;
            for version in 0..150 {
                let text = "text".repeat(1_000);
                let mut json =
                    json!({"_id": format!("d{writer}"), "Body": format!("{version} {writer} {text}")});
                if let Some(revision) = revision {
                    json["_rev"] = revision;
                }
                revision = Some(json!(put(&database, &json).unwrap().revision));
            }
            ended.send(()).unwrap();
        }));
    }
    for _ in 0..4 {
        let answered = waiting.recv_timeout(Duration::from_secs(60));
        assert!(answered.is_ok(), "updates and the collector wait for each other");
    }
    done.store(true, Ordering::Relaxed);
    // Nobody uses the store any more when the process ends.
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// An update reads its documents before it has the database's lock; what others stored meanwhile must count.
#[test]
fn edits_at_the_same_time_leave_one_chain_of_revisions() {
    const EDITORS: u64 = 8;
    const EDITS: u64 = 150;
    let server = Server::new();
    let database = server.databases.create("crowd", &scrinium_database::InitialAccess::Everybody).unwrap();
    let ids = ["a", "b", "c"];
    let edit_often = |editor: u64| {
        let (mut stored, mut random) = (0_u64, editor + 1);
        while stored < EDITS {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let id = ids[usize::try_from(random >> 33).unwrap() % ids.len()];
            let before = database.read(id, &ReadOptions::default(), &SERVER).ok();
            let mut next = before
                .map_or(json!({"_id": id, "Count": 0}), |read| serde_json::from_str(&read.json).unwrap());
            next["Count"] = json!(next["Count"].as_u64().unwrap() + 1);
            match put(&database, &next) {
                Ok(_) => stored += 1,
                Err(DatabaseError::Conflict) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    std::thread::scope(|scope| (0..EDITORS).for_each(|editor| drop(scope.spawn(move || edit_often(editor)))));
    let counts = ids.iter().map(|id| {
        let document: Value =
            serde_json::from_str(&database.read(id, &ReadOptions::default(), &SERVER).unwrap().json).unwrap();
        let (count, revision) = (document["Count"].as_u64().unwrap(), document["_rev"].as_str().unwrap());
        // Each edit that was acknowledged built on the one before it.
        assert!(revision.starts_with(&format!("{count}-")), "{document}");
        count
    });
    assert_eq!(counts.sum::<u64>(), EDITORS * EDITS);
    let info = database.info().unwrap();
    assert_eq!((info.change_number, info.document_count), (EDITORS * EDITS, 3));
}
