//! When views are brought up to date, what answers until they are built, and what is discarded.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use scrinium_database::{Collation, DatabaseOptions, EditMode, Freshness, RowQuery};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::words::Words as _;
use crate::common::{SERVER, Server, edit, get, put};

const HOUR: Duration = Duration::from_secs(3600);

/// A view of all documents by `formula`.
fn by(formula: &str) -> Value {
    json!({"columns": [{"title": formula, "formula": formula, "sort": "asc"}]})
}

fn with_update(mut view: Value, update: &Value) -> Value {
    view["update"] = update.clone();
    view
}

fn put_design(database: &OpenDatabase, views: &Value) {
    let mut design = json!({"_id": "_design/d", "language": "formula", "views": views});
    if let Ok(present) = get(database, "_design/d") {
        design["_rev"] = present["_rev"].clone();
    }
    put(database, &design).unwrap();
}

/// Keys and ids of a view, and the change that it claims to reach.
fn read(database: &OpenDatabase, view: &str, freshness: Freshness) -> (Vec<String>, u64) {
    let query = RowQuery { freshness, update_sequence: true, ..RowQuery::default() };
    let mut rows = database.view("d", view, query, &SERVER).unwrap();
    let reached = database.parse_sequence(rows.update_sequence.as_ref().unwrap()).unwrap();
    let all = rows.next_rows(usize::MAX).unwrap();
    (all.into_iter().map(|row| format!("{} {}", row.key, row.id.unwrap())).collect(), reached)
}

fn usual(database: &OpenDatabase, view: &str) -> Vec<String> {
    read(database, view, Freshness::Usual).0
}

/// What the update task of a server does.
fn background(server: &Server) {
    for database in server.databases.take_announced(usize::MAX) {
        for design in database.take_wanted_views() {
            database.update_view_group(&design).unwrap();
        }
        database.update_followed_views().unwrap();
    }
}

fn fill(database: &OpenDatabase, range: std::ops::Range<u32>) {
    let document =
        |number: u32| edit(&json!({"_id": format!("{number:05}"), "A": number, "B": 9000 - number}));
    let edits = range.map(document).collect();
    database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
}

fn stored_entries(database: &OpenDatabase) -> u64 {
    database.view_info("d", &SERVER).unwrap()["view_index"]["entries"].as_u64().unwrap()
}

#[test]
fn a_policy_that_is_none_is_refused_with_the_views_name() {
    let server = Server::new();
    let database = server.databases.create("policies", &scrinium_database::InitialAccess::Everybody).unwrap();
    let wrong = [
        json!("sometimes"),
        json!(true),
        json!({"every_seconds": 0}),
        json!({"every_seconds": "5"}),
        json!({"every_seconds": 5, "or": 6}),
    ];
    for update in wrong {
        let formula = json!({"_id": "_design/f", "language": "formula", "views": {"by a": with_update(by("A"), &update)}});
        let script = json!({"_id": "_design/s", "options": {"update": update},
            "views": {"by a": {"map": "function (doc) { emit(doc.A) }"}}});
        for design in [formula, script] {
            let error = put(&database, &design).unwrap_err();
            assert_eq!(error.error(), "compilation_error");
            assert!(error.reason().starts_with("view `by a`: `update` must be"), "{}", error.reason());
        }
    }
    for update in
        [json!("on_read"), json!("automatic"), json!("manual"), json!({"every_seconds": 9}), json!(null)]
    {
        put_design(&database, &json!({"v": with_update(by("A"), &update)}));
    }
}

#[test]
fn a_policy_is_no_part_of_what_an_index_belongs_to() {
    let server = Server::new();
    let database = server.databases.create("policies", &scrinium_database::InitialAccess::Everybody).unwrap();
    fill(&database, 0..3);
    put_design(&database, &json!({"v": by("A")}));
    assert_eq!(usual(&database, "v").len(), 3);
    put_design(&database, &json!({"v": with_update(by("A"), &json!("manual"))}));
    let stands = read(&database, "v", Freshness::AsItStands).0;
    assert_eq!(stands.len(), 3, "nothing was built again");
    assert_eq!(database.clean_up_views().unwrap(), 0);
}

