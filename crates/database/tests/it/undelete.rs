//! Deleted messages, held against a model of them: kept with the deletion, restored whole and once, let go by age, through moves,
//! purges, compactions and crashes, with a fixup that must find nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use scrinium_database::{
    DatabaseError, DeletedKey, DeletedMessage, Edit, EditMode, FolderChange, InitialAccess, LegalHold,
    Properties, PurgedLeaves, UndeleteChoice,
};
use scrinium_fault::cases;
use scrinium_maintenance::{CompactOrder, Compactor, FixupOptions, fixup};
use scrinium_store::{Direction, Family, KeyRange};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::{SERVER, Server, get, put};

const DAY: Duration = Duration::from_hours(24);

/// Messages can be had back for this many days.
const KEPT_DAYS: u32 = 3;

#[derive(Clone, Debug)]
enum Step {
    Deliver { document: u8, folder: u8, read: bool },
    Move { document: u8, folder: u8 },
    Delete { document: u8 },
    Twice { document: u8 },
    Undelete { place: usize, elsewhere: bool },
    Purge { document: u8 },
    Days(u32),
    LetGo,
    Compact,
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let (document, folder) = (0..4_u8, 0..3_u8);
    prop_oneof![
        8 => (document.clone(), folder.clone(), any::<bool>())
            .prop_map(|(document, folder, read)| Step::Deliver { document, folder, read }),
        1 => (document.clone(), folder).prop_map(|(document, folder)| Step::Move { document, folder }),
        6 => document.clone().prop_map(|document| Step::Delete { document }),
        1 => document.clone().prop_map(|document| Step::Twice { document }),
        4 => (0..5_usize, any::<bool>()).prop_map(|(place, elsewhere)| Step::Undelete { place, elsewhere }),
        1 => document.prop_map(|document| Step::Purge { document }),
        2 => (1..3_u32).prop_map(Step::Days),
        2 => Just(Step::LetGo),
        1 => Just(Step::Compact),
        1 => Just(Step::Crash),
    ]
}

/// A message that is there.
#[derive(Clone, Debug, PartialEq)]
struct Message {
    number: u32,
    folder: u8,
    read: bool,
    came_day: u32,
    dated: Option<u32>,
}

#[derive(Default)]
struct Model {
    day: u32,
    number: u32,
    there: BTreeMap<u8, Message>,
    /// With the days of their deletions and their revisions.
    kept: Vec<(u32, u8, String, Message)>,
}

fn id(document: u8) -> String {
    format!("d{document}")
}

fn folder(number: u8) -> String {
    format!("Folder {number}")
}

fn deliver(database: &OpenDatabase, document: u8, message: &Message) {
    let data = format!("QUFB{:04}", message.number);
    let json = json!({
        "_id": id(document), "n": message.number, "$Flags": ["\\Flagged", "work"], "long": "x".repeat(3000),
        "_attachments": {"message.eml": {"content_type": "message/rfc822", "data": data}},
    });
    let name = folder(message.folder);
    let edit = Edit {
        json: json.to_string().into(),
        folders: vec![
            FolderChange::Make { folder: name.clone(), columns: None, special_use: None },
            FolderChange::Add { folder: name },
        ],
        read_by: message.read.then(|| "ada".into()),
        ..Edit::default()
    };
    database.update_one(edit, EditMode::Interactive, &SERVER).unwrap();
}

fn revision(database: &OpenDatabase, document: u8) -> String {
    get(database, &id(document)).unwrap()["_rev"].as_str().unwrap().to_owned()
}

fn deleted(database: &OpenDatabase) -> Vec<DeletedMessage> {
    let mut all = Vec::new();
    let mut from: Option<DeletedKey> = None;
    loop {
        let page = database.deleted_messages(from.as_ref(), (&["n"], 2), &SERVER).unwrap();
        all.extend(page.messages);
        from = page.next;
        if from.is_none() {
            return all;
        }
    }
}

