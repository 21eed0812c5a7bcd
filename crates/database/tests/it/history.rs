//! Earlier bodies that a database keeps, held against a model of them: by number and age, through deletions, conflicts, purges
//! and compactions, another limit in between, a crash, and a fixup that must find nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use scrinium_database::{
    AccessList, DatabaseError, EditMode, HistoryLimits, Identity, InitialAccess, OpenRevision, OpenRevisions,
    Properties, PurgedLeaves, ReadOptions, keys,
};
use scrinium_fault::cases;
use scrinium_maintenance::{CompactOrder, Compactor, FixupOptions, fixup};
use scrinium_store::{Batch, Direction, Family, KeyRange};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::{SERVER, Server, edit, get, get_with, put, replicate};

const DAY: Duration = Duration::from_hours(24);

#[derive(Clone, Debug)]
enum Step {
    Put { document: u8, attached: u8 },
    Twice { document: u8 },
    Delete { document: u8 },
    Conflict { document: u8, branch: u8 },
    Purge { document: u8 },
    Limit { revisions: u32, days: u32 },
    Days(u32),
    Compact,
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let document = 0..3_u8;
    prop_oneof![
        8 => (document.clone(), 0..4_u8).prop_map(|(document, attached)| Step::Put { document, attached }),
        1 => document.clone().prop_map(|document| Step::Twice { document }),
        2 => document.clone().prop_map(|document| Step::Delete { document }),
        2 => (document.clone(), 0..4_u8).prop_map(|(document, branch)| Step::Conflict { document, branch }),
        1 => document.prop_map(|document| Step::Purge { document }),
        1 => (0..4_u32, 0..4_u32).prop_map(|(revisions, days)| Step::Limit { revisions, days }),
        2 => (1..3_u32).prop_map(Step::Days),
        1 => Just(Step::Compact),
        1 => Just(Step::Crash),
    ]
}

/// What is known of a body that was superseded.
#[derive(Clone, Debug)]
struct Earlier {
    revision: String,
    body: Value,
    superseded_day: u32,
}

#[derive(Default)]
struct Model {
    day: u32,
    limits: HistoryLimits,
    number: u32,
    /// In the order in which others followed, by document.
    earlier: BTreeMap<u8, Vec<Earlier>>,
}

impl Model {
    /// What a document keeps once it is looked through.
    fn let_go(&mut self, document: u8) {
        let (limits, day) = (self.limits, self.day);
        let earlier = self.earlier.entry(document).or_default();
        if !limits.is_on() {
            earlier.clear();
        }
        if limits.days > 0 {
            earlier.retain(|one| one.superseded_day + limits.days >= day);
        }
        if limits.revisions > 0 {
            let too_many = earlier.len().saturating_sub(limits.revisions as usize);
            earlier.drain(..too_many);
        }
    }

    fn supersede(&mut self, document: u8, body: Value) {
        let revision = body["_rev"].as_str().unwrap().to_owned();
        let superseded_day = self.day;
        self.earlier.entry(document).or_default().push(Earlier { revision, body, superseded_day });
        self.let_go(document);
    }
}

fn id(document: u8) -> String {
    format!("d{document}")
}

fn of_revision(database: &OpenDatabase, document: u8, revision: &str) -> Result<Value, DatabaseError> {
    let options =
        ReadOptions { revision: Some(revision.to_owned()), attachments: true, ..ReadOptions::default() };
    get_with(database, &id(document), &options)
}

/// The winner as it can be read by its revision; that of a tombstone too.
fn winner(database: &OpenDatabase, document: u8) -> Option<Value> {
    let options = ReadOptions { conflicts: true, ..ReadOptions::default() };
    let found = get_with(database, &id(document), &options).ok()?;
    of_revision(database, document, found["_rev"].as_str().unwrap()).ok()
}