#[test]
fn an_automatic_view_has_followed_before_it_is_read() {
    let server = Server::new();
    let database =
        server.databases.create("automatic", &scrinium_database::InitialAccess::Everybody).unwrap();
    put_design(&database, &json!({"auto": with_update(by("A"), &json!("automatic")), "other": by("B")}));
    background(&server);
    fill(&database, 0..30);
    background(&server);
    assert_eq!(read(&database, "auto", Freshness::AsItStands).0.len(), 30);
    assert!(read(&database, "other", Freshness::AsItStands).0.is_empty(), "nobody has asked for this one");
    // The same of a database that was opened only to be written to, and of JavaScript.
    drop(database);
    let server = server.reopen();
    let database = server.databases.get("automatic").unwrap();
    put(
        &database,
        &json!({"_id": "_design/d", "_rev": get(&database, "_design/d").unwrap()["_rev"],
        "options": {"update": "automatic"}, "views": {"auto": {"map": "function (doc) { emit(doc.A) }"}}}),
    )
    .unwrap();
    fill(&database, 30..31);
    background(&server);
    assert_eq!(read(&database, "auto", Freshness::AsItStands).0.len(), 31);
}

/// A server may have a hundred thousand databases; the update task must not go through them.
#[test]
fn only_databases_where_something_is_to_be_done_announce_themselves() {
    let server = Server::new();
    let names = |server: &Server| -> Vec<String> {
        let announced = server.databases.take_announced(usize::MAX);
        let mut names: Vec<String> = announced.iter().map(|database| database.name().to_owned()).collect();
        announced.iter().for_each(|database| assert_eq!(database.update_followed_views().unwrap(), None));
        names.sort();
        names
    };
    let made: Vec<OpenDatabase> = ["plain", "on-read", "automatic"]
        .iter()
        .map(|name| server.databases.create(name, &scrinium_database::InitialAccess::Everybody).unwrap())
        .collect();
    put_design(&made[1], &json!({"v": by("A")}));
    put_design(&made[2], &json!({"v": with_update(by("A"), &json!("automatic"))}));
    // Whether there is such a view is looked up once.
    assert_eq!(names(&server), ["automatic", "on-read"]);
    for _ in 0..3 {
        made.iter().for_each(|database| drop(put(database, &json!({"A": 1})).unwrap()));
    }
    assert_eq!(names(&server), ["automatic"]);
    assert!(names(&server).is_empty());
    put_design(&made[1], &json!({"v": with_update(by("A"), &json!("automatic"))}));
    assert_eq!(names(&server), ["on-read"]);
}

#[test]
fn a_view_that_is_brought_up_to_date_now_and_then_may_lag_and_no_more() {
    let server = Server::timed();
    let database = server.databases.create("lags", &scrinium_database::InitialAccess::Everybody).unwrap();
    put_design(
        &database,
        &json!({
        "seldom": with_update(by("A"), &json!({"every_seconds": 86_400})),
        "often": with_update(by("A + 1"), &json!({"every_seconds": 1})),
        "always": by("B")}),
    );
    fill(&database, 0..3);
    assert_eq!((usual(&database, "seldom").len(), usual(&database, "often").len()), (3, 3));
    fill(&database, 3..5);
    assert_eq!(usual(&database, "seldom").len(), 3);
    assert_eq!(usual(&database, "always").len(), 5);
    assert_eq!(usual(&database, "seldom").len(), 3, "a read of another view changes nothing");
    server.pass(Duration::from_secs(1));
    // Somebody has read it, so that the background continues it; when the other is due is not yet.
    let again = server.databases.take_announced(1)[0].update_followed_views().unwrap().unwrap();
    assert!(again > HOUR && again <= 24 * HOUR, "{again:?}");
    assert_eq!(read(&database, "often", Freshness::AsItStands).0.len(), 5);
    assert_eq!(usual(&database, "seldom").len(), 3);
    assert_eq!(read(&database, "seldom", Freshness::UpToDate).0.len(), 5, "who insists gets the present");
    // What it held before a restart may be of any age.
    fill(&database, 5..6);
    drop(database);
    let server = server.reopen();
    assert_eq!(usual(&server.databases.get("lags").unwrap(), "seldom").len(), 6);
}