impl Model {
    fn delete(&mut self, document: u8, revision: String) {
        let message = self.there.remove(&document).unwrap();
        self.kept.push((self.day, document, revision, message));
        self.kept.sort_by(|one, other| (one.0, one.1, &one.2).cmp(&(other.0, other.1, &other.2)));
        // Of one document the last ten.
        let of_it: Vec<usize> =
            (0..self.kept.len()).filter(|place| self.kept[*place].1 == document).collect();
        if of_it.len() > 10 {
            self.kept.remove(of_it[0]);
        }
    }

    fn undelete(&mut self, database: &OpenDatabase, place: usize, elsewhere: bool) {
        let Some((_, document, revision, mut message)) = self.kept.get(place).cloned() else { return };
        let key = deleted(database)[place].key.clone();
        assert_eq!((&key.id, &key.revision), (&id(document), &revision));
        let target = elsewhere.then_some("Restored");
        let done = database.undelete(&key, target, &SERVER);
        if self.there.contains_key(&document) {
            assert!(matches!(done, Err(DatabaseError::Exists { .. })), "{done:?}");
            return;
        }
        assert_eq!(done.unwrap().id, id(document));
        // Once.
        assert!(matches!(database.undelete(&key, target, &SERVER), Err(DatabaseError::NotFound { .. })));
        self.kept.remove(place);
        message.dated = message.dated.or(Some(message.came_day));
        message.folder = if elsewhere { 9 } else { message.folder };
        self.there.insert(document, message);
    }
}

fn run(server: Server, model: &mut Model, step: &Step) -> Server {
    let database = server.databases.get("db").unwrap();
    match *step {
        Step::Deliver { document, folder, read } if !model.there.contains_key(&document) => {
            model.number += 1;
            let message = Message { number: model.number, folder, read, came_day: model.day, dated: None };
            deliver(&database, document, &message);
            model.there.insert(document, message);
        }
        Step::Move { document, folder: to } => {
            if let Some(message) = model.there.get_mut(&document)
                && message.folder != 9
            {
                database.define_folder(&folder(to), None).unwrap();
                let change = FolderChange::Move { from: folder(message.folder), to: folder(to) };
                database.change_folders(vec![(id(document), change)], &SERVER).unwrap().wait().unwrap();
                if message.folder != to {
                    (message.folder, message.came_day) = (to, model.day);
                }
            }
        }
        Step::Delete { document } if model.there.contains_key(&document) => {
            let revision = revision(&database, document);
            put(&database, &json!({"_id": id(document), "_rev": revision, "_deleted": true})).unwrap();
            model.delete(document, revision);
        }
        // Changed and deleted by one request: what it was before the deletion is kept.
        Step::Twice { document } if model.there.contains_key(&document) => {
            let mut json = get(&database, &id(document)).unwrap();
            model.number += 1;
            json["n"] = json!(model.number);
            let changed = Edit { json: json.to_string().into(), keeps_marks: true, ..Edit::default() };
            let before = database.update_one(changed, EditMode::Interactive, &SERVER).unwrap().revision;
            model.there.get_mut(&document).unwrap().number = model.number;
            let tombstone = json!({"_id": id(document), "_rev": before, "_deleted": true});
            let again = json!({"_id": id(document), "_rev": before, "n": 0});
            let edits = [&tombstone, &again].map(crate::common::edit).to_vec();
            let done = database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
            assert!(done[0].is_ok() && done[1].is_err());
            model.delete(document, before);
        }
        Step::Undelete { place, elsewhere } => model.undelete(&database, place, elsewhere),
        Step::Purge { document } if model.there.contains_key(&document) => {
            let revisions = vec![revision(&database, document)];
            database.purge_leaves(vec![PurgedLeaves { id: id(document), revisions }]).unwrap();
            model.there.remove(&document);
            model.kept.retain(|kept| kept.1 != document);
        }
        Step::Days(days) => {
            model.day += days;
            server.pass(DAY * days);
        }
        Step::LetGo => {
            while database.let_deleted_go().unwrap().messages > 0 {}
            let day = model.day;
            model.kept.retain(|kept| kept.0 + KEPT_DAYS >= day);
        }
        Step::Compact => {
            Compactor::of(&server.databases).compact("db", &CompactOrder::default()).unwrap();
            // Tombstones of messages that can be had back stay, however old.
            Compactor::of(&server.databases).purge_tombstones_after("db", Duration::from_millis(1)).unwrap();
        }
        Step::Crash => {
            drop(database);
            return server.crash();
        }
        _ => {}
    }
    server
}

