//! Databases that hold no more than they may.

use std::collections::BTreeMap;

use proptest::prelude::*;
use scrinium_database::{DatabaseError, EditMode, InitialAccess, Oversized, Properties, Quota, QuotaState};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::{SERVER, Server, edit, put};

fn with_quota(server: &Server, bytes: u64, documents: u64) -> OpenDatabase {
    let database = server.databases.create("test", &InitialAccess::Everybody).unwrap();
    let quota = Quota { bytes, documents, ..Quota::NONE };
    database.set_properties(Properties { quota, ..Properties::default() }).unwrap();
    database
}

fn is_full(error: &DatabaseError) -> bool {
    matches!(error, DatabaseError::TooLarge { what: Oversized::Database, reason } if reason.contains("quota"))
}

/// What a database holds: bytes and documents, as it says itself.
fn held(database: &OpenDatabase) -> (u64, u64) {
    let info = database.info().unwrap();
    (info.sizes.external_bytes, info.document_count)
}

#[test]
fn a_full_database_takes_nothing_more_but_what_makes_room() {
    let server = Server::quick();
    let database = with_quota(&server, 10_000, 3);
    let text = |length: usize| "x".repeat(length);
    put(&database, &json!({"_id": "a", "text": text(4_000)})).unwrap();
    let b = put(&database, &json!({"_id": "b", "text": text(5_000)})).unwrap();
    assert_eq!(database.quota_state().unwrap(), QuotaState::NearlyFull);
    assert!(is_full(&put(&database, &json!({"_id": "c", "text": text(4_000)})).unwrap_err()));
    // Of one update the edits that fit are stored.
    let edits = vec![
        edit(&json!({"_id": "d", "text": text(9_000)})),
        edit(&json!({"_id": "e"})),
        edit(&json!({"_id": "f"})),
        edit(&json!({"_id": "b", "_rev": b.revision, "text": text(100)})),
    ];
    let results = database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    let stored: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(stored, [false, true, false, true], "{results:?}");
    assert!(results.iter().flat_map(Result::as_ref).all(|updated| updated.id != "d"));
    // Brought edits and attachments count as well; a large tombstone is no way around.
    let brought = json!({"_id": "g", "_rev": "1-0123456789abcdef0123456789abcdef"});
    let brought = database.update_one(edit(&brought), EditMode::Replicated, &SERVER);
    assert!(is_full(&brought.unwrap_err()), "there are three documents");
    let attached = json!({"_id": "e", "_rev": results[1].as_ref().unwrap().revision,
        "_attachments": {"a": {"content_type": "text/plain", "data": "QUJD".repeat(5_000)}}});
    assert!(is_full(&put(&database, &attached).unwrap_err()));
    let buried = json!({"_id": "h", "_deleted": true, "text": text(9_000)});
    assert!(is_full(&put(&database, &buried).unwrap_err()));
    // Less of a quota than there is: what shrinks and what goes is taken.
    let quota = Quota { bytes: 10, documents: 1, ..Quota::NONE };
    database.set_properties(Properties { quota, ..Properties::default() }).unwrap();
    assert_eq!(database.quota_state().unwrap(), QuotaState::Full);
    let server = drop_and_reopen(server, database);
    let database = server.databases.get("test").unwrap();
    assert_eq!(database.properties().quota, quota, "it outlives a restart");
    let revision = results[3].as_ref().unwrap().revision.clone();
    let smaller = put(&database, &json!({"_id": "b", "_rev": revision, "text": text(10)})).unwrap();
    let larger = json!({"_id": "b", "_rev": smaller.revision, "text": text(11)});
    assert!(is_full(&put(&database, &larger).unwrap_err()));
    put(&database, &json!({"_id": "b", "_rev": smaller.revision, "_deleted": true, "why": "full"})).unwrap();
}

fn drop_and_reopen(server: Server, database: OpenDatabase) -> Server {
    drop(database);
    server.reopen()
}

#[test]
fn what_is_no_quota_is_refused() {
    let wish = |value: Value| Properties::default().changed(value.as_object().unwrap());
    for wrong in [
        json!({"quota_bytes": -1}),
        json!({"quota_bytes": "many"}),
        json!({"quota_documents": 1.5}),
        json!({"quota_warn_percent": 101}),
        json!({"quota": 1}),
    ] {
        assert!(wish(wrong.clone()).is_err(), "{wrong}");
    }
    let set = wish(json!({"quota_bytes": 1_000_000, "quota_warn_percent": 80})).unwrap();
    let shown = json!({"logged": true, "full_text": false, "quota_bytes": 1_000_000, "quota_documents": 0,
        "quota_warn_percent": 80});
    assert_eq!(set.to_json(), shown);
    assert_eq!(Properties::default().to_json(), json!({"logged": true, "full_text": false}));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever is written and deleted, in whatever batches: never more is held than may be, and nothing is refused that fits.
    #[test]
    fn a_quota_holds(
        bytes in 500_u64..4_000,
        documents in 1_u64..6,
        steps in prop::collection::vec(prop::collection::vec((0..8_usize, 0..900_usize, any::<bool>()), 1..4), 1..40),
    ) {
        let server = Server::quick();
        let database = with_quota(&server, bytes, documents);
        let mut revisions: BTreeMap<String, String> = BTreeMap::new();
        for batch in steps {
            let mut ids = std::collections::BTreeSet::new();
            let batch: Vec<_> = batch.into_iter().filter(|(id, _, _)| ids.insert(*id)).collect();
            let is_single = batch.len() == 1;
            let before = held(&database);
            let documents_of = |(id, length, deletes): &(usize, usize, bool)| {
                let id = format!("d{id}");
                let revision = revisions.get(&id);
                let mut document = json!({"_id": id, "text": "x".repeat(*length)});
                if let Some(revision) = revision {
                    document["_rev"] = json!(revision);
                    if *deletes {
                        document = json!({"_id": id, "_rev": revision, "_deleted": true});
                    }
                }
                document
            };
            let written: Vec<Value> = batch.iter().map(documents_of).collect();
            let results =
                database.update(written.iter().map(edit).collect(), EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
            let after = held(&database);
            prop_assert!(after.0 <= bytes && after.1 <= documents, "{:?} of {} and {}", after, bytes, documents);
            for (document, result) in written.iter().zip(results) {
                let (id, deletes) = (document["_id"].as_str().unwrap().to_owned(), document["_deleted"] == true);
                match result {
                    Ok(_) if deletes => drop(revisions.remove(&id)),
                    Ok(updated) => drop(revisions.insert(id, updated.revision)),
                    Err(error) => {
                        prop_assert!(is_full(&error) && !deletes, "{:?}: {}", document, error);
                        let length = document["text"].as_str().unwrap().len() as u64;
                        let is_new = !revisions.contains_key(&id);
                        // A member and its name take a little; one alone that would have fitted must not be refused.
                        let fits = before.0 + length + 60 <= bytes && (!is_new || before.1 < documents);
                        prop_assert!(!is_single || !fits, "{:?} with {:?} of {}, {}", document, before, bytes, documents);
                    }
                }
            }
        }
    }
}