fn edited(model: &mut Model, document: u8, attached: u8, revision: Option<&Value>) -> Value {
    model.number += 1;
    let mut json =
        json!({"_id": id(document), "n": model.number, "long": format!("{}", model.number).repeat(1500)});
    if attached > 0 {
        let data = ["QUFBQQ==", "QkJCQg==", "Q0NDQw=="][usize::from(attached) - 1];
        json["_attachments"] = json!({"a.txt": {"content_type": "text/plain", "data": data}});
    }
    if let Some(revision) = revision {
        json["_rev"] = revision.clone();
    }
    json
}

fn set(database: &OpenDatabase, limits: HistoryLimits) {
    database.set_properties(Properties { history: limits, ..database.properties() }).unwrap();
}

fn run(server: Server, model: &mut Model, step: &Step) -> Server {
    let database = server.databases.get("db").unwrap();
    match *step {
        Step::Put { document, attached } => {
            let before = winner(&database, document);
            let json = edited(model, document, attached, before.as_ref().map(|before| &before["_rev"]));
            put(&database, &json).unwrap();
            match before {
                Some(before) => model.supersede(document, before),
                None => follow_tombstone(&database, model, document),
            }
        }
        // Of two edits in one request nobody ever reads the first.
        Step::Twice { document } => {
            if let Some(before) = winner(&database, document) {
                let deleted = json!({"_id": id(document), "_rev": before["_rev"], "_deleted": true});
                let edits = [deleted, edited(model, document, 1, None)].iter().map(edit).collect();
                let update = database.update(edits, EditMode::Interactive, &SERVER).unwrap();
                let results = update.wait().unwrap();
                let first = results[0].as_ref().unwrap().revision.clone();
                model.supersede(document, before);
                // Where another leaf is left, the second edit, which names none, is a conflict, or goes on from its tombstone.
                if results[1].is_ok() && parent(&database, document).is_some_and(|parent| parent != first) {
                    follow_tombstone(&database, model, document);
                }
            }
        }
        Step::Delete { document } => {
            if let Some(before) = winner(&database, document) {
                let json = json!({"_id": id(document), "_rev": before["_rev"], "_deleted": true});
                put(&database, &json).unwrap();
                model.supersede(document, before);
            }
        }
        Step::Conflict { document, branch } => {
            let revision = format!("1-{branch:032x}");
            let asked = [(id(document), vec![revision.clone()])];
            let is_new = !database.revisions_difference(&asked, &SERVER).unwrap().is_empty();
            if is_new {
                // Whatever changes a document looks through what it keeps.
                model.let_go(document);
            }
            drop(replicate(&database, &json!({"_id": id(document), "_rev": revision, "n": branch})));
        }
        Step::Purge { document } => {
            if let Some(before) = winner(&database, document) {
                let revisions = vec![before["_rev"].as_str().unwrap().to_owned()];
                database.purge_leaves(vec![PurgedLeaves { id: id(document), revisions }]).unwrap();
            }
            // Its history goes with it, as far as it is no other leaf's.
            let options = ReadOptions { revisions_info: true, ..ReadOptions::default() };
            let known: Vec<String> = leaves(&database, document, &options);
            let earlier = model.earlier.entry(document).or_default();
            earlier.retain(|one| known.contains(&one.revision));
            model.let_go(document);
        }
        Step::Limit { revisions, days } => {
            model.limits = HistoryLimits { revisions, days };
            set(&database, model.limits);
        }
        Step::Days(days) => {
            model.day += days;
            server.pass(DAY * days);
        }
        Step::Compact => {
            Compactor::of(&server.databases).compact("db", &CompactOrder::default()).unwrap();
            (0..3).for_each(|document| model.let_go(document));
        }
        Step::Crash => {
            drop(database);
            return server.crash();
        }
    }
    server
}

/// All revisions that some leaf follows.
fn leaves(database: &OpenDatabase, document: u8, options: &ReadOptions) -> Vec<String> {
    let all = OpenRevisions::All;
    let found = database.open_revisions(&id(document), &all, options, &SERVER).unwrap_or_default();
    let mut known = Vec::new();
    for leaf in found {
        let OpenRevision::Found(leaf) = leaf else { panic!("{leaf:?}") };
        let leaf: Value = serde_json::from_str(&leaf.json).unwrap();
        for one in leaf["_revs_info"].as_array().unwrap().iter().skip(1) {
            known.push(one["rev"].as_str().unwrap().to_owned());
        }
    }
    known
}