#[test]
fn a_manual_view_is_built_once_and_then_follows_only_who_says_so() {
    let server = Server::new();
    let database = server.databases.create("manual", &scrinium_database::InitialAccess::Everybody).unwrap();
    put_design(&database, &json!({"manual": with_update(by("A"), &json!("manual")), "other": by("B")}));
    fill(&database, 0..2);
    let steps = |database: &OpenDatabase| (usual(database, "manual").len(), usual(database, "other").len());
    assert_eq!(steps(&database), (2, 2), "an index that was never built is no answer");
    fill(&database, 2..3);
    background(&server);
    database.update_view_group("d").unwrap();
    assert_eq!(steps(&database), (2, 3));
    assert_eq!(read(&database, "manual", Freshness::UpToDateSoon).0.len(), 2);
    background(&server);
    assert_eq!(steps(&database), (3, 3));
    fill(&database, 3..4);
    assert_eq!(read(&database, "manual", Freshness::UpToDate).0.len(), 4);
    fill(&database, 4..5);
    assert_eq!(database.update_all_views(Some("manual"), false).unwrap(), 1);
    assert_eq!(usual(&database, "manual").len(), 5);
    fill(&database, 5..6);
    database.update_all_views(None, false).unwrap();
    assert_eq!(usual(&database, "manual").len(), 6);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scrinium_fault::cases(12), ..ProptestConfig::default() })]

    /// Whatever is asked in whatever order: what a view shows is what was there at the change that it claims, which
    /// never goes back, and is the last one where the policy promises that.
    #[test]
    fn every_policy_shows_what_there_was_at_the_change_that_it_claims(
        steps in prop::collection::vec((0..8_u8, 0..12_u32, 0..50_u32), 1..60)
    ) {
        let server = Server::quick();
        let database = server.databases.create("model", &scrinium_database::InitialAccess::Everybody).unwrap();
        let policies = [
            ("reads", json!("on_read")), ("automatic", json!("automatic")),
            ("seldom", json!({"every_seconds": 86_400})), ("manual", json!("manual"))];
        // Each by another formula, or they would share an index.
        let views: serde_json::Map<String, Value> = (0..).zip(&policies)
            .map(|(place, (name, update))| ((*name).to_owned(), with_update(by(&format!("A + {place} - {place}")), update)))
            .collect();
        put_design(&database, &Value::Object(views));
        let mut now: BTreeMap<String, u32> = BTreeMap::new();
        let mut at = BTreeMap::from([(database.visible_change_number(), now.clone())]);
        let mut claimed: BTreeMap<&str, u64> = BTreeMap::new();
        for (step, which, size) in steps {
            let name = policies[which as usize % policies.len()].0;
            match step {
                0..=2 => {
                    let id = format!("n{which}");
                    let mut document = json!({"_id": id, "A": size});
                    if let Ok(present) = get(&database, &id) {
                        document["_rev"] = present["_rev"].clone();
                    }
                    now.insert(id, size);
                    put(&database, &document).unwrap();
                    at.insert(database.visible_change_number(), now.clone());
                    continue;
                }
                3 => {
                    background(&server);
                    check(&database, "automatic", Freshness::AsItStands, &at, &mut claimed)?;
                    prop_assert_eq!(claimed["automatic"], database.visible_change_number());
                    continue;
                }
                4 => drop(database.update_all_views(Some(name), false).unwrap()),
                5 => check(&database, name, Freshness::UpToDate, &at, &mut claimed)?,
                6 => check(&database, name, Freshness::UpToDateSoon, &at, &mut claimed)?,
                _ => check(&database, name, Freshness::Usual, &at, &mut claimed)?,
            }
            let is_present = step == 5 || step == 7 && ["reads", "automatic"].contains(&name);
            prop_assert!(!is_present || claimed[name] == database.visible_change_number());
        }
    }
}