fn check(server: &Server, model: &Model) {
    let database = server.databases.get("db").unwrap();
    let found = deleted(&database);
    let seen: Vec<(String, String, Value, Vec<String>)> = found
        .iter()
        .map(|one| (one.key.id.clone(), one.key.revision.clone(), one.fields[0].clone(), one.folders.clone()))
        .collect();
    let name = |number: u8| if number == 9 { "Restored".to_owned() } else { folder(number) };
    let wanted: Vec<(String, String, Value, Vec<String>)> = model
        .kept
        .iter()
        .map(|(_, document, revision, message)| {
            (id(*document), revision.clone(), json!(message.number), vec![name(message.folder)])
        })
        .collect();
    assert_eq!(seen, wanted);
    let sums = database.deleted_sums().unwrap();
    let bytes = found.iter().map(|one| one.bytes).sum::<u64>();
    assert_eq!((sums.count, sums.bytes), (found.len() as u64, bytes));
    let names = server.databases.that_keep_deleted().unwrap();
    assert_eq!(names.len(), usize::from(!found.is_empty()));
    for (document, message) in &model.there {
        let json = get(&database, &id(*document)).unwrap();
        assert_eq!((&json["n"], &json["$Flags"]), (&json!(message.number), &json!(["\\Flagged", "work"])));
        assert!(json["_attachments"]["message.eml"]["length"] == 6);
        let day = message.dated.map(|day| 1_790_000_000_000 + u64::from(day) * 86_400_000);
        assert_eq!(json.get("$InternalDate"), day.map(|day| json!([day, 0])).as_ref());
        let snapshot = database.store().snapshot();
        assert_eq!(database.has_read(&snapshot, &id(*document), "ada").unwrap(), message.read);
        let info = database.folder(&name(message.folder), None).unwrap();
        assert!(database.uid_at(&snapshot, info.number, &id(*document)).unwrap().is_some());
    }
    assert_eq!(database.info().unwrap().document_count, model.there.len() as u64);
}

fn contents(server: &Server) -> usize {
    while server.databases.collect_contents().unwrap().removed > 0 {}
    let snapshot = server.store.as_ref().unwrap().snapshot();
    let mut cursor = snapshot.cursor(Family::Blob, KeyRange::new(b"c", b"d"), Direction::Forward);
    std::iter::from_fn(|| cursor.next().unwrap().map(drop)).count()
}

fn made(server: &Server, choice: UndeleteChoice) -> OpenDatabase {
    let database = server.databases.create("db", &InitialAccess::Everybody).unwrap();
    database.set_properties(Properties { undelete: choice, ..database.properties() }).unwrap();
    database
}

const CHOICE: UndeleteChoice = UndeleteChoice { days: Some(KEPT_DAYS), bytes: Some(1 << 30) };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(32)))]

    #[test]
    fn a_deleted_message_can_be_had_back_as_it_was(steps in prop::collection::vec(step(), 1..80)) {
        let mut server = Server::timed();
        drop(made(&server, CHOICE));
        let mut model = Model::default();
        for step in &steps {
            server = run(server, &mut model, step);
            check(&server, &model);
        }
        let options = FixupOptions { views: true, ..FixupOptions::default() };
        fixup(&server.databases, None, options, |finding| panic!("{finding:?}")).unwrap();
        server.pass(DAY * 10);
        model.day += 10;
        server = run(server, &mut model, &Step::LetGo);
        check(&server, &model);
        fixup(&server.databases, None, options, |finding| panic!("{finding:?}")).unwrap();
        // A message has a source; its long field is everybody's.
        let wanted = model.there.len() + usize::from(!model.there.is_empty());
        prop_assert_eq!(contents(&server), wanted);
    }
}