/// What the winner follows.
fn parent(database: &OpenDatabase, document: u8) -> Option<String> {
    let options = ReadOptions { revisions: true, ..ReadOptions::default() };
    let found = get_with(database, &id(document), &options).unwrap();
    let start = found["_revisions"]["start"].as_u64().unwrap();
    let parent = found["_revisions"]["ids"].get(1)?.as_str()?;
    Some(format!("{}-{parent}", start - 1))
}

/// A tombstone that a new document follows is an earlier body as well.
fn follow_tombstone(database: &OpenDatabase, model: &mut Model, document: u8) {
    if let Some(revision) = parent(database, document) {
        let body = json!({"_id": id(document), "_rev": revision, "_deleted": true});
        model.supersede(document, body);
    }
}

/// What a compaction would let go may be there, or not; all else is there, with its body, and nothing besides.
fn check(server: &Server, model: &Model) {
    let database = server.databases.get("db").unwrap();
    for document in 0..3 {
        let mut due =
            Model { day: model.day, limits: model.limits, number: 0, earlier: model.earlier.clone() };
        due.let_go(document);
        let none = Vec::new();
        for one in model.earlier.get(&document).unwrap_or(&none) {
            let found = of_revision(&database, document, &one.revision);
            let is_due = !due.earlier[&document].iter().any(|kept| kept.revision == one.revision);
            match found {
                Ok(mut found) => {
                    found.as_object_mut().unwrap().shift_remove("_conflicts");
                    assert_eq!(found, one.body);
                    assert!(model.limits.is_on());
                }
                Err(DatabaseError::NotFound { .. }) => assert!(is_due, "{one:?} is gone"),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(24)))]

    #[test]
    fn earlier_bodies_are_kept_as_long_as_they_are_to_be(steps in prop::collection::vec(step(), 1..80)) {
        let mut server = Server::timed();
        let database = server.databases.create("db", &InitialAccess::Everybody).unwrap();
        let mut model = Model { limits: HistoryLimits { revisions: 3, days: 0 }, ..Model::default() };
        set(&database, model.limits);
        drop(database);
        for step in &steps {
            server = run(server, &mut model, step);
            check(&server, &model);
        }
        // Each body is counted, listed and referred to as it is; and those that are due go.
        let options = FixupOptions { views: true, ..FixupOptions::default() };
        fixup(&server.databases, None, options, |finding| panic!("{finding:?}")).unwrap();
        Compactor::of(&server.databases).compact("db", &CompactOrder::default()).unwrap();
        (0..3).for_each(|document| model.let_go(document));
        let database = server.databases.get("db").unwrap();
        for document in 0..3 {
            let options = ReadOptions { revisions_info: true, ..ReadOptions::default() };
            let Ok(found) = get_with(&database, &id(document), &options) else { continue };
            for one in found["_revs_info"].as_array().unwrap().iter().skip(1) {
                let kept = model.earlier[&document].iter().find(|kept| one["rev"] == *kept.revision);
                let word = match kept {
                    None => "missing",
                    Some(kept) if kept.body.get("_deleted").is_some() => "deleted",
                    Some(_) => "available",
                };
                prop_assert_eq!(&one["status"], word);
            }
        }
        fixup(&server.databases, None, options, |finding| panic!("{finding:?}")).unwrap();
        // Without history, nothing of it stays.
        set(&database, HistoryLimits::default());
        Compactor::of(&server.databases).compact("db", &CompactOrder::default()).unwrap();
        fixup(&server.databases, None, options, |finding| panic!("{finding:?}")).unwrap();
        let (from, to) = keys::earlier_range(database.number());
        let snapshot = server.store.as_ref().unwrap().snapshot();
        let mut cursor = snapshot.cursor(Family::Scan, KeyRange::new(&from, &to), Direction::Forward);
        prop_assert!(cursor.next().unwrap().is_none());
    }
}