fn check<'a>(
    database: &OpenDatabase,
    view: &'a str,
    freshness: Freshness,
    at: &BTreeMap<u64, BTreeMap<String, u32>>,
    claimed: &mut BTreeMap<&'a str, u64>,
) -> Result<(), TestCaseError> {
    let (rows, reached) = read(database, view, freshness);
    prop_assert!(reached >= claimed.insert(view, reached).unwrap_or(0));
    let mut there: Vec<(u32, &String)> = match reached {
        0 => Vec::new(),
        reached => at[&reached].iter().map(|(id, size)| (*size, id)).collect(),
    };
    there.sort();
    let expected: Vec<String> = there.iter().map(|(size, id)| format!("[{size}] {id}")).collect();
    prop_assert_eq!(rows, expected);
    Ok(())
}

#[test]
fn an_index_that_nobody_reads_is_discarded_and_built_again() {
    let server = Server::new();
    let database = server.databases.create("unused", &scrinium_database::InitialAccess::Everybody).unwrap();
    put_design(&database, &json!({"v": by("A"), "auto": with_update(by("B"), &json!("automatic"))}));
    fill(&database, 0..30);
    background(&server);
    assert_eq!((usual(&database, "v").len(), usual(&database, "auto").len()), (30, 30));
    assert_eq!(server.databases.discard_unused_views(HOUR).unwrap(), 0);
    assert_eq!(stored_entries(&database), 60);
    assert_eq!(server.databases.discard_unused_views(Duration::ZERO).unwrap(), 2);
    assert_eq!(stored_entries(&database), 0);
    assert_eq!(server.databases.discard_unused_views(Duration::ZERO).unwrap(), 0, "they are gone already");
    // Anyone who follows by itself does not before it is read again.
    fill(&database, 30..31);
    background(&server);
    assert_eq!(stored_entries(&database), 0);
    assert_eq!(usual(&database, "v").len(), 31);
    assert_eq!(stored_entries(&database), 31, "a read of another view does not count for this one");
    assert_eq!(read(&database, "auto", Freshness::AsItStands).0.len(), 31, "it was discarded, not unbuilt");
    fill(&database, 31..32);
    background(&server);
    assert_eq!(read(&database, "auto", Freshness::AsItStands).0.len(), 32);
    // The same after a restart, where nobody has the indexes open.
    drop(database);
    let server = server.reopen();
    assert_eq!(server.databases.discard_unused_views(HOUR).unwrap(), 0);
    assert_eq!(server.databases.discard_unused_views(Duration::ZERO).unwrap(), 2);
    let database = server.databases.get("unused").unwrap();
    assert_eq!(stored_entries(&database), 0);
    assert_eq!((usual(&database, "v").len(), usual(&database, "auto").len()), (32, 32));
}

#[test]
fn readers_keep_what_they_read_while_its_index_is_discarded() {
    let server = Server::new();
    let database = server.databases.create("unused", &scrinium_database::InitialAccess::Everybody).unwrap();
    put_design(&database, &json!({"v": by("A")}));
    fill(&database, 0..300);
    let mut rows = database.view("d", "v", RowQuery::default(), &SERVER).unwrap();
    assert_eq!(rows.next_rows(10).unwrap().len(), 10);
    assert_eq!(server.databases.discard_unused_views(Duration::ZERO).unwrap(), 1);
    assert_eq!(rows.next_rows(1000).unwrap().len(), 290);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..200 {
                server.databases.discard_unused_views(Duration::ZERO).unwrap();
            }
        });
        for _ in 0..200 {
            assert_eq!(usual(&database, "v").len(), 300);
        }
    });
}