#[test]
fn the_oldest_go_first_where_more_is_deleted_than_is_kept() {
    let server = Server::timed();
    let database = made(&server, UndeleteChoice { days: Some(30), bytes: Some(10_000) });
    for number in 0..8 {
        let message = Message { number: 1, folder: 0, read: false, came_day: 0, dated: None };
        deliver(&database, number, &message);
        let tombstone = json!({"_id": id(number), "_rev": revision(&database, number), "_deleted": true});
        put(&database, &tombstone).unwrap();
        server.pass(Duration::from_secs(1));
    }
    // Each has some 3,000 bytes. At once there are twice as many as there may be, and no more.
    let ids = || deleted(&database).into_iter().map(|one| one.key.id).collect::<Vec<_>>();
    assert_eq!(ids(), ["d0", "d1", "d2", "d3", "d4", "d5"]);
    let told: Vec<String> = database.context.server.too_much_deleted.lock().iter().cloned().collect();
    assert_eq!(told, ["db"]);
    let hold = LegalHold { matter: "case".to_owned(), person: None, by: "admin".to_owned(), since_ms: 1 };
    database.set_legal_hold(hold).unwrap();
    assert_eq!(database.let_deleted_go().unwrap().messages, 0);
    database.lift_legal_hold("case").unwrap();
    assert_eq!(database.let_deleted_go().unwrap().messages, 3);
    assert_eq!(ids(), ["d3", "d4", "d5"]);
    // Neither a document that is no message nor one that was in no folder is kept, nor anything where nothing is to be.
    put(&database, &json!({"_id": "plain", "Form": "Note"})).unwrap();
    let change = FolderChange::Add { folder: folder(0) };
    database.change_folders(vec![("plain".to_owned(), change)], &SERVER).unwrap().wait().unwrap();
    put(&database, &json!({"_id": "loose", "Form": "Memo"})).unwrap();
    for name in ["plain", "loose"] {
        let revision = get(&database, name).unwrap()["_rev"].clone();
        put(&database, &json!({"_id": name, "_rev": revision, "_deleted": true})).unwrap();
    }
    assert_eq!(ids(), ["d3", "d4", "d5"]);
    let off = UndeleteChoice { days: Some(0), bytes: None };
    database.set_properties(Properties { undelete: off, ..database.properties() }).unwrap();
    assert_eq!(database.let_deleted_go().unwrap().messages, 3);
    assert!(ids().is_empty());
}

#[test]
fn a_deletion_that_replication_brings_is_kept_as_well_and_goes_with_its_database() {
    let server = Server::timed();
    let database = made(&server, CHOICE);
    let message = Message { number: 7, folder: 1, read: true, came_day: 0, dated: None };
    deliver(&database, 0, &message);
    let before = revision(&database, 0);
    let (generation, digest) = before.split_once('-').unwrap();
    assert_eq!(generation, "1");
    let tombstone = json!({
        "_id": id(0), "_deleted": true,
        "_revisions": {"start": 2, "ids": ["0123456789abcdef0123456789abcdef", digest]},
    });
    crate::common::replicate(&database, &tombstone).unwrap();
    let kept = deleted(&database);
    assert_eq!((kept.len(), kept[0].key.revision.as_str()), (1, before.as_str()));
    assert!(
        database.read(&id(0), &by_revision(&before), &SERVER).is_err(),
        "nobody reads it by its revision"
    );
    // Another leaf of the same document is the message then: nothing is deleted.
    let other = json!({"_id": id(1), "_rev": "1-ffffffffffffffffffffffffffffffff", "n": 1});
    deliver(&database, 1, &message);
    crate::common::replicate(&database, &other).unwrap();
    let winner = revision(&database, 1);
    put(&database, &json!({"_id": id(1), "_rev": winner, "_deleted": true})).unwrap();
    assert_eq!(deleted(&database).len(), 1);
    fixup(&server.databases, None, FixupOptions::default(), |finding| panic!("{finding:?}")).unwrap();
    drop(database);
    // What a dropped database kept goes with it.
    server.databases.delete("db").unwrap();
    server.databases.purge_dropped().unwrap();
    assert_eq!(contents(&server), 0);
    assert!(server.databases.that_keep_deleted().unwrap().is_empty());
}

fn by_revision(revision: &str) -> scrinium_database::ReadOptions {
    scrinium_database::ReadOptions { revision: Some(revision.to_owned()), ..Default::default() }
}