/// Whoever may read a document now may not have been allowed to before, and the other way round.
#[test]
fn an_earlier_body_is_for_those_whom_it_names_and_who_may_read_the_document_now() {
    let server = Server::quick();
    let database = server.databases.create("db", &InitialAccess::Everybody).unwrap();
    database
        .set_access_list(Some(AccessList::parse(&json!({"default": {"level": "author"}})).unwrap()))
        .unwrap();
    set(&database, HistoryLimits { revisions: 10, days: 0 });
    let mut revisions = Vec::new();
    for readers in [json!(["ada"]), json!(["ada", "bob"]), json!(["bob"]), json!(["ada", "bob"])] {
        let mut json = json!({"_id": "a", "Readers": readers, "n": revisions.len()});
        json["_attachments"] = json!({"file": {"content_type": "text/plain", "data": "QUFBQQ=="}});
        if let Some(revision) = revisions.last() {
            json["_rev"] = json!(revision);
        }
        revisions.push(put(&database, &json).unwrap().revision);
    }
    let access = |name: &str| database.access(&Identity::new(name, Vec::new())).unwrap();
    let read = |name: &str, place: usize| {
        let options = ReadOptions { revision: Some(revisions[place].clone()), ..ReadOptions::default() };
        let found = database.read("a", &options, &access(name)).is_ok();
        let attached = database.open_attachment("a", "file", Some(&revisions[place]), &access(name));
        assert_eq!(attached.is_ok(), found);
        found
    };
    let all = |name: &str| (0..4).map(|place| read(name, place)).collect::<Vec<_>>();
    assert_eq!(all("ada"), [true, true, false, true]);
    assert_eq!(all("bob"), [false, true, true, true]);
    assert_eq!(all("eve"), [false; 4]);
    let last = json!({"_id": "a", "Readers": ["bob"], "_rev": revisions[3]});
    put(&database, &last).unwrap();
    assert_eq!(all("ada"), [false; 4]);
    assert_eq!(all("bob"), [false, true, true, true]);
    // Nor is anything of it read while the database keeps no history.
    set(&database, HistoryLimits::default());
    assert_eq!(all("bob"), [false; 4]);
    assert!(get(&database, "a").is_ok());
}

/// A fixup keeps what can be read of a document's history, and puts aside what belongs to none.
#[test]
fn a_fixup_mends_history_that_is_damaged() {
    let server = Server::quick();
    let database = server.databases.create("db", &InitialAccess::Everybody).unwrap();
    set(&database, HistoryLimits { revisions: 10, days: 0 });
    let mut revisions: Vec<String> = Vec::new();
    for number in 0..4 {
        let mut json = json!({"_id": "a", "n": number});
        if let Some(revision) = revisions.last() {
            json["_rev"] = json!(revision);
        }
        revisions.push(put(&database, &json).unwrap().revision);
    }
    let key = |id: &str, place: usize| {
        let revision = scrinium_document::Revision::parse(&revisions[place]).unwrap();
        keys::earlier(database.number(), id, &revision)
    };
    let store = server.store.as_ref().unwrap();
    let record = store.get(Family::Scan, &key("a", 2)).unwrap().unwrap().to_vec();
    let mut batch = Batch::new();
    batch.put(Family::Scan, &key("a", 1), b"nothing that can be read");
    batch.put(Family::Scan, &key("nobody", 2), &record);
    store.commit(batch).unwrap();
    let report = fixup(&server.databases, Some("db"), FixupOptions::default(), |_| {}).unwrap();
    assert!(!report.findings.is_empty(), "{report:?}");
    let options = ReadOptions { revision: Some(revisions[0].clone()), ..ReadOptions::default() };
    assert_eq!(get_with(&database, "a", &options).unwrap()["n"], 0);
    let options = ReadOptions { revision: Some(revisions[1].clone()), ..ReadOptions::default() };
    assert!(get_with(&database, "a", &options).is_err());
    assert!(get(&database, "nobody").is_err());
    fixup(&server.databases, Some("db"), FixupOptions::default(), |finding| panic!("{finding:?}")).unwrap();
}