fn of_collation(version: u32, read_back: u64) -> DatabaseOptions {
    DatabaseOptions { collation: Collation { version, read_back }, ..DatabaseOptions::default() }
}

#[test]
fn an_index_of_another_collation_answers_until_the_new_one_is_built() {
    let server = Server::with(of_collation(1, 7));
    let database = server.databases.create("large", &scrinium_database::InitialAccess::Everybody).unwrap();
    fill(&database, 0..3000);
    put_design(&database, &json!({"v": by("A"), "w": by("B")}));
    assert_eq!((usual(&database, "v").len(), usual(&database, "w").len()), (3000, 3000));
    drop(database);
    let server = server.reopen_with(of_collation(2, 7));
    let database = server.databases.get("large").unwrap();
    let pending = || database.view_info("d", &SERVER).unwrap()["view_index"]["update_seq"] == 0;
    fill(&database, 3000..3001);
    assert_eq!((usual(&database, "v").len(), usual(&database, "w").len()), (3001, 3001));
    assert!(pending(), "nobody had to wait for the new ones");
    assert_eq!(database.clean_up_views().unwrap(), 0, "what answers is not cleaned away");
    background(&server);
    assert!(!pending());
    assert_eq!((usual(&database, "v").len(), usual(&database, "w").len()), (3001, 3001));
    assert_eq!(database.clean_up_views().unwrap(), 0, "the old ones are gone already");
    drop(database);
    // Keys that cannot be read back are no answer.
    let server = server.reopen_with(of_collation(3, 8));
    let database = server.databases.get("large").unwrap();
    assert_eq!(usual(&database, "v").len(), 3001);
    assert_ne!(
        database.view_info("d", &SERVER).unwrap()["view_index"]["update_seq"],
        0,
        "the read has built it"
    );
    assert_eq!(database.clean_up_views().unwrap(), 2);
}

/// A design document that was deleted and made again once showed the views that it had had, after a restart.
#[test]
fn a_design_document_that_was_deleted_does_not_answer_for_one_of_its_name() {
    let server = Server::new();
    let database = server.databases.create("large", &scrinium_database::InitialAccess::Everybody).unwrap();
    fill(&database, 0..3000);
    let make_again = |database: &OpenDatabase, formula: &str| {
        let mut design = get(database, "_design/d").unwrap();
        design["_deleted"] = json!(true);
        put(database, &design).unwrap();
        put_design(database, &json!({"v": by(formula)}));
    };
    put_design(&database, &json!({"v": by("A")}));
    assert_eq!(usual(&database, "v")[0], "[0] 00000");
    make_again(&database, "A + 1");
    assert_eq!(usual(&database, "v")[0], "[1] 00000");
    make_again(&database, "A + 2");
    drop(database);
    let server = server.reopen();
    let database = server.databases.get("large").unwrap();
    assert_eq!(usual(&database, "v")[0], "[2] 00000");
    put_design(&database, &json!({"v": by("A + 3")}));
    assert_eq!(usual(&database, "v")[0], "[2] 00000", "it was changed, not deleted");
}

#[test]
fn other_orders_of_a_view_are_kept_with_it() {
    let server = Server::with(of_collation(1, 7));
    let database = server.databases.create("large", &scrinium_database::InitialAccess::Everybody).unwrap();
    fill(&database, 0..3000);
    let columns = json!([{"title": "A", "formula": "A", "sort": "asc"}, {"title": "B", "formula": "B", "resort": "asc"}]);
    put_design(&database, &json!({"v": {"columns": columns}}));
    let first = |database: &OpenDatabase, view: &str, freshness: Freshness| {
        let query =
            RowQuery { resort: Some("B".to_owned()), freshness, limit: Some(1), ..RowQuery::default() };
        database
            .view("d", view, query, &SERVER)
            .unwrap()
            .next_rows(1)
            .unwrap()
            .pop()
            .map(|row| row.id.unwrap())
    };
    assert_eq!(usual(&database, "v").len(), 3000);
    assert_eq!(first(&database, "v", Freshness::Usual).unwrap(), "02999");
    fill(&database, 3000..3001);
    assert_eq!(first(&database, "v", Freshness::Usual).unwrap(), "03000");
    drop(database);
    let server = server.reopen_with(of_collation(2, 7));
    let database = server.databases.get("large").unwrap();
    fill(&database, 3001..3002);
    assert_eq!(first(&database, "v", Freshness::Usual).unwrap(), "03001");
    assert_eq!(
        first(&database, "v", Freshness::AsItStands).unwrap(),
        "03001",
        "the one before still answers"
    );
    background(&server);
    assert_eq!(first(&database, "v", Freshness::AsItStands).unwrap(), "03001");
    fill(&database, 3002..3003);
    assert_eq!(first(&database, "v", Freshness::Usual).unwrap(), "03002");
    assert_eq!(first(&database, "v", Freshness::UpToDate).unwrap(), "03002");
    assert_eq!(server.databases.discard_unused_views(Duration::ZERO).unwrap(), 2);
    assert_eq!(
        first(&database, "v", Freshness::AsItStands).unwrap(),
        "03002",
        "it was discarded, not unbuilt"
    );
    drop(database);
    let server = server.reopen_with(of_collation(2, 7));
    let database = server.databases.get("large").unwrap();
    assert_eq!(first(&database, "v", Freshness::AsItStands).unwrap(), "03002");
    assert_eq!(database.clean_up_views().unwrap(), 0);
}

#[test]
fn the_view_before_a_change_of_design_answers_after_a_restart_too() {
    let server = Server::new();
    let database = server.databases.create("large", &scrinium_database::InitialAccess::Everybody).unwrap();
    fill(&database, 0..3000);
    put_design(&database, &json!({"kept": by("A"), "changed": by("A"), "twice": by("A + 1")}));
    for view in ["kept", "changed", "twice"] {
        assert_eq!(usual(&database, view)[0], if view == "twice" { "[1] 00000" } else { "[0] 00000" });
    }
    put_design(&database, &json!({"kept": by("A"), "changed": by("B"), "twice": by("A + 2")}));
    put_design(
        &database,
        &json!({"kept": by("A"), "changed": by("B"), "twice": by("A + 3"), "new": by("A * 2")}),
    );
    drop(database);
    let server = server.reopen();
    let database = server.databases.get("large").unwrap();
    database.clean_up_views().unwrap();
    fill(&database, 3000..3001);
    assert_eq!(usual(&database, "changed").last().unwrap(), "[3000] 03000", "as it was, and up to date");
    assert_eq!(usual(&database, "twice")[0], "[1] 00000");
    assert_eq!(usual(&database, "new")[1], "[2] 00001", "nothing stands in for it, so it is built");
    drop(database);
    let server = server.reopen();
    let database = server.databases.get("large").unwrap();
    assert_eq!(usual(&database, "changed")[0], "[0] 00000");
    background(&server);
    assert_eq!(usual(&database, "changed")[0], "[6000] 03000");
    assert_eq!(usual(&database, "twice")[0], "[3] 00000");
    // `kept` has the index that `changed` had.
    assert_eq!(database.clean_up_views().unwrap(), 1);
    drop(database);
    let server = server.reopen();
    let database = server.databases.get("large").unwrap();
    assert_eq!(usual(&database, "changed")[0], "[6000] 03000");
    // Of a design document that is gone nothing is kept.
    let mut design = get(&database, "_design/d").unwrap();
    design["_deleted"] = json!(true);
    put(&database, &design).unwrap();
    assert_eq!(database.clean_up_views().unwrap(), 4);
    let store = server.store.as_ref().unwrap();
    let snapshot = store.snapshot();
    let range = scrinium_store::KeyRange::ALL;
    let mut cursor =
        snapshot.cursor(scrinium_store::Family::DerivedPoint, range, scrinium_store::Direction::Forward);
    assert_eq!(cursor.next().unwrap().map(|(key, _)| key.to_vec()), None);
}
